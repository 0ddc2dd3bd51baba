// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/inbox/inbox_tokens.h"

#include "common/api/api_json.h"
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/events/sealed.h"
#include "common/feed/feed_event.h"
#include "common/feed/inbox_token.h"
#include "common/model/channel_address.h"
#include "services/gateway/inbox/inbox_owner.h"
#include "stentor/v1/request.pb-c.h"

enum { TTL_DEFAULT_S = 900, ID_MAX = 64 };

// The in-app address that the gate would take (gate_records.c), or null for the id itself.
static const DbStatement ADDRESS = {
    "inbox_address",
    "SELECT a.address FROM people.recipients r LEFT JOIN LATERAL (SELECT q.address FROM"
    " people.addresses q WHERE q.tenant_id = r.tenant_id AND q.recipient_id = r.recipient_id AND"
    " q.channel = 'inapp' AND q.status = 'active' ORDER BY q.is_primary DESC, q.position LIMIT 1)"
    " a ON true WHERE r.tenant_id = $1::text AND r.recipient_id = $2::text AND r.sequence > 0"};

// One call; in the request's arena.
typedef struct Call {
    InboxTokens *tokens;
    ApiCall *base;
    Str to;
    Str recipient_id;
    int64_t ttl_s;
    const Stentor__V1__Sealed *sealed;
    KeyWant want;
    InboxOwner owner;
} Call;

static void answer(const Call *call, Str address)
{
    char text[INBOX_TOKEN_SIZE];
    char expires[CLOCK_RFC3339_SIZE];
    InboxToken token = {0};
    const MasterKey *master = call->tokens->master;
    Str tenant = str_from(call->base->tenant);
    (void)str_to_c(tenant, token.tenant, sizeof token.tenant);
    (void)str_to_c(call->recipient_id, token.recipient_id, sizeof token.recipient_id);
    int64_t until_us = call->base->http->received_at_us + call->ttl_s * INT64_C(1000000);
    token.expires_at_us = until_us / 1000000 * 1000000;
    feed_recipient(master, tenant, address, token.recipient);
    inbox_token_make(master, &token, text);
    clock_format(token.expires_at_us, expires);
    http_response_header(call->base->http, "Cache-Control", STR("no-store"));
    api_answer_json(call->base, 201, json_pack("{s:s, s:s}", "token", text, "expires_at", expires));
}

static void on_key_found(void *ctx, const Error *err)
{
    Call *call = ctx;
    Str packed;
    Arena *arena = call->base->http->arena;
    Error unreadable = {0};
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const Stentor__V1__Address *address =
        call->want.key != NULL &&
                unseal(
                    call->want.key, str_from(call->base->tenant), call->recipient_id, "address",
                    call->sealed, arena, &packed, &unreadable)
            ? (const Stentor__V1__Address *)event_unpack(
                  &stentor__v1__address__descriptor, packed, arena, &unreadable)
            : NULL;
    if (address == NULL) {
        api_answer_missing(
            call->base,
            arena_printf(arena, "recipient '" STR_FMT "'", STR_ARG(call->recipient_id)));
        return;
    }
    answer(call, str_from(address->address));
}

static void on_address_read(void *ctx, DbTxn *txn, const Error *err)
{
    Call *call = ctx;
    Arena *arena = call->base->http->arena;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 0);
    if (db_rows(rows) == 0) {
        api_answer_missing(
            call->base,
            arena_printf(arena, "recipient '" STR_FMT "'", STR_ARG(call->recipient_id)));
        return;
    }
    if (db_is_null(rows, 0, 0)) {
        answer(call, call->recipient_id);
        return;
    }
    call->sealed = (const Stentor__V1__Sealed *)event_unpack(
        &stentor__v1__sealed__descriptor, arena_str(arena, db_get_text(rows, 0, 0)), arena, NULL);
    if (!sealed_names_key(call->sealed)) {
        api_answer_failure(
            call->base, &(Error){.kind = ERROR_PERMANENT, .text = "an address without its key"});
        return;
    }
    call->want = key_want_of(str_from(call->base->tenant), call->sealed);
    keyring_resolve(call->tokens->keyring, &call->want, 1, on_key_found, call);
}

static void on_owner_found(InboxOwner *owner, const Error *err)
{
    Call *call = owner->ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    call->recipient_id = owner->id;
    answer(call, call->to);
}

static void find_owner(Call *call)
{
    call->owner = (InboxOwner){
        .pool = call->tokens->pool,
        .master = call->tokens->master,
        .http = call->base->http,
        .tenant = str_from(call->base->tenant),
        .address = call->to,
        .done = on_owner_found,
        .ctx = call,
    };
    inbox_owner_find(&call->owner);
}

static void look_up(Call *call)
{
    DbTxn *txn = db_txn_new(call->tokens->pool);
    db_txn_tenant(txn, str_from(call->base->tenant));
    DbParams *p = db_txn_add(txn, &ADDRESS, NULL);
    db_text(p, str_from(call->base->tenant));
    db_text(p, call->recipient_id);
    db_txn_submit(txn, on_address_read, call);
}

static void check(Call *call, ApiBody *body)
{
    char reason[ADDRESS_REASON_SIZE];
    if ((call->to.len > 0) == (call->recipient_id.len > 0)) {
        (void)api_body_fail(
            body, "to",
            "required: 'to', the user's in-app address, or 'recipient_id'; one of both");
    } else if (call->recipient_id.len > 0) {
        if (!id_parse(call->recipient_id, "rcp_", NULL)) {
            (void)api_body_fail(body, "recipient_id", "not 'rcp_' and a ULID");
        }
    } else if (!people_address_check(CHANNEL_INAPP, call->to, body->arena, &call->to, reason)) {
        (void)api_body_fail(body, "to", "%s", reason);
    }
}

static void post_token(ApiCall *base)
{
    ApiBody body = {0};
    HttpRequest *http = base->http;
    Call *call = arena_zalloc(http->arena, sizeof *call);
    *call = (Call){.tokens = base->ctx, .base = base, .ttl_s = TTL_DEFAULT_S};
    bool good = api_body_parse(&body, http->body, http->arena);
    if (good) {
        (void)api_read_text(&body, "to", PEOPLE_ADDRESS_MAX, &call->to);
        (void)api_read_text(&body, "recipient_id", ID_MAX, &call->recipient_id);
        (void)api_read_int(
            &body, "ttl_seconds", INBOX_TOKEN_S_MIN, INBOX_TOKEN_S_MAX, &call->ttl_s);
        check(call, &body);
        good = api_body_end(&body);
    }
    if (!good) {
        api_answer_problem(base, &body.problem);
    } else if (call->recipient_id.len > 0) {
        look_up(call);
    } else {
        find_owner(call);
    }
    api_body_free(&body);
}

void inbox_tokens_add(Api *api, InboxTokens *tokens)
{
    static const ApiRoute routes[] = {
        {"POST", "/v1/inbox/tokens", SCOPE_INBOX_TOKEN, post_token, NULL, false},
    };
    api_add(api, routes, sizeof routes / sizeof routes[0], tokens);
}
