// SPDX-License-Identifier: Apache-2.0
// A group's states: FREE -> MARKING (its mark is on its way) -> SYNCING (what others wrote before
// it is being read: only then does the evidence count) -> IN_HAND -> LIFTING -> FREE.
//
// Killed in MARKING or SYNCING: the mark stands though nothing was computed; that is one death too
// many for its inputs, which the next process that survives them takes back. Killed in IN_HAND: the
// evidence, but for a watched group while the loop sleeps: no mark, as after LIFTING. Killed in
// LIFTING: the inputs come again, without a mark or with one.
// (guard_nats_test; tests/integration/security/test_finding_13_poison.py, test_crash_points.py)
#include <stdlib.h>

#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/bus/consume/guard/guard_internal.h"

enum {
    LIFT_TICKS = 3,    // of BUS_TICK_MS: the loop turned for so long, so it waits and does not hang
    SYNC_TICKS = 20,   // then the group goes on without the evidence of others
    READY_TICKS = 50,  // the marks must be read by then, or the first suspects go unguarded
    REREAD_TICKS = 50, // after a read that cannot go on (no stream yet)
    ALONE_IS_QUIET = 3,  // deaths from which on the ticks before count as well
    LATE_DELIVERIES = 3, // from which on a group is watched ...
    WATCH_TICKS = 50,    // ... for so long at most
    DRAIN_TICKS = 50,    // what is in hand has so long to go before what is watched alone
    UNWATCHED_TICKS = 9 * WATCH_TICKS, // before the next one without evidence
    THROUGH_FIRST = 10,  // ticks before the first look whether standing marks name what is done
    THROUGH_TICKS = 100, // ... and between looks
};

static void move(Guard *g, GuardState next)
{
    g->state = next;
    g->ticks = 0;
    bus_want_turn(g->bus);
}

// ---- choosing a group ----

static PoisonEvidence evidence_of(const Guard *g, const struct Worker *w, size_t i)
{
    const Arrived *arrived = waiting_at(&w->suspects, i);
    PoisonInput input = guard_input_of(arrived->ack.stream_sequence, arrived->ack.stored_at_us);
    return poison_evidence(&g->marks, guard_own(g), w->spec->stream, &input);
}

// How many from the front may go together; *ret_deaths: the most that one of them has.
static size_t choose(const Guard *g, const struct Worker *w, uint32_t *ret_deaths)
{
    size_t count = 0;
    uint32_t most = 0;
    while (count < w->suspects.count && count < w->options.batch_max) {
        uint32_t deaths = evidence_of(g, w, count).deaths;
        uint32_t worst = deaths > most ? deaths : most;
        if (count >= poison_group_max(worst)) {
            break;
        }
        most = worst;
        count++;
    }
    *ret_deaths = most;
    return count;
}

static bool is_late(const struct Worker *w, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (waiting_at(&w->suspects, i)->ack.delivered >= LATE_DELIVERIES) {
            return true;
        }
    }
    return false;
}

static bool nothing_is_in_hand(const Guard *g)
{
    for (size_t i = 0; i < g->worker_count; i++) {
        if (g->workers[i]->in_flight > 0) {
            return false;
        }
    }
    return true;
}

// What was handed over before must not be what kills.
static bool is_quiet(const Guard *g, uint32_t deaths, bool late)
{
    return deaths < ALONE_IS_QUIET || (g->quiet_ticks >= LIFT_TICKS &&
                                       (!late || nothing_is_in_hand(g) || g->ticks >= DRAIN_TICKS));
}

static bool can_take(const struct Worker *w)
{
    return w->state == WORKER_RUNNING && !w->paused && w->suspects.count > 0;
}

static struct Worker *next_owner(Guard *g)
{
    for (size_t i = 0; i < g->worker_count; i++) {
        struct Worker *w = g->workers[(g->next_worker + i) % g->worker_count];
        if (can_take(w)) {
            g->next_worker = (g->next_worker + i + 1) % g->worker_count;
            return w;
        }
    }
    return NULL;
}

// ---- a group's states ----

static void set_free(Guard *g)
{
    if (g->owner != NULL) {
        bus_want_turn(g->bus); // it may wait to stop
    }
    g->owner = NULL;
    g->batch = NULL;
    g->planned = 0;
    g->late = false;
    g->watched = false;
    move(g, GUARD_FREE);
}

static void end_lifting(Guard *g, const Error *err)
{
    Batch *batch = g->batch;
    if (err != NULL && err->kind != ERROR_CANCELLED) {
        guard_go_blind(
            g, err->text); // the mark stands until the next one: at worst one death too many
    }
    CRASH_POINT_IF("guard.lifted", batch != NULL);
    set_free(g);
    if (batch != NULL) {
        delivery_group_lifted(batch, true);
    }
}

static void on_lifted(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    end_lifting(ctx, err);
}

static void lift(Guard *g)
{
    move(g, GUARD_LIFTING);
    guard_publish_mark(g, g->process, STR_EMPTY, NULL, on_lifted, g);
}

static void end_marking(Guard *g, const Error *err, uint64_t sequence)
{
    if (err != NULL) {
        if (err->kind != ERROR_CANCELLED) {
            guard_go_blind(g, err->text);
        }
        set_free(g);
        return;
    }
    g->is_blind = false;
    g->mark_at = sequence;
    move(g, GUARD_SYNCING);
}

static void on_marked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)duplicate;
    end_marking(ctx, err, sequence);
}

static void mark(Guard *g, struct Worker *w, size_t count)
{
    PoisonInput inputs[POISON_GROUP_MAX];
    Buf text;
    for (size_t i = 0; i < count; i++) {
        const AckSubject *ack = &waiting_at(&w->suspects, i)->ack;
        inputs[i] = guard_input_of(ack->stream_sequence, ack->stored_at_us);
    }
    buf_init(&text, MARK_BYTES_MAX);
    poison_mark_write(&text, w->spec->stream, count, inputs, count);
    g->owner = w;
    g->planned = count;
    move(g, GUARD_MARKING);
    guard_publish_mark(g, g->process, buf_view(&text), NULL, on_marked, g);
    buf_done(&text);
}

static void plan(Guard *g)
{
    uint32_t deaths = 0;
    struct Worker *w = next_owner(g);
    g->closed = false;
    if (w == NULL) {
        return;
    }
    if (g->blind_ticks > 0 || g->unready_ticks >= READY_TICKS || g->reader_failed) {
        worker_hand_over(w, &w->suspects, w->options.batch_max);
        bus_want_turn(g->bus);
        return;
    }
    if (!g->ready) {
        return; // in a moment
    }
    size_t count = choose(g, w, &deaths);
    g->closed = deaths > 0;
    if (is_quiet(g, deaths, is_late(w, count))) {
        mark(g, w, count);
    }
}

static void judge(Guard *g)
{
    struct Worker *w = g->owner;
    bool synced = g->seen >= g->mark_at;
    uint32_t deaths = 0;
    CRASH_POINT("guard.marked");
    // It stops, or others' marks have come meanwhile: a smaller group, with a mark of its own.
    if (!can_take(w) || w->suspects.count < g->planned || choose(g, w, &deaths) < g->planned) {
        lift(g);
        return;
    }
    PoisonEvidence first = evidence_of(g, w, 0);
    if (g->planned == 1 && synced && poison_is_proven(&first)) {
        g->batch = worker_take_group(w, 1);
        move(g, GUARD_IN_HAND);
        delivery_quarantine(g->batch, first.deaths);
        return;
    }
    g->late =
        synced && is_late(w, g->planned) && (deaths < ALONE_IS_QUIET || nothing_is_in_hand(g));
    g->batch = worker_take_group(w, g->planned);
    move(g, GUARD_IN_HAND);
    worker_hand_group(w, g->batch);
}

// ---- the turn ----

// Most groups are settled before they would be watched, which slows the process.
static void look_after_group(Guard *g)
{
    bool may_be = g->late && (g->closed || g->unwatched_ticks == 0); // closed: it has evidence
    if (may_be && g->ticks == LIFT_TICKS) {
        g->late = false;
        g->unwatched_ticks = UNWATCHED_TICKS;
        guard_watch(g);
    }
    if (g->batch->undecided == 0 || g->ticks >= (g->watched ? WATCH_TICKS : LIFT_TICKS)) {
        lift(g);
    }
}

void guard_turn(Guard *g)
{
    guard_store_acquitted(g);
    switch (g->state) {
    case GUARD_FREE:
        plan(g);
        break;
    case GUARD_SYNCING:
        if (g->seen >= g->mark_at || g->ticks >= SYNC_TICKS) {
            judge(g);
        }
        break;
    case GUARD_IN_HAND:
        look_after_group(g);
        break;
    case GUARD_MARKING:
    case GUARD_LIFTING:
        break;
    }
}

void guard_tick(Guard *g)
{
    g->ticks++;
    g->quiet_ticks++;
    if (++g->through_ticks >= THROUGH_TICKS && bus_connected(g->bus)) {
        guard_ask_what_is_done(g);
    }
    g->unwatched_ticks -= g->unwatched_ticks > 0 ? 1 : 0;
    g->blind_ticks -= g->blind_ticks > 0 ? 1 : 0;
    g->unready_ticks += !g->ready && bus_connected(g->bus) ? 1 : 0;
    if (g->unready_ticks == READY_TICKS && !g->reader_failed) {
        guard_go_blind(g, "cannot read the marks in stream IN_HAND, trying again");
    }
    if (g->reader_failed && g->unready_ticks >= REREAD_TICKS) {
        guard_leave_reader(g);
    }
}

bool guard_is_still(const Guard *g)
{
    return g->state == GUARD_FREE && g->ready && !g->closed && g->blind_ticks == 0 &&
           g->through_ticks < THROUGH_TICKS - THROUGH_FIRST;
}

bool guard_is_closed(const Guard *g)
{
    return g->closed;
}

void guard_note_hand_over(Guard *g)
{
    g->quiet_ticks = 0;
}

bool guard_holds(const Guard *g, const struct Worker *worker)
{
    return g->state != GUARD_FREE && g->owner == worker;
}

// ---- start and stop ----

void guard_join(Bus *bus, struct Worker *worker)
{
    if (bus->guard == NULL) {
        uint8_t random[(PROCESS_SIZE - 1) / 2];
        Guard *g = xcalloc(1, sizeof *g);
        g->bus = bus;
        g->through_ticks = THROUGH_TICKS - THROUGH_FIRST;
        random_bytes(random, sizeof random);
        hex_encode(random, sizeof random, g->process);
        bus->guard = g;
    }
    Guard *g = bus->guard;
    if (g->reader == NULL) {
        guard_read_marks(g);
    }
    g->workers[g->worker_count++] = worker; // each has an endpoint, so there is room
    worker->guard = g;
}

void guard_leave(Guard *g, struct Worker *worker, void (*on_left)(void *ctx), void *ctx)
{
    size_t i = 0;
    while (g->workers[i] != worker) {
        i++;
    }
    g->workers[i] = g->workers[--g->worker_count];
    g->next_worker = 0;
    if (g->worker_count > 0) {
        on_left(ctx);
        return;
    }
    g->on_left = on_left;
    g->left_ctx = ctx;
    guard_leave_reader(g);
}

void guard_free(Guard *g)
{
    if (g != NULL) {
        poison_marks_done(&g->marks);
        free(g);
    }
}
