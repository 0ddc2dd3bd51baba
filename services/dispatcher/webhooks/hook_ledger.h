// SPDX-License-Identifier: Apache-2.0
// The statements on webhooks.deliveries and webhooks.endpoints: one for each batch. Law: an
// endpoint is called only under a claim of this process, and what became of the call is committed
// before it is published. A claim whose process died may be taken over when its lease has ended:
// the endpoint may get the event twice, under the same webhook-id.
#pragma once

#include "common/db/db.h"
#include "common/webhooks/webhook_state.h"
#include "stentor/v1/webhook.pb-c.h"

enum { HOOK_BATCH_MAX = 256, HOOK_ERROR_SIZE = 32 };

// What became of a claimed delivery.
typedef struct HookOutcome {
    WebhookState state; // WEBHOOK_DELIVERED, WEBHOOK_WAITING, WEBHOOK_FAILED
    int64_t finished_at_us;
    int64_t next_attempt_at_us;  // WEBHOOK_WAITING
    int status_code;             // 0: no answer
    char error[HOOK_ERROR_SIZE]; // "" for a success
    Str response;
    int64_t duration_ms;
    bool counts;      // as a failure of the endpoint
    int64_t since_us; // failures of before are none in a row with it: its subscription was turned
                      // on again then; 0: never
} HookOutcome;

// One that was not claimed: what stands there.
typedef struct HookConflict {
    size_t index;       // of the keys that were given
    WebhookState state; // WEBHOOK_NONE: another transaction is inserting it
    uint32_t turn;
    int32_t attempt;
    int64_t wait_ms; // WEBHOOK_CLAIMED: until its lease ends
    int64_t finished_at_us, next_attempt_at_us;
    int status_code;
    Str error;
    bool blocked;             // an earlier event of its notification has not ended
    int64_t blocked_until_us; // that one's next attempt; 0: it is on its way
    int64_t failures;         // in a row, of its endpoint
} HookConflict;

// Rows of deliveries in order, as they are matched: state 'queued'. Returns the statement's index;
// its rows are in hook_ledger_previous.
int hook_ledger_add_queued(
    DbTxn *txn, Stentor__V1__WebhookDelivery *const *deliveries, size_t count);
// The webhook-id of the notification's event before deliveries[index]; false: no more rows.
bool hook_ledger_previous(const PGresult *res, size_t n, size_t *ret_index, Str *ret_previous);

// Claims them for `owner`. Rows of the statement: those that were not claimed
// (hook_ledger_conflict).
int hook_ledger_add_claim(
    DbTxn *txn, Stentor__V1__WebhookDelivery *const *deliveries, size_t count, Str owner,
    int64_t lease_ms);
size_t hook_ledger_conflicts(const PGresult *res);
HookConflict hook_ledger_conflict(const PGresult *res, size_t n);

// Ends claims of `owner`. Rows of the statement: hook_ledger_recorded.
int hook_ledger_add_outcomes(
    DbTxn *txn, Stentor__V1__WebhookDelivery *const *deliveries, const HookOutcome *const *outcomes,
    size_t count, Str owner);
// A row that was ended: its index, and the failures in a row of its endpoint.
typedef struct HookRecorded {
    size_t index;
    int64_t failures;
} HookRecorded;
size_t hook_ledger_recorded_count(const PGresult *res);
HookRecorded hook_ledger_recorded(const PGresult *res, size_t n);
