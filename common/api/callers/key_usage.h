// SPDX-License-Identifier: Apache-2.0
// KeyUsage: when a key was last used, kept in memory and written once a minute, all keys in one
// statement (gateway.key_usage). Of several processes the latest use counts. Law: a call costs a
// look-up in a map; a use of the last minute may be lost with the process.
#pragma once

#include "common/base/str.h"
#include "common/db/db.h"

enum { KEY_USAGE_KEYS_MAX = 10000, KEY_USAGE_EVERY_MS = 60000 };

typedef struct KeyUsage KeyUsage;

KeyUsage *key_usage_new(DbPool *pool); // borrowed
// After the pool is closed. NULL-safe.
void key_usage_free(KeyUsage *usage);
// Beyond KEY_USAGE_KEYS_MAX keys a new one is not noted until the next write.
void key_usage_note(KeyUsage *usage, Str tenant, Str key_id, int64_t at_us);
// From the service's timer: writes when a minute has passed since the last time.
void key_usage_tick(KeyUsage *usage, uint64_t now_ms);
void key_usage_flush(KeyUsage *usage); // what there is, now: before a stop
// What this process knows and has not written yet, or has; 0: nothing.
int64_t key_usage_known(const KeyUsage *usage, Str tenant, Str key_id);
