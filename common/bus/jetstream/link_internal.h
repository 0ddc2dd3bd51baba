// SPDX-License-Identifier: Apache-2.0
// What link.c (states, ports, sending), link_wire.c (nats.c on the loop) and link_work.c (what
// blocks, on a thread of libuv's pool) share.
#pragma once

#include <signal.h>
#include <stdatomic.h>

#include "common/bus/jetstream/link.h"

enum {
    LINK_FLUSH_TIMEOUT_MS = 2000,
    LINK_INBOX_SIZE = 128,
    LINK_DISCARDED_MAX = 256,
    LINK_DISCARDED_BYTES = 1024 * 1024,
    LINK_DISCARDED_MS = 1000,
};

// One connection on the loop. nats.c calls its socket functions with it, at any time until
// wire_drop; `unwritten` alone is touched by other threads (nats.c's timer sends PINGs, the worker
// thread flushes).
typedef struct Wire {
    Link *link;
    natsConnection *nc;
    natsSock socket;
    uv_poll_t poll;
    bool polled;           // the handle is the loop's
    bool polled_for_room;  // the socket took less than all
    bool rests;            // it is not read before link->rest fires
    bool closed;           // by nats.c, and so is the socket
    atomic_bool unwritten; // nats.c has something for the socket
    bool tls, tls_known;
    int readable_at;      // SO_RCVLOWAT
    int64_t heard_ms;     // something arrived
    int64_t taken_ms;     // the socket took something, or began to be polled for room
    int64_t suspected_ms; // since when it looks dead; 0: it does not
    int parts;            // the handle and the connection: both gone, it is freed
} Wire;

typedef struct Port {
    char name[LINK_PORT_SIZE];
    natsSubscription *subscription; // NULL: not connected
} Port;

struct Link {
    uv_loop_t *loop;
    uv_thread_t thread;  // the loop's
    LinkOptions options; // own copies
    char domain[LINK_DOMAIN_MAX + 1];
    LinkHandlers handlers;
    void *ctx;
    uv_async_t async;     // what another thread wrote, or link_ask_now received
    uv_prepare_t prepare; // writes
    uv_timer_t retry;
    uv_timer_t rest;
    int rest_ms; // 0: what arrives is read at once
    uv_work_t work;
    bool working;     // the worker thread connects or waits
    Wire *wire;       // NULL: none, or it is being made
    Wire *connecting; // the worker thread's
    unsigned breaks;
    Port ports[LINK_PORTS_MAX];
    size_t port_count;
    struct {
        const char *subject, *queue; // NULL: none
        natsSubscription *subscription;
        bool ending;   // the end is still to be reported
        bool draining; // the server sends what it has
    } served;
    struct {
        const char *subject; // NULL: free
        natsSubscription *subscription;
    } listens[LINK_LISTENS_MAX];
    size_t heard; // in this turn
    struct {
        natsMsg *messages[LINK_DISCARDED_MAX];
        size_t count, bytes;
        int64_t since_ms; // of the first one
    } discarded;
    natsSubscription *answers; // of link_ask_now
    unsigned asked_now;
    char *cluster; // servers that the last connection knew, separated by commas; NULL: none
    natsStatus work_status;
    char work_error[300];   // "": the last attempt succeeded, or there was none
    char logged_error[300]; // as logged
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
    char inbox[LINK_INBOX_SIZE];
    char permission[200];
    const char *spared[LINK_SPARED_MAX]; // whose refusal is no permission error
    size_t spared_count;
};

// ---- link_wire.c ----

Wire *wire_new(Link *link);
natsStatus wire_set_event_loop(Wire *wire, natsOptions *options);
bool wire_begin(Wire *wire); // on the loop, once it is connected
void wire_wake(Wire *wire);  // it rests no more
void wire_write(Wire *wire); // what is unwritten, as far as the socket takes it
bool wire_takes(Wire *wire); // there is room for one more publish
// For at most `timeout_ms`, until something was read or written.
void wire_wait(Wire *wire, int timeout_ms);
bool wire_is_dead(Wire *wire); // for too long it neither answered nor took anything
size_t wire_unwritten(const Wire *wire);
void wire_drop(Wire *wire); // never blocks; what is unwritten is lost. NULL is none

// ---- link.c ----

// Something was read, or the connection ended: hands on what is there.
void link_on_read(Link *link);
size_t link_hand_on(Link *link); // how many bytes came
void link_on_handle_closed(Link *link);

// ---- link_work.c ----

// On a thread of libuv's pool, while link->working; the Link is work->data.
void link_work_connect(uv_work_t *work); // link->connecting, work_status, work_error
// Afterwards the server knows that our pull requests have no listener, and all that it sent before
// has been read.
void link_work_quiesce(uv_work_t *work);
void link_work_close(uv_work_t *work); // asks and gives back

// nats.c takes EINTR for a broken connection: its threads must be born with every signal blocked.
void link_block_signals(sigset_t *ret_before);
