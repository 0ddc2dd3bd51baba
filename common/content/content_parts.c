// SPDX-License-Identifier: Apache-2.0
#include "common/content/content_parts.h"

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/kinds.h"
#include "common/events/sealed.h"

bool content_parts_wants(const Stentor__V1__Rendered *event, KeyWant ret[2], Error *err)
{
    Str tenant = str_from(event->meta->tenant);
    if (event_type_of_content((Channel)event->channel) == NULL) {
        return error_set(err, ERROR_PERMANENT, "its channel has no content");
    }
    if (!sealed_check(event->content, "content", err) ||
        !sealed_check(event->address, "address", err)) {
        return false;
    }
    ret[0] = key_want_of(tenant, event->content);
    ret[1] = key_want_of(tenant, event->address);
    return true;
}

BodyPrefix *content_parts_prefix(
    const Stentor__V1__Rendered *event, const Stentor__V1__TemplateVersion *version)
{
    BodyPrefix *prefix = body_prefix_new(version);
    if (body_prefix_id(prefix) != event->content_prefix_id) {
        body_prefix_free(prefix);
        return NULL;
    }
    return prefix;
}

static bool open_field(
    const Stentor__V1__Rendered *event, const char *field, const Stentor__V1__Sealed *sealed,
    DataKey *key, Arena *arena, Str *ret, Error *err)
{
    Str tenant = str_from(event->meta->tenant);
    Str id = str_from(event->meta->notification_id);
    return unseal(key, tenant, id, field, sealed, arena, ret, err) ||
           error_wrap(err, "'%s'", field);
}

static const Stentor__V1__Address *open_address(const ContentParts *parts, Arena *arena)
{
    Error ignored;
    Str packed;
    if (parts->address_key == NULL || !open_field(
                                          parts->event, "address", parts->event->address,
                                          parts->address_key, arena, &packed, &ignored)) {
        return NULL;
    }
    return (const void *)event_unpack(&stentor__v1__address__descriptor, packed, arena, &ignored);
}

bool content_parts_open(const ContentParts *parts, Arena *arena, ContentOpened *ret, Error *err)
{
    const Stentor__V1__Rendered *event = parts->event;
    uint8_t checksum[SHA256_LEN];
    Str frame, packed;
    if (!open_field(event, "content", event->content, parts->content_key, arena, &frame, err)) {
        return false;
    }
    ret->address = open_address(parts, arena);
    if (!body_unpack(parts->prefix, frame, arena, &packed, err)) {
        return false;
    }
    sha256(packed, checksum);
    if (!str_eq(str_of(checksum, sizeof checksum), pb_bytes(event->content_checksum))) {
        return error_set(err, ERROR_PERMANENT, "'content' does not match 'content_checksum'");
    }
    ret->content = event_unpack(event_type_of_content((Channel)event->channel), packed, arena, err);
    return ret->content != NULL;
}
