// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/subscriptions/delivery_rows.h"

#include "common/webhooks/webhook_state.h"

#define SHORT                                                                                      \
    "d.id, d.subscription_id, d.event_id, d.event_type, d.notification_id, d.state, d.attempt,"    \
    " d.turn, d.duration_ms, d.status_code, d.created_at, d.finished_at, d.next_attempt_at, "      \
    "d.error"
#define WHOLE SHORT ", d.response, d.payload, d.previous_event_id, d.sequence, d.ordered"
#define OF_SUBSCRIPTION                                                                            \
    " FROM webhooks.deliveries d WHERE d.tenant_id = $1::text AND d.subscription_id = $2::text"
#define BEFORE " AND (d.created_at, d.id) < ($3::timestamptz, $4::text)"
#define YOUNGEST_FIRST " ORDER BY d.created_at DESC, d.id DESC"
// The last row that a page with a filter looks at.
#define STOP                                                                                       \
    "SELECT d.created_at, d.id" OF_SUBSCRIPTION BEFORE YOUNGEST_FIRST " OFFSET $5::int4 - 1 "      \
    "LIMIT 1"

// clang-format off
static const DbStatement LIST = {"webhook_deliveries_list",
    "SELECT " SHORT OF_SUBSCRIPTION BEFORE YOUNGEST_FIRST " LIMIT $5::int4"};
static const DbStatement FILTERED = {"webhook_deliveries_filtered",
    "WITH stop AS (" STOP ") SELECT " SHORT OF_SUBSCRIPTION BEFORE
    " AND (d.created_at, d.id) >= (coalesce((SELECT created_at FROM stop), '-infinity'), coalesce((SELECT id FROM stop), ''))"
    " AND ($6::text IS NULL OR d.state = $6::text) AND ($7::text IS NULL OR d.event_type = $7::text)"
    " AND ($8::text IS NULL OR d.notification_id = $8::text)" YOUNGEST_FIRST " LIMIT $9::int4"};
static const DbStatement LAST_SEEN = {"webhook_deliveries_stop", STOP};
static const DbStatement ONE = {"webhook_delivery",
    "SELECT " WHOLE " FROM webhooks.deliveries d WHERE d.tenant_id = $1::text AND d.id = $2::text"};
static const DbStatement FAILED = {"webhook_deliveries_failed",
    "SELECT " WHOLE OF_SUBSCRIPTION " AND d.state = 'failed' AND (d.created_at, d.id) > ($3::timestamptz, $4::text)"
    " ORDER BY d.created_at, d.id LIMIT $5::int4"};
// clang-format on

enum {
    ID,
    SUBSCRIPTION,
    EVENT,
    TYPE,
    NOTIFICATION,
    STATE,
    ATTEMPT,
    TURN,
    DURATION,
    STATUS_CODE,
    CREATED,
    FINISHED,
    NEXT,
    ERROR_WORD,
    RESPONSE,
    PAYLOAD,
    PREVIOUS,
    SEQUENCE,
    ORDERED,
};

bool delivery_is_state(Str text)
{
    return webhook_state_from_name(text) != WEBHOOK_NONE;
}

bool delivery_filter_is_given(const DeliveryFilter *filter)
{
    return filter->state.len > 0 || filter->type.len > 0 || filter->notification_id.len > 0;
}

static DbParams *add_from(
    DbTxn *txn, const DbStatement *statement, Str tenant, Str subscription_id, int64_t at_us,
    Str id)
{
    DbParams *p = db_txn_add(txn, statement, NULL);
    db_text(p, tenant);
    db_text(p, subscription_id);
    db_time(p, at_us);
    db_text(p, id);
    return p;
}

static void optional_text(DbParams *p, Str value)
{
    if (value.len > 0) {
        db_text(p, value);
    } else {
        db_null(p);
    }
}

void delivery_add_list(
    DbTxn *txn, Str tenant, Str subscription_id, const DeliveryFilter *filter, int64_t before_us,
    Str before_id, int limit)
{
    db_txn_tenant(txn, tenant);
    if (!delivery_filter_is_given(filter)) {
        DbParams *p = add_from(txn, &LIST, tenant, subscription_id, before_us, before_id);
        db_i32(p, limit);
        return;
    }
    DbParams *p = add_from(txn, &FILTERED, tenant, subscription_id, before_us, before_id);
    db_i32(p, DELIVERY_SCAN_MAX);
    optional_text(p, filter->state);
    optional_text(p, filter->type);
    optional_text(p, filter->notification_id);
    db_i32(p, limit);
    p = add_from(txn, &LAST_SEEN, tenant, subscription_id, before_us, before_id);
    db_i32(p, DELIVERY_SCAN_MAX);
}

void delivery_add_one(DbTxn *txn, Str tenant, Str id)
{
    db_txn_tenant(txn, tenant);
    DbParams *p = db_txn_add(txn, &ONE, NULL);
    db_text(p, tenant);
    db_text(p, id);
}

void delivery_add_failed(
    DbTxn *txn, Str tenant, Str subscription_id, int64_t after_us, Str after_id, int limit)
{
    db_txn_tenant(txn, tenant);
    DbParams *p = add_from(txn, &FAILED, tenant, subscription_id, after_us, after_id);
    db_i32(p, limit);
}

// ---- rows ----

static Str text_at(const PGresult *rows, int row, int column, Arena *arena)
{
    return db_is_null(rows, row, column) ? STR_EMPTY
                                         : arena_str(arena, db_get_text(rows, row, column));
}

static int64_t int_at(const PGresult *rows, int row, int column)
{
    return db_is_null(rows, row, column) ? 0 : db_get_int(rows, row, column);
}

DeliveryRow delivery_row(const PGresult *rows, int row, Arena *arena)
{
    DeliveryRow ret = {
        .id = text_at(rows, row, ID, arena),
        .subscription_id = text_at(rows, row, SUBSCRIPTION, arena),
        .event_id = text_at(rows, row, EVENT, arena),
        .type = text_at(rows, row, TYPE, arena),
        .notification_id = text_at(rows, row, NOTIFICATION, arena),
        .state = text_at(rows, row, STATE, arena),
        .attempts = int_at(rows, row, ATTEMPT),
        .turn = int_at(rows, row, TURN),
        .duration_ms = int_at(rows, row, DURATION),
        .status_code = int_at(rows, row, STATUS_CODE),
        .created_at_us = db_get_time(rows, row, CREATED),
        .finished_at_us = db_get_time(rows, row, FINISHED),
        .next_attempt_at_us = db_get_time(rows, row, NEXT),
        .error = text_at(rows, row, ERROR_WORD, arena),
    };
    if (PQnfields(rows) > RESPONSE) {
        ret.response = text_at(rows, row, RESPONSE, arena);
        ret.payload = text_at(rows, row, PAYLOAD, arena);
        ret.previous_event_id = text_at(rows, row, PREVIOUS, arena);
        ret.sequence = int_at(rows, row, SEQUENCE);
        ret.ordered = int_at(rows, row, ORDERED) != 0;
    }
    return ret;
}

bool delivery_stop(const PGresult *rows, int64_t *ret_created_at_us, Str *ret_id)
{
    if (db_rows(rows) == 0) {
        return false;
    }
    *ret_created_at_us = db_get_time(rows, 0, 0);
    *ret_id = db_get_text(rows, 0, 1);
    return true;
}
