// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "common/base/clock.h"
#include "common/model/template_key.h"
#include "common/request/catalog_internal.h"
#include "common/request/request_mail.h"

static const Version *choose(const TemplateEntry *entry, Channel channel, Str wanted)
{
    if (wanted.len == 0) {
        return entry->latest[channel];
    }
    const Version *version = catalog_entry_version(entry, channel, wanted);
    bool usable =
        version != NULL && version->status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    return usable ? version : NULL;
}

static const Version *choose_draft(const TemplateEntry *entry, Channel channel, Str wanted)
{
    const Version *version = catalog_entry_version(entry, channel, wanted);
    bool is_draft =
        version != NULL && version->status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT;
    return is_draft ? version : NULL;
}

// As the renderer looks for it: a draft of the tenant's stands behind all that may be sent.
static const Version *look_up(const Catalog *catalog, Str tenant, const Request *request)
{
    const TemplateEntry *own = catalog_entry(catalog, tenant, request->template_key);
    const TemplateEntry *shared = catalog_entry(catalog, PLATFORM, request->template_key);
    Channel channel = template_channel((int)request->channel);
    const Version *version = own == NULL ? NULL : choose(own, channel, request->template_version);
    if (version == NULL && shared != NULL) {
        version = choose(shared, channel, request->template_version);
    }
    if (version == NULL && own != NULL && request->is_test) {
        version = choose_draft(own, channel, request->template_version);
    }
    return version;
}

static bool refuse(
    const Catalog *catalog, Str tenant, const Request *request, Arena *arena, FieldError *err)
{
    Str key = request->template_key;
    Channel channel = template_channel((int)request->channel);
    ChannelSet channels =
        catalog_channels(catalog, tenant, key) | catalog_channels(catalog, PLATFORM, key);
    const char *field = "template";
    const char *text = NULL;
    if (channels == 0) {
        text = arena_printf(arena, "unknown template '" STR_FMT "'", STR_ARG(key));
    } else if (!channel_set_has(channels, channel)) {
        char names[CHANNEL_SET_TEXT_SIZE];
        channel_set_text(channels, names);
        text = arena_printf(
            arena, "template '" STR_FMT "' is not for channel '%s'; it is for %s", STR_ARG(key),
            channel_name(channel), names);
    } else if (request->template_version.len > 0) {
        field = "template_version";
        text = arena_printf(
            arena, "template '" STR_FMT "' has no usable version '" STR_FMT "' for %s",
            STR_ARG(key), STR_ARG(request->template_version), channel_name(channel));
    } else {
        text = arena_printf(
            arena, "template '" STR_FMT "' has no active version for %s", STR_ARG(key),
            channel_name(channel));
    }
    return field_error(err, field, "%s", text);
}

bool catalog_freeze(
    const Catalog *catalog, Str tenant, Request *request, Arena *arena, FieldError *err)
{
    const Version *version = look_up(catalog, tenant, request);
    if (version == NULL) {
        return refuse(catalog, tenant, request, arena, err);
    }
    request->template_version = arena_str(arena, str_from(version->text));
    if (request->category == CATEGORY_NONE) {
        request->category =
            version->category == CATEGORY_NONE ? CATEGORY_TRANSACTIONAL : version->category;
    }
    if (request->priority_unsaid || request->priority == PRIORITY_NONE) {
        request->priority =
            version->priority == PRIORITY_NONE ? PRIORITY_NORMAL : version->priority;
    }
    // Nothing must be proved by a test, whatever the tenant keeps of its category: so its id is
    // known before it is accepted.
    request->retention = request->is_test ? RETENTION_STANDARD
                                          : catalog_retention(catalog, tenant, request->category);
    return request_mail_may_copy(request->mail, request->category, err);
}

VariableRules *catalog_rules(const Catalog *catalog, Str tenant, const Request *frozen)
{
    const Version *version = look_up(catalog, tenant, frozen);
    return version == NULL ? NULL : version->rules;
}

// The highest active version that says so; NULL: none does.
static const Version *successor_of(
    const Catalog *catalog, Str tenant, const Request *frozen, const Version *version)
{
    const Str tenants[] = {tenant, PLATFORM};
    const Version *found = NULL;
    for (size_t t = 0; t < 2 && found == NULL; t++) {
        const TemplateEntry *entry = catalog_entry(catalog, tenants[t], frozen->template_key);
        for (size_t i = 0; entry != NULL && i < entry->count; i++) {
            const Version *v = &entry->versions[i];
            bool is_one = v->status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE &&
                          !v->hidden && v->channel == version->channel &&
                          strcmp(catalog_supersedes(v), version->text) == 0;
            if (is_one &&
                (found == NULL || semver_compare(str_from(v->text), str_from(found->text)) > 0)) {
                found = v;
            }
        }
    }
    return found;
}

const char *catalog_deprecated(
    const Catalog *catalog, Str tenant, const Request *frozen, Arena *arena)
{
    const Version *version = look_up(catalog, tenant, frozen);
    if (version == NULL || version->deprecated_at_us == 0) {
        return NULL;
    }
    char at[CLOCK_RFC3339_SIZE];
    clock_format(version->deprecated_at_us, at);
    const Version *next = successor_of(catalog, tenant, frozen, version);
    return arena_printf(
        arena, "template '" STR_FMT "' version %s for %s is deprecated from %s on%s%s",
        STR_ARG(frozen->template_key), version->text, channel_name(version->channel), at,
        next != NULL ? "; it is superseded by version " : "", next != NULL ? next->text : "");
}

const char *catalog_required(const Catalog *catalog, Str tenant, const Request *frozen)
{
    const Version *version = look_up(catalog, tenant, frozen);
    return version == NULL ? NULL : version->required;
}

bool catalog_digest(
    const Catalog *catalog, Str tenant, const Request *request, Arena *arena, DigestTarget *ret)
{
    char *own = arena_printf(arena, "digest-%s", category_name(request->category));
    const Str keys[] = {str_from(own), STR("digest")};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        Request digest = {.template_key = keys[i], .channel = request->channel};
        const Version *version = look_up(catalog, tenant, &digest);
        if (version != NULL) {
            *ret = (DigestTarget){keys[i], arena_str(arena, str_from(version->text))};
            return true;
        }
    }
    return false;
}
