// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/mail/mail_reader.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/log.h"
#include "services/webhook-receiver/mail/mail_parse.h"

enum { TRIES_MAX = 2, PIECE = 16384, HANDLES = 4 };

struct MailReader {
    MailReaderOptions options;
    size_t running;
    struct Job *jobs; // all of them, by next
    bool stopping;
    uv_timer_t end; // whose close calls on_freed from the loop
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// One mail. Its process is started at most twice.
typedef struct Job {
    MailReader *reader;
    struct Job *next;
    Str mail;
    MailRead on_read;
    void *ctx;
    int tries;
    // Of one process:
    uv_process_t process;
    uv_pipe_t in, out;
    uv_timer_t timer;
    uv_write_t write;
    int open; // handles that are not closed yet
    bool exited, ended, late;
    int signal_number;
    int64_t status;
    int failed; // of the start
    Buf report;
    char piece[PIECE];
} Job;

static void start(Job *job);

// ---- the verdict ----

static bool judge(const Job *job, Error *err)
{
    if (job->reader->stopping) {
        return error_set(err, ERROR_CANCELLED, "the service stops");
    }
    if (job->failed != 0) {
        return error_set(
            err, ERROR_TRANSIENT, "the process that reads mail cannot be started: %s",
            uv_strerror(job->failed));
    }
    if (job->late) {
        return error_set(
            err, ERROR_PERMANENT, "reading the mail took longer than %d ms",
            job->reader->options.time_ms);
    }
    if (job->signal_number == SIGXCPU) {
        return error_set(err, ERROR_PERMANENT, "reading the mail took too much processor time");
    }
    if (job->signal_number != 0 || job->status != 0) {
        return error_set(
            err, ERROR_PERMANENT, "the mail ended the process that reads it (%s %d)",
            job->signal_number != 0 ? "signal" : "status",
            job->signal_number != 0 ? job->signal_number : (int)job->status);
    }
    return !job->report.full ||
           error_set(
               err, ERROR_PERMANENT, "the report of the mail is larger than %d bytes",
               (int)MAIL_REPORT_MAX);
}

static bool is_worth_another_try(const Job *job)
{
    bool killed = job->signal_number != 0 && job->signal_number != SIGXCPU && !job->late;
    return killed && job->tries < TRIES_MAX && !job->reader->stopping;
}

static void on_end_closed(uv_handle_t *handle)
{
    MailReader *reader = handle->data;
    reader->on_freed(reader->freed_ctx);
    free(reader);
}

static void unlink_job(Job *job)
{
    Job **place = &job->reader->jobs;
    while (*place != job) {
        place = &(*place)->next;
    }
    *place = job->next;
}

static void finish(Job *job)
{
    MailReader *reader = job->reader;
    if (is_worth_another_try(job)) {
        LOG(LOG_WARN, "a process that reads mail was killed; it is started once more",
            log_int("signal", job->signal_number));
        buf_done(&job->report);
        start(job);
        return;
    }
    Error err = {0};
    bool good = judge(job, &err);
    unlink_job(job);
    job->on_read(job->ctx, good ? buf_view(&job->report) : STR_EMPTY, good ? NULL : &err);
    buf_done(&job->report);
    free(job);
    reader->running--;
    if (reader->stopping && reader->running == 0) {
        uv_close((uv_handle_t *)&reader->end, on_end_closed);
    }
}

// ---- one process ----

static void on_handle_closed(uv_handle_t *handle)
{
    Job *job = handle->data;
    if (--job->open == 0) {
        finish(job);
    }
}

static void close_handle(Job *job, uv_handle_t *handle)
{
    (void)job;
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_handle_closed);
    }
}

// The process is gone and what it wrote is read.
static void close_if_over(Job *job)
{
    if (job->exited && job->ended) {
        close_handle(job, (uv_handle_t *)&job->process);
        close_handle(job, (uv_handle_t *)&job->in);
        close_handle(job, (uv_handle_t *)&job->out);
        close_handle(job, (uv_handle_t *)&job->timer);
    }
}

static void on_process_exit(uv_process_t *process, int64_t status, int signal_number)
{
    Job *job = process->data;
    job->exited = true;
    job->status = status;
    job->signal_number = signal_number;
    job->ended = job->ended || signal_number != 0; // what it wrote is no report
    close_if_over(job);
}

static void kill_process(Job *job)
{
    if (!job->exited && job->failed == 0) {
        (void)uv_process_kill(&job->process, SIGKILL);
    }
}

static void on_timer_late(uv_timer_t *timer)
{
    Job *job = timer->data;
    job->late = true;
    kill_process(job);
}

static void on_out_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    Job *job = handle->data;
    (void)suggested;
    *ret = uv_buf_init(job->piece, sizeof job->piece);
}

static void on_out_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    Job *job = stream->data;
    if (got < 0) {
        job->ended = true;
        close_if_over(job);
    } else if (!buf_append(&job->report, buffer->base, (size_t)got)) {
        kill_process(job); // more than a report may hold; what comes is thrown away
    }
}

static void on_in_written(uv_write_t *write, int status)
{
    Job *job = write->data;
    (void)status; // when it read nothing it has ended, which says more
    close_handle(job, (uv_handle_t *)&job->in);
}

static void start_handles(Job *job)
{
    uv_loop_t *loop = job->reader->options.loop;
    uv_pipe_init(loop, &job->in, 0);
    uv_pipe_init(loop, &job->out, 0);
    uv_timer_init(loop, &job->timer);
    job->process.data = job->in.data = job->out.data = job->timer.data = job->write.data = job;
    job->open = HANDLES;
    job->exited = job->ended = job->late = false;
    job->signal_number = 0;
    job->status = 0;
    buf_init(&job->report, MAIL_REPORT_MAX);
}

static int spawn(Job *job)
{
    static char program[] = "/proc/self/exe";
    static char argument[] = MAIL_PARSE_ARGUMENT;
    static char *own[] = {program, argument, NULL};
    static char *no_environment[] = {NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&job->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&job->out},
        {.flags = UV_IGNORE},
    };
    char **command = job->reader->options.command != NULL
                         ? (char **)(uintptr_t)job->reader->options.command
                         : own;
    uv_process_options_t options = {
        .file = command[0],
        .args = command,
        .env = no_environment,
        .cwd = "/",
        .exit_cb = on_process_exit,
        .stdio_count = 3,
        .stdio = stdio,
    };
    return uv_spawn(job->reader->options.loop, &job->process, &options);
}

static void start(Job *job)
{
    job->tries++;
    start_handles(job);
    job->failed = spawn(job);
    if (job->failed != 0) {
        job->exited = job->ended = true;
        close_if_over(job);
        return;
    }
    uv_timer_start(&job->timer, on_timer_late, (uint64_t)job->reader->options.time_ms, 0);
    (void)uv_read_start((uv_stream_t *)&job->out, on_out_buffer, on_out_read);
    uv_buf_t mail = uv_buf_init((char *)(uintptr_t)job->mail.ptr, (unsigned)job->mail.len);
    if (uv_write(&job->write, (uv_stream_t *)&job->in, &mail, 1, on_in_written) != 0) {
        close_handle(job, (uv_handle_t *)&job->in);
    }
}

// ---- the reader ----

MailReader *mail_reader_new(const MailReaderOptions *options)
{
    MailReader *reader = xcalloc(1, sizeof *reader);
    reader->options = *options;
    reader->options.time_ms = options->time_ms > 0 ? options->time_ms : MAIL_READER_TIME_MS;
    uv_timer_init(options->loop, &reader->end);
    reader->end.data = reader;
    return reader;
}

void mail_reader_read(MailReader *reader, Str mail, MailRead on_read, void *ctx)
{
    assert(!reader->stopping);
    Job *job = xcalloc(1, sizeof *job);
    job->reader = reader;
    job->mail = mail;
    job->on_read = on_read;
    job->ctx = ctx;
    job->next = reader->jobs;
    reader->jobs = job;
    reader->running++;
    start(job);
}

void mail_reader_free(MailReader *reader, void (*on_freed)(void *ctx), void *ctx)
{
    reader->stopping = true;
    reader->on_freed = on_freed;
    reader->freed_ctx = ctx;
    for (Job *job = reader->jobs; job != NULL; job = job->next) {
        kill_process(job);
    }
    if (reader->running == 0) {
        uv_close((uv_handle_t *)&reader->end, on_end_closed);
    }
}
