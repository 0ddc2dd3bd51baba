// SPDX-License-Identifier: Apache-2.0
#include "common/bus/config_mirror.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/bus/bus_internal.h"

enum { RETRY_MS = 1000 };

struct ConfigMirror {
    Bus *bus;
    Reader *reader; // NULL while waiting to begin again
    ConfigChanged on_changed;
    void *ctx;
    uv_timer_t retry;
    void (*on_ready)(void *ctx); // NULL: none, or told
    void *ready_ctx;
    bool ready;
    bool complained;
    bool freeing;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

static void begin(ConfigMirror *m);

static void apply(ConfigMirror *m, const BusMessage *message)
{
    Str key = message->subject, prefix, kind = STR_EMPTY, tenant = STR_EMPTY;
    Error err = {ERROR_PERMANENT, "not cfg.<kind>.<tenant>.<key>"};
    bool shaped = str_split(&key, '.', &prefix) && str_split(&key, '.', &kind) &&
                  str_split(&key, '.', &tenant) && key.len > 0;
    if (!shaped || !m->on_changed(m->ctx, kind, tenant, key, message, &err)) {
        LOG(LOG_WARN, "config entry passed over", log_str("subject", message->subject),
            log_int("sequence", (int64_t)message->sequence), log_error(&err));
    }
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        apply(ctx, &messages[i]);
    }
}

static void note_ready(ConfigMirror *m)
{
    void (*on_ready)(void *) = m->on_ready;
    m->ready = true;
    m->complained = false;
    m->on_ready = NULL; // a reader that begins again catches up again
    if (on_ready != NULL && !m->freeing) {
        on_ready(m->ready_ctx);
    }
}

static void on_reader_caught_up(void *ctx)
{
    note_ready(ctx);
}

static void on_timer_retry(uv_timer_t *timer)
{
    begin(timer->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
    ConfigMirror *m = handle->data;
    void (*on_freed)(void *) = m->on_freed;
    void *ctx = m->freed_ctx;
    free(m);
    on_freed(ctx);
}

static void handle_reader_gone(ConfigMirror *m)
{
    if (m->freeing) {
        uv_close((uv_handle_t *)&m->retry, on_timer_closed);
    } else {
        m->reader = NULL;
        uv_timer_start(&m->retry, on_timer_retry, RETRY_MS, 0);
    }
}

static void on_reader_freed(void *ctx)
{
    handle_reader_gone(ctx);
}

// No stream yet (before migrate), or one made anew: begin again from its beginning. What this
// memory holds stays.
static void handle_failure(ConfigMirror *m, const Error *err)
{
    if (!m->complained) {
        m->complained = true;
        LOG(LOG_WARN, "config cannot be read, trying again", log_error(err));
    }
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
    m->reader = reader_new(m->bus, &(ReaderOptions){.stream = "CONFIG"}, &handlers, m);
}

ConfigMirror *config_mirror_new(Bus *bus, ConfigChanged on_changed, void *ctx)
{
    ConfigMirror *m = xcalloc(1, sizeof *m);
    m->bus = bus;
    m->on_changed = on_changed;
    m->ctx = ctx;
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

bool config_mirror_ready(const ConfigMirror *mirror)
{
    return mirror->ready;
}

void config_mirror_free(ConfigMirror *mirror, void (*on_freed)(void *ctx), void *ctx)
{
    bool failing = mirror->reader == NULL;
    mirror->freeing = true;
    mirror->on_freed = on_freed;
    mirror->freed_ctx = ctx;
    uv_timer_stop(&mirror->retry);
    if (failing) {
        uv_close((uv_handle_t *)&mirror->retry, on_timer_closed);
    } else {
        reader_free(
            mirror->reader, on_reader_freed, mirror); // again is harmless: the last one counts
    }
}
