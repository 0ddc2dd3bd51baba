// SPDX-License-Identifier: Apache-2.0
// Commands: the way in over NATS. A worker on EVENTS takes evt.<tenant>.notify
// (stentor.v1.NotifyCommand) through the same checks and the same group commit as HTTP,
// SendTemplateTest likewise (common/request/template_test.h), and ResendErrorEmail (resends.h). All
// other events are domain events, which the triggers take (triggers.h); those that no trigger wants
// are counted and passed over. Law: a redelivered or repeated command makes the same notification:
// its id and its idempotency key are derived from the message's identity (Nats-Msg-Id without
// "<tenant>/<type>/" before it, else stream and sequence).
#pragma once

#include "common/bus/consume/worker.h"
#include "common/request/catalog.h"
#include "services/ingest/accept/accept.h"
#include "services/ingest/reseal/reseal.h"
#include "services/ingest/triggers/triggers.h"

typedef struct Commands Commands;

// Borrows all; `stage` is filled in here. Stop (on_stopped when every delivery is settled), then
// free.
Commands *commands_new(
    Bus *bus, const Suppressions *suppressions, Reseal *reseal, const TriggersOptions *options);
void commands_start(Commands *commands); // once the catalog is complete
void commands_stop(Commands *commands, void (*on_stopped)(void *ctx), void *ctx);
void commands_free(Commands *commands, void (*on_freed)(void *ctx), void *ctx);

// A command's bytes to a checked request; ERROR_PERMANENT names the field. Pure; for the worker and
// for tests.
bool command_read(
    Str payload, bool is_test, int64_t now_us, Arena *arena, Request *ret, Error *err);
