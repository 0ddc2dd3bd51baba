// SPDX-License-Identifier: Apache-2.0
// The service's side of archiving units: starts the child process, starts it again when it ends
// (after 1 s, then longer up to a minute), and ends it. What it does is archive_process.h. Its
// metrics come from the tables: also a stand-by shows them. Without a storage URL there is no child
// and nothing is asked.
#pragma once

#include <uv.h>

#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"
#include "common/service/metrics.h"
#include "services/archiver/archive/archive_options.h"

typedef struct ArchiveChild ArchiveChild;

typedef struct ArchiveChildOptions {
    uv_loop_t *loop;
    Bus *bus;
    DbPool *pool;
    Metrics *metrics;
    const char *database_url; // texts are borrowed
    const StorageOptions *storage;
    const char *spans; // STENTOR_RETENTION_SPANS, as retention_plan_parse wants it
    const ArchiveSettings *settings;
    // All that was stored in the streams before this time is in history; 0: not known.
    int64_t (*folded_until_us)(void *ctx, int64_t now_us);
    bool (*is_active)(void *ctx); // it is this process that writes, of those that stand by
    void *ctx;
} ArchiveChildOptions;

// The settings are as archive_settings_check wants them.
ArchiveChild *archive_child_new(const ArchiveChildOptions *options);
void archive_child_stop(ArchiveChild *child, void (*on_stopped)(void *ctx), void *ctx);
void archive_child_free(ArchiveChild *child); // after on_stopped; NULL-safe
