// SPDX-License-Identifier: Apache-2.0
// Suppressions as entries of CONFIG: cfg.suppression.<tenant>.<channel>.<category or "any">.<hex of
// the address hash>. The one place that makes such an event, and the one that reads it, for every
// service and the command line. Law: id and event id are derived from the key and from when it
// happened, so that a repeat of the same cause is the same event.
#pragma once

#include "common/base/buf.h"
#include "common/bus/jetstream/bus.h"
#include "common/model/suppressions.h"
#include "stentor/v1/config.pb-c.h"

// Who made an opt-out of a number: its owner, by a reply of STOP. One of START releases it.
#define SUPPRESSION_BY_REPLY "reply"

enum { SUPPRESSION_NOTE_MAX = 500, SUPPRESSION_KEY_SIZE = 96 };

typedef struct SuppressionSpec {
    Str tenant;
    Channel channel;
    Category category;   // CATEGORY_NONE: every category
    const uint8_t *hash; // SUPPRESSION_HASH_LEN bytes, made with the tenant's name
    SuppressionReason reason;
    int64_t at_us;         // when it happened
    int64_t expires_at_us; // 0: never
    Str by;                // "vendor", "opt-out", "cli", an API key's id
    Str note;
    Str notification_id;
    Str address;         // kept masked; empty: not known
    Str source_event_id; // of an event without a time; empty: it has one
} SuppressionSpec;

// What suppressions_wants compares; 0: the entry names no event.
uint64_t suppression_cause(const Stentor__V1__Suppression *entry);
// The message, with its id, in `arena`.
Stentor__V1__Suppression *suppression_make(const SuppressionSpec *spec, Arena *arena);
// "email.marketing.<hex>": the subject's tokens after the tenant.
void suppression_key(
    char out[SUPPRESSION_KEY_SIZE], Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN]);

// Checks the entry: tenant, channel, category, hash, reason. ERROR_PERMANENT names the field.
bool suppression_check(const Stentor__V1__Suppression *entry, Error *err);
// Fills *ret; everything it points to lives in `arena`.
bool suppression_event(
    const Stentor__V1__Suppression *entry, Arena *arena, BusOut *ret, Error *err);

// An entry of kind "suppression" into the index; tenant and key are the subject's, payload and
// sequence the message's. An empty payload is a release of what was there.
// ERROR_PERMANENT when the payload is not the entry that the subject names.
bool suppression_apply(
    Suppressions *index, Str tenant, Str key, const BusMessage *message, Error *err);
// The subject's last message cannot be read (ConfigUnreadable).
void suppression_unreadable(Suppressions *index, Str tenant, Str key, uint64_t sequence);
// The entry itself, in `arena`; NULL and ERROR_PERMANENT as above.
Stentor__V1__Suppression *suppression_read(
    Str tenant, Str key, Str payload, Arena *arena, Error *err);

// {"id":...,"channel":...,...} as the API and the command line show it; the hash in hex.
void suppression_json(Buf *out, const Stentor__V1__Suppression *entry);
