// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/archive/archive_child.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/archiver/archive/archive_audit.h"
#include "services/archiver/archive/archive_metrics.h"
#include "services/archiver/archive/archive_process.h"

enum {
    BACKOFF_MS = 1000,
    BACKOFF_MAX_MS = 60 * 1000,
    STEADY_US = 60 * 1000000, // ran for so long: the next start is after BACKOFF_MS again
    SETTINGS_MAX = 16,
};

extern char **environ; // POSIX has no header for it

struct ArchiveChild {
    ArchiveChildOptions options;
    bool wanted;
    ArchiveMetrics *metrics;
    ArchiveAudit *audit;
    Arena *arena; // of the environment
    char **environment;
    uv_process_t process;
    bool running;
    bool open;          // `process` is a handle of the loop: not between two starts
    int64_t started_us; // monotonic
    uv_timer_t timer;
    uint64_t backoff_ms;
    bool stopping, timer_closed, metrics_stopped, audit_stopped;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void start(ArchiveChild *child);

// ---- settings, by the environment ----

static void add(char **list, size_t *count, Arena *arena, const char *name, const char *value)
{
    list[(*count)++] = arena_printf(arena, "%s=%s", name, value);
}

static size_t list_settings(const ArchiveChild *child, char **list)
{
    const ArchiveChildOptions *o = &child->options;
    const ArchiveSettings *s = o->settings;
    Arena *arena = child->arena;
    size_t n = 0;
    add(list, &n, arena, "STENTOR_DATABASE_URL", o->database_url);
    add(list, &n, arena, "STENTOR_STORAGE_URL", o->storage->url);
    add(list, &n, arena, "STENTOR_STORAGE_KEY_ID", o->storage->key_id);
    add(list, &n, arena, "STENTOR_STORAGE_SECRET", o->storage->secret);
    add(list, &n, arena, "STENTOR_STORAGE_SESSION_TOKEN", o->storage->session_token);
    add(list, &n, arena, "STENTOR_STORAGE_VENDOR", o->storage->vendor);
    add(list, &n, arena, "STENTOR_RETENTION_SPANS", o->spans);
    add(list, &n, arena, "STENTOR_ARCHIVE_SPOOL_DIR", s->spool_folder);
    add(list, &n, arena, "STENTOR_ARCHIVE_QUIET_HOURS", s->quiet_hours);
    add(list, &n, arena, "STENTOR_ARCHIVE_COLD_CLASS", s->cold_class);
    static const char *const names[] = {
        "STENTOR_ARCHIVE_PART_KIB", "STENTOR_ARCHIVE_PART_ROWS", "STENTOR_ARCHIVE_GRACE_S",
        "STENTOR_ARCHIVE_EVERY_S"};
    const int64_t numbers[] = {s->part_kib, s->part_rows, s->grace_s, s->every_s};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        list[n++] = arena_printf(arena, "%s=%" PRId64, names[i], numbers[i]);
    }
    return n;
}

// Whether an entry of our environment is a setting that is handed over, also as NAME_FILE.
static bool is_replaced(const char *entry, char *const *list, size_t count)
{
    size_t len = strcspn(entry, "=");
    size_t plain = len > 5 && strncmp(entry + len - 5, "_FILE", 5) == 0 ? len - 5 : len;
    for (size_t i = 0; i < count; i++) {
        size_t own = strcspn(list[i], "=");
        if ((own == len || own == plain) && strncmp(entry, list[i], own) == 0) {
            return true;
        }
    }
    return false;
}

static void build_environment(ArchiveChild *child)
{
    char *own[SETTINGS_MAX];
    size_t count = list_settings(child, own);
    size_t inherited = 0;
    while (environ[inherited] != NULL) {
        inherited++;
    }
    child->environment = arena_array(child->arena, inherited + count + 1, sizeof(char *));
    size_t n = 0;
    for (size_t i = 0; i < inherited; i++) {
        if (!is_replaced(environ[i], own, count)) {
            child->environment[n++] = environ[i];
        }
    }
    memcpy(child->environment + n, own, count * sizeof(char *));
}

// ---- the process ----

static void finish_stop(ArchiveChild *child)
{
    if (child->stopping && child->timer_closed && !child->open && child->metrics_stopped &&
        child->audit_stopped) {
        child->on_stopped(child->stopped_ctx);
    }
}

static void on_start_due(uv_timer_t *timer)
{
    start(timer->data);
}

static void start_later(ArchiveChild *child)
{
    bool steady = clock_mono_us() - child->started_us > STEADY_US;
    child->backoff_ms = steady ? BACKOFF_MS : child->backoff_ms * 2;
    if (child->backoff_ms > BACKOFF_MAX_MS) {
        child->backoff_ms = BACKOFF_MAX_MS;
    }
    uv_timer_start(&child->timer, on_start_due, child->backoff_ms, 0);
}

static void on_process_closed(uv_handle_t *handle)
{
    ArchiveChild *child = handle->data;
    child->open = false;
    if (child->stopping) {
        finish_stop(child);
    } else {
        start_later(child);
    }
}

static void on_process_exit(uv_process_t *process, int64_t status, int signal_number)
{
    ArchiveChild *child = process->data;
    child->running = false;
    if (!child->stopping) {
        LOG(LOG_WARN, "the archiving process ended; it is started again", log_int("status", status),
            log_int("signal", signal_number));
    }
    uv_close((uv_handle_t *)process, on_process_closed);
}

static void start(ArchiveChild *child)
{
    char program[] = "/proc/self/exe";
    char argument[] = ARCHIVE_ARGUMENT;
    char *argv[] = {program, argument, NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = 1},
        {.flags = UV_INHERIT_FD, .data.fd = 2}};
    uv_process_options_t options = {
        .file = program,
        .args = argv,
        .env = child->environment,
        .exit_cb = on_process_exit,
        .stdio_count = 3,
        .stdio = stdio};
    child->started_us = clock_mono_us();
    child->process.data = child;
    child->open = true; // also when it cannot be started: it is closed then
    int failed = uv_spawn(child->options.loop, &child->process, &options);
    child->running = failed == 0;
    if (failed != 0) {
        LOG(LOG_ERROR, "the archiving process cannot be started",
            log_text("reason", uv_strerror(failed)));
        uv_close((uv_handle_t *)&child->process, on_process_closed);
    }
}

// ---- start and stop ----

ArchiveChild *archive_child_new(const ArchiveChildOptions *options)
{
    ArchiveChild *child = xcalloc(1, sizeof *child);
    child->options = *options;
    child->backoff_ms = BACKOFF_MS;
    child->wanted = options->storage->url[0] != '\0';
    if (child->wanted) {
        child->arena = arena_new(0);
        build_environment(child);
        child->metrics = archive_metrics_new(&child->options);
        child->audit = archive_audit_new(&child->options);
        uv_timer_init(options->loop, &child->timer);
        child->timer.data = child;
        start(child);
    }
    return child;
}

static void on_timer_closed(uv_handle_t *handle)
{
    ArchiveChild *child = handle->data;
    child->timer_closed = true;
    finish_stop(child);
}

static void on_metrics_stopped(void *ctx)
{
    ArchiveChild *child = ctx;
    child->metrics_stopped = true;
    finish_stop(child);
}

static void on_audit_stopped(void *ctx)
{
    ArchiveChild *child = ctx;
    child->audit_stopped = true;
    finish_stop(child);
}

void archive_child_stop(ArchiveChild *child, void (*on_stopped)(void *ctx), void *ctx)
{
    if (!child->wanted) {
        on_stopped(ctx);
        return;
    }
    child->stopping = true;
    child->on_stopped = on_stopped;
    child->stopped_ctx = ctx;
    if (child->running) {
        (void)uv_process_kill(&child->process, SIGTERM);
    }
    uv_close((uv_handle_t *)&child->timer, on_timer_closed);
    archive_metrics_stop(child->metrics, on_metrics_stopped, child);
    archive_audit_stop(child->audit, on_audit_stopped, child);
}

void archive_child_free(ArchiveChild *child)
{
    if (child != NULL) {
        archive_metrics_free(child->metrics);
        archive_audit_free(child->audit);
        arena_free(child->arena);
        free(child);
    }
}
