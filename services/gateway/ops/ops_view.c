// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/ops/ops_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/model/enums.h"

// Stages in the order in which a notification passes them. `consumes`: what its workers read, a
// stage of the lanes ("REQUEST") or one stream; NULL: none. `stores`: where what it accepts goes,
// for a stage without workers.
// clang-format off
static const struct {
    const char *name, *service, *consumes, *stores;
} STAGES[] = {
    {"accept", "ingest",           NULL,       "REQUEST"},
    {"render", "renderer",         "REQUEST",  NULL},
    {"send",   "dispatcher",       "RENDERED", NULL},
    {"record", "archiver",         NULL,       "STATUS"},
    {"wait",   "digest-flusher",   "DEFERRED", NULL},
    {"hear",   "webhook-receiver", "INBOUND",  NULL},
    {"post",   "webhook",          "HOOK",     NULL},
};
// clang-format on

// ---- fields ----

static void set_time(json_t *object, const char *name, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    if (at_us > 0) {
        clock_format(at_us, text);
        (void)json_object_set_new(object, name, json_string(text));
    }
}

static void set_count(json_t *object, const char *name, uint64_t value)
{
    (void)json_object_set_new(object, name, json_integer((json_int_t)value));
}

// With one decimal; below 0: not known.
static void set_real(json_t *object, const char *name, double value)
{
    if (value >= 0) {
        (void)json_object_set_new(object, name, json_real(round(value * 10) / 10));
    }
}

static void set_age(json_t *object, int64_t oldest_us, int64_t at_us)
{
    set_time(object, "oldest_at", oldest_us);
    double age_s = oldest_us > 0 && at_us > oldest_us ? (double)(at_us - oldest_us) / 1e6 : 0;
    set_real(object, "age_s", age_s);
}

static json_t *list_of(const OpsPicture *picture, json_t *list)
{
    json_t *answer = json_object();
    set_time(answer, "at", picture->at_us);
    (void)json_object_set_new(answer, "data", list);
    return answer;
}

// ---- streams and consumers ----

static json_t *stream_json(const OpsStream *stream)
{
    json_t *row =
        json_pack("{s:s, s:s}", "name", stream->spec->name, "subjects", stream->spec->subjects);
    (void)json_object_set_new(row, "there", json_boolean(stream->there));
    if (!stream->there) {
        return row;
    }
    set_count(row, "events", stream->messages);
    set_count(row, "bytes", stream->bytes);
    set_count(row, "max_bytes", (uint64_t)stream->max_bytes);
    set_count(row, "first_sequence", stream->first);
    set_count(row, "last_sequence", stream->last);
    set_count(row, "replicas", (uint64_t)stream->replicas);
    set_time(row, "first_at", stream->first_at_us);
    set_time(row, "last_at", stream->last_at_us);
    set_real(row, "per_s", stream->per_s);
    return row;
}

json_t *ops_streams_json(const OpsPicture *picture)
{
    json_t *list = json_array();
    for (size_t i = 0; i < picture->stream_count; i++) {
        (void)json_array_append_new(list, stream_json(&picture->streams[i]));
    }
    return list_of(picture, list);
}

static json_t *consumer_json(const OpsConsumer *consumer, int64_t at_us)
{
    json_t *row =
        json_pack("{s:s, s:s}", "stream", consumer->spec->stream, "name", consumer->spec->name);
    (void)json_object_set_new(row, "there", json_boolean(consumer->there));
    if (!consumer->there) {
        return row;
    }
    set_count(row, "lag", ops_lag(consumer));
    set_count(row, "in_hand", consumer->in_hand);
    set_count(row, "redelivered", consumer->redelivered);
    set_age(row, consumer->oldest_at_us, at_us);
    set_real(row, "per_s", consumer->per_s);
    return row;
}

json_t *ops_consumers_json(const OpsPicture *picture)
{
    json_t *list = json_array();
    for (size_t i = 0; i < picture->consumer_count; i++) {
        (void)json_array_append_new(list, consumer_json(&picture->consumers[i], picture->at_us));
    }
    return list_of(picture, list);
}

// ---- the pipeline ----

// Several consumers, or streams, as one.
typedef struct Sum {
    bool any;
    uint64_t lag;
    int64_t oldest_us;          // 0: nothing waits
    double in_per_s, out_per_s; // below 0: not known
} Sum;

static void add_rate(double *sum, double rate)
{
    if (rate >= 0) {
        *sum = (*sum < 0 ? 0 : *sum) + rate;
    }
}

// "REQUEST" has REQUEST_NORMAL and its like, "DEFERRED" itself alone.
static bool belongs(const char *stream, const char *stage)
{
    size_t len = strlen(stage);
    return strncmp(stream, stage, len) == 0 && (stream[len] == '\0' || stream[len] == '_');
}

static double stored_per_s(const OpsPicture *picture, const char *stage)
{
    double sum = -1;
    for (size_t i = 0; i < picture->stream_count; i++) {
        if (belongs(picture->streams[i].spec->name, stage)) {
            add_rate(&sum, picture->streams[i].per_s);
        }
    }
    return sum;
}

static void add_consumer(Sum *sum, const OpsConsumer *consumer)
{
    if (!consumer->there) {
        return;
    }
    sum->any = true;
    sum->lag += ops_lag(consumer);
    add_rate(&sum->out_per_s, consumer->per_s);
    if (consumer->oldest_at_us > 0 &&
        (sum->oldest_us == 0 || consumer->oldest_at_us < sum->oldest_us)) {
        sum->oldest_us = consumer->oldest_at_us;
    }
}

static Sum sum_stage(const OpsPicture *picture, const char *service, const char *stage)
{
    Sum sum = {.in_per_s = stored_per_s(picture, stage), .out_per_s = -1};
    for (size_t i = 0; i < picture->consumer_count; i++) {
        const OpsConsumer *consumer = &picture->consumers[i];
        if (belongs(consumer->spec->stream, stage) && strcmp(consumer->spec->name, service) == 0) {
            add_consumer(&sum, consumer);
        }
    }
    return sum;
}

static json_t *replicas_json(const OpsService *service)
{
    return json_pack(
        "{s:I, s:I, s:I}", "ready", (json_int_t)service->count[OPS_READY], "not_ready",
        (json_int_t)service->count[OPS_NOT_READY], "down", (json_int_t)service->count[OPS_DOWN]);
}

// A stage without workers is a projection, whose process says how far it is behind, or accepts what
// it has stored at once.
static json_t *stage_json(
    size_t i, const OpsPicture *picture, const OpsProcesses *processes, int64_t now_us)
{
    OpsService service = ops_processes_sum(processes, STAGES[i].service, now_us);
    json_t *row = json_pack("{s:s, s:s}", "stage", STAGES[i].name, "service", STAGES[i].service);
    if (STAGES[i].consumes != NULL) {
        Sum sum = sum_stage(picture, STAGES[i].service, STAGES[i].consumes);
        set_real(row, "in_per_s", sum.in_per_s);
        set_real(row, "out_per_s", sum.out_per_s);
        if (sum.any) {
            set_count(row, "lag", sum.lag);
            set_age(row, sum.oldest_us, picture->at_us);
        }
    } else {
        bool projects = service.lag >= 0 && strcmp(STAGES[i].name, "accept") != 0;
        double stored = stored_per_s(picture, STAGES[i].stores);
        set_real(row, projects ? "in_per_s" : "out_per_s", stored);
        if (projects) {
            set_count(row, "lag", (uint64_t)service.lag);
        }
    }
    set_real(row, "p99_ms", service.p99_ms);
    (void)json_object_set_new(row, "replicas", replicas_json(&service));
    return row;
}

// What waits of a lane, wherever it is.
static json_t *lane_json(const OpsPicture *picture, Priority lane)
{
    static const char *const stages[] = {"REQUEST", "RENDERED"};
    Sum sum = {.in_per_s = -1, .out_per_s = -1};
    for (size_t i = 0; i < picture->consumer_count; i++) {
        for (size_t s = 0; s < sizeof stages / sizeof *stages; s++) {
            const char *stream = topology_lane_stream(stages[s], lane);
            if (strcmp(picture->consumers[i].spec->stream, stream) == 0) {
                add_consumer(&sum, &picture->consumers[i]);
            }
        }
    }
    json_t *row = json_pack("{s:s}", "lane", priority_name(lane));
    if (sum.any) {
        set_count(row, "lag", sum.lag);
        set_age(row, sum.oldest_us, picture->at_us);
    }
    return row;
}

json_t *ops_pipeline_json(const OpsPicture *picture, const OpsProcesses *processes, int64_t now_us)
{
    json_t *answer = json_object(), *stages = json_array(), *lanes = json_array();
    for (size_t i = 0; i < sizeof STAGES / sizeof *STAGES; i++) {
        (void)json_array_append_new(stages, stage_json(i, picture, processes, now_us));
    }
    for (Priority lane = PRIORITY_CRITICAL; lane < PRIORITY_COUNT; lane++) {
        (void)json_array_append_new(lanes, lane_json(picture, lane));
    }
    set_time(answer, "at", picture->at_us);
    (void)json_object_set_new(answer, "stages", stages);
    (void)json_object_set_new(answer, "lanes", lanes);
    return answer;
}
