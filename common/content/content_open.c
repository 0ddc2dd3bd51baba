// SPDX-License-Identifier: Apache-2.0
#include "common/content/content_open.h"

#include "common/codec/event.h"
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
    return version != NULL ? content_parts_prefix(event, version) : NULL;
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

bool content_open(
    ContentSession *s, const Stentor__V1__Rendered *event, ContentOpened *ret, Error *err)
{
    KeyWant wants[2];
    BodyPrefix *prefix = NULL;
    // The keys last until the loop turns, which asking CONFIG lets it do: they come last.
    if (!content_parts_wants(event, wants, err) || !find_prefix(s, event, &prefix, err)) {
        return false;
    }
    bool ok = content_keys(s, wants, 2, err);
    if (ok && wants[0].key == NULL) {
        ok = error_set(
            err, ERROR_PERMANENT,
            "its recipient was erased or is restricted: it stays sealed (HINT: --kept opens what "
            "a legal duty keeps)");
    }
    const ContentParts parts = {event, wants[0].key, wants[1].key, prefix};
    ok = ok && content_parts_open(&parts, s->arena, ret, err);
    body_prefix_free(prefix);
    return ok;
}
