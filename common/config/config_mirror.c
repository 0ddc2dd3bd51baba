// SPDX-License-Identifier: Apache-2.0
#include "common/config/config_mirror.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/bus/jetstream/bus_internal.h"
#include "common/bus/topology/topology.h"
#include "common/config/config_entry.h"

enum { RETRY_MS = 1000 };

// A read of the stream from its beginning. One that comes after the mirror was ready must not show
// the service what was true before: it reads twice, and applies of each subject what is not older
// than its newest entry.
typedef enum Pass {
    PASS_ALL,    // the first read, and what comes after any
    PASS_NOTING, // the newest entry of each subject
    PASS_NEWEST,
} Pass;

struct ConfigMirror {
    Bus *bus;
    Reader *reader; // NULL while waiting to begin again
    ConfigChanged on_changed;
    void *ctx;
    Arena *scratch;
    uv_timer_t retry;
    void (*on_ready)(void *ctx); // NULL: none, or called
    void *ready_ctx;
    bool ready;
    bool complained;
    bool freeing;
    ConfigUnreadable on_unreadable; // NULL: none
    Pass pass;
    Map *newest;  // of PASS_NOTING: subject -> sequence, as a pointer; NULL: none
    Map *refused; // subjects whose last message cannot be read; no limit: all can be spoiled
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

static void begin(ConfigMirror *m);
static void on_reader_freed(void *ctx);

// How many there are is shown by the service's metrics.
static void count_refused(const ConfigMirror *m)
{
    m->bus->stats.unreadable = map_count(m->refused);
}

static void note_refused(ConfigMirror *m, const BusMessage *message)
{
    ConfigName name;
    if (!config_entry_name(message->subject, &name, NULL)) {
        return;
    }
    map_put(m->refused, message->subject, m);
    count_refused(m);
    if (m->on_unreadable != NULL) {
        m->on_unreadable(m->ctx, name.kind, name.tenant, name.key, message->sequence);
    }
}

static void apply(ConfigMirror *m, const BusMessage *message)
{
    Error err = {0};
    ConfigName name;
    arena_reset(m->scratch);
    bool whole = config_entry_check(message, &name, m->scratch, &err) &&
                 m->on_changed(m->ctx, name.kind, name.tenant, name.key, message, &err);
    if (!whole && err.kind == ERROR_CONFIG) {
        LOG(LOG_WARN, "config entry used in part", log_str("subject", message->subject),
            log_int("sequence", (int64_t)message->sequence), log_error(&err));
    }
    if (whole || err.kind == ERROR_CONFIG) {
        if (map_count(m->refused) > 0) {
            (void)map_remove(m->refused, message->subject);
            count_refused(m);
        }
        return;
    }
    LOG(LOG_WARN, "config entry ignored, the one before it stays in force",
        log_str("subject", message->subject), log_int("sequence", (int64_t)message->sequence),
        log_error(&err),
        log_text(
            "hint",
            arena_printf(m->scratch, "stentor config mend " STR_FMT, STR_ARG(message->subject))));
    note_refused(m, message);
}

static void note_newest(ConfigMirror *m, const BusMessage *message)
{
    ConfigName name;
    arena_reset(m->scratch);
    if (config_entry_check(message, &name, m->scratch, NULL)) {
        map_put(m->newest, message->subject, (void *)(uintptr_t)message->sequence);
    }
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    ConfigMirror *m = ctx;
    for (size_t i = 0; i < count; i++) {
        if (m->pass == PASS_NOTING) {
            note_newest(m, &messages[i]);
            continue;
        }
        bool is_older = m->pass == PASS_NEWEST &&
                        messages[i].sequence < (uintptr_t)map_get(m->newest, messages[i].subject);
        if (!is_older) {
            apply(m, &messages[i]);
        }
    }
}

static void forget_newest(ConfigMirror *m)
{
    map_free(m->newest);
    m->newest = NULL;
}

// ---- the end ----

static void on_timer_closed(uv_handle_t *handle)
{
    ConfigMirror *m = handle->data;
    void (*on_freed)(void *) = m->on_freed;
    void *ctx = m->freed_ctx;
    arena_free(m->scratch);
    forget_newest(m);
    map_free(m->refused);
    free(m);
    on_freed(ctx);
}

static void finish_free(ConfigMirror *m)
{
    uv_close((uv_handle_t *)&m->retry, on_timer_closed);
}

static void on_reader_caught_up(void *ctx)
{
    ConfigMirror *m = ctx;
    void (*on_ready)(void *) = m->on_ready;
    if (m->freeing) {
        return;
    }
    if (m->pass == PASS_NOTING) {
        m->pass = PASS_NEWEST;
        reader_free(m->reader, on_reader_freed, m); // and the second read begins
        return;
    }
    m->pass = PASS_ALL;
    forget_newest(m);
    m->ready = true;
    m->complained = false;
    m->on_ready = NULL; // a reader that begins again catches up again
    if (on_ready != NULL) {
        on_ready(m->ready_ctx);
    }
}

// ---- the reader ----

static void on_timer_retry(uv_timer_t *timer)
{
    begin(timer->data);
}

static void handle_reader_gone(ConfigMirror *m)
{
    m->reader = NULL;
    if (m->freeing) {
        finish_free(m);
    } else if (m->pass == PASS_NEWEST) {
        begin(m);
    } else {
        uv_timer_start(&m->retry, on_timer_retry, RETRY_MS, 0);
    }
}

static void on_reader_freed(void *ctx)
{
    handle_reader_gone(ctx);
}

// No stream yet (before migrate), or a recreated one: begin again from its beginning. What this
// memory holds stays.
static void handle_failure(ConfigMirror *m, const Error *err)
{
    if (!m->complained) {
        m->complained = true;
        LOG(LOG_WARN, "config cannot be read, trying again", log_error(err));
    }
    forget_newest(m);
    m->pass = m->ready ? PASS_NOTING : PASS_ALL;
    if (!m->freeing) {
        reader_free(m->reader, on_reader_freed, m);
    }
}

static void on_reader_failed(void *ctx, const Error *err)
{
    handle_failure(ctx, err);
}

static void begin(ConfigMirror *m)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    if (m->pass == PASS_NOTING) {
        m->newest = map_new(NULL);
    }
    ReaderOptions options = {.stream = "CONFIG", .reads_once = true};
    m->reader = reader_new(m->bus, &options, &handlers, m);
}

ConfigMirror *config_mirror_new(Bus *bus, ConfigChanged on_changed, void *ctx)
{
    ConfigMirror *m = xcalloc(1, sizeof *m);
    m->bus = bus;
    m->on_changed = on_changed;
    m->ctx = ctx;
    m->scratch = arena_new(0);
    m->refused = map_new(NULL);
    uv_timer_init(bus_loop(bus), &m->retry);
    m->retry.data = m;
    begin(m);
    return m;
}

void config_mirror_on_ready(ConfigMirror *mirror, void (*on_ready)(void *ctx), void *ctx)
{
    assert(!mirror->ready);
    mirror->on_ready = on_ready;
    mirror->ready_ctx = ctx;
}

void config_mirror_on_unreadable(ConfigMirror *mirror, ConfigUnreadable on_unreadable)
{
    mirror->on_unreadable = on_unreadable;
}

bool config_mirror_ready(const ConfigMirror *mirror)
{
    return mirror->ready;
}

void config_mirror_free(ConfigMirror *mirror, void (*on_freed)(void *ctx), void *ctx)
{
    mirror->freeing = true;
    mirror->on_freed = on_freed;
    mirror->freed_ctx = ctx;
    uv_timer_stop(&mirror->retry);
    if (mirror->reader == NULL) {
        finish_free(mirror);
    } else { // again is harmless: the last one counts
        reader_free(mirror->reader, on_reader_freed, mirror);
    }
}
