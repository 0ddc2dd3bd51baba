// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/jetstream/link_internal.h"

enum { RETRY_MIN_MS = 100, RETRY_MAX_MS = 2000 };

static void start_connect(Link *link);

// ---- the loop ----

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

static bool both_up(const Link *link)
{
    return !link->working && link->nc[LINK_COALESCED] != NULL &&
           natsConnection_Status(link->nc[LINK_COALESCED]) == NATS_CONN_STATUS_CONNECTED &&
           natsConnection_Status(link->nc[LINK_IMMEDIATE]) == NATS_CONN_STATUS_CONNECTED;
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
    queue_work(link, link_work_close, on_work_closed);
}

static void on_work_connected(uv_work_t *work, int status)
{
    (void)status;
    Link *link = work->data;
    link->working = false;
    if (link->closing) {
        queue_work(link, link_work_quiesce, on_work_quiesced);
        return;
    }
    if (link->work_status == NATS_OK) {
        link->retry_ms = RETRY_MIN_MS;
        link->work_error[0] = link->logged_error[0] = '\0';
        link_subscribe_served(link);
        link_subscribe_listens(link);
        report_state(link, both_up(link));
        return;
    }
    if (strcmp(link->logged_error, link->work_error) != 0) { // one line for each reason
        snprintf(link->logged_error, sizeof link->logged_error, "%s", link->work_error);
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
    queue_work(link, link_work_connect, on_work_connected);
}

static void handle_event(Link *link, HopKind kind)
{
    switch (kind) {
    case HOP_DISCONNECTED:
        report_state(link, false); // also when it is back already: what was in flight is lost
        report_state(link, both_up(link));
        break;
    case HOP_RECONNECTED:
        report_state(link, both_up(link));
        break;
    case HOP_CLOSED: // nats.c gave up (the same refusal twice); we do not
        report_state(link, false);
        uv_timer_start(&link->retry, on_timer_retry, (uint64_t)link->retry_ms, 0);
        break;
    case HOP_ERROR:
        LOG(LOG_ERROR, "nats refuses a subject, the service lacks the right",
            log_text("error", link_permission_error(link)));
        break;
    case HOP_MESSAGE:
    case HOP_SERVED:
    case HOP_SERVED_END:
    case HOP_HEARD:
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
        } else if (items[i].kind == HOP_HEARD) {
            link->handlers.on_heard(link->ctx, items[i].message);
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
        link_subscribe_served(link);
    }
}

void link_serve_end(Link *link)
{
    bool drains = false;
    link->served.ending = true;
    if (!link->working && link->served.subscription != NULL) {
        sigset_t before;
        link_block_signals(&before); // a thread is born
        drains = natsSubscription_DrainTimeout(link->served.subscription, LINK_FLUSH_TIMEOUT_MS) ==
                 NATS_OK;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (!drains) {
        hop_push(link->hop, (HopItem){.kind = HOP_SERVED_END});
    }
}

// While the worker thread has the connections, the next one subscribes.
void link_listen(Link *link, const char *subject)
{
    size_t i = 0;
    while (i < LINK_LISTENS_MAX && link->listens[i].subject != NULL) {
        i++;
    }
    assert(i < LINK_LISTENS_MAX);
    link->listens[i].subject = subject;
    if (!link->working) {
        link_subscribe_listens(link);
    }
}

void link_unlisten(Link *link, const char *subject)
{
    for (size_t i = 0; i < LINK_LISTENS_MAX; i++) {
        if (link->listens[i].subject == subject) {
            link->listens[i].subject = NULL;
            if (!link->working) {
                natsSubscription_Destroy(link->listens[i].subscription);
                link->listens[i].subscription = NULL;
            }
            return;
        }
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

const char *link_trouble(const Link *link)
{
    return !link->connected && link->logged_error[0] != '\0' ? link->logged_error : NULL;
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
    link_block_signals(&before); // the first time a thread is born
    natsStatus s = natsConnection_Request(
        ret_reply, link->nc[LINK_IMMEDIATE], subject, payload.ptr, (int)payload.len, timeout_ms);
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
        queue_work(link, link_work_quiesce, on_work_quiesced);
    }
}
