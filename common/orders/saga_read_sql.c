// SPDX-License-Identifier: Apache-2.0
#include "common/orders/saga_sql_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// clang-format off
// By correlation id, else by order id: the publisher of StatusChanged may know only that.
// An order that was moved is the same in the archive's tables, but for the types of ids and sum.
#define STATE_COLUMNS                                                                                                    \
    "s.order_id::text, s.basket_id::text, s.current_state, (s.total_money * 1000000)::int8, s.currency,"                 \
    " s.order_placed_date, s.version, s.place_order_timeout_token_id::text, s.timeout_retry_count, s.finished_at, s.person," \
    " s.email_hash, false, s.correlation_id::text"
#define ARCHIVE_COLUMNS                                                                                                  \
    "a.order_id, a.basket_id, a.current_state, a.total_micros, a.currency, a.order_placed_date, a.version,"              \
    " a.place_order_timeout_token_id, a.timeout_retry_count, a.finished_at, a.person, a.email_hash, true, a.correlation_id"
#define FROM_ARCHIVE(table, column)                                                                                      \
    "  UNION ALL SELECT " ARCHIVE_COLUMNS " FROM order_saga." table " a"                                                 \
    "  WHERE a." column " = i.id::uuid::text AND a.tenant_id = i.tenant_id"

static const DbStatement load_orders = {
    .name = "saga_load_orders",
    .sql =
    "SELECT i.n, o.* FROM unnest($1::int4[], $2::text[], $3::text[]) AS i (n, tenant_id, id)"
    " CROSS JOIN LATERAL ("
    "  SELECT " STATE_COLUMNS " FROM order_saga.order_state s WHERE s.correlation_id = i.id::uuid AND s.tenant_id = i.tenant_id"
    FROM_ARCHIVE("order_archive", "correlation_id")
    FROM_ARCHIVE("late_orders", "correlation_id")
    "  UNION ALL"
    "  SELECT " STATE_COLUMNS " FROM order_saga.order_state s WHERE s.order_id = i.id::uuid AND s.tenant_id = i.tenant_id"
    FROM_ARCHIVE("order_archive", "order_id")
    FROM_ARCHIVE("late_orders", "order_id")
    "  LIMIT 1) AS o",
};
static const DbStatement load_inbox = {
    .name = "saga_load_inbox",
    .sql =
    "SELECT i.m FROM unnest($1::int4[], $2::text[], $3::text[]) AS i (m, tenant_id, message_id)"
    " CROSS JOIN LATERAL (SELECT k.verdict FROM order_saga.inbox_state k"
    "  WHERE k.message_id = i.message_id AND k.consumer_id = $4::text AND k.tenant_id = i.tenant_id LIMIT 1) AS k"
    " WHERE k.verdict <> 'unmatched'",
};
static const DbStatement load_waiting = {
    .name = "saga_load_waiting",
    .sql =
    "SELECT i.n, w.message_id, w.sequence, w.received, w.event"
    " FROM unnest($1::int4[], $2::text[], $3::text[], $4::text[]) AS i (n, tenant_id, id, order_id)"
    " CROSS JOIN LATERAL (SELECT k.message_id, k.sequence, k.received, k.event FROM order_saga.inbox_state k"
    "  WHERE k.verdict = 'unmatched' AND k.correlation_id = ANY (ARRAY[i.id::uuid, i.order_id::uuid]) AND k.tenant_id = i.tenant_id"
    "  ORDER BY k.sequence LIMIT $5::int4) AS w ORDER BY i.n, w.sequence",
};
// clang-format on

void saga_sql_tenants(DbTxn *txn, const Fold *fold)
{
    for (size_t i = 0; i < fold->order_count; i++) {
        db_txn_tenant(txn, fold->order_list[i]->tenant);
    }
}

static void push_orders(DbParams *p, const Fold *fold)
{
    DbArray *number = db_array(p, DB_I32);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *id = db_array(p, DB_TEXT);
    for (size_t i = 0; i < fold->order_count; i++) {
        const Order *order = fold->order_list[i];
        db_push_int(number, (int64_t)i);
        db_push_text(tenant, order->tenant);
        db_push_text(id, str_from(order->correlation_id));
    }
}

static void push_wanted(DbParams *p, const Fold *fold)
{
    DbArray *number = db_array(p, DB_I32);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *id = db_array(p, DB_TEXT);
    DbArray *order_id = db_array(p, DB_TEXT);
    for (size_t i = 0; i < fold->order_count; i++) {
        const Order *order = fold->order_list[i];
        if (order->wanted != NULL) {
            db_push_int(number, (int64_t)i);
            db_push_text(tenant, order->tenant);
            db_push_text(id, str_from(order->correlation_id));
            db_push_text(order_id, str_from(order->wanted->order_id));
        }
    }
}

void saga_sql_load(DbTxn *txn, const Fold *fold)
{
    saga_sql_tenants(txn, fold);
    push_orders(db_txn_add(txn, &load_orders, NULL), fold);
    DbParams *p = db_txn_add(txn, &load_inbox, NULL);
    DbArray *number = db_array(p, DB_I32);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *message = db_array(p, DB_TEXT);
    for (size_t i = 0; i < fold->entry_count; i++) {
        db_push_int(number, (int64_t)i);
        db_push_text(tenant, fold->entry_list[i]->input->tenant);
        db_push_text(message, fold->entry_list[i]->input->message_id);
    }
    db_text(p, STR(SAGA_CONSUMER_ID));
    p = db_txn_add(txn, &load_waiting, NULL);
    push_wanted(p, fold);
    db_i32(p, WAITING_MAX);
}

static void get_text(const PGresult *res, int row, int column, char *out, size_t size)
{
    Str text = db_is_null(res, row, column) ? STR_EMPTY : db_get_text(res, row, column);
    (void)str_to_c(text, out, size);
}

static void read_order(const PGresult *res, int row, Fold *fold)
{
    Order *order = fold->order_list[db_get_int(res, row, 0)];
    Str hash = db_get_text(res, row, 12);
    get_text(res, row, 1, order->order_id, UUID_SIZE);
    get_text(res, row, 2, order->basket_id, UUID_SIZE);
    (void)order_state_from_name(db_get_text(res, row, 3), &order->state);
    order->has_total = !db_is_null(res, row, 4);
    order->total_micros = order->has_total ? db_get_int(res, row, 4) : 0;
    get_text(res, row, 5, order->currency, CURRENCY_SIZE);
    order->placed_at_us = db_get_time(res, row, 6);
    order->version = order->expected = (int32_t)db_get_int(res, row, 7);
    get_text(res, row, 8, order->token_id, UUID_SIZE);
    order->retries = (int32_t)db_get_int(res, row, 9);
    order->finished_at_us = db_get_time(res, row, 10);
    order->recipient = arena_str(fold->arena, db_get_text(res, row, 11));
    memcpy(order->email_hash, hash.ptr, hash.len < ADDRESS_HASH_LEN ? hash.len : ADDRESS_HASH_LEN);
    order->is_archived = db_get_int(res, row, 13) != 0;
    fold_is_really(fold, order, db_get_text(res, row, 14));
}

static bool open_waiting(Fold *fold, Str tenant, Str message_id, Str *event, Error *err)
{
    if (fold->event_keys == NULL) {
        return !event_is_sealed(*event) ||
               error_set(err, ERROR_PERMANENT, "the event is sealed, and no key is at hand");
    }
    return event_open_piece(
        fold->event_keys, fold->mono_us, tenant, message_id, *event, fold->arena, event, err);
}

static void read_waiting(const PGresult *res, int row, Fold *fold)
{
    Order *order = fold->order_list[db_get_int(res, row, 0)];
    order = order->merged_into != NULL ? order->merged_into : order;
    SagaInput *input = arena_alloc(fold->arena, sizeof *input);
    Error err = {0};
    Str message_id = arena_str(fold->arena, db_get_text(res, row, 1));
    Str event = arena_str(fold->arena, db_get_text(res, row, 4));
    if (open_waiting(fold, order->tenant, message_id, &event, &err) &&
        saga_input_unpack(
            event, order->tenant, message_id, (uint64_t)db_get_int(res, row, 2),
            db_get_time(res, row, 3), fold->arena, input, &err)) {
        fold_add_waiting(fold, order, input);
    } else {
        order->unmatched++; // it counts as one that was read
        fold->waiting_unreadable++;
        fold->waiting_error = err;
    }
}

void saga_sql_loaded(const DbTxn *txn, Fold *fold)
{
    const PGresult *res = db_txn_result(txn, 0);
    for (int row = 0; row < db_rows(res); row++) {
        read_order(res, row, fold);
    }
    fold_match(fold);
    res = db_txn_result(txn, 1);
    for (int row = 0; row < db_rows(res); row++) {
        fold->entry_list[db_get_int(res, row, 0)]->is_known = true;
    }
    res = db_txn_result(txn, 2);
    for (int row = 0; row < db_rows(res); row++) {
        read_waiting(res, row, fold);
    }
}
