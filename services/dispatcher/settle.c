// SPDX-License-Identifier: Apache-2.0
// What vendors' callbacks prove: SETTLE in, the ledger's unknown outcomes settled by one statement
// a batch, "sent" published for each. A callback about an ordinarily sent mail finds nothing to do.
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/model/status.h"
#include "services/dispatcher/callbacks/late.h"
#include "services/dispatcher/dispatcher_internal.h"
#include "services/dispatcher/ledger/ledger_events.h"
#include "services/dispatcher/ledger/ledger_settle.h"
#include "services/dispatcher/report.h"

typedef struct Proof {
    LedgerProof ledger;
    Delivery *delivery;
    const Stentor__V1__NotificationStatus *status;
} Proof;

// Proofs that go on together; in the deliveries' arena.
typedef struct Settle {
    Dispatcher *dispatcher;
    Proof *proofs;
    size_t count;
    int statement;
} Settle;

static void submit(Settle *settle);

// ---- reading ----

// Each proves that the vendor had the mail, whatever happened to it later. "failed" is the vendor's
// own (blocked, dropped): a vendor reports nothing about a mail that it never had. "sent": an SMS
// vendor has passed it on.
static bool is_proof(Status status)
{
    return status == STATUS_FAILED || status == STATUS_SENT || status_is_from_vendor(status);
}

static bool check_status(const Stentor__V1__NotificationStatus *status, Error *err)
{
    const Stentor__V1__Meta *meta = status->meta;
    if (meta == NULL || !id_is_tenant(str_from(meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "'meta.tenant' is not a tenant's id");
    }
    if (meta->event_id[0] == '\0' || strlen(meta->event_id) >= EVENT_ID_SIZE) {
        return error_set(err, ERROR_PERMANENT, "'meta.event_id' is not an event's id");
    }
    if (meta->occurred_at_us <= 0) {
        return error_set(err, ERROR_PERMANENT, "'meta.occurred_at_us' is not a time");
    }
    if (!is_proof((Status)status->status)) {
        return error_set(
            err, ERROR_PERMANENT, "'status' %d is no proof that the vendor had the mail",
            (int)status->status);
    }
    return true;
}

static bool read_proof(
    Delivery *delivery, const Stentor__V1__NotificationStatus *status, Proof *ret, Error *err)
{
    const Stentor__V1__Meta *meta = status->meta;
    int64_t created_ms = 0;
    if (!id_parse(str_from(meta->notification_id), "ntf_", &created_ms)) {
        return error_set(err, ERROR_PERMANENT, "'meta.notification_id' is not a notification's id");
    }
    const Stentor__V1__Attempt *attempt = status->attempt;
    uint32_t number = attempt != NULL ? attempt->number : 0;
    *ret = (Proof){
        .ledger =
            {
                .created_at_us = created_ms * 1000,
                .notification_id = str_from(meta->notification_id),
                .tenant = str_from(meta->tenant),
                .event_id = str_from(meta->event_id),
                .at_us = meta->occurred_at_us,
                .vendor = attempt != NULL ? str_from(attempt->vendor) : STR_EMPTY,
                .attempt = number <= JOB_ATTEMPTS_MAX ? (int32_t)number : 0,
                .message_id = attempt != NULL ? str_from(attempt->vendor_message_id) : STR_EMPTY,
            },
        .delivery = delivery,
        .status = status,
    };
    return true;
}

// ---- settling ----

static bool publish_proof(Settle *settle, const LedgerSettled *settled, Error *err)
{
    const Proof *proof = &settle->proofs[settled->index];
    const LedgerProof *of = &proof->ledger;
    LOG(LOG_INFO, "a vendor callback proves that a mail was sent whose outcome was unknown",
        log_str("notification", of->notification_id), log_str("tenant", of->tenant),
        log_int("attempt", settled->attempt),
        log_text("state", ledger_state_name(settled->row.state)));
    if (settled->second) {
        LOG(LOG_WARN, "two vendors had the same mail: it was sent twice, as its policy allows",
            log_str("notification", of->notification_id), log_str("tenant", of->tenant),
            log_str("vendor", settled->row.vendor), log_int("attempt", settled->attempt));
        return true; // "sent" is published once
    }
    if (settled->row.state != LEDGER_SENT) {
        return true; // noted on a claim in force; its end publishes and counts
    }
    metric_add(settle->dispatcher->metrics.settled, settled->repeated ? 0 : 1);
    LedgerKey key = {of->created_at_us, of->notification_id, settled->attempt, of->tenant, false};
    return report_settled(proof->delivery, proof->status, &key, &settled->row, err);
}

static void settle_one_by_one(Settle *settle)
{
    size_t count = settle->count;
    Proof *proofs = settle->proofs;
    for (size_t i = 0; i < count; i++) {
        Settle *one = arena_zalloc(proofs[i].delivery->arena, sizeof *one);
        *one = (Settle){.dispatcher = settle->dispatcher, .proofs = &proofs[i], .count = 1};
        submit(one);
    }
}

static void settle_failed(Settle *settle, const Error *err)
{
    size_t count = settle->count;
    Proof *proofs = settle->proofs;
    if (err->kind == ERROR_PERMANENT && count > 1) {
        settle_one_by_one(settle); // one that Postgres rejects must not hold up the others
        return;
    }
    if (err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "callbacks were not recorded in the ledger; they will be redelivered",
            log_int("count", (int64_t)count), log_error(err));
    }
    for (size_t i = 0; i < count; i++) {
        delivery_settle(proofs[i].delivery, err);
    }
}

static void on_settled(void *ctx, DbTxn *txn, const Error *err)
{
    Settle *settle = ctx;
    if (err != NULL) {
        settle_failed(settle, err);
        return;
    }
    size_t count = settle->count;
    Proof *proofs = settle->proofs;
    Error *errors = arena_array(db_txn_arena(txn), count, sizeof *errors);
    for (size_t i = 0; i < count; i++) {
        error_clear(&errors[i]);
    }
    const PGresult *res = db_txn_result(txn, settle->statement);
    for (int n = 0; n < db_rows(res); n++) {
        LedgerSettled settled = ledger_settled(res, (size_t)n);
        if (settled.index < count) {
            (void)publish_proof(settle, &settled, &errors[settled.index]);
        }
    }
    // Killed before "sent" is stored: the redelivery finds the row by its settled_by and publishes
    // it (settle_nats_pg_test.c).
    for (size_t i = 0; i < count; i++) {
        delivery_settle(proofs[i].delivery, errors[i].kind == ERROR_NONE ? NULL : &errors[i]);
    }
}

// By these a repeat is recognised that comes days later (callbacks/late.c).
static void note_events(DbTxn *txn, const Settle *settle)
{
    LedgerEvent *events = arena_array(db_txn_arena(txn), settle->count, sizeof *events);
    for (size_t i = 0; i < settle->count; i++) {
        const Proof *proof = &settle->proofs[i];
        events[i] = (LedgerEvent){
            .at_us = late_noted_us(proof->status),
            .event_id = proof->ledger.event_id,
            .tenant = proof->ledger.tenant,
            .sequence = proof->delivery->message.sequence,
        };
    }
    ledger_add_noted(txn, events, settle->count);
}

static void submit(Settle *settle)
{
    const JobRules *rules = &settle->dispatcher->parts.rules;
    DbTxn *txn = db_txn_new(settle->dispatcher->parts.pool);
    const LedgerProof **proofs =
        arena_array(db_txn_arena(txn), settle->count, sizeof(LedgerProof *));
    for (size_t i = 0; i < settle->count; i++) {
        proofs[i] = &settle->proofs[i].ledger;
    }
    note_events(txn, settle);
    LedgerVendor vendor = {rules->vendor, rules->mail_domain};
    settle->statement = ledger_add_settle(txn, proofs, settle->count, &vendor);
    db_txn_submit(txn, on_settled, settle);
}

static Settle *begin(Dispatcher *dispatcher, Arena *arena, size_t count)
{
    Settle *settle = arena_zalloc(arena, sizeof *settle);
    settle->dispatcher = dispatcher;
    settle->proofs = arena_array(arena, count, sizeof *settle->proofs);
    return settle;
}

static void add(Settle *settle, Delivery *delivery, const Stentor__V1__NotificationStatus *status)
{
    Error err = {0};
    Proof *proof = &settle->proofs[settle->count];
    Vendors *vendors = settle->dispatcher->parts.vendors;
    if (read_proof(delivery, status, proof, &err)) {
        settle->count++;
        if (vendors != NULL && delivery->message.delivered <= 1) {
            vendors_heard(
                vendors, proof->ledger.tenant, proof->ledger.vendor, (Status)status->status,
                str_from(status->reason_code), proof->ledger.at_us);
        }
    } else {
        delivery_settle(delivery, &err);
    }
}

void settle_found(Dispatcher *dispatcher, const LateEvent *events, size_t count)
{
    Settle *settle = begin(dispatcher, events[0].delivery->arena, count);
    for (size_t i = 0; i < count; i++) {
        add(settle, events[i].delivery, events[i].status);
    }
    if (settle->count > 0) {
        submit(settle);
    }
}

void settle_batch(Dispatcher *dispatcher, Delivery **deliveries, size_t count)
{
    Arena *arena = deliveries[0]->arena;
    Settle *settle = begin(dispatcher, arena, count);
    LateEvent *late = arena_array(arena, count, sizeof *late);
    size_t late_count = 0;
    for (size_t i = 0; i < count; i++) {
        Error err = {0};
        Stentor__V1__NotificationStatus *status = (Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, deliveries[i]->message.payload, arena,
            &err);
        if (status == NULL || !check_status(status, &err)) {
            delivery_settle(deliveries[i], &err);
        } else if (status->unpublished) {
            late[late_count++] = (LateEvent){deliveries[i], status};
        } else {
            add(settle, deliveries[i], status);
        }
    }
    if (settle->count > 0) {
        submit(settle);
    }
    if (late_count > 0) {
        late_batch(dispatcher, late, late_count);
    }
}

// ---- how many are open ----

static void on_open_counted(void *ctx, DbTxn *txn, const Error *err)
{
    Dispatcher *dispatcher = ctx;
    if (err == NULL) {
        LedgerOpen open = ledger_unknown_open(db_txn_result(txn, 0));
        metric_set(dispatcher->metrics.open_claimed, (double)open.claimed);
        metric_set(dispatcher->metrics.open_parked, (double)open.parked);
    } else if (err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "open unknown outcomes were not counted; trying again", log_error(err));
    }
}

void settle_count_open(Dispatcher *dispatcher)
{
    int64_t now_us = clock_now_us();
    if (!db_pool_ready(dispatcher->parts.pool) ||
        now_us - dispatcher->open_at_us < OPEN_EVERY_S * INT64_C(1000000)) {
        return;
    }
    dispatcher->open_at_us = now_us;
    DbTxn *txn = db_txn_new(dispatcher->parts.pool);
    ledger_add_unknown_open(txn);
    db_txn_submit(txn, on_open_counted, dispatcher);
}
