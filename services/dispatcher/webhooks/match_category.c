// SPDX-License-Identifier: Apache-2.0
// A filter by category lets a vendor's report through by its notification's category, which the
// report does not say: the statuses before it did, and they came by here. Of tenants with such a
// filter they are kept. One transaction for a batch, which keeps first, so that what is looked up
// may stand in the same batch.
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "services/dispatcher/webhooks/match_batch.h"

// Also of a subscription that is turned off: it may be turned on again.
static bool has_filter(const Subscriptions *subscriptions, Str tenant)
{
    Subscription *const *at = NULL;
    size_t count = subscriptions_of(subscriptions, tenant, &at);
    for (size_t i = 0; i < count; i++) {
        if (at[i]->entry->n_categories > 0) {
            return true;
        }
    }
    return false;
}

static bool is_asked(const MatchBatch *batch, const MatchInput *input)
{
    const Stentor__V1__Meta *meta = input->status->meta;
    bool known = input->category == CATEGORY_NONE || category_name(input->category)[0] != '\0';
    return known && has_filter(batch->hooks->subscriptions, str_from(meta->tenant)) &&
           id_parse(str_from(meta->notification_id), "ntf_", NULL);
}

// While a stream or a process is away, a report may be stored before the notification's own
// statuses. The report of a young notification is read again for a while; a tenant's first filter
// finds many such, so few at once.
static bool may_come(Hooks *hooks, const MatchInput *input)
{
    const BusMessage *message = &input->delivery->message;
    int64_t created_ms = 0, now_us = clock_mono_us();
    (void)id_parse(str_from(input->status->meta->notification_id), "ntf_", &created_ms);
    if (message->delivered >= HOOK_EARLY_READS ||
        message->stored_at_us - created_ms * 1000 > HOOK_YOUNG_S * INT64_C(1000000)) {
        return false;
    }
    if (now_us - hooks->early_since_us > HOOK_EARLY_S * INT64_C(1000000)) {
        hooks->early_since_us = now_us;
        hooks->early_count = 0;
    }
    return hooks->early_count++ < HOOK_EARLY_MAX;
}

static void take_unknown(Hooks *hooks, MatchInput *input)
{
    if (may_come(hooks, input)) {
        Error *early = arena_zalloc(input->delivery->arena, sizeof *early);
        (void)error_set(early, ERROR_TRANSIENT, "its notification's category may still come");
        input->error = early;
    } else {
        metric_add(hooks->metrics.uncategorised, 1);
    }
}

static void take_found(MatchBatch *batch, const PGresult *res)
{
    size_t row = 0;
    for (size_t i = 0; i < batch->asked_count; i++) {
        MatchInput *input = &batch->inputs[batch->asked[i]];
        if (input->category == CATEGORY_NONE) {
            input->category = hook_ledger_category(res, row++);
            if (input->category == CATEGORY_NONE) {
                take_unknown(batch->hooks, input);
            }
        }
    }
}

// What Postgres cannot take holds up no other: each asks by itself, and that one alone is a dead
// letter.
static void handle_refused(MatchBatch *batch, const Error *err)
{
    size_t first = batch->asked[0];
    if (batch->asked_count > 1) {
        batch->categories_alone = true;
        batch->categorised = first;
    } else {
        Error *refused = arena_alloc(batch->inputs[first].delivery->arena, sizeof *refused);
        *refused = *err;
        batch->inputs[first].error = refused;
        LOG(LOG_WARN,
            "a notification's category was not kept, or found; the status was moved to the "
            "dead letters",
            log_text("notification", batch->inputs[first].status->meta->notification_id),
            log_error(err));
    }
    match_go_on(batch);
}

static void on_categorised(void *ctx, DbTxn *txn, const Error *err)
{
    MatchBatch *batch = ctx;
    CRASH_POINT_IF("hook.categorised", err == NULL);
    if (err == NULL) {
        take_found(batch, batch->statement >= 0 ? db_txn_result(txn, batch->statement) : NULL);
        match_go_on(batch);
    } else if (err->kind == ERROR_PERMANENT) {
        handle_refused(batch, err);
    } else {
        match_again(batch, err);
    }
}

static void submit(MatchBatch *batch)
{
    DbTxn *txn = db_txn_new(batch->hooks->parts.pool);
    HookCategory *known = arena_array(db_txn_arena(txn), batch->asked_count, sizeof *known);
    HookCategory *wanted = arena_array(db_txn_arena(txn), batch->asked_count, sizeof *wanted);
    size_t known_count = 0, wanted_count = 0;
    for (size_t i = 0; i < batch->asked_count; i++) {
        const MatchInput *input = &batch->inputs[batch->asked[i]];
        bool says = input->category != CATEGORY_NONE;
        HookCategory *at = says ? &known[known_count++] : &wanted[wanted_count++];
        *at = (HookCategory){
            .tenant = str_from(input->status->meta->tenant),
            .notification_id = str_from(input->status->meta->notification_id),
            .category = input->category,
        };
    }
    if (known_count > 0) {
        hook_ledger_keep_categories(txn, known, known_count);
    }
    batch->statement =
        wanted_count > 0 ? hook_ledger_find_categories(txn, wanted, wanted_count) : -1;
    db_txn_submit(txn, on_categorised, batch);
}

bool match_categorise(MatchBatch *batch)
{
    size_t most = batch->categories_alone ? 1 : HOOK_BATCH_MAX;
    batch->asked_count = 0;
    while (batch->categorised < batch->input_count && batch->asked_count < most) {
        size_t at = batch->categorised++;
        if (is_asked(batch, &batch->inputs[at])) {
            batch->asked[batch->asked_count++] = at;
        }
    }
    if (batch->asked_count == 0) {
        return false;
    }
    batch->submit = submit;
    submit(batch);
    return true;
}
