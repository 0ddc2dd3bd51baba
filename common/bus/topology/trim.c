// SPDX-License-Identifier: Apache-2.0
// One message at a time, and never a purge: on nats-server 2.9.10 a purge up to a sequence forgets
// what consumers have pending above it, and with it every redelivery that was due (seen: 750 of 950
// requests that waited for room downstream; test_full_stream.py).
//
// Killed between two deletions: the next pass goes on. Two replicas at once delete the same ones;
// the second one is answered that there is no such message.
#include "common/bus/topology/trim.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/bus/topology/topology.h"

enum {
    API_TIMEOUT_MS = 5000,
    SUBJECT_MAX = 160,
    WINDOW = 64,        // deletions in flight
    PASS_MAX = 50000,   // messages of one stream in one pass
    NO_MESSAGE = 10037, // JetStream: no message found
};

typedef struct Trim {
    Bus *bus;
    TrimFloor floors[TRIM_STREAMS_MAX];
    char names[TRIM_STREAMS_MAX][64];
    size_t floor_count;
    TrimStream streams[TRIM_STREAMS_MAX];
    size_t count;
    size_t next;     // in the topology's table of streams
    size_t consumer; // in its table of consumers: the next one
    TrimState state; // of the stream in hand
    uint64_t next_seq, keep_from;
    size_t in_flight;
    Error failure; // the first of a deletion
    TrimDone on_done;
    void *ctx;
} Trim;

static void next_stream(Trim *trim);
static void next_consumer(Trim *trim);

uint64_t trim_keep_from(const TrimState *state)
{
    if (state->messages == 0 || state->max_bytes == 0 || state->floor < state->first ||
        state->bytes <= state->max_bytes / 100 * TRIM_FROM_PERCENT) {
        return state->first;
    }
    // By the average size; a stream of unequal messages needs another pass.
    uint64_t average = state->bytes / state->messages > 0 ? state->bytes / state->messages : 1;
    uint64_t excess = state->bytes - state->max_bytes / 100 * TRIM_TO_PERCENT;
    uint64_t wanted = state->first + excess / average;
    return wanted <= state->floor ? wanted : state->floor + 1;
}

static void finish(Trim *trim, const Error *err)
{
    trim->on_done(trim->ctx, trim->streams, trim->count, err);
    free(trim);
}

// NULL with the reason in `err`: no answer, or JetStream's own error.
static json_t *read_reply(Str reply, const Error *failed, const char *what, Error *err)
{
    if (failed != NULL) {
        *err = *failed;
        return NULL;
    }
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    json_t *error = json_object_get(root, "error");
    if (root != NULL && error == NULL) {
        return root;
    }
    const char *text = json_string_value(json_object_get(error, "description"));
    error_set(
        err, ERROR_TRANSIENT, "trimming %s: %s", what, text != NULL ? text : "unreadable answer");
    json_decref(root);
    return NULL;
}

static uint64_t number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

static TrimStream *in_hand(Trim *trim)
{
    return &trim->streams[trim->count - 1];
}

// ---- removing ----

static void delete_more(Trim *trim);

static void count_deleted(Trim *trim, Str reply, const Error *failed)
{
    json_t *root = failed == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    const json_t *code = json_object_get(json_object_get(root, "error"), "err_code");
    bool gone_already = json_integer_value(code) == NO_MESSAGE;
    if (json_is_true(json_object_get(root, "success"))) {
        in_hand(trim)->removed++;
    } else if (!gone_already && trim->failure.kind == ERROR_NONE) {
        json_decref(read_reply(reply, failed, in_hand(trim)->stream, &trim->failure));
        trim->next_seq = trim->keep_from; // no more of them
    }
    json_decref(root);
}

static void finish_deleting(Trim *trim)
{
    LOG(LOG_INFO, "stream trimmed: every consumer had processed the removed messages",
        log_text("stream", in_hand(trim)->stream),
        log_int("messages", (int64_t)in_hand(trim)->removed));
    if (trim->failure.kind != ERROR_NONE) {
        finish(trim, &trim->failure);
    } else {
        next_stream(trim);
    }
}

static void on_deleted(void *ctx, Str reply, const Error *err)
{
    Trim *trim = ctx;
    trim->in_flight--;
    count_deleted(trim, reply, err);
    if (trim->next_seq < trim->keep_from) {
        delete_more(trim);
    } else if (trim->in_flight == 0) {
        finish_deleting(trim);
    }
}

static void delete_more(Trim *trim)
{
    char subject[SUBJECT_MAX];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.MSG.DELETE.%s", in_hand(trim)->stream);
    while (trim->in_flight < WINDOW && trim->next_seq < trim->keep_from) {
        char body[80];
        int len = snprintf(
            body, sizeof body, "{\"seq\":%llu,\"no_erase\":true}",
            (unsigned long long)trim->next_seq++);
        trim->in_flight++;
        bus_request(
            trim->bus, subject, str_of(body, (size_t)len), API_TIMEOUT_MS, on_deleted, trim);
    }
}

static void start_deleting(Trim *trim)
{
    uint64_t keep_from = trim_keep_from(&trim->state);
    if (keep_from <= trim->state.first) {
        next_stream(trim);
        return;
    }
    uint64_t most = trim->state.first + PASS_MAX;
    trim->next_seq = trim->state.first;
    trim->keep_from = keep_from < most ? keep_from : most;
    delete_more(trim);
}

// ---- who has read what ----

// Of a service that was never started: it will not miss what it has not read.
static bool is_unused(const Trim *trim, const json_t *root)
{
    size_t count;
    const ConsumerSpec *spec = &topology_consumers(&count)[trim->consumer - 1];
    uint64_t delivered = number(json_object_get(root, "delivered"), "consumer_seq");
    return spec->is_optional && delivered == 0 && number(root, "num_waiting") == 0;
}

static void handle_consumer(Trim *trim, Str reply, const Error *failed)
{
    Error err = {0};
    json_t *root = read_reply(reply, failed, in_hand(trim)->stream, &err);
    if (root == NULL) {
        finish(trim, &err);
        return;
    }
    if (!is_unused(trim, root)) {
        uint64_t floor = number(json_object_get(root, "ack_floor"), "stream_seq");
        trim->state.floor = floor < trim->state.floor ? floor : trim->state.floor;
    }
    json_decref(root);
    next_consumer(trim);
}

static void on_consumer(void *ctx, Str reply, const Error *err)
{
    handle_consumer(ctx, reply, err);
}

static void next_consumer(Trim *trim)
{
    size_t count;
    const ConsumerSpec *consumers = topology_consumers(&count);
    const char *stream = in_hand(trim)->stream;
    while (trim->consumer < count) {
        const ConsumerSpec *spec = &consumers[trim->consumer++];
        if (str_eq(str_from(spec->stream), str_from(stream))) {
            char subject[SUBJECT_MAX];
            snprintf(
                subject, sizeof subject, "$JS.API.CONSUMER.INFO.%s.%s", spec->stream, spec->name);
            bus_request(trim->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_consumer, trim);
            return;
        }
    }
    start_deleting(trim);
}

static uint64_t projected_floor(const Trim *trim, Str stream)
{
    for (size_t i = 0; i < trim->floor_count; i++) {
        if (str_eq(trim->floors[i].stream, stream)) {
            return trim->floors[i].sequence;
        }
    }
    return str_starts(stream, STR("REQUEST_")) ? 0 : UINT64_MAX;
}

// ---- streams ----

static void read_state(Trim *trim, const json_t *root)
{
    const json_t *state = json_object_get(root, "state");
    trim->state = (TrimState){
        .first = number(state, "first_seq"),
        .messages = number(state, "messages"),
        .bytes = number(state, "bytes"),
        .max_bytes = number(json_object_get(root, "config"), "max_bytes"),
        .floor = projected_floor(trim, str_from(in_hand(trim)->stream)),
    };
    // A projection that has read more than there is belongs to a log that lost its tail: it will
    // read again, and what it will read must stay.
    if (trim->state.floor != UINT64_MAX && trim->state.floor > number(state, "last_seq")) {
        trim->state.floor = 0;
    }
    if (trim->state.max_bytes > 0) {
        in_hand(trim)->fill = (double)trim->state.bytes / (double)trim->state.max_bytes;
    }
}

static void handle_stream(Trim *trim, Str reply, const Error *failed)
{
    Error err = {0};
    json_t *root = read_reply(reply, failed, in_hand(trim)->stream, &err);
    if (root == NULL) {
        finish(trim, &err);
        return;
    }
    read_state(trim, root);
    json_decref(root);
    if (in_hand(trim)->fill * 100 > TRIM_FROM_PERCENT) {
        trim->consumer = 0;
        next_consumer(trim);
    } else {
        next_stream(trim);
    }
}

static void on_stream(void *ctx, Str reply, const Error *err)
{
    handle_stream(ctx, reply, err);
}

// A working stream is one that a durable consumer reads; a stream without workers is kept by age.
static bool is_working(const StreamSpec *stream)
{
    size_t count;
    const ConsumerSpec *consumers = topology_consumers(&count);
    for (size_t i = 0; i < count; i++) {
        if (str_eq(str_from(consumers[i].stream), str_from(stream->name))) {
            return stream->discard_new;
        }
    }
    return false;
}

static void next_stream(Trim *trim)
{
    size_t count;
    const StreamSpec *streams = topology_streams(&count);
    while (trim->next < count && !is_working(&streams[trim->next])) {
        trim->next++;
    }
    if (trim->next == count || trim->count == TRIM_STREAMS_MAX) {
        finish(trim, NULL);
        return;
    }
    trim->streams[trim->count++] = (TrimStream){.stream = streams[trim->next++].name};
    char subject[SUBJECT_MAX];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", in_hand(trim)->stream);
    bus_request(trim->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_stream, trim);
}

void trim_pass(Bus *bus, const TrimFloor *floors, size_t floor_count, TrimDone on_done, void *ctx)
{
    Trim *trim = xcalloc(1, sizeof *trim);
    trim->bus = bus;
    trim->on_done = on_done;
    trim->ctx = ctx;
    for (size_t i = 0; i < floor_count && i < TRIM_STREAMS_MAX; i++) {
        if (str_to_c(floors[i].stream, trim->names[i], sizeof trim->names[i])) {
            trim->floors[trim->floor_count++] =
                (TrimFloor){str_from(trim->names[i]), floors[i].sequence};
        }
    }
    next_stream(trim);
}
