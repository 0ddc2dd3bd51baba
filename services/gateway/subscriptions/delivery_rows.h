// SPDX-License-Identifier: Apache-2.0
// The deliveries of tenants' webhooks as the delivering process records them (webhooks.deliveries):
// the statements that read them, and their rows. The gateway only reads them.
#pragma once

#include "common/base/arena.h"
#include "common/db/db.h"

enum {
    DELIVERY_ID_MAX = 32,
    DELIVERY_SCAN_MAX = 10000, // rows that one page with a filter looks at
};

typedef struct DeliveryRow {
    Str id, subscription_id, event_id, type, notification_id;
    Str state; // "failed"
    int64_t attempts, turn, duration_ms, status_code;
    int64_t created_at_us, finished_at_us, next_attempt_at_us; // 0: not yet, none
    Str error;                                                 // "timeout"; empty: none
    // Of one that is read by itself, or to be posted again:
    Str response, payload, previous_event_id;
    int64_t sequence;
    bool ordered;
} DeliveryRow;

typedef struct DeliveryFilter {
    Str state, type, notification_id; // empty: any
} DeliveryFilter;

bool delivery_is_state(Str text);
bool delivery_filter_is_given(const DeliveryFilter *filter);

// Each adds its statement; texts live until the submit. A position is behind a row's created_at and
// id.
// The youngest first, before the position. With a filter: of DELIVERY_SCAN_MAX rows; the second
// statement has the last of these (delivery_stop).
void delivery_add_list(
    DbTxn *txn, Str tenant, Str subscription_id, const DeliveryFilter *filter, int64_t before_us,
    Str before_id, int limit);
void delivery_add_one(DbTxn *txn, Str tenant, Str id);
// Failed ones, the oldest first, behind the position.
void delivery_add_failed(
    DbTxn *txn, Str tenant, Str subscription_id, int64_t after_us, Str after_id, int limit);

// Everything in `arena`.
DeliveryRow delivery_row(const PGresult *rows, int row, Arena *arena);
// false: fewer rows than that stand before the position.
bool delivery_stop(const PGresult *rows, int64_t *ret_created_at_us, Str *ret_id);
