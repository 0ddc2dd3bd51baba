// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/suppressions/link_revocations_api.h"

#include "common/api/api_json.h"
#include "common/api/config_read.h"
#include "common/api/config_write.h"
#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/config/link_revocations.h"
#include "common/model/address.h"

enum { NOTE_MAX = 500 };

// Lives in the request's arena.
typedef struct Put {
    ApiCall *call;
    Bus *bus;
    Stentor__V1__LinkRevocation entry;
    char key[LINK_REVOCATION_KEY_SIZE];
    char subject[SUBJECT_SIZE];
} Put;

typedef struct Fields {
    Str notification_id, recipient_id, address, note;
    bool all;
    int64_t before_us;
} Fields;

// ---- answers ----

static void set_text(json_t *object, const char *name, const char *value)
{
    if (value[0] != '\0') {
        (void)json_object_set_new(object, name, json_string(value));
    }
}

static void set_time(json_t *object, const char *name, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    if (at_us != 0) {
        clock_format(at_us, text);
        set_text(object, name, text);
    }
}

static void answer(const Put *put, const Stentor__V1__LinkRevocation *entry, int status)
{
    json_t *object = json_object();
    set_text(object, "revoked", put->key);
    set_text(object, "notification_id", entry->notification_id);
    set_text(object, "recipient_id", entry->recipient_id);
    set_time(object, "before", entry->before_us);
    set_time(object, "revoked_at", entry->revoked_at_us);
    set_text(object, "revoked_by", entry->revoked_by);
    set_text(object, "note", entry->note);
    api_answer_json(put->call, status, object);
}

// ---- storing ----

static void on_stored(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    (void)payload, (void)sequence;
    const Put *put = ctx;
    if (err != NULL && err->kind == ERROR_CONFLICT) {
        Problem problem = {.status = 409, .slug = "revocation-changed"};
        problem.title = "Another call changed the revocation at this moment";
        api_answer_problem(put->call, &problem);
    } else if (err != NULL) {
        api_answer_failure(put->call, err);
    } else {
        answer(put, &put->entry, 201);
    }
}

// Who was erased does not come back by a mistake of an operator.
static bool is_kept(const Put *put, const Stentor__V1__LinkRevocation *there)
{
    return there != NULL && str_eq(str_from(there->revoked_by), STR("erasure")) &&
           put->entry.before_us != 0 && put->entry.before_us <= there->before_us;
}

static void on_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Put *put = ctx;
    Arena *arena = put->call->http->arena;
    if (err != NULL) {
        api_answer_failure(put->call, err);
        return;
    }
    const Stentor__V1__LinkRevocation *there =
        payload.len == 0 ? NULL
                         : (const Stentor__V1__LinkRevocation *)event_unpack(
                               &stentor__v1__link_revocation__descriptor, payload, arena, NULL);
    if (is_kept(put, there)) {
        answer(put, there, 200);
        return;
    }
    config_write(
        &(ConfigWrite){
            .bus = put->bus,
            .arena = arena,
            .kind = LINK_REVOCATION_KIND,
            .tenant = str_from(put->entry.tenant),
            .key = str_from(put->key),
            .message = &put->entry.base,
            .replaces = sequence,
        },
        on_stored, put);
}

// ---- the call ----

static bool read_address(
    const LinkRevocationsApi *api, ApiBody *body, const Fields *fields, Put *put)
{
    Arena *arena = put->call->http->arena;
    char reason[ADDRESS_REASON_SIZE];
    Str address = STR_EMPTY;
    if (!address_parse(fields->address, arena, &address, reason)) {
        return api_body_fail(body, "address", "%s", reason);
    }
    uint8_t *hash = arena_alloc(arena, ADDRESS_HASH_LEN);
    address_hash(api->hash_keys.keys[0], str_from(put->call->tenant), CHANNEL_EMAIL, address, hash);
    put->entry.address_hash = pb_data(str_of(hash, ADDRESS_HASH_LEN));
    return true;
}

static bool check(ApiBody *body, const Fields *fields, Put *put)
{
    int named = (fields->notification_id.len > 0) + (fields->recipient_id.len > 0) +
                (fields->address.len > 0) + (fields->all ? 1 : 0);
    if (named != 1) {
        return api_body_fail(
            body, "recipient_id",
            "give one of 'notification_id', 'recipient_id', 'address', and '\"all\": true' with "
            "'before'");
    }
    if (fields->all && fields->before_us == 0) {
        return api_body_fail(body, "before", "required with 'all'");
    }
    if (!link_revocation_key(put->key, &put->entry)) {
        return fields->notification_id.len > 0
                   ? api_body_fail(body, "notification_id", "not an id such as 'ntf_...'")
                   : api_body_fail(body, "recipient_id", "not an id such as 'rcp_...'");
    }
    return true;
}

// A notification's links end whenever it was due, all others before now unless a time is named.
static bool read_body(const LinkRevocationsApi *api, ApiBody *body, Put *put)
{
    Arena *arena = put->call->http->arena;
    Fields fields = {.all = false};
    fields.notification_id = fields.recipient_id = fields.address = fields.note = STR_EMPTY;
    (void)api_read_text(body, "notification_id", ID_SIZE, &fields.notification_id);
    (void)api_read_text(body, "recipient_id", ID_SIZE, &fields.recipient_id);
    (void)api_read_text(body, "address", ADDRESS_MAX, &fields.address);
    (void)api_read_text(body, "note", NOTE_MAX, &fields.note);
    (void)api_read_bool(body, "all", &fields.all);
    (void)api_read_time(body, "before", &fields.before_us);
    if (!api_body_end(body)) {
        return false;
    }
    put->entry.notification_id = arena_cstr(arena, fields.notification_id);
    put->entry.recipient_id = arena_cstr(arena, fields.recipient_id);
    put->entry.note = arena_cstr(arena, fields.note);
    put->entry.before_us = fields.before_us;
    if (fields.before_us == 0 && fields.notification_id.len == 0 && !fields.all) {
        put->entry.before_us = put->call->http->received_at_us;
    }
    return (fields.address.len == 0 || read_address(api, body, &fields, put)) &&
           check(body, &fields, put);
}

static void post_revocation(ApiCall *call)
{
    const LinkRevocationsApi *api = call->ctx;
    Arena *arena = call->http->arena;
    Put *put = arena_zalloc(arena, sizeof *put);
    put->call = call;
    put->bus = api->bus;
    stentor__v1__link_revocation__init(&put->entry);
    put->entry.tenant = call->tenant;
    put->entry.revoked_at_us = call->http->received_at_us;
    put->entry.revoked_by = arena_cstr(arena, call->key_id);
    ApiBody body = {0};
    bool ok = api_body_parse(&body, call->http->body, arena) && read_body(api, &body, put);
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    if (ok) {
        subject_config(
            put->subject, LINK_REVOCATION_KIND, str_from(put->entry.tenant), str_from(put->key));
        config_read(put->bus, put->subject, arena, on_read, put);
    }
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/link-revocations", SCOPE_TENANTS_OPERATE, post_revocation, NULL, false},
};

void link_revocations_api_add(Api *api, LinkRevocationsApi *revocations)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], revocations);
}
