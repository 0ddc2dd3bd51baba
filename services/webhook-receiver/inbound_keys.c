// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/inbound_keys.h"

#include <stdlib.h>

#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "stentor/v1/config.pb-c.h"

#define SENDGRID STR("sendgrid")

struct InboundKeys {
    Map *sendgrid; // tenant -> SendgridKey
    SendgridKey *none;
};

static void free_key(void *value)
{
    sendgrid_key_free(value);
}

InboundKeys *inbound_keys_new(void)
{
    InboundKeys *keys = xcalloc(1, sizeof *keys);
    keys->sendgrid = map_new(free_key);
    keys->none = sendgrid_key_random();
    return keys;
}

void inbound_keys_free(InboundKeys *keys)
{
    if (keys == NULL) {
        return;
    }
    map_free(keys->sendgrid);
    sendgrid_key_free(keys->none);
    free(keys);
}

static bool put_key(InboundKeys *keys, Str tenant, const Stentor__V1__InboundKey *event, Error *err)
{
    if (!id_is_tenant(tenant) || !str_eq(tenant, str_from(event->tenant)) ||
        !str_eq(SENDGRID, str_from(event->vendor))) {
        return error_set(
            err, ERROR_PERMANENT, "the inbound key's tenant or vendor is not the subject's");
    }
    if (event->revoked) {
        (void)map_remove(keys->sendgrid, tenant);
        return true;
    }
    SendgridKey *key = sendgrid_key_new(str_from(event->public_key), err);
    if (key == NULL) {
        return false;
    }
    map_put(keys->sendgrid, tenant, key);
    return true;
}

bool inbound_keys_changed(InboundKeys *keys, Str tenant, Str vendor, Str payload, Error *err)
{
    if (!str_eq(vendor, SENDGRID)) {
        return true; // a vendor that this version does not know
    }
    if (payload.len == 0) {
        (void)map_remove(keys->sendgrid, tenant);
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__InboundKey *event = (const Stentor__V1__InboundKey *)event_unpack(
        &stentor__v1__inbound_key__descriptor, payload, arena, err);
    bool ok = event != NULL && put_key(keys, tenant, event, err);
    arena_free(arena);
    return ok;
}

const SendgridKey *inbound_keys_sendgrid(const InboundKeys *keys, Str tenant)
{
    return map_get(keys->sendgrid, tenant);
}

const SendgridKey *inbound_keys_none(const InboundKeys *keys)
{
    return keys->none;
}
