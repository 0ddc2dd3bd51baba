// SPDX-License-Identifier: Apache-2.0
// Shared by saga_sql.c (writing) and saga_read_sql.c (reading).
#pragma once

#include "common/orders/saga_sql.h"

#define SAGA_CONSUMER_ID "order-saga"

enum { WAITING_MAX = 64 }; // of one order; others stay unmatched

// Names the tenants of the fold's orders for the transaction.
void saga_sql_tenants(DbTxn *txn, const Fold *fold);
