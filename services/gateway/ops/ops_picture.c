// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/ops/ops_picture.h"

#include <assert.h>
#include <string.h>

#include "common/base/clock.h"

void ops_picture_init(OpsPicture *picture)
{
    size_t streams = 0, consumers = 0;
    const StreamSpec *stream = topology_streams(&streams);
    const ConsumerSpec *consumer = topology_consumers(&consumers);
    assert(streams <= OPS_STREAMS_MAX && consumers <= OPS_CONSUMERS_MAX);
    *picture = (OpsPicture){.stream_count = streams, .consumer_count = consumers};
    for (size_t i = 0; i < streams; i++) {
        picture->streams[i] = (OpsStream){.spec = &stream[i], .per_s = -1};
    }
    for (size_t i = 0; i < consumers; i++) {
        picture->consumers[i] = (OpsConsumer){.spec = &consumer[i], .per_s = -1};
    }
}

// ---- answers ----

static uint64_t number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

// An empty stream says the year 1.
static int64_t time_of(const json_t *object, const char *name)
{
    int64_t at_us = 0;
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL && clock_parse(str_from(text), &at_us) && at_us > 0 ? at_us : 0;
}

bool ops_stream_read(OpsStream *stream, const json_t *info)
{
    const json_t *state = json_object_get(info, "state");
    const json_t *config = json_object_get(info, "config");
    if (!json_is_object(state) || !json_is_object(config)) {
        return false;
    }
    stream->there = true;
    stream->messages = number(state, "messages");
    stream->bytes = number(state, "bytes");
    stream->first = number(state, "first_seq");
    stream->last = number(state, "last_seq");
    stream->first_at_us = stream->messages > 0 ? time_of(state, "first_ts") : 0;
    stream->last_at_us = stream->messages > 0 ? time_of(state, "last_ts") : 0;
    stream->max_bytes = (int64_t)number(config, "max_bytes");
    stream->replicas = (int)number(config, "num_replicas");
    return true;
}

bool ops_consumer_read(OpsConsumer *consumer, const json_t *info)
{
    const json_t *floor = json_object_get(info, "ack_floor");
    if (!json_is_object(floor)) {
        return false;
    }
    consumer->there = true;
    consumer->waiting = number(info, "num_pending");
    consumer->in_hand = number(info, "num_ack_pending");
    consumer->redelivered = number(info, "num_redelivered");
    consumer->floor = number(floor, "stream_seq");
    return true;
}

uint64_t ops_lag(const OpsConsumer *consumer)
{
    return consumer->waiting + consumer->in_hand;
}

// ---- rates ----

// A sequence that falls is another stream's.
static double per_second(uint64_t now, uint64_t before, double seconds)
{
    return seconds <= 0 || now < before ? -1 : (double)(now - before) / seconds;
}

static void set_rates(OpsPicture *picture, const OpsSample *before)
{
    double seconds = (double)(picture->at_us - before->at_us) / 1e6;
    for (size_t i = 0; i < picture->stream_count; i++) {
        OpsStream *stream = &picture->streams[i];
        stream->per_s = stream->there ? per_second(stream->last, before->last[i], seconds) : -1;
    }
    for (size_t i = 0; i < picture->consumer_count; i++) {
        OpsConsumer *consumer = &picture->consumers[i];
        consumer->per_s =
            consumer->there ? per_second(consumer->floor, before->floor[i], seconds) : -1;
    }
}

void ops_history_add(OpsHistory *history, OpsPicture *picture)
{
    if (history->count > 0) {
        size_t oldest = history->count < OPS_SAMPLES ? 0 : history->next;
        set_rates(picture, &history->at[oldest]);
    }
    OpsSample *sample = &history->at[history->next];
    sample->at_us = picture->at_us;
    for (size_t i = 0; i < picture->stream_count; i++) {
        sample->last[i] = picture->streams[i].last;
    }
    for (size_t i = 0; i < picture->consumer_count; i++) {
        sample->floor[i] = picture->consumers[i].floor;
    }
    history->next = (history->next + 1) % OPS_SAMPLES;
    history->count += history->count < OPS_SAMPLES ? 1 : 0;
}
