// SPDX-License-Identifier: Apache-2.0
// Where the units are, from the tables, every few seconds; and the note for the archiving process
// how far history is folded.
#pragma once

#include "services/archiver/archive/archive_child.h"

typedef struct ArchiveMetrics ArchiveMetrics;

ArchiveMetrics *archive_metrics_new(const ArchiveChildOptions *options);
void archive_metrics_stop(ArchiveMetrics *metrics, void (*on_stopped)(void *ctx), void *ctx);
void archive_metrics_free(ArchiveMetrics *metrics); // after on_stopped; NULL-safe
