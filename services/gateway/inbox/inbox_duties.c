// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/inbox/inbox_duties.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/events/status_event.h"
#include "common/codec/event.h"
#include "common/events/meta.h"
#include "common/events/status.h"
#include "common/feed/feed_event.h"
#include "common/ticks/ticks.h"

enum {
    TICK_MS = 1000,
    LOOK_MS = 5000, // at least so often, whatever is known
    SOON_MS = 5,
    FOLDED_MS = 50, // what was published is folded by then, if nothing else waits
    AT_ONCE_MAX = 500,
    DROP_EVERY_S = 3600,
};

// clang-format off
static const DbStatement DUE = {"inbox_due",
    "SELECT tenant_id, recipient, notification_id, snoozed_until, expires_at, coalesce(expires_at <= now(), false)"
    " FROM feed.due($1::int4)"};
static const DbStatement DUE_IN = {"inbox_due_in", "SELECT feed.due_in()"};
static const DbStatement WAITING = {"inbox_statuses",
    "SELECT tenant_id, notification_id, status, category, occurred_at FROM feed.waiting_statuses($1::int4)"};
static const DbStatement STORED = {"inbox_statuses_stored",
    "DELETE FROM feed.statuses s USING unnest($1::text[], $2::text[], $3::text[]) AS u (tenant_id, notification_id, status)"
    " WHERE s.notification_id = u.notification_id AND s.status = u.status AND s.tenant_id = u.tenant_id"};
static const DbStatement DROP = {"inbox_drop_old",
    "SELECT feed.drop_old($1::timestamptz, $2::int4)"};
// clang-format on

typedef struct Report {
    Str tenant, id, status;
    bool stored;
} Report;

// One round of a duty; it and all that it points to is in its arena.
typedef struct Round {
    InboxDuties *duties;
    Arena *arena;
    Report *reports;
    size_t count;
    size_t waiting; // publishes without an ack, and one for the loop that begins them
    size_t added;   // stored, and not before
    bool full;      // there may be more
} Round;

struct InboxDuties {
    Bus *bus;
    DbPool *pool;
    bool (*may)(void *ctx);
    void *ctx;
    uv_timer_t tick, soon;
    bool telling, ending, dropping;
    int64_t tell_at_us, end_at_us, drop_at_us; // of clock_mono_us(): nothing is there before
    unsigned changes;                          // commits of the fold
    unsigned told_changes, ended_changes;      // so many when the tables were looked at last
    bool stopping;
    int closed; // timers
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    Metric *statuses, *ended, *dropped;
};

static void on_tick_timer(uv_timer_t *timer);

static void end_when_stopped(InboxDuties *duties)
{
    if (duties->stopping && duties->closed == 2 && !duties->telling && !duties->ending &&
        !duties->dropping) {
        duties->stopping = false;
        duties->on_stopped(duties->stopped_ctx);
    }
}

static bool may_begin(const InboxDuties *duties)
{
    return !duties->stopping && duties->may(duties->ctx) && db_pool_ready(duties->pool) &&
           bus_connected(duties->bus);
}

static Round *round_new(InboxDuties *duties, size_t count)
{
    Arena *arena = arena_new(0);
    Round *round = arena_zalloc(arena, sizeof *round);
    *round = (Round){.duties = duties, .arena = arena, .waiting = 1};
    round->reports = arena_array(arena, count + 1, sizeof *round->reports);
    return round;
}

// ---- statuses ----

static void finish_telling(Round *round, bool again)
{
    InboxDuties *duties = round->duties;
    arena_free(round->arena);
    duties->telling = false;
    if (again) {
        inbox_duties_soon(duties);
    }
    end_when_stopped(duties);
}

static void on_reports_deleted(void *ctx, DbTxn *txn, const Error *err)
{
    (void)txn;
    Round *round = ctx;
    finish_telling(round, err == NULL && round->count == AT_ONCE_MAX);
}

// Killed before this: they are published again under the same ids.
static void delete_reported(Round *round)
{
    size_t stored = 0;
    DbTxn *txn = db_txn_new(round->duties->pool);
    DbParams *p = db_txn_add(txn, &STORED, NULL);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *id = db_array(p, DB_TEXT);
    DbArray *status = db_array(p, DB_TEXT);
    for (size_t i = 0; i < round->count; i++) {
        const Report *report = &round->reports[i];
        if (report->stored) {
            db_txn_tenant(txn, report->tenant);
            db_push_text(tenant, report->tenant);
            db_push_text(id, report->id);
            db_push_text(status, report->status);
            stored++;
        }
    }
    metric_add(round->duties->statuses, (double)stored);
    CRASH_POINT_IF("inbox.status_stored", stored > 0);
    if (stored == 0) {
        db_txn_abandon(txn);
        finish_telling(round, false);
    } else {
        db_txn_submit(txn, on_reports_deleted, round);
    }
}

typedef struct Publish {
    Round *round;
    size_t at;
} Publish;

static void note_acked(Round *round)
{
    if (--round->waiting == 0) {
        delete_reported(round);
    }
}

static void on_status_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    const Publish *publish = ctx;
    publish->round->reports[publish->at].stored = err == NULL;
    note_acked(publish->round);
}

static bool make_status(const PGresult *rows, int row, Arena *arena, BusOut *ret)
{
    char event_id[EVENT_ID_SIZE];
    Status status = STATUS_NONE;
    Category category = CATEGORY_NONE;
    Error err = {0};
    Str id = db_get_text(rows, row, 1);
    (void)status_from_name(db_get_text(rows, row, 2), &status);
    (void)category_from_name(db_get_text(rows, row, 3), &category);
    event_id_derive(
        "status", id, str_from(arena_printf(arena, "%s/inbox", status_name(status))), event_id);
    Stentor__V1__Meta meta = meta_make(&(MetaSpec){
        .event_id = event_id,
        .tenant = arena_cstr(arena, db_get_text(rows, row, 0)),
        .notification_id = arena_cstr(arena, id),
        .at_us = db_get_time(rows, row, 4),
    });
    const StatusSpec spec = {.meta = &meta, .status = status};
    Stentor__V1__NotificationStatus event = status_make(&spec, CHANNEL_INAPP);
    event.category = (Stentor__V1__Category)category;
    return status_event(&event, STR_EMPTY, arena, ret, &err);
}

static void tell(Round *round, const PGresult *rows)
{
    round->count = (size_t)db_rows(rows);
    for (size_t i = 0; i < round->count; i++) {
        BusOut out;
        round->reports[i] = (Report){
            .tenant = arena_str(round->arena, db_get_text(rows, (int)i, 0)),
            .id = arena_str(round->arena, db_get_text(rows, (int)i, 1)),
            .status = arena_str(round->arena, db_get_text(rows, (int)i, 2)),
        };
        if (make_status(rows, (int)i, round->arena, &out)) {
            Publish *publish = arena_zalloc(round->arena, sizeof *publish);
            *publish = (Publish){round, i};
            round->waiting++;
            bus_publish(round->duties->bus, &out, on_status_acked, publish);
        }
    }
    note_acked(round);
}

static void on_statuses_read(void *ctx, DbTxn *txn, const Error *err)
{
    InboxDuties *duties = ctx;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    if (rows == NULL || db_rows(rows) == 0) {
        duties->telling = false;
        duties->tell_at_us = rows != NULL ? clock_mono_us() + LOOK_MS * INT64_C(1000) : 0;
        end_when_stopped(duties);
        return;
    }
    tell(round_new(duties, (size_t)db_rows(rows)), rows);
}

static void begin_telling(InboxDuties *duties)
{
    if (duties->telling || !may_begin(duties)) {
        return;
    }
    duties->telling = true;
    duties->told_changes = duties->changes;
    DbTxn *txn = db_txn_new(duties->pool);
    db_i32(db_txn_add(txn, &WAITING, NULL), AT_ONCE_MAX);
    db_txn_submit(txn, on_statuses_read, duties);
}

// ---- what a time brings ----

// What was published is due until it is folded. A round that adds nothing waits for the next tick:
// the fold is behind.
static void finish_ending(Round *round)
{
    InboxDuties *duties = round->duties;
    bool again = round->full && round->added > 0 && !duties->stopping;
    metric_add(duties->ended, (double)round->added);
    arena_free(round->arena);
    duties->ending = false;
    if (again) {
        uv_timer_start(&duties->tick, on_tick_timer, FOLDED_MS, TICK_MS);
    }
    end_when_stopped(duties);
}

static void note_ended(Round *round)
{
    if (--round->waiting == 0) {
        finish_ending(round);
    }
}

static void on_end_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    Round *round = ctx;
    CRASH_POINT_IF("inbox.end_stored", err == NULL);
    round->added += err == NULL && !duplicate ? 1 : 0;
    note_ended(round);
}

// Read as still due until it is folded: published again then, under the same id.
static void end_item(Round *round, const PGresult *rows, int row)
{
    Arena *arena = round->arena;
    bool expires = db_get_int(rows, row, 5) != 0;
    int64_t at_us = db_get_time(rows, row, expires ? 4 : 3);
    char *id = arena_cstr(arena, db_get_text(rows, row, 2));
    Str recipient = arena_str(arena, db_get_text(rows, row, 1));
    char event_id[EVENT_ID_SIZE];
    FeedStateSpec spec;
    BusOut out;
    Error err = {0};
    Stentor__V1__FeedState state = STENTOR__V1__FEED_STATE__INIT;
    state.action = expires ? STENTOR__V1__FEED_ACTION__FEED_ACTION_EXPIRE
                           : STENTOR__V1__FEED_ACTION__FEED_ACTION_SNOOZE_END;
    state.notification_ids = &id;
    state.n_notification_ids = 1;
    state.until_us = at_us;
    event_id_derive(
        "feed", str_from(id),
        str_from(arena_printf(arena, "%s/%" PRId64, expires ? "expire" : "snooze_end", at_us)),
        event_id);
    spec = (FeedStateSpec){
        .tenant = db_get_text(rows, row, 0),
        .recipient = (const uint8_t *)recipient.ptr,
        .event_id = event_id,
        .at_us = at_us,
        .state = &state,
    };
    if (recipient.len == FEED_RECIPIENT_LEN && feed_state_event(&spec, arena, &out, &err)) {
        round->waiting++;
        bus_publish(round->duties->bus, &out, on_end_acked, round);
    }
}

// Until the next time comes; a tick may be early, and finds nothing then.
static int64_t rest_ms(const PGresult *due_in)
{
    int64_t in_ms = db_is_null(due_in, 0, 0) ? LOOK_MS : db_get_int(due_in, 0, 0);
    return in_ms < LOOK_MS ? in_ms : LOOK_MS;
}

static void on_due_read(void *ctx, DbTxn *txn, const Error *err)
{
    InboxDuties *duties = ctx;
    const PGresult *rows = err == NULL ? db_txn_result(txn, 0) : NULL;
    duties->end_at_us = 0;
    if (rows == NULL || db_rows(rows) == 0) {
        if (rows != NULL) {
            duties->end_at_us = clock_mono_us() + rest_ms(db_txn_result(txn, 1)) * 1000;
        }
        duties->ending = false;
        end_when_stopped(duties);
        return;
    }
    Round *round = round_new(duties, 0);
    round->full = db_rows(rows) == AT_ONCE_MAX;
    for (int i = 0; i < db_rows(rows); i++) {
        end_item(round, rows, i);
    }
    note_ended(round);
}

static void begin_ending(InboxDuties *duties)
{
    if (duties->ending || !may_begin(duties)) {
        return;
    }
    duties->ending = true;
    duties->ended_changes = duties->changes;
    DbTxn *txn = db_txn_new(duties->pool);
    db_i32(db_txn_add(txn, &DUE, NULL), AT_ONCE_MAX);
    (void)db_txn_add(txn, &DUE_IN, NULL);
    db_txn_submit(txn, on_due_read, duties);
}

// ---- what is too old ----

static void on_old_dropped(void *ctx, DbTxn *txn, const Error *err)
{
    InboxDuties *duties = ctx;
    int64_t count = err == NULL ? db_get_int(db_txn_result(txn, 0), 0, 0) : 0;
    if (err != NULL && err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "old items of inboxes were not dropped; trying again in an hour",
            log_error(err));
    }
    metric_add(duties->dropped, (double)count);
    duties->drop_at_us =
        count == AT_ONCE_MAX ? 0 : clock_mono_us() + DROP_EVERY_S * INT64_C(1000000);
    duties->dropping = false;
    end_when_stopped(duties);
}

static void begin_dropping(InboxDuties *duties)
{
    if (duties->dropping || clock_mono_us() < duties->drop_at_us || !may_begin(duties)) {
        return;
    }
    duties->dropping = true;
    DbTxn *txn = db_txn_new(duties->pool);
    DbParams *p = db_txn_add(txn, &DROP, NULL);
    db_time(p, clock_now_us() - INBOX_KEPT_DAYS * INT64_C(86400000000));
    db_i32(p, AT_ONCE_MAX);
    db_txn_submit(txn, on_old_dropped, duties);
}

// ---- start and stop ----

static void on_tick_timer(uv_timer_t *timer)
{
    ticks_keep(timer);
    InboxDuties *duties = timer->data;
    int64_t now_us = clock_mono_us();
    if (!duties->may(duties->ctx)) { // another one folds: nothing is known
        duties->tell_at_us = duties->end_at_us = 0;
        return;
    }
    if (duties->told_changes != duties->changes || now_us >= duties->tell_at_us) {
        begin_telling(duties);
    }
    if (duties->ended_changes != duties->changes || now_us >= duties->end_at_us) {
        begin_ending(duties);
    }
    begin_dropping(duties);
}

static void on_soon_timer(uv_timer_t *timer)
{
    begin_telling(timer->data);
}

InboxDuties *inbox_duties_new(
    Bus *bus, DbPool *pool, Metrics *metrics, bool (*may)(void *ctx), void *ctx)
{
    InboxDuties *duties = xcalloc(1, sizeof *duties);
    *duties = (InboxDuties){.bus = bus, .pool = pool, .may = may, .ctx = ctx};
    // clang-format off
    duties->statuses = metrics_counter(metrics, "stentor_gateway_inbox_statuses_total", "", "Statuses of in-app notifications that STATUS has stored");
    duties->ended = metrics_counter(metrics, "stentor_gateway_inbox_ended_total", "", "Snoozes that ended and items that expired");
    duties->dropped = metrics_counter(metrics, "stentor_gateway_inbox_dropped_total", "", "Items of inboxes that were dropped because of their age");
    // clang-format on
    uv_timer_init(bus_loop(bus), &duties->tick);
    uv_timer_init(bus_loop(bus), &duties->soon);
    duties->tick.data = duties;
    duties->soon.data = duties;
    ticks_start(&duties->tick, on_tick_timer, TICK_MS);
    return duties;
}

void inbox_duties_soon(InboxDuties *duties)
{
    duties->changes++;
    if (!duties->stopping && !uv_is_active((uv_handle_t *)&duties->soon) &&
        !uv_is_closing((uv_handle_t *)&duties->soon)) {
        uv_timer_start(&duties->soon, on_soon_timer, SOON_MS, 0);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    InboxDuties *duties = handle->data;
    duties->closed++;
    end_when_stopped(duties);
}

void inbox_duties_stop(InboxDuties *duties, void (*on_stopped)(void *ctx), void *ctx)
{
    duties->stopping = true;
    duties->on_stopped = on_stopped;
    duties->stopped_ctx = ctx;
    uv_close((uv_handle_t *)&duties->tick, on_timer_closed);
    uv_close((uv_handle_t *)&duties->soon, on_timer_closed);
}

void inbox_duties_free(InboxDuties *duties)
{
    free(duties);
}
