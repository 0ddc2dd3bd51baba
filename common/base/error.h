// SPDX-License-Identifier: Apache-2.0
// Errors: one small struct given by the caller, filled by whoever fails, read by whoever decides.
// The kind says what to do, not where it came from. Library code returns errors; only a service
// logs them, once.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum ErrorKind {
    ERROR_NONE = 0,
    ERROR_TRANSIENT, // back off and try again; a delivery is redelivered
    ERROR_PERMANENT, // this input can never succeed: dead-letter it, answer 4xx
    ERROR_CONFLICT,  // already done: count as done
    ERROR_CONFIG,    // the installation is wrong: say so and exit
    ERROR_USAGE,     // a command was called wrongly: say so, exit status 2
    ERROR_CANCELLED, // stopping: leave it for the next process
} ErrorKind;

typedef struct Error {
    ErrorKind kind;
    char text[240]; // lower case, names in '...', ends without a full stop; truncated text ends in
                    // "..."
#ifdef STENTOR_ERROR_PLACES
    const char *file; // where error_set was called; NULL: not set by it
    int line;
#endif
} Error;

// Fills *err (which may be NULL) and returns false, so that `return error_set(...)` reads as a
// failure.
bool error_set(Error *err, ErrorKind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Puts "<prefix>: " before the text that is there already; keeps the kind; returns false.
bool error_wrap(Error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

void error_clear(Error *err);
const char *error_kind_name(ErrorKind kind); // "transient" ...

// Debug builds (CMakeLists.txt) record where each error was set, through wraps and copies; a line
// of the log has it as `at`, an answer to a caller never does. Elsewhere it costs nothing.
#ifdef STENTOR_ERROR_PLACES
Error *error_mark(Error *err, const char *file, int line); // returns err, which may be NULL
#define error_set(err, ...) (error_set)(error_mark((err), __FILE_NAME__, __LINE__), __VA_ARGS__)
#endif
// "reader.c:85"; "" where it is not known.
void error_at(const Error *err, char *out, size_t size);
