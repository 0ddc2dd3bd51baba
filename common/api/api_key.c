// SPDX-License-Identifier: Apache-2.0
#include "common/api/api_key.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/hash.h"

enum { ID_BYTES = 8, SECRET_BYTES = 32 };

#define ID_PREFIX STR("stn_")

typedef Stentor__V1__ApiKey ApiKey;

char *api_key_make(ApiKey *key, Arena *arena)
{
    uint8_t random[ID_BYTES + SECRET_BYTES];
    char secret[2 * SECRET_BYTES + 1];
    uint8_t *hash = arena_alloc(arena, SHA256_LEN);
    key->key_id = arena_alloc(arena, 2 * ID_BYTES + 1);
    random_bytes(random, sizeof random);
    hex_encode(random, ID_BYTES, key->key_id);
    hex_encode(random + ID_BYTES, SECRET_BYTES, secret);
    char *whole = arena_printf(arena, "stn_%s.%s", key->key_id, secret);
    sha256(str_from(whole), hash);
    key->secret_hash = (ProtobufCBinaryData){.len = SHA256_LEN, .data = hash};
    return whole;
}

bool api_key_take(ApiKey *key, Str whole, Arena *arena)
{
    Str rest = api_key_bare_id(whole), id = STR_EMPTY;
    bool shaped = rest.len < whole.len && str_split(&rest, '.', &id) && id_is_key(id) &&
                  rest.len > 0 && !str_has_control(rest);
    if (shaped) {
        uint8_t *hash = arena_alloc(arena, SHA256_LEN);
        sha256(whole, hash);
        key->key_id = arena_cstr(arena, id);
        key->secret_hash = (ProtobufCBinaryData){.len = SHA256_LEN, .data = hash};
    }
    return shaped;
}

void api_key_make_operator(ApiKey *key, int64_t now_us)
{
    static char made_by[] = "bootstrap";
    static char tenant[] = "platform";
    static char operator_set[] = "operator";
    static char *scopes[] = {operator_set};
    key->tenant = tenant;
    key->created_by = made_by;
    key->created_at_us = now_us;
    key->scopes = scopes;
    key->n_scopes = 1;
}

Str api_key_bare_id(Str id)
{
    return str_starts(id, ID_PREFIX) ? str_slice(id, ID_PREFIX.len, id.len) : id;
}

static bool is_past(int64_t at_us, int64_t now_us)
{
    return at_us != 0 && at_us <= now_us;
}

bool api_key_is_over(const ApiKey *key, int64_t now_us)
{
    return api_key_is_revoked(key, now_us) || is_past(key->expires_at_us, now_us);
}

bool api_key_is_revoked(const ApiKey *key, int64_t now_us)
{
    return key->revoked || is_past(key->revoked_at_us, now_us);
}

const char *api_key_state(const ApiKey *key, int64_t now_us)
{
    return api_key_is_revoked(key, now_us)       ? "revoked"
           : is_past(key->expires_at_us, now_us) ? "expired"
           : key->revoked_at_us != 0             ? "ending"
                                                 : "active";
}

static void add_text(json_t *json, const char *name, const char *text)
{
    if (text[0] != '\0') {
        (void)json_object_set_new(json, name, json_string(text));
    }
}

static void add_time(json_t *json, const char *name, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    if (at_us != 0) {
        clock_format(at_us, text);
        add_text(json, name, text);
    }
}

json_t *api_key_json(const ApiKey *key, int64_t now_us)
{
    json_t *scopes = json_array();
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s}", "key_id", key->key_id, "tenant", key->tenant, "name", key->name,
        "state", api_key_state(key, now_us));
    for (size_t i = 0; i < key->n_scopes; i++) {
        (void)json_array_append_new(scopes, json_string(key->scopes[i]));
    }
    add_time(json, "created_at", key->created_at_us);
    (void)json_object_set_new(json, "scopes", scopes);
    if (key->n_allowed_cidrs > 0) {
        json_t *from = json_array();
        for (size_t i = 0; i < key->n_allowed_cidrs; i++) {
            (void)json_array_append_new(from, json_string(key->allowed_cidrs[i]));
        }
        (void)json_object_set_new(json, "allowed_cidrs", from);
    }
    add_time(json, "expires_at", key->expires_at_us);
    add_time(json, "revoked_at", key->revoked_at_us);
    add_text(json, "rotated_from", key->rotated_from);
    add_text(json, "created_by", key->created_by);
    return json;
}

bool api_key_end(ApiKey *key, int64_t at_us, int64_t now_us)
{
    bool now = at_us <= now_us;
    // An end that has passed by this clock may lie ahead of a reader's.
    if (key->revoked || (!now && is_past(key->revoked_at_us, at_us))) {
        return false;
    }
    key->revoked_at_us = is_past(key->revoked_at_us, at_us) ? key->revoked_at_us : at_us;
    key->revoked = now;
    return true;
}

void api_key_succeed(const ApiKey *old, int64_t now_us, ApiKey *ret)
{
    static char all[] = "admin";
    static char *everything[] = {all}; // of a key from before there were scopes
    stentor__v1__api_key__init(ret);
    ret->tenant = old->tenant;
    ret->name = old->name;
    ret->created_at_us = now_us;
    ret->rotated_from = old->key_id;
    ret->scopes = old->n_scopes > 0 ? old->scopes : everything;
    ret->n_scopes = old->n_scopes > 0 ? old->n_scopes : 1;
    ret->allowed_cidrs = old->allowed_cidrs;
    ret->n_allowed_cidrs = old->n_allowed_cidrs;
    if (old->expires_at_us != 0) {
        ret->expires_at_us = now_us + (old->expires_at_us - old->created_at_us);
    }
}

// ---- of a body ----

static bool take_name(ApiBody *body, ApiKey *key)
{
    Str name = str_from(key->name);
    if (!api_read_text(body, "name", API_KEY_NAME_MAX, &name)) {
        return false;
    }
    key->name = arena_cstr(body->arena, name);
    return !str_has_control(name) || api_body_fail(body, "name", "must be one line");
}

static bool take_scopes(ApiBody *body, ApiKey *key)
{
    json_t *list = NULL;
    if (!api_read_array(body, "scopes", API_KEY_SCOPES_MAX, &list)) {
        return false;
    }
    if (json_array_size(list) == 0) {
        return (list == NULL && key->n_scopes > 0) ||
               api_body_fail(body, "scopes", "required: at least one, such as 'send' or 'admin'");
    }
    key->scopes = arena_array(body->arena, API_KEY_SCOPES_MAX, sizeof *key->scopes);
    key->n_scopes = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (scope_set_from_name(str_from(name)) == 0) {
            (void)api_body_fail(
                body, arena_printf(body->arena, "scopes[%zu]", i),
                "not a scope such as 'send', 'admin' or 'recipients:read'");
            continue;
        }
        key->scopes[key->n_scopes++] = arena_cstr(body->arena, str_from(name));
    }
    bool operates =
        (scope_set_from_names(key->scopes, key->n_scopes) & SCOPE_BIT(SCOPE_TENANTS_OPERATE)) != 0;
    return !operates || str_eq(str_from(key->tenant), AUTH_PLATFORM) ||
           api_body_fail(body, "scopes", "only a key of tenant 'platform' is an operator's");
}

// An empty list takes an old key's away.
static void take_ranges(ApiBody *body, ApiKey *key)
{
    json_t *list = NULL;
    if (!api_read_array(body, "allowed_cidrs", API_KEY_CIDRS_MAX, &list) || list == NULL) {
        return;
    }
    key->allowed_cidrs = arena_array(body->arena, API_KEY_CIDRS_MAX, sizeof *key->allowed_cidrs);
    key->n_allowed_cidrs = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        HttpProxies one;
        Error err;
        Str text = str_from(json_string_value(json_array_get(list, i)));
        if (!http_proxies_parse(text, &one, &err) || one.count != 1) {
            (void)api_body_fail(
                body, arena_printf(body->arena, "allowed_cidrs[%zu]", i),
                "neither an address nor a range such as 10.0.0.0/8");
            continue;
        }
        key->allowed_cidrs[key->n_allowed_cidrs++] = arena_cstr(body->arena, str_trim(text));
    }
}

static bool take_expiry(ApiBody *body, ApiKey *key)
{
    return api_read_time(body, "expires_at", &key->expires_at_us) &&
           (key->expires_at_us == 0 || key->expires_at_us > key->created_at_us ||
            api_body_fail(body, "expires_at", "must be in the future"));
}

bool api_key_take_body(ApiBody *body, ApiKey *key)
{
    (void)take_name(body, key);
    (void)take_scopes(body, key);
    take_ranges(body, key);
    return take_expiry(body, key);
}
