// SPDX-License-Identifier: Apache-2.0
// STATUS in, HOOK out: one event for each subscription that wants a status. A tenant without
// subscriptions costs one look at a map. Events in order get a row first, so that none of them can
// be claimed before an earlier one is known; batches are handled one after the other.
#include <stdlib.h>

#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/webhooks/webhook_event.h"
#include "services/dispatcher/webhooks/match_batch.h"
#include "services/dispatcher/webhooks/match_event.h"

typedef Stentor__V1__NotificationStatus NotificationStatus;
typedef Stentor__V1__WebhookDelivery WebhookDelivery;

enum { TENANT_TOKEN = 2 };

// ---- which ----

static void add_match(MatchBatch *batch, Match match)
{
    if (batch->count == batch->room) {
        size_t room = batch->room > 0 ? 2 * batch->room : 64;
        Match *grown = arena_array(match.input->delivery->arena, room, sizeof *grown);
        for (size_t i = 0; i < batch->count; i++) {
            grown[i] = batch->matches[i];
        }
        batch->matches = grown;
        batch->room = room;
    }
    batch->matches[batch->count++] = match;
}

static void match_one(MatchBatch *batch, const MatchInput *input)
{
    char type[WEBHOOK_TYPE_SIZE];
    Subscription *const *subscriptions = NULL;
    const BusMessage *message = &input->delivery->message;
    const NotificationStatus *status = input->status;
    size_t count = subscriptions_of(
        batch->hooks->subscriptions, str_from(status->meta->tenant), &subscriptions);
    webhook_type(status, type);
    for (size_t i = 0; i < count; i++) {
        if (match_wants(subscriptions[i], status, type, input->category, message->stored_at_us)) {
            WebhookDelivery *event =
                match_event(subscriptions[i], message, status, type, input->delivery->arena);
            add_match(batch, (Match){.input = input, .event = event});
        }
    }
}

// ---- publishing ----

static bool emit_match(const Match *match, Error *err)
{
    Delivery *delivery = match->input->delivery;
    WebhookDelivery *event = match->event;
    WebhookPlace place = {
        .sequence = event->in_order ? event->sequence : 0,
        .previous = str_from(event->previous_webhook_id),
    };
    BusOut out;
    Str payload = webhook_payload(match->input->status, &place, delivery->arena);
    if (payload.len == 0) {
        return error_set(
            err, ERROR_PERMANENT, "the payload of a webhook would be longer than %d bytes",
            WEBHOOK_PAYLOAD_MAX);
    }
    event->payload = pb_data(payload);
    if (!webhook_event(event, delivery->message.traceparent, delivery->arena, &out, err)) {
        return false;
    }
    delivery_emit(delivery, &out);
    return true;
}

static void advance(Hooks *hooks);

// What one subscription cannot have, the others of the status have nonetheless.
static void end_match(
    const MatchBatch *batch, const Match *match, const Error *failed, Error *status_err)
{
    if (failed != NULL) {
        return;
    }
    Error err = {0};
    if (match->refused == NULL && emit_match(match, &err)) {
        metric_add(batch->hooks->metrics.matched, 1);
    } else {
        *status_err = match->refused != NULL ? *match->refused : err;
    }
}

static void end_batch(MatchBatch *batch, const Error *failed)
{
    Hooks *hooks = batch->hooks;
    hooks->matching = batch->next;
    hooks->matching_last = hooks->matching == NULL ? NULL : hooks->matching_last;
    size_t at = 0, count = batch->input_count;
    MatchInput *inputs = batch->inputs;
    Error *errors = xcalloc(count, sizeof *errors);
    for (size_t i = 0; i < count; i++) {
        const Error *why = failed != NULL ? failed : inputs[i].error;
        errors[i] = why != NULL ? *why : (Error){0};
        for (; at < batch->count && batch->matches[at].input == &inputs[i]; at++) {
            end_match(batch, &batch->matches[at], failed, &errors[i]);
        }
    }
    map_free(batch->latest);
    // The batch lives as long as its last delivery: nothing of it is used after that is settled.
    for (size_t i = 0; i < count; i++) {
        delivery_settle(inputs[i].delivery, errors[i].kind == ERROR_NONE ? NULL : &errors[i]);
    }
    free(errors);
    advance(hooks);
}

// ---- rows of what goes in order ----

// The event before it in this very batch, which no statement has seen. Called once for each match,
// in their order.
static void look_back(MatchBatch *batch, const Match *match)
{
    WebhookDelivery *event = match->event;
    Str place = str_from(arena_printf(
        match->input->delivery->arena, "%s|%s", event->subscription_id,
        event->meta->notification_id));
    if (batch->latest == NULL) {
        batch->latest = map_new(NULL);
    }
    const WebhookDelivery *earlier = map_get(batch->latest, place);
    if (earlier != NULL) {
        event->previous_webhook_id = earlier->webhook_id;
    }
    map_put(batch->latest, place, event);
}

static bool ask_next(MatchBatch *batch);

void match_go_on(MatchBatch *batch)
{
    if (match_categorise(batch)) {
        return;
    }
    for (size_t i = 0; !batch->matched && i < batch->input_count; i++) {
        match_one(batch, &batch->inputs[i]);
    }
    batch->matched = true;
    if (!ask_next(batch)) {
        end_batch(batch, NULL);
    }
}

static void on_match_timer(uv_timer_t *timer)
{
    const Hooks *hooks = timer->data;
    if (hooks->matching != NULL) {
        hooks->matching->submit(hooks->matching);
    }
}

void match_again(MatchBatch *batch, const Error *err)
{
    if (err->kind == ERROR_CANCELLED || batch->hooks->stopping) {
        end_batch(batch, err);
        return;
    }
    // Here and not by a redelivery, which newer statuses would overtake.
    bool mended = err->kind != ERROR_CONFIG; // by itself; a missing table or right is not
    uint64_t again_ms = mended ? HOOK_FLUSH_AGAIN_MS : HOOK_CONFIG_AGAIN_MS;
    if (!mended) {
        LOG(LOG_WARN, "statuses for webhooks wait for a table, or a right on it, that is missing",
            log_int("count", (int64_t)batch->asked_count), log_error(err));
    }
    (void)uv_timer_start(&batch->hooks->match_timer, on_match_timer, again_ms, 0);
}

static void handle_queued(MatchBatch *batch, const PGresult *res)
{
    size_t index;
    Str previous;
    for (size_t n = 0; hook_ledger_previous(res, n, &index, &previous); n++) {
        if (index < batch->asked_count) {
            Match *match = &batch->matches[batch->asked[index]];
            match->event->previous_webhook_id = arena_cstr(match->input->delivery->arena, previous);
        }
    }
    for (size_t i = 0; i < batch->asked_count; i++) {
        look_back(batch, &batch->matches[batch->asked[i]]);
    }
    match_go_on(batch);
}

// A row that Postgres cannot take holds up no other: each asks by itself, and that one alone ends.
static void handle_refused(MatchBatch *batch, const Error *err)
{
    size_t first = batch->asked[0];
    if (batch->asked_count > 1) {
        batch->alone_until = batch->queried;
        batch->queried = first;
    } else {
        Error *refused = arena_alloc(batch->matches[first].input->delivery->arena, sizeof *refused);
        *refused = *err;
        batch->matches[first].refused = refused;
        LOG(LOG_WARN, "a webhook in order got no row; its status was moved to the dead letters",
            log_text("delivery", batch->matches[first].event->delivery_id), log_error(err));
    }
    match_go_on(batch);
}

static void on_queued(void *ctx, DbTxn *txn, const Error *err)
{
    MatchBatch *batch = ctx;
    CRASH_POINT_IF("hook.queued", err == NULL);
    if (err == NULL) {
        handle_queued(batch, db_txn_result(txn, batch->statement));
    } else if (err->kind == ERROR_PERMANENT) {
        handle_refused(batch, err);
    } else {
        match_again(batch, err);
    }
}

static void submit(MatchBatch *batch)
{
    WebhookDelivery *events[HOOK_BATCH_MAX];
    for (size_t i = 0; i < batch->asked_count; i++) {
        events[i] = batch->matches[batch->asked[i]].event;
    }
    DbTxn *txn = db_txn_new(batch->hooks->parts.pool);
    batch->statement = hook_ledger_add_queued(txn, events, batch->asked_count);
    db_txn_submit(txn, on_queued, batch);
}

void match_give_up(Hooks *hooks)
{
    if (uv_is_active((uv_handle_t *)&hooks->match_timer)) {
        (void)uv_timer_stop(&hooks->match_timer);
        end_batch(hooks->matching, &(Error){.kind = ERROR_CANCELLED});
    }
}

// false: none is left that needs a row.
static bool ask_next(MatchBatch *batch)
{
    batch->asked_count = 0;
    size_t most = batch->queried < batch->alone_until ? 1 : HOOK_BATCH_MAX;
    while (batch->queried < batch->count && batch->asked_count < most) {
        size_t at = batch->queried++;
        if (batch->matches[at].event->in_order) {
            // The row is made before the event before it is known; the claim puts the whole text.
            batch->matches[at].event->payload = pb_data(STR(WEBHOOK_NO_PAYLOAD));
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

static void advance(Hooks *hooks)
{
    if (hooks->matching != NULL) {
        match_go_on(hooks->matching);
    }
}

// ---- a batch ----

static void add_batch(Hooks *hooks, MatchBatch *batch)
{
    bool first = hooks->matching == NULL;
    if (first) {
        hooks->matching = batch;
    } else {
        hooks->matching_last->next = batch;
    }
    hooks->matching_last = batch;
    if (first) {
        advance(hooks);
    }
}

// true: it has an end, with *ret_err.
static bool read_input(Hooks *hooks, Delivery *delivery, MatchInput *ret, Error *ret_err)
{
    Subscription *const *subscriptions = NULL;
    Str tenant = subject_token(delivery->message.subject, TENANT_TOKEN);
    if (subscriptions_of(hooks->subscriptions, tenant, &subscriptions) == 0) {
        return true;
    }
    const NotificationStatus *status = match_read(&delivery->message, delivery->arena, ret_err);
    if (status == NULL) {
        return true;
    }
    *ret = (MatchInput){
        .delivery = delivery, .status = status, .category = (Category)status->category};
    return false;
}

void match_batch(Hooks *hooks, Delivery **deliveries, size_t count)
{
    Arena *arena = deliveries[0]->arena;
    MatchBatch *batch = arena_zalloc(arena, sizeof *batch);
    batch->hooks = hooks;
    batch->inputs = arena_array(arena, count, sizeof *batch->inputs);
    Delivery **ends = xcalloc(count, sizeof(Delivery *));
    Error *errors = xcalloc(count, sizeof *errors);
    size_t end_count = 0;
    for (size_t i = 0; i < count; i++) {
        Error err = {0};
        MatchInput *input = &batch->inputs[batch->input_count];
        if (read_input(hooks, deliveries[i], input, &err)) {
            ends[end_count] = deliveries[i];
            errors[end_count++] = err;
        } else {
            batch->input_count++;
        }
    }
    if (batch->input_count > 0) {
        add_batch(hooks, batch);
    }
    // Last, for with the last one the batch's memory may go.
    for (size_t i = 0; i < end_count; i++) {
        delivery_settle(ends[i], errors[i].kind == ERROR_NONE ? NULL : &errors[i]);
    }
    free((void *)ends);
    free(errors);
}
