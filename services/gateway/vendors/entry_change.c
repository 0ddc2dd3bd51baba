// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/vendors/entry_change.h"

static bool take(ConfigChange *change, Str payload, uint64_t sequence)
{
    VendorsApi *vendors = change->call->ctx;
    BusMessage message = {.payload = payload, .sequence = sequence};
    vendors_api_changed(
        vendors, str_from(change->kind), str_from(change->call->tenant), change->key, &message);
    return true;
}

ConfigChange *entry_change_new(ApiCall *call, size_t size, const char *kind, Str key)
{
    const VendorsApi *vendors = call->ctx;
    ConfigChange *change = config_change_new(call, size, vendors->bus, kind, key);
    change->conflict_slug = "entry-changed";
    change->conflict_title = "Another call changed it at this moment; read it and try again";
    change->take = take;
    return change;
}

void entry_fail(ApiBody *body, const Error *err)
{
    Str text = str_from(err->text);
    Str field;
    if (str_split(&text, ':', &field)) {
        (void)api_body_fail(body, arena_cstr(body->arena, field), "%s", str_trim(text).ptr);
    }
}
