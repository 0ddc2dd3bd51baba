// SPDX-License-Identifier: Apache-2.0
// Options: one table of rows per program yields parsing, validation, --help, the start-up line and
// the README's table. Sources, later wins: default, file (--config FILE, lines NAME=value),
// environment (NAME), command line: STENTOR_NATS_URL is --nats-url VALUE or --nats-url=VALUE, and
// OTEL_SERVICE_NAME, which other makers' programs read too, --otel-service-name; a switch
// (OPTION_BOOL) may stand alone. A secret may also be read from a file: NAME_FILE (environment and
// config file) or --name-file PATH. An unknown name is an error; in a file and in the environment
// those of other programs are passed over (known_names.h), so that one of each serves all programs,
// and in the environment what Kubernetes says of its services.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

typedef enum OptionType { OPTION_TEXT, OPTION_INT, OPTION_BOOL } OptionType;

typedef struct Option {
    const char *name; // "STENTOR_NATS_URL"
    OptionType type;
    size_t offset;    // of a `const char *`, `int64_t` or `bool` in the options struct
    const char *def;  // NULL: required (and then an empty text counts as missing)
    int64_t min, max; // OPTION_INT
    bool secret;      // printed as ***
    const char *help; // one line
} Option;

// Where a value came from, the weakest first.
typedef enum OptionSource {
    OPTION_FROM_NONE,
    OPTION_FROM_DEFAULT,
    OPTION_FROM_FILE,
    OPTION_FROM_ENVIRONMENT,
    OPTION_FROM_ARGUMENT,
} OptionSource;

enum { OPTION_TEXT_MAX = 4096, OPTION_FILE_MAX = 256 * 1024 };

// Values live until options_free. ERROR_CONFIG names the option, the value and what is expected.
// argv[0] is passed over; an argument that is no option is an error. After a failure there is
// nothing to free.
bool options_load(
    const Option *table, size_t count, void *options, int argc, char **argv, Error *err)
    __attribute__((warn_unused_result));
// The same for a command with arguments of its own: reading ends at the first argument that does
// not begin with '-', or after "--"; *ret_rest is the index of the first one not read (argc: none).
// ret_sources (NULL: not wanted) gets one entry for each row.
bool options_load_args(
    const Option *table, size_t count, void *options, int argc, char **argv, int *ret_rest,
    OptionSource *ret_sources, Error *err) __attribute__((warn_unused_result));
// Only finds that index, without reading a value: an unknown option is where the rest begins.
int options_rest(const Option *table, size_t count, int argc, char **argv);
// Frees the values (not the struct) of a successful load.
void options_free(const Option *table, size_t count, void *options);

// These append, and return false when `out` is full.
// The value as it may be shown: a secret is ***, a password inside a URL too.
bool options_print(const Option *row, const void *options, Buf *out);
bool options_help(
    const Option *table, size_t count, const char *program, const char *summary, Buf *out);
bool options_markdown(const Option *table, size_t count, Buf *out); // | name | default | meaning |
