// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/jobs/job_child.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"

enum { OWN_SETTINGS = 6, CHUNK = 4096 };

extern char **environ; // POSIX has no header for it

struct JobChild {
    JobChildOptions options;
    Arena *arena;
    uv_process_t process;
    uv_pipe_t in, out;
    uv_write_t write;
    uv_buf_t input;
    char chunk[CHUNK];
    Buf output;
    int handles; // that are not closed yet
    bool running;
    int64_t status;
    int signal_number;
    const char *failure; // it could not be started
};

// ---- its environment ----

// What we were given but for settings of ours, and these.
static char **build_environment(const JobChild *child)
{
    const JobChildOptions *o = &child->options;
    size_t count = 0;
    size_t n = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **list = arena_array(child->arena, count + OWN_SETTINGS + 1, sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], "STENTOR_", sizeof "STENTOR_" - 1) != 0) {
            list[n++] = environ[i];
        }
    }
    list[n++] = arena_printf(child->arena, "STENTOR_DATABASE_URL=%s", o->database_url);
    list[n++] = arena_printf(child->arena, "STENTOR_NATS_URL=%s", o->nats.url);
    list[n++] = arena_printf(child->arena, "STENTOR_NATS_USER=%s", o->nats.user);
    list[n++] = arena_printf(child->arena, "STENTOR_NATS_PASSWORD=%s", o->nats.password);
    if (o->master_key_file != NULL) {
        list[n++] = arena_printf(child->arena, "STENTOR_MASTER_KEY_FILE=%s", o->master_key_file);
        list[n++] = arena_printf(child->arena, "STENTOR_EPOCH_KEYS_DIR=%s", o->epoch_folder);
    }
    return list;
}

// ---- its end ----

static void report(JobChild *child)
{
    JobChildEnd end = {.error = child->failure};
    json_t *answer =
        json_loadb(child->output.ptr != NULL ? child->output.ptr : "", child->output.len, 0, NULL);
    json_t *result = json_object_get(answer, "result");
    char *text = json_is_object(result) && child->status == 0 && child->signal_number == 0
                     ? json_dumps(result, JSON_COMPACT)
                     : NULL;
    end.result = text;
    if (end.error == NULL) {
        end.error = json_string_value(json_object_get(answer, "error"));
    }
    if (end.error == NULL) {
        end.error = arena_printf(
            child->arena, "its process ended with status %" PRId64 ", signal %d", child->status,
            child->signal_number);
    }
    child->options.on_ended(child->options.ctx, &end);
    free(text);
    json_decref(answer);
    buf_done(&child->output);
    arena_free(child->arena);
    free(child);
}

static void on_handle_closed(uv_handle_t *handle)
{
    JobChild *child = handle->data;
    if (--child->handles == 0) {
        report(child);
    }
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_handle_closed);
    }
}

static void on_process_exit(uv_process_t *process, int64_t status, int signal_number)
{
    JobChild *child = process->data;
    child->running = false;
    child->status = status;
    child->signal_number = signal_number;
    close_handle((uv_handle_t *)&child->in);
    close_handle((uv_handle_t *)process);
}

// ---- what it says ----

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    JobChild *child = handle->data;
    (void)suggested;
    *buf = uv_buf_init(child->chunk, CHUNK);
}

// Lines that say how far it is are taken out; what remains is the answer.
static void take_progress(JobChild *child)
{
    Str all = buf_view(&child->output);
    Str prefix = STR("{\"progress\":");
    const char *end = NULL;
    while (str_starts(all, prefix) && (end = memchr(all.ptr, '\n', all.len)) != NULL) {
        Str line = str_of(all.ptr, (size_t)(end - all.ptr));
        json_t *said = json_loadb(line.ptr, line.len, 0, NULL);
        char *text = json_dumps(json_object_get(said, "progress"), JSON_COMPACT);
        if (text != NULL && child->options.on_progress != NULL) {
            child->options.on_progress(child->options.ctx, text);
        }
        free(text);
        json_decref(said);
        all = str_slice(all, line.len + 1, all.len);
    }
    memmove(child->output.ptr, all.ptr, all.len);
    child->output.len = all.len;
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    JobChild *child = stream->data;
    if (count < 0) {
        close_handle((uv_handle_t *)stream);
    } else if (!buf_str(&child->output, str_of(buf->base, (size_t)count))) {
        child->failure = "its result is too long";
        job_child_kill(child);
    } else if (count > 0) {
        take_progress(child);
    }
}

static void on_written(uv_write_t *write, int status)
{
    JobChild *child = write->data;
    (void)status; // a child that does not read ends with an error of its own
    close_handle((uv_handle_t *)&child->in);
}

// ---- life ----

static int spawn(JobChild *child)
{
    char program[] = "/proc/self/exe";
    char *argv[] = {program, arena_cstr(child->arena, str_from(child->options.argument)), NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&child->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->out},
        {.flags = UV_INHERIT_FD, .data.fd = 2}};
    uv_process_options_t options = {
        .file = program,
        .args = argv,
        .env = build_environment(child),
        .exit_cb = on_process_exit,
        .stdio_count = 3,
        .stdio = stdio};
    return uv_spawn(child->options.loop, &child->process, &options);
}

static void talk(JobChild *child)
{
    char *text = arena_cstr(child->arena, str_from(child->options.input));
    child->input = uv_buf_init(text, (unsigned)strlen(text));
    child->write.data = child;
    if (uv_write(&child->write, (uv_stream_t *)&child->in, &child->input, 1, on_written) != 0) {
        close_handle((uv_handle_t *)&child->in);
    }
    if (uv_read_start((uv_stream_t *)&child->out, on_alloc, on_read) != 0) {
        close_handle((uv_handle_t *)&child->out);
    }
}

JobChild *job_child_new(const JobChildOptions *options)
{
    JobChild *child = xcalloc(1, sizeof *child);
    child->options = *options;
    child->arena = arena_new(0);
    buf_init(&child->output, options->output_max);
    (void)uv_pipe_init(options->loop, &child->in, 0);
    (void)uv_pipe_init(options->loop, &child->out, 0);
    child->process.data = child->in.data = child->out.data = child;
    child->handles = 3;
    int failed = spawn(child);
    child->running = failed == 0;
    if (failed == 0) {
        talk(child);
    } else {
        child->failure =
            arena_printf(child->arena, "its process cannot be started: %s", uv_strerror(failed));
        close_handle((uv_handle_t *)&child->in);
        close_handle((uv_handle_t *)&child->out);
        close_handle((uv_handle_t *)&child->process);
    }
    return child;
}

void job_child_kill(JobChild *child)
{
    if (child->running) {
        (void)uv_process_kill(&child->process, SIGKILL);
    }
}
