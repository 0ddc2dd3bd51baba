// SPDX-License-Identifier: Apache-2.0
// Shadow replay: past requests go through the gate and the renderer again, with other content, and
// what would have been different is printed. Law: sends are impossible by construction. These
// files know a reader and the renderer's pure part; nothing in them refers to a publishing
// function (test_replay.py looks at the object files).
#pragma once

#include "common/model/enums.h"
#include "common/replay/shadow/shadow_tally.h"
#include "common/session/session.h"

typedef struct ShadowPlan {
    const char *key; // of the template
    // A stored version in the place of all others, whose it is and its channel; other channels'
    // requests are passed over. NULL: html, subject, text in the place of each version's own.
    const char *version;
    const char *version_tenant;
    Channel channel; // NONE: of all
    // Groups are kept by part, and values show as their tags: no personal data is in them.
    bool as_written;
    const char *locale; // NULL: each version's first
    const char *tenant; // NULL: all of them
    char *html;         // the new content; NULL: as they were
    char *subject;
    char *text;
    int64_t from_us;
    int64_t to_us; // 0: now
    int64_t limit; // requests of the template; 0: all
    int64_t diffs; // groups that are printed
    // Of clock_mono_us(): then it stops reading, as at the limit; 0: never.
    int64_t stop_us;
} ShadowPlan;

typedef struct ShadowOptions {
    SessionOptions session;
    const char *database_url;
    const char *master_key_file;
    const char *epoch_keys_dir; // "": none
    const char *program;        // as Postgres shall see it
    // After each batch; NULL: not asked for.
    void (*on_progress)(void *ctx, const ShadowTally *tally);
    void *ctx;
} ShadowOptions;

// Reads CONFIG, then the streams of requests, and counts into `tally`. false with ERROR_PERMANENT:
// the new content is no template; with tally->no_version: no version is there to compare with.
bool shadow_run(
    const ShadowOptions *options, const ShadowPlan *plan, ShadowTally *tally, Error *err);
