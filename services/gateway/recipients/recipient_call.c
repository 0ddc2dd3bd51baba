// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/recipients/recipient_call.h"

#include "common/recipients/people_sql.h"
#include "services/gateway/recipients/recipients_read.h"

enum { BODY_TEXT_MAX = PERSON_LINE_MAX, GUARD_TRIES_MAX = 16 };

Str recipients_api_hash_key(const RecipientsApi *people)
{
    return master_oldest_hash_key(keyring_master(people->keyring));
}

RecipientCall *recipient_call_new(ApiCall *base)
{
    RecipientCall *call = arena_zalloc(base->http->arena, sizeof *call);
    call->api = base->ctx;
    call->base = base;
    return call;
}

void recipient_call_answer(RecipientCall *call, int status, const Buf *json)
{
    http_respond(call->base->http, status, "application/json", buf_view(json));
}

// ---- checks ----

bool recipients_api_writable(ApiCall *call)
{
    const RecipientsApi *api = call->ctx;
    const char *why = recipients_write_unready(api->bus);
    if (why != NULL) {
        api_answer_unavailable(call, why);
    }
    return why == NULL;
}

bool recipient_call_may_write(RecipientCall *call)
{
    return recipients_api_writable(call->base) && precondition_read(call->base, &call->needs);
}

bool recipient_call_check_id(RecipientCall *call)
{
    call->id = call->base->params[0];
    return id_parse(call->id, "rcp_", NULL) ||
           api_refuse_field(call->base, "id", "not a recipient's id ('rcp_' and a ULID)");
}

// Parses the body, has it read, and answers what is wrong with it.
bool recipient_call_read_body(
    RecipientCall *call, const char *array, bool (*take)(RecipientCall *call, ApiBody *body),
    Str text)
{
    ApiBody body = {0};
    if (text.len > BODY_TEXT_MAX) {
        Problem problem = {
            .status = 422,
            .slug = "invalid-body",
            .title = "The body is not valid",
            .detail = "the body is longer than 65536 bytes",
        };
        api_answer_problem(call->base, &problem);
        return false;
    }
    bool ok = person_body_parse(&body, array, text, call->base->http->arena);
    if (ok) {
        (void)take(call, &body);
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call->base, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// ---- one question to the tables ----

void recipient_call_looked_up(void *ctx, DbTxn *txn, const Error *err)
{
    RecipientCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
    } else {
        call->look_up_done(call, db_txn_result(txn, 1));
    }
}

DbTxn *recipient_call_look_up(
    RecipientCall *call, void (*done)(RecipientCall *call, const PGresult *rows))
{
    call->look_up_done = done;
    DbTxn *txn = db_txn_new(call->api->pool);
    db_txn_tenant(txn, str_from(call->base->tenant));
    people_sql_replan(txn);
    return txn;
}

static void on_known(void *ctx, DbTxn *txn, const Error *err)
{
    RecipientCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    const PGresult *rows = db_txn_result(txn, 1);
    call->version = db_rows(rows) == 0 ? 0 : (uint64_t)db_get_int(rows, 0, 1);
    if (precondition_holds(&call->needs, call->version)) {
        call->look_up_done(call, rows);
    } else {
        precondition_answer_failed(call->base, call->version);
    }
}

void recipient_call_look_up_known(
    RecipientCall *call, void (*done)(RecipientCall *call, const PGresult *rows))
{
    DbTxn *txn = recipient_call_look_up(call, done);
    DbParams *p = db_txn_add(txn, &people_known_sql, NULL);
    db_text(p, str_from(call->base->tenant));
    db_text(p, call->id);
    db_txn_submit(txn, on_known, call);
}

bool recipient_call_is_known(RecipientCall *call, const PGresult *rows)
{
    if (db_rows(rows) > 0) {
        return true;
    }
    api_answer_missing(
        call->base,
        arena_printf(call->base->http->arena, "recipient '" STR_FMT "'", STR_ARG(call->id)));
    return false;
}

// ---- writing ----

RecipientsWrite recipients_api_write_of(ApiCall *call)
{
    const RecipientsApi *api = call->ctx;
    return (RecipientsWrite){
        .bus = api->bus,
        .keyring = api->keyring,
        .wait = api->wait,
        .arena = call->http->arena,
        .tenant = str_from(call->tenant),
        .said_by = call->key_id,
    };
}

static void answer_written(RecipientCall *call)
{
    Buf out;
    buf_init(&out, 512);
    buf_cstr(&out, "{\"id\":");
    buf_json(&out, call->id);
    if (call->warning != NULL) {
        buf_cstr(&out, ",\"warnings\":[");
        buf_json(&out, str_from(call->warning));
        buf_char(&out, ']');
    }
    buf_char(&out, '}');
    if (call->created) {
        char *place =
            arena_printf(call->base->http->arena, "/v1/recipients/" STR_FMT, STR_ARG(call->id));
        http_response_header(call->base->http, "Location", str_from(place));
    }
    uint64_t version = call->write.sequence > 0 ? call->write.sequence : call->version;
    if (version > 0 && !call->removed) {
        precondition_tag(call->base, version);
    }
    recipient_call_answer(call, call->created ? 201 : 200, &out);
    buf_done(&out);
}

// ---- writing under a precondition ----
//
// A recipient has no subject of its own, so the tenant's last event is compared: the write is
// guarded by the recipient's own version first, and when any other event came since, by that one,
// once the tables hold it and the recipient is seen to be unchanged, and no other one to have
// its addresses.

static void write_facts(RecipientCall *call, uint64_t replaces);

// Who else has its addresses, as the tables say. false: answered; the tenant refuses it.
static bool take_shared(RecipientCall *call, const PGresult *rows)
{
    Arena *arena = call->base->http->arena;
    char field[SHARED_FIELD_SIZE];
    char text[SHARED_TEXT_SIZE];
    shared_addresses_read(rows, &call->owner, 1, arena);
    if (call->owner.other.len == 0) {
        return true;
    }
    shared_addresses_field(&call->owner, field);
    shared_addresses_text(&call->owner, text);
    if (!call->alone) {
        call->warning = arena_printf(arena, "%s: %s", field, text);
        return true;
    }
    metric_add(call->base->metrics->refused[REFUSED_CONFLICT], 1);
    http_problem(
        call->base->http, 409, "address-taken", "Another recipient has this address", field,
        "%s, and the tenant's shared_addresses is 'refuse'", text);
    return false;
}

static void on_known_again(void *ctx, DbTxn *txn, const Error *err)
{
    RecipientCall *call = ctx;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 1) : NULL;
    uint64_t now = rows == NULL || db_rows(rows) == 0 ? 0 : (uint64_t)db_get_int(rows, 0, 1);
    if (err != NULL) {
        api_answer_failure(call->base, err);
    } else if (now != call->version && precondition_is_given(&call->needs)) {
        precondition_answer_failed(call->base, now);
    } else if (!call->alone || take_shared(call, db_txn_result(txn, 2))) {
        write_facts(call, call->write.there);
    }
}

static void look_again(void *ctx, bool seen)
{
    RecipientCall *call = ctx;
    if (!seen) {
        api_answer_unavailable(
            call->base,
            "ingest has not folded the last writes of recipients yet; send the request again");
        return;
    }
    DbTxn *txn = recipient_call_look_up(call, NULL);
    DbParams *p = db_txn_add(txn, &people_known_sql, NULL);
    db_text(p, str_from(call->base->tenant));
    db_text(p, call->id);
    if (call->alone) {
        (void)shared_addresses_ask(call->api, str_from(call->base->tenant), &call->owner, 1, txn);
    }
    db_txn_submit(txn, on_known_again, call);
}

static void try_again(RecipientCall *call)
{
    if (++call->tries == GUARD_TRIES_MAX) {
        api_answer_unavailable(
            call->base,
            "other calls keep changing this tenant's recipients; send the request again");
    } else if (call->write.there == 0) {
        look_again(call, true);
    } else {
        people_wait(call->api->wait, call->write.there, look_again, call);
    }
}

static void on_written(void *ctx, const Error *err)
{
    RecipientCall *call = ctx;
    if (call->write.lost) {
        try_again(call);
        return;
    }
    for (size_t i = 0; err == NULL && i < call->fact_count; i++) {
        err = call->facts[i].error.kind != ERROR_NONE ? &call->facts[i].error : NULL;
    }
    if (err != NULL) {
        api_answer_failure(call->base, err);
    } else {
        answer_written(call);
    }
}

static void write_facts(RecipientCall *call, uint64_t replaces)
{
    call->write = recipients_api_write_of(call->base);
    call->write.facts = call->facts;
    call->write.count = call->fact_count;
    call->write.guarded = precondition_is_given(&call->needs) || call->alone;
    call->write.replaces = replaces;
    call->write.done = on_written;
    call->write.ctx = call;
    recipients_write(&call->write);
}

void recipient_call_write(RecipientCall *call)
{
    if (call->fact_count == 0) {
        answer_written(call); // the same is stored already
    } else {
        write_facts(call, call->version);
    }
}

static void on_shared(void *ctx, DbTxn *txn, const Error *err)
{
    RecipientCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
    } else if (take_shared(call, db_txn_result(txn, 1))) {
        recipient_call_write(call);
    }
}

void recipient_call_write_record(RecipientCall *call)
{
    Str tenant = str_from(call->base->tenant);
    Stentor__V1__SharedAddresses policy =
        catalog_tenant(call->api->catalog, tenant)->shared_addresses;
    call->owner = (SharedOwner){.id = call->id, .record = &call->record};
    DbTxn *txn = recipient_call_look_up(call, NULL);
    if (policy == STENTOR__V1__SHARED_ADDRESSES__SHARED_ADDRESSES_ALLOW ||
        !shared_addresses_ask(call->api, tenant, &call->owner, 1, txn)) {
        db_txn_abandon(txn);
        recipient_call_write(call);
        return;
    }
    call->alone = policy == STENTOR__V1__SHARED_ADDRESSES__SHARED_ADDRESSES_REFUSE;
    db_txn_submit(txn, on_shared, call);
}

PersonFact *recipient_call_add_fact(RecipientCall *call, PersonPart part, size_t room)
{
    if (call->facts == NULL) {
        call->facts = arena_array(call->base->http->arena, room, sizeof *call->facts);
    }
    PersonFact *fact = &call->facts[call->fact_count++];
    *fact = (PersonFact){.recipient_id = call->id, .part = part};
    return fact;
}
