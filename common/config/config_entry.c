// SPDX-License-Identifier: Apache-2.0
#include "common/config/config_entry.h"

#include "common/base/id.h"
#include "common/bus/events/suppression_event.h"
#include "common/codec/event.h"
#include "common/codec/key_register.h"
#include "common/config/channel_health.h"
#include "common/config/inbox_keys.h"
#include "common/config/link_revocations.h"
#include "common/config/mail_domain_entry.h"
#include "common/config/webhook_subscription.h"
#include "common/model/asset.h"
#include "common/model/template_key.h"
#include "stentor/v1/config.pb-c.h"

typedef struct Kind {
    const char *name;
    const ProtobufCMessageDescriptor *type;
    const char *(*tenant)(const ProtobufCMessage *message);
    const char *(*key)(const ProtobufCMessage *message, Arena *arena);
    const char *(*old_key)(const ProtobufCMessage *message, Arena *arena); // where it may stand too
} Kind;

#define TENANT_OF(function, Type)                                                                  \
    static const char *function(const ProtobufCMessage *message)                                   \
    {                                                                                              \
        return ((const Type *)message)->tenant;                                                    \
    }

TENANT_OF(tenant_of_tenant, Stentor__V1__Tenant)
TENANT_OF(tenant_of_key, Stentor__V1__ApiKey)
TENANT_OF(tenant_of_template, Stentor__V1__TemplateVersion)
TENANT_OF(tenant_of_trigger, Stentor__V1__Trigger)
TENANT_OF(tenant_of_resolver, Stentor__V1__NamedResolver)
TENANT_OF(tenant_of_suppression, Stentor__V1__Suppression)
TENANT_OF(tenant_of_inbound, Stentor__V1__InboundKey)
TENANT_OF(tenant_of_health, Stentor__V1__ChannelHealth)
TENANT_OF(tenant_of_asset, Stentor__V1__TemplateAsset)
TENANT_OF(tenant_of_credential, Stentor__V1__VendorCredential)
TENANT_OF(tenant_of_route, Stentor__V1__Route)
TENANT_OF(tenant_of_mail_domain, Stentor__V1__MailDomain)
TENANT_OF(tenant_of_webhook, Stentor__V1__WebhookSubscription)
TENANT_OF(tenant_of_inbox_keys, Stentor__V1__InboxKeys)
TENANT_OF(tenant_of_revocation, Stentor__V1__LinkRevocation)

static const char *key_of_tenant(const ProtobufCMessage *message, Arena *arena)
{
    (void)message, (void)arena;
    return "self";
}

static const char *key_of_key(const ProtobufCMessage *message, Arena *arena)
{
    (void)arena;
    return ((const Stentor__V1__ApiKey *)message)->key_id;
}

static const char *write_template(
    const Stentor__V1__TemplateVersion *version, Channel channel, Arena *arena)
{
    char *key = arena_alloc(arena, TEMPLATE_KEY_SIZE);
    Str written =
        template_key_write(key, str_from(version->key), channel, str_from(version->version));
    return written.len > 0 ? key : "";
}

// "welcome.email.1_0_0": the version's dots would be tokens.
static const char *key_of_template(const ProtobufCMessage *message, Arena *arena)
{
    const Stentor__V1__TemplateVersion *version = (const Stentor__V1__TemplateVersion *)message;
    return write_template(version, template_channel((int)version->channel), arena);
}

static const char *old_key_of_template(const ProtobufCMessage *message, Arena *arena)
{
    return write_template((const Stentor__V1__TemplateVersion *)message, CHANNEL_NONE, arena);
}

static const char *key_of_trigger(const ProtobufCMessage *message, Arena *arena)
{
    (void)arena;
    return ((const Stentor__V1__Trigger *)message)->key;
}

static const char *key_of_resolver(const ProtobufCMessage *message, Arena *arena)
{
    (void)arena;
    return ((const Stentor__V1__NamedResolver *)message)->name;
}

static const char *key_of_suppression(const ProtobufCMessage *message, Arena *arena)
{
    const Stentor__V1__Suppression *entry = (const Stentor__V1__Suppression *)message;
    if (!suppression_check(entry, NULL)) {
        return "";
    }
    char *key = arena_alloc(arena, SUPPRESSION_KEY_SIZE);
    suppression_key(
        key, (Channel)entry->channel, (Category)entry->category, entry->address_hash.data);
    return key;
}

static const char *key_of_inbound(const ProtobufCMessage *message, Arena *arena)
{
    (void)arena;
    return ((const Stentor__V1__InboundKey *)message)->vendor;
}

static const char *key_of_health(const ProtobufCMessage *message, Arena *arena)
{
    const Stentor__V1__ChannelHealth *entry = (const Stentor__V1__ChannelHealth *)message;
    char key[CHANNEL_HEALTH_KEY_SIZE];
    bool named = channel_health_key(key, (Channel)entry->channel, str_from(entry->vendor));
    return named ? arena_cstr(arena, str_from(key)) : "";
}

// "" for one that could not be shown: the entry before it stays.
static const char *key_of_asset(const ProtobufCMessage *message, Arena *arena)
{
    (void)arena;
    const Stentor__V1__TemplateAsset *asset = (const Stentor__V1__TemplateAsset *)message;
    bool whole = asset_is_name(str_from(asset->name)) && asset->sha256.len == ASSET_HASH_LEN &&
                 asset_type_from_name(str_from(asset->content_type)) != ASSET_NONE &&
                 asset->size_bytes > 0 && asset->size_bytes <= ASSET_BYTES_MAX;
    return whole ? asset->name : "";
}

static bool is_plain(Str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '_' || c == '-')) {
            return false;
        }
    }
    return name.len > 0;
}

static const char *key_of_credential(const ProtobufCMessage *message, Arena *arena)
{
    const Stentor__V1__VendorCredential *entry = (const Stentor__V1__VendorCredential *)message;
    bool named = is_plain(str_from(entry->vendor)) && is_plain(str_from(entry->name));
    return named ? arena_printf(arena, "%s.%s", entry->vendor, entry->name) : "";
}

static const char *key_of_route(const ProtobufCMessage *message, Arena *arena)
{
    (void)arena;
    return ((const Stentor__V1__Route *)message)->key;
}

// The domain as it is: its labels are tokens.
static const char *key_of_mail_domain(const ProtobufCMessage *message, Arena *arena)
{
    (void)arena;
    return ((const Stentor__V1__MailDomain *)message)->domain;
}

static const char *key_of_revocation(const ProtobufCMessage *message, Arena *arena)
{
    char *key = arena_alloc(arena, LINK_REVOCATION_KEY_SIZE);
    return link_revocation_key(key, (const Stentor__V1__LinkRevocation *)message) ? key : "";
}

// "" for one that could not be delivered to: the entry before it stays.
static const char *key_of_webhook(const ProtobufCMessage *message, Arena *arena)
{
    (void)arena;
    const Stentor__V1__WebhookSubscription *entry =
        (const Stentor__V1__WebhookSubscription *)message;
    bool whole = id_parse(str_from(entry->id), WEBHOOK_ID_PREFIX, NULL) &&
                 entry->target_url[0] != '\0' && entry->n_secrets > 0;
    return whole ? entry->id : "";
}

// "" for keys that could check no token: the entry before it stays.
static const char *key_of_inbox_keys(const ProtobufCMessage *message, Arena *arena)
{
    (void)arena;
    return inbox_keys_are_whole((const Stentor__V1__InboxKeys *)message) ? INBOX_KEYS_KEY : "";
}

static const char *tenant_of_register(const ProtobufCMessage *message)
{
    (void)message;
    return KEY_REGISTER_TENANT;
}

static const char *key_of_register(const ProtobufCMessage *message, Arena *arena)
{
    (void)message, (void)arena;
    return KEY_REGISTER_KEY;
}

// clang-format off
static const Kind kinds[] = {
    {"tenant",      &stentor__v1__tenant__descriptor,           tenant_of_tenant,      key_of_tenant,      NULL},
    {"apikey",      &stentor__v1__api_key__descriptor,          tenant_of_key,         key_of_key,         NULL},
    {"template",    &stentor__v1__template_version__descriptor, tenant_of_template,    key_of_template,    old_key_of_template},
    {"trigger",     &stentor__v1__trigger__descriptor,          tenant_of_trigger,     key_of_trigger,     NULL},
    {"resolver",    &stentor__v1__named_resolver__descriptor,   tenant_of_resolver,    key_of_resolver,    NULL},
    {"suppression", &stentor__v1__suppression__descriptor,      tenant_of_suppression, key_of_suppression, NULL},
    {"inbound",     &stentor__v1__inbound_key__descriptor,      tenant_of_inbound,     key_of_inbound,     NULL},
    {CHANNEL_HEALTH_KIND, &stentor__v1__channel_health__descriptor, tenant_of_health, key_of_health,   NULL},
    {"asset",       &stentor__v1__template_asset__descriptor,   tenant_of_asset,       key_of_asset,       NULL},
    {"credential",  &stentor__v1__vendor_credential__descriptor, tenant_of_credential, key_of_credential,  NULL},
    {"route",       &stentor__v1__route__descriptor,            tenant_of_route,       key_of_route,       NULL},
    {MAIL_DOMAIN_KIND, &stentor__v1__mail_domain__descriptor,      tenant_of_mail_domain, key_of_mail_domain, NULL},
    {LINK_REVOCATION_KIND, &stentor__v1__link_revocation__descriptor, tenant_of_revocation, key_of_revocation, NULL},
    {WEBHOOK_KIND,  &stentor__v1__webhook_subscription__descriptor, tenant_of_webhook, key_of_webhook,     NULL},
    {INBOX_KEYS_KIND, &stentor__v1__inbox_keys__descriptor,     tenant_of_inbox_keys,  key_of_inbox_keys,  NULL},
    {KEY_REGISTER_KIND, &stentor__v1__master_keys__descriptor,  tenant_of_register,    key_of_register,    NULL},
};
// clang-format on

static const Kind *find_kind(Str name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (str_eq(str_from(kinds[i].name), name)) {
            return &kinds[i];
        }
    }
    return NULL;
}

bool config_entry_name(Str subject, ConfigName *ret, Error *err)
{
    Str prefix, rest = subject;
    ConfigName name = {0};
    bool shaped = str_split(&rest, '.', &prefix) && str_eq(prefix, STR("cfg")) &&
                  str_split(&rest, '.', &name.kind) && str_split(&rest, '.', &name.tenant) &&
                  rest.len > 0 && id_is_tenant(name.tenant);
    if (!shaped) {
        return error_set(err, ERROR_PERMANENT, "not cfg.<kind>.<tenant>.<key>");
    }
    if (str_eq(name.kind, STR("tenant")) && !str_eq(rest, STR("self"))) {
        return error_set(err, ERROR_PERMANENT, "not cfg.tenant.<tenant>.self");
    }
    name.key = rest;
    *ret = name;
    return true;
}

static const char *place_of(
    const Kind *kind, const ProtobufCMessage *entry, const char *key, Arena *arena)
{
    return arena_printf(arena, "cfg.%s.%s.%s", kind->name, kind->tenant(entry), key);
}

// The subject that the entry belongs on must be the one that it came on.
static bool check_place(
    const Kind *kind, const ProtobufCMessage *entry, Str subject, Arena *arena, Error *err)
{
    const char *own = place_of(kind, entry, kind->key(entry, arena), arena);
    const char *old =
        kind->old_key == NULL ? own : place_of(kind, entry, kind->old_key(entry, arena), arena);
    return str_eq(str_from(own), subject) || str_eq(str_from(old), subject) ||
           error_set(
               err, ERROR_PERMANENT, "the entry names '%.120s', which is another subject", own);
}

// What the server adds to a stored message that it puts on a subject by itself: without its payload
// (a consumer's headers_only: an entry would look like its own removal), as an answer, as a copy.
static bool is_servers_copy(const BusMessage *message)
{
    static const char *const names[] = {"Nats-Msg-Size", "Nats-Stream", "Nats-Sequence"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (bus_message_header(message, names[i]).len > 0) {
            return true;
        }
    }
    return false;
}

bool config_entry_check(const BusMessage *message, ConfigName *ret, Arena *arena, Error *err)
{
    if (!config_entry_name(message->subject, ret, err)) {
        return false;
    }
    if (is_servers_copy(message)) {
        return error_set(err, ERROR_PERMANENT, "a copy of another message, made by nats-server");
    }
    const Kind *kind = find_kind(ret->kind);
    if (kind == NULL) {
        return error_set(
            err, ERROR_PERMANENT, "this version does not know the kind '%.*s'", STR_ARG(ret->kind));
    }
    if (message->payload.len == 0) {
        return message->event_id.len > 0 ||
               error_set(
                   err, ERROR_PERMANENT,
                   "an empty message without an id: nats-server made it, it removes nothing");
    }
    const ProtobufCMessage *entry = event_unpack(kind->type, message->payload, arena, err);
    return entry != NULL && check_place(kind, entry, message->subject, arena, err);
}
