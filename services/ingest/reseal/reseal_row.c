// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/bus/jetstream/get_message.h"
#include "services/ingest/reseal/reseal_internal.h"

enum { API_TIMEOUT_MS = 5000, NO_MESSAGE = 10037, TIME_STEP_US = 2 };

// ---- erasing ----

// Overwritten in the stream's file, which is what JetStream does unless it is asked not to.
static void on_erased(void *ctx, Str reply, const Error *err)
{
    ResealRow *row = ctx;
    Error refused = {0};
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    const json_t *code = json_object_get(json_object_get(root, "error"), "err_code");
    bool gone = json_is_true(json_object_get(root, "success"));
    if (gone) {
        CRASH_POINT("reseal.erased");
        metric_add(row->reseal->options.metrics->clear_erased, 1);
    }
    gone = gone || json_integer_value(code) == NO_MESSAGE;
    json_decref(root);
    if (!gone && err == NULL) {
        (void)error_set(
            &refused, ERROR_TRANSIENT, "JetStream does not delete message %" PRIu64, row->sequence);
        err = &refused;
    }
    reseal_row_done(row, gone ? ROW_GONE : ROW_LEFT, err);
}

static void erase(ResealRow *row)
{
    char body[48];
    int len = snprintf(body, sizeof body, "{\"seq\":%" PRIu64 "}", row->sequence);
    bus_request(
        row->reseal->options.bus, "$JS.API.STREAM.MSG.DELETE.EVENTS", str_of(body, (size_t)len),
        API_TIMEOUT_MS, on_erased, row);
}

// ---- copying ----

static void on_copied(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    ResealRow *row = ctx;
    if (err == NULL) {
        CRASH_POINT("reseal.copied");
        metric_add(row->reseal->options.metrics->clear_copied, 1);
    }
    reseal_row_done(row, err == NULL ? ROW_COPIED : ROW_LEFT, err);
}

static void copy(ResealRow *row, const BusMessage *message)
{
    BusOut out;
    Error err = {0};
    Arena *arena = row->reseal->arena;
    if (event_seal_copy(row->reseal->options.keys, clock_mono_us(), message, arena, &out, &err)) {
        bus_publish(row->reseal->options.bus, &out, on_copied, row);
    } else {
        reseal_row_done(row, ROW_LEFT, &err);
    }
}

// ---- the original ----

// Of a stream that was lost and made again the same number is another event, which is noted by
// itself.
static bool is_it(const ResealRow *row, const BusMessage *message)
{
    int64_t apart_us = message->stored_at_us - row->stored_at_us;
    return apart_us <= TIME_STEP_US && apart_us >= -TIME_STEP_US &&
           !event_is_sealed(message->payload);
}

static void on_fetched(void *ctx, Str reply, const Error *err)
{
    ResealRow *row = ctx;
    BusMessage message;
    Error own = {0};
    bool found = false;
    if (err == NULL &&
        !get_message_reply(reply, "EVENTS", row->reseal->arena, &message, &found, &own)) {
        err = &own;
    }
    if (err != NULL) {
        reseal_row_done(row, ROW_LEFT, err);
    } else if (!found || !is_it(row, &message)) {
        reseal_row_done(row, ROW_GONE, NULL);
    } else if (row->copied) {
        erase(row);
    } else {
        copy(row, &message);
    }
}

void reseal_row_begin(ResealRow *row)
{
    MessageQuery query = {.stream = "EVENTS", .sequence = row->sequence};
    get_message(row->reseal->options.bus, &query, on_fetched, row);
}
