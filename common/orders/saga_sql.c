// SPDX-License-Identifier: Apache-2.0
#include "common/orders/saga_sql_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// clang-format off
// A batch that writes an unmatched event and a batch that writes its order must not miss each other:
// each waits for those of the other kind in progress. The statements after the lock see everything
// committed meanwhile.
static const DbStatement lock_unmatched = {
    .name = "saga_lock_unmatched",
    .sql =
    "SELECT CASE WHEN $1::bool THEN pg_advisory_xact_lock(hashtextextended('saga.unmatched', 0))"
    " ELSE pg_advisory_xact_lock_shared(hashtextextended('saga.unmatched', 0)) END",
};

// Results: (1, n, ''): order n is written; (2, m, ''): the unmatched event m is; (3, sequence_number,
// message_id): a row of the outbox is.
// Each table's rows are locked in the order of their keys, so two processes with the same orders do
// not deadlock.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings" // one statement, for it is all or nothing
static const DbStatement store = {
    .name = "saga_store",
    .sql =
    "WITH s AS MATERIALIZED (SELECT * FROM unnest($1::int4[], $2::text[], $3::text[]::uuid[], $4::text[]::uuid[], $5::text[]::uuid[],"
    "  $6::text[], $7::text[]::numeric[], $8::text[], $9::timestamptz[], $10::int4[], $11::int4[], $12::text[]::uuid[], $13::int4[],"
    "  $14::timestamptz[], $15::bytea[], $16::bytea[], $17::int4[], $18::timestamptz[])"
    "  AS s (n, tenant_id, id, order_id, basket_id, state, total, currency, placed_at, expected, version, token, retries, finished_at,"
    "   person, email_hash, waiting, wait_due)),"
    " i AS MATERIALIZED (SELECT * FROM unnest($19::int4[], $20::int4[], $21::text[], $22::text[], $23::text[]::uuid[], $24::text[],"
    "  $25::int8[], $26::timestamptz[], $27::int4[], $28::text[], $29::text[], $30::text[], $31::text[], $32::bytea[])"
    "  AS i (m, n, tenant_id, message_id, id, event_type, sequence, received, times, verdict, reason, from_state, to_state, event)),"
    " locked AS MATERIALIZED (SELECT s.* FROM s JOIN order_saga.order_state o ON o.correlation_id = s.id AND o.tenant_id = s.tenant_id"
    "  WHERE s.expected > 0 AND o.version = s.expected ORDER BY o.correlation_id, o.tenant_id FOR NO KEY UPDATE OF o),"
    " changed AS (UPDATE order_saga.order_state o SET current_state = s.state, version = s.version, place_order_timeout_token_id = s.token,"
    "   timeout_retry_count = s.retries, finished_at = s.finished_at, wait_due = s.wait_due"
    "  FROM locked s WHERE o.correlation_id = s.id AND o.tenant_id = s.tenant_id AND o.version = s.expected RETURNING s.n),"
    " made AS (INSERT INTO order_saga.order_state (correlation_id, tenant_id, order_id, basket_id, current_state, total_money, currency,"
    "   order_placed_date, version, place_order_timeout_token_id, timeout_retry_count, finished_at, person, email_hash,"
    "   wait_due)"
    "  SELECT s.id, s.tenant_id, s.order_id, s.basket_id, s.state, s.total, s.currency, s.placed_at, s.version, s.token, s.retries,"
    "   s.finished_at, s.person, s.email_hash, s.wait_due FROM s"
    "  WHERE s.expected = 0 AND s.waiting = (SELECT count(*) FROM (SELECT FROM order_saga.inbox_state u WHERE u.verdict = 'unmatched'"
    "    AND u.correlation_id = ANY (ARRAY[s.id, s.order_id]) AND u.tenant_id = s.tenant_id LIMIT $33::int4) AS u)"
    "  ORDER BY s.id, s.tenant_id ON CONFLICT DO NOTHING RETURNING tenant_id, correlation_id),"
    " won AS MATERIALIZED (SELECT n FROM changed UNION ALL"
    "  SELECT s.n FROM s JOIN made ON made.correlation_id = s.id AND made.tenant_id = s.tenant_id),"
    " fit AS MATERIALIZED (SELECT i.* FROM i WHERE i.n IN (SELECT n FROM won) OR (i.n = 0 AND (i.verdict <> 'unmatched' OR NOT EXISTS"
    "  (SELECT FROM order_saga.order_state o WHERE o.correlation_id = i.id AND o.tenant_id = i.tenant_id) AND NOT EXISTS"
    "  (SELECT FROM order_saga.order_state o WHERE o.order_id = i.id AND o.tenant_id = i.tenant_id)))),"
    " inbox AS (INSERT INTO order_saga.inbox_state AS k (message_id, consumer_id, tenant_id, correlation_id, event_type, sequence, received,"
    "   receive_count, consumed, verdict, reason, from_state, to_state, event)"
    "  SELECT f.message_id, $34::text, f.tenant_id, f.id, f.event_type, f.sequence, f.received, f.times,"
    "   CASE WHEN f.verdict = 'unmatched' THEN NULL ELSE now() END, f.verdict, f.reason, f.from_state, f.to_state, f.event FROM fit f ORDER BY f.message_id, f.tenant_id"
    "  ON CONFLICT (message_id, consumer_id, tenant_id) DO UPDATE SET receive_count = k.receive_count + excluded.receive_count,"
    "   correlation_id = CASE WHEN k.consumed IS NULL THEN excluded.correlation_id ELSE k.correlation_id END,"
    "   consumed = coalesce(k.consumed, excluded.consumed),"
    "   reason = CASE WHEN k.consumed IS NULL THEN excluded.reason ELSE k.reason END,"
    "   from_state = CASE WHEN k.consumed IS NULL THEN excluded.from_state ELSE k.from_state END,"
    "   to_state = CASE WHEN k.consumed IS NULL THEN excluded.to_state ELSE k.to_state END,"
    "   event = CASE WHEN k.consumed IS NULL THEN excluded.event END,"
    "   verdict = CASE WHEN k.consumed IS NULL THEN excluded.verdict ELSE k.verdict END),"
    " outbox AS (INSERT INTO order_saga.outbox_message (tenant_id, message_id, message_type, correlation_id, destination_address, body,"
    "   happened_at, seen_at, traceparent, withheld, initiator_id, sent_time)"
    "  SELECT b.tenant_id, b.message_id, b.message_type, b.id, b.subject, b.body, b.happened_at, b.seen_at, b.traceparent, b.withheld, b.initiator_id,"
    "   CASE WHEN b.withheld IS NULL THEN NULL ELSE now() END"
    "  FROM unnest($35::int4[], $36::text[], $37::text[], $38::text[], $39::text[]::uuid[], $40::text[], $41::bytea[], $42::timestamptz[],"
    "   $43::timestamptz[], $44::text[], $45::text[], $46::text[]) AS b (n, tenant_id, message_id, message_type, id, subject, body, happened_at, seen_at,"
    "   traceparent, withheld, initiator_id)"
    "  WHERE b.n IN (SELECT n FROM won) RETURNING sequence_number, message_id)"
    " SELECT 1::int4, n::int8, '' FROM won UNION ALL SELECT 2, f.m, '' FROM fit f WHERE f.verdict = 'unmatched'"
    " UNION ALL SELECT 3, sequence_number, message_id FROM outbox",
};

#pragma GCC diagnostic pop

// Repeating it changes nothing.
static const DbStatement mark_sent = {
    .name = "saga_mark_sent",
    .sql = "UPDATE order_saga.outbox_message SET sent_time = now() WHERE sequence_number = ANY ($1::int8[]) AND sent_time IS NULL",
};
static const DbStatement withhold = {
    .name = "saga_withhold",
    .sql = "UPDATE order_saga.outbox_message SET sent_time = now(), withheld = $2::text WHERE sequence_number = $1::int8 AND sent_time IS NULL",
};
static const DbStatement claim = {
    .name = "saga_claim",
    .sql =
    "SELECT sequence_number, tenant_id, message_id, message_type, correlation_id::text, destination_address, body, happened_at,"
    " seen_at, traceparent, enqueue_time"
    " FROM order_saga.claim_outbox($1::int8 * interval '1 millisecond', $2::int8 * interval '1 millisecond', $3::int4)",
};
static const DbStatement overdue = {
    .name = "saga_overdue",
    .sql = "SELECT tenant_id, correlation_id::text, token::text, retries FROM order_saga.claim_overdue($1::int8 * interval '1 millisecond', $2::int4)",
};
static const DbStatement kpis = {
    .name = "saga_kpis",
    .sql = "SELECT active, stalled, unmatched, backlog, oldest_unsent FROM order_saga.kpis($1::int8 * interval '1 second')",
};
static const DbStatement retain[RETENTION_STEPS] = {
    {.name = "saga_forget_outbox", .sql = "SELECT order_saga.forget_outbox($1::int8 * interval '1 day', $2::text, $3::int4)"},
    {.name = "saga_forget_inbox", .sql = "SELECT order_saga.forget_inbox($1::int8 * interval '1 day', $2::text, $3::int4)"},
    {.name = "saga_archive_orders", .sql = "SELECT order_saga.archive_orders($1::int8 * interval '1 day', $2::text, $3::int4)"},
    {.name = "saga_drop_archived", .sql = "SELECT order_saga.drop_archived($1::int8 * interval '1 day', $2::text, $3::int4)"},
};
// clang-format on

static void push_optional(DbArray *array, Str value)
{
    if (value.len > 0) {
        db_push_text(array, value);
    } else {
        db_push_null(array);
    }
}

static void push_states(DbParams *p, const Fold *fold)
{
    DbArray *number = db_array(p, DB_I32);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *id = db_array(p, DB_TEXT);
    DbArray *order_id = db_array(p, DB_TEXT);
    DbArray *basket_id = db_array(p, DB_TEXT);
    DbArray *state = db_array(p, DB_TEXT);
    DbArray *total = db_array(p, DB_TEXT);
    DbArray *currency = db_array(p, DB_TEXT);
    DbArray *placed_at = db_array(p, DB_TIME);
    DbArray *expected = db_array(p, DB_I32);
    DbArray *version = db_array(p, DB_I32);
    DbArray *token = db_array(p, DB_TEXT);
    DbArray *retries = db_array(p, DB_I32);
    DbArray *finished_at = db_array(p, DB_TIME);
    DbArray *recipient = db_array(p, DB_BYTES);
    DbArray *email_hash = db_array(p, DB_BYTES);
    DbArray *waiting = db_array(p, DB_I32);
    DbArray *wait_due = db_array(p, DB_TIME);
    for (size_t i = 0; i < fold->order_count; i++) {
        const Order *order = fold->order_list[i];
        if (!order_is_changed(order)) {
            continue;
        }
        db_push_int(number, (int64_t)order->number);
        db_push_text(tenant, order->tenant);
        db_push_text(id, str_from(order->correlation_id));
        db_push_text(order_id, str_from(order->order_id));
        push_optional(basket_id, str_from(order->basket_id));
        db_push_text(state, str_from(order_state_name(order->state)));
        char sum[32];
        int len = snprintf(
            sum, sizeof sum, "%" PRId64 ".%02d", order->total_micros / 1000000,
            (int)(order->total_micros % 1000000 / 10000));
        push_optional(total, order->has_total ? str_of(sum, (size_t)len) : STR_EMPTY);
        db_push_text(currency, str_from(order->currency));
        db_push_time(placed_at, order->placed_at_us);
        db_push_int(expected, order->expected);
        db_push_int(version, order->version);
        push_optional(token, str_from(order->token_id));
        db_push_int(retries, order->retries);
        db_push_time(finished_at, order->finished_at_us);
        db_push_text(recipient, order->recipient);
        db_push_text(email_hash, str_of(order->email_hash, ADDRESS_HASH_LEN));
        db_push_int(waiting, (int64_t)order->unmatched);
        db_push_time(wait_due, order->token_id[0] == '\0' ? 0 : order->wait_due_us);
    }
}

// Bound to its message's id. The keys are at hand, and a waiting event is small.
static Str pack_waiting(const Fold *fold, const SagaInput *input)
{
    Str packed = saga_input_pack(input, fold->arena);
    Str sealed = STR_EMPTY;
    if (!fold->seals) {
        return packed;
    }
    bool ok = event_seal_piece(
        fold->event_keys, fold->mono_us, input->tenant, input->message_id, packed, fold->arena,
        &sealed, NULL);
    assert(ok);
    return sealed;
}

static void push_inbox(DbParams *p, const Fold *fold)
{
    DbArray *number = db_array(p, DB_I32);
    DbArray *order_number = db_array(p, DB_I32);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *message = db_array(p, DB_TEXT);
    DbArray *id = db_array(p, DB_TEXT);
    DbArray *type = db_array(p, DB_TEXT);
    DbArray *sequence = db_array(p, DB_I64);
    DbArray *received = db_array(p, DB_TIME);
    DbArray *times = db_array(p, DB_I32);
    DbArray *verdict = db_array(p, DB_TEXT);
    DbArray *reason = db_array(p, DB_TEXT);
    DbArray *from = db_array(p, DB_TEXT);
    DbArray *to = db_array(p, DB_TEXT);
    DbArray *event = db_array(p, DB_BYTES);
    for (size_t i = 0; i < fold->entry_count; i++) {
        const Entry *entry = fold->entry_list[i];
        const SagaInput *input = entry->input;
        db_push_int(number, (int64_t)i);
        db_push_int(
            order_number, order_is_changed(entry->order) ? (int64_t)entry->order->number : 0);
        db_push_text(tenant, input->tenant);
        db_push_text(message, input->message_id);
        db_push_text(id, str_from(entry->order->correlation_id));
        db_push_text(type, input->type);
        db_push_int(sequence, (int64_t)input->sequence);
        db_push_time(received, input->received_at_us);
        db_push_int(times, entry->times);
        db_push_text(verdict, str_from(verdict_name(entry->verdict)));
        db_push_text(reason, str_from(entry->reason));
        push_optional(from, str_from(order_state_name(entry->from)));
        push_optional(to, str_from(order_state_name(entry->to)));
        bool waits = entry->verdict == VERDICT_UNMATCHED;
        push_optional(event, waits ? pack_waiting(fold, entry->input) : STR_EMPTY);
    }
}

static void push_outbox(DbParams *p, const OutRow *rows, size_t count)
{
    DbArray *number = db_array(p, DB_I32);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *message = db_array(p, DB_TEXT);
    DbArray *type = db_array(p, DB_TEXT);
    DbArray *id = db_array(p, DB_TEXT);
    DbArray *subject = db_array(p, DB_TEXT);
    DbArray *body = db_array(p, DB_BYTES);
    DbArray *happened_at = db_array(p, DB_TIME);
    DbArray *seen_at = db_array(p, DB_TIME);
    DbArray *traceparent = db_array(p, DB_TEXT);
    DbArray *withheld = db_array(p, DB_TEXT);
    DbArray *initiator = db_array(p, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        const OutRow *row = &rows[i];
        db_push_int(number, (int64_t)row->order->number);
        db_push_text(tenant, row->message.tenant);
        db_push_text(message, str_from(row->message.event_id));
        db_push_text(type, str_from(row->message.type));
        db_push_text(id, str_from(row->message.correlation_id));
        db_push_text(subject, str_from(row->message.subject));
        db_push_text(body, row->body);
        db_push_time(happened_at, row->message.happened_at_us);
        db_push_time(seen_at, row->message.seen_at_us);
        db_push_text(traceparent, row->traceparent);
        push_optional(withheld, str_from(row->withheld));
        push_optional(initiator, row->initiator);
    }
}

// How the batch takes the lock: 0 not at all, 1 shared (new orders), 2 exclusive (unmatched
// events).
static int lock_of(const Fold *fold)
{
    int lock = 0;
    for (size_t i = 0; i < fold->order_count; i++) {
        lock =
            order_is_changed(fold->order_list[i]) && fold->order_list[i]->expected == 0 ? 1 : lock;
    }
    for (size_t i = 0; i < fold->entry_count; i++) {
        lock = fold->entry_list[i]->verdict == VERDICT_UNMATCHED ? 2 : lock;
    }
    return lock;
}

void saga_sql_store(DbTxn *txn, const Fold *fold, const OutRow *rows, size_t count)
{
    saga_sql_tenants(txn, fold);
    int lock = lock_of(fold);
    if (lock > 0) {
        db_bool(db_txn_add(txn, &lock_unmatched, NULL), lock == 2);
    }
    DbParams *p = db_txn_add(txn, &store, NULL);
    push_states(p, fold);
    push_inbox(p, fold);
    db_i32(p, WAITING_MAX);
    db_text(p, STR(SAGA_CONSUMER_ID));
    push_outbox(p, rows, count);
}

static void give_number(OutRow *rows, size_t count, Str message_id, int64_t sequence_number)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].sequence_number == 0 &&
            str_eq(str_from(rows[i].message.event_id), message_id)) {
            rows[i].sequence_number = sequence_number;
            return;
        }
    }
}

void saga_sql_stored(const DbTxn *txn, Fold *fold, OutRow *rows, size_t count)
{
    const PGresult *res = db_txn_result(txn, lock_of(fold) > 0 ? 1 : 0);
    for (size_t i = 0; i < fold->order_count; i++) {
        fold->order_list[i]->is_lost = order_is_changed(fold->order_list[i]);
    }
    for (size_t i = 0; i < fold->entry_count; i++) {
        const Entry *entry = fold->entry_list[i];
        entry->order->is_lost = entry->order->is_lost || entry->verdict == VERDICT_UNMATCHED;
    }
    size_t from = 0; // rows usually come back in the order of the request
    for (int row = 0; row < db_rows(res); row++) {
        int64_t number = db_get_int(res, row, 1);
        switch (db_get_int(res, row, 0)) {
        case 1:
            fold->order_list[number - 1]->is_lost = false;
            break;
        case 2:
            fold->entry_list[number]->order->is_lost = false;
            break;
        default:
            while (from < count && rows[from].sequence_number != 0) {
                from++;
            }
            give_number(rows + from, count - from, db_get_text(res, row, 2), number);
        }
    }
}

void saga_sql_mark_sent(DbTxn *txn, const int64_t *sequence_numbers, size_t count)
{
    DbArray *numbers = db_array(db_txn_add(txn, &mark_sent, NULL), DB_I64);
    for (size_t i = 0; i < count; i++) {
        db_push_int(numbers, sequence_numbers[i]);
    }
}

void saga_sql_withhold(DbTxn *txn, int64_t sequence_number, Str tenant, const char *why)
{
    db_txn_tenant(txn, tenant);
    DbParams *p = db_txn_add(txn, &withhold, NULL);
    db_i64(p, sequence_number);
    db_text(p, str_from(why));
}

void saga_sql_claim(DbTxn *txn, int64_t older_than_ms, int64_t lease_ms, int32_t at_most)
{
    DbParams *p = db_txn_add(txn, &claim, NULL);
    db_i64(p, older_than_ms);
    db_i64(p, lease_ms);
    db_i32(p, at_most);
}

void saga_sql_overdue(DbTxn *txn, int64_t grace_ms, int32_t at_most)
{
    DbParams *p = db_txn_add(txn, &overdue, NULL);
    db_i64(p, grace_ms);
    db_i32(p, at_most);
}

void saga_sql_kpis(DbTxn *txn, int64_t stalled_s)
{
    db_i64(db_txn_add(txn, &kpis, NULL), stalled_s);
}

void saga_sql_kpis_read(const DbTxn *txn, SagaKpis *ret)
{
    const PGresult *res = db_txn_result(txn, 0);
    *ret = (SagaKpis){
        .active = db_get_int(res, 0, 0),
        .stalled = db_get_int(res, 0, 1),
        .unmatched = db_get_int(res, 0, 2),
        .backlog = db_get_int(res, 0, 3),
        .oldest_unsent_us = db_get_time(res, 0, 4),
    };
}

void saga_sql_retain(DbTxn *txn, const Ages *ages, Str tenant, int32_t at_most)
{
    const int64_t days[RETENTION_STEPS] = {
        ages->outbox_days, ages->inbox_days, ages->archive_days, ages->drop_days};
    for (int i = 0; i < RETENTION_STEPS; i++) {
        DbParams *p = db_txn_add(txn, &retain[i], NULL);
        db_i64(p, days[i]);
        if (tenant.len > 0) {
            db_text(p, tenant);
        } else {
            db_null(p);
        }
        db_i32(p, at_most);
    }
}
