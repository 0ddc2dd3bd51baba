// SPDX-License-Identifier: Apache-2.0
// Objects past their time are removed: their day is in their names, so one list says which. Of
// several replicas each does it; a removal of what is gone is none. Killed in between: the next
// hour goes on.
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/codec/attachment.h"
#include "services/gateway/attachments/attachments_api.h"

enum { EVERY_MS = 3600 * 1000, KEYS_MAX = 1000 };

struct AttachmentSweep {
    AttachmentsApi *api;
    Arena *arena;
    Str keys[KEYS_MAX];
    size_t count, at;
    int64_t before_us;
};

static void end(struct AttachmentSweep *sweep, const Error *err)
{
    if (err != NULL && err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "attachments past their time were not removed; trying again in an hour",
            log_error(err));
    } else if (sweep->at > 0) {
        LOG(LOG_INFO, "attachments past their time were removed",
            log_int("removed", (int64_t)sweep->at));
    }
    sweep->api->sweep = NULL;
    arena_free(sweep->arena);
    free(sweep);
}

static void remove_next(struct AttachmentSweep *sweep);

static void on_removed(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    struct AttachmentSweep *sweep = ctx;
    (void)info;
    if (outcome != STORAGE_DONE) {
        end(sweep, err);
        return;
    }
    sweep->at++;
    remove_next(sweep);
}

static void remove_next(struct AttachmentSweep *sweep)
{
    Storage *storage = asset_objects_storage(sweep->api->objects);
    if (sweep->at == sweep->count || storage == NULL) {
        end(sweep, NULL);
    } else {
        storage_delete(storage, sweep->keys[sweep->at], NULL, on_removed, sweep);
    }
}

static void on_entry(void *ctx, Str key, const StorageInfo *info)
{
    struct AttachmentSweep *sweep = ctx;
    int64_t day_us = 0;
    (void)info;
    if (sweep->count < KEYS_MAX && attachment_object_day(key, &day_us) &&
        day_us < sweep->before_us) {
        sweep->keys[sweep->count++] = arena_str(sweep->arena, key);
    }
}

static void on_listed(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    struct AttachmentSweep *sweep = ctx;
    (void)info;
    if (outcome != STORAGE_DONE) {
        end(sweep, err);
        return;
    }
    remove_next(sweep);
}

void attachments_tick(AttachmentsApi *api, uint64_t now_ms)
{
    Storage *storage = asset_objects_storage(api->objects);
    bool due = api->swept_at_ms == 0 || now_ms - api->swept_at_ms >= EVERY_MS;
    if (storage == NULL || api->sweep != NULL || !due) {
        return;
    }
    api->swept_at_ms = now_ms > 0 ? now_ms : 1;
    api->sweep = xcalloc(1, sizeof *api->sweep);
    api->sweep->api = api;
    api->sweep->arena = arena_new(0);
    api->sweep->before_us = clock_now_us() - ATTACHMENT_KEPT_DAYS * INT64_C(86400000000);
    storage_list(storage, STR(ATTACHMENT_PREFIX), on_entry, on_listed, api->sweep);
}
