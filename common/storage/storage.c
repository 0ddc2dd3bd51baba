// SPDX-License-Identifier: Apache-2.0
// The part that every kind shares: checks, copies of what a call names, and that no callback comes
// from within the call.
#include "common/storage/storage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/storage/internal.h"

static const StorageKind *const kinds[] = {
    &storage_file,
    &storage_s3,
};

typedef struct Call {
    Storage *storage;
    struct Call *next; // in `refused`
    StorageDone on_done;
    StoragePiece on_piece;
    StorageEntry on_entry;
    void *ctx;
    StoragePut put;
    Str key;
    Error err; // refused with
    char key_text[STORAGE_KEY_MAX + 1];
    char etag[STORAGE_ETAG_SIZE]; // or the version
    char installation[STORAGE_OWNER_SIZE];
    char storage_class[STORAGE_CLASS_SIZE];
} Call;

struct Storage {
    const StorageKind *kind;
    void *state;
    uv_timer_t soon; // ends what was refused
    Call *refused;
    void (*on_freed)(void *ctx);
    void *ctx;
};

const char *storage_outcome_name(StorageOutcome outcome)
{
    switch (outcome) {
    case STORAGE_DONE:
        return "done";
    case STORAGE_ABSENT:
        return "absent";
    case STORAGE_PRECONDITION:
        return "precondition";
    case STORAGE_FAILED:
        return "failed";
    }
    return "unknown";
}

// ---- a call's end ----

static void on_kind_done(
    void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    Call *call = ctx;
    StorageDone on_done = call->on_done;
    void *user = call->ctx;
    free(call);
    on_done(user, outcome, info, err);
}

static bool on_kind_piece(void *ctx, const void *bytes, size_t len)
{
    Call *call = ctx;
    return call->on_piece(call->ctx, bytes, len);
}

static void on_kind_entry(void *ctx, Str key, const StorageInfo *info)
{
    Call *call = ctx;
    call->on_entry(call->ctx, key, info);
}

static void end_refused(Call *calls)
{
    while (calls != NULL) {
        Call *call = calls;
        calls = call->next;
        Error err = call->err;
        on_kind_done(call, STORAGE_FAILED, NULL, &err);
    }
}

static void on_soon(uv_timer_t *timer)
{
    Storage *storage = timer->data;
    Call *refused = storage->refused;
    storage->refused = NULL;
    end_refused(refused);
}

static void refuse(Call *call)
{
    Call **last = &call->storage->refused;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = call;
    uv_timer_start(&call->storage->soon, on_soon, 0, 0);
}

// ---- the five verbs ----

static Call *begin(Storage *storage, Str key, StorageDone on_done, void *ctx)
{
    Call *call = xcalloc(1, sizeof *call);
    call->storage = storage;
    call->on_done = on_done;
    call->ctx = ctx;
    if (str_to_c(key, call->key_text, sizeof call->key_text)) {
        call->key = str_of(call->key_text, key.len);
    }
    return call;
}

static bool copy(const char *text, char *out, size_t size, const char *what, Error *err)
{
    return str_to_c(str_from(text), out, size) ||
           error_set(
               err, ERROR_PERMANENT, "the %s of an object is longer than %zu", what, size - 1);
}

static bool copy_put(Call *call, const StoragePut *put)
{
    assert(put->condition != STORAGE_IF_ETAG || put->etag != NULL);
    call->put = *put;
    call->put.key = call->key;
    call->put.etag = put->etag == NULL ? NULL : call->etag;
    call->put.installation = put->installation == NULL ? NULL : call->installation;
    call->put.storage_class = put->storage_class == NULL ? NULL : call->storage_class;
    return copy(put->etag, call->etag, sizeof call->etag, "etag", &call->err) &&
           copy(
               put->installation, call->installation, sizeof call->installation, "installation",
               &call->err) &&
           copy(
               put->storage_class, call->storage_class, sizeof call->storage_class, "class",
               &call->err);
}

void storage_put(Storage *storage, const StoragePut *put, StorageDone on_done, void *ctx)
{
    Call *call = begin(storage, put->key, on_done, ctx);
    if (storage_key_check(put->key, &call->err) && copy_put(call, put)) {
        storage->kind->put(storage->state, &call->put, on_kind_done, call);
    } else {
        refuse(call);
    }
}

void storage_get(
    Storage *storage, Str key, uint64_t offset, uint64_t len, StoragePiece on_piece,
    StorageDone on_done, void *ctx)
{
    Call *call = begin(storage, key, on_done, ctx);
    call->on_piece = on_piece;
    if (storage_key_check(key, &call->err)) {
        storage->kind->get(
            storage->state, call->key, offset, len, on_kind_piece, on_kind_done, call);
    } else {
        refuse(call);
    }
}

void storage_head(Storage *storage, Str key, StorageDone on_done, void *ctx)
{
    Call *call = begin(storage, key, on_done, ctx);
    if (storage_key_check(key, &call->err)) {
        storage->kind->head(storage->state, call->key, on_kind_done, call);
    } else {
        refuse(call);
    }
}

void storage_list(
    Storage *storage, Str prefix, StorageEntry on_entry, StorageDone on_done, void *ctx)
{
    Call *call = begin(storage, prefix, on_done, ctx);
    call->on_entry = on_entry;
    if (storage_prefix_check(prefix, &call->err)) {
        storage->kind->list(storage->state, call->key, on_kind_entry, on_kind_done, call);
    } else {
        refuse(call);
    }
}

void storage_delete(Storage *storage, Str key, const char *version, StorageDone on_done, void *ctx)
{
    Call *call = begin(storage, key, on_done, ctx);
    if (storage_key_check(key, &call->err) &&
        copy(version, call->etag, sizeof call->etag, "version", &call->err)) {
        const char *wanted = call->etag[0] == '\0' ? NULL : call->etag;
        storage->kind->delete (storage->state, call->key, wanted, on_kind_done, call);
    } else {
        refuse(call);
    }
}

// ---- life ----

Storage *storage_new(uv_loop_t *loop, const StorageOptions *options, Error *err)
{
    Str url = str_from(options->url);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!str_starts(url, str_from(kinds[i]->scheme))) {
            continue;
        }
        void *state = kinds[i]->open(loop, options, err);
        if (state == NULL) {
            return NULL;
        }
        Storage *storage = xcalloc(1, sizeof *storage);
        storage->kind = kinds[i];
        storage->state = state;
        uv_timer_init(loop, &storage->soon);
        storage->soon.data = storage;
        return storage;
    }
    // Only the scheme: what follows may have a secret in it.
    ptrdiff_t colon = str_find(url, ':');
    error_set(
        err, ERROR_CONFIG, "storage '" STR_FMT "' is not known (HINT: file:///folder or s3://bucket)",
        STR_ARG(str_slice(url, 0, colon < 0 ? 0 : (size_t)colon + 1)));
    return NULL;
}

static void on_timer_closed(uv_handle_t *handle)
{
    Storage *storage = handle->data;
    end_refused(storage->refused);
    void (*on_freed)(void *ctx) = storage->on_freed;
    void *ctx = storage->ctx;
    free(storage);
    on_freed(ctx);
}

static void on_kind_closed(void *ctx)
{
    Storage *storage = ctx;
    uv_close((uv_handle_t *)&storage->soon, on_timer_closed);
}

void storage_free(Storage *storage, void (*on_freed)(void *ctx), void *ctx)
{
    if (storage != NULL) {
        storage->on_freed = on_freed;
        storage->ctx = ctx;
        storage->kind->close(storage->state, on_kind_closed, storage);
    }
}
