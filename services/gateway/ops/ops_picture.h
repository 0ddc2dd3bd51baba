// SPDX-License-Identifier: Apache-2.0
// What JetStream says of the topology at one moment, and at the moments before: streams, durable
// consumers, how much waits for them and since when, and how fast both move. Pure.
#pragma once

#include <jansson.h>

#include "common/bus/topology/topology.h"

enum { OPS_STREAMS_MAX = 64, OPS_CONSUMERS_MAX = 64, OPS_SAMPLES = 6 };

typedef struct OpsStream {
    const StreamSpec *spec;
    bool there; // false: the server has not said anything of it
    uint64_t messages, bytes, first, last;
    int64_t first_at_us, last_at_us; // 0: none
    int64_t max_bytes;
    int replicas;
    double per_s; // stored; below 0: not known yet
} OpsStream;

typedef struct OpsConsumer {
    const ConsumerSpec *spec;
    bool there;
    uint64_t waiting; // events not delivered yet
    uint64_t in_hand; // delivered, and not done
    uint64_t redelivered;
    uint64_t floor;       // everything up to here is done
    int64_t oldest_at_us; // when the oldest that is not done was stored; 0: all is done
    double per_s;         // done; below 0: not known yet
} OpsConsumer;

typedef struct OpsPicture {
    int64_t at_us;
    OpsStream streams[OPS_STREAMS_MAX];
    size_t stream_count;
    OpsConsumer consumers[OPS_CONSUMERS_MAX];
    size_t consumer_count;
} OpsPicture;

void ops_picture_init(OpsPicture *picture); // the topology's rows, with nothing known
// STREAM.INFO's and CONSUMER.INFO's answers. false: an error, or none.
bool ops_stream_read(OpsStream *stream, const json_t *info);
bool ops_consumer_read(OpsConsumer *consumer, const json_t *info);
uint64_t ops_lag(const OpsConsumer *consumer); // events that are not done

// The last moments, for rates over a few seconds.
typedef struct OpsSample {
    int64_t at_us;
    uint64_t last[OPS_STREAMS_MAX], floor[OPS_CONSUMERS_MAX];
} OpsSample;

typedef struct OpsHistory {
    OpsSample at[OPS_SAMPLES];
    size_t count, next;
} OpsHistory;

// Adds the picture and writes its rates.
void ops_history_add(OpsHistory *history, OpsPicture *picture);
