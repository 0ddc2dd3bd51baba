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

// A subject whose last message cannot be read.
typedef struct Refused {
    char subject[SUBJECT_SIZE];
    uint64_t sequence; // of that message
} Refused;

struct ConfigMirror {
    Bus *bus;
    Reader *reader; // NULL while waiting to begin again
    ConfigChanged on_changed;
    void *ctx;
    Arena *scratch;
    uv_timer_t retry;
    void (*on_ready)(void *ctx); // NULL: none, or told
    void *ready_ctx;
    bool ready;
    bool complained;
    bool freeing;
    ConfigUnreadable on_unreadable; // NULL: nobody asks
    Map *refused;    // subject -> Refused; who spoils one entry can spoil all: no limit
    Reader *earlier; // of CONFIG_HISTORY, for look_for[next]; NULL: none is open
    char **look_for; // at the start: subjects of `refused`, in the order in which they came
    size_t look_count, look_room, next;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

static void begin(ConfigMirror *m);
static void recover_next(ConfigMirror *m);

static bool take(ConfigMirror *m, const BusMessage *message, Error *err)
{
    ConfigName name;
    arena_reset(m->scratch);
    return config_entry_check(message, &name, m->scratch, err) &&
           m->on_changed(m->ctx, name.kind, name.tenant, name.key, message, err);
}

// How many there are is shown by the service's metrics.
static void count_refused(const ConfigMirror *m)
{
    m->bus->stats.unreadable = map_count(m->refused);
}

static void tell_unreadable(ConfigMirror *m, const Refused *refused)
{
    ConfigName name;
    if (m->on_unreadable != NULL && config_entry_name(str_from(refused->subject), &name, NULL)) {
        m->on_unreadable(m->ctx, name.kind, name.tenant, name.key, refused->sequence);
    }
}

static void look_for_earlier(ConfigMirror *m, const Refused *refused)
{
    if (m->look_count == m->look_room) {
        m->look_room = m->look_room > 0 ? 2 * m->look_room : 16;
        m->look_for = xrealloc(m->look_for, m->look_room * sizeof *m->look_for);
    }
    m->look_for[m->look_count++] = xstrdup(refused->subject);
}

// At the start the history is asked first; later this memory has what there was.
static void note_refused(ConfigMirror *m, const BusMessage *message)
{
    ConfigName name;
    Refused *refused = map_get(m->refused, message->subject);
    if (message->subject.len >= SUBJECT_SIZE || !config_entry_name(message->subject, &name, NULL)) {
        return;
    }
    if (refused == NULL) {
        refused = xcalloc(1, sizeof *refused);
        (void)str_to_c(message->subject, refused->subject, sizeof refused->subject);
        map_put(m->refused, message->subject, refused);
        count_refused(m);
        if (!m->ready) {
            look_for_earlier(m, refused);
        }
    }
    refused->sequence = message->sequence;
    if (m->ready) {
        tell_unreadable(m, refused);
    }
}

static void forget_looked_for(ConfigMirror *m)
{
    for (size_t i = 0; i < m->look_count; i++) {
        free(m->look_for[i]);
    }
    free(m->look_for);
    m->look_for = NULL;
    m->look_count = m->look_room = m->next = 0;
}

static void apply(ConfigMirror *m, const BusMessage *message)
{
    Error err = {0};
    bool whole = take(m, message, &err);
    if (!whole && err.kind == ERROR_CONFIG) {
        LOG(LOG_WARN, "config entry used but for a part", log_str("subject", message->subject),
            log_int("sequence", (int64_t)message->sequence), log_error(&err));
    }
    if (whole || err.kind == ERROR_CONFIG) {
        if (map_count(m->refused) > 0) {
            (void)map_remove(m->refused, message->subject);
            count_refused(m);
        }
        return;
    }
    LOG(LOG_WARN, "config entry passed over, what was known of it stays",
        log_str("subject", message->subject), log_int("sequence", (int64_t)message->sequence),
        log_error(&err),
        log_text(
            "hint",
            arena_printf(m->scratch, "stentor config mend " STR_FMT, STR_ARG(message->subject))));
    note_refused(m, message);
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

// ---- the end ----

static void on_timer_closed(uv_handle_t *handle)
{
    ConfigMirror *m = handle->data;
    void (*on_freed)(void *) = m->on_freed;
    void *ctx = m->freed_ctx;
    arena_free(m->scratch);
    forget_looked_for(m);
    map_free(m->refused);
    free(m);
    on_freed(ctx);
}

// Both readers are gone.
static void finish_free(ConfigMirror *m)
{
    if (m->reader == NULL && m->earlier == NULL) {
        uv_close((uv_handle_t *)&m->retry, on_timer_closed);
    }
}

// ---- earlier entries of what could not be read ----

// From the oldest on, so that the newest readable one stays. What was mended meanwhile is none of
// the refused any more.
static void on_earlier_messages(void *ctx, const BusMessage *messages, size_t count)
{
    ConfigMirror *m = ctx;
    for (size_t i = 0; i < count; i++) {
        const Refused *refused = map_get(m->refused, str_from(m->look_for[m->next]));
        Error err = {0};
        if (refused != NULL && messages[i].sequence < refused->sequence &&
            take(m, &messages[i], &err)) {
            LOG(LOG_INFO, "config entry taken from before the one that cannot be read",
                log_text("subject", refused->subject),
                log_int("sequence", (int64_t)messages[i].sequence));
        }
    }
}

static void on_earlier_freed(void *ctx)
{
    ConfigMirror *m = ctx;
    const Refused *refused = map_get(m->refused, str_from(m->look_for[m->next]));
    m->earlier = NULL;
    m->next++;
    if (refused != NULL && !m->freeing) {
        tell_unreadable(m, refused);
    }
    recover_next(m);
}

static void end_earlier(ConfigMirror *m)
{
    if (!m->freeing) {
        reader_free(m->earlier, on_earlier_freed, m);
    }
}

static void on_earlier_caught_up(void *ctx)
{
    end_earlier(ctx);
}

static void on_earlier_failed(void *ctx, const Error *err)
{
    ConfigMirror *m = ctx;
    LOG(LOG_WARN, "earlier config entries cannot be read",
        log_text("subject", m->look_for[m->next]), log_error(err));
    end_earlier(m);
}

static void recover_next(ConfigMirror *m)
{
    static const ReaderHandlers handlers = {
        on_earlier_messages, on_earlier_caught_up, on_earlier_failed};
    if (m->freeing) {
        finish_free(m);
        return;
    }
    while (m->next < m->look_count && map_get(m->refused, str_from(m->look_for[m->next])) == NULL) {
        m->next++;
    }
    if (m->next == m->look_count) {
        forget_looked_for(m);
        note_ready(m);
        return;
    }
    ReaderOptions options = {.stream = "CONFIG_HISTORY", .filter = m->look_for[m->next]};
    m->earlier = reader_new(m->bus, &options, &handlers, m);
}

static void on_reader_caught_up(void *ctx)
{
    ConfigMirror *m = ctx;
    if (m->earlier == NULL) {
        recover_next(m);
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
    } else {
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
    m->scratch = arena_new(0);
    m->refused = map_new(free);
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
    if (mirror->reader == NULL && mirror->earlier == NULL) {
        finish_free(mirror);
        return;
    }
    if (mirror->reader != NULL) { // again is harmless: the last one counts
        reader_free(mirror->reader, on_reader_freed, mirror);
    }
    if (mirror->earlier != NULL) {
        reader_free(mirror->earlier, on_earlier_freed, mirror);
    }
}
