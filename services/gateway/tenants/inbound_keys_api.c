// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/tenants/inbound_keys_api.h"

#include "common/api/api_json.h"
#include "common/api/config_change.h"
#include "common/api/config_read.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/inbound_capability.h"
#include "common/credential/reference.h"
#include "common/vendor/ses/sns.h"
#include "common/vendor/vendor_callback.h"

enum {
    PUBLIC_KEY_MAX = 4096,
    SECRETS_MAX = 8,
    LISTED_MAX = 32,
    NAME_MAX_BYTES = 64,
};

// Lives in the request's arena.
typedef struct Put {
    ConfigChange base; // first
    const VendorCallback *vendor;
    Stentor__V1__InboundKey key;
} Put;

// ---- what only some vendors have: which of its callbacks are the tenant's ----

typedef struct List {
    const char *vendor, *field, *setting;
    bool (*is_one)(Str text);
    const char *shape, *what;
} List;

static bool is_number_id(Str text)
{
    bool good = text.len > 0 && text.len <= 32;
    for (size_t i = 0; good && i < text.len; i++) {
        good = ascii_is_digit(text.ptr[i]);
    }
    return good;
}

static const List lists[] = {
    {"ses", "topics", "topic_arn", sns_is_topic, "arn:aws:sns:<region>:<account>:<name>",
     "the ARNs of the SNS topics that may call back"},
    {"meta", "numbers", "phone_number_id", is_number_id, "a phone_number_id: digits",
     "the ids (phone_number_id) of the tenant's own numbers"},
};

// NULL: there is none.
static const List *list_of(const VendorCallback *vendor)
{
    for (size_t i = 0; vendor != NULL && i < sizeof lists / sizeof *lists; i++) {
        if (str_eq(str_from(lists[i].vendor), str_from(vendor->name))) {
            return &lists[i];
        }
    }
    return NULL;
}

// ---- answers ----

static json_t *tell_secrets(const Stentor__V1__InboundKey *key)
{
    json_t *list = json_array();
    for (size_t i = 0; i < key->n_secrets; i++) {
        const Stentor__V1__InboundSecret *secret = key->secrets[i];
        json_t *one = json_pack("{s:s, s:s}", "name", secret->name, "reference", secret->reference);
        if (secret->not_after_us > 0) {
            char at[CLOCK_RFC3339_SIZE];
            clock_format(secret->not_after_us, at);
            (void)json_object_set_new(one, "not_after", json_string(at));
        }
        (void)json_array_append_new(list, one);
    }
    return list;
}

// `key` NULL: there is none.
static json_t *tell(const ApiCall *call, const Stentor__V1__InboundKey *key)
{
    const InboundKeysApi *api = call->ctx;
    char capability[INBOUND_CAPABILITY_SIZE];
    const char *vendor = arena_cstr(call->http->arena, call->params[0]);
    inbound_capability(api->master, str_from(call->tenant), call->params[0], capability);
    const char *state = key == NULL ? "none" : key->revoked ? "revoked" : "active";
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:o}", "tenant", call->tenant, "vendor", vendor, "state", state, "path",
        json_sprintf("/v1/inbound/%s/%s/%s", call->tenant, vendor, capability));
    if (key != NULL && key->public_key[0] != '\0') {
        (void)json_object_set_new(object, "public_key", json_string(key->public_key));
    }
    if (key != NULL && key->n_secrets > 0) {
        (void)json_object_set_new(object, "secrets", tell_secrets(key));
    }
    const List *list = list_of(vendor_callback_find(call->params[0]));
    if (key != NULL && key->n_settings > 0 && list != NULL) {
        json_t *listed = json_array();
        for (size_t i = 0; i < key->n_settings; i++) {
            (void)json_array_append_new(listed, json_string(key->settings[i]->value));
        }
        (void)json_object_set_new(object, list->field, listed);
    }
    return object;
}

static bool make_put(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    (void)there;
    *ret = &((Put *)base)->key.base;
    return true;
}

static void answer_put(ConfigChange *base, Str payload)
{
    (void)payload;
    const Put *put = (const Put *)base;
    api_answer_json(base->call, 200, tell(base->call, &put->key));
}

// ---- the body ----

static void read_secret(Put *put, ApiBody *body, json_t *object, size_t i)
{
    Arena *arena = put->base.call->http->arena;
    Str name = STR_EMPTY, reference = STR_EMPTY;
    Reference parsed;
    Error err = {0};
    ApiBody inside = api_body_inside(body, object, arena_printf(arena, "secrets[%zu].", i));
    Stentor__V1__InboundSecret *secret = arena_alloc(arena, sizeof *secret);
    stentor__v1__inbound_secret__init(secret);
    (void)api_read_text(&inside, "name", NAME_MAX_BYTES, &name);
    (void)api_read_text(&inside, "reference", REFERENCE_MAX, &reference);
    (void)api_read_time(&inside, "not_after", &secret->not_after_us);
    if (!id_is_key(name)) {
        (void)api_body_fail(&inside, "name", "1 to 64 of a-z, 0-9, '_' and '-'");
    }
    if (!reference_parse(reference, &parsed, &err)) {
        (void)api_body_fail(&inside, "reference", "%s", err.text);
    }
    secret->name = arena_cstr(arena, name);
    secret->reference = arena_cstr(arena, reference);
    put->key.secrets[put->key.n_secrets++] = secret;
    (void)api_body_inside_end(body, &inside);
}

static void read_secrets(Put *put, ApiBody *body)
{
    json_t *list = NULL;
    if (api_read_array(body, "secrets", SECRETS_MAX, &list) && list != NULL) {
        size_t count = json_array_size(list);
        put->key.secrets =
            arena_array(put->base.call->http->arena, count, sizeof *put->key.secrets);
        for (size_t i = 0; i < count; i++) {
            read_secret(put, body, json_array_get(list, i), i);
        }
    }
}

static void add_listed(Put *put, const List *list, ApiBody *body, const json_t *value, size_t i)
{
    Arena *arena = put->base.call->http->arena;
    Str text = str_of(json_string_value(value), json_string_length(value));
    if (!json_is_string(value) || !list->is_one(text)) {
        (void)api_body_fail(
            body, arena_printf(arena, "%s[%zu]", list->field, i), "%s", list->shape);
        return;
    }
    Stentor__V1__VendorSetting *setting = arena_alloc(arena, sizeof *setting);
    stentor__v1__vendor_setting__init(setting);
    setting->name = arena_cstr(arena, str_from(list->setting));
    setting->value = arena_cstr(arena, text);
    put->key.settings[put->key.n_settings++] = setting;
}

static void read_listed(Put *put, ApiBody *body)
{
    json_t *values = NULL;
    const List *list = list_of(put->vendor);
    if (list == NULL || !api_read_array(body, list->field, LISTED_MAX, &values)) {
        return; // of another vendor the field is unknown
    }
    size_t count = json_array_size(values);
    put->key.settings = arena_array(put->base.call->http->arena, count, sizeof *put->key.settings);
    for (size_t i = 0; i < count; i++) {
        add_listed(put, list, body, json_array_get(values, i), i);
    }
    if (count == 0 && !put->key.revoked) {
        (void)api_body_fail(body, list->field, "required: %s", list->what);
    }
}

static void check_needs(const Put *put, ApiBody *body)
{
    bool signs_publicly = str_eq(str_from(put->vendor->name), STR("sendgrid"));
    bool sns = str_eq(str_from(put->vendor->name), STR("ses"));
    bool has_key = put->key.public_key[0] != '\0';
    if (signs_publicly && !put->key.revoked && !has_key && put->key.n_secrets == 0) {
        (void)api_body_fail(
            body, "public_key", "required: the public key as the vendor's console shows it");
    }
    if (!signs_publicly && has_key) {
        (void)api_body_fail(body, "public_key", "is sendgrid's; the keys of others are `secrets`");
    }
    if (!signs_publicly && !sns && !put->key.revoked && put->key.n_secrets == 0) {
        (void)api_body_fail(body, "secrets", "required: at least one {\"name\", \"reference\"}");
    }
}

// false: answered.
static bool read_key(Put *put)
{
    ApiBody body = {0};
    Arena *arena = put->base.call->http->arena;
    Str key = STR_EMPTY;
    bool revoked = false;
    bool ok = api_body_parse(&body, put->base.call->http->body, arena);
    if (ok) {
        (void)api_read_text(&body, "public_key", PUBLIC_KEY_MAX, &key);
        (void)api_read_bool(&body, "revoked", &revoked);
        put->key.public_key = arena_cstr(arena, key);
        put->key.revoked = revoked;
        read_secrets(put, &body);
        read_listed(put, &body);
        check_needs(put, &body);
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(put->base.call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// ---- the routes ----

// NULL: answered.
static const VendorCallback *find_vendor(ApiCall *call)
{
    const VendorCallback *vendor = vendor_callback_find(call->params[0]);
    if (vendor == NULL) {
        Buf names;
        buf_init(&names, 256);
        for (size_t i = 0; vendor_callback_at(i) != NULL; i++) {
            (void)buf_printf(&names, "%s%s", i > 0 ? ", " : "", vendor_callback_at(i)->name);
        }
        api_answer_missing(
            call,
            arena_printf(
                call->http->arena, "such vendor (known: " STR_FMT ")", STR_ARG(buf_view(&names))));
        buf_done(&names);
    }
    return vendor;
}

static void on_shown(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    ApiCall *call = ctx;
    Error unreadable = {0};
    const Stentor__V1__InboundKey *key = NULL;
    if (err == NULL && payload.len > 0) {
        key = (const Stentor__V1__InboundKey *)event_unpack(
            &stentor__v1__inbound_key__descriptor, payload, call->http->arena, &unreadable);
        err = key == NULL ? &unreadable : NULL;
    }
    if (err != NULL) {
        api_answer_failure(call, err);
        return;
    }
    if (key != NULL) {
        precondition_tag(call, sequence);
    }
    api_answer_json(call, 200, tell(call, key));
}

static void get_key(ApiCall *call)
{
    const InboundKeysApi *keys = call->ctx;
    if (find_vendor(call) == NULL) {
        return;
    }
    char *subject = arena_alloc(call->http->arena, SUBJECT_SIZE);
    subject_config(subject, "inbound", str_from(call->tenant), call->params[0]);
    config_read(keys->bus, subject, call->http->arena, on_shown, call);
}

static void put_key(ApiCall *call)
{
    const InboundKeysApi *keys = call->ctx;
    const VendorCallback *vendor = find_vendor(call);
    if (vendor == NULL) {
        return;
    }
    Put *put = (Put *)config_change_new(call, sizeof *put, keys->bus, "inbound", call->params[0]);
    stentor__v1__inbound_key__init(&put->key);
    put->key.tenant = call->tenant;
    put->key.vendor = arena_cstr(call->http->arena, call->params[0]);
    put->vendor = vendor;
    put->base.conflict_slug = "key-changed";
    put->base.conflict_title = "Another call changed the key at this moment";
    put->base.make = make_put;
    put->base.answer = answer_put;
    if (read_key(put)) {
        config_change_run(&put->base);
    }
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/tenant/inbound-keys/{}", SCOPE_TENANTS_OPERATE, get_key, NULL, false},
    {"PUT", "/v1/tenant/inbound-keys/{}", SCOPE_TENANTS_OPERATE, put_key, NULL, true},
};

void inbound_keys_api_add(Api *api, InboundKeysApi *keys)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], keys);
}
