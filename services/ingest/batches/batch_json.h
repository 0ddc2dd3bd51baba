// SPDX-License-Identifier: Apache-2.0
// Batches as JSON: the body of POST /v1/batches, and a batch in an answer. Pure.
#pragma once

#include "common/api/api_json.h"
#include "common/base/buf.h"
#include "common/campaign/batch_chunk.h"
#include "common/campaign/batch_sql.h"
#include "common/codec/hash.h"
#include "common/model/channel_set.h"
#include "common/request/catalog.h"

enum {
    BATCH_NAME_MAX = 200,
    BATCH_VARIABLES_MAX = 16 * 1024, // packed; of a member's 64 KiB the rest is left to it
    BATCH_RATE_MAX = 100000,
    BATCH_INLINE_MAX = CHUNK_MEMBERS_MAX,
};

// What a batch is checked against.
typedef struct BatchRules {
    int64_t now_us;
    ChannelSet delivered; // a batch for another channel is refused
    const Catalog *catalog;
    Str tenant;
} BatchRules;

typedef struct BatchDraft {
    Request model; // checked but for what only a member has, and frozen
    Str name;
    Str variables; // packed JSON, or empty
    int64_t scheduled_for_us;
    int64_t rate_per_s;
    Str query;    // recipient_query.h; empty: none
    bool dry_run; // count whom the query finds, and make nothing
    Member *members;
    size_t member_count;
} BatchDraft;

// false: *ret_problem names the field ("members[3].to"). Everything lives in `arena`.
bool batch_json_parse(
    Str body, const BatchRules *rules, Arena *arena, BatchDraft *ret, Problem *ret_problem);

// {"scheduled_for": "..."} of POST .../schedule; an empty body leaves it 0.
bool batch_json_schedule(
    Str body, int64_t now_us, Arena *arena, int64_t *ret_us, Problem *ret_problem);

// Counts by status, from history.
typedef struct BatchTotals {
    int64_t of[STATUS_COUNT];
} BatchTotals;

// The batch as one JSON object; totals may be NULL (left out).
void batch_json_print(Buf *out, const BatchRow *row, const BatchTotals *totals, int64_t now_us);
