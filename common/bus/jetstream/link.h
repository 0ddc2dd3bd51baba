// SPDX-License-Identifier: Apache-2.0
// Link: the only place that knows nats.c (link.c, link_wire.c, link_work.c). One connection, which
// lives on the loop: nats.c has no thread that reads, writes or delivers. What is sent is gathered
// and written once per turn, just before the loop would sleep; what arrives is handed on while it
// polls. It is not a JetStream layer; it knows no acks and no retries. Law: everything is called on
// the loop thread, handlers are called from the loop. A send never blocks: beyond
// LINK_UNWRITTEN_MAX it is refused (over TLS a write can block for 2 s when the server does not
// read).
#pragma once

#include <nats/nats.h>
#include <uv.h>

#include "common/base/error.h"
#include "common/base/str.h"

typedef struct Link Link;

typedef struct LinkOptions {
    const char *url; // several separated by commas
    const char *user;
    const char *password;
    const char *name;
    const char *inbox_prefix; // "_INBOX.stentor-ingest"
    bool held;                // connects at link_release only
} LinkOptions;

typedef struct LinkHandlers {
    // What came to a port. The message is now the callee's, as everywhere here: link_discard.
    void (*on_message)(void *ctx, natsMsg *message, unsigned breaks);
    // One of the requests whose reply subject is of this port has no responder; which, nats.c does
    // not say (link_port). NULL: not of interest.
    void (*on_unanswered)(void *ctx, const char *port);
    void (*on_state)(void *ctx, bool connected);
    // A message of the served subject, the callee's; NULL: none comes any more.
    void (*on_served)(void *ctx, natsMsg *message);
    // A message of a subject that is listened to, the callee's.
    void (*on_heard)(void *ctx, natsMsg *message);
} LinkHandlers;

enum {
    LINK_PORTS_MAX = 128,
    LINK_PORT_SIZE = 32,
    LINK_LISTENS_MAX = 4,
    LINK_HEARD_MAX = 4096, // of one turn of the loop
    // Sent and not yet taken by the socket. What waits for its ack is bounded by publish.c at half
    // of it.
    LINK_UNWRITTEN_MAX = 16 * 1024 * 1024,
};

// Connects in the background and for ever again, also to servers of the cluster that the last one
// named. The inbox is <prefix>.<random>.
Link *link_open(
    uv_loop_t *loop, const LinkOptions *options, const LinkHandlers *handlers, void *ctx);
void link_release(Link *link); // twice is once
// JetStream is another account's, whose API is called "$JS.<domain>.API" here. "": it is ours.
enum { LINK_DOMAIN_MAX = 32 };
void link_use_domain(Link *link, const char *domain);
// A port is a subscription of its own to "<inbox>.<name>.*", from now on. nats.c's synchronous
// subscriptions say that something has no responder, but not what: so whoever must know takes a
// port for each subject, or for each that waits.
void link_port(Link *link, const char *name);
// What others publish on `subject` comes to on_served, each message to one subscriber of `queue`;
// one subject for a link. Static strings. As long as it is connected, and after it is again.
void link_serve(Link *link, const char *subject, const char *queue);
// What the server has sent already still comes, then NULL.
void link_serve_end(Link *link);
// What is published on `subject`, a static string, comes to on_heard, as long as it is connected
// and after it is again; at most LINK_LISTENS_MAX at once. More than LINK_HEARD_MAX in a turn is
// dropped.
void link_listen(Link *link, const char *subject);
void link_unlisten(Link *link, const char *subject);
const char *link_inbox(const Link *link);
bool link_connected(const Link *link);
const char *link_trouble(const Link *link); // of the last attempt to connect; NULL: none
// Changes whenever a connection is lost: what arrived under another number arrived over a
// connection that is gone.
unsigned link_breaks(const Link *link);
// false: not connected, the connection broke meanwhile, or too much is unwritten.
bool link_publish(Link *link, natsMsg *message);
bool link_send(Link *link, const char *subject, const char *reply, Str payload);
// One request and its answer, for which the loop waits: only where it would sleep anyway. true: it
// came; *ret_reply is the caller's. What else arrives meanwhile is handed on later.
bool link_ask_now(
    Link *link, const char *subject, Str payload, int timeout_ms, natsMsg **ret_reply);
// The end of a message, that came or was made here. nats.c wakes a thread of its own to free it: so
// once for up to 256 of them, or in a second. NULL is none.
void link_discard(Link *link, natsMsg *message);
// From now on what arrives may wait for so long, to be read together: after a read that left
// nothing the socket rests. 0: it is read at once again.
void link_rest(Link *link, int rest_ms);
bool link_rests(const Link *link); // it does now
// Writes what was sent. The link does it before the loop sleeps; who sends at that moment too does
// not know who comes first.
void link_write(Link *link);
const char *link_permission_error(const Link *link); // the first one; NULL: none
// A refused publish to a subject that begins so is none: whoever asks does without. A static
// string; at most LINK_SPARED_MAX.
enum { LINK_SPARED_MAX = 2 };
void link_spare(Link *link, const char *subject);
// Every 100 to 500 ms: a server that neither answers nor takes anything is left.
void link_tick(Link *link);
// Gives a delivery back (-NAK) when the link closes, after its inbox has no subscription any more.
// Earlier the server would give it to a pull request of ours that is still open, and it would be
// lost to every process until its ack_wait is over. Copied; at most LINK_RETURNS_MAX, more come
// again after ack_wait.
enum { LINK_RETURNS_MAX = 128 * 1024 };
void link_give_back(Link *link, const char *ack_subject);
// A request whose answer is awaited at the end, before anything is given back; at most
// LINK_ASKS_MAX. Consumer info makes the server forget our pull requests: nats-server 2.9.10 loses
// the first redelivery that meets one without a listener (until ack_wait).
enum { LINK_ASKS_MAX = 64 };
void link_ask_at_close(Link *link, const char *subject);
// Flushes, waits for quiet where something is asked at the close, unsubscribes (what came until
// then is handed on still), gives back, closes; a worker thread waits for the answers, at most 2 s
// each, while the loop reads and writes. on_closed, then the link is gone.
void link_close(Link *link, void (*on_closed)(void *ctx), void *ctx);
