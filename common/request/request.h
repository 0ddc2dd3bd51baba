// SPDX-License-Identifier: Apache-2.0
// Request: one call to notify, whichever way it came in (JSON over HTTP, protobuf over NATS), and
// the one set of rules that it must meet. The decoders check types and unknown fields; everything
// about values is checked here. Pure: no I/O, time is an argument.
#pragma once

#include "common/base/arena.h"
#include "common/model/enums.h"
#include "common/model/retention/retention.h"
#include "common/model/rules/ladder.h"

enum {
    REQUEST_VARIABLES_MAX = 64 * 1024, // bytes of packed JSON; as DOMAIN_DATA_MAX
    REQUEST_NAME_MAX = 256,
    REQUEST_ID_MAX = 128, // correlation_id, source_event_id
    REQUEST_LOCALE_MAX = 35,
    REQUEST_SCHEDULE_MAX_S = 366 * 24 * 3600,
};

typedef struct Request {
    Str to; // as given; after request_check normalised (people_address.h); empty: the recipient's
    Str to_name;
    Channel channel;
    Category category; // CATEGORY_NONE: the template's
    Priority priority;
    Str template_key;
    Str template_version; // empty: the active one; catalog_freeze fills it
    Str locale;
    Str variables; // a packed JSON object, or empty
    Str correlation_id;
    Str recipient_id;
    Str source_event_id;
    Str source_event_type;
    int64_t scheduled_for_us; // 0: now
    bool priority_unsaid;     // no priority was given: request_check set it, the template may set
                              // another
    bool scheduled_past;      // a time was given and has passed, so it means now
    int64_t expires_at_us;    // 0: never
    OwnRetries retries;       // of a command; all zero: the dispatcher's
    int64_t produced_at_us;   // of a command: the time in its id; 0: when the stream stored it
    Str consent_source;       // the caller's word on consent (consent.h); empty: none
    int64_t consent_at_us;
    struct RequestMail *mail; // of an e-mail (request_mail.h); NULL: nothing beside its template
    // Set by the component that made the request, never by a caller:
    RetentionClass retention; // catalog_freeze fills it in
    const char *given_id;     // an id that is derived from its cause; NULL: made at accept time
    Str batch_id;
    Str trigger_key;
    Str copy_of;    // of a copy for a guardian: the id of the notification that it is a copy of
    Str cancel_key; // under which it can be cancelled while it waits for its time
    int64_t source_event_at_us; // orders the events of one subject; 0: no trigger made it
    bool supersedes;            // what waits under cancel_key of earlier events does not go out
    bool is_test;               // of a template version, which may be a draft (template_test.h)
} Request;

// What is wrong with which field. `field` is static, or lives as long as the request.
typedef struct FieldError {
    const char *field;
    char text[160];
} FieldError;

// Fills *err and returns false.
bool field_error(FieldError *err, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum { PROBLEM_MORE_MAX = 31, PROBLEM_FIELD_SIZE = 128 };

typedef struct ProblemField {
    char field[PROBLEM_FIELD_SIZE];
    char detail[200];
} ProblemField;

// What becomes an RFC 9457 problem document.
typedef struct Problem {
    int status;       // 400 or 422
    const char *slug; // "malformed-json", "invalid-field" ...
    const char *title;
    char field[PROBLEM_FIELD_SIZE]; // "to", "notifications[3].to", or empty
    char detail[200];
    ProblemField *more; // further wrong fields, in an arena
    size_t more_count;
} Problem;

// One more wrong field: the first becomes the problem itself (422 invalid-field), the others stand
// next to it, up to PROBLEM_MORE_MAX. A field that is named already keeps its first fault, and what
// holds a wrong part ("to" next to "to.name") is no fault of its own. Nothing is added to a body
// that could not be read (400).
void problem_add(Problem *problem, Arena *arena, const char *field, const char *detail);
bool problem_is_full(const Problem *problem);

// Checks all values, normalises the address, fills in the defaults (channel email, priority normal;
// a scheduled_for that has passed means now). What it makes lives in `arena`.
bool request_check(Request *request, int64_t now_us, Arena *arena, FieldError *err);
// The same step by step, to meet every fault: begins at *at (0 at first), which is left behind the
// check that failed. true: nothing more is wrong.
bool request_check_on(Request *request, size_t *at, int64_t now_us, Arena *arena, FieldError *err);
