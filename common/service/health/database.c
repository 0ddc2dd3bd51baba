// SPDX-License-Identifier: Apache-2.0
// Does the database fit this program, before anything is done with it? Asked until it does; then
// its clock is compared from time to time.
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/service/health/heads.h"
#include "common/service/internal.h"

enum { RETRY_MS = 500, CLOCK_EVERY_MS = 30 * 1000, HEADS_MAX = 64 };

static const DbStatement HEADS = {
    "service_heads",
    "SELECT h.schema, h.number, clock_timestamp() FROM stentor.migration_heads() AS h"};

static void ask(Service *service);

static void on_timer_ask(uv_timer_t *timer)
{
    ask(timer->data);
}

static void ask_again(Service *service, int after_ms)
{
    uv_timer_start(&service->fit_timer, on_timer_ask, (uint64_t)after_ms, 0);
}

static void note_clock(Service *service, const PGresult *rows)
{
    if (db_rows(rows) > 0) {
        int64_t server_us = db_get_time(rows, 0, 2);
        clock_check_note(
            &service->clocks[SERVICE_CLOCK_POSTGRES],
            clock_off_us(server_us, service->fit_asked_us, clock_now_us()));
    }
}

static HeadsVerdict compare(DbTxn *txn, char *text, size_t size)
{
    const PGresult *rows = db_txn_result(txn, 0);
    Head there[HEADS_MAX];
    size_t built_count = 0, count = 0;
    const Head *built = heads_built(&built_count);
    for (int i = 0; i < db_rows(rows) && count < HEADS_MAX; i++) {
        there[count++] = (Head){
            arena_cstr(db_txn_arena(txn), db_get_text(rows, i, 0)), (int)db_get_int(rows, i, 1)};
    }
    return heads_compare(built, built_count, there, count, text, size);
}

// Logs each new reason once; its text says what to do.
static void refuse(Service *service, const char *why)
{
    if (strcmp(service->fit_trouble, why) != 0) {
        snprintf(service->fit_trouble, sizeof service->fit_trouble, "%s", why);
        LOG(LOG_ERROR, "not ready", log_text("why", why));
    }
    ask_again(service, RETRY_MS);
}

static void go_on(Service *service)
{
    if (service->fit_trouble[0] != '\0') {
        LOG_PLAIN(LOG_INFO, "the database matches this release now");
    }
    service->fit_trouble[0] = '\0';
    service->fits = true;
    ask_again(service, CLOCK_EVERY_MS);
    keys_begin_check(service);
}

static void take_heads(Service *service, DbTxn *txn)
{
    char text[sizeof service->fit_trouble];
    note_clock(service, db_txn_result(txn, 0));
    if (service->fits) {
        ask_again(service, CLOCK_EVERY_MS);
        return;
    }
    HeadsVerdict verdict = compare(txn, text, sizeof text);
    if (verdict == HEADS_FIT) {
        go_on(service);
    } else if (verdict == HEADS_NEWER && service->options.common->database_newer) {
        LOG(LOG_WARN, "started on a newer database", log_text("why", text));
        go_on(service);
    } else {
        refuse(service, text);
    }
}

static void on_heads(void *ctx, DbTxn *txn, const Error *err)
{
    Service *service = ctx;
    if (service->phase != PHASE_RUNNING || service->drain_wanted) {
        return;
    }
    if (err == NULL) {
        take_heads(service, txn);
    } else if (err->kind == ERROR_CONFIG && !service->fits) {
        Error why;
        error_set(
            &why, ERROR_CONFIG,
            "the database is of an older release, or was not prepared (HINT: run "
            "'stentor migrate', for a new one 'stentor init'): %s",
            err->text);
        refuse(service, why.text);
    } else {
        ask_again(service, service->fits ? CLOCK_EVERY_MS : RETRY_MS);
    }
}

static void ask(Service *service)
{
    if (service->phase != PHASE_RUNNING || service->drain_wanted) {
        return;
    }
    DbTxn *txn = db_txn_new(service->pool);
    (void)db_txn_add(txn, &HEADS, NULL);
    service->fit_asked_us = clock_now_us();
    db_txn_submit(txn, on_heads, service);
}

void database_begin_check(Service *service)
{
    if (service->pool != NULL && !service->spec->application_database) {
        ask(service);
    } else {
        service->fits = true;
        keys_begin_check(service);
    }
}
