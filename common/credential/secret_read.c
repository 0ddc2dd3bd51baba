// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700 // realpath
#include "common/credential/secret_read.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

struct SecretRead {
    uv_loop_t *loop;
    SecretRules rules;
    Reference reference;
    char shown[SECRET_SHOWN_MAX];
    SecretStamp known, stamp;
    SecretReadDone done;
    void *ctx;
    char *text; // SECRET_MAX + 1 bytes
    size_t len;
    bool same;
    Error err;
    uv_work_t work;       // of a file
    uv_process_t process; // of a program
    uv_pipe_t output;
    uv_timer_t timer;
    int open; // handles that are not closed
    bool running;
};

// ---- texts ----

bool secret_rules_parse(Str text, SecretRules *ret, Error *err)
{
    SecretRules rules = {.exec_ms = SECRET_EXEC_MS};
    Str folder;
    while (str_split(&text, ':', &folder)) {
        while (folder.len > 1 && folder.ptr[folder.len - 1] == '/') {
            folder.len--;
        }
        if (folder.len < 2 || folder.ptr[0] != '/' || rules.folder_count == SECRET_FOLDERS_MAX) {
            return error_set(
                err, ERROR_CONFIG,
                "not at most %d absolute folders such as '/etc/stentor/credentials:/run/secrets'",
                SECRET_FOLDERS_MAX);
        }
        rules.folders[rules.folder_count++] = folder;
    }
    *ret = rules;
    return true;
}

void secret_shown(const Reference *reference, char out[SECRET_SHOWN_MAX])
{
    static const char *const schemes[] = {
        [REFERENCE_FILE] = "file", [REFERENCE_ENV] = "env", [REFERENCE_EXEC] = "exec"};
    Str place = str_slice(reference->place, 0, 100);
    (void)snprintf(
        out, SECRET_SHOWN_MAX, "%s:" STR_FMT "%s", schemes[reference->kind], STR_ARG(place),
        reference->argument_count > 0 ? " ..." : "");
}

static bool fail(SecretRead *read, ErrorKind kind, const char *what)
{
    return error_set(&read->err, kind, "'%s' %s", read->shown, what);
}

static bool fail_by_errno(SecretRead *read, const char *what, int number)
{
    return error_set(
        &read->err, number == ENOENT || number == EACCES ? ERROR_CONFIG : ERROR_TRANSIENT,
        "'%s' %s: %s", read->shown, what, strerror(number));
}

static void free_read(SecretRead *read)
{
    OPENSSL_cleanse(read->text, SECRET_MAX + 1);
    free(read->text);
    free(read);
}

static void finish(SecretRead *read)
{
    Str text = str_of(read->text, read->len);
    if (read->err.kind == ERROR_NONE && !read->same) {
        text.len -= text.len > 0 && text.ptr[text.len - 1] == '\n' ? 1 : 0;
        text.len -= text.len > 0 && text.ptr[text.len - 1] == '\r' ? 1 : 0;
        if (text.len == 0) {
            (void)fail(read, ERROR_TRANSIENT, "is empty");
        }
    }
    bool ok = read->err.kind == ERROR_NONE;
    read->done(
        read->ctx, ok && !read->same ? text : STR_EMPTY, read->same, &read->stamp,
        ok ? NULL : &read->err);
    free_read(read);
}

// ---- a file, in a thread ----

static bool is_below(const char *path, Str folder)
{
    char *name = strndup(folder.ptr, folder.len);
    char *real = name == NULL ? NULL : realpath(name, NULL);
    size_t len = real == NULL ? 0 : strlen(real);
    bool below = len > 0 && strncmp(path, real, len) == 0 && path[len] == '/';
    free(real);
    free(name);
    return below;
}

// The place without links, when it is below one of the folders. Free it.
static char *allowed_path(SecretRead *read)
{
    char *name = strndup(read->reference.place.ptr, read->reference.place.len);
    char *real = name == NULL ? NULL : realpath(name, NULL);
    int number = errno;
    free(name);
    if (real == NULL) {
        (void)fail_by_errno(read, "cannot be read", number);
        return NULL;
    }
    for (size_t i = 0; i < read->rules.folder_count; i++) {
        if (is_below(real, read->rules.folders[i])) {
            return real;
        }
    }
    free(real);
    (void)fail(read, ERROR_CONFIG, "is below none of the folders of STENTOR_CREDENTIAL_DIRS");
    return NULL;
}

static bool is_same(const SecretStamp *a, const SecretStamp *b)
{
    return a->inode == b->inode && a->device == b->device && a->size == b->size &&
           a->changed_ns == b->changed_ns;
}

static void load(SecretRead *read, int fd)
{
    struct stat file;
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) {
        (void)fail(read, ERROR_CONFIG, "is no file");
        return;
    }
    read->stamp = (SecretStamp){
        file.st_dev, file.st_ino, file.st_size,
        (int64_t)file.st_mtim.tv_sec * 1000000000 + file.st_mtim.tv_nsec};
    read->same = is_same(&read->stamp, &read->known);
    while (!read->same && read->len <= SECRET_MAX) {
        ssize_t got =
            pread(fd, read->text + read->len, SECRET_MAX + 1 - read->len, (off_t)read->len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            (void)fail_by_errno(read, "cannot be read", errno);
        }
        if (got <= 0) {
            return;
        }
        read->len += (size_t)got;
    }
    if (read->len > SECRET_MAX) {
        (void)fail(read, ERROR_CONFIG, "has more than 64 KiB");
    }
}

static void on_work(uv_work_t *work)
{
    SecretRead *read = work->data;
    char *path = allowed_path(read);
    if (path == NULL) {
        return;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        (void)fail_by_errno(read, "cannot be read", errno);
    } else {
        load(read, fd);
        (void)close(fd);
    }
    free(path);
}

static void on_work_done(uv_work_t *work, int status)
{
    SecretRead *read = work->data;
    if (status != 0) {
        (void)fail(read, ERROR_CANCELLED, "was not read: stopping");
    }
    finish(read);
}

// ---- a program ----

static void on_closed(uv_handle_t *handle)
{
    SecretRead *read = handle->data;
    if (--read->open == 0) {
        finish(read);
    }
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_closed);
    }
}

// It and what it started, which may hold its output open.
static void end_program(SecretRead *read)
{
    if (read->running) {
        (void)kill(-read->process.pid, SIGKILL);
    }
    close_handle((uv_handle_t *)&read->output);
}

static void close_timer(SecretRead *read)
{
    if (!read->running && uv_is_closing((uv_handle_t *)&read->output)) {
        close_handle((uv_handle_t *)&read->timer);
    }
}

static void on_late(uv_timer_t *timer)
{
    SecretRead *read = timer->data;
    (void)fail(read, ERROR_TRANSIENT, "did not end in time");
    end_program(read);
    close_timer(read); // it has ended, and what it left behind holds its output
}

static void on_exit_seen(uv_process_t *process, int64_t status, int signal_number)
{
    SecretRead *read = process->data;
    read->running = false;
    if (read->err.kind == ERROR_NONE && (status != 0 || signal_number != 0)) {
        error_set(
            &read->err, ERROR_TRANSIENT, "'%s' ended with status %lld", read->shown,
            (long long)(signal_number != 0 ? 128 + signal_number : status));
    }
    close_handle((uv_handle_t *)process);
    close_timer(read);
}

static void on_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    (void)suggested;
    SecretRead *read = handle->data;
    *ret = uv_buf_init(read->text + read->len, (unsigned)(SECRET_MAX + 1 - read->len));
}

static void on_output(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    (void)buf;
    SecretRead *read = stream->data;
    read->len += got > 0 ? (size_t)got : 0;
    if (read->len > SECRET_MAX) {
        (void)fail(read, ERROR_CONFIG, "prints more than 64 KiB");
        end_program(read);
    } else if (got < 0) {
        close_handle((uv_handle_t *)stream);
    }
    close_timer(read);
}

// Without the services' own settings, among which are passwords.
static char **environment_of(Arena *arena)
{
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **kept = arena_array(arena, count + 1, sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!str_starts(str_from(environ[i]), STR("STENTOR_"))) {
            kept[n++] = environ[i];
        }
    }
    return kept;
}

static int spawn(SecretRead *read, char *path)
{
    Arena *arena = arena_new(0);
    char **argv = arena_array(arena, read->reference.argument_count + 2, sizeof *argv);
    argv[0] = path;
    for (size_t i = 0; i < read->reference.argument_count; i++) {
        argv[i + 1] = arena_cstr(arena, read->reference.arguments[i]);
    }
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&read->output},
        {.flags = UV_IGNORE}};
    uv_process_options_t options = {
        .file = path,
        .args = argv,
        .env = environment_of(arena),
        .exit_cb = on_exit_seen,
        .flags = UV_PROCESS_DETACHED, // a group of its own, so that all of it can be ended
        .stdio_count = 3,
        .stdio = stdio};
    int failed = uv_spawn(read->loop, &read->process, &options);
    arena_free(arena);
    return failed;
}

// false: it has ended already.
static bool start_program(SecretRead *read)
{
    char *path = allowed_path(read);
    if (path == NULL) {
        finish(read);
        return false;
    }
    (void)uv_timer_init(read->loop, &read->timer);
    (void)uv_pipe_init(read->loop, &read->output, 0);
    read->timer.data = read->output.data = read->process.data = read;
    read->open = 3; // the process is closed also when it was not started
    int failed = spawn(read, path);
    free(path);
    if (failed != 0) {
        error_set(
            &read->err, ERROR_CONFIG, "'%s' cannot be started: %s", read->shown,
            uv_strerror(failed));
        close_handle((uv_handle_t *)&read->process);
        close_handle((uv_handle_t *)&read->output);
        close_handle((uv_handle_t *)&read->timer);
        return true;
    }
    read->running = true;
    (void)uv_timer_start(&read->timer, on_late, (uint64_t)read->rules.exec_ms, 0);
    (void)uv_read_start((uv_stream_t *)&read->output, on_buffer, on_output);
    return true;
}

void secret_read_stop(SecretRead *read)
{
    if (read->reference.kind == REFERENCE_EXEC && read->running) {
        (void)fail(read, ERROR_CANCELLED, "was not read: stopping");
        end_program(read);
    }
}

// ---- all kinds ----

static void read_variable(SecretRead *read)
{
    char name[160];
    (void)str_to_c(read->reference.place, name, sizeof name);
    const char *value = getenv(name);
    if (value == NULL || strlen(value) > SECRET_MAX) {
        (void)fail(
            read, ERROR_CONFIG,
            value == NULL ? "is not set in the environment of this process"
                          : "has more than 64 KiB");
    } else {
        read->len = strlen(value);
        memcpy(read->text, value, read->len);
    }
    finish(read);
}

SecretRead *secret_read(
    uv_loop_t *loop, const SecretRules *rules, const Reference *reference, const SecretStamp *known,
    SecretReadDone done, void *ctx)
{
    SecretRead *read = xcalloc(1, sizeof *read);
    read->loop = loop;
    read->rules = *rules;
    read->reference = *reference;
    read->known = *known;
    read->done = done;
    read->ctx = ctx;
    read->text = xmalloc(SECRET_MAX + 1);
    secret_shown(reference, read->shown);
    read->work.data = read;
    switch (reference->kind) {
    case REFERENCE_ENV:
        read_variable(read);
        return NULL;
    case REFERENCE_EXEC:
        return start_program(read) ? read : NULL;
    case REFERENCE_FILE:
        break;
    }
    if (uv_queue_work(loop, &read->work, on_work, on_work_done) != 0) {
        (void)fail(read, ERROR_TRANSIENT, "was not read: no thread");
        finish(read);
        return NULL;
    }
    return read;
}
