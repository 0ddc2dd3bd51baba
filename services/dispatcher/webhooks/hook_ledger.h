// SPDX-License-Identifier: Apache-2.0
// The statements on webhooks.deliveries, endpoints and categories: one for each batch. Law: an
// endpoint is called only under a claim of this process, and what became of the call is committed
// before it is published. A claim whose process died may be taken over when its lease has ended:
// the endpoint may get the event twice, under the same webhook-id.
#pragma once

#include "common/db/db.h"
#include "common/model/enums.h"
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

// In order: the first of the notification's events that have not ended, of which the claimed one
// has to wait. Texts are the result's.
typedef struct HookBlocker {
    uint64_t sequence; // 0: there is none
    int64_t sign_us;   // the last sign that its event is on its way
    int64_t silent_ms; // since then
    WebhookState state;
    int64_t next_attempt_at_us;
    Str event_id, type, previous;
    Str payload; // of one that is silent for so long as was asked for
    int64_t created_at_us;
    uint32_t turn, attempt;
} HookBlocker;

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
    int64_t failures; // in a row, of its endpoint
    HookBlocker first;
} HookConflict;

// Rows of deliveries in order, as they are matched: state 'queued'. Returns the statement's index;
// its rows are in hook_ledger_previous.
int hook_ledger_add_queued(
    DbTxn *txn, Stentor__V1__WebhookDelivery *const *deliveries, size_t count);
// The webhook-id of the notification's event before deliveries[index]; false: no more rows.
bool hook_ledger_previous(const PGresult *res, size_t n, size_t *ret_index, Str *ret_previous);

// The category of a tenant's notification, for filters by it.
typedef struct HookCategory {
    Str tenant, notification_id;
    Category category; // as it is kept
} HookCategory;
// In one transaction a statement that keeps goes before one that finds. count is above 0.
void hook_ledger_keep_categories(DbTxn *txn, const HookCategory *categories, size_t count);
int hook_ledger_find_categories(DbTxn *txn, const HookCategory *wanted, size_t count);
// Of wanted[n]; CATEGORY_NONE: it is not known.
Category hook_ledger_category(const PGresult *res, size_t n);

// Claims them for `owner`. Rows of the statement: those that were not claimed
// (hook_ledger_conflict), with what blocks them; of what is silent for silent_ms, the payload too.
int hook_ledger_add_claim(
    DbTxn *txn, Stentor__V1__WebhookDelivery *const *deliveries, size_t count, Str owner,
    int64_t lease_ms, int64_t silent_ms);
size_t hook_ledger_conflicts(const PGresult *res);
HookConflict hook_ledger_conflict(const PGresult *res, size_t n);

// Rows of deliveries in order get a sign that their events are on their way.
void hook_ledger_add_seen(
    DbTxn *txn, Stentor__V1__WebhookDelivery *const *deliveries, size_t count);

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
