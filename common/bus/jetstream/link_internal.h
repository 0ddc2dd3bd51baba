// SPDX-License-Identifier: Apache-2.0
// What link.c (the loop's side) and link_wire.c (nats.c's threads and the worker thread) share.
#pragma once

#include <signal.h>

#include "common/bus/jetstream/hop.h"
#include "common/bus/jetstream/link.h"

enum { LINK_FLUSH_TIMEOUT_MS = 2000 };

struct Link {
    uv_loop_t *loop;
    LinkOptions options; // own copies
    char domain[LINK_DOMAIN_MAX + 1];
    LinkHandlers handlers;
    void *ctx;
    uv_async_t async;
    uv_timer_t retry;
    uv_work_t work;
    bool working; // the connections belong to the worker thread
    Hop *hop;
    natsConnection *nc[LINK_LANES];
    natsSubscription *subscription;
    struct {
        const char *subject, *queue; // NULL: none
        natsSubscription *subscription;
        bool ending;
    } served;
    struct {
        const char *subject; // NULL: free
        natsSubscription *subscription;
    } listens[LINK_LISTENS_MAX];
    natsStatus work_status;
    char work_error[300];   // "": the last attempt succeeded, or there was none
    char logged_error[300]; // as logged
    unsigned generation;
    int retry_ms;
    bool connected; // as last reported
    bool closing;
    char **returns; // ack subjects of what is given back at the end
    size_t return_count, return_cap;
    char *asks[LINK_ASKS_MAX];
    size_t ask_count;
    bool returning; // the worker thread reads them: nothing is added any more
    int open_handles;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
    char inbox[128];
    char permission[200];
};

// ---- link_wire.c ----

// On a thread of libuv's pool, while link->working; the Link is work->data.
void link_work_connect(uv_work_t *work); // link->work_status, link->work_error
// Afterwards the server knows that our pull requests have no listener, and all that it sent before
// is in the hop.
void link_work_quiesce(uv_work_t *work);
void link_work_close(uv_work_t *work); // asks and gives back, then the connections are gone

// nats.c's reader takes EINTR for a broken connection: its threads must be born with every signal
// blocked.
void link_block_signals(sigset_t *ret_before);
// On the loop's thread. A connection that is lost meanwhile subscribes again by itself, and a new
// one when it is there.
void link_subscribe_served(Link *link);
void link_subscribe_listens(Link *link);
