// SPDX-License-Identifier: Apache-2.0
// GET /v1/inbox/stream: the counts of one recipient's inbox as they change, for as long as its
// token is good. Each event says absolute counts and their version, so one that is lost is made up
// for by the next, and a client that comes back (Last-Event-ID is a version) learns whether it
// missed a change. FEED says whose inbox changed, the tables say what is in it.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "common/feed/inbox_token.h"
#include "common/http/stream.h"
#include "common/recipients/people_wait.h"
#include "common/request/catalog.h"
#include "common/service/metrics.h"

enum { INBOX_STREAMS_MAX = 20 }; // of one inbox

typedef struct InboxStreams InboxStreams;

typedef struct InboxStreamsOptions {
    Bus *bus;
    DbPool *pool;
    PeopleWait *wait; // for the projection of FEED
    const Catalog *catalog;
    Metrics *metrics;
    uv_loop_t *loop;
} InboxStreamsOptions;

InboxStreams *inbox_streams_new(const InboxStreamsOptions *options); // borrows all
// Answers the request, whose token was checked.
void inbox_streams_open(InboxStreams *streams, HttpRequest *request, const InboxToken *token);
void inbox_streams_stop(InboxStreams *streams, void (*on_stopped)(void *ctx), void *ctx);
void inbox_streams_free(InboxStreams *streams); // when server, pool and bus are gone
