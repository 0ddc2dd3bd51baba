// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/directory.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/bus/events/suppression_event.h"
#include "common/codec/event.h"
#include "common/config/channel_health.h"
#include "common/model/sender_domain.h"
#include "common/model/template_key.h"

enum { KEY_MAX = 256 };

typedef struct Sender {
    char *name;
    char *address;
    char **domains;
    size_t domain_count;
    bool suspended;
} Sender;

typedef struct Version {
    char *packed;
    size_t packed_len;
    BodyPrefix *prefix; // NULL: not made, or dropped
    uint64_t used_at;   // in calls of directory_prefix()
} Version;

struct Directory {
    Map *senders;  // tenant -> Sender
    Map *versions; // "tenant/template.email.1_0_0" -> Version
    Map *channels; // "email_smtp" -> ChannelState
    Suppressions *suppressions;
    SendDomains *send_domains;
    size_t prefixes;
    uint64_t calls;
    Arena *scratch;
};

static void free_sender(void *value)
{
    Sender *sender = value;
    free(sender->name);
    free(sender->address);
    for (size_t i = 0; i < sender->domain_count; i++) {
        free(sender->domains[i]);
    }
    free((void *)sender->domains);
    free(sender);
}

static void free_version(void *value)
{
    Version *version = value;
    body_prefix_free(version->prefix);
    free(version->packed);
    free(version);
}

Directory *directory_new(Secrets *secrets)
{
    Directory *directory = xcalloc(1, sizeof *directory);
    directory->senders = map_new(free_sender);
    directory->versions = map_new(free_version);
    directory->channels = map_new(free);
    directory->suppressions = suppressions_new();
    directory->send_domains = send_domains_new(secrets);
    directory->scratch = arena_new(0);
    return directory;
}

void directory_free(Directory *directory)
{
    if (directory != NULL) {
        map_free(directory->senders);
        map_free(directory->versions);
        map_free(directory->channels);
        suppressions_free(directory->suppressions);
        send_domains_free(directory->send_domains);
        arena_free(directory->scratch);
        free(directory);
    }
}

static bool put_sender(Directory *directory, Str tenant, Str payload, Error *err)
{
    const Stentor__V1__Tenant *entry = (const void *)event_unpack(
        &stentor__v1__tenant__descriptor, payload, directory->scratch, err);
    if (entry == NULL) {
        return false;
    }
    Sender *sender = xcalloc(1, sizeof *sender);
    sender->name = xstrdup(entry->sender_name);
    sender->address = xstrdup(entry->sender_address);
    sender->suspended = entry->suspended;
    sender->domains = xcalloc(entry->n_sender_domains, sizeof *sender->domains);
    for (; sender->domain_count < entry->n_sender_domains; sender->domain_count++) {
        sender->domains[sender->domain_count] =
            xstrdup(entry->sender_domains[sender->domain_count]);
    }
    map_put(directory->senders, tenant, sender);
    return true;
}

static bool make_key(Str tenant, Str rest, char out[KEY_MAX], Str *ret)
{
    if (tenant.len + rest.len + 1 > KEY_MAX) {
        return false;
    }
    memcpy(out, tenant.ptr, tenant.len);
    out[tenant.len] = '/';
    memcpy(out + tenant.len + 1, rest.ptr, rest.len);
    *ret = (Str){out, tenant.len + 1 + rest.len};
    return true;
}

static bool put_version(Directory *directory, Str tenant, Str key, Str payload, Error *err)
{
    char space[KEY_MAX];
    Str name;
    if (!make_key(tenant, key, space, &name)) {
        return error_set(
            err, ERROR_PERMANENT, "the template's key is longer than %d bytes", (int)KEY_MAX);
    }
    if (event_unpack(
            &stentor__v1__template_version__descriptor, payload, directory->scratch, err) == NULL) {
        return false;
    }
    const Version *old = map_get(directory->versions, name);
    directory->prefixes -= old != NULL && old->prefix != NULL ? 1 : 0;
    Version *version = xcalloc(1, sizeof *version);
    version->packed = xmalloc(payload.len);
    memcpy(version->packed, payload.ptr, payload.len);
    version->packed_len = payload.len;
    map_put(directory->versions, name, version);
    return true;
}

// A removal leaves its sequence, which who writes the next one must name.
static bool put_channel(Directory *directory, Str key, const BusMessage *message, Error *err)
{
    const Stentor__V1__ChannelHealth *entry = (const void *)event_unpack(
        &stentor__v1__channel_health__descriptor, message->payload, directory->scratch, err);
    if (entry == NULL) {
        return false;
    }
    ChannelState *state = xcalloc(1, sizeof *state);
    bool disabled = entry->status == STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DISABLED;
    int64_t until_us = entry->until_us > 0 ? entry->until_us : INT64_MAX;
    *state = (ChannelState){
        entry->down_since_us, entry->changed_at_us, message->sequence, disabled ? until_us : 0};
    map_put(directory->channels, key, state);
    return true;
}

bool directory_changed(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    Directory *directory = ctx;
    arena_reset(directory->scratch);
    if (str_eq(kind, STR("tenant"))) {
        return put_sender(directory, tenant, message->payload, err);
    }
    if (str_eq(kind, STR("template"))) {
        return put_version(directory, tenant, key, message->payload, err);
    }
    if (str_eq(kind, STR("suppression"))) {
        return suppression_apply(directory->suppressions, tenant, key, message, err);
    }
    if (str_eq(kind, STR(MAIL_DOMAIN_KIND))) {
        return send_domains_changed(directory->send_domains, tenant, key, message->payload, err);
    }
    if (str_eq(kind, STR(CHANNEL_HEALTH_KIND)) && str_eq(tenant, STR(CHANNEL_HEALTH_TENANT))) {
        return put_channel(directory, key, message, err);
    }
    return true;
}

void directory_unreadable(void *ctx, Str kind, Str tenant, Str key, uint64_t sequence)
{
    Directory *directory = ctx;
    if (str_eq(kind, STR("tenant")) && map_get(directory->senders, tenant) == NULL) {
        Sender *sender = xcalloc(1, sizeof *sender);
        sender->name = xstrdup("");
        sender->address = xstrdup("");
        sender->suspended = true;
        map_put(directory->senders, tenant, sender);
    } else if (str_eq(kind, STR("suppression"))) {
        suppression_unreadable(directory->suppressions, tenant, key, sequence);
    }
}

bool directory_sender(const Directory *directory, Str tenant, Str *ret_name, Str *ret_address)
{
    const Sender *sender = map_get(directory->senders, tenant);
    if (sender == NULL || sender->address[0] == '\0') {
        return false;
    }
    *ret_name = str_from(sender->name);
    *ret_address = str_from(sender->address);
    return true;
}

bool directory_may_send_as(const Directory *directory, Str tenant, Str address)
{
    const Sender *sender = map_get(directory->senders, tenant);
    if (sender == NULL) {
        return false;
    }
    SenderRule rule = {sender->domains, sender->domain_count, str_from(sender->address)};
    return sender_may_use(&rule, address);
}

static void let_go_oldest(Directory *directory)
{
    Version *oldest = NULL;
    Str key;
    void *value;
    for (size_t i = 0; map_next(directory->versions, &i, &key, &value);) {
        Version *version = value;
        if (version->prefix != NULL && (oldest == NULL || version->used_at < oldest->used_at)) {
            oldest = version;
        }
    }
    if (oldest != NULL) {
        body_prefix_free(oldest->prefix);
        oldest->prefix = NULL;
        directory->prefixes--;
    }
}

static void make_prefix(Directory *directory, Version *version)
{
    arena_reset(directory->scratch);
    const Stentor__V1__TemplateVersion *entry = (const void *)event_unpack(
        &stentor__v1__template_version__descriptor, (Str){version->packed, version->packed_len},
        directory->scratch, NULL);
    if (entry == NULL) {
        return;
    }
    if (directory->prefixes >= DIRECTORY_PREFIXES_MAX) {
        let_go_oldest(directory);
    }
    version->prefix = body_prefix_new(entry);
    directory->prefixes += version->prefix != NULL ? 1 : 0;
}

static const BodyPrefix *prefix_of(Directory *directory, Str tenant, Str key, uint64_t id)
{
    char space[KEY_MAX];
    Str name;
    Version *version =
        make_key(tenant, key, space, &name) ? map_get(directory->versions, name) : NULL;
    if (version == NULL) {
        return NULL;
    }
    version->used_at = directory->calls;
    if (version->prefix == NULL) {
        make_prefix(directory, version);
    }
    return version->prefix != NULL && body_prefix_id(version->prefix) == id ? version->prefix
                                                                            : NULL;
}

const BodyPrefix *directory_prefix(
    Directory *directory, const Stentor__V1__Rendered *rendered, Str tenant)
{
    const Str tenants[] = {tenant, STR("platform")};
    const Channel channels[] = {(Channel)rendered->channel, CHANNEL_NONE}; // NONE: stored before
    char key[TEMPLATE_KEY_SIZE];
    const BodyPrefix *found = NULL;
    directory->calls++;
    for (size_t i = 0; i < 4 && found == NULL; i++) {
        Str whole = template_key_write(
            key, str_from(rendered->template_), channels[i % 2],
            str_from(rendered->template_version));
        found = prefix_of(directory, tenants[i / 2], whole, rendered->content_prefix_id);
    }
    return found;
}

ChannelState directory_channel(const Directory *directory, Str key)
{
    const ChannelState *state = map_get(directory->channels, key);
    return state != NULL ? *state : (ChannelState){0};
}

SendDomains *directory_send_domains(const Directory *directory)
{
    return directory->send_domains;
}

const Suppressions *directory_suppressions(const Directory *directory)
{
    return directory->suppressions;
}

bool directory_is_suspended(const Directory *directory, Str tenant)
{
    const Sender *sender = map_get(directory->senders, tenant);
    return sender != NULL && sender->suspended;
}
