// SPDX-License-Identifier: Apache-2.0
// Idempotency: a POST under an Idempotency-Key is carried out once. One hook for all routes: the
// key is claimed in gateway.idempotency_keys before the handler runs, and what it answered is
// stored, sealed under the tenant's key, before the caller gets it. The same key and request within
// 24 hours get the same answer; another request 409; one that comes while the first is being
// worked on waits. Law: a refused request holds no key; a claim whose process has died ends by
// itself, and the repeat is carried out: what it makes is then made twice where the handler does
// not see to it (DECISIONS.md). Not here: ingest, which commits the key with what it accepts.
#pragma once

#include "common/api/api.h"
#include "common/codec/master_key.h"
#include "common/db/db.h"

enum { IDEMPOTENCY_KEY_MAX = 128 };

struct Idempotency {
    DbPool *pool;
    MasterKey *master;
    const char *const *own; // paths whose handlers see to their keys themselves; NULL at the end
    int64_t lease_ms;       // how long a request may be worked on, before a repeat takes its place
    struct IdempotentCall *waiting; // repeats, asked again at each tick
    int64_t forgotten_us;           // when old rows were dropped last, of clock_mono_us()
};

// The header's value, in quotation marks or without: the same key. Empty: none. false: answered,
// 422; it lives in the request's arena.
bool idempotency_key_read(ApiCall *call, Str *ret);
// The same for who answers by itself. false: not 1 to 128 printable ASCII characters.
bool idempotency_key_parse(Str header, Arena *arena, Str *ret);

// Does the call come under a key that this sees to?
bool idempotency_covers(const Idempotency *idempotency, const ApiCall *call);
// Leads to the handler, or to an answer without it.
void idempotency_run(Idempotency *idempotency, ApiCall *call);
// Some times a second, also while stopping: what waits is asked again.
void idempotency_tick(Idempotency *idempotency);
