// SPDX-License-Identifier: Apache-2.0
// Reading CONFIG for the length of a command: one entry by its subject, or all that a filter names.
#pragma once

#include "common/bus/reader.h"
#include "services/cli/session.h"

// *ret_payload empty: there is no such entry. *ret_sequence: of its message, for a put that must
// replace exactly this one.
bool config_get(
    Session *session, Arena *arena, const char *subject, Str *ret_payload, uint64_t *ret_sequence,
    Error *err);

// Of its last message, which may be no entry at all; 0: there is none.
bool config_get_sequence(
    Session *session, Arena *arena, const char *subject, uint64_t *ret_sequence, Error *err);

// Called for each entry in the order of the log; what is empty was removed. The message lives
// during the call.
typedef void (*ConfigEach)(void *ctx, const BusMessage *message);
bool config_each(Session *session, const char *filter, ConfigEach each, void *ctx, Error *err);
