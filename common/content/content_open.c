// SPDX-License-Identifier: Apache-2.0
#include "common/content/content_open.h"

#include "common/codec/body.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/kinds.h"
#include "common/events/sealed.h"
#include "common/model/template_key.h"
#include "common/session/config_get.h"
#include "stentor/v1/config.pb-c.h"

// ---- what it was compressed against ----

// channel NONE: where releases before 2026-11-23 stored it.
static const Stentor__V1__TemplateVersion *fetch_version(
    ContentSession *s, const char *tenant, const Stentor__V1__Rendered *event, Channel channel,
    Error *err)
{
    char key[TEMPLATE_KEY_SIZE];
    Str payload = STR_EMPTY;
    uint64_t ignored = 0;
    Str whole = template_key_write(
        key, str_from(event->template_), channel, str_from(event->template_version));
    if (whole.len == 0) {
        error_set(err, ERROR_PERMANENT, "its template's name is too long");
        return NULL;
    }
    const char *subject = arena_printf(s->arena, "cfg.template.%s.%s", tenant, key);
    if (!config_get(&s->session, s->arena, subject, &payload, &ignored, err) || payload.len == 0) {
        return NULL;
    }
    return (const void *)event_unpack(
        &stentor__v1__template_version__descriptor, payload, s->arena, err);
}

// NULL without an error: that tenant has not the version it was made of.
static BodyPrefix *prefix_of(
    ContentSession *s, const char *tenant, const Stentor__V1__Rendered *event, Channel channel,
    Error *err)
{
    const Stentor__V1__TemplateVersion *version = fetch_version(s, tenant, event, channel, err);
    BodyPrefix *prefix = version != NULL ? body_prefix_new(version) : NULL;
    if (prefix != NULL && body_prefix_id(prefix) != event->content_prefix_id) {
        body_prefix_free(prefix);
        return NULL;
    }
    return prefix;
}

// *ret NULL: it needs none.
static bool find_prefix(
    ContentSession *s, const Stentor__V1__Rendered *event, BodyPrefix **ret, Error *err)
{
    Error failed = {0};
    *ret = NULL;
    if (event->content_prefix_id == 0) {
        return true;
    }
    const char *const tenants[] = {event->meta->tenant, "platform"};
    const Channel channels[] = {(Channel)event->channel, CHANNEL_NONE};
    for (size_t i = 0; i < 4 && *ret == NULL && failed.kind == ERROR_NONE; i++) {
        *ret = prefix_of(s, tenants[i / 2], event, channels[i % 2], &failed);
    }
    if (*ret == NULL && failed.kind != ERROR_NONE) {
        *err = failed;
        return false;
    }
    return *ret != NULL ||
           error_set(
               err, ERROR_PERMANENT,
               "version '%s' of template '%s', which its content is made of, is not in CONFIG",
               event->template_version, event->template_);
}

// ---- opening ----

static bool open_field(
    ContentSession *s, const Stentor__V1__Rendered *event, const char *field,
    const Stentor__V1__Sealed *sealed, DataKey *key, Str *ret, Error *err)
{
    Str tenant = str_from(event->meta->tenant);
    Str id = str_from(event->meta->notification_id);
    return unseal(key, tenant, id, field, sealed, s->arena, ret, err) ||
           error_wrap(err, "'%s'", field);
}

static bool unpack(
    ContentSession *s, const Stentor__V1__Rendered *event, Str frame, Str *ret, Error *err)
{
    BodyPrefix *prefix;
    uint8_t checksum[SHA256_LEN];
    if (!find_prefix(s, event, &prefix, err)) {
        return false;
    }
    bool ok = body_unpack(prefix, frame, s->arena, ret, err);
    body_prefix_free(prefix);
    if (!ok) {
        return false;
    }
    sha256(*ret, checksum);
    return str_eq(str_of(checksum, sizeof checksum), pb_bytes(event->content_checksum)) ||
           error_set(err, ERROR_PERMANENT, "'content' does not match 'content_checksum'");
}

static const Stentor__V1__Address *open_address(
    ContentSession *s, const Stentor__V1__Rendered *event, DataKey *key)
{
    Error ignored;
    Str packed;
    if (key == NULL || !open_field(s, event, "address", event->address, key, &packed, &ignored)) {
        return NULL;
    }
    return (const void *)event_unpack(
        &stentor__v1__address__descriptor, packed, s->arena, &ignored);
}

bool content_open(
    ContentSession *s, const Stentor__V1__Rendered *event, ContentOpened *ret, Error *err)
{
    const ProtobufCMessageDescriptor *type = event_type_of_content((Channel)event->channel);
    Str tenant = str_from(event->meta->tenant);
    if (type == NULL) {
        return error_set(err, ERROR_PERMANENT, "its channel has no content");
    }
    if (!sealed_check(event->content, "content", err) ||
        !sealed_check(event->address, "address", err)) {
        return false;
    }
    KeyWant wants[] = {key_want_of(tenant, event->content), key_want_of(tenant, event->address)};
    if (!content_keys(s, wants, 2, err)) {
        return false;
    }
    if (wants[0].key == NULL) {
        return error_set(
            err, ERROR_PERMANENT,
            "its recipient was erased or is restricted: it stays sealed (HINT: --kept opens what "
            "a legal duty keeps)");
    }
    Str frame, packed;
    if (!open_field(s, event, "content", event->content, wants[0].key, &frame, err)) {
        return false;
    }
    ret->address = open_address(s, event, wants[1].key); // the keys last until the loop turns
    if (!unpack(s, event, frame, &packed, err)) {
        return false;
    }
    ret->content = event_unpack(type, packed, s->arena, err);
    return ret->content != NULL;
}
