// SPDX-License-Identifier: Apache-2.0
// Link: the only place that knows nats.c (link.c, link_wire.c). Two connections to one server:
// `coalesced` gathers writes (cheap at high rates, a lone write waits about a millisecond for
// nats.c's flusher), `immediate` writes at once and is the one that listens. What arrives on
// nats.c's threads makes one hop into the loop. It is not a JetStream layer; it knows no acks and
// no retries. Law: everything is called on the loop thread, handlers are called from the loop. A
// send can block for the write deadline (2 s) when the server does not read; publish.c bounds what
// is in flight so that this stays exceptional.
#pragma once

#include <nats/nats.h>
#include <uv.h>

#include "common/base/error.h"
#include "common/base/str.h"

typedef struct Link Link;

typedef enum LinkLane { LINK_COALESCED, LINK_IMMEDIATE, LINK_LANES } LinkLane;

typedef struct LinkOptions {
    const char *url; // several separated by commas
    const char *user;
    const char *password;
    const char *name;
    const char *inbox_prefix; // "_INBOX.stentor-ingest"
    bool held;                // connects at link_release only
} LinkOptions;

typedef struct LinkHandlers {
    // The message is now the callee's: natsMsg_Destroy. breaks: link_breaks() when it arrived.
    void (*on_message)(void *ctx, natsMsg *message, unsigned breaks);
    void (*on_state)(void *ctx, bool connected); // connected: both connections are
    // A message of the served subject, the callee's; NULL: none comes any more.
    void (*on_served)(void *ctx, natsMsg *message);
    // A message of a subject that is listened to, the callee's.
    void (*on_heard)(void *ctx, natsMsg *message);
} LinkHandlers;

// Connects in the background and for ever again. The inbox is <prefix>.<random>; its subjects are
// "<inbox>.<token>".
Link *link_open(
    uv_loop_t *loop, const LinkOptions *options, const LinkHandlers *handlers, void *ctx);
void link_release(Link *link); // twice is once
// JetStream is another account's, whose API is called "$JS.<domain>.API" here. "": it is ours.
enum { LINK_DOMAIN_MAX = 32 };
void link_use_domain(Link *link, const char *domain);
// What others publish on `subject` comes to on_served, each message to one subscriber of `queue`;
// one subject for a link. Static strings. As long as it is connected, and after it is again.
void link_serve(Link *link, const char *subject, const char *queue);
// What the server has sent already still comes, then NULL.
void link_serve_end(Link *link);
// What is published on `subject`, a static string, comes to on_heard, as long as it is connected
// and after it is again; at most LINK_LISTENS_MAX at once. What comes faster than the loop takes it
// is dropped (hop.h).
enum { LINK_LISTENS_MAX = 4 };
void link_listen(Link *link, const char *subject);
void link_unlisten(Link *link, const char *subject);
const char *link_inbox(const Link *link);
bool link_connected(const Link *link);
const char *link_trouble(const Link *link); // of the last attempt to connect; NULL: none
// Changes whenever a connection was lost or made again, at once and not only when the loop learns
// of it.
unsigned link_breaks(const Link *link);
// false: not connected, or the connection broke meanwhile.
bool link_publish(Link *link, LinkLane lane, natsMsg *message);
bool link_send(Link *link, LinkLane lane, const char *subject, const char *reply, Str payload);
// One request and its answer, for which the loop waits: only where it would sleep anyway. true: it
// came; *ret_reply is the caller's (natsMsg_Destroy).
bool link_ask_now(
    Link *link, const char *subject, Str payload, int timeout_ms, natsMsg **ret_reply);
const char *link_permission_error(const Link *link); // the first one; NULL: none
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
// then is handed on still), gives back, closes; the blocking parts on a worker thread, at most 2 s
// each. on_closed, then the link is gone.
void link_close(Link *link, void (*on_closed)(void *ctx), void *ctx);
