// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/inbox/inbox_keys_api.h"

#include "common/api/api_json.h"
#include "common/api/config_change.h"
#include "common/api/config_read.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"

static const Str PATH = {"/v1/inbox/keys", 14};

// One change; lives in the request's arena.
typedef struct Change {
    ConfigChange base; // first
    Str id;            // of the key that is revoked
    Stentor__V1__InboxKeys entry;
    const Stentor__V1__InboxKey *made;
    char secret[INBOX_SECRET_SIZE];
} Change;

bool inbox_keys_is_path(Str path)
{
    return str_starts(path, PATH) && (path.len == PATH.len || path.ptr[PATH.len] == '/');
}

void inbox_keys_changed(InboxKeys *known, Str tenant, Str payload)
{
    Error err = {0};
    if (!inbox_keys_put(known, tenant, payload, &err)) {
        LOG(LOG_ERROR,
            "keys of a tenant's inboxes cannot be read; tokens signed with them are refused",
            log_str("tenant", tenant), log_error(&err));
    }
}

static json_t *key_json(const Stentor__V1__InboxKey *key)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(key->created_at_us, at);
    return json_pack(
        "{s:s, s:s, s:s}", "id", key->id, "created_at", at, "created_by", key->created_by);
}

// false: answered. Without an entry *ret is one without keys.
static bool read_entry(ApiCall *call, Str payload, Stentor__V1__InboxKeys *ret)
{
    Error err = {0};
    stentor__v1__inbox_keys__init(ret);
    if (payload.len > 0) {
        const Stentor__V1__InboxKeys *there = (const Stentor__V1__InboxKeys *)event_unpack(
            &stentor__v1__inbox_keys__descriptor, payload, call->http->arena, &err);
        if (there == NULL) {
            api_answer_failure(call, &err);
            return false;
        }
        *ret = *there;
    }
    ret->tenant = call->tenant;
    return true;
}

// ---- GET ----

static void on_shown(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    (void)sequence;
    ApiCall *call = ctx;
    Stentor__V1__InboxKeys entry;
    if (err != NULL) {
        api_answer_failure(call, err);
        return;
    }
    if (!read_entry(call, payload, &entry)) {
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < entry.n_keys; i++) {
        (void)json_array_append_new(list, key_json(entry.keys[i]));
    }
    api_answer_json(call, 200, json_pack("{s:o, s:n}", "data", list, "next"));
}

static void list_keys(ApiCall *call)
{
    const InboxKeysApi *api = call->ctx;
    char *subject = arena_alloc(call->http->arena, SUBJECT_SIZE);
    subject_config(subject, INBOX_KEYS_KIND, str_from(call->tenant), STR(INBOX_KEYS_KEY));
    config_read(api->bus, subject, call->http->arena, on_shown, call);
}

// ---- changes ----

static bool take_stored(ConfigChange *base, Str payload, uint64_t sequence)
{
    (void)sequence;
    const InboxKeysApi *api = base->call->ctx;
    inbox_keys_changed(api->known, str_from(base->call->tenant), payload);
    return true;
}

static Change *change_new(ApiCall *call)
{
    const InboxKeysApi *api = call->ctx;
    Change *change = (Change *)config_change_new(
        call, sizeof *change, api->bus, INBOX_KEYS_KIND, STR(INBOX_KEYS_KEY));
    change->base.conflict_slug = "keys-changed";
    change->base.conflict_title = "Another call changed the keys at this moment; try again";
    change->base.take = take_stored;
    return change;
}

static bool make_added(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    Change *change = (Change *)base;
    ApiCall *call = base->call;
    const InboxKeysApi *api = call->ctx;
    if (!read_entry(call, there, &change->entry)) {
        return false;
    }
    if (change->entry.n_keys >= INBOX_KEYS_MAX) {
        Problem problem = {
            .status = 409,
            .slug = "too-many-keys",
            .title = "There are as many keys as may be",
            .detail = "a tenant has at most 4; revoke one that is not used any more: DELETE "
                      "/v1/inbox/keys/{id}",
        };
        api_answer_problem(call, &problem);
        return false;
    }
    Stentor__V1__InboxKey *key = inbox_keys_add(
        &change->entry, api->master, call->http->received_at_us, call->http->arena, change->secret);
    key->created_by = arena_cstr(call->http->arena, call->key_id);
    change->made = key;
    *ret = &change->entry.base;
    return true;
}

static void answer_added(ConfigChange *base, Str payload)
{
    (void)payload;
    const Change *change = (const Change *)base;
    json_t *object = key_json(change->made);
    (void)json_object_set_new(object, "secret", json_string(change->secret));
    http_response_header(base->call->http, "Cache-Control", STR("no-store"));
    api_answer_json(base->call, 201, object);
}

// A body may be left out: there is nothing to say.
static void add_key(ApiCall *call)
{
    ApiBody body = {0};
    Str text = call->http->body;
    bool ok = api_body_parse(&body, text.len > 0 ? text : STR("{}"), call->http->arena) &&
              api_body_end(&body);
    if (ok) {
        Change *change = change_new(call);
        change->base.make = make_added;
        change->base.answer = answer_added;
        config_change_run(&change->base);
    } else {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
}

static void answer_unknown(ApiCall *call, Str id)
{
    api_answer_missing(
        call, arena_printf(call->http->arena, "inbox key '" STR_FMT "'", STR_ARG(id)));
}

static bool make_revoked(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    Change *change = (Change *)base;
    if (!read_entry(base->call, there, &change->entry)) {
        return false;
    }
    if (!inbox_keys_remove(&change->entry, change->id)) {
        answer_unknown(base->call, change->id);
        return false;
    }
    *ret = change->entry.n_keys > 0 ? &change->entry.base : NULL;
    return true;
}

static void revoke_key(ApiCall *call)
{
    if (!id_parse(call->params[0], INBOX_KEY_PREFIX, NULL)) {
        answer_unknown(call, call->params[0]);
        return;
    }
    Change *change = change_new(call);
    change->id = call->params[0];
    change->base.make = make_revoked;
    change->base.answer = config_change_answer_removed;
    config_change_run(&change->base);
}

void inbox_keys_api_add(Api *api, InboxKeysApi *keys)
{
    static const ApiRoute routes[] = {
        {"GET", "/v1/inbox/keys", SCOPE_KEYS_MANAGE, list_keys, NULL, false},
        {"POST", "/v1/inbox/keys", SCOPE_KEYS_MANAGE, add_key, NULL, false},
        {"DELETE", "/v1/inbox/keys/{}", SCOPE_KEYS_MANAGE, revoke_key, NULL, false},
    };
    api_add(api, routes, sizeof routes / sizeof routes[0], keys);
}
