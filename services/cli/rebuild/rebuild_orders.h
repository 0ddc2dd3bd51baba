// SPDX-License-Identifier: Apache-2.0
// What `stentor rebuild saga` does to the database: a copy of the orders' tables, a snapshot of the
// live ones, both compared, and what differs replaced. Blocking, as the schema's owner.
//
// An order whose events the log does not hold any more is carried: it is in the copy as it is live,
// and is not compared. Who ordered is not compared either, being sealed.
//
// Killed at any moment: before the commit the live tables are untouched, and the next rebuild drops
// the copy. (tests/integration/archive/test_rebuild_saga.py)
#pragma once

#include <stdint.h>

#include "common/history/rebuild_pg.h"

#define ORDERS_SCHEMA "order_saga"
#define ORDERS_COPY "order_saga_rebuild"

typedef struct RebuildOrders {
    RebuildPg *pg;
    int64_t since_us; // the log holds every event that was stored from here on
} RebuildOrders;

bool rebuild_orders_open(RebuildOrders *orders, const char *url, Error *err);
void rebuild_orders_close(RebuildOrders *orders); // safe after a failed open
// Makes the copy. In one snapshot of the live tables: digests, carried orders (*ret_carried), and
// the table `consumed` of events behind `settled` in EVENTS.
bool rebuild_orders_remember(
    RebuildOrders *orders, uint64_t settled, int64_t *ret_carried, Error *err);
// on_difference gets "orders|transitions <order> <tenant>: <how>", at most 100 times.
bool rebuild_orders_compare(
    RebuildOrders *orders, RebuildLine on_difference, void *ctx, int64_t *ret_count, Error *err);
// ERROR_CONFLICT: order-saga has connections to this database.
bool rebuild_orders_stand_still(RebuildOrders *orders, Error *err);
// Replaces what differs, while no process reads or writes the live tables. *ret_left: orders that
// differ and were moved to the archive's tables, which keep them. ERROR_TRANSIENT: they have
// changed since they were compared.
bool rebuild_orders_replace(RebuildOrders *orders, int64_t *ret_left, Error *err);
bool rebuild_orders_drop(RebuildOrders *orders, Error *err); // the copy
