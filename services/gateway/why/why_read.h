// SPDX-License-Identifier: Apache-2.0
// Reading what why_list.h needs: history's details, the scheduler, the ledger and the recipient in
// two round trips, then the suppressions of the address from CONFIG and, of what failed, its dead
// letter from DEAD. Postgres must answer; where NATS does not, the facts say so.
#pragma once

#include "common/request/catalog.h"
#include "services/gateway/notifications/notification_read.h"
#include "services/gateway/why/stream_scan.h"
#include "services/gateway/why/why_facts.h"

typedef struct WhyReader {
    NotificationPools pools;
    StreamScans *scans;
    const Catalog *catalog;
    const NotificationWait *waits; // by channel
} WhyReader;

// Once, or the call is answered. Everything is in the request's arena.
typedef void (*WhyReadDone)(void *ctx, const WhyFacts *facts);
void why_read(
    const WhyReader *reader, const NotificationRead *notification, WhyReadDone done, void *ctx);
// Of a notification that does not exist: the row says what a first status would say of it, and the
// recipient, the template and the suppressions of its address are read.
void why_read_ahead(
    const WhyReader *reader, ApiCall *base, const HistoryRow *row, WhyReadDone done, void *ctx);
