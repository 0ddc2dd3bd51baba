// SPDX-License-Identifier: Apache-2.0
#include "common/bus/jetstream/link.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/jetstream/hop.h"

enum {
    RETRY_MIN_MS = 100,
    RETRY_MAX_MS = 2000,
    CONNECT_TIMEOUT_MS = 5000,
    WRITE_DEADLINE_MS = 2000,
    FLUSH_TIMEOUT_MS = 2000,
    PING_INTERVAL_MS = 15000, // twice unanswered: the connection is dead
    RECONNECT_WAIT_MS = 100,
    RECONNECT_JITTER_MS = 200,
    IO_BUFFER = 64 * 1024,
    SERVERS_MAX = 16,
};

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
    natsStatus work_status;
    char work_error[160];
    unsigned generation;
    int retry_ms;
    bool connected; // as last told
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

// What nats.c's callbacks get: nothing of the link, which may be gone when the last of them comes.
typedef struct Wire {
    Hop *hop;
    unsigned generation;
} Wire;

static void start_connect(Link *link);

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
    free_wire(closure); // nats.c's last word on this connection
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
        natsOptions_SetSendAsap(options, lane == LINK_SWIFT),
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
        &link->subscription, link->nc[LINK_SWIFT], subject, on_nats_message, wire);
    if (s != NATS_OK) {
        link->subscription = NULL;
        free_wire(wire);
        return s;
    }
    s = natsSubscription_SetOnCompleteCB(link->subscription, on_nats_complete, wire);
    if (s == NATS_OK) { // nats.c would drop what passes its limits; pulls bound what comes
        s = natsSubscription_SetPendingLimits(link->subscription, -1, -1);
    }
    return s == NATS_OK ? natsConnection_FlushTimeout(link->nc[LINK_SWIFT], FLUSH_TIMEOUT_MS) : s;
}

static void destroy_connections(Link *link)
{
    natsSubscription_Destroy(link->subscription);
    link->subscription = NULL;
    natsSubscription_Destroy(link->served.subscription);
    link->served.subscription = NULL;
    for (int lane = 0; lane < LINK_LANES; lane++) {
        natsConnection_Destroy(link->nc[lane]);
        link->nc[lane] = NULL;
    }
}

// nats.c's reader takes EINTR for a broken connection: its threads must be born with every signal
// blocked.
static void block_signals(sigset_t *ret_before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

static void on_work_connect(uv_work_t *work)
{
    Link *link = work->data;
    sigset_t before;
    block_signals(&before);
    destroy_connections(link);
    natsStatus s = connect_lane(link, LINK_SWIFT);
    if (s == NATS_OK) {
        s = subscribe_inbox(link);
    }
    if (s == NATS_OK) {
        s = connect_lane(link, LINK_CALM);
    }
    if (s != NATS_OK) {
        const char *text = nats_GetLastError(NULL);
        snprintf(
            link->work_error, sizeof link->work_error, "%s",
            text != NULL && text[0] != '\0' ? text : natsStatus_GetText(s));
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

// Afterwards the server knows that nobody listens to our pull requests, and all that it sent
// before is in the hop.
static void on_work_quiesce(uv_work_t *work)
{
    Link *link = work->data;
    sigset_t before;
    block_signals(&before);
    if (lane_is_up(link, LINK_CALM)) {
        natsConnection_FlushTimeout(link->nc[LINK_CALM], FLUSH_TIMEOUT_MS);
    }
    if (lane_is_up(link, LINK_SWIFT) &&
        natsSubscription_DrainTimeout(link->subscription, FLUSH_TIMEOUT_MS) == NATS_OK) {
        natsSubscription_WaitForDrainCompletion(link->subscription, FLUSH_TIMEOUT_MS);
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
            &reply, link->nc[LINK_CALM], link->asks[i], "", FLUSH_TIMEOUT_MS);
        natsMsg_Destroy(reply);
    }
}

static void on_work_close(uv_work_t *work)
{
    Link *link = work->data;
    sigset_t before;
    block_signals(&before);
    if (lane_is_up(link, LINK_CALM)) {
        ask_all(link);
        for (size_t i = 0; i < link->return_count; i++) {
            natsConnection_PublishString(link->nc[LINK_CALM], link->returns[i], "-NAK");
        }
        natsConnection_FlushTimeout(link->nc[LINK_CALM], FLUSH_TIMEOUT_MS);
    }
    destroy_connections(link);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// ---- the loop ----

static void tell(Link *link, bool connected)
{
    if (link->connected == connected || link->closing) {
        return;
    }
    link->connected = connected;
    if (connected) {
        LOG(LOG_INFO, "nats connected", log_urls("url", link->options.url));
    } else {
        LOG(LOG_WARN, "nats connection lost, trying again", log_urls("url", link->options.url));
    }
    link->handlers.on_state(link->ctx, connected);
}

// On the loop's thread. A connection that is lost meanwhile subscribes again by itself, and a new
// one by on_work_connected.
static void subscribe_served(Link *link)
{
    bool wanted = link->served.subject != NULL && !link->served.ending && !link->closing;
    if (!wanted || link->served.subscription != NULL || link->nc[LINK_SWIFT] == NULL) {
        return;
    }
    sigset_t before;
    block_signals(&before); // a thread is born
    Wire *wire = make_wire(link);
    natsStatus s = natsConnection_QueueSubscribe(
        &link->served.subscription, link->nc[LINK_SWIFT], link->served.subject, link->served.queue,
        on_nats_served, wire);
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

static bool both_up(const Link *link)
{
    return !link->working && link->nc[LINK_CALM] != NULL &&
           natsConnection_Status(link->nc[LINK_CALM]) == NATS_CONN_STATUS_CONNECTED &&
           natsConnection_Status(link->nc[LINK_SWIFT]) == NATS_CONN_STATUS_CONNECTED;
}

static void on_timer_retry(uv_timer_t *timer)
{
    start_connect(timer->data);
}

static void on_handle_closed(uv_handle_t *handle)
{
    Link *link = handle->data;
    if (--link->open_handles > 0) {
        return;
    }
    void (*on_closed)(void *) = link->on_closed;
    void *ctx = link->closed_ctx;
    free((void *)(uintptr_t)link->options.url);
    free((void *)(uintptr_t)link->options.user);
    free((void *)(uintptr_t)link->options.password);
    free((void *)(uintptr_t)link->options.name);
    free((void *)(uintptr_t)link->options.inbox_prefix);
    for (size_t i = 0; i < link->return_count; i++) {
        free(link->returns[i]);
    }
    free(link->returns);
    for (size_t i = 0; i < link->ask_count; i++) {
        free(link->asks[i]);
    }
    free(link);
    on_closed(ctx);
}

static void drain(Link *link);

static void on_work_closed(uv_work_t *work, int status)
{
    (void)status;
    Link *link = work->data;
    drain(link); // what came last
    hop_shut(link->hop);
    hop_unref(link->hop);
    link->open_handles = 2;
    uv_close((uv_handle_t *)&link->async, on_handle_closed);
    uv_close((uv_handle_t *)&link->retry, on_handle_closed);
}

static void queue_work(Link *link, uv_work_cb work, uv_after_work_cb after)
{
    link->working = true;
    link->work.data = link;
    if (uv_queue_work(link->loop, &link->work, work, after) != 0) {
        abort(); // only for a NULL callback
    }
}

static void on_work_quiesced(uv_work_t *work, int status)
{
    (void)status;
    Link *link = work->data;
    drain(link); // the owner may give back what came last
    link->returning = true;
    queue_work(link, on_work_close, on_work_closed);
}

static void on_work_connected(uv_work_t *work, int status)
{
    (void)status;
    Link *link = work->data;
    link->working = false;
    if (link->closing) {
        queue_work(link, on_work_quiesce, on_work_quiesced);
        return;
    }
    if (link->work_status == NATS_OK) {
        link->retry_ms = RETRY_MIN_MS;
        subscribe_served(link);
        tell(link, both_up(link));
        return;
    }
    if (link->retry_ms == RETRY_MIN_MS) {
        LOG(LOG_WARN, "nats is not reachable, trying again", log_urls("url", link->options.url),
            log_text("error", link->work_error));
    }
    uv_timer_start(&link->retry, on_timer_retry, (uint64_t)link->retry_ms, 0);
    link->retry_ms = 2 * link->retry_ms > RETRY_MAX_MS ? RETRY_MAX_MS : 2 * link->retry_ms;
}

static void start_connect(Link *link)
{
    if (link->working || link->closing) {
        return;
    }
    link->generation++;
    queue_work(link, on_work_connect, on_work_connected);
}

static void handle_event(Link *link, HopKind kind)
{
    switch (kind) {
    case HOP_DISCONNECTED:
        tell(link, false); // also when it is back already: what was in the air is lost
        tell(link, both_up(link));
        break;
    case HOP_RECONNECTED:
        tell(link, both_up(link));
        break;
    case HOP_CLOSED: // nats.c gave up (the same refusal twice); we do not
        tell(link, false);
        uv_timer_start(&link->retry, on_timer_retry, (uint64_t)link->retry_ms, 0);
        break;
    case HOP_ERROR:
        LOG(LOG_ERROR, "nats refuses a subject", log_text("error", link_permission_error(link)));
        break;
    case HOP_MESSAGE:
    case HOP_SERVED:
    case HOP_SERVED_END:
        break;
    }
}

static void drain(Link *link)
{
    size_t count;
    HopItem *items = hop_take(link->hop, &count);
    for (size_t i = 0; i < count; i++) {
        if (items[i].kind == HOP_SERVED) {
            link->handlers.on_served(link->ctx, items[i].message);
        } else if (items[i].kind == HOP_SERVED_END) {
            if (link->served.ending) { // else a lost connection's
                link->handlers.on_served(link->ctx, NULL);
            }
        } else if (items[i].kind != HOP_MESSAGE) {
            if (items[i].generation == link->generation && !link->closing) {
                handle_event(link, items[i].kind);
            }
        } else {
            link->handlers.on_message(link->ctx, items[i].message, items[i].breaks);
        }
    }
}

static void on_async_arrived(uv_async_t *async)
{
    drain(async->data);
}

static char *copy_or_empty(const char *text)
{
    return xstrdup(text != NULL ? text : "");
}

Link *link_open(
    uv_loop_t *loop, const LinkOptions *options, const LinkHandlers *handlers, void *ctx)
{
    Link *link = xcalloc(1, sizeof *link);
    link->loop = loop;
    link->options = (LinkOptions){
        .url = copy_or_empty(options->url),
        .user = copy_or_empty(options->user),
        .password = copy_or_empty(options->password),
        .name = copy_or_empty(options->name),
        .inbox_prefix = copy_or_empty(options->inbox_prefix),
        .held = options->held};
    link->handlers = *handlers;
    link->ctx = ctx;
    link->retry_ms = RETRY_MIN_MS;
    uint8_t random[9];
    char token[13];
    random_bytes(random, sizeof random);
    base64url_encode(random, sizeof random, token);
    snprintf(link->inbox, sizeof link->inbox, "%s.%s", options->inbox_prefix, token);
    if (uv_async_init(loop, &link->async, on_async_arrived) != 0) {
        abort(); // no file descriptors at start: nothing could work
    }
    uv_timer_init(loop, &link->retry);
    link->async.data = link;
    link->retry.data = link;
    link->hop = hop_new(&link->async);
    if (!options->held) {
        start_connect(link);
    }
    return link;
}

void link_release(Link *link)
{
    if (link->options.held) {
        link->options.held = false;
        start_connect(link);
    }
}

void link_serve(Link *link, const char *subject, const char *queue)
{
    link->served.subject = subject;
    link->served.queue = queue;
    if (!link->working) {
        subscribe_served(link);
    }
}

void link_serve_end(Link *link)
{
    bool drains = false;
    link->served.ending = true;
    if (!link->working && link->served.subscription != NULL) {
        sigset_t before;
        block_signals(&before); // a thread is born
        drains =
            natsSubscription_DrainTimeout(link->served.subscription, FLUSH_TIMEOUT_MS) == NATS_OK;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (!drains) {
        hop_push(link->hop, (HopItem){.kind = HOP_SERVED_END});
    }
}

const char *link_inbox(const Link *link)
{
    return link->inbox;
}

unsigned link_breaks(const Link *link)
{
    return hop_breaks(link->hop);
}

bool link_connected(const Link *link)
{
    return link->connected;
}

bool link_publish(Link *link, LinkLane lane, natsMsg *message)
{
    return link->connected && !link->working &&
           natsConnection_PublishMsg(link->nc[lane], message) == NATS_OK;
}

void link_use_domain(Link *link, const char *domain)
{
    snprintf(link->domain, sizeof link->domain, "%s", domain);
}

// JetStream's API under the name that it has in our account.
static const char *place_api(const Link *link, const char *subject, char *out, size_t size)
{
    Str api = STR("$JS.API.");
    if (link->domain[0] == '\0' || !str_starts(str_from(subject), api)) {
        return subject;
    }
    snprintf(out, size, "$JS.%s.API.%s", link->domain, subject + api.len);
    return out;
}

bool link_send(Link *link, LinkLane lane, const char *subject, const char *reply, Str payload)
{
    char placed[320];
    if (!link->connected || link->working) {
        return false;
    }
    subject = place_api(link, subject, placed, sizeof placed);
    natsStatus s =
        reply == NULL
            ? natsConnection_Publish(link->nc[lane], subject, payload.ptr, (int)payload.len)
            : natsConnection_PublishRequest(
                  link->nc[lane], subject, reply, payload.ptr, (int)payload.len);
    return s == NATS_OK;
}

bool link_ask_now(Link *link, const char *subject, Str payload, int timeout_ms, natsMsg **ret_reply)
{
    sigset_t before;
    if (!link->connected || link->working) {
        return false;
    }
    block_signals(&before); // the first time a thread is born
    natsStatus s = natsConnection_Request(
        ret_reply, link->nc[LINK_SWIFT], subject, payload.ptr, (int)payload.len, timeout_ms);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s == NATS_OK;
}

const char *link_permission_error(const Link *link)
{
    // Copied on the first look: the caller gets a pointer that stays.
    Link *mine = (Link *)(uintptr_t)link;
    if (mine->permission[0] == '\0') {
        hop_get_permission_error(mine->hop, mine->permission, sizeof mine->permission);
    }
    return mine->permission[0] == '\0' ? NULL : mine->permission;
}

void link_give_back(Link *link, const char *ack_subject)
{
    if (link->return_count == LINK_RETURNS_MAX || link->returning) {
        return;
    }
    if (link->return_count == link->return_cap) {
        link->return_cap = link->return_cap == 0 ? 64 : 2 * link->return_cap;
        link->returns = xrealloc(link->returns, link->return_cap * sizeof *link->returns);
    }
    link->returns[link->return_count++] = xstrdup(ack_subject);
}

void link_ask_at_close(Link *link, const char *subject)
{
    if (link->ask_count < LINK_ASKS_MAX) {
        link->asks[link->ask_count++] = xstrdup(subject);
    }
}

void link_close(Link *link, void (*on_closed)(void *ctx), void *ctx)
{
    link->closing = true;
    link->connected = false;
    link->on_closed = on_closed;
    link->closed_ctx = ctx;
    uv_timer_stop(&link->retry);
    if (!link->working) {
        queue_work(link, on_work_quiesce, on_work_quiesced);
    }
}
