// SPDX-License-Identifier: Apache-2.0
// A service's copy of CONFIG: reads cfg.> from the beginning into the service's own memory and
// follows it live, so a change reaches every replica within a second. Not stored: the stream keeps
// the last eight messages of each subject for ever. An entry that is invalid (config_entry.h) or
// cannot be read is ignored, and the one before it stays in force: the start too reads from the
// oldest message on. When no readable one is left, the service assumes the worst
// (config_mirror_on_unreadable). An entry that a restored store does not have any more stays in
// this memory until the process restarts (common/bus/DECISIONS.md says why).
#pragma once

#include "common/bus/consume/reader.h"

typedef struct ConfigMirror ConfigMirror;

// One entry changed. kind, tenant, key are the subject's tokens (key may hold dots when it has
// several tokens), and the entry names them. Return false with PERMANENT for an entry that
// cannot be used, and leave what was known of it as it is: it is logged and passed over. Return
// false with CONFIG for one that is used but for a part: it is logged.
typedef bool (*ConfigChanged)(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err);

// The message `sequence` of the subject cannot be read; a readable one may follow. The service
// keeps what it knows of it; if it knows nothing, it does what cannot harm (common/bus/README.md,
// what an unreadable entry counts as).
typedef void (*ConfigUnreadable)(void *ctx, Str kind, Str tenant, Str key, uint64_t sequence);

// Begins to read at once, and again after a failure.
ConfigMirror *config_mirror_new(Bus *bus, ConfigChanged on_changed, void *ctx);
// Calls back once, from the loop, when the mirror is ready. Before the loop first runs.
void config_mirror_on_ready(ConfigMirror *mirror, void (*on_ready)(void *ctx), void *ctx);
// Before the loop first runs; with the ctx of on_changed.
void config_mirror_on_unreadable(ConfigMirror *mirror, ConfigUnreadable on_unreadable);
bool config_mirror_ready(const ConfigMirror *mirror); // everything there at the start has been read
// on_changed is called no more; on_freed comes from the loop.
void config_mirror_free(ConfigMirror *mirror, void (*on_freed)(void *ctx), void *ctx);
