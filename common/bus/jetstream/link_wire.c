// SPDX-License-Identifier: Apache-2.0
// The link's side that blocks: what nats.c calls on its threads, and what connects and closes on a
// thread of libuv's pool.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/bus/jetstream/link_internal.h"

enum {
    CONNECT_TIMEOUT_MS = 5000,
    WRITE_DEADLINE_MS = 2000,
    PING_INTERVAL_MS = 15000, // twice unanswered: the connection is dead
    RECONNECT_WAIT_MS = 100,
    RECONNECT_JITTER_MS = 200,
    IO_BUFFER = 64 * 1024,
    SERVERS_MAX = 16,
    QUIET_MS = 10, // without a delivery
    QUIET_MAX_MS = 1000,
};

// What nats.c's callbacks get: nothing of the link, which may be gone when the last of them comes.
typedef struct Wire {
    Hop *hop;
    unsigned generation;
} Wire;

// ---- nats.c's threads ----

static Wire *make_wire(Link *link)
{
    Wire *wire = xmalloc(sizeof *wire);
    *wire = (Wire){hop_ref(link->hop), link->generation};
    return wire;
}

static void free_wire(Wire *wire)
{
    hop_unref(wire->hop);
    free(wire);
}

static void push_event(const Wire *wire, HopKind kind)
{
    hop_push(wire->hop, (HopItem){.kind = kind, .generation = wire->generation});
}

static void on_nats_message(
    natsConnection *nc, natsSubscription *subscription, natsMsg *message, void *closure)
{
    (void)nc;
    (void)subscription;
    hop_push(((Wire *)closure)->hop, (HopItem){.message = message, .kind = HOP_MESSAGE});
}

static void on_nats_served(
    natsConnection *nc, natsSubscription *subscription, natsMsg *message, void *closure)
{
    (void)nc;
    (void)subscription;
    hop_push(((Wire *)closure)->hop, (HopItem){.message = message, .kind = HOP_SERVED});
}

static void on_nats_heard(
    natsConnection *nc, natsSubscription *subscription, natsMsg *message, void *closure)
{
    (void)nc;
    (void)subscription;
    hop_push(((Wire *)closure)->hop, (HopItem){.message = message, .kind = HOP_HEARD});
}

static void on_nats_served_complete(void *closure)
{
    push_event(closure, HOP_SERVED_END);
    free_wire(closure);
}

static void on_nats_complete(void *closure)
{
    free_wire(closure);
}

static void on_nats_disconnected(natsConnection *nc, void *closure)
{
    (void)nc;
    push_event(closure, HOP_DISCONNECTED);
}

static void on_nats_reconnected(natsConnection *nc, void *closure)
{
    (void)nc;
    push_event(closure, HOP_RECONNECTED);
}

static void on_nats_closed(natsConnection *nc, void *closure)
{
    (void)nc;
    push_event(closure, HOP_CLOSED);
    free_wire(closure); // nats.c's last callback of this connection
}

static void on_nats_error(
    natsConnection *nc, natsSubscription *subscription, natsStatus status, void *closure)
{
    (void)subscription;
    const char *text = NULL;
    Wire *wire = closure;
    if (status == NATS_NOT_PERMITTED) {
        natsConnection_GetLastError(nc, &text);
        hop_permission_error(wire->hop, text != NULL ? text : "not permitted");
        push_event(wire, HOP_ERROR);
    }
}

// ---- connecting and closing, on a thread of libuv's pool ----

static natsStatus set_servers(natsOptions *options, const char *urls)
{
    const char *servers[SERVERS_MAX];
    int count = 0;
    char *copy = xstrdup(urls);
    for (char *rest = copy; rest != NULL && count < SERVERS_MAX; count++) {
        servers[count] = rest;
        rest = strchr(rest, ',');
        if (rest != NULL) {
            *rest++ = '\0';
        }
    }
    natsStatus s = natsOptions_SetServers(options, servers, count);
    free(copy);
    return s;
}

static natsStatus set_options(natsOptions *options, Link *link, LinkLane lane, Wire *wire)
{
    natsStatus s[] = {
        set_servers(options, link->options.url),
        natsOptions_SetName(options, link->options.name),
        natsOptions_SetCustomInboxPrefix(options, link->options.inbox_prefix),
        link->options.user[0] == '\0'
            ? NATS_OK
            : natsOptions_SetUserInfo(options, link->options.user, link->options.password),
        natsOptions_SetTimeout(options, CONNECT_TIMEOUT_MS),
        natsOptions_SetPingInterval(options, PING_INTERVAL_MS),
        natsOptions_SetMaxPingsOut(options, 2),
        natsOptions_SetMaxReconnect(options, -1),
        natsOptions_SetReconnectWait(options, RECONNECT_WAIT_MS),
        natsOptions_SetReconnectJitter(options, RECONNECT_JITTER_MS, RECONNECT_JITTER_MS),
        natsOptions_SetReconnectBufSize(options, 1), // keep nothing for later: publish.c does
        natsOptions_SetWriteDeadline(options, WRITE_DEADLINE_MS),
        natsOptions_SetIOBufSize(options, IO_BUFFER),
        natsOptions_SetNoEcho(options, true),
        natsOptions_SetSendAsap(options, lane == LINK_IMMEDIATE),
        natsOptions_SetDisconnectedCB(options, on_nats_disconnected, wire),
        natsOptions_SetReconnectedCB(options, on_nats_reconnected, wire),
        natsOptions_SetClosedCB(options, on_nats_closed, wire),
        natsOptions_SetErrorHandler(options, on_nats_error, wire),
    };
    for (size_t i = 0; i < sizeof s / sizeof s[0]; i++) {
        if (s[i] != NATS_OK) {
            return s[i];
        }
    }
    return NATS_OK;
}

static natsStatus connect_lane(Link *link, LinkLane lane)
{
    natsOptions *options = NULL;
    Wire *wire = make_wire(link);
    natsStatus s = natsOptions_Create(&options);
    if (s == NATS_OK) {
        s = set_options(options, link, lane, wire);
    }
    if (s == NATS_OK) {
        s = natsConnection_Connect(&link->nc[lane], options);
    }
    if (s != NATS_OK) {
        link->nc[lane] = NULL;
        free_wire(wire); // never connected: no callback comes
    }
    natsOptions_Destroy(options);
    return s;
}

static natsStatus subscribe_inbox(Link *link)
{
    char subject[sizeof link->inbox + 2];
    snprintf(subject, sizeof subject, "%s.>", link->inbox);
    Wire *wire = make_wire(link);
    natsStatus s = natsConnection_Subscribe(
        &link->subscription, link->nc[LINK_IMMEDIATE], subject, on_nats_message, wire);
    if (s != NATS_OK) {
        link->subscription = NULL;
        free_wire(wire);
        return s;
    }
    s = natsSubscription_SetOnCompleteCB(link->subscription, on_nats_complete, wire);
    if (s == NATS_OK) { // nats.c would drop what passes its limits; pulls bound what comes
        s = natsSubscription_SetPendingLimits(link->subscription, -1, -1);
    }
    return s == NATS_OK
               ? natsConnection_FlushTimeout(link->nc[LINK_IMMEDIATE], LINK_FLUSH_TIMEOUT_MS)
               : s;
}

static void destroy_connections(Link *link)
{
    natsSubscription_Destroy(link->subscription);
    link->subscription = NULL;
    natsSubscription_Destroy(link->served.subscription);
    link->served.subscription = NULL;
    for (size_t i = 0; i < LINK_LISTENS_MAX; i++) {
        natsSubscription_Destroy(link->listens[i].subscription);
        link->listens[i].subscription = NULL;
    }
    for (int lane = 0; lane < LINK_LANES; lane++) {
        natsConnection_Destroy(link->nc[lane]);
        link->nc[lane] = NULL;
    }
}

void link_block_signals(sigset_t *ret_before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

// What the server or the library says, and what to do where an operator must.
static void describe_failure(Link *link, natsStatus s)
{
    const char *text = nats_GetLastError(NULL);
    bool has_text = text != NULL && text[0] != '\0';
    bool refused =
        s == NATS_CONNECTION_AUTH_FAILED || (has_text && strstr(text, "uthorization") != NULL);
    snprintf(
        link->work_error, sizeof link->work_error, "%.140s%s",
        has_text ? text : natsStatus_GetText(s),
        refused ? " (HINT: STENTOR_NATS_USER, STENTOR_NATS_PASSWORD; nats-server has them from "
                  "'stentor init files' or 'stentor nats-config': reload it after a change)"
                : "");
}

void link_work_connect(uv_work_t *work)
{
    Link *link = work->data;
    sigset_t before;
    link_block_signals(&before);
    destroy_connections(link);
    natsStatus s = connect_lane(link, LINK_IMMEDIATE);
    if (s == NATS_OK) {
        s = subscribe_inbox(link);
    }
    if (s == NATS_OK) {
        s = connect_lane(link, LINK_COALESCED);
    }
    if (s != NATS_OK) {
        describe_failure(link, s);
        destroy_connections(link);
    }
    link->work_status = s;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool lane_is_up(const Link *link, LinkLane lane)
{
    return link->nc[lane] != NULL &&
           natsConnection_Status(link->nc[lane]) == NATS_CONN_STATUS_CONNECTED;
}

// As long as the server works off a pull request of ours: with the subscription gone it would lose
// the redelivery that it is about to send (link_ask_at_close).
static void wait_for_quiet(Link *link)
{
    int64_t seen = -1, delivered = 0;
    for (int waited = 0; waited < QUIET_MAX_MS && seen != delivered; waited += QUIET_MS) {
        seen = delivered;
        natsConnection_FlushTimeout(link->nc[LINK_IMMEDIATE], LINK_FLUSH_TIMEOUT_MS);
        nats_Sleep(QUIET_MS);
        if (natsSubscription_GetDelivered(link->subscription, &delivered) != NATS_OK) {
            return;
        }
    }
}

void link_work_quiesce(uv_work_t *work)
{
    Link *link = work->data;
    sigset_t before;
    link_block_signals(&before);
    if (lane_is_up(link, LINK_COALESCED)) {
        natsConnection_FlushTimeout(link->nc[LINK_COALESCED], LINK_FLUSH_TIMEOUT_MS);
    }
    if (lane_is_up(link, LINK_IMMEDIATE) && link->ask_count > 0) {
        wait_for_quiet(link);
    }
    if (lane_is_up(link, LINK_IMMEDIATE) &&
        natsSubscription_DrainTimeout(link->subscription, LINK_FLUSH_TIMEOUT_MS) == NATS_OK) {
        natsSubscription_WaitForDrainCompletion(link->subscription, LINK_FLUSH_TIMEOUT_MS);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// Stops at the first that is not answered: the others would not be either.
static void ask_all(Link *link)
{
    natsStatus s = NATS_OK;
    for (size_t i = 0; i < link->ask_count && s == NATS_OK; i++) {
        natsMsg *reply = NULL;
        s = natsConnection_RequestString(
            &reply, link->nc[LINK_COALESCED], link->asks[i], "", LINK_FLUSH_TIMEOUT_MS);
        natsMsg_Destroy(reply);
    }
}

void link_work_close(uv_work_t *work)
{
    Link *link = work->data;
    sigset_t before;
    link_block_signals(&before);
    if (lane_is_up(link, LINK_COALESCED)) {
        ask_all(link);
        for (size_t i = 0; i < link->return_count; i++) {
            natsConnection_PublishString(link->nc[LINK_COALESCED], link->returns[i], "-NAK");
        }
        natsConnection_FlushTimeout(link->nc[LINK_COALESCED], LINK_FLUSH_TIMEOUT_MS);
    }
    destroy_connections(link);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void link_subscribe_served(Link *link)
{
    bool wanted = link->served.subject != NULL && !link->served.ending && !link->closing;
    if (!wanted || link->served.subscription != NULL || link->nc[LINK_IMMEDIATE] == NULL) {
        return;
    }
    sigset_t before;
    link_block_signals(&before); // a thread is born
    Wire *wire = make_wire(link);
    natsStatus s = natsConnection_QueueSubscribe(
        &link->served.subscription, link->nc[LINK_IMMEDIATE], link->served.subject,
        link->served.queue, on_nats_served, wire);
    if (s != NATS_OK) {
        link->served.subscription = NULL; // the connection is gone: the next one tries again
        free_wire(wire);
    } else {
        (void)natsSubscription_SetOnCompleteCB(
            link->served.subscription, on_nats_served_complete, wire);
        (void)natsSubscription_SetPendingLimits(link->served.subscription, -1, -1); // hop.h bounds
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void subscribe_listen(Link *link, size_t i)
{
    Wire *wire = make_wire(link);
    natsStatus s = natsConnection_Subscribe(
        &link->listens[i].subscription, link->nc[LINK_IMMEDIATE], link->listens[i].subject,
        on_nats_heard, wire);
    if (s != NATS_OK) {
        link->listens[i].subscription = NULL; // the connection is gone: the next one tries again
        free_wire(wire);
    } else {
        (void)natsSubscription_SetOnCompleteCB(
            link->listens[i].subscription, on_nats_complete, wire);
        (void)natsSubscription_SetPendingLimits(link->listens[i].subscription, -1, -1); // hop.h
    }
}

void link_subscribe_listens(Link *link)
{
    if (link->closing || link->nc[LINK_IMMEDIATE] == NULL) {
        return;
    }
    sigset_t before;
    link_block_signals(&before); // threads are born
    for (size_t i = 0; i < LINK_LISTENS_MAX; i++) {
        if (link->listens[i].subject != NULL && link->listens[i].subscription == NULL) {
            subscribe_listen(link, i);
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
