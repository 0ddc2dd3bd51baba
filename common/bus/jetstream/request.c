// SPDX-License-Identifier: Apache-2.0
// One request, one reply: for JetStream's API, not for the hot path.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bus/jetstream/bus_internal.h"

// As many as the calls of an HTTP server may ask at once, and a handful per worker and reader.
enum {
    REQUESTS_MAX = 16384,
    REQUESTS_FIRST = 64,
    SUBJECT_MAX = 256,
    PAYLOAD_MAX = 64 * 1024,
    PORTS = 16, // of so many requests at once it is known which one has no responder
};

typedef struct Request {
    BusReply on_reply; // NULL: free
    void *ctx;
    int64_t deadline_ms;
    unsigned generation;
    uint64_t asked; // the how manieth
    bool unsent;
    Error failed; // kind other than NONE: to be reported at the next tick
    char subject[SUBJECT_MAX];
    char *payload;
    size_t payload_len;
} Request;

struct Requests {
    uv_loop_t *loop;
    Link *link;
    Request *slots;
    size_t cap;
    uint64_t asked;
};

Requests *requests_new(uv_loop_t *loop, Link *link)
{
    Requests *requests = xcalloc(1, sizeof *requests);
    requests->loop = loop;
    requests->link = link;
    return requests;
}

static void finish(Request *r, Str reply, const Error *err)
{
    BusReply on_reply = r->on_reply;
    void *ctx = r->ctx;
    char *payload = r->payload;
    r->on_reply = NULL;
    r->payload = NULL;
    free(payload);
    on_reply(ctx, reply, err);
}

void requests_free(Requests *requests)
{
    free(requests->slots);
    free(requests);
}

static void send_request(Requests *requests, size_t index)
{
    Request *r = &requests->slots[index];
    char reply[192], port[LINK_PORT_SIZE];
    snprintf(port, sizeof port, "r%zu", index % PORTS);
    link_port(requests->link, port);
    snprintf(
        reply, sizeof reply, "%s.%s.%zu.%u", link_inbox(requests->link), port, index,
        r->generation);
    r->unsent = !link_send(requests->link, r->subject, reply, str_of(r->payload, r->payload_len));
}

static void grow(Requests *requests)
{
    size_t cap = requests->cap == 0 ? REQUESTS_FIRST : 2 * requests->cap;
    if (cap > REQUESTS_MAX) {
        fprintf(stderr, "request: more than %d at once\n", REQUESTS_MAX);
        abort(); // above every bound of those who ask: a bug
    }
    requests->slots = xrealloc(requests->slots, cap * sizeof *requests->slots);
    memset(requests->slots + requests->cap, 0, (cap - requests->cap) * sizeof *requests->slots);
    requests->cap = cap;
}

void requests_ask(
    Requests *requests, const char *subject, Str payload, int timeout_ms, BusReply on_reply,
    void *ctx)
{
    size_t index = 0;
    while (index < requests->cap && requests->slots[index].on_reply != NULL) {
        index++;
    }
    if (index == requests->cap) {
        grow(requests);
    }
    Request *r = &requests->slots[index];
    *r = (Request){
        .on_reply = on_reply,
        .ctx = ctx,
        .deadline_ms = (int64_t)uv_now(requests->loop) + timeout_ms,
        .generation = r->generation + 1,
        .asked = ++requests->asked,
        .payload_len = payload.len};
    if (payload.len > PAYLOAD_MAX || !str_to_c(str_from(subject), r->subject, sizeof r->subject)) {
        error_set(&r->failed, ERROR_PERMANENT, "request on '%.80s': too long", subject);
        return;
    }
    r->payload = xmalloc(payload.len + 1);
    if (payload.len > 0) {
        memcpy(r->payload, payload.ptr, payload.len);
    }
    send_request(requests, index);
}

static Request *find_request(Requests *requests, Str token)
{
    Str first;
    int64_t index, generation;
    if (!str_split(&token, '.', &first) || !str_to_i64(first, &index) ||
        !str_to_i64(token, &generation) || index < 0 || index >= (int64_t)requests->cap) {
        return NULL;
    }
    Request *r = &requests->slots[index];
    return r->on_reply != NULL && r->generation == (unsigned)generation ? r : NULL;
}

void requests_on_reply(Requests *requests, Str token, natsMsg *message)
{
    Request *r = find_request(requests, token);
    if (r != NULL) {
        Str reply = str_of(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
        finish(r, reply, NULL);
    }
}

// The server says so in the order of the requests. Where several wait at one port and only a later
// one has no responder, the oldest fails in its place, which may mean either for a request that
// failed TRANSIENT; the other's time passes.
void requests_on_unanswered(Requests *requests, size_t port)
{
    Request *oldest = NULL;
    for (size_t i = port; i < requests->cap; i += PORTS) {
        Request *r = &requests->slots[i];
        bool waits = r->on_reply != NULL && !r->unsent && r->failed.kind == ERROR_NONE;
        if (waits && (oldest == NULL || r->asked < oldest->asked)) {
            oldest = r;
        }
    }
    if (oldest != NULL) {
        Error err;
        error_set(
            &err, ERROR_TRANSIENT, "no responder for '%.120s' (HINT: is JetStream enabled?)",
            oldest->subject);
        finish(oldest, STR_EMPTY, &err);
    }
}

void requests_tick(Requests *requests)
{
    int64_t now = (int64_t)uv_now(requests->loop);
    for (size_t i = 0; i < requests->cap; i++) {
        Request *r = &requests->slots[i];
        if (r->on_reply == NULL) {
            continue;
        }
        if (r->failed.kind != ERROR_NONE) {
            Error failed = r->failed;
            finish(r, STR_EMPTY, &failed);
        } else if (now >= r->deadline_ms) {
            Error err;
            error_set(
                &err, ERROR_TRANSIENT, "no answer on '%.120s'%s", r->subject,
                r->unsent ? ": nats is not connected" : "");
            finish(r, STR_EMPTY, &err);
        } else if (r->unsent) {
            send_request(requests, i);
        }
    }
}

bool requests_pending(const Requests *requests)
{
    size_t i = 0;
    while (i < requests->cap && requests->slots[i].on_reply == NULL) {
        i++;
    }
    return i < requests->cap;
}

void requests_cancel(Requests *requests)
{
    Error err;
    error_set(&err, ERROR_CANCELLED, "request: the bus is closing");
    for (size_t i = 0; i < requests->cap; i++) {
        if (requests->slots[i].on_reply != NULL) {
            finish(&requests->slots[i], STR_EMPTY, &err);
        }
    }
}

void requests_forget(Requests *requests, const void *ctx)
{
    for (size_t i = 0; i < requests->cap; i++) {
        Request *r = &requests->slots[i];
        if (r->on_reply != NULL && r->ctx == ctx) {
            r->on_reply = NULL;
            free(r->payload);
            r->payload = NULL;
        }
    }
}
