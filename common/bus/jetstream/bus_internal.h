// SPDX-License-Identifier: Apache-2.0
// What the files of common/bus share and no other folder sees: the Bus, its endpoints (a worker or
// reader as the receiver of one consumer's deliveries) and the turn. Law: received messages are
// queued while the loop polls; endpoints hand them on, and publishes are written, once per loop
// turn, just before the loop would sleep (turn, bus.c).
#pragma once

#include "common/base/buf.h"
#include "common/bus/jetstream/ack_subject.h"
#include "common/bus/jetstream/bus.h"
#include "common/bus/jetstream/link.h"
#include "common/bus/jetstream/listen.h"
#include "common/bus/topology/topology.h"

enum {
    BUS_ENDPOINTS_MAX = 64,
    BUS_WATCHERS_MAX = 8,
    SERVICE_NAME_MAX = 64,
    BUS_TICK_MS = 100,
    BUS_REST_TICKS = 5, // so many times the tick, while nothing is under way
    PULL_EXPIRES_S = 30,
    PULL_HEARTBEAT_S = 5,
    PULL_BRIEF_S = 6, // of a worker that yields, and its heartbeat:
    PULL_BRIEF_HEARTBEAT_S = 2,
    PULL_SILENCE_MS =
        2 * PULL_HEARTBEAT_S * 1000 + 1000, // two heartbeats missed: the request is gone
    PULL_BACKOFF_MS = 1000,                 // before asking again where there was no responder
    API_TIMEOUT_MS = 5000,
};

// ---- endpoints ----

typedef struct EndpointHandlers {
    void (*on_delivery)(
        void *ctx, natsMsg *message, const AckSubject *ack); // the message is the callee's
    // A status for a pull request: 100 heartbeat, 404, 408, 409, 503 ... unfilled: what the request
    // still had open, or -1.
    void (*on_status)(void *ctx, int code, const char *text, int64_t unfilled);
    bool (*on_turn)(void *ctx); // hand on what is queued; true: there is more to do at once
    void (*on_tick)(void *ctx, int64_t now_ms);
    void (*on_link)(void *ctx, bool connected);
} EndpointHandlers;

typedef struct Endpoint {
    const EndpointHandlers *handlers;
    void *ctx;
    Str stream;
    char consumer[80]; // "" takes no deliveries
    char inbox[128];   // replies of its pull requests
    bool acks;         // its consumer awaits acks: what comes after its end is given back
    bool brief;        // its pull requests end after PULL_BRIEF_S
    bool holds;        // deliveries that are not answered yet; of a reader: more are known to come
    int slot;
} Endpoint;

void endpoint_add(Bus *bus, Endpoint *endpoint, const EndpointHandlers *handlers, void *ctx);
void endpoint_remove(Bus *bus, Endpoint *endpoint);
bool endpoint_pull(Bus *bus, const Endpoint *endpoint, size_t batch);
// Takes the message and gives the delivery back when the bus closes (why not now: link.h).
void bus_give_back(Bus *bus, natsMsg *message);
// From inside a callback: let the turn run (once more) before the loop sleeps.
void bus_want_turn(Bus *bus);
int64_t bus_now_ms(const Bus *bus);
// A name for a reader's consumer of the stream: the next one of the service's names, so that what
// is still on its way from one consumer does not meet a new one of the same name.
void bus_reader_name(Bus *bus, const char *stream, char out[READER_NAME_SIZE]);
// Fills everything but `stream` from a delivery; slices point into the natsMsg.
void bus_message_fill(BusMessage *out, natsMsg *message, const AckSubject *ack);

// ---- publish.c ----

typedef struct Publisher Publisher;
Publisher *publisher_new(uv_loop_t *loop, Link *link, size_t window, int deadline_ms);
void publisher_free(Publisher *publisher);
void publisher_publish(Publisher *publisher, const BusOut *out, BusAcked on_acked, void *ctx);
bool publisher_send_core(Publisher *publisher, const BusOut *out); // no ack, no entry
void publisher_on_ack(Publisher *publisher, Str token, natsMsg *message);
// One of those that were sent with a reply to this port has no stream.
void publisher_on_unanswered(Publisher *publisher, const char *port);
bool publisher_turn(
    Publisher *publisher); // true: failures reported in this turn may have caused more work
void publisher_tick(Publisher *publisher);
void publisher_on_link(Publisher *publisher, bool connected);
void publisher_cancel(Publisher *publisher); // all of them, ERROR_CANCELLED
size_t publisher_pending(const Publisher *publisher);
const char *publisher_missing(const Publisher *publisher); // NULL: every subject has a stream
void publisher_add_stats(const Publisher *publisher, BusStats *stats);

// ---- request.c ----

typedef struct Requests Requests;
Requests *requests_new(uv_loop_t *loop, Link *link);
void requests_free(Requests *requests);
void requests_ask(
    Requests *requests, const char *subject, Str payload, int timeout_ms, BusReply on_reply,
    void *ctx);
void requests_on_reply(Requests *requests, Str token, natsMsg *message);
void requests_on_unanswered(Requests *requests, size_t port);
void requests_tick(Requests *requests);
bool requests_pending(const Requests *requests);
void requests_cancel(Requests *requests);                  // all of them, ERROR_CANCELLED
void requests_forget(Requests *requests, const void *ctx); // no callback: its owner goes away
void bus_forget_requests(Bus *bus, const void *ctx);

struct Guard;    // guard.h
struct Serve;    // serve.h
struct Presence; // presence.h

struct Bus {
    uv_loop_t *loop;
    unsigned reader_number; // of the next one
    Link *link;
    char service[SERVICE_NAME_MAX + 1]; // names the consumers of its readers
    char user[SERVICE_NAME_MAX + 1];
    struct Guard *guard;       // NULL before the first worker
    struct Serve *serve;       // NULL: nothing is asked of us
    struct Presence *presence; // NULL unless wanted
    struct {
        const char *subject; // NULL: free
        BusHeard on_heard;
        void *ctx;
    } listens[LINK_LISTENS_MAX];
    Publisher *publisher;
    Requests *requests;
    uv_prepare_t prepare;
    uv_idle_t idle; // active while there is more to do at once: the loop does not sleep
    uv_timer_t tick;
    bool rests;  // ticks are BUS_REST_TICKS apart
    int still;   // ticks since something was under way
    int rest_ms; // what arrives may wait so long; 0: not at all
    Endpoint *endpoints[BUS_ENDPOINTS_MAX];
    unsigned endpoint_generation; // tells a slot's owners apart
    struct {
        void (*on_change)(void *ctx, bool connected);
        void *ctx;
    } watchers[BUS_WATCHERS_MAX];
    size_t watcher_count;
    struct {
        char stream[80], consumer[80];
    } leavers[BUS_ENDPOINTS_MAX]; // consumers that were worked on here and are not any more
    size_t leaver_count;
    BusClock clock;           // server_us 0: not known yet
    BusClock clock_candidate; // by one consumer alone
    BusStats stats;           // but for the publisher's part
    bool turn_wanted;
    bool closing;
    int open_handles;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

// Once its acks are stored, the consumer of an endpoint that is gone is asked for its info. (bus.c)
void bus_add_leaver(Bus *bus, const Endpoint *endpoint);
