// SPDX-License-Identifier: Apache-2.0
// What a shadow replay has found: results, the reasons of failures, and groups of requests that
// differ in the same lines.
#pragma once

#include "common/base/map.h"

enum { SHADOW_GROUPS_MAX = 256, SHADOW_REASONS_MAX = 100, SHADOW_DIFFS_MAX = 100 };

typedef enum ShadowResult {
    SHADOW_SAME,
    SHADOW_DIFFERENT,
    SHADOW_FAILS,       // with the new content only
    SHADOW_FIXED,       // with the old content only
    SHADOW_FAILS_STILL, // with both
    SHADOW_GATE_EXPIRED,
    SHADOW_GATE_SUPPRESSED,
    SHADOW_ERASED,     // the recipient's key is gone
    SHADOW_UNKNOWN,    // the version that was frozen is not in CONFIG
    SHADOW_UNREADABLE, // no request, or altered
    SHADOW_RESULT_COUNT,
} ShadowResult;

const char *shadow_result_name(ShadowResult result); // as in --json

// The parts of content that are compared.
typedef enum ShadowPart {
    SHADOW_SUBJECT,
    SHADOW_TITLE,
    SHADOW_HTML,
    SHADOW_TEXT,
    SHADOW_DATA,
    SHADOW_REFERENCE,
    SHADOW_PARAMETERS,
    SHADOW_PART_COUNT,
} ShadowPart;

const char *shadow_part_name(ShadowPart part);

// Those whose content differ in the same lines; the diff is of the first of them.
typedef struct ShadowGroup {
    uint64_t count;
    uint64_t order; // by appearance
    char *notification_id;
    char *version;                  // that was frozen then
    char *diff;                     // addresses masked; NULL: not kept
    char *parts[SHADOW_PART_COUNT]; // the same by part, without its head; NULL: no difference there
} ShadowGroup;

typedef struct ShadowTally {
    uint64_t scanned; // requests of any template
    uint64_t results[SHADOW_RESULT_COUNT];
    Map *reasons; // "missing_variable: ..." -> uint64_t *
    Map *groups;  // signature -> ShadowGroup *
    uint64_t ungrouped;
    bool limited;    // stopped by the plan's limit or time
    bool no_version; // there is no version that the new content could stand in: nothing was read
} ShadowTally;

void shadow_tally_init(ShadowTally *tally);
void shadow_tally_done(ShadowTally *tally);
void shadow_count_reason(ShadowTally *tally, const char *code, const char *reason);
// The group, when it is new and its diff is wanted, because fewer than `diffs` are kept; else NULL.
ShadowGroup *shadow_count_group(
    ShadowTally *tally, uint64_t signature, const char *notification_id, int64_t diffs);
void shadow_group_diff(ShadowGroup *group, Str diff); // masks it
