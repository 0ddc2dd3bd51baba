// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/recipients/recipients_api.h"

#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/model/channel_address.h"
#include "services/gateway/recipients/recipient_call.h"
#include "services/gateway/recipients/recipients_read.h"

// ---- the record ----

static bool take_record(RecipientCall *call, ApiBody *body)
{
    return person_record_read(body, &call->record);
}

static void write_record(RecipientCall *call)
{
    recipient_call_add_fact(call, PERSON_RECORD, 1)->record = &call->record;
    recipient_call_write_record(call);
}

static void put_found(RecipientCall *call, const PGresult *rows)
{
    call->created = db_rows(rows) == 0;
    write_record(call);
}

static void put_recipient(ApiCall *base)
{
    RecipientCall *call = recipient_call_new(base);
    if (recipient_call_check_id(call) &&
        recipient_call_read_body(call, "recipient", take_record, base->http->body) &&
        recipient_call_may_write(call)) {
        recipient_call_look_up_known(call, put_found);
    }
}

static void post_found(RecipientCall *call, const PGresult *rows)
{
    Arena *arena = call->base->http->arena;
    call->created = db_rows(rows) == 0;
    if (!call->created) {
        call->id = arena_str(arena, db_get_text(rows, 0, 2));
    }
    write_record(call);
}

// A known identity is changed, and two posts at once make one recipient: the id comes from it.
static void post_recipient(ApiCall *base)
{
    RecipientCall *call = recipient_call_new(base);
    Arena *arena = base->http->arena;
    if (!recipient_call_read_body(call, "recipient", take_record, base->http->body) ||
        !recipients_api_writable(base)) {
        return;
    }
    char *id = arena_alloc(arena, ID_SIZE);
    const PersonRecord *record = &call->record;
    if (record->identity_id.len == 0) {
        id_new("rcp_", clock_now_us(), id);
        call->id = str_from(id);
        call->created = true;
        write_record(call);
        return;
    }
    Str type = str_from(identity_name(record->identity));
    const char *cause =
        arena_printf(arena, STR_FMT "|" STR_FMT, STR_ARG(type), STR_ARG(record->identity_id));
    person_derive_id(
        recipients_api_hash_key(call->api), str_from(base->tenant), "identity", str_from(cause),
        id);
    call->id = str_from(id);
    DbTxn *txn = recipient_call_look_up(call, post_found);
    DbParams *p = db_txn_add(txn, &people_identities_sql, NULL);
    db_text(p, str_from(base->tenant));
    db_push_text(db_array(p, DB_TEXT), type);
    db_push_text(db_array(p, DB_TEXT), record->identity_id);
    db_txn_submit(txn, recipient_call_looked_up, call);
}

static void remove_found(RecipientCall *call, const PGresult *rows)
{
    if (recipient_call_is_known(call, rows)) {
        (void)recipient_call_add_fact(call, PERSON_REMOVAL, 1);
        call->removed = true;
        recipient_call_write(call);
    }
}

static void delete_recipient(ApiCall *base)
{
    RecipientCall *call = recipient_call_new(base);
    if (recipient_call_check_id(call) && recipient_call_may_write(call)) {
        recipient_call_look_up_known(call, remove_found);
    }
}

// ---- reading people ----

static bool read_reveal(ApiCall *base, bool *ret)
{
    Str text = http_query(base->http, "reveal");
    *ret = str_eq(text, STR("true"));
    if (*ret) {
        return api_need_scope(base, SCOPE_RECIPIENTS_REVEAL);
    }
    if (text.len == 0 || str_eq(text, STR("false"))) {
        return true;
    }
    return api_refuse_field(base, "reveal", "must be true or false");
}

static RecipientsRead *read_new(
    RecipientCall *call, void (*done)(void *, size_t, Str, const Error *))
{
    RecipientsRead *read = arena_zalloc(call->base->http->arena, sizeof *read);
    *read = (RecipientsRead){
        .pool = call->api->pool,
        .keyring = call->api->keyring,
        .arena = call->base->http->arena,
        .tenant = str_from(call->base->tenant),
        .after = STR_EMPTY,
        .done = done,
        .ctx = call,
    };
    call->read = read;
    return read;
}

static void on_one_read(void *ctx, size_t count, Str people, const Error *err)
{
    RecipientCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
    } else if (count == 0) {
        api_answer_missing(
            call->base,
            arena_printf(call->base->http->arena, "recipient '" STR_FMT "'", STR_ARG(call->id)));
    } else {
        precondition_tag(call->base, call->read->version);
        http_respond(call->base->http, 200, "application/json", people);
    }
}

static void get_recipient(ApiCall *base)
{
    RecipientCall *call = recipient_call_new(base);
    RecipientsRead *read = read_new(call, on_one_read);
    if (recipient_call_check_id(call) && read_reveal(base, &read->reveal)) {
        read->id = call->id;
        recipients_read(read);
    }
}

static void on_list_read(void *ctx, size_t count, Str people, const Error *err)
{
    (void)count;
    RecipientCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    Buf out;
    buf_init(&out, RECIPIENTS_JSON_MAX + PAGE_CURSOR_SIZE + 64);
    page_begin(&out);
    buf_str(&out, people);
    page_end(call->base, call->read->more ? call->read->last : STR_EMPTY, &out);
    recipient_call_answer(call, 200, &out);
    buf_done(&out);
}

// The hash knows the channel, so an address is looked for on each channel that it fits, and under
// each hash key.
static bool hash_address(RecipientCall *call, Str address, RecipientsRead *read, FieldError *err)
{
    Arena *arena = call->base->http->arena;
    HashKeys keys = master_hash_keys(keyring_master(call->api->keyring));
    uint8_t(*hashes)[ADDRESS_HASH_LEN] =
        arena_array(arena, keys.count * PEOPLE_HASHES_MAX, sizeof *hashes);
    char reason[ADDRESS_REASON_SIZE] = "";
    for (Channel channel = CHANNEL_EMAIL; channel < CHANNEL_COUNT; channel++) {
        Str normal = STR_EMPTY;
        if (people_address_check(channel, address, arena, &normal, reason)) {
            for (size_t i = 0; i < keys.count; i++) {
                address_hash(
                    keys.keys[i], str_from(call->base->tenant), channel, normal,
                    hashes[read->hash_count++]);
            }
        }
    }
    read->hashes = (const uint8_t(*)[ADDRESS_HASH_LEN])hashes;
    return read->hash_count > 0 || field_error(err, "address", "not an address of any channel");
}

static bool choose_people(RecipientCall *call, RecipientsRead *read, FieldError *err)
{
    const HttpRequest *http = call->base->http;
    Str type = http_query(http, "identity_type");
    Str id = http_query(http, "identity_id");
    Str address = http_query(http, "address");
    bool by_identity = type.len > 0 || id.len > 0;
    if (by_identity == (address.len > 0)) {
        return field_error(err, "address", "give 'address', or 'identity_type' and 'identity_id'");
    }
    if (!by_identity) {
        return hash_address(call, address, read, err);
    }
    if (!identity_from_name(type, &read->identity)) {
        return field_error(err, "identity_type", "not guest, user, vendor or anonymous");
    }
    read->identity_id = id;
    return id.len > 0 || field_error(err, "identity_id", "required together with identity_type");
}

static void list_recipients(ApiCall *base)
{
    RecipientCall *call = recipient_call_new(base);
    FieldError err = {.field = ""};
    RecipientsRead *read = read_new(call, on_list_read);
    Page page;
    if (!read_reveal(base, &read->reveal) || !page_read(base, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    read->after = page.after;
    read->limit = page.limit;
    if (choose_people(call, read, &err)) {
        recipients_read(read);
    } else {
        api_answer_field(base, &err);
    }
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/recipients", SCOPE_RECIPIENTS_WRITE, post_recipient, NULL, false},
    {"GET", "/v1/recipients", SCOPE_RECIPIENTS_READ, list_recipients,
     "limit cursor address identity_type identity_id reveal", false},
    {"POST", "/v1/recipients/import", SCOPE_RECIPIENTS_WRITE, recipients_api_import, NULL, false},
    {"PUT", "/v1/recipients/{}", SCOPE_RECIPIENTS_WRITE, put_recipient, NULL, true},
    {"GET", "/v1/recipients/{}", SCOPE_RECIPIENTS_READ, get_recipient, "reveal", false},
    {"DELETE", "/v1/recipients/{}", SCOPE_RECIPIENTS_WRITE, delete_recipient, NULL, true},
};

void recipients_api_add(Api *api, RecipientsApi *people)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], people);
    api_add(api, preferences_routes, preferences_route_count, people);
}
