// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/replies/replies_api.h"

#include "common/base/clock.h"
#include "common/bus/jetstream/get_message.h"
#include "common/codec/event.h"
#include "common/events/reply_content.h"

// Indexed by the vendor's message id (migrations/dispatcher/0010_answered.sql).
static const DbStatement ANSWERED = {
    "replies_answered",
    "SELECT place, notification_id"
    " FROM stentor.notifications_of_messages($1::text, $2::text[], $3::text[])"};

// One call on its way; lives in the request's arena.
typedef struct Reading {
    ApiCall *call;
    const RepliesApi *replies;
    char *filter; // "ntf.reply.<tenant>.>"
    size_t limit;
    uint64_t after;
    json_t *data;
} Reading;

// ---- one reply ----

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *time_json(int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text);
    return json_string(text);
}

static json_t *show(
    const Reading *reading, const Stentor__V1__InboundReply *reply, uint64_t sequence)
{
    const ApiCall *call = reading->call;
    const Stentor__V1__ReplyContent *content = reply_content_open(
        reading->replies->master, str_from(call->tenant), reply, call->http->arena);
    json_t *object = json_pack(
        "{s:I, s:s, s:s, s:s, s:s}", "sequence", (json_int_t)sequence, "id", reply->meta->event_id,
        "kind", reply->kind, "channel", channel_name((Channel)reply->channel), "vendor",
        reply->vendor);
    (void)json_object_set_new(
        object, "from", content != NULL ? text_or_null(content->address) : json_null());
    (void)json_object_set_new(object, "to", text_or_null(reply->sender));
    (void)json_object_set_new(
        object, "text", content != NULL ? json_string(content->text) : json_null());
    (void)json_object_set_new(object, "content_type", text_or_null(reply->content_type));
    (void)json_object_set_new(object, "vendor_message_id", text_or_null(reply->vendor_message_id));
    (void)json_object_set_new(
        object, "answers_message_id", text_or_null(reply->answers_message_id));
    (void)json_object_set_new(object, "notification_id", json_null());
    (void)json_object_set_new(object, "at", time_json(reply->meta->occurred_at_us));
    (void)json_object_set_new(object, "received_at", time_json(reply->received_at_us));
    return object;
}

// ---- what they answer ----

static void answer(Reading *reading, const Error *err)
{
    if (err != NULL) {
        json_decref(reading->data);
        api_answer_failure(reading->call, err);
        return;
    }
    api_answer_json(
        reading->call, 200,
        json_pack("{s:o, s:I}", "data", reading->data, "last", (json_int_t)reading->after));
}

static Str member(const json_t *reply, const char *name)
{
    const char *text = json_string_value(json_object_get(reply, name));
    return str_from(text != NULL ? text : "");
}

static void on_found(void *ctx, DbTxn *txn, const Error *err)
{
    Reading *reading = ctx;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    for (int i = 0; rows != NULL && i < db_rows(rows); i++) {
        json_t *reply = json_array_get(reading->data, (size_t)db_get_int(rows, i, 0) - 1);
        if (reply != NULL && !db_is_null(rows, i, 1)) {
            Str id = db_get_text(rows, i, 1);
            (void)json_object_set_new(reply, "notification_id", json_stringn(id.ptr, id.len));
        }
    }
    answer(reading, err);
}

// One question for all, by their place in the list.
static void find_notifications(Reading *reading)
{
    size_t i;
    const json_t *reply;
    DbTxn *txn = db_txn_new(reading->replies->pool);
    DbParams *p = db_txn_add(txn, &ANSWERED, NULL);
    db_text(p, str_from(reading->call->tenant));
    DbArray *vendors = db_array(p, DB_TEXT);
    DbArray *messages = db_array(p, DB_TEXT);
    json_array_foreach(reading->data, i, reply)
    {
        db_push_text(vendors, member(reply, "vendor"));
        db_push_optional(messages, member(reply, "answers_message_id"));
    }
    db_txn_submit(txn, on_found, reading);
}

static void finish(Reading *reading, const Error *err)
{
    size_t i;
    const json_t *reply;
    bool asks = false;
    json_array_foreach(reading->data, i, reply)
    {
        asks = asks || member(reply, "answers_message_id").len > 0;
    }
    if (err == NULL && asks) {
        find_notifications(reading);
    } else {
        answer(reading, err);
    }
}

// ---- one after the other ----

static void read_next(Reading *reading);

static void on_message(void *ctx, Str answer, const Error *err)
{
    Reading *reading = ctx;
    Arena *arena = reading->call->http->arena;
    BusMessage message = {0};
    bool found = false;
    Error own = {0};
    const Stentor__V1__InboundReply *reply = NULL;
    if (err == NULL && !get_message_reply(answer, "REPLIES", arena, &message, &found, &own)) {
        err = &own;
    }
    if (err == NULL && found) {
        reply = (const Stentor__V1__InboundReply *)event_unpack(
            &stentor__v1__inbound_reply__descriptor, message.payload, arena, &own);
    }
    if (err != NULL || !found) {
        finish(reading, err);
        return;
    }
    reading->after = message.sequence;
    if (reply != NULL && reply->meta != NULL) { // what is none is passed over
        (void)json_array_append_new(reading->data, show(reading, reply, message.sequence));
    }
    read_next(reading);
}

static void read_next(Reading *reading)
{
    if (json_array_size(reading->data) >= reading->limit) {
        finish(reading, NULL);
        return;
    }
    const MessageQuery query = {
        .stream = "REPLIES", .sequence = reading->after + 1, .next_of = reading->filter};
    get_message(reading->replies->bus, &query, on_message, reading);
}

// false: answered.
static bool read_number(ApiCall *call, const char *name, int64_t least, int64_t most, int64_t *ret)
{
    Str text = http_query(call->http, name);
    if (text.len > 0 && (!str_to_i64(text, ret) || *ret < least || *ret > most)) {
        api_answer_parameter(
            call, name, "a number from %lld to %lld", (long long)least, (long long)most);
        return false;
    }
    return true;
}

static void list_replies(ApiCall *call)
{
    int64_t limit = REPLIES_LIMIT;
    int64_t after = 0;
    if (!read_number(call, "limit", 1, REPLIES_LIMIT_MAX, &limit) ||
        !read_number(call, "after", 0, INT64_MAX - 1, &after)) {
        return;
    }
    Reading *reading = arena_zalloc(call->http->arena, sizeof *reading);
    *reading = (Reading){
        .call = call,
        .replies = call->ctx,
        .filter = arena_printf(call->http->arena, "ntf.reply.%s.>", call->tenant),
        .limit = (size_t)limit,
        .after = (uint64_t)after,
        .data = json_array(),
    };
    read_next(reading);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/replies", SCOPE_RECIPIENTS_REVEAL, list_replies, "after limit", false},
};

void replies_api_add(Api *api, RepliesApi *replies)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], replies);
}
