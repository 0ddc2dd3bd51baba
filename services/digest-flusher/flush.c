// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/flush.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/events/sealed.h"
#include "services/digest-flusher/digest_sql.h"

enum {
    SLEEP_MAX_MS = 5000, // own intake wakes it: this is for what others have put in
    SLEEP_EMPTY_MS = 5,  // this host's clock may be ahead of the database's
    AWAY_MS = 100,       // Postgres is away, or not connected yet
    FORGET_MS = 60 * 1000,
    FREEZE_RESULTS = 1, // of digest_freeze: absorbed, frozen, next
};

typedef Stentor__V1__NotificationRequest Request;

struct Flush {
    FlushOptions options;
    uv_timer_t timer;
    bool running;
    int64_t wake_at_us;
    int64_t forget_at_ms; // monotonic
    Arena *arena;         // of the pass
    DigestWindow *windows;
    size_t count;
    KeyWant *wants; // of the windows that become a digest, in their order
    size_t want_count;
    bool more; // more windows are due
    FlushCounts counts;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void start_pass(Flush *flush);

// ---- sleeping ----

static void on_wake_timer(uv_timer_t *timer)
{
    start_pass(timer->data);
}

static void sleep_until(Flush *flush, int64_t wake_at_us)
{
    int64_t now_us = clock_now_us();
    int64_t latest_us = now_us + SLEEP_MAX_MS * INT64_C(1000);
    flush->wake_at_us = wake_at_us < latest_us ? wake_at_us : latest_us;
    int64_t wait_us = flush->wake_at_us - now_us;
    uint64_t wait_ms = wait_us > 0 ? ((uint64_t)wait_us + 999) / 1000 : 0;
    uv_update_time(flush->options.loop);
    uv_timer_start(&flush->timer, on_wake_timer, wait_ms, 0);
}

static void on_timer_closed(uv_handle_t *handle)
{
    Flush *flush = handle->data;
    flush->on_stopped(flush->stopped_ctx);
}

static void end_pass(Flush *flush)
{
    arena_free(flush->arena);
    flush->arena = NULL;
    flush->running = false;
    if (flush->on_stopped != NULL) {
        uv_close((uv_handle_t *)&flush->timer, on_timer_closed);
        return;
    }
    int64_t soonest_us = flush->more ? 0 : clock_now_us() + SLEEP_EMPTY_MS * INT64_C(1000);
    sleep_until(flush, flush->wake_at_us > soonest_us ? flush->wake_at_us : soonest_us);
}

void flush_wake_at(Flush *flush, int64_t due_us)
{
    if (flush->on_stopped != NULL || due_us >= flush->wake_at_us) {
        return;
    }
    if (flush->running) {
        flush->wake_at_us = due_us;
    } else {
        sleep_until(flush, due_us);
    }
}

// ---- a pass, in the order in which it happens ----

static void go_on_at_once(Flush *flush)
{
    flush->more = true;
    flush->wake_at_us = 0;
}

static void on_made(void *ctx, DbTxn *txn, const Error *err)
{
    Flush *flush = ctx;
    if (err != NULL) {
        LOG(LOG_WARN, "digest windows could not be flushed, they are retried when their lease ends",
            log_int("count", (int64_t)flush->count), log_error(err));
    } else {
        CRASH_POINT("flusher.digested");
        if (db_get_int(db_txn_result(txn, 1), 0, 0) == DIGEST_ABSORB_MAX) {
            go_on_at_once(flush);
        }
        flush->options.handlers.on_flushed(flush->options.ctx, &flush->counts);
    }
    end_pass(flush);
}

static void count_window(Flush *flush, const DigestWindow *window, const Digest *digest)
{
    if (window->verdict.len > 0) {
        flush->counts.suppressed++;
    } else if (digest->id[0] != '\0') {
        flush->counts.digests++;
    } else {
        flush->counts.singles++;
    }
}

// An address that cannot be unsealed was altered: its items are sent one by one, and the stages
// report it.
static void build(Flush *flush, const DigestWindow *window, DataKey *key, Digest *ret_digest)
{
    Error err = {0};
    if (!digest_build(window, key, flush->arena, ret_digest, &err)) {
        LOG(LOG_WARN, "a digest could not be built, its items are sent one by one",
            log_str("tenant", window->tenant), log_str("window", window->window_id),
            log_error(&err));
        *ret_digest = (Digest){.tenant = window->tenant, .window_id = window->window_id};
    }
    count_window(flush, window, ret_digest);
}

// Killed before this commit: the windows stay frozen, and when the lease ends another process or
// the next one makes the same digests of the same items. Killed after it: they are due work.
// tests/integration/sending/test_digest.py kills the flusher in the middle of some hundred windows.
static void on_keys(void *ctx, const Error *err)
{
    Flush *flush = ctx;
    if (err != NULL) {
        LOG(LOG_WARN,
            "data keys of digests could not be read, they are retried when their lease ends",
            log_error(err));
        end_pass(flush);
        return;
    }
    Digest *digests = arena_array(flush->arena, flush->count, sizeof *digests);
    const KeyWant *want = flush->wants;
    for (size_t i = 0; i < flush->count; i++) {
        const DigestWindow *window = &flush->windows[i];
        build(flush, window, digest_wanted(window) ? (want++)->key : NULL, &digests[i]);
    }
    DbTxn *txn = db_txn_new(flush->options.pool);
    digest_make(txn, digests, flush->count);
    db_txn_submit(txn, on_made, flush);
}

static void want_keys(Flush *flush)
{
    flush->wants = arena_array(flush->arena, flush->count, sizeof *flush->wants);
    for (size_t i = 0; i < flush->count; i++) {
        const DigestWindow *window = &flush->windows[i];
        if (digest_wanted(window)) {
            flush->wants[flush->want_count++] =
                key_want_of(window->tenant, window->newest->address);
        }
    }
    keyring_resolve(flush->options.keyring, flush->wants, flush->want_count, on_keys, flush);
}

// ---- reading frozen windows ----

static Str text_of(Flush *flush, const PGresult *rows, int row, int column)
{
    return db_is_null(rows, row, column) ? STR_EMPTY
                                         : arena_str(flush->arena, db_get_text(rows, row, column));
}

static DigestWindow *new_window(Flush *flush, const PGresult *rows, int row)
{
    DigestWindow *window = &flush->windows[flush->count++];
    *window = (DigestWindow){
        .tenant = text_of(flush, rows, row, FREEZE_TENANT),
        .window_id = text_of(flush, rows, row, FREEZE_WINDOW_ID),
        .flush_at_us = db_get_time(rows, row, FREEZE_FLUSH_AT),
        .frozen_at_us = db_get_time(rows, row, FREEZE_FROZEN_AT),
        .template_key = text_of(flush, rows, row, FREEZE_TEMPLATE),
        .template_version = text_of(flush, rows, row, FREEZE_VERSION),
        .locale = text_of(flush, rows, row, FREEZE_LOCALE),
        .verdict = text_of(flush, rows, row, FREEZE_VERDICT),
        .live = (uint64_t)db_get_int(rows, row, FREEZE_LIVE),
        .items = arena_array(flush->arena, DIGEST_LIST_MAX, sizeof(Request *)),
    };
    return window;
}

// Items were checked when they arrived; an unreadable one is not listed.
static void add_item(Flush *flush, DigestWindow *window, const PGresult *rows, int row)
{
    if (db_is_null(rows, row, FREEZE_PAYLOAD)) {
        return;
    }
    const Request *request = (const Request *)event_unpack(
        &stentor__v1__notification_request__descriptor, text_of(flush, rows, row, FREEZE_PAYLOAD),
        flush->arena, NULL);
    if (request == NULL || request->meta == NULL || request->address == NULL) {
        return;
    }
    if (db_get_int(rows, row, FREEZE_LISTED) != 0 && window->item_count < DIGEST_LIST_MAX) {
        window->items[window->item_count++] = request;
    }
    window->newest = request; // the last row is the newest
}

static void read_frozen(Flush *flush, const PGresult *rows)
{
    flush->windows = arena_array(flush->arena, DIGEST_FREEZE_MAX, sizeof(DigestWindow));
    DigestWindow *window = NULL;
    for (int row = 0; row < db_rows(rows); row++) {
        bool same = window != NULL &&
                    str_eq(window->window_id, db_get_text(rows, row, FREEZE_WINDOW_ID)) &&
                    str_eq(window->tenant, db_get_text(rows, row, FREEZE_TENANT));
        if (!same) {
            assert(flush->count < DIGEST_FREEZE_MAX);
            window = new_window(flush, rows, row);
        }
        add_item(flush, window, rows, row);
    }
}

static void on_frozen(void *ctx, DbTxn *txn, const Error *err)
{
    Flush *flush = ctx;
    if (err != NULL) {
        LOG(LOG_WARN, "due digest windows could not be frozen, retrying", log_error(err));
        end_pass(flush);
        return;
    }
    int64_t absorbed = db_get_int(db_txn_result(txn, 0), 0, 0);
    int64_t next_us = db_get_time(db_txn_result(txn, FREEZE_RESULTS + 1), 0, 0);
    read_frozen(flush, db_txn_result(txn, FREEZE_RESULTS));
    if (absorbed == DIGEST_ABSORB_MAX || flush->count == DIGEST_FREEZE_MAX) {
        go_on_at_once(flush);
    } else if (next_us > 0 && next_us < flush->wake_at_us) {
        flush->wake_at_us = next_us;
    }
    if (absorbed > 0) {
        flush->options.handlers.on_flushed(flush->options.ctx, &(FlushCounts){0});
    }
    if (flush->count == 0) {
        end_pass(flush);
        return;
    }
    CRASH_POINT("flusher.frozen");
    want_keys(flush);
}

static void start_pass(Flush *flush)
{
    if (!db_pool_ready(flush->options.pool)) {
        sleep_until(flush, clock_now_us() + AWAY_MS * INT64_C(1000));
        return;
    }
    flush->running = true;
    flush->more = false;
    flush->wake_at_us = INT64_MAX;
    flush->count = flush->want_count = 0;
    flush->counts = (FlushCounts){0};
    flush->arena = arena_new(0);
    DbTxn *txn = db_txn_new(flush->options.pool);
    // A freeze lost in a crash of Postgres is made again; the decision has its own commit.
    db_txn_lazy_commit(txn);
    digest_freeze(txn, flush->options.lease_ms);
    int64_t now_ms = clock_mono_us() / 1000;
    if (now_ms >= flush->forget_at_ms) { // once a minute: cheap while no row is old
        flush->forget_at_ms = now_ms + FORGET_MS;
        digest_forget(txn);
    }
    db_txn_submit(txn, on_frozen, flush);
}

// ---- starting and stopping ----

Flush *flush_new(const FlushOptions *options)
{
    Flush *flush = xcalloc(1, sizeof *flush);
    flush->options = *options;
    uv_timer_init(options->loop, &flush->timer);
    flush->timer.data = flush;
    sleep_until(flush, 0);
    return flush;
}

void flush_stop(Flush *flush, void (*on_stopped)(void *ctx), void *ctx)
{
    assert(flush->on_stopped == NULL);
    flush->on_stopped = on_stopped;
    flush->stopped_ctx = ctx;
    if (!flush->running) {
        uv_close((uv_handle_t *)&flush->timer, on_timer_closed);
    }
}

void flush_free(Flush *flush)
{
    free(flush);
}
