// SPDX-License-Identifier: Apache-2.0
#include "common/bus/events/suppression_event.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"

static_assert((int)SUPPRESSION_HASH_LEN == (int)ADDRESS_HASH_LEN, "they are the same hash");

enum { MASK_SIZE = 300 };

void suppression_key(
    char out[SUPPRESSION_KEY_SIZE], Channel channel, Category category,
    const uint8_t hash[SUPPRESSION_HASH_LEN])
{
    char hex[2 * SUPPRESSION_HASH_LEN + 1];
    hex_encode(hash, SUPPRESSION_HASH_LEN, hex);
    const char *of = category == CATEGORY_NONE ? "any" : category_name(category);
    (void)snprintf(out, SUPPRESSION_KEY_SIZE, "%s.%s.%s", channel_name(channel), of, hex);
}

// ---- making ----

Stentor__V1__Suppression *suppression_make(const SuppressionSpec *spec, Arena *arena)
{
    char key[SUPPRESSION_KEY_SIZE];
    char id[ID_SIZE];
    uint8_t digest[SHA256_LEN];
    suppression_key(key, spec->channel, spec->category, spec->hash);
    sha256(str_from(arena_printf(arena, STR_FMT ".%s", STR_ARG(spec->tenant), key)), digest);
    id_derived("sup_", spec->at_us, digest, id);
    Stentor__V1__Suppression *entry = arena_alloc(arena, sizeof *entry);
    stentor__v1__suppression__init(entry);
    entry->id = arena_cstr(arena, str_from(id));
    entry->tenant = arena_cstr(arena, spec->tenant);
    entry->channel = (Stentor__V1__Channel)spec->channel;
    entry->category = (Stentor__V1__Category)spec->category;
    entry->address_hash =
        pb_data(str_of(arena_copy(arena, spec->hash, SUPPRESSION_HASH_LEN), SUPPRESSION_HASH_LEN));
    entry->reason = (Stentor__V1__SuppressionReason)spec->reason;
    entry->note = arena_cstr(arena, spec->note);
    entry->created_at_us = spec->at_us;
    entry->created_by = arena_cstr(arena, spec->by);
    entry->expires_at_us = spec->expires_at_us;
    entry->source_notification_id = arena_cstr(arena, spec->notification_id);
    char mask[MASK_SIZE] = "";
    if (spec->address.len > 0) {
        mask_address(spec->address, mask, sizeof mask);
    }
    entry->masked_address = arena_cstr(arena, str_from(mask));
    entry->source_event_id = arena_cstr(arena, spec->source_event_id);
    return entry;
}

uint64_t suppression_cause(const Stentor__V1__Suppression *entry)
{
    uint8_t digest[SHA256_LEN];
    uint64_t cause = 0;
    if (entry->source_event_id[0] != '\0') {
        sha256(str_from(entry->source_event_id), digest);
        memcpy(&cause, digest, sizeof cause);
    }
    return cause;
}

bool suppression_check(const Stentor__V1__Suppression *entry, Error *err)
{
    if (!id_is_tenant(str_from(entry->tenant))) {
        return error_set(
            err, ERROR_PERMANENT, "suppression: '%.40s' is not a tenant id", entry->tenant);
    }
    if (channel_name((Channel)entry->channel)[0] == '\0') {
        return error_set(
            err, ERROR_PERMANENT, "suppression: channel %d is unknown", (int)entry->channel);
    }
    if (entry->category != STENTOR__V1__CATEGORY__CATEGORY_UNSPECIFIED &&
        category_name((Category)entry->category)[0] == '\0') {
        return error_set(
            err, ERROR_PERMANENT, "suppression: category %d is unknown", (int)entry->category);
    }
    if (entry->address_hash.len != SUPPRESSION_HASH_LEN) {
        return error_set(
            err, ERROR_PERMANENT, "suppression: address_hash has %zu bytes instead of %d",
            entry->address_hash.len, SUPPRESSION_HASH_LEN);
    }
    if (!suppression_is_given((SuppressionReason)entry->reason)) {
        return error_set(
            err, ERROR_PERMANENT, "suppression: reason %d is unknown", (int)entry->reason);
    }
    return true;
}

static int64_t changed_at(const Stentor__V1__Suppression *entry)
{
    return entry->released_at_us > 0 ? entry->released_at_us : entry->created_at_us;
}

static void key_of(char out[SUPPRESSION_KEY_SIZE], const Stentor__V1__Suppression *entry)
{
    suppression_key(
        out, (Channel)entry->channel, (Category)entry->category, entry->address_hash.data);
}

bool suppression_event(const Stentor__V1__Suppression *entry, Arena *arena, BusOut *ret, Error *err)
{
    Str payload;
    if (!suppression_check(entry, err) || !event_pack(&entry->base, arena, &payload, err)) {
        return false;
    }
    char key[SUPPRESSION_KEY_SIZE];
    key_of(key, entry);
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    subject_config(subject, "suppression", str_from(entry->tenant), str_from(key));
    const char *what = arena_printf(
        arena, "%s/%lld/%lld",
        entry->released_at_us > 0 ? "released"
                                  : suppression_reason_name((SuppressionReason)entry->reason),
        (long long)changed_at(entry), (long long)entry->expires_at_us);
    event_id_derive("suppression", str_from(subject), str_from(what), event_id);
    *ret = (BusOut){.subject = subject, .event_id = str_from(event_id), .payload = payload};
    return true;
}

// ---- reading ----

static bool parse_key(Str key, Channel *ret_channel, Category *ret_category, uint8_t *ret_hash)
{
    Str channel = STR_EMPTY;
    Str category = STR_EMPTY;
    size_t len = 0;
    *ret_category = CATEGORY_NONE;
    return str_split(&key, '.', &channel) && str_split(&key, '.', &category) &&
           channel_from_name(channel, ret_channel) &&
           (str_eq(category, STR("any")) || category_from_name(category, ret_category)) &&
           hex_decode(key, ret_hash, SUPPRESSION_HASH_LEN, &len) && len == SUPPRESSION_HASH_LEN;
}

Stentor__V1__Suppression *suppression_read(
    Str tenant, Str key, Str payload, Arena *arena, Error *err)
{
    Stentor__V1__Suppression *entry = (Stentor__V1__Suppression *)event_unpack(
        &stentor__v1__suppression__descriptor, payload, arena, err);
    if (entry == NULL || !suppression_check(entry, err)) {
        return NULL;
    }
    char own[SUPPRESSION_KEY_SIZE];
    key_of(own, entry);
    if (!str_eq(str_from(entry->tenant), tenant) || !str_eq(str_from(own), key)) {
        (void)error_set(
            err, ERROR_PERMANENT,
            "suppression: the entry names '%.40s.%s', which is another subject", entry->tenant,
            own);
        return NULL;
    }
    return entry;
}

// The message stays, and who writes the next one must say so: hence a release, at no time.
static void remove_entry(Suppressions *index, Str tenant, Str key, const BusMessage *message)
{
    Channel channel = CHANNEL_NONE;
    Category category = CATEGORY_NONE;
    uint8_t hash[SUPPRESSION_HASH_LEN];
    if (!parse_key(key, &channel, &category, hash)) {
        return; // no address's: there is nothing to remove
    }
    SuppressionEntry removal = {.reason = SUPPRESSION_NONE, .sequence = message->sequence};
    suppressions_note(index, tenant, channel, category, hash, &removal);
}

bool suppression_apply(
    Suppressions *index, Str tenant, Str key, const BusMessage *message, Error *err)
{
    if (message->payload.len == 0) {
        remove_entry(index, tenant, key, message);
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__Suppression *entry =
        suppression_read(tenant, key, message->payload, arena, err);
    if (entry != NULL) {
        bool released = entry->released_at_us > 0;
        SuppressionEntry note = {
            .reason = released ? SUPPRESSION_NONE : (SuppressionReason)entry->reason,
            .expires_at_us = entry->expires_at_us,
            .changed_at_us = changed_at(entry),
            .sequence = message->sequence,
            .cause = suppression_cause(entry),
        };
        suppressions_note(
            index, tenant, (Channel)entry->channel, (Category)entry->category,
            entry->address_hash.data, &note);
    }
    arena_free(arena);
    return entry != NULL;
}

void suppression_unreadable(Suppressions *index, Str tenant, Str key, uint64_t sequence)
{
    Channel channel = CHANNEL_NONE;
    Category category = CATEGORY_NONE;
    uint8_t hash[SUPPRESSION_HASH_LEN];
    if (parse_key(key, &channel, &category, hash)) { // else it is no address's
        suppressions_note_unreadable(index, tenant, channel, category, hash, sequence);
    }
}

// ---- showing ----

static void field(Buf *out, const char *name, Str value)
{
    buf_char(out, ',');
    buf_json(out, str_from(name));
    buf_char(out, ':');
    if (value.len == 0) {
        buf_cstr(out, "null");
    } else {
        buf_json(out, value);
    }
}

static void field_time(Buf *out, const char *name, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE] = "";
    if (at_us > 0) {
        clock_format(at_us, text);
    }
    field(out, name, str_from(text));
}

void suppression_json(Buf *out, const Stentor__V1__Suppression *entry)
{
    char hex[2 * SUPPRESSION_HASH_LEN + 1];
    hex_encode(entry->address_hash.data, entry->address_hash.len, hex);
    buf_cstr(out, "{\"id\":");
    buf_json(out, str_from(entry->id));
    field(out, "tenant", str_from(entry->tenant));
    field(out, "channel", str_from(channel_name((Channel)entry->channel)));
    field(out, "category", str_from(category_name((Category)entry->category)));
    field(out, "reason", str_from(suppression_reason_name((SuppressionReason)entry->reason)));
    field(out, "address", str_from(entry->masked_address));
    field(out, "address_hash", str_from(hex));
    field(out, "note", str_from(entry->note));
    field_time(out, "created_at", entry->created_at_us);
    field(out, "created_by", str_from(entry->created_by));
    field_time(out, "expires_at", entry->expires_at_us);
    field_time(out, "released_at", entry->released_at_us);
    field(out, "released_by", str_from(entry->released_by));
    field(out, "source_notification_id", str_from(entry->source_notification_id));
    buf_char(out, '}');
}
