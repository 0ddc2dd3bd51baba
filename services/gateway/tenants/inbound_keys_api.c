// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/tenants/inbound_keys_api.h"

#include "common/api/api_json.h"
#include "common/api/config_read.h"
#include "common/api/config_write.h"
#include "common/api/precondition.h"
#include "common/bus/topology/topology.h"

enum { PUBLIC_KEY_MAX = 4096 };

// Lives in the request's arena.
typedef struct Put {
    ApiCall *base;
    Bus *bus;
    Precondition needs;
    Stentor__V1__InboundKey key;
} Put;

static void on_stored(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    (void)payload;
    const Put *put = ctx;
    bool conflict = err != NULL && err->kind == ERROR_CONFLICT;
    if (conflict && precondition_is_given(&put->needs)) {
        precondition_answer_failed(put->base, sequence);
    } else if (conflict) {
        Problem problem = {.status = 409, .slug = "key-changed"};
        problem.title = "Another call changed the key at this moment";
        api_answer_problem(put->base, &problem);
    } else if (err != NULL) {
        api_answer_failure(put->base, err);
    } else {
        const char *text = arena_printf(
            put->base->http->arena, "{\"tenant\":\"%s\",\"vendor\":\"%s\",\"state\":\"%s\"}",
            put->key.tenant, put->key.vendor, put->key.revoked ? "revoked" : "active");
        precondition_tag(put->base, sequence);
        http_respond(put->base->http, 200, "application/json", str_from(text));
    }
}

static void on_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Put *put = ctx;
    uint64_t there = payload.len == 0 ? 0 : sequence;
    if (err != NULL) {
        api_answer_failure(put->base, err);
        return;
    }
    if (!precondition_holds(&put->needs, there)) {
        precondition_answer_failed(put->base, there);
        return;
    }
    if (config_is_same(&put->key.base, payload, put->base->http->arena)) {
        on_stored(put, NULL, payload, sequence);
        return;
    }
    config_write(
        &(ConfigWrite){
            .bus = put->bus,
            .arena = put->base->http->arena,
            .kind = "inbound",
            .tenant = str_from(put->key.tenant),
            .key = str_from(put->key.vendor),
            .message = &put->key.base,
            .replaces = sequence,
        },
        on_stored, put);
}

// false: answered.
static bool read_key(Put *put)
{
    ApiBody body = {0};
    Arena *arena = put->base->http->arena;
    Str key = STR_EMPTY;
    bool revoked = false;
    bool ok = api_body_parse(&body, put->base->http->body, arena);
    if (ok) {
        (void)api_read_text(&body, "public_key", PUBLIC_KEY_MAX, &key);
        (void)api_read_bool(&body, "revoked", &revoked);
        if (!revoked && key.len == 0) {
            (void)api_body_fail(
                &body, "public_key", "required: the public key as the vendor's console shows it");
        }
        ok = api_body_end(&body);
    }
    put->key.public_key = arena_cstr(arena, key);
    put->key.revoked = revoked;
    if (!ok) {
        api_answer_problem(put->base, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static void put_key(ApiCall *base)
{
    const InboundKeysApi *keys = base->ctx;
    Arena *arena = base->http->arena;
    Put *put = arena_zalloc(arena, sizeof *put);
    put->base = base;
    put->bus = keys->bus;
    stentor__v1__inbound_key__init(&put->key);
    put->key.tenant = base->tenant;
    put->key.vendor = arena_cstr(arena, base->params[0]);
    if (!str_eq(base->params[0], STR("sendgrid"))) {
        api_answer_missing(base, "such vendor (known: sendgrid)");
        return;
    }
    if (precondition_read(base, &put->needs) && read_key(put)) {
        char *subject = arena_alloc(arena, SUBJECT_SIZE);
        subject_config(subject, "inbound", str_from(base->tenant), base->params[0]);
        config_read(put->bus, subject, arena, on_read, put);
    }
}

static const ApiRoute ROUTES[] = {
    {"PUT", "/v1/tenant/inbound-keys/{}", SCOPE_TENANTS_OPERATE, put_key, NULL, true},
};

void inbound_keys_api_add(Api *api, InboundKeysApi *keys)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], keys);
}
