// SPDX-License-Identifier: Apache-2.0
// A rotation stores the new key first, then the old one's end: killed in between, the old one goes
// on and the new one, which was shown to no caller, is in the list.
#include "services/gateway/tenants/api_keys_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/api_json.h"
#include "common/api/api_key.h"
#include "common/api/config_read.h"
#include "common/api/config_write.h"
#include "common/api/page.h"
#include "common/api/precondition.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/map.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"

enum {
    PATH_MAX_BYTES = 128,
    OVERLAP_DEFAULT_S = 86400,
    OVERLAP_MAX_S = 366 * 86400,
};

static const int64_t SECOND_US = 1000000;

typedef Stentor__V1__ApiKey ApiKey;

struct ApiKeysApi {
    Bus *bus;
    Auth *auth;
    const Catalog *catalog;
    KeyLastUse last;
    Map *entries; // "<tenant>/<key id>" -> Entry
};

typedef struct Entry {
    uint64_t sequence;
    size_t len;
    char bytes[]; // a packed stentor.v1.ApiKey
} Entry;

// One change; lives in the request's arena.
typedef struct KeyCall KeyCall;

struct KeyCall {
    ApiKeysApi *api;
    ApiCall *base;
    ApiKey made;       // of POST
    const char *whole; // its text
    uint64_t made_sequence;
    ApiKey *old; // that ends; NULL: none
    uint64_t old_sequence;
    int64_t overlap_s;
    Precondition needs;            // of the old one
    void (*change)(KeyCall *call); // with the old one
};

ApiKeysApi *api_keys_api_new(Bus *bus, Auth *auth, const Catalog *catalog, const KeyLastUse *last)
{
    ApiKeysApi *keys = xcalloc(1, sizeof *keys);
    keys->bus = bus;
    keys->auth = auth;
    keys->catalog = catalog;
    keys->last = *last;
    keys->entries = map_new(free);
    return keys;
}

void api_keys_api_free(ApiKeysApi *keys)
{
    if (keys != NULL) {
        map_free(keys->entries);
        free(keys);
    }
}

// ---- what is known ----

static Str path_of(char out[PATH_MAX_BYTES], Str tenant, Str key_id)
{
    int len = snprintf(
        out, PATH_MAX_BYTES, STR_FMT "/" STR_FMT, STR_ARG(tenant),
        STR_ARG(api_key_bare_id(key_id)));
    return len > 0 && len < PATH_MAX_BYTES ? str_of(out, (size_t)len) : STR_EMPTY;
}

void api_keys_api_changed(ApiKeysApi *keys, Str tenant, Str key_id, Str payload, uint64_t sequence)
{
    char path[PATH_MAX_BYTES];
    Str place = path_of(path, tenant, key_id);
    if (payload.len == 0) {
        (void)map_remove(keys->entries, place);
        return;
    }
    Entry *entry = xmalloc(sizeof *entry + payload.len);
    entry->sequence = sequence;
    entry->len = payload.len;
    memcpy(entry->bytes, payload.ptr, payload.len);
    map_put(keys->entries, place, entry);
}

static ApiKey *unpack(const Entry *entry, Arena *arena)
{
    return (ApiKey *)event_unpack(
        &stentor__v1__api_key__descriptor, str_of(entry->bytes, entry->len), arena, NULL);
}

// NULL: answered.
static ApiKey *find_key(ApiCall *call, uint64_t *ret_sequence)
{
    char path[PATH_MAX_BYTES];
    const ApiKeysApi *keys = call->ctx;
    Str id = api_key_bare_id(call->params[0]);
    const Entry *entry =
        id_is_key(id) ? map_get(keys->entries, path_of(path, str_from(call->tenant), id)) : NULL;
    ApiKey *key = entry == NULL ? NULL : unpack(entry, call->http->arena);
    if (key == NULL) {
        api_answer_missing(
            call, arena_printf(
                      call->http->arena, "API key '" STR_FMT "' of tenant '%s'",
                      STR_ARG(str_slice(id, 0, 64)), call->tenant));
        return NULL;
    }
    *ret_sequence = entry->sequence;
    return key;
}

// ---- what the caller may ----

// false: answered, 403 with the first scope that is missing.
static bool may_manage(ApiCall *call, ScopeSet scopes)
{
    for (Scope scope = SCOPE_NONE + 1; scope < SCOPE_COUNT; scope++) {
        if ((scopes & SCOPE_BIT(scope)) != 0 && !api_need_scope(call, scope)) {
            return false;
        }
    }
    return true;
}

// ---- answers ----

static void answer_key(ApiCall *call, const ApiKey *key, uint64_t sequence)
{
    precondition_tag(call, sequence);
    api_answer_json(call, 200, api_key_json(key, call->http->received_at_us));
}

static void answer_conflict(ApiCall *call)
{
    Problem problem = {.status = 409, .slug = "key-changed"};
    problem.title = "Another call changed the key at this moment: read it again";
    api_answer_problem(call, &problem);
}

// The key works at once, and what it sends is refused until the tenant is there.
static void warn_of_unknown(const KeyCall *call, json_t *json)
{
    const char *tenant = call->base->tenant;
    if (catalog_standing(call->api->catalog, str_from(tenant)) == STANDING_UNKNOWN) {
        const char *text = arena_printf(
            call->base->http->arena,
            "tenant '%s' is not known, so its notifications are refused: stentor tenant put %s",
            tenant, tenant);
        (void)json_object_set_new(json, "warnings", json_pack("[s]", text));
    }
}

static void answer_made(const KeyCall *call, bool ended)
{
    char until[CLOCK_RFC3339_SIZE];
    json_t *json = api_key_json(&call->made, call->base->http->received_at_us);
    (void)json_object_set_new(json, "key", json_string(call->whole));
    warn_of_unknown(call, json);
    if (call->old != NULL) {
        clock_format(call->old->revoked_at_us, until);
        (void)json_object_set_new(
            json, "old_valid_until", ended ? json_string(until) : json_null());
    }
    precondition_tag(call->base, call->made_sequence);
    api_answer_json(call->base, 201, json);
}

// ---- storing ----

static void store(KeyCall *call, const ApiKey *key, uint64_t replaces, ConfigWritten done)
{
    config_write(
        &(ConfigWrite){
            .bus = call->api->bus,
            .arena = call->base->http->arena,
            .kind = "apikey",
            .tenant = str_from(key->tenant),
            .key = str_from(key->key_id),
            .message = &key->base,
            .replaces = replaces,
        },
        done, call);
}

// The mirror brings it in a moment; until then this process's next call must not meet the old one.
static void note_stored(const KeyCall *call, const ApiKey *key, Str payload, uint64_t sequence)
{
    Error ignored = {0};
    Str tenant = str_from(key->tenant);
    (void)auth_changed(call->api->auth, tenant, str_from(key->key_id), payload, &ignored);
    api_keys_api_changed(call->api, tenant, str_from(key->key_id), payload, sequence);
}

static void on_old_ended(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    KeyCall *call = ctx;
    if (err == NULL) {
        note_stored(call, call->old, payload, sequence);
    }
    answer_made(call, err == NULL); // the secret is shown now or never
}

static void on_made(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    KeyCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    note_stored(call, &call->made, payload, sequence);
    call->made_sequence = sequence;
    int64_t now_us = call->made.created_at_us;
    if (call->old != NULL && api_key_end(call->old, now_us + call->overlap_s * SECOND_US, now_us)) {
        store(call, call->old, call->old_sequence, on_old_ended);
    } else {
        answer_made(call, true);
    }
}

static void on_revoked(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    KeyCall *call = ctx;
    bool conflict = err != NULL && err->kind == ERROR_CONFLICT;
    if (conflict && precondition_is_given(&call->needs)) {
        precondition_answer_failed(call->base, sequence);
    } else if (conflict) {
        answer_conflict(call->base);
    } else if (err != NULL) {
        api_answer_failure(call->base, err);
    } else {
        note_stored(call, call->old, payload, sequence);
        answer_key(call->base, call->old, sequence);
    }
}

// ---- the body ----

// The key that the caller showed; NULL: it is not known here yet, or any more.
static const ApiKey *key_of_caller(const ApiCall *call)
{
    char path[PATH_MAX_BYTES];
    const ApiKeysApi *keys = call->ctx;
    Str tenant = call->operates ? AUTH_PLATFORM : str_from(call->tenant);
    const Entry *entry = map_get(keys->entries, path_of(path, tenant, call->key_id));
    return entry != NULL ? unpack(entry, call->http->arena) : NULL;
}

static bool has_range(const ApiKey *key, const char *range)
{
    for (size_t i = 0; i < key->n_allowed_cidrs; i++) {
        if (strcmp(key->allowed_cidrs[i], range) == 0) {
            return true;
        }
    }
    return false;
}

// A key that is bound to addresses makes none for others.
static bool check_ranges(ApiBody *body, KeyCall *call)
{
    const ApiKey *own = key_of_caller(call->base);
    if (own == NULL || own->n_allowed_cidrs == 0) {
        return true;
    }
    if (call->made.n_allowed_cidrs == 0) {
        call->made.allowed_cidrs = own->allowed_cidrs;
        call->made.n_allowed_cidrs = own->n_allowed_cidrs;
    }
    for (size_t i = 0; i < call->made.n_allowed_cidrs; i++) {
        if (!has_range(own, call->made.allowed_cidrs[i])) {
            return api_body_fail(
                body, arena_printf(body->arena, "allowed_cidrs[%zu]", i),
                "the key that you use is bound to addresses: name ranges of its own list only");
        }
    }
    return true;
}

// A key that ends makes none that outlives it.
static bool check_end(ApiBody *body, const KeyCall *call)
{
    char until[CLOCK_RFC3339_SIZE];
    const ApiKey *own = key_of_caller(call->base);
    int64_t end_us = own != NULL ? own->expires_at_us : 0;
    int64_t made_us = call->made.expires_at_us;
    if (end_us == 0 || (made_us != 0 && made_us <= end_us)) {
        return true;
    }
    clock_format(end_us, until);
    return api_body_fail(
        body, "expires_at", "at most %s: the key that you use expires then", until);
}

static bool take_key(ApiBody *body, KeyCall *call)
{
    (void)(api_key_take_body(body, &call->made) && check_end(body, call));
    (void)check_ranges(body, call);
    if (call->old != NULL) {
        (void)api_read_int(body, "overlap_seconds", 0, OVERLAP_MAX_S, &call->overlap_s);
    }
    return api_body_end(body);
}

// Fills in the fields of the body; the others stay. false: answered.
static bool read_body(KeyCall *call)
{
    ApiBody body = {0};
    Str text = call->base->http->body;
    bool ok = api_body_parse(&body, text.len > 0 ? text : STR("{}"), call->base->http->arena) &&
              take_key(&body, call);
    if (!ok) {
        api_answer_problem(call->base, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// ---- the calls ----

static KeyCall *begin(ApiCall *base)
{
    KeyCall *call = arena_zalloc(base->http->arena, sizeof *call);
    call->api = base->ctx;
    call->base = base;
    call->overlap_s = OVERLAP_DEFAULT_S;
    return call;
}

static void make(KeyCall *call)
{
    if (read_body(call) && may_manage(call->base, auth_scopes(&call->made))) {
        call->made.created_by = arena_cstr(call->base->http->arena, call->base->key_id);
        call->whole = api_key_make(&call->made, call->base->http->arena);
        store(call, &call->made, 0, on_made);
    }
}

static void post_key(ApiCall *base)
{
    KeyCall *call = begin(base);
    stentor__v1__api_key__init(&call->made);
    call->made.tenant = base->tenant;
    call->made.created_at_us = base->http->received_at_us;
    make(call);
}

static void on_old_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    KeyCall *call = ctx;
    Error own = {0};
    Arena *arena = call->base->http->arena;
    uint64_t there = payload.len == 0 ? 0 : sequence;
    call->old_sequence = sequence;
    if (err == NULL && precondition_holds(&call->needs, there) && there != 0) {
        call->old = (ApiKey *)event_unpack(&stentor__v1__api_key__descriptor, payload, arena, &own);
        err = call->old == NULL ? &own : NULL;
    } else if (err == NULL) {
        precondition_answer_failed(call->base, there);
        return;
    }
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    call->change(call);
}

// With a precondition the key is read from the log first, and just that is replaced.
static void change_old(ApiCall *base, void (*change)(KeyCall *call))
{
    KeyCall *call = begin(base);
    call->change = change;
    call->old = find_key(base, &call->old_sequence);
    if (call->old == NULL || !may_manage(base, auth_scopes(call->old)) ||
        !precondition_read(base, &call->needs)) {
        return;
    }
    if (!precondition_is_given(&call->needs)) {
        change(call);
        return;
    }
    char *subject = arena_alloc(base->http->arena, SUBJECT_SIZE);
    subject_config(subject, "apikey", str_from(base->tenant), str_from(call->old->key_id));
    config_read(call->api->bus, subject, base->http->arena, on_old_read, call);
}

static void rotate(KeyCall *call)
{
    int64_t now_us = call->base->http->received_at_us;
    if (api_key_is_revoked(call->old, now_us)) {
        Problem problem = {.status = 409, .slug = "key-revoked", .title = "The key is revoked"};
        (void)snprintf(
            problem.detail, sizeof problem.detail, "key '%.64s' is revoked; make a new one",
            call->old->key_id);
        api_answer_problem(call->base, &problem);
        return;
    }
    api_key_succeed(call->old, now_us, &call->made);
    make(call);
}

static void rotate_key(ApiCall *base)
{
    change_old(base, rotate);
}

static void revoke(KeyCall *call)
{
    int64_t now_us = call->base->http->received_at_us;
    if (api_key_end(call->old, now_us, now_us)) {
        store(call, call->old, call->old_sequence, on_revoked);
    } else {
        answer_key(call->base, call->old, call->old_sequence);
    }
}

static void revoke_key(ApiCall *base)
{
    change_old(base, revoke);
}

static void on_key_shown(ApiCall *call, json_t *keys, void *ctx)
{
    (void)ctx;
    json_t *key = json_incref(json_array_get(keys, 0));
    json_decref(keys);
    api_answer_json(call, 200, key);
}

static void get_key(ApiCall *base)
{
    uint64_t sequence = 0;
    const ApiKeysApi *keys = base->ctx;
    const ApiKey *key = find_key(base, &sequence);
    if (key != NULL) {
        json_t *list = json_pack("[o]", api_key_json(key, base->http->received_at_us));
        precondition_tag(base, sequence);
        key_last_use_add(&keys->last, base, list, on_key_shown, NULL);
    }
}

// ---- the list, in the order of ids ----

static int by_id(const void *a, const void *b)
{
    return strcmp((*(ApiKey *const *)a)->key_id, (*(ApiKey *const *)b)->key_id);
}

// Those that are over only with ?state=all.
static ApiKey **list_keys(const ApiCall *call, Str after, size_t *ret_count)
{
    const ApiKeysApi *keys = call->ctx;
    Arena *arena = call->http->arena;
    Str prefix = str_from(arena_printf(arena, "%s/", call->tenant));
    bool all = str_eq(http_query(call->http, "state"), STR("all"));
    ApiKey **list = arena_array(arena, map_count(keys->entries) + 1, sizeof *list);
    size_t count = 0;
    Str path;
    void *value = NULL;
    for (size_t cursor = 0; map_next(keys->entries, &cursor, &path, &value);) {
        bool wanted =
            str_starts(path, prefix) && str_cmp(str_slice(path, prefix.len, path.len), after) > 0;
        ApiKey *key = wanted ? unpack(value, arena) : NULL;
        if (key != NULL && (all || !api_key_is_over(key, call->http->received_at_us))) {
            list[count++] = key;
        }
    }
    qsort(list, count, sizeof *list, by_id);
    *ret_count = count;
    return list;
}

// ctx: the last id of the page; NULL: no more follow.
static void on_keys_shown(ApiCall *call, json_t *keys, void *ctx)
{
    page_answer(call, keys, str_from(ctx));
}

static void get_keys(ApiCall *call)
{
    FieldError wrong;
    Page page;
    Str state = http_query(call->http, "state");
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    if (state.len > 0 && !str_eq(state, STR("all")) && !str_eq(state, STR("active"))) {
        (void)field_error(&wrong, "state", "'active' (the default) or 'all'");
        api_answer_field(call, &wrong);
        return;
    }
    size_t count = 0;
    const ApiKeysApi *keys = call->ctx;
    ApiKey **list = list_keys(call, page.after, &count);
    json_t *shown = json_array();
    for (size_t i = 0; i < count && i < (size_t)page.limit; i++) {
        (void)json_array_append_new(shown, api_key_json(list[i], call->http->received_at_us));
    }
    bool more = json_array_size(shown) < count;
    const char *next = more ? list[json_array_size(shown) - 1]->key_id : NULL;
    key_last_use_add(&keys->last, call, shown, on_keys_shown, (void *)(uintptr_t)next);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/api-keys", SCOPE_KEYS_MANAGE, get_keys, "limit cursor state", false},
    {"POST", "/v1/api-keys", SCOPE_KEYS_MANAGE, post_key, NULL, false},
    {"GET", "/v1/api-keys/{}", SCOPE_KEYS_MANAGE, get_key, NULL, false},
    {"DELETE", "/v1/api-keys/{}", SCOPE_KEYS_MANAGE, revoke_key, NULL, true},
    {"POST", "/v1/api-keys/{}/rotate", SCOPE_KEYS_MANAGE, rotate_key, NULL, true},
};

void api_keys_api_add(Api *api, ApiKeysApi *keys)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], keys);
}
