// SPDX-License-Identifier: Apache-2.0
// A request to erase, from its row to what says that it is done: waiting, perhaps restricted by a
// hold, erased, announced. Each step is durable before the next one begins and may be repeated, so
// whoever asks again, or runs what is open, goes on where another one was killed. It blocks.
#pragma once

#include "common/erasure/erasure_person.h"
#include "common/session/audit_session.h"

// Why and how long the record keys of erased people are kept. Both NULL: they are destroyed with
// the others.
typedef struct ErasureDuty {
    const char *text;     // names the law; no '@'
    const char *interval; // "84 months", counted from the end of the period ...
    const char *period;   // ... "month" or "day"
} ErasureDuty;

typedef struct ErasureAsk {
    const ErasurePerson *person;
    const char *id;           // era_ and ULID; of a domain event derived from it
    const char *ground;       // no '@': AUDIT holds it
    const char *requested_by; // no '@'
    const char *source_event; // NULL: none
    bool final;               // no duty keeps a key, nor one of an earlier erasure
} ErasureAsk;

typedef struct ErasureRequest {
    const char *id;
    const char *tenant;
    const char *recipient_id; // "": none
    const char *subject;      // hex of the first one
    const char *ground;
    const char *requested_by;
    int64_t requested_us;
    const char *state;   // "waiting", "restricted", "erased"
    int64_t erased_us;   // 0: not yet
    const char *cleared; // JSON: rows by table
    const char *hold;    // the ground of the hold that keeps the data; "": none
    int64_t keys;        // destroyed
    int64_t kept;        // record keys that a duty keeps
    const char *duty;    // "": none
    int64_t kept_until_us;
    bool announced;
} ErasureRequest;

// Notes the request. *ret_id: the row's id, of an earlier request when that is not finished, or
// when it left nothing to erase; NULL: nothing is known of this person.
bool erasure_ask(PGconn *pg, const ErasureAsk *ask, Arena *arena, const char **ret_id, Error *err);
// The row of that id; ERROR_PERMANENT: there is none.
bool erasure_read(PGconn *pg, const char *id, Arena *arena, ErasureRequest *ret, Error *err);
// As far as it goes: to announced, or to restricted. AUDIT has the request before anything is
// destroyed.
// Keys that were kept are destroyed here once their duty has ended.
bool erasure_run(
    PGconn *pg, Session *session, MasterKey *master, const char *id, const ErasureDuty *duty,
    Arena *arena, ErasureRequest *ret, Error *err);
// Ids of all requests, of one tenant ("": of every one); the youngest first, at most `limit`.
bool erasure_list(
    PGconn *pg, const char *tenant, int64_t limit, Arena *arena, const char *const **ret,
    size_t *ret_count, Error *err);
// Ids of all that erasure_run would go on with, the oldest first.
bool erasure_open(PGconn *pg, Arena *arena, const char *const **ret, size_t *ret_count, Error *err);
