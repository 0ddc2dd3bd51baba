// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/inbound_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/vendor/generic/definition.h"
#include "stentor/v1/config.pb-c.h"

enum { VENDORS_MAX = 32, ENTRY_NAME_SIZE = 96, KEY_NAME_SIZE = 168, WARNED_MAX = 5 };

typedef struct Slot {
    char *name;
    char *text; // the key itself, when it stands in CONFIG; NULL: a secret of that name
    int64_t not_after_us;
} Slot;

struct InboundEntry {
    const VendorCallback *vendor;
    char *tenant, *name; // of the vendor
    Slot slots[INBOUND_KEYS_MAX];
    size_t slot_count;
    char *listed[INBOUND_LISTED_MAX]; // topics of SNS, or the tenant's own numbers at the vendor
    size_t listed_count;
};

struct InboundKeys {
    Secrets *secrets;
    Map *entries; // "tenant/vendor" -> InboundEntry
    Map *wrong;   // "tenant/vendor/key" -> why what was read is no key
    Arena *none_arena;
    Str none[VENDORS_MAX]; // in the order of vendor_callback_at
    Str none_defined;      // of vendors by definition
};

// ---- entries ----

static void free_entry(void *value)
{
    InboundEntry *entry = value;
    for (size_t i = 0; i < entry->slot_count; i++) {
        free(entry->slots[i].name);
        free(entry->slots[i].text);
    }
    for (size_t i = 0; i < entry->listed_count; i++) {
        free(entry->listed[i]);
    }
    free(entry->tenant);
    free(entry->name);
    free(entry);
}

InboundKeys *inbound_keys_new(Secrets *secrets)
{
    InboundKeys *keys = xcalloc(1, sizeof *keys);
    keys->secrets = secrets;
    keys->entries = map_new(free_entry);
    keys->wrong = map_new(free);
    keys->none_arena = arena_new(0);
    for (size_t i = 0; vendor_callback_at(i) != NULL && i < VENDORS_MAX; i++) {
        keys->none[i] = vendor_callback_at(i)->key_none(keys->none_arena);
    }
    keys->none_defined = definition_callback(CHANNEL_SMS)->key_none(keys->none_arena);
    return keys;
}

void inbound_keys_free(InboundKeys *keys)
{
    if (keys == NULL) {
        return;
    }
    map_free(keys->entries);
    map_free(keys->wrong);
    arena_free(keys->none_arena);
    free(keys);
}

CallbackKey inbound_keys_none(const InboundKeys *keys, const VendorCallback *vendor)
{
    size_t at = 0;
    if (vendor->by_definition) {
        return (CallbackKey){STR("none"), keys->none_defined};
    }
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

static Str key_name(char out[KEY_NAME_SIZE], const SecretName *name)
{
    int len = snprintf(
        out, KEY_NAME_SIZE, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(str_slice(name->owner, 0, 40)),
        STR_ARG(str_slice(name->vendor, 0, 40)), STR_ARG(str_slice(name->name, 0, 64)));
    return str_of(out, (size_t)len);
}

// ---- what was read ----

void inbound_keys_read(InboundKeys *keys, const SecretName *name, Str text)
{
    char out[KEY_NAME_SIZE];
    Error err = {0};
    const VendorCallback *vendor = vendor_callback_find(name->vendor);
    if (vendor == NULL || vendor->key_check(text, &err)) {
        (void)map_remove(keys->wrong, key_name(out, name));
        return;
    }
    map_put(keys->wrong, key_name(out, name), xstrdup(err.text));
    LOG(LOG_ERROR, "what was read is no key of the vendor's: its callbacks are answered 503",
        log_str("tenant", name->owner), log_str("vendor", name->vendor), log_str("key", name->name),
        log_error(&err));
}

void inbound_keys_warn(const InboundKeys *keys, Buf *warning)
{
    size_t cursor = 0, said = 0;
    Str name;
    void *why = NULL;
    while (said < WARNED_MAX && map_next(keys->wrong, &cursor, &name, &why)) {
        (void)buf_printf(
            warning, "%skey of callbacks " STR_FMT ": %s", said++ > 0 ? "; " : "", STR_ARG(name),
            (const char *)why);
    }
    if (map_count(keys->wrong) > said) {
        (void)buf_printf(warning, "; and %zu more", map_count(keys->wrong) - said);
    }
}

// ---- out of CONFIG ----

static SecretName secret_name(const InboundEntry *entry, const char *name)
{
    return (SecretName){str_from(entry->tenant), str_from(entry->name), str_from(name)};
}

static void want_secret(
    InboundKeys *keys, InboundEntry *entry, const Stentor__V1__InboundSecret *secret)
{
    Error err = {0};
    SecretName name = secret_name(entry, secret->name);
    if (entry->slot_count == INBOUND_KEYS_MAX) {
        return;
    }
    entry->slots[entry->slot_count++] =
        (Slot){.name = xstrdup(secret->name), .not_after_us = secret->not_after_us};
    if (!secrets_want(keys->secrets, &name, str_from(secret->reference), &err)) {
        LOG(LOG_WARN, "a key of a vendor's callbacks is none", log_text("tenant", entry->tenant),
            log_text("vendor", entry->name), log_text("key", secret->name), log_error(&err));
    }
}

static bool has_slot(const InboundEntry *entry, const char *name)
{
    for (size_t i = 0; entry != NULL && i < entry->slot_count; i++) {
        if (strcmp(entry->slots[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

// The secrets of the entry that is there, but for those that the next one has as well: these stay
// read without a gap. next NULL: there is none.
static void forget_secrets(InboundKeys *keys, Str key, const InboundEntry *next)
{
    const InboundEntry *entry = map_get(keys->entries, key);
    for (size_t i = 0; entry != NULL && i < entry->slot_count; i++) {
        SecretName name = secret_name(entry, entry->slots[i].name);
        if (entry->slots[i].text == NULL && !has_slot(next, entry->slots[i].name)) {
            char out[KEY_NAME_SIZE];
            secrets_forget(keys->secrets, &name);
            (void)map_remove(keys->wrong, key_name(out, &name));
        }
    }
}

static void take_listed(InboundEntry *entry, const Stentor__V1__InboundKey *event)
{
    for (size_t i = 0; i < event->n_settings; i++) {
        const Stentor__V1__VendorSetting *setting = event->settings[i];
        const char *name = entry->vendor->account_setting;
        if (str_eq(str_from(setting->name), name != NULL ? str_from(name) : STR("topic_arn")) &&
            entry->listed_count < INBOUND_LISTED_MAX) {
            entry->listed[entry->listed_count++] = xstrdup(setting->value);
        }
    }
}

static InboundEntry *make_entry(
    InboundKeys *keys, const VendorCallback *vendor, Str tenant,
    const Stentor__V1__InboundKey *event, Error *err)
{
    Str public_key = str_from(event->public_key);
    if (public_key.len > 0 && !vendor->key_check(public_key, err)) {
        return NULL;
    }
    InboundEntry *entry = xcalloc(1, sizeof *entry);
    entry->vendor = vendor;
    entry->name = xstrdup(event->vendor);
    entry->tenant = xmalloc(tenant.len + 1);
    (void)str_to_c(tenant, entry->tenant, tenant.len + 1);
    if (public_key.len > 0) {
        entry->slots[entry->slot_count++] =
            (Slot){.name = xstrdup("public_key"), .text = xstrdup(event->public_key)};
    }
    for (size_t i = 0; i < event->n_secrets; i++) {
        want_secret(keys, entry, event->secrets[i]);
    }
    take_listed(entry, event);
    return entry;
}

static void remove_entry(InboundKeys *keys, Str key)
{
    forget_secrets(keys, key, NULL);
    (void)map_remove(keys->entries, key);
}

static bool put_entry(
    InboundKeys *keys, Str vendor, Str tenant, const Stentor__V1__InboundKey *event, Error *err)
{
    char name[ENTRY_NAME_SIZE];
    Str key = entry_name(name, tenant, vendor);
    if (!id_is_tenant(tenant) || !str_eq(tenant, str_from(event->tenant)) ||
        !str_eq(vendor, str_from(event->vendor))) {
        return error_set(
            err, ERROR_PERMANENT, "the inbound key's tenant or vendor is not the subject's");
    }
    if (event->revoked) {
        remove_entry(keys, key);
        return true;
    }
    InboundEntry *entry = make_entry(keys, vendor_callback_find(vendor), tenant, event, err);
    if (entry == NULL) {
        return false;
    }
    forget_secrets(keys, key, entry);
    map_put(keys->entries, key, entry);
    return true;
}

bool inbound_keys_changed(InboundKeys *keys, Str tenant, Str vendor, Str payload, Error *err)
{
    if (vendor_callback_find(vendor) == NULL) {
        return true; // a vendor that this version does not know
    }
    if (payload.len == 0) {
        char name[ENTRY_NAME_SIZE];
        remove_entry(keys, entry_name(name, tenant, vendor));
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__InboundKey *event = (const Stentor__V1__InboundKey *)event_unpack(
        &stentor__v1__inbound_key__descriptor, payload, arena, err);
    bool ok = event != NULL && put_entry(keys, vendor, tenant, event, err);
    arena_free(arena);
    return ok;
}

// ---- asked for ----

const InboundEntry *inbound_keys_find(const InboundKeys *keys, Str tenant, Str vendor)
{
    char name[ENTRY_NAME_SIZE];
    return map_get(keys->entries, entry_name(name, tenant, vendor));
}

// false: it is not there.
static bool read_slot(
    const InboundKeys *keys, const InboundEntry *entry, const Slot *slot, CallbackKey *ret)
{
    SecretName name = secret_name(entry, slot->name);
    ret->name = str_from(slot->name);
    if (slot->text != NULL) {
        ret->secret = str_from(slot->text);
        return true;
    }
    return secrets_use(keys->secrets, &name, &ret->secret, NULL) &&
           entry->vendor->key_check(ret->secret, NULL);
}

void inbound_keys_in_force(
    const InboundKeys *keys, const InboundEntry *entry, int64_t now_us, InboundForce *ret)
{
    *ret = (InboundForce){.count = 0};
    for (size_t i = 0; i < entry->slot_count; i++) {
        const Slot *slot = &entry->slots[i];
        if (slot->not_after_us > 0 && slot->not_after_us <= now_us) {
            continue;
        }
        if (read_slot(keys, entry, slot, &ret->keys[ret->count])) {
            ret->count++;
        } else {
            ret->missing++;
        }
    }
}

bool inbound_keys_lists(const InboundEntry *entry, Str value)
{
    for (size_t i = 0; i < entry->listed_count; i++) {
        if (str_eq(str_from(entry->listed[i]), value)) {
            return true;
        }
    }
    return false;
}
