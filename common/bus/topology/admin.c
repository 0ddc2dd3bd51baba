// SPDX-License-Identifier: Apache-2.0
// One step per stream and per consumer: ask for what is there (INFO), write what is wanted when it
// differs, and compare the server's echo with what was wanted: an old server accepts what it does
// not know and drops it in silence.
#include "common/bus/topology/admin.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/bus/jetstream/bus_internal.h"
#include "common/bus/topology/topology.h"

enum { BYTES_MIN = 1024 * 1024, DUPLICATE_WINDOW_S = 120, MAX_WAITING = 512, BODY_MAX = 8192 };

typedef struct Admin {
    Bus *bus;
    TopologyOptions options;
    void (*on_step)(void *ctx, const char *what, const char *result);
    void (*on_done)(void *ctx, const Error *err);
    void *ctx;
    size_t step;             // streams, then consumers, then subscribers' consumers
    const StreamSpec *model; // the largest stream that is there; NULL: none
    double model_scale;
    int model_replicas;
    ConsumerSpec subscriber; // of this step, its name and its filter
    char name[ACCOUNT_NAME_MAX + 1], filter[SUBJECT_SIZE];
    json_t *wanted;
    const char *done_word; // "created" or "updated", for the step's result
} Admin;

static void ask_step(Admin *a);

static json_int_t nanoseconds(int64_t seconds)
{
    return (json_int_t)seconds * 1000000000;
}

// ---- what is wanted ----

// What it takes, and what of that is a repeat.
static void want_source(json_t *config, const Admin *a, const StreamSpec *spec)
{
    int window =
        a->options.duplicate_window_s > 0 ? a->options.duplicate_window_s : DUPLICATE_WINDOW_S;
    json_int_t window_ns = spec->duplicate_window_ms > 0
                               ? (json_int_t)spec->duplicate_window_ms * 1000000
                               : nanoseconds(window);
    json_object_set_new(config, "subjects", json_pack("[s]", spec->subjects));
    json_object_set_new(config, "duplicate_window", json_integer(window_ns));
    if (spec->republish != NULL) {
        json_object_set_new(
            config, "republish",
            json_pack("{s:s, s:s}", "src", spec->subjects, "dest", spec->republish));
    }
}

static json_t *want_stream(const Admin *a, const StreamSpec *spec)
{
    double scale = a->options.bytes_scale > 0 ? a->options.bytes_scale : a->model_scale;
    double bytes = (double)spec->max_bytes * scale;
    json_t *config = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:s, s:b}", "name", spec->name, "retention", "limits",
        "storage", "file", "max_age", nanoseconds(spec->max_age_s), "max_bytes",
        (json_int_t)(bytes > BYTES_MIN ? bytes : BYTES_MIN), "max_msgs_per_subject",
        (json_int_t)(spec->max_per_subject > 0 ? spec->max_per_subject : -1), "num_replicas",
        a->options.replicas > 0 ? a->options.replicas : a->model_replicas, "discard",
        spec->discard_new ? "new" : "old", "allow_direct", 1);
    want_source(config, a, spec);
    return config;
}

json_t *topology_consumer_config(const ConsumerSpec *spec, int ack_wait_ms)
{
    json_int_t ack_wait =
        ack_wait_ms > 0 ? (json_int_t)ack_wait_ms * 1000000 : nanoseconds(spec->ack_wait_s);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:i, s:i, s:i}", "durable_name", spec->name, "ack_policy",
        "explicit", "deliver_policy", "all", "replay_policy", "instant", "ack_wait", ack_wait,
        "max_deliver", -1, "max_ack_pending", (int)spec->max_ack_pending, "max_waiting",
        MAX_WAITING);
}

static json_t *want_consumer(const Admin *a, const ConsumerSpec *spec)
{
    json_t *config = topology_consumer_config(spec, a->options.ack_wait_ms);
    if (spec == &a->subscriber) {
        json_object_set_new(config, "filter_subject", json_string(a->filter));
    }
    return config;
}

// ---- the steps ----

static const StreamSpec *stream_of(const Admin *a)
{
    size_t count;
    const StreamSpec *streams = topology_streams(&count);
    return a->step < count ? &streams[a->step] : NULL;
}

// NULL: none is left.
static const Account *subscriber_at(const Admin *a, size_t number)
{
    const Accounts *accounts = a->options.accounts;
    for (size_t i = 0; accounts != NULL && i < accounts->count; i++) {
        if (accounts->at[i].kind == ACCOUNT_SUBSCRIBER && number-- == 0) {
            return &accounts->at[i];
        }
    }
    return NULL;
}

// A subscriber's consumer on STATUS sees its tenant's events and nothing else.
static const ConsumerSpec *describe_subscriber(Admin *a, const Account *account)
{
    (void)str_to_c(account->name, a->name, sizeof a->name);
    snprintf(a->filter, sizeof a->filter, "ntf.status.%.*s.>", STR_ARG(account->tenants[0]));
    a->subscriber = (ConsumerSpec){"STATUS", a->name, a->name, 30, 1000, true, false};
    return &a->subscriber;
}

static const ConsumerSpec *consumer_of(Admin *a)
{
    size_t streams, count;
    topology_streams(&streams);
    const ConsumerSpec *consumers = topology_consumers(&count);
    if (a->step < streams) {
        return NULL;
    }
    if (a->step - streams < count) {
        return &consumers[a->step - streams];
    }
    const Account *account = subscriber_at(a, a->step - streams - count);
    return account != NULL ? describe_subscriber(a, account) : NULL;
}

static void name_step(Admin *a, char *out, size_t size)
{
    const StreamSpec *stream = stream_of(a);
    const ConsumerSpec *consumer = consumer_of(a);
    if (stream != NULL) {
        snprintf(out, size, "stream %s", stream->name);
    } else if (consumer != NULL) {
        snprintf(out, size, "consumer %s of %s", consumer->name, consumer->stream);
    } else {
        snprintf(out, size, "end");
    }
}

static void finish(Admin *a, const Error *err)
{
    void (*on_done)(void *, const Error *) = a->on_done;
    void *ctx = a->ctx;
    json_decref(a->wanted);
    free(a);
    on_done(ctx, err);
}

static void fail(Admin *a, ErrorKind kind, const char *text)
{
    char name[160];
    Error err;
    name_step(a, name, sizeof name);
    error_set(&err, kind, "%s: %s", name, text);
    finish(a, &err);
}

static void end_step(Admin *a, const char *result)
{
    CRASH_POINT("topology.applied");
    char name[160];
    name_step(a, name, sizeof name);
    a->on_step(a->ctx, name, result);
    json_decref(a->wanted);
    a->wanted = NULL;
    a->step++;
    ask_step(a);
}

// Writes the first names that differ; true: none does. Old servers leave out zero and false.
static bool compare(const json_t *wanted, const json_t *there, char *out, size_t size)
{
    const char *key;
    json_t *value;
    size_t at = 0;
    out[0] = '\0';
    json_object_foreach((json_t *)(uintptr_t)wanted, key, value)
    {
        const json_t *other = json_object_get(there, key);
        bool absent_zero =
            other == NULL && json_is_integer(value) && json_integer_value(value) == 0;
        if (absent_zero || json_equal(value, other) || at + 1 >= size) {
            continue;
        }
        int len = snprintf(
            out + at, size - at, "%s%s%s", at > 0 ? ", " : "", key,
            other == NULL ? " (ignored)" : "");
        at += len > 0 ? (size_t)len : 0;
    }
    return out[0] == '\0';
}

// ---- writing ----

static void handle_written(Admin *a, Str reply, const Error *err)
{
    char differences[200], result[240];
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    json_t *error = json_object_get(root, "error");
    const char *text = json_string_value(json_object_get(error, "description"));
    if (err != NULL || root == NULL || error != NULL) {
        snprintf(
            result, sizeof result, "%s",
            err != NULL    ? err->text
            : text != NULL ? text
                           : "no answer");
        json_decref(root);
        fail(a, err != NULL ? err->kind : ERROR_CONFIG, result);
        return;
    }
    if (compare(a->wanted, json_object_get(root, "config"), differences, sizeof differences)) {
        snprintf(result, sizeof result, "%s", a->done_word);
    } else {
        snprintf(result, sizeof result, "differs: %s", differences);
    }
    json_decref(root);
    end_step(a, result);
}

static void on_written(void *ctx, Str reply, const Error *err)
{
    handle_written(ctx, reply, err);
}

static void send_json(Admin *a, const char *subject, const json_t *body)
{
    char text[BODY_MAX];
    size_t len = json_dumpb(body, text, sizeof text, JSON_COMPACT);
    if (len > sizeof text) {
        fail(a, ERROR_CONFIG, "its configuration is too long");
        return;
    }
    bus_request(a->bus, subject, str_of(text, len), API_TIMEOUT_MS, on_written, a);
}

// What the server has besides our keys (placement, metadata) stays.
static void write_stream(Admin *a, const StreamSpec *spec, const json_t *there)
{
    char subject[160];
    json_t *config = there != NULL ? json_deep_copy(there) : json_object();
    json_object_update(config, a->wanted);
    snprintf(
        subject, sizeof subject, "$JS.API.STREAM.%s.%s", there != NULL ? "UPDATE" : "CREATE",
        spec->name);
    send_json(a, subject, config);
    json_decref(config);
}

static void write_consumer(Admin *a, const ConsumerSpec *spec, const json_t *there)
{
    char subject[160];
    json_t *config = there != NULL ? json_deep_copy(there) : json_object();
    json_object_update(config, a->wanted);
    json_t *body = json_pack("{s:s, s:o}", "stream_name", spec->stream, "config", config);
    snprintf(
        subject, sizeof subject, "$JS.API.CONSUMER.DURABLE.CREATE.%s.%s", spec->stream, spec->name);
    send_json(a, subject, body);
    json_decref(body);
}

static void write_step(Admin *a, const json_t *there)
{
    a->done_word = there != NULL ? "updated" : "created";
    if (stream_of(a) != NULL) {
        write_stream(a, stream_of(a), there);
    } else {
        write_consumer(a, consumer_of(a), there);
    }
}

// ---- asking ----

// What no option names stays as it is.
static void keep_present(Admin *a, const json_t *there)
{
    const ConsumerSpec *consumer = consumer_of(a);
    if (consumer != NULL && consumer->moves) {
        json_object_set(a->wanted, "deliver_policy", json_object_get(there, "deliver_policy"));
    }
    if (stream_of(a) == NULL) {
        return;
    }
    if (a->options.bytes_scale <= 0) {
        json_object_set(a->wanted, "max_bytes", json_object_get(there, "max_bytes"));
    }
    if (a->options.replicas <= 0) {
        json_object_set(a->wanted, "num_replicas", json_object_get(there, "num_replicas"));
    }
}

static void handle_info(Admin *a, Str reply, const Error *err)
{
    enum { NOT_FOUND = 404 };
    char differences[200];
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    json_t *error = json_object_get(root, "error");
    const json_t *config = json_object_get(root, "config");
    const char *text = json_string_value(json_object_get(error, "description"));
    if (err != NULL) {
        fail(a, err->kind, err->text);
    } else if (error != NULL && json_integer_value(json_object_get(error, "code")) == NOT_FOUND) {
        write_step(a, NULL);
    } else if (config == NULL) {
        char copy[160];
        snprintf(copy, sizeof copy, "%s", text != NULL ? text : "an answer that cannot be read");
        fail(a, ERROR_CONFIG, copy);
    } else {
        keep_present(a, config);
        if (compare(a->wanted, config, differences, sizeof differences)) {
            end_step(a, "present");
        } else {
            write_step(a, config);
        }
    }
    json_decref(root);
}

static void on_info(void *ctx, Str reply, const Error *err)
{
    handle_info(ctx, reply, err);
}

static void ask_step(Admin *a)
{
    char subject[160];
    const StreamSpec *stream = stream_of(a);
    const ConsumerSpec *consumer = consumer_of(a);
    if (stream != NULL) {
        a->wanted = want_stream(a, stream);
        snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", stream->name);
    } else if (consumer != NULL) {
        a->wanted = want_consumer(a, consumer);
        snprintf(
            subject, sizeof subject, "$JS.API.CONSUMER.INFO.%s.%s", consumer->stream,
            consumer->name);
    } else {
        finish(a, NULL);
        return;
    }
    bus_request(a->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_info, a);
}

// ---- what new streams take after ----

static void ask_model(Admin *a);

static void note_model(Admin *a, const StreamSpec *spec, const json_t *config)
{
    json_int_t bytes = json_integer_value(json_object_get(config, "max_bytes"));
    if (bytes <= 0 || (a->model != NULL && a->model->max_bytes >= spec->max_bytes)) {
        return;
    }
    a->model = spec;
    a->model_scale = (double)bytes / (double)spec->max_bytes;
    a->model_replicas = (int)json_integer_value(json_object_get(config, "num_replicas"));
}

static void handle_model(Admin *a, Str reply, const Error *err)
{
    if (err != NULL) {
        fail(a, err->kind, err->text);
        return;
    }
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *config = json_object_get(root, "config");
    if (config != NULL) {
        note_model(a, stream_of(a), config);
    }
    json_decref(root);
    a->step++;
    ask_model(a);
}

static void on_model(void *ctx, Str reply, const Error *err)
{
    handle_model(ctx, reply, err);
}

static void ask_model(Admin *a)
{
    char subject[160];
    const StreamSpec *stream = stream_of(a);
    if (stream == NULL) {
        a->step = 0;
        ask_step(a);
        return;
    }
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", stream->name);
    bus_request(a->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_model, a);
}

void topology_apply(
    Bus *bus, const TopologyOptions *options,
    void (*on_step)(void *ctx, const char *what, const char *result),
    void (*on_done)(void *ctx, const Error *err), void *ctx)
{
    Admin *a = xcalloc(1, sizeof *a);
    *a = (Admin){
        .bus = bus,
        .options = *options,
        .on_step = on_step,
        .on_done = on_done,
        .ctx = ctx,
        .model_scale = 1,
        .model_replicas = 1};
    if (options->bytes_scale > 0 && options->replicas > 0) {
        ask_step(a);
    } else {
        ask_model(a);
    }
}
