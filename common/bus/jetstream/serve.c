// SPDX-License-Identifier: Apache-2.0
#include "common/bus/jetstream/serve.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bus/jetstream/bus_internal.h"

struct Serve {
    Bus *bus;
    ServeOptions options;
    ServeHandler on_asked;
    void *ctx;
    size_t in_hand, bytes;
    bool ending; // on_stopped is awaited
    bool ended;  // nothing comes any more
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void end_if_done(Serve *serve)
{
    if (serve->ending && serve->ended && serve->in_hand == 0) {
        serve->ending = false;
        serve->on_stopped(serve->stopped_ctx);
    }
}

static void answer(const Serve *serve, natsMsg *message, Str payload)
{
    const char *reply = natsMsg_GetReply(message);
    if (reply != NULL) {
        (void)bus_send(serve->bus, reply, NULL, payload); // not connected: it is asked again
    }
}

void serve_take(Serve *serve, void *native)
{
    natsMsg *message = native;
    if (message == NULL) {
        serve->ended = true;
        end_if_done(serve);
        return;
    }
    if (serve->ended) {
        link_discard(serve->bus->link, message); // late, from a lost connection: it is asked again
        return;
    }
    size_t len = (size_t)natsMsg_GetDataLength(message);
    if (serve->in_hand >= serve->options.in_hand_max ||
        serve->bytes + len > serve->options.bytes_max) {
        answer(serve, message, str_from(serve->options.busy));
        link_discard(serve->bus->link, message);
        return;
    }
    Asked *asked = xmalloc(sizeof *asked);
    *asked = (Asked){
        .subject = str_from(natsMsg_GetSubject(message)),
        .payload = str_of(natsMsg_GetData(message), len),
        .native = message,
        .serve = serve};
    serve->in_hand++;
    serve->bytes += len;
    serve->on_asked(serve->ctx, asked);
}

void asked_answer(Asked *asked, Str payload)
{
    Serve *serve = asked->serve;
    answer(serve, asked->native, payload);
    serve->in_hand--;
    serve->bytes -= asked->payload.len;
    link_discard(serve->bus->link, asked->native);
    free(asked);
    end_if_done(serve);
}

bool asked_headers(const Asked *asked, Arena *arena, size_t max, BusHeader **ret, size_t *ret_count)
{
    const char **names = NULL;
    int count = 0;
    *ret = NULL;
    *ret_count = 0;
    if (natsMsgHeader_Keys(asked->native, &names, &count) != NATS_OK || count == 0) {
        free((void *)names);
        return true; // none
    }
    bool fits = (size_t)count <= max;
    BusHeader *headers = arena_array(arena, (size_t)count, sizeof *headers);
    for (int i = 0; fits && i < count; i++) {
        const char *value = NULL;
        (void)natsMsgHeader_Get(asked->native, names[i], &value);
        headers[i] = (BusHeader){names[i], str_from(value)};
    }
    free((void *)names);
    *ret = headers;
    *ret_count = fits ? (size_t)count : 0;
    return fits;
}

Serve *serve_new(Bus *bus, const ServeOptions *options, ServeHandler on_asked, void *ctx)
{
    assert(bus->serve == NULL);
    Serve *serve = xcalloc(1, sizeof *serve);
    serve->bus = bus;
    serve->options = *options;
    serve->on_asked = on_asked;
    serve->ctx = ctx;
    bus->serve = serve;
    link_serve(bus->link, options->subject, options->queue);
    return serve;
}

void serve_stop(Serve *serve, void (*on_stopped)(void *ctx), void *ctx)
{
    serve->ending = true;
    serve->on_stopped = on_stopped;
    serve->stopped_ctx = ctx;
    link_serve_end(serve->bus->link);
}

void serve_free(Serve *serve)
{
    if (serve != NULL) {
        assert(serve->in_hand == 0);
        serve->bus->serve = NULL;
        free(serve);
    }
}
