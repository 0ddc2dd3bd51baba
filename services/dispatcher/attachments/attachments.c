// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/attachments/attachments.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"

enum {
    FORGET_MS = 30 * 1000, // a failure; then it is tried again
    ENTRIES_MAX = 4096,
};

typedef struct Entry {
    Attachments *owner;
    Stentor__V1__Attachment *file; // a copy, in `arena`
    Arena *arena;
    Buf sealed; // while it comes
    Buf plain;
    AttachmentState state;
    Error err;
    uint64_t used_at_ms;
} Entry;

struct Attachments {
    Storage *storage; // NULL: none, or closed
    bool configured;
    Map *entries; // object -> Entry
    size_t kept, held, coming;
};

static void free_entry(void *value)
{
    Entry *entry = value;
    if (entry->plain.ptr != NULL) {
        OPENSSL_cleanse(entry->plain.ptr, entry->plain.cap);
    }
    buf_done(&entry->sealed);
    buf_done(&entry->plain);
    arena_free(entry->arena);
    free(entry);
}

Attachments *attachments_new(uv_loop_t *loop, const StorageOptions *options, Error *err)
{
    Storage *storage = NULL;
    if (options->url[0] != '\0') {
        storage = storage_new(loop, options, err);
        if (storage == NULL) {
            return NULL;
        }
    }
    Attachments *attachments = xcalloc(1, sizeof *attachments);
    attachments->storage = storage;
    attachments->configured = storage != NULL;
    attachments->entries = map_new(free_entry);
    return attachments;
}

void attachments_close(Attachments *attachments, void (*on_closed)(void *ctx), void *ctx)
{
    Storage *storage = attachments->storage;
    attachments->storage = NULL;
    if (storage == NULL) {
        on_closed(ctx);
    } else {
        storage_free(storage, on_closed, ctx);
    }
}

void attachments_free(Attachments *attachments)
{
    if (attachments != NULL) {
        map_free(attachments->entries);
        free(attachments);
    }
}

// ---- fetching ----

static void end_fetch(Entry *entry, AttachmentState state)
{
    Attachments *owner = entry->owner;
    owner->coming--;
    entry->state = state;
    buf_done(&entry->sealed);
    if (state != ATTACHMENT_HERE) {
        owner->kept -= entry->file->size_bytes; // nothing is kept of it
    }
}

static void on_fetched(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    Entry *entry = ctx;
    (void)info;
    if (outcome == STORAGE_FAILED) {
        entry->err = *err;
        end_fetch(entry, ATTACHMENT_AWAY);
    } else if (outcome != STORAGE_DONE) {
        (void)error_set(
            &entry->err, ERROR_PERMANENT, "attachment '%.64s' is not in object storage any more",
            entry->file->name);
        end_fetch(entry, ATTACHMENT_LOST);
    } else {
        bool good =
            attachment_open(entry->file, buf_view(&entry->sealed), &entry->plain, &entry->err);
        end_fetch(entry, good ? ATTACHMENT_HERE : ATTACHMENT_LOST);
    }
}

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    Entry *entry = ctx;
    return buf_append(&entry->sealed, bytes, len); // longer than it says: enough, and lost
}

// The one that was used longest ago, and not in the last moment; NULL: none can go.
static Entry *find_oldest(const Attachments *attachments, uint64_t now_ms)
{
    Entry *oldest = NULL;
    Str object;
    void *value;
    for (size_t i = 0; map_next(attachments->entries, &i, &object, &value);) {
        Entry *entry = value;
        if (entry->state != ATTACHMENT_COMING && entry->used_at_ms < now_ms &&
            (oldest == NULL || entry->used_at_ms < oldest->used_at_ms)) {
            oldest = entry;
        }
    }
    return oldest;
}

static void forget(Attachments *attachments, Entry *entry)
{
    if (entry->state == ATTACHMENT_HERE) {
        attachments->kept -= entry->file->size_bytes;
    }
    (void)map_remove(attachments->entries, str_from(entry->file->object));
}

static bool make_room(Attachments *attachments, size_t bytes, uint64_t now_ms)
{
    while (attachments->kept + bytes > ATTACHMENTS_KEPT_BYTES ||
           map_count(attachments->entries) >= ENTRIES_MAX) {
        Entry *oldest = find_oldest(attachments, now_ms);
        if (oldest == NULL) {
            return false;
        }
        forget(attachments, oldest);
    }
    return true;
}

static Stentor__V1__Attachment *copy_of(const Stentor__V1__Attachment *file, Arena *arena)
{
    Stentor__V1__Attachment *copy = arena_copy(arena, file, sizeof *file);
    copy->name = arena_cstr(arena, str_from(file->name));
    copy->object = arena_cstr(arena, str_from(file->object));
    copy->sha256.data = arena_copy(arena, file->sha256.data, file->sha256.len);
    copy->key.data = arena_copy(arena, file->key.data, file->key.len);
    return copy;
}

static void begin_fetch(
    Attachments *attachments, const Stentor__V1__Attachment *file, uint64_t now_ms)
{
    Entry *entry = xcalloc(1, sizeof *entry);
    entry->owner = attachments;
    entry->arena = arena_new(0);
    entry->file = copy_of(file, entry->arena);
    entry->state = ATTACHMENT_COMING;
    entry->used_at_ms = now_ms;
    buf_init(&entry->sealed, (size_t)file->size_bytes + ATTACHMENT_AROUND);
    buf_init(&entry->plain, (size_t)file->size_bytes + 1);
    attachments->kept += file->size_bytes;
    attachments->coming++;
    map_put(attachments->entries, str_from(file->object), entry);
    storage_get(
        attachments->storage, str_from(entry->file->object), 0, 0, on_piece, on_fetched, entry);
}

static AttachmentState without_storage(const Attachments *attachments, Error *err)
{
    (void)error_set(
        err, ERROR_TRANSIENT,
        attachments->configured
            ? "the dispatcher is stopping"
            : "attachments need object storage (HINT: set STENTOR_STORAGE_URL of dispatcher)");
    return ATTACHMENT_AWAY;
}

AttachmentState attachments_get(
    Attachments *attachments, const Stentor__V1__Attachment *file, uint64_t now_ms, Str *ret_bytes,
    Error *err)
{
    Entry *entry = map_get(attachments->entries, str_from(file->object));
    if (entry != NULL && entry->state != ATTACHMENT_HERE && entry->state != ATTACHMENT_COMING &&
        now_ms - entry->used_at_ms > FORGET_MS) {
        forget(attachments, entry);
        entry = NULL;
    }
    if (entry == NULL) {
        if (attachments->storage == NULL) {
            return without_storage(attachments, err);
        }
        if (attachments->coming < ATTACHMENTS_FETCHES &&
            make_room(attachments, file->size_bytes, now_ms)) {
            begin_fetch(attachments, file, now_ms);
        }
        return ATTACHMENT_COMING;
    }
    if (entry->state == ATTACHMENT_HERE) {
        entry->used_at_ms = now_ms;
        *ret_bytes = buf_view(&entry->plain);
    } else if (entry->state != ATTACHMENT_COMING) {
        *err = entry->err;
    }
    return entry->state;
}

// ---- what is being sent ----

bool attachments_hold(Attachments *attachments, size_t bytes)
{
    if (attachments->held > 0 && attachments->held + bytes > ATTACHMENTS_HELD_BYTES) {
        return false;
    }
    attachments->held += bytes;
    return true;
}

void attachments_let_go(Attachments *attachments, size_t bytes)
{
    attachments->held -= bytes;
}
