// SPDX-License-Identifier: Apache-2.0
// What saga_sql.c (writing) and saga_read_sql.c (reading) share.
#pragma once

#include "services/order-saga/saga_sql.h"

#define SAGA_CONSUMER_ID "order-saga"

enum { WAITING_MAX = 64 }; // of one order; more of them stay where they are

// The transaction is of the tenants of the fold's orders.
void saga_sql_tenants(DbTxn *txn, const Fold *fold);
