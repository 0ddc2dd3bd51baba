// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/callbacks/late.h"

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/events/status_event.h"
#include "common/vendor/vendor_callback.h"
#include "services/dispatcher/ledger/ledger_calls.h"
#include "services/dispatcher/ledger/ledger_events.h"

enum { WAIT_MIN_MS = 1000, WAIT_MAX_MS = 60000, FOREIGN_LOG_US = 60000000 };

// In the deliveries' arena.
typedef struct Late {
    Dispatcher *dispatcher;
    LateEvent *events;
    size_t count;
    int statement;
    int unanswered; // the statement about calls without an answer; -1: there are none
    size_t *calls;  // which events they are
    bool *again;    // of each event: another call follows
} Late;

// ---- one event ----

// A vendor's account may send mails that are not ours, and reports them too: without our mark, and
// under an id that no mail of ours has. A line a minute at most.
static void drop_foreign(Dispatcher *dispatcher, const LateEvent *event)
{
    int64_t now_us = clock_mono_us();
    metric_add(dispatcher->metrics.callbacks_foreign, 1);
    dispatcher->foreign++;
    if (dispatcher->foreign_logged_us == 0 ||
        now_us - dispatcher->foreign_logged_us >= FOREIGN_LOG_US) {
        LOG(LOG_INFO, "vendors' events about mails that are not ours were dropped",
            log_int("count", dispatcher->foreign), log_text("tenant", event->status->meta->tenant),
            log_text("vendor", event->status->attempt->vendor),
            log_text("message", event->status->attempt->vendor_message_id),
            log_text("hint", "STENTOR_DISPATCHER_KEEP_FOREIGN=true makes dead letters of them"));
        dispatcher->foreign_logged_us = now_us;
        dispatcher->foreign = 0;
    }
    delivery_settle(event->delivery, NULL);
}

// An event that names a notification never comes here: it is published whoever it is about.
static void wait_for_its_mail(Dispatcher *dispatcher, const LateEvent *event)
{
    const BusMessage *message = &event->delivery->message;
    const Stentor__V1__Attempt *attempt = event->status->attempt;
    bool named = attempt != NULL && attempt->vendor_message_id[0] != '\0';
    bool over = clock_now_us() - message->stored_at_us > dispatcher->parts.late_s * 1000000;
    Error err = {0};
    if (named && over && !dispatcher->parts.keep_foreign) {
        drop_foreign(dispatcher, event);
        return;
    }
    if (!named) {
        (void)error_set(
            &err, ERROR_PERMANENT, "the vendor's event names neither a notification nor a message");
    } else if (over) {
        (void)error_set(
            &err, ERROR_PERMANENT, "no mail of ours has the vendor's id '%.60s'",
            attempt->vendor_message_id);
    }
    if (err.kind != ERROR_NONE) {
        metric_add(dispatcher->metrics.callbacks_unknown, 1);
        delivery_settle(event->delivery, &err);
        return;
    }
    uint32_t times = message->delivered < 7 ? message->delivered : 7;
    int wait_ms = WAIT_MIN_MS << (times > 0 ? times - 1 : 0);
    delivery_redeliver(event->delivery, wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS);
}

// A vendor's report names no attempt on STATUS (common/history ranks it above all of ours).
// again: of a call without an answer, which another one follows: so it is no end.
static bool publish(const LateEvent *event, Str notification_id, bool again, Error *err)
{
    Stentor__V1__NotificationStatus *status = event->status;
    Arena *arena = event->delivery->arena;
    uint32_t number = status->attempt != NULL ? status->attempt->number : 0;
    BusOut out;
    status->meta->notification_id = arena_cstr(arena, notification_id);
    status->unpublished = false;
    bool untimed = status->untimed;
    status->untimed = false;
    if (again) {
        status->status = STENTOR__V1__STATUS__STATUS_SENDING;
        status->attempt->outcome = STENTOR__V1__OUTCOME__OUTCOME_REJECTED_RETRYABLE;
    }
    if (status->attempt != NULL) {
        status->attempt->number = 0;
    }
    if (!status_event(status, event->delivery->message.traceparent, arena, &out, err)) {
        return false;
    }
    if (status->attempt != NULL) {
        status->attempt->number = number;
    }
    status->untimed = untimed;
    delivery_emit(event->delivery, &out);
    return true;
}

// ---- all of a batch ----

static void late_failed(const Late *late, const Error *err)
{
    if (err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "late callbacks were not looked up; they will be redelivered",
            log_int("count", (int64_t)late->count), log_error(err));
    }
    for (size_t i = 0; i < late->count; i++) {
        delivery_settle(late->events[i].delivery, err);
    }
}

// true: it goes on as a proof; else its delivery has its end.
static bool take(const Late *late, const LedgerLate *found)
{
    const LateEvent *event = &late->events[found->index];
    const DispatcherMetrics *metrics = &late->dispatcher->metrics;
    Error err = {0};
    if (found->notification_id.len == 0) {
        wait_for_its_mail(late->dispatcher, event);
        return false;
    }
    metric_add(found->repeated ? metrics->callbacks_repeated : metrics->callbacks_late, 1);
    if (found->repeated) {
        delivery_settle(event->delivery, NULL);
        return false;
    }
    bool again = late->again[found->index];
    bool published = publish(event, found->notification_id, again, &err);
    if (!published || again) {
        delivery_settle(event->delivery, published ? NULL : &err);
        return false;
    }
    return true;
}

static void note_again(const Late *late, DbTxn *txn)
{
    const PGresult *res = late->unanswered >= 0 ? db_txn_result(txn, late->unanswered) : NULL;
    for (int n = 0; res != NULL && n < db_rows(res); n++) {
        late->again[late->calls[ledger_unanswered(res, (size_t)n)]] = true;
    }
}

static void on_found(void *ctx, DbTxn *txn, const Error *err)
{
    const Late *late = ctx;
    if (err != NULL) {
        late_failed(late, err);
        return;
    }
    CRASH_POINT("dispatcher.late_noted");
    const PGresult *res = db_txn_result(txn, late->statement);
    note_again(late, txn);
    LateEvent *known = arena_array(late->events[0].delivery->arena, late->count, sizeof *known);
    size_t count = 0;
    for (int n = 0; n < db_rows(res); n++) {
        LedgerLate found = ledger_late(res, (size_t)n);
        if (found.index < late->count && take(late, &found)) {
            known[count++] = late->events[found.index];
        }
    }
    if (count > 0) {
        settle_found(late->dispatcher, known, count);
    }
}

int64_t late_noted_us(const Stentor__V1__NotificationStatus *status)
{
    int64_t created_ms = 0; // it names none: 1970
    if (!status->untimed) {
        return status->meta->occurred_at_us;
    }
    (void)id_parse(str_from(status->meta->notification_id), "ntf_", &created_ms);
    return created_ms * 1000;
}

// Of a call whose attempt is named; the same transaction notes the event, so both happen or none.
static bool read_call(const Stentor__V1__NotificationStatus *status, LedgerCall *ret)
{
    const Stentor__V1__Attempt *attempt = status->attempt;
    int64_t created_ms = 0;
    if (!callback_is_unanswered((Channel)status->channel, status->reason_code) || attempt == NULL ||
        attempt->number == 0 || attempt->number > JOB_ATTEMPTS_MAX ||
        !id_parse(str_from(status->meta->notification_id), "ntf_", &created_ms)) {
        return false;
    }
    *ret = (LedgerCall){
        .key =
            {
                .created_at_us = created_ms * 1000,
                .notification_id = str_from(status->meta->notification_id),
                .attempt = (int32_t)attempt->number,
                .tenant = str_from(status->meta->tenant),
            },
        .vendor = str_from(attempt->vendor),
        .reason = str_from(status->reason_code),
        .reply = str_from(attempt->text),
    };
    return true;
}

static void add_unanswered(Late *late, DbTxn *txn, Arena *arena)
{
    LedgerCall *calls = arena_array(db_txn_arena(txn), late->count, sizeof *calls);
    size_t count = 0;
    late->unanswered = -1;
    late->calls = arena_array(arena, late->count, sizeof *late->calls);
    late->again = arena_array(arena, late->count, sizeof *late->again);
    for (size_t i = 0; i < late->count; i++) {
        late->again[i] = false;
        if (read_call(late->events[i].status, &calls[count])) {
            late->calls[count++] = i;
        }
    }
    if (count > 0) {
        late->unanswered = ledger_add_unanswered(txn, calls, count);
    }
}

// Killed after the commit: the message comes again, its note has its own sequence, and it is
// published then.
void late_batch(Dispatcher *dispatcher, const LateEvent *events, size_t count)
{
    Arena *arena = events[0].delivery->arena;
    Late *late = arena_zalloc(arena, sizeof *late);
    *late = (Late){.dispatcher = dispatcher, .count = count};
    late->events = arena_copy(arena, events, count * sizeof *events);
    DbTxn *txn = db_txn_new(dispatcher->parts.pool);
    LedgerEvent *asked = arena_array(db_txn_arena(txn), count, sizeof *asked);
    for (size_t i = 0; i < count; i++) {
        const Stentor__V1__NotificationStatus *status = events[i].status;
        const Stentor__V1__Attempt *attempt = status->attempt;
        asked[i] = (LedgerEvent){
            .at_us = late_noted_us(status),
            .event_id = str_from(status->meta->event_id),
            .tenant = str_from(status->meta->tenant),
            .sequence = events[i].delivery->message.sequence,
            .notification_id = str_from(status->meta->notification_id),
            .vendor = attempt != NULL ? str_from(attempt->vendor) : STR_EMPTY,
            .message_id = attempt != NULL ? str_from(attempt->vendor_message_id) : STR_EMPTY,
        };
    }
    late->statement = ledger_add_late(txn, asked, count);
    add_unanswered(late, txn, arena);
    db_txn_submit(txn, on_found, late);
}
