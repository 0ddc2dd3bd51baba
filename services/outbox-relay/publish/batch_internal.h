// SPDX-License-Identifier: Apache-2.0
// Shared by batch.c (rows) and batch_claim.c (claim and end).
#pragma once

#include "services/outbox-relay/publish/batch.h"
#include "services/outbox-relay/publish/claim.h"
#include "services/outbox-relay/publish/post.h"
#include "services/outbox-relay/publish/write_back.h"
#include "services/outbox-relay/row/row.h"

struct Batch {
    BatchContext *context;
    BatchHandlers handlers;
    void *ctx;
    Arena *arena;
    Str claim_id;
    int64_t asked_at_us; // monotonic, before the claim or its last renewal was sent
    int64_t until_us;    // monotonic: nothing is published after it
    Row *rows;
    RowMessage *messages;
    Post *posts;
    size_t count;
    BatchClaim claim;
    BatchEnd end;
    WriteBack back;
    int retry_ms;
    int pass_ms;
    int64_t pass_at_us;     // monotonic: the next pass
    bool stuck;             // counted in context->stuck
    uv_timer_t timer;       // the next retry or the next pass
    uv_timer_t renew_timer; // until the claim is released
    int handles;
    bool renewing;
    bool posted;
    BatchQuery query;
    int result; // of the claim's rows, in its transaction
    bool ended;
};

int64_t batch_end_of_claim(const Batch *batch);
void batch_start_renew_timer(Batch *batch);
// A renewal in progress ends first.
void batch_end(Batch *batch);
void batch_free(Batch *batch);
void batch_set_stuck(Batch *batch, bool stuck);
void batch_abandon(Batch *batch, const char *why);
