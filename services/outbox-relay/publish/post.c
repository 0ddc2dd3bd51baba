// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/post.h"

#include "common/base/clock.h"
#include "services/outbox-relay/publish/key_order.h"

// Bytes of one batch in the air: the bus refuses what passes its own window (64 MB), which all the
// batches of a relay share.
enum { WINDOW_BYTES = 6 * 1024 * 1024 };

typedef struct PostBatch PostBatch;

typedef struct Flight {
    PostBatch *batch;
    size_t at;
} Flight;

struct PostBatch {
    PostRun run;
    KeyOrder order;
    Flight *flights;
    size_t in_air;
    size_t bytes;   // of those
    size_t unbegun; // chains that begin before this row are under way
};

static void set_fate(PostBatch *p, size_t at, PostFate fate, const char *reason)
{
    p->run.posts[at].fate = fate;
    p->run.posts[at].reason = arena_str(p->run.arena, str_from(reason));
}

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate);

// Those behind a row that was not stored stay behind it.
static void leave_chain(PostBatch *p, size_t at, const char *reason)
{
    for (; at != KEY_ORDER_NONE; at = p->order.next[at]) {
        if (p->run.posts[at].fate == POST_WAITS) {
            set_fate(p, at, POST_LEFT, reason);
        }
    }
}

// Publishes the first row of the chain that fits.
static void send_chain(PostBatch *p, size_t at)
{
    while (at != KEY_ORDER_NONE && p->run.posts[at].fate != POST_WAITS) {
        at = p->order.next[at];
    }
    if (at == KEY_ORDER_NONE) {
        return;
    }
    if (clock_mono_us() >= *p->run.until_us) {
        leave_chain(p, at, "the relay was too slow: its claim has ended");
        return;
    }
    p->in_air++;
    p->bytes += p->run.posts[at].out.payload.len;
    p->flights[at] = (Flight){.batch = p, .at = at};
    bus_publish(p->run.bus, &p->run.posts[at].out, on_bus_acked, &p->flights[at]);
}

static void begin_chains(PostBatch *p)
{
    for (; p->unbegun < p->run.count && p->bytes < WINDOW_BYTES; p->unbegun++) {
        if (p->order.first[p->unbegun]) {
            send_chain(p, p->unbegun);
        }
    }
}

static void take_answer(PostBatch *p, size_t at, const Error *err)
{
    p->in_air--;
    p->bytes -= p->run.posts[at].out.payload.len;
    if (err == NULL) {
        p->run.posts[at].fate = POST_STORED;
        send_chain(p, p->order.next[at]);
    } else if (err->kind == ERROR_PERMANENT) {
        set_fate(p, at, POST_REFUSED, err->text);
        send_chain(p, p->order.next[at]);
    } else {
        leave_chain(p, at, err->text);
        // What the bus cannot store now it will not store a moment later: the batch is to end.
        for (; p->unbegun < p->run.count; p->unbegun++) {
            if (p->order.first[p->unbegun]) {
                leave_chain(p, p->unbegun, err->text);
            }
        }
    }
    if (p->unbegun < p->run.count) {
        begin_chains(p);
        bus_flush(p->run.bus);
    }
    if (p->in_air == 0) {
        p->run.on_done(p->run.ctx);
    }
}

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    const Flight *flight = ctx;
    flight->batch->run.posts[flight->at].repeated = err == NULL && duplicate;
    take_answer(flight->batch, flight->at, err);
}

static void on_timer_closed(uv_handle_t *handle)
{
    PostBatch *p = handle->data;
    p->run.on_done(p->run.ctx);
}

void post_all(const PostRun *run)
{
    PostBatch *p = arena_zalloc(run->arena, sizeof(*p));
    p->run = *run;
    p->flights = arena_array(run->arena, run->count, sizeof(*p->flights));
    Str *keys = arena_array(run->arena, run->count, sizeof(*keys));
    for (size_t i = 0; i < run->count; i++) {
        keys[i] = run->posts[i].ordering_key;
    }
    key_order_init(&p->order, run->arena, keys, run->count);
    begin_chains(p);
    bus_flush(run->bus);
    if (p->in_air ==
        0) { // nothing was there to publish: the answer comes from the loop all the same
        uv_timer_t *timer = arena_zalloc(p->run.arena, sizeof *timer);
        uv_timer_init(bus_loop(p->run.bus), timer);
        timer->data = p;
        uv_close((uv_handle_t *)timer, on_timer_closed);
    }
}
