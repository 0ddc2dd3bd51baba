// SPDX-License-Identifier: Apache-2.0
// Holds: what must not be deleted while they last. A tenant's data, one person's, or an archived
// unit. AUDIT has each before it is put or released. It blocks.
#pragma once

#include "common/erasure/erasure_pg.h"
#include "common/session/audit_session.h"

typedef struct ErasureHold {
    int64_t id;
    const char *tenant;                   // "": of every tenant (a unit's)
    const char *subject;                  // hex of a key's subject; "": not of one person
    const char *unit;                     // "": none
    const char *ground;                   // no '@'
    const char *by;                       // no '@'
    const char *since, *until, *released; // RFC 3339; "": none
} ErasureHold;

// `until` as RFC 3339 or NULL; since and released are not read. *ret_id: of the hold.
bool erasure_hold_set(
    PGconn *pg, Session *session, const ErasureHold *hold, int64_t now_us, Arena *arena,
    int64_t *ret_id, Error *err);
// *ret_found false: there is no such hold, or it is released.
bool erasure_hold_release(
    PGconn *pg, Session *session, int64_t id, const char *by, int64_t now_us, Arena *arena,
    bool *ret_found, Error *err);
// Those that are in force, with `all` every one; by id, in `arena`.
bool erasure_hold_list(
    PGconn *pg, bool all, Arena *arena, const ErasureHold **ret, size_t *ret_count, Error *err);
