// SPDX-License-Identifier: Apache-2.0
// One entry of CONFIG, read when a caller asks for it: what ingest does not keep in memory (a
// hundred thousand templates' content). One round trip; not for the hot path.
#pragma once

#include "common/bus/jetstream/bus.h"

// payload empty: there is no such entry. sequence: of its message in CONFIG, for who wants to
// replace just that one; of its removal; 0: there never was one. err: TRANSIENT when NATS did not
// answer within 5 s.
typedef void (*ConfigReadDone)(void *ctx, Str payload, uint64_t sequence, const Error *err);

// The payload is copied to `arena`, which must live until `done`, which comes once, from the loop.
void config_read(Bus *bus, const char *subject, Arena *arena, ConfigReadDone done, void *ctx);
