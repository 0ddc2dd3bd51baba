// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/post.h"

#include "common/base/clock.h"
#include "services/outbox-relay/publish/key_order.h"

// Bytes of one batch in flight. All batches of a relay share the bus's window of 64 MB, beyond
// which it rejects messages.
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
    size_t in_flight;
    size_t bytes;     // of these
    size_t unstarted; // chains that begin before this row have started
};

static void set_fate(PostBatch *p, size_t at, PostFate fate, const char *reason)
{
    p->run.posts[at].fate = fate;
    p->run.posts[at].reason = arena_str(p->run.arena, str_from(reason));
}

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate);

// Rows behind one that was not stored wait for it.
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
        leave_chain(p, at, "the relay was too slow: its claim has expired");
        return;
    }
    p->in_flight++;
    p->bytes += p->run.posts[at].out.payload.len;
    p->flights[at] = (Flight){.batch = p, .at = at};
    bus_publish(p->run.bus, &p->run.posts[at].out, on_bus_acked, &p->flights[at]);
}

static void begin_chains(PostBatch *p)
{
    for (; p->unstarted < p->run.count && p->bytes < WINDOW_BYTES; p->unstarted++) {
        if (p->order.first[p->unstarted]) {
            send_chain(p, p->unstarted);
        }
    }
}

static void take_answer(PostBatch *p, size_t at, const Error *err)
{
    p->in_flight--;
    p->bytes -= p->run.posts[at].out.payload.len;
    if (err == NULL) {
        p->run.posts[at].fate = POST_STORED;
        send_chain(p, p->order.next[at]);
    } else if (err->kind == ERROR_PERMANENT) {
        set_fate(p, at, POST_REFUSED, err->text);
        send_chain(p, p->order.next[at]);
    } else {
        leave_chain(p, at, err->text);
        // The bus will not store the other rows a moment later either: end the batch.
        for (; p->unstarted < p->run.count; p->unstarted++) {
            if (p->order.first[p->unstarted]) {
                leave_chain(p, p->unstarted, err->text);
            }
        }
    }
    if (p->unstarted < p->run.count) {
        begin_chains(p);
    }
    if (p->in_flight == 0) {
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
    if (p->in_flight == 0) { // nothing to publish: on_done is still called from the loop
        uv_timer_t *timer = arena_zalloc(p->run.arena, sizeof *timer);
        uv_timer_init(bus_loop(p->run.bus), timer);
        timer->data = p;
        uv_close((uv_handle_t *)timer, on_timer_closed);
    }
}
