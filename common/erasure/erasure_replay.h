// SPDX-License-Identifier: Apache-2.0
// Erasures that are known outside of Postgres, done again in a Postgres that was restored from
// before them. AUDIT knows each (its entry names the destroyed keys), and so do the certificates'
// objects where there is storage; either may be the older one. It blocks.
#pragma once

#include "common/erasure/erasure_certificate.h"
#include "common/session/audit_session.h"
#include "common/storage/storage_wait.h"

typedef struct ErasureReplay {
    Arena *arena;
    PGconn *pg;
    Session *session;
    StorageWait *storage;      // NULL: no object is read
    const uint8_t *public_key; // that signs certificates; NULL: no object is taken
    // What was passed over, by name: it destroys nothing, and stops nothing.
    void (*on_warning)(void *ctx, const char *text);
    void *ctx;
    size_t known;   // erasures that AUDIT and objects have
    size_t missing; // of these, not in Postgres
    size_t replayed;
    size_t certificates; // restored from objects
} ErasureReplay;

// Counts what is missing, changes nothing.
bool erasure_replay_check(ErasureReplay *replay, Error *err);
// Does again what is missing, restores lost certificates, and opens the gate (keys.gate).
bool erasure_replay_run(ErasureReplay *replay, Error *err);
