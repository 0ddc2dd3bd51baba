// SPDX-License-Identifier: Apache-2.0
// A watched group: its mark stands while the loop computes and is away while it sleeps (guard.h).
#include <poll.h>

#include "common/bus/consume/guard/guard_internal.h"
#include "common/bus/jetstream/pub_ack.h"
#include "common/bus/topology/topology.h"

enum {
    AWAKE_MAX_MS = 20,  // a busy loop of a watched group sleeps after so long
    REST_MIN_MS = 20,   // the loop of a watched group sleeps for so long at least, ...
    REST_MAX_MS = 1000, // ... at most, ...
    REST_SHARE = 9,     // ... and so many times as long as the mark stood before
    ASK_NOW_MS = 250,   // for a mark that the loop waits for
};

static bool store_now(Guard *g, Str text)
{
    char subject[SUBJECT_SIZE];
    natsMsg *reply = NULL;
    PubAck ack;
    Error err;
    subject_in_hand(subject, g->bus->service, g->process);
    bool stored =
        link_ask_now(g->bus->link, subject, text, ASK_NOW_MS, &reply) &&
        pub_ack_parse(
            str_of(natsMsg_GetData(reply), (size_t)natsMsg_GetDataLength(reply)), &ack, &err);
    link_discard(g->bus->link, reply);
    return stored;
}

// Without what has a verdict: its answer may have left.
static bool mark_now(Guard *g)
{
    PoisonInput inputs[POISON_GROUP_MAX];
    size_t count = 0;
    Buf text;
    for (size_t i = 0; i < g->batch->count; i++) {
        const DeliveryState *d = &g->batch->deliveries[i];
        if (d->verdict == VERDICT_NONE) {
            inputs[count++] =
                guard_input_of(d->public.message.sequence, d->public.message.stored_at_us);
        }
    }
    buf_init(&text, MARK_BYTES_MAX);
    poison_mark_write(&text, g->owner->spec->stream, g->planned, inputs, count);
    bool stored = store_now(g, buf_view(&text));
    buf_done(&text);
    return stored;
}

static int64_t now_ms(void)
{
    return (int64_t)(uv_hrtime() / 1000000);
}

void guard_watch(Guard *g)
{
    g->watched = true;
    g->rounded = false;
    g->marked_at_ms = now_ms();
}

// However slow machine and server are, the mark stands for a tenth of the time.
static void sleep_well(const Guard *g, struct pollfd *loop, int timeout_ms)
{
    int64_t rest_ms = REST_SHARE * (now_ms() - g->marked_at_ms);
    rest_ms = rest_ms < REST_MIN_MS ? REST_MIN_MS : rest_ms;
    rest_ms = rest_ms > REST_MAX_MS ? REST_MAX_MS : rest_ms;
    (void)poll(NULL, 0, (int)rest_ms);
    if (timeout_ms < 0 || timeout_ms > rest_ms) {
        (void)poll(loop, 1, timeout_ms < 0 ? -1 : timeout_ms - (int)rest_ms);
    }
}

bool guard_rest(Guard *g)
{
    if (g->state != GUARD_IN_HAND || !g->watched) {
        return false;
    }
    struct pollfd loop = {.fd = uv_backend_fd(g->bus->loop), .events = POLLIN};
    int timeout_ms = uv_backend_timeout(g->bus->loop);
    // The loop's own descriptor is readable when it would not sleep. What was started in this round
    // is polled for from the next one on, so one round more goes before.
    g->rounded = !g->rounded;
    bool sleeps = !g->rounded && timeout_ms != 0 && poll(&loop, 1, 0) == 0;
    if (!sleeps && now_ms() - g->marked_at_ms < AWAKE_MAX_MS) {
        return g->rounded;
    }
    if (!store_now(g, STR_EMPTY)) {
        g->watched = false; // as any other group: lifted when the loop has turned for a while
        return false;
    }
    delivery_group_lifted(g->batch, false);
    sleep_well(g, &loop, sleeps ? timeout_ms : 0);
    uv_update_time(g->bus->loop);
    g->rounded = false;
    g->marked_at_ms = now_ms();
    g->watched = mark_now(g);
    return false;
}
