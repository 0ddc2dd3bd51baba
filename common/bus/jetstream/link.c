// SPDX-License-Identifier: Apache-2.0
// The link's states, its subscriptions, and what is sent.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/jetstream/link_internal.h"

enum { RETRY_MIN_MS = 100, RETRY_MAX_MS = 2000, JITTER_MS = 200 };

static void start_connect(Link *link);
static void lose(Link *link);

static void report_state(Link *link, bool connected)
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

// ---- subscriptions ----

static bool can_subscribe(const Link *link)
{
    return link->wire != NULL && !link->wire->closed && !link->closing;
}

// nats.c would drop what passes its limits; pulls bound what comes. NULL: the connection is gone,
// and the next one tries again.
static natsSubscription *subscribe(Link *link, const char *subject, const char *queue)
{
    natsSubscription *subscription = NULL;
    natsStatus s =
        queue != NULL
            ? natsConnection_QueueSubscribeSync(&subscription, link->wire->nc, subject, queue)
            : natsConnection_SubscribeSync(&subscription, link->wire->nc, subject);
    if (s != NATS_OK) {
        return NULL;
    }
    (void)natsSubscription_SetPendingLimits(subscription, -1, -1);
    return subscription;
}

static natsSubscription *subscribe_port(Link *link, const char *name)
{
    char subject[LINK_INBOX_SIZE + LINK_PORT_SIZE + 8];
    snprintf(subject, sizeof subject, "%s.%s.>", link->inbox, name);
    return subscribe(link, subject, NULL);
}

static void subscribe_missing(Link *link)
{
    if (!can_subscribe(link)) {
        return;
    }
    for (size_t i = 0; i < link->port_count; i++) {
        if (link->ports[i].subscription == NULL) {
            link->ports[i].subscription = subscribe_port(link, link->ports[i].name);
        }
    }
    bool serves = link->served.subject != NULL && !link->served.ending && !link->served.draining;
    if (serves && link->served.subscription == NULL) {
        link->served.subscription = subscribe(link, link->served.subject, link->served.queue);
    }
    for (size_t i = 0; i < LINK_LISTENS_MAX; i++) {
        if (link->listens[i].subject != NULL && link->listens[i].subscription == NULL) {
            link->listens[i].subscription = subscribe(link, link->listens[i].subject, NULL);
        }
    }
}

static void unsubscribe(natsSubscription **subscription)
{
    natsSubscription_Destroy(*subscription);
    *subscription = NULL;
}

static void unsubscribe_all(Link *link)
{
    for (size_t i = 0; i < link->port_count; i++) {
        unsubscribe(&link->ports[i].subscription);
    }
    for (size_t i = 0; i < LINK_LISTENS_MAX; i++) {
        unsubscribe(&link->listens[i].subscription);
    }
    unsubscribe(&link->served.subscription);
    unsubscribe(&link->answers);
}

void link_port(Link *link, const char *name)
{
    for (size_t i = 0; i < link->port_count; i++) {
        if (strcmp(link->ports[i].name, name) == 0) {
            return;
        }
    }
    assert(link->port_count < LINK_PORTS_MAX && strlen(name) < LINK_PORT_SIZE);
    snprintf(link->ports[link->port_count++].name, LINK_PORT_SIZE, "%s", name);
    subscribe_missing(link);
}

void link_serve(Link *link, const char *subject, const char *queue)
{
    link->served.subject = subject;
    link->served.queue = queue;
    subscribe_missing(link);
}

static void end_served(Link *link)
{
    if (link->served.ending) {
        link->served.ending = link->served.draining = false;
        link->served.subject = NULL;
        link->handlers.on_served(link->ctx, NULL);
    }
}

// Reported by link_tick, also where nothing was subscribed: not from inside this call.
void link_serve_end(Link *link)
{
    link->served.ending = true;
    if (link->served.subscription != NULL) {
        sigset_t before;
        link_block_signals(&before); // a thread is born
        link->served.draining = natsSubscription_DrainTimeout(
                                    link->served.subscription, LINK_FLUSH_TIMEOUT_MS) == NATS_OK;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
}

static bool is_drained(Link *link)
{
    return !link->served.draining || link->served.subscription == NULL ||
           natsSubscription_DrainCompletionStatus(link->served.subscription) != NATS_ILLEGAL_STATE;
}

void link_listen(Link *link, const char *subject)
{
    size_t i = 0;
    while (i < LINK_LISTENS_MAX && link->listens[i].subject != NULL) {
        i++;
    }
    assert(i < LINK_LISTENS_MAX);
    link->listens[i].subject = subject;
    subscribe_missing(link);
}

void link_unlisten(Link *link, const char *subject)
{
    for (size_t i = 0; i < LINK_LISTENS_MAX; i++) {
        if (link->listens[i].subject == subject) {
            link->listens[i].subject = NULL;
            unsubscribe(&link->listens[i].subscription);
            return;
        }
    }
}

// ---- the end of messages ----

static void free_discarded(Link *link)
{
    for (size_t i = 0; i < link->discarded.count; i++) {
        natsMsg_Destroy(link->discarded.messages[i]);
    }
    link->discarded.count = link->discarded.bytes = 0;
}

void link_discard(Link *link, natsMsg *message)
{
    if (message == NULL) {
        return;
    }
    if (link->discarded.count == 0) {
        link->discarded.since_ms = (int64_t)uv_now(link->loop);
    }
    link->discarded.messages[link->discarded.count++] = message;
    link->discarded.bytes += (size_t)natsMsg_GetDataLength(message);
    if (link->discarded.count == LINK_DISCARDED_MAX ||
        link->discarded.bytes >= LINK_DISCARDED_BYTES) {
        free_discarded(link);
    }
}

// ---- what arrives ----

static size_t message_bytes(natsMsg *message)
{
    return (size_t)natsMsg_GetDataLength(message) + strlen(natsMsg_GetSubject(message));
}

static int count_pending(natsSubscription *subscription)
{
    int messages = 0, bytes = 0;
    bool some = subscription != NULL &&
                natsSubscription_GetPending(subscription, &messages, &bytes) == NATS_OK;
    return some ? messages : 0;
}

static size_t take_from_port(Link *link, Port *port)
{
    size_t bytes = 0;
    for (int left = count_pending(port->subscription); left > 0; left--) {
        natsMsg *message = NULL;
        natsStatus s = natsSubscription_NextMsg(&message, port->subscription, 0);
        if (s == NATS_OK) {
            bytes += message_bytes(message);
            link->handlers.on_message(link->ctx, message, link->breaks);
        } else if (s == NATS_NO_RESPONDERS && link->handlers.on_unanswered != NULL) {
            link->handlers.on_unanswered(link->ctx, port->name);
        }
    }
    return bytes;
}

static size_t take_served(Link *link)
{
    size_t bytes = 0;
    for (int left = count_pending(link->served.subscription); left > 0; left--) {
        natsMsg *message = NULL;
        if (natsSubscription_NextMsg(&message, link->served.subscription, 0) == NATS_OK) {
            bytes += message_bytes(message);
            link->handlers.on_served(link->ctx, message);
        }
    }
    return bytes;
}

// A handler may end the listening.
static size_t take_heard(Link *link, size_t i)
{
    size_t bytes = 0;
    for (int left = count_pending(link->listens[i].subscription);
         left > 0 && link->listens[i].subscription != NULL; left--) {
        natsMsg *message = NULL;
        if (natsSubscription_NextMsg(&message, link->listens[i].subscription, 0) != NATS_OK) {
            continue;
        }
        bytes += message_bytes(message);
        if (link->heard++ < LINK_HEARD_MAX) {
            link->handlers.on_heard(link->ctx, message);
        } else {
            link_discard(link, message);
        }
    }
    return bytes;
}

// `Permissions Violation for Publish to "<subject>"`
static bool is_spared(const Link *link, const char *text)
{
    const char *quote = text != NULL ? strchr(text, '"') : NULL;
    Str subject = str_from(quote != NULL ? quote + 1 : "");
    for (size_t i = 0; i < link->spared_count; i++) {
        if (str_starts(subject, str_from(link->spared[i]))) {
            return true;
        }
    }
    return false;
}

void link_spare(Link *link, const char *subject)
{
    assert(link->spared_count < LINK_SPARED_MAX);
    link->spared[link->spared_count++] = subject;
}

// The first refusal stays: nats.c keeps the last error of a connection.
static void note_permission(Link *link)
{
    const char *text = NULL;
    if (link->permission[0] == '\0' && link->wire != NULL &&
        natsConnection_GetLastError(link->wire->nc, &text) == NATS_NOT_PERMITTED &&
        !is_spared(link, text)) {
        snprintf(
            link->permission, sizeof link->permission, "%s",
            text != NULL && text[0] != '\0' ? text : "not permitted");
        LOG(LOG_ERROR, "nats refuses a subject, the service lacks the right",
            log_text("error", link->permission));
    }
}

size_t link_hand_on(Link *link)
{
    size_t bytes = 0;
    for (size_t i = 0; i < link->port_count; i++) {
        bytes += take_from_port(link, &link->ports[i]);
    }
    bytes += take_served(link);
    for (size_t i = 0; i < LINK_LISTENS_MAX; i++) {
        bytes += take_heard(link, i);
    }
    return bytes;
}

static void leave_closed(Link *link)
{
    if (link->wire != NULL && link->wire->closed) {
        lose(link);
    }
}

void link_on_read(Link *link)
{
    note_permission(link);
    leave_closed(link);
}

static void on_async_woken(uv_async_t *async)
{
    Link *link = async->data;
    (void)link_hand_on(link);
    link_on_read(link); // what is unwritten goes before the loop sleeps
}

void link_write(Link *link)
{
    if (link->wire != NULL) {
        wire_write(link->wire);
        leave_closed(link);
    }
}

static void on_loop_prepare(uv_prepare_t *prepare)
{
    Link *link = prepare->data;
    link->heard = 0;
    link_write(link);
}

void link_tick(Link *link)
{
    if ((int64_t)uv_now(link->loop) - link->discarded.since_ms >= LINK_DISCARDED_MS) {
        free_discarded(link);
    }
    if (link->wire != NULL && !link->working && wire_is_dead(link->wire)) {
        LOG(LOG_WARN, "nats neither answers nor takes anything, it is left",
            log_urls("url", link->options.url));
        lose(link);
    }
    if (link->served.ending && is_drained(link)) {
        (void)take_served(link);
        end_served(link);
    }
}

// ---- connecting ----

static void on_timer_retry(uv_timer_t *timer)
{
    start_connect(timer->data);
}

// Many services lose a server at once, and do not come back at once.
static void retry_later(Link *link)
{
    uint8_t random;
    random_bytes(&random, 1);
    int pause_ms = link->retry_ms + random * JITTER_MS / UINT8_MAX;
    uv_timer_start(&link->retry, on_timer_retry, (uint64_t)pause_ms, 0);
    link->retry_ms = 2 * link->retry_ms > RETRY_MAX_MS ? RETRY_MAX_MS : 2 * link->retry_ms;
}

// The other servers of the cluster that it named, for the next connection.
static void note_cluster(Link *link)
{
    char **servers = NULL;
    int count = 0;
    if (natsConnection_GetServers(link->wire->nc, &servers, &count) != NATS_OK || count == 0) {
        return;
    }
    size_t size = 1;
    for (int i = 0; i < count; i++) {
        size += strlen(servers[i]) + 1;
    }
    char *list = xmalloc(size);
    list[0] = '\0';
    for (int i = 0, at = 0; i < count; i++) {
        at += snprintf(list + at, size - (size_t)at, "%s%s", i > 0 ? "," : "", servers[i]);
        free(servers[i]);
    }
    free((void *)servers);
    free(link->cluster);
    link->cluster = list;
}

static void drop_wire(Link *link)
{
    if (link->wire != NULL) {
        note_cluster(link);
        unsubscribe_all(link);
        wire_drop(link->wire);
        link->wire = NULL;
        link->breaks++;
    }
}

// While the worker thread waits for the server, the connection is its: it ends with that.
static void lose(Link *link)
{
    if (link->working) {
        return;
    }
    drop_wire(link);
    report_state(link, false);
    if (link->served.draining) {
        end_served(link);
    }
    if (!link->closing) {
        retry_later(link);
    }
}

static void begin_close(Link *link);

static void on_work_connected(uv_work_t *work, int status)
{
    (void)status;
    Link *link = work->data;
    Wire *wire = link->connecting;
    link->working = false;
    link->connecting = NULL;
    if (link->work_status == NATS_OK && wire_begin(wire)) {
        link->wire = wire;
        link->retry_ms = RETRY_MIN_MS;
        link->work_error[0] = link->logged_error[0] = '\0';
    } else {
        wire_drop(wire);
    }
    if (link->closing) {
        begin_close(link);
        return;
    }
    if (link->wire != NULL) {
        subscribe_missing(link);
        report_state(link, true);
        return;
    }
    if (strcmp(link->logged_error, link->work_error) != 0) { // one line for each reason
        snprintf(link->logged_error, sizeof link->logged_error, "%s", link->work_error);
        LOG(LOG_WARN, "nats is not reachable, trying again", log_urls("url", link->options.url),
            log_text("error", link->work_error));
    }
    retry_later(link);
}

static void queue_work(Link *link, uv_work_cb work, uv_after_work_cb after)
{
    link->working = true;
    link->work.data = link;
    if (uv_queue_work(link->loop, &link->work, work, after) != 0) {
        abort(); // only for a NULL callback
    }
}

static void start_connect(Link *link)
{
    if (!link->working && !link->closing && link->wire == NULL) {
        link->connecting = wire_new(link);
        queue_work(link, link_work_connect, on_work_connected);
    }
}

static char *copy_or_empty(const char *text)
{
    return xstrdup(text != NULL ? text : "");
}

static void open_handles(Link *link)
{
    if (uv_async_init(link->loop, &link->async, on_async_woken) != 0) {
        abort(); // no file descriptors at start: nothing could work
    }
    uv_timer_init(link->loop, &link->retry);
    uv_timer_init(link->loop, &link->rest);
    uv_prepare_init(link->loop, &link->prepare);
    uv_prepare_start(&link->prepare, on_loop_prepare);
    link->async.data = link;
    link->retry.data = link;
    link->rest.data = link;
    link->prepare.data = link;
    link->open_handles = 4;
}

Link *link_open(
    uv_loop_t *loop, const LinkOptions *options, const LinkHandlers *handlers, void *ctx)
{
    Link *link = xcalloc(1, sizeof *link);
    link->loop = loop;
    link->thread = uv_thread_self();
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
    open_handles(link);
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

const char *link_inbox(const Link *link)
{
    return link->inbox;
}

unsigned link_breaks(const Link *link)
{
    return link->breaks;
}

bool link_connected(const Link *link)
{
    return link->connected;
}

const char *link_trouble(const Link *link)
{
    return !link->connected && link->logged_error[0] != '\0' ? link->logged_error : NULL;
}

const char *link_permission_error(const Link *link)
{
    return link->permission[0] == '\0' ? NULL : link->permission;
}

// ---- sending ----

static bool can_send(const Link *link)
{
    return link->connected && link->wire != NULL && !link->wire->closed &&
           wire_unwritten(link->wire) < LINK_UNWRITTEN_MAX;
}

bool link_publish(Link *link, natsMsg *message)
{
    return can_send(link) && wire_takes(link->wire) &&
           natsConnection_PublishMsg(link->wire->nc, message) == NATS_OK;
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

bool link_send(Link *link, const char *subject, const char *reply, Str payload)
{
    char placed[320];
    if (!can_send(link)) {
        return false;
    }
    subject = place_api(link, subject, placed, sizeof placed);
    natsConnection *nc = link->wire->nc;
    natsStatus s =
        reply == NULL
            ? natsConnection_Publish(nc, subject, payload.ptr, (int)payload.len)
            : natsConnection_PublishRequest(nc, subject, reply, payload.ptr, (int)payload.len);
    return s == NATS_OK;
}

static natsStatus next_answer(Link *link, const char *reply, natsMsg **ret)
{
    natsStatus s = NATS_TIMEOUT;
    while (count_pending(link->answers) > 0) {
        natsMsg *message = NULL;
        s = natsSubscription_NextMsg(&message, link->answers, 0);
        if (s != NATS_OK) {
            return s; // no responder
        }
        if (strcmp(natsMsg_GetSubject(message), reply) == 0) {
            *ret = message;
            return NATS_OK;
        }
        link_discard(link, message); // of an earlier one, too late
        s = NATS_TIMEOUT;
    }
    return s;
}

void link_rest(Link *link, int rest_ms)
{
    link->rest_ms = rest_ms;
    if (rest_ms == 0 && link->wire != NULL) {
        wire_wake(link->wire);
    }
}

bool link_rests(const Link *link)
{
    return link->wire != NULL && link->wire->rests;
}

bool link_ask_now(Link *link, const char *subject, Str payload, int timeout_ms, natsMsg **ret_reply)
{
    char reply[LINK_INBOX_SIZE + LINK_PORT_SIZE];
    snprintf(reply, sizeof reply, "%s.now.%u", link->inbox, ++link->asked_now);
    if (link->answers == NULL && can_send(link)) {
        link->answers = subscribe_port(link, "now");
    }
    if (link->answers == NULL || !link_send(link, subject, reply, payload)) {
        return false;
    }
    uint64_t now_ms = uv_hrtime() / 1000000, end_ms = now_ms + (uint64_t)timeout_ms;
    natsStatus s = NATS_TIMEOUT;
    while (s == NATS_TIMEOUT && now_ms < end_ms && !link->wire->closed) {
        wire_wait(link->wire, (int)(end_ms - now_ms));
        s = next_answer(link, reply, ret_reply);
        now_ms = uv_hrtime() / 1000000;
    }
    uv_async_send(&link->async); // what else arrived
    return s == NATS_OK;
}

// ---- closing ----

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

void link_on_handle_closed(Link *link)
{
    if (--link->open_handles > 0) {
        return;
    }
    void (*on_closed)(void *) = link->on_closed;
    void *ctx = link->closed_ctx;
    free_discarded(link);
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
    free(link->cluster);
    free(link);
    on_closed(ctx);
}

static void on_handle_closed(uv_handle_t *handle)
{
    link_on_handle_closed(handle->data);
}

static void end_close(Link *link)
{
    drop_wire(link);
    uv_close((uv_handle_t *)&link->async, on_handle_closed);
    uv_close((uv_handle_t *)&link->retry, on_handle_closed);
    uv_close((uv_handle_t *)&link->rest, on_handle_closed);
    uv_close((uv_handle_t *)&link->prepare, on_handle_closed);
}

static void on_work_closed(uv_work_t *work, int status)
{
    (void)status;
    Link *link = work->data;
    link->working = false;
    (void)link_hand_on(link); // what came last
    end_close(link);
}

static void on_work_quiesced(uv_work_t *work, int status)
{
    (void)status;
    Link *link = work->data;
    (void)link_hand_on(link); // the owner may give back what came last
    link->returning = true;
    queue_work(link, link_work_close, on_work_closed);
}

static void begin_close(Link *link)
{
    if (link->wire == NULL) {
        end_close(link);
    } else {
        queue_work(link, link_work_quiesce, on_work_quiesced);
    }
}

void link_close(Link *link, void (*on_closed)(void *ctx), void *ctx)
{
    link->closing = true;
    link->connected = false;
    link->on_closed = on_closed;
    link->closed_ctx = ctx;
    uv_timer_stop(&link->retry);
    link_rest(link, 0);
    if (!link->working) {
        begin_close(link);
    }
}
