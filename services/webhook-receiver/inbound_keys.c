// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/inbound_keys.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "services/webhook-receiver/secret_reference.h"
#include "stentor/v1/config.pb-c.h"

enum { VENDORS_MAX = 32, ENTRY_NAME_SIZE = 96 };

static const int64_t read_again_us = INT64_C(30) * 1000000;

typedef struct Slot {
    char *name, *reference; // reference NULL: the secret stands in CONFIG
    char *secret;           // NULL: not read yet
    int64_t not_after_us, read_at_us;
} Slot;

struct InboundEntry {
    const VendorCallback *vendor;
    char *tenant;
    Slot slots[INBOUND_KEYS_MAX];
    size_t slot_count;
    char *topics[INBOUND_TOPICS_MAX];
    size_t topic_count;
};

struct InboundKeys {
    Map *entries; // "tenant/vendor" -> InboundEntry
    Arena *none_arena;
    Str none[VENDORS_MAX]; // in the order of vendor_callback_at
};

// ---- entries ----

static void free_entry(void *value)
{
    InboundEntry *entry = value;
    for (size_t i = 0; i < entry->slot_count; i++) {
        free(entry->slots[i].name);
        free(entry->slots[i].reference);
        free(entry->slots[i].secret);
    }
    for (size_t i = 0; i < entry->topic_count; i++) {
        free(entry->topics[i]);
    }
    free(entry->tenant);
    free(entry);
}

InboundKeys *inbound_keys_new(void)
{
    InboundKeys *keys = xcalloc(1, sizeof *keys);
    keys->entries = map_new(free_entry);
    keys->none_arena = arena_new(0);
    for (size_t i = 0; vendor_callback_at(i) != NULL && i < VENDORS_MAX; i++) {
        keys->none[i] = vendor_callback_at(i)->key_none(keys->none_arena);
    }
    return keys;
}

void inbound_keys_free(InboundKeys *keys)
{
    if (keys == NULL) {
        return;
    }
    map_free(keys->entries);
    arena_free(keys->none_arena);
    free(keys);
}

CallbackKey inbound_keys_none(const InboundKeys *keys, const VendorCallback *vendor)
{
    size_t at = 0;
    while (vendor_callback_at(at) != vendor) {
        at++;
    }
    return (CallbackKey){STR("none"), keys->none[at]};
}

static Str entry_name(char out[ENTRY_NAME_SIZE], Str tenant, Str vendor)
{
    int len = snprintf(
        out, ENTRY_NAME_SIZE, STR_FMT "/" STR_FMT, STR_ARG(str_slice(tenant, 0, 40)),
        STR_ARG(str_slice(vendor, 0, 40)));
    return str_of(out, (size_t)len);
}

// ---- out of CONFIG ----

static void add_slot(
    InboundEntry *entry, const char *name, const char *reference, int64_t not_after)
{
    if (entry->slot_count < INBOUND_KEYS_MAX) {
        entry->slots[entry->slot_count++] = (Slot){
            .name = xstrdup(name), .reference = xstrdup(reference), .not_after_us = not_after};
    }
}

static void take_topics(InboundEntry *entry, const Stentor__V1__InboundKey *event)
{
    for (size_t i = 0; i < event->n_settings; i++) {
        const Stentor__V1__VendorSetting *setting = event->settings[i];
        if (str_eq(str_from(setting->name), STR("topic_arn")) &&
            entry->topic_count < INBOUND_TOPICS_MAX) {
            entry->topics[entry->topic_count++] = xstrdup(setting->value);
        }
    }
}

static InboundEntry *make_entry(
    const VendorCallback *vendor, Str tenant, const Stentor__V1__InboundKey *event, Error *err)
{
    Str public_key = str_from(event->public_key);
    if (public_key.len > 0 && !vendor->key_check(public_key, err)) {
        return NULL;
    }
    InboundEntry *entry = xcalloc(1, sizeof *entry);
    entry->vendor = vendor;
    entry->tenant = xmalloc(tenant.len + 1);
    (void)str_to_c(tenant, entry->tenant, tenant.len + 1);
    if (public_key.len > 0) {
        entry->slots[entry->slot_count++] =
            (Slot){.name = xstrdup("public_key"), .secret = xstrdup(event->public_key)};
    }
    for (size_t i = 0; i < event->n_secrets; i++) {
        const Stentor__V1__InboundSecret *secret = event->secrets[i];
        add_slot(entry, secret->name, secret->reference, secret->not_after_us);
    }
    take_topics(entry, event);
    return entry;
}

static bool put_entry(
    InboundKeys *keys, const VendorCallback *vendor, Str tenant,
    const Stentor__V1__InboundKey *event, Error *err)
{
    char name[ENTRY_NAME_SIZE];
    Str key = entry_name(name, tenant, str_from(vendor->name));
    if (!id_is_tenant(tenant) || !str_eq(tenant, str_from(event->tenant)) ||
        !str_eq(str_from(vendor->name), str_from(event->vendor))) {
        return error_set(
            err, ERROR_PERMANENT, "the inbound key's tenant or vendor is not the subject's");
    }
    if (event->revoked) {
        (void)map_remove(keys->entries, key);
        return true;
    }
    InboundEntry *entry = make_entry(vendor, tenant, event, err);
    if (entry == NULL) {
        return false;
    }
    map_put(keys->entries, key, entry);
    return true;
}

bool inbound_keys_changed(InboundKeys *keys, Str tenant, Str vendor, Str payload, Error *err)
{
    const VendorCallback *known = vendor_callback_find(vendor);
    if (known == NULL) {
        return true; // a vendor that this version does not know
    }
    if (payload.len == 0) {
        char name[ENTRY_NAME_SIZE];
        (void)map_remove(keys->entries, entry_name(name, tenant, vendor));
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__InboundKey *event = (const Stentor__V1__InboundKey *)event_unpack(
        &stentor__v1__inbound_key__descriptor, payload, arena, err);
    bool ok = event != NULL && put_entry(keys, known, tenant, event, err);
    arena_free(arena);
    return ok;
}

// ---- asked for ----

InboundEntry *inbound_keys_find(const InboundKeys *keys, Str tenant, const VendorCallback *vendor)
{
    char name[ENTRY_NAME_SIZE];
    return map_get(keys->entries, entry_name(name, tenant, str_from(vendor->name)));
}

static void read_slot(const InboundEntry *entry, Slot *slot, int64_t now_us)
{
    Arena *arena = arena_new(0);
    Str secret = STR_EMPTY;
    Error err = {0};
    slot->read_at_us = now_us;
    if (secret_reference_read(str_from(slot->reference), arena, &secret, &err) &&
        entry->vendor->key_check(secret, &err)) {
        free(slot->secret);
        slot->secret = xmalloc(secret.len + 1);
        (void)str_to_c(secret, slot->secret, secret.len + 1);
    } else {
        LOG(LOG_WARN, "a key of a vendor's callbacks cannot be read; what was read before counts",
            log_text("tenant", entry->tenant), log_text("vendor", entry->vendor->name),
            log_text("key", slot->name), log_error(&err));
    }
    arena_free(arena);
}

size_t inbound_keys_in_force(InboundEntry *entry, int64_t now_us, CallbackKey ret[INBOUND_KEYS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < entry->slot_count; i++) {
        Slot *slot = &entry->slots[i];
        if (slot->not_after_us > 0 && slot->not_after_us <= now_us) {
            continue;
        }
        if (slot->reference != NULL &&
            (slot->read_at_us == 0 || now_us - slot->read_at_us > read_again_us)) {
            read_slot(entry, slot, now_us);
        }
        if (slot->secret != NULL) {
            ret[count++] = (CallbackKey){str_from(slot->name), str_from(slot->secret)};
        }
    }
    return count;
}

bool inbound_keys_has_topic(const InboundEntry *entry, Str topic)
{
    for (size_t i = 0; i < entry->topic_count; i++) {
        if (str_eq(str_from(entry->topics[i]), topic)) {
            return true;
        }
    }
    return false;
}
