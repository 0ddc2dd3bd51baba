// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/credential/reference.h"
#include "common/vendor/generic/definition.h"
#include "services/gateway/vendors/entry_change.h"

typedef Stentor__V1__CredentialState State;
#define STAGED STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_STAGED
#define ACTIVE STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_ACTIVE
#define SUPERSEDED STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_SUPERSEDED
#define REVOKED STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_REVOKED

typedef struct CredentialChange {
    ConfigChange base; // first
    CredentialEntry entry;
} CredentialChange;

// ---- as JSON ----

static const char *state_name(State state)
{
    return state == ACTIVE       ? "active"
           : state == SUPERSEDED ? "superseded"
           : state == REVOKED    ? "revoked"
                                 : "staged";
}

static void set_time(json_t *object, const char *name, int64_t at_us)
{
    if (at_us > 0) {
        char at[CLOCK_RFC3339_SIZE];
        clock_format(at_us, at);
        (void)json_object_set_new(object, name, json_string(at));
    }
}

static json_t *tell(const VendorsApi *vendors, const CredentialEntry *entry)
{
    json_t *settings = json_object();
    for (size_t i = 0; i < entry->n_settings; i++) {
        (void)json_object_set_new(
            settings, entry->settings[i]->name, json_string(entry->settings[i]->value));
    }
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s}", "id", entry->id, "vendor", entry->vendor, "name",
        entry->name, "of", strcmp(entry->tenant, ROUTING_PLATFORM) == 0 ? "platform" : "tenant",
        "state", state_name(routes_credential_state(vendors->routes, entry)), "reference",
        entry->reference);
    if (entry->key_id[0] != '\0') {
        (void)json_object_set_new(object, "key_id", json_string(entry->key_id));
    }
    (void)json_object_set_new(object, "settings", settings);
    json_t *definition = json_loads(entry->definition, 0, NULL);
    if (definition != NULL) {
        (void)json_object_set_new(object, "definition", definition);
    }
    if (entry->rate_per_s > 0) {
        (void)json_object_set_new(object, "rate_per_s", json_integer(entry->rate_per_s));
    }
    if (entry->rate_per_day > 0) {
        (void)json_object_set_new(object, "rate_per_day", json_integer(entry->rate_per_day));
    }
    if (entry->replaces[0] != '\0') {
        (void)json_object_set_new(object, "replaces", json_string(entry->replaces));
    }
    set_time(object, "created_at", entry->created_at_us);
    set_time(object, "changed_at", entry->changed_at_us);
    (void)json_object_set_new(object, "changed_by", json_string(entry->changed_by));
    return object;
}

// ---- reading ----

static bool add_list(
    json_t *list, ApiCall *call, const char *owner, const Page *page, Str *ret_last)
{
    const VendorsApi *vendors = call->ctx;
    Arena *arena = call->http->arena;
    size_t count = 0;
    bool own = strcmp(owner, call->tenant) == 0;
    const CredentialEntry **all =
        routes_credentials(vendors->routes, str_from(owner), arena, &count);
    for (size_t i = 0; i < count; i++) {
        Str position =
            str_from(arena_printf(arena, "%d/%s.%s", own ? 0 : 1, all[i]->vendor, all[i]->name));
        if (str_cmp(position, page->after) <= 0) {
            continue;
        }
        if (json_array_size(list) == page->limit) {
            return false;
        }
        (void)json_array_append_new(list, tell(vendors, all[i]));
        *ret_last = position;
    }
    return true;
}

static void get_credentials(ApiCall *call)
{
    Page page;
    Str last = STR_EMPTY;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    json_t *list = json_array();
    // The platform's are the operator's: a tenant sees its own.
    bool both = call->operates && strcmp(call->tenant, ROUTING_PLATFORM) != 0;
    bool all = add_list(list, call, call->tenant, &page, &last) &&
               (!both || add_list(list, call, ROUTING_PLATFORM, &page, &last));
    page_answer(call, list, all ? STR_EMPTY : last);
}

static void answer_unknown(ApiCall *call)
{
    Str vendor = str_slice(call->params[0], 0, 32);
    Str name = str_slice(call->params[1], 0, CREDENTIAL_NAME_MAX);
    api_answer_missing(
        call, arena_printf(
                  call->http->arena, "credential '" STR_FMT "' of '" STR_FMT "'", STR_ARG(name),
                  STR_ARG(vendor)));
}

static void get_credential(ApiCall *call)
{
    const VendorsApi *vendors = call->ctx;
    const CredentialEntry *entry = routes_credential(
        vendors->routes, str_from(call->tenant), call->params[0], call->params[1]);
    if (entry == NULL && call->operates) {
        entry = routes_credential(
            vendors->routes, STR(ROUTING_PLATFORM), call->params[0], call->params[1]);
    }
    if (entry == NULL) {
        answer_unknown(call);
        return;
    }
    api_answer_json(call, 200, tell(vendors, entry));
}

// ---- putting ----

// Names under which a caller would send the secret itself.
static void refuse_secrets(ApiBody *body)
{
    static const char *const names[] = {"secret",   "api_key", "apikey",     "key",
                                        "password", "token",   "secret_key", "secret_access_key"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (api_has(body, names[i])) {
            (void)json_object_del(body->root, names[i]);
            (void)api_body_fail(
                body, names[i],
                "a secret is never sent here: put it into a file on the dispatchers' hosts and "
                "give "
                "its place as \"reference\": \"file:/run/secrets/NAME\"");
        }
    }
}

static void take_setting(
    ApiBody *body, const char *name, const json_t *value, CredentialEntry *entry)
{
    if (!json_is_string(value)) {
        (void)api_body_fail(body, name, "must be a text");
        return;
    }
    Stentor__V1__VendorSetting *setting = arena_alloc(body->arena, sizeof *setting);
    stentor__v1__vendor_setting__init(setting);
    setting->name = arena_cstr(body->arena, str_from(name));
    setting->value = arena_cstr(body->arena, str_from(json_string_value(value)));
    entry->settings[entry->n_settings++] = setting;
}

static void take_settings(ApiBody *outer, CredentialEntry *entry)
{
    json_t *object = NULL;
    if (!api_read_object(outer, "settings", &object) || object == NULL) {
        return;
    }
    size_t count = json_object_size(object);
    const char *name = NULL;
    json_t *value = NULL;
    if (count > CREDENTIAL_SETTINGS_MAX) {
        (void)api_body_fail(
            outer, "settings", "%zu entries; at most %d", count, CREDENTIAL_SETTINGS_MAX);
        return;
    }
    ApiBody body = api_body_inside(outer, object, "settings.");
    refuse_secrets(&body);
    entry->settings = arena_array(outer->arena, count + 1, sizeof *entry->settings);
    json_object_foreach(body.root, name, value)
    {
        take_setting(&body, name, value, entry);
    }
    (void)json_object_clear(body.root);
    (void)api_body_inside_end(outer, &body);
}

// As it is sent, in one line.
static void take_definition(ApiBody *body, CredentialEntry *entry)
{
    json_t *definition = NULL;
    Error err = {0};
    if (!api_read_object(body, "definition", &definition) || definition == NULL) {
        return;
    }
    char *text = json_dumps(definition, JSON_COMPACT);
    if (text == NULL || strlen(text) > DEFINITION_MAX) {
        (void)api_body_fail(body, "definition", "at most %d bytes", DEFINITION_MAX);
    } else if (!definition_check_clear(definition, &err)) {
        entry_fail(body, &err);
    } else {
        entry->definition = arena_cstr(body->arena, str_from(text));
    }
    free(text);
}

static void take_fields(ApiBody *body, CredentialEntry *entry)
{
    Error err = {0};
    Reference parsed;
    int64_t per_s = 0, per_day = 0;
    Str reference = STR_EMPTY, key_id = STR_EMPTY;
    refuse_secrets(body);
    (void)api_read_text(body, "reference", REFERENCE_MAX, &reference);
    (void)api_read_text(body, "key_id", 512, &key_id);
    (void)api_read_int(body, "rate_per_s", 0, 1000000, &per_s);
    (void)api_read_int(body, "rate_per_day", 0, INT64_C(4000000000), &per_day);
    take_settings(body, entry);
    take_definition(body, entry);
    bool needed = credential_has_secret(entry);
    if ((needed || reference.len > 0) && !reference_parse(reference, &parsed, &err)) {
        (void)api_body_fail(body, "reference", "%s", err.text);
    }
    entry->reference = pb_text(body->arena, reference);
    entry->key_id = pb_text(body->arena, key_id);
    entry->rate_per_s = (uint32_t)per_s;
    entry->rate_per_day = (uint32_t)per_day;
}

static bool read_entry(CredentialChange *change)
{
    ApiBody body = {0};
    Error err = {0};
    ApiCall *call = change->base.call;
    CredentialEntry *entry = &change->entry;
    Arena *arena = call->http->arena;
    stentor__v1__vendor_credential__init(entry);
    entry->tenant = call->tenant;
    entry->vendor = arena_cstr(arena, call->params[0]);
    entry->name = arena_cstr(arena, call->params[1]);
    bool ok = api_body_parse(&body, call->http->body, arena);
    if (ok) {
        take_fields(&body, entry);
        if (api_body_end(&body) && !credential_entry_check(entry, &err)) {
            entry_fail(&body, &err);
        }
        ok = api_body_good(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static const CredentialEntry *unpack(const ConfigChange *change, Str payload)
{
    return payload.len == 0 ? NULL
                            : (const CredentialEntry *)event_unpack(
                                  &stentor__v1__vendor_credential__descriptor, payload,
                                  change->call->http->arena, NULL);
}

static bool refuse(ConfigChange *change, const char *slug, const char *title, const char *detail)
{
    metric_add(change->call->metrics->refused[REFUSED_CONFLICT], 1);
    http_problem(change->call->http, 409, slug, title, NULL, "%s", detail);
    return false;
}

static bool refuse_revoked(ConfigChange *change)
{
    return refuse(
        change, "credential-revoked", "The credential is revoked",
        "a revoked credential stays revoked; put another one under a new name");
}

static void note_change(CredentialChange *change)
{
    ApiCall *call = change->base.call;
    change->entry.changed_at_us = call->http->received_at_us;
    change->entry.changed_by = arena_cstr(call->http->arena, call->key_id);
}

static bool make_put(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    CredentialChange *change = (CredentialChange *)base;
    const CredentialEntry *old = unpack(base, there);
    if (old != NULL && old->state == REVOKED) {
        return refuse_revoked(base);
    }
    if (old == NULL) {
        change->entry.id = arena_alloc(base->call->http->arena, ID_SIZE);
        id_new("chc_", base->call->http->received_at_us, change->entry.id);
        change->entry.state = STAGED;
        change->entry.created_at_us = base->call->http->received_at_us;
        note_change(change);
    } else { // changed_at is of the state, which stays
        change->entry.id = old->id;
        change->entry.state = old->state;
        change->entry.created_at_us = old->created_at_us;
        change->entry.changed_at_us = old->changed_at_us;
        change->entry.changed_by = old->changed_by;
        change->entry.replaces = old->replaces;
    }
    *ret = &change->entry.base;
    return true;
}

static void answer_entry(ConfigChange *base, Str payload)
{
    const CredentialEntry *entry = unpack(base, payload);
    if (entry != NULL) {
        api_answer_json(base->call, 200, tell(base->call->ctx, entry));
    }
}

static CredentialChange *new_change(ApiCall *call)
{
    const char *key = arena_printf(
        call->http->arena, STR_FMT "." STR_FMT, STR_ARG(call->params[0]), STR_ARG(call->params[1]));
    CredentialChange *change =
        (CredentialChange *)entry_change_new(call, sizeof *change, "credential", str_from(key));
    change->base.answer = answer_entry;
    return change;
}

static bool refuse_one_more(ApiCall *call)
{
    const VendorsApi *vendors = call->ctx;
    size_t count = 0;
    Str tenant = str_from(call->tenant);
    (void)routes_credentials(vendors->routes, tenant, call->http->arena, &count);
    if (count < CREDENTIALS_MAX ||
        routes_credential(vendors->routes, tenant, call->params[0], call->params[1]) != NULL) {
        return false;
    }
    (void)api_refuse_field(
        call, "name", "the tenant has %d credentials already; delete one", CREDENTIALS_MAX);
    return true;
}

static void put_credential(ApiCall *call)
{
    CredentialChange *change = new_change(call);
    change->base.make = make_put;
    if (read_entry(change) && !refuse_one_more(call)) {
        config_change_run(&change->base);
    }
}

// ---- promoting, revoking, deleting ----

static bool take_old(ConfigChange *base, Str there)
{
    CredentialChange *change = (CredentialChange *)base;
    const CredentialEntry *old = unpack(base, there);
    if (old == NULL) {
        answer_unknown(base->call);
        return false;
    }
    change->entry = *old;
    return true;
}

static const CredentialEntry *active_of(const ConfigChange *base)
{
    const VendorsApi *vendors = base->call->ctx;
    const CredentialEntry *active = routes_account(
        vendors->routes, str_from(base->call->tenant), base->call->params[0], STR_EMPTY);
    return active != NULL && strcmp(active->tenant, base->call->tenant) == 0 ? active : NULL;
}

static bool make_promoted(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    CredentialChange *change = (CredentialChange *)base;
    const CredentialEntry *active = active_of(base);
    if (!take_old(base, there)) {
        return false;
    }
    if (change->entry.state == REVOKED) {
        return refuse_revoked(base);
    }
    *ret = &change->entry.base;
    bool already = active != NULL && strcmp(active->name, change->entry.name) == 0;
    if (!already) {
        change->entry.state = ACTIVE;
        change->entry.replaces = active == NULL ? pb_borrow("") : active->name;
        note_change(change);
    }
    return true;
}

// The one before it would be active again, perhaps long after it was given up.
static bool refuse_return(ConfigChange *base)
{
    const VendorsApi *vendors = base->call->ctx;
    const CredentialEntry *active = active_of(base);
    const CredentialEntry *before =
        active == NULL || !str_eq(str_from(active->name), base->call->params[1])
            ? NULL
            : routes_predecessor(vendors->routes, active);
    return before != NULL &&
           !refuse(
               base, "credential-active", "The credential is the active one",
               arena_printf(
                   base->call->http->arena,
                   "'%s' would be active again: promote the one to be used, or revoke '%s' first",
                   before->name, before->name));
}

static bool make_revoked(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    CredentialChange *change = (CredentialChange *)base;
    if (!take_old(base, there) || refuse_return(base)) {
        return false;
    }
    if (change->entry.state != REVOKED) {
        change->entry.state = REVOKED;
        note_change(change);
    }
    *ret = &change->entry.base;
    return true;
}

static bool make_deleted(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    CredentialChange *change = (CredentialChange *)base;
    if (!take_old(base, there)) {
        return false;
    }
    *ret = NULL;
    return change->entry.state == STAGED || change->entry.state == REVOKED ||
           refuse(
               base, "credential-in-use", "The credential is in use",
               "only a staged or revoked one is deleted; revoke it first");
}

static void run(
    ApiCall *call, bool (*make)(ConfigChange *change, Str there, const ProtobufCMessage **ret),
    void (*answer)(ConfigChange *change, Str payload))
{
    CredentialChange *change = new_change(call);
    change->base.make = make;
    change->base.answer = answer;
    if (routing_is_vendor(call->params[0]) &&
        routing_is_name(call->params[1], CREDENTIAL_NAME_MAX)) {
        config_change_run(&change->base);
    } else {
        answer_unknown(call);
    }
}

static void promote_credential(ApiCall *call)
{
    run(call, make_promoted, answer_entry);
}

static void revoke_credential(ApiCall *call)
{
    run(call, make_revoked, answer_entry);
}

static void delete_credential(ApiCall *call)
{
    run(call, make_deleted, config_change_answer_removed);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/credentials", SCOPE_TENANT_READ, get_credentials, "limit cursor", false},
    {"GET", "/v1/credentials/{}/{}", SCOPE_TENANT_READ, get_credential, NULL, false},
    {"PUT", "/v1/credentials/{}/{}", SCOPE_TENANTS_OPERATE, put_credential, NULL, true},
    {"POST", "/v1/credentials/{}/{}/promote", SCOPE_TENANTS_OPERATE, promote_credential, NULL,
     true},
    {"POST", "/v1/credentials/{}/{}/revoke", SCOPE_TENANTS_OPERATE, revoke_credential, NULL, true},
    {"DELETE", "/v1/credentials/{}/{}", SCOPE_TENANTS_OPERATE, delete_credential, NULL, true},
};

void credentials_api_add(Api *api, VendorsApi *vendors)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], vendors);
}
