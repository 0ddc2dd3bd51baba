// SPDX-License-Identifier: Apache-2.0
// The kind file://: each call is a job of one or more rounds of work in a thread; between rounds
// the loop hands over what it has read. With `blocks` the rounds run on the loop's thread.
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/crash.h"
#include "common/storage/internal.h"
#include "common/storage/storage_folder.h"
#include "common/storage/storage_walk.h"

enum { PIECE = 256 * 1024, ENTRIES_A_ROUND = 128 };

typedef struct File {
    StorageFolder folder;
    uv_loop_t *loop;
    bool blocks;
    bool closing;
    struct Job *jobs;
    void (*on_closed)(void *ctx);
    void *ctx;
} File;

typedef struct Entry {
    char key[STORAGE_KEY_MAX + 1];
    StorageInfo info;
} Entry;

// Work runs in a thread and touches its job alone; `after` runs on the loop.
typedef struct Verb {
    void (*work)(struct Job *job);
    bool (*after)(struct Job *job); // true: another round. NULL: one is all
    void (*done)(struct Job *job);  // frees what the verb holds. NULL: nothing
} Verb;

typedef struct Job {
    uv_work_t work;
    File *file;
    struct Job *next, **slot; // in file->jobs
    const Verb *verb;
    Str key;
    StorageOutcome outcome;
    StorageInfo info;
    bool has_info;
    Error err;
    StorageDone on_done;
    StoragePiece on_piece;
    StorageEntry on_entry;
    void *ctx;
    const StoragePut *put;
    bool written;
    char temporary[STORAGE_PATH_SIZE];
    int fd; // GET: -1: not open yet
    uint64_t at, end;
    char *piece;
    size_t piece_len;
    StorageWalk *walk;
    Entry *entries;
    size_t entry_count;
    bool walked;
} Job;

// ---- a job's life ----

static void finish(Job *job)
{
    File *file = job->file;
    *job->slot = job->next;
    if (job->next != NULL) {
        job->next->slot = job->slot;
    }
    if (job->verb->done != NULL) {
        job->verb->done(job);
    }
    // Whoever closes in on_done frees `file` itself.
    bool last = file->closing && file->jobs == NULL;
    bool done = job->outcome == STORAGE_DONE;
    job->on_done(
        job->ctx, job->outcome, done && job->has_info ? &job->info : NULL,
        job->outcome == STORAGE_FAILED ? &job->err : NULL);
    free(job);
    if (last) {
        file->on_closed(file->ctx);
        free(file);
    }
}

static void cancel(Job *job)
{
    job->outcome = STORAGE_FAILED;
    error_set(&job->err, ERROR_CANCELLED, "the storage is being closed");
}

// true: another round.
static bool end_round(Job *job)
{
    bool again = job->outcome == STORAGE_DONE && job->verb->after != NULL && job->verb->after(job);
    if (again && job->file->closing) {
        cancel(job);
        again = false;
    }
    return again;
}

static void on_work(uv_work_t *work)
{
    Job *job = work->data;
    job->verb->work(job);
}

static void start_round(Job *job);

static void on_work_done(uv_work_t *work, int status)
{
    Job *job = work->data;
    if (status != 0) {
        cancel(job);
    }
    if (end_round(job)) {
        start_round(job);
    } else {
        finish(job);
    }
}

static void start_round(Job *job)
{
    int queued = uv_queue_work(job->file->loop, &job->work, on_work, on_work_done);
    assert(queued == 0);
    (void)queued;
}

static Job *begin(File *file, const Verb *verb, Str key, StorageDone on_done, void *ctx)
{
    Job *job = xcalloc(1, sizeof *job);
    job->file = file;
    job->verb = verb;
    job->key = key;
    job->on_done = on_done;
    job->ctx = ctx;
    job->fd = -1;
    job->work.data = job;
    job->next = file->jobs;
    job->slot = &file->jobs;
    if (job->next != NULL) {
        job->next->slot = &job->next;
    }
    file->jobs = job;
    return job;
}

static void start(Job *job)
{
    if (!job->file->blocks) {
        start_round(job);
        return;
    }
    do {
        job->verb->work(job);
    } while (end_round(job));
    finish(job);
}

// ---- PUT: the bytes, then the name ----

static void work_put(Job *job)
{
    const StorageFolder *folder = &job->file->folder;
    if (!job->written) {
        job->written = storage_folder_write(folder, job->put, job->temporary, &job->err);
        job->outcome = job->written ? STORAGE_DONE : STORAGE_FAILED;
    } else {
        job->has_info = true;
        job->outcome =
            storage_folder_publish(folder, job->put, job->temporary, &job->info, &job->err);
    }
}

static bool after_put(Job *job)
{
    if (job->has_info) {
        CRASH_POINT("storage.named");
        return false;
    }
    CRASH_POINT("storage.written");
    return true;
}

static void done_put(Job *job)
{
    if (job->written && !job->has_info) { // cancelled between the two
        storage_folder_discard(job->temporary);
    }
}

static const Verb PUT = {.work = work_put, .after = after_put, .done = done_put};

static void put_object(void *kind, const StoragePut *put, StorageDone on_done, void *ctx)
{
    Job *job = begin(kind, &PUT, put->key, on_done, ctx);
    job->put = put;
    start(job);
}

// ---- GET ----

static bool open_object(Job *job)
{
    job->outcome =
        storage_folder_open(&job->file->folder, job->key, &job->fd, &job->info, &job->err);
    if (job->outcome != STORAGE_DONE) {
        return false;
    }
    job->has_info = true;
    job->piece = xmalloc(PIECE);
    if (job->end == 0 || job->end > job->info.bytes) {
        job->end = job->info.bytes;
    }
    return true;
}

static void work_get(Job *job)
{
    if (job->fd < 0 && !open_object(job)) {
        return;
    }
    size_t wanted = 0;
    if (job->at < job->end) {
        wanted = job->end - job->at < PIECE ? (size_t)(job->end - job->at) : PIECE;
    }
    ssize_t got;
    do {
        got = pread(job->fd, job->piece, wanted, (off_t)job->at);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        job->outcome = STORAGE_FAILED;
        storage_folder_error(job->key, "cannot be read", &job->err);
    }
    job->piece_len = got > 0 ? (size_t)got : 0;
    job->at += job->piece_len;
}

static bool after_get(Job *job)
{
    return job->piece_len > 0 && job->on_piece(job->ctx, job->piece, job->piece_len);
}

static void done_get(Job *job)
{
    free(job->piece);
    if (job->fd >= 0) {
        (void)close(job->fd);
    }
}

static const Verb GET = {.work = work_get, .after = after_get, .done = done_get};

static void get_object(
    void *kind, Str key, uint64_t offset, uint64_t len, StoragePiece on_piece, StorageDone on_done,
    void *ctx)
{
    Job *job = begin(kind, &GET, key, on_done, ctx);
    job->on_piece = on_piece;
    job->at = offset;
    job->end = len > UINT64_MAX - offset || len == 0 ? 0 : offset + len;
    start(job);
}

// ---- HEAD, DELETE ----

static void work_head(Job *job)
{
    job->has_info = true;
    job->outcome = storage_folder_head(&job->file->folder, job->key, &job->info, &job->err);
}

static const Verb HEAD = {.work = work_head};

static void head_object(void *kind, Str key, StorageDone on_done, void *ctx)
{
    start(begin(kind, &HEAD, key, on_done, ctx));
}

static void work_delete(Job *job)
{
    job->outcome = storage_folder_remove(&job->file->folder, job->key, &job->err);
}

static const Verb DELETE = {.work = work_delete};

static void delete_object(void *kind, Str key, const char *version, StorageDone on_done, void *ctx)
{
    (void)version; // a folder keeps none
    start(begin(kind, &DELETE, key, on_done, ctx));
}

// ---- LIST ----

static void work_list(Job *job)
{
    if (job->walk == NULL) {
        job->walk = storage_walk_new(&job->file->folder, job->key);
        job->entries = xmalloc(ENTRIES_A_ROUND * sizeof *job->entries);
    }
    Str key;
    job->entry_count = 0;
    while (job->entry_count < ENTRIES_A_ROUND && !job->walked) {
        Entry *entry = &job->entries[job->entry_count];
        job->walked = !storage_walk_next(job->walk, &key, &entry->info, &job->err);
        if (!job->walked) {
            (void)str_to_c(key, entry->key, sizeof entry->key);
            job->entry_count++;
        }
    }
    if (job->err.kind != ERROR_NONE) {
        job->outcome = STORAGE_FAILED;
    }
}

static bool after_list(Job *job)
{
    for (size_t i = 0; i < job->entry_count; i++) {
        job->on_entry(job->ctx, str_from(job->entries[i].key), &job->entries[i].info);
    }
    return !job->walked;
}

static void done_list(Job *job)
{
    storage_walk_free(job->walk);
    free(job->entries);
}

static const Verb LIST = {.work = work_list, .after = after_list, .done = done_list};

static void list_objects(
    void *kind, Str prefix, StorageEntry on_entry, StorageDone on_done, void *ctx)
{
    Job *job = begin(kind, &LIST, prefix, on_done, ctx);
    job->on_entry = on_entry;
    start(job);
}

// ---- life ----

static void *open_file(uv_loop_t *loop, const StorageOptions *options, Error *err)
{
    Str root = str_from(options->url + strlen(storage_file.scheme));
    while (root.len > 1 && str_ends(root, STR("/"))) {
        root.len--;
    }
    if (root.len < 2 || root.ptr[0] != '/') {
        error_set(
            err, ERROR_CONFIG, "storage '%.100s' names no folder (HINT: file:///folder)",
            options->url);
        return NULL;
    }
    File *file = xcalloc(1, sizeof *file);
    file->loop = loop;
    file->blocks = options->blocks;
    file->folder.foreign = options->foreign;
    if (!str_to_c(root, file->folder.root, sizeof file->folder.root)) {
        free(file);
        error_set(
            err, ERROR_CONFIG, "storage: the folder's name is longer than %d",
            (int)STORAGE_FOLDER_MAX);
        return NULL;
    }
    return file;
}

static void close_file(void *kind, void (*on_closed)(void *ctx), void *ctx)
{
    File *file = kind;
    file->closing = true;
    file->on_closed = on_closed;
    file->ctx = ctx;
    if (file->jobs == NULL) {
        on_closed(ctx);
        free(file);
        return;
    }
    for (Job *job = file->jobs; job != NULL; job = job->next) {
        (void)uv_cancel((uv_req_t *)&job->work); // one that runs ends its round
    }
}

// clang-format off
const StorageKind storage_file = {
    .scheme = "file://",
    .open = open_file, .put = put_object, .get = get_object, .head = head_object, .list = list_objects,
    .delete = delete_object, .close = close_file,
};
// clang-format on
