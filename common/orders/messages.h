// SPDX-License-Identifier: Apache-2.0
// The saga's messages as bytes: commands and OrderFailed on evt.<tenant>.<type>, time-outs on
// DEFERRED. Pure.
//
// Law: the id of a message is derived from its order and its type (of a time-out: from its number),
// so a repeated PlaceOrder is the same message.
#pragma once

#include "common/bus/topology/topology.h"
#include "common/db/keyring.h"
#include "common/orders/order.h"

// Who placed the order and what was ordered, in clear.
typedef struct Recipient {
    Str email, full_name;
    const SagaLine *lines;
    size_t line_count;
} Recipient;

typedef struct OutMessage {
    Str tenant;
    char correlation_id[UUID_SIZE];
    char event_id[EVENT_ID_SIZE];
    const char *type; // "PlaceOrder" ..., "Deferred"
    char subject[SUBJECT_SIZE];
    Str payload;
    int64_t happened_at_us; // a command's time, in its header
    int64_t seen_at_us;     // of a command: when the stream stored its cause; another header
} OutMessage;

Recipient recipient_of(const SagaInput *checked_out);

// ERROR_PERMANENT: too large, which checked events never are.
bool message_command(
    const Command *command, const Recipient *recipient, Arena *arena, OutMessage *ret, Error *err);
bool message_timeout(
    const Command *wait, int64_t due_at_us, Arena *arena, OutMessage *ret, Error *err);
// The deferral that starts the retention: number of the period since 1970, and its length.
bool message_retention(int64_t period, int64_t period_s, Arena *arena, OutMessage *ret, Error *err);
// As it is published: a command with headers for its id and its cause's time. What it points to
// lives in `arena` or in the message.
BusOut message_out(const OutMessage *message, Str traceparent, Arena *arena);
bool message_is_command(Str type);

// ---- sealed ----

// A packed Sealed in `arena`, bound to tenant and order.
Str recipient_seal(DataKey *key, const Order *order, const Recipient *recipient, Arena *arena);
bool recipient_unseal(DataKey *key, const Order *order, Arena *arena, Recipient *ret, Error *err);
Str command_seal(DataKey *key, const OutMessage *message, Arena *arena);
bool command_unseal(
    DataKey *key, Str tenant, Str correlation_id, Str body, Arena *arena, Str *ret, Error *err);
// The key that it needs. If it is no Sealed: a key that never exists.
KeyWant message_key_want(Str tenant, Str packed, Arena *arena);
