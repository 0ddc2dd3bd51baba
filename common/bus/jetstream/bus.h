// SPDX-License-Identifier: Apache-2.0
// The connection to NATS and everything published through it, on the loop's thread. Our own thin
// JetStream layer: why, DECISIONS.md.
#pragma once

#include <uv.h>

#include "common/base/arena.h"
#include "common/base/error.h"

typedef struct Bus Bus;

typedef struct BusOptions {
    const char *url;  // "nats://127.0.0.1:4222", several separated by commas
    const char *user; // NULL or "": none
    const char *password;
    const char
        *name; // "stentor-ingest/<instance>"; also the private inbox prefix: _INBOX.<service>.>
    const char *service; // "stentor-ingest"
    size_t window;       // publishes waiting for their ack; 0: 4096. Beyond it they queue here
    bool held; // connects at bus_release only: until then everything waits as for an absent server
    int publish_deadline_ms; // a publish not acknowledged by then fails TRANSIENT; 0: 10,000
} BusOptions;

// Connects in the background and for ever again; never fails for an absent server. The options'
// strings are copied. NULL and ERROR_CONFIG for an option that cannot be used.
Bus *bus_open(uv_loop_t *loop, const BusOptions *options, Error *err);
void bus_release(Bus *bus); // twice is once
// For a program in an application's account, which reaches JetStream under this domain
// (accounts.h) and names its readers' consumers after its user. Before readers are made.
void bus_use_domain(Bus *bus, const char *domain);
bool bus_connected(const Bus *bus);
// Why the last attempt to connect failed, with the remedy; NULL: it did not, or none was made.
const char *bus_trouble(const Bus *bus);
// The server's clock when it made a consumer for a reader here, as the server says; the
// span in which that was, in uv_hrtime(). false: none was made yet.
typedef struct BusClock {
    int64_t server_us;
    int64_t asked_ns, heard_ns;
} BusClock;
bool bus_server_clock(const Bus *bus, BusClock *ret);
// While nothing is awaited here and no reader is behind, what arrives may wait for so long, to be
// read together. For a process whose readers fold for later, and whose workers bear to begin late.
// 0: at once.
void bus_rest(Bus *bus, int rest_ms);
// The messages of this turn were gathered for that time, and the next come after as long.
bool bus_rests(const Bus *bus);
// Fails what is pending with ERROR_CANCELLED, flushes, closes; then on_closed. Stop workers and
// readers before.
void bus_close(Bus *bus, void (*on_closed)(void *ctx), void *ctx);
uv_loop_t *bus_loop(Bus *bus);
// Called on every change of connection; at most 8 watchers.
void bus_watch(Bus *bus, void (*on_change)(void *ctx, bool connected), void *ctx);
// The first permission error the server reported, or NULL: readiness fails with it.
const char *bus_permission_error(const Bus *bus);
// Not of a publish to a subject that begins so, a static string; at most two. Who asks there does
// without.
void bus_spare(Bus *bus, const char *subject);
// From now on it is asked every two seconds whether the streams and consumers of the service's row
// of the topology are there.
void bus_watch_streams(Bus *bus);
// What is not there, with the remedy, or which publishes no stream takes; NULL: nothing is missing.
// Valid until the next turn of the loop.
const char *bus_missing(const Bus *bus);

// ---- publishing ----

// Publishes that may wait for their ack at once; beyond it they fail TRANSIENT, and a caller that
// publishes twice as many more without returning to the loop ends the process.
enum { BUS_PENDING_MAX = 65536 };

typedef struct BusHeader {
    const char *name;
    Str value;
} BusHeader;

typedef struct BusOut {
    const char *subject;
    Str event_id; // Nats-Msg-Id: 22 characters
    Str payload;
    Str traceparent;          // empty: none
    const BusHeader *headers; // further ones (CloudEvents on STATUS); NULL: none
    size_t header_count;
    bool once;  // what the stream refuses is not tried again here: it fails TRANSIENT at once
    bool slack; // whatever else is published here goes first, and finds few of these in flight
} BusOut;

// A header: stored only in the place of just that message of its subject (0: there is none yet);
// otherwise the ack is CONFLICT. Its value lives in `arena`.
BusHeader bus_replaces(uint64_t sequence, Arena *arena);
// A header: stored only as the next message of its stream behind that one (0: as the first);
// otherwise the ack is CONFLICT.
BusHeader bus_follows(uint64_t sequence, Arena *arena);

// err NULL: stored (acknowledged with a sequence above 0), perhaps earlier (duplicate). err
// CONFLICT: another message than that of bus_replaces stands there, `sequence`.
typedef void (*BusAcked)(void *ctx, const Error *err, uint64_t sequence, bool duplicate);

// Publishes and awaits JetStream's ack. The message is copied before the call returns; on_acked
// comes from the loop, exactly once. No responders, a full stream, a lost connection are tried
// again with the same id until the deadline.
void bus_publish(Bus *bus, const BusOut *out, BusAcked on_acked, void *ctx);
size_t bus_pending(
    const Bus *bus); // published or queued, and not yet acknowledged: for back-pressure
// Core publish without an ack (acks of deliveries, pull requests). false: there is no connection.
bool bus_send(Bus *bus, const char *subject, const char *reply, Str payload);
// Since bus_open, over all workers and publishes: how often things happened more than once.
typedef struct BusStats {
    uint64_t published;    // acknowledged by JetStream
    uint64_t duplicates;   // of these: it had them already
    uint64_t delivered;    // handed to workers, repeats included
    uint64_t redelivered;  // of these: not for the first time
    uint64_t acked;        // inputs that are done, those with a dead letter included
    uint64_t withheld;     // inputs that are done, but their connection is gone: they come again
    uint64_t given_back;   // to be redelivered
    uint64_t dead_letters; // of workers
    uint64_t unreadable;   // subjects of CONFIG whose last message is no entry, now
    uint64_t poisoned;     // of these: unread, because every process that handled them died or hung
} BusStats;
BusStats bus_stats(const Bus *bus);
// The same with the id and the headers of an event, for subjects that no stream takes. false also
// for what cannot be sent at all (bus_publish: PERMANENT).
bool bus_send_event(Bus *bus, const BusOut *out);

// One request, one reply, for JetStream's API. reply is valid during the call; err TRANSIENT on
// time-out.
typedef void (*BusReply)(void *ctx, Str reply, const Error *err);
void bus_request(
    Bus *bus, const char *subject, Str payload, int timeout_ms, BusReply on_reply, void *ctx);

// ---- what arrives ----

// A message of a stream, as workers and readers hand it on. Slices live in the batch's arena.
typedef struct BusMessage {
    Str subject;
    Str payload;
    Str event_id;       // Nats-Msg-Id
    Str traceparent;    // empty: none, or what came is no W3C traceparent
    const char *stream; // static, from the topology
    uint64_t sequence;
    int64_t stored_at_us;
    uint32_t delivered; // 1 for the first time
    bool replayed;      // a copy of an earlier message, made by `stentor replay`
    // For bus_message_header: the client's own message, or the headers of what get_message brought
    // and of what was opened.
    const void *native;
    Str headers;
    // A sealed event that was opened (common/domain/event_seal.h): payload, event_id and headers
    // are what was sealed.
    bool is_opened;
    uint64_t original; // the sequence of the event that it is a copy of; 0: it is none
    Str kept;          // what a dead letter keeps in the place of the payload; empty: the payload
} BusMessage;

// Of a copy where its original stood.
static inline uint64_t bus_message_place(const BusMessage *message)
{
    return message->original != 0 ? message->original : message->sequence;
}

// A header by its name (case counts); empty when it is not there. Valid as long as the message: of
// a delivery until it is settled, of a reader during the call.
Str bus_message_header(const BusMessage *message, const char *name);

// All headers of a message that a worker or reader hands on, the first value of each name; names
// and values live as long as the message. false: more than `max`, or it did not come that way.
bool bus_message_headers(
    const BusMessage *message, Arena *arena, size_t max, BusHeader **ret, size_t *ret_count);

// The header that marks such a copy; its value is the run's id.
#define BUS_REPLAY_HEADER "Stentor-Replay"
