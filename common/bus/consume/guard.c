// SPDX-License-Identifier: Apache-2.0
// A group's way: FREE -> MARKING (its mark is on its way) -> SYNCING (what others wrote before it
// is being read: only then does the evidence count) -> IN_HAND -> LIFTING -> FREE.
//
// Killed in MARKING or SYNCING: the mark stands though nothing was computed; that is one death too
// many for its inputs, which the next process that lives takes back. Killed in IN_HAND: the
// evidence, but for a watched group while the loop sleeps: no mark, as after LIFTING. Killed in
// LIFTING: the inputs come again, without a mark or with one.
// (guard_nats_test; tests/integration/security/test_finding_13_poison.py, test_crash_points.py)
#include "common/bus/consume/guard.h"

#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/consume/poison.h"
#include "common/bus/consume/reader.h"
#include "common/bus/consume/worker_internal.h"
#include "common/bus/jetstream/pub_ack.h"
#include "common/bus/topology/topology.h"

enum {
    LIFT_TICKS = 3,    // of BUS_TICK_MS: the loop turned for so long, so it waits and does not hang
    SYNC_TICKS = 20,   // then the group goes on without the evidence of others
    READY_TICKS = 50,  // the marks must be read by then, or the first suspects go unguarded
    BLIND_TICKS = 300, // no marks are tried for so long after one could not be stored
    REREAD_TICKS = 50, // after a read that cannot go on (no stream yet)
    ALONE_IS_QUIET = 3,  // deaths from which on the ticks before count as well
    LATE_DELIVERIES = 3, // from which on a group is watched ...
    WATCH_TICKS = 50,    // ... for so long at most
    DRAIN_TICKS = 50,    // what is in hand has so long to go before what is watched alone
    UNWATCHED_TICKS = 9 * WATCH_TICKS, // before the next one without evidence
    AWAKE_MAX_MS = 20,                 // a busy loop of a watched group sleeps after so long
    REST_MIN_MS = 20,    // the loop of a watched group sleeps for so long at least, ...
    REST_MAX_MS = 1000,  // ... at most, ...
    REST_SHARE = 9,      // ... and so many times as long as the mark stood before
    ASK_NOW_MS = 250,    // for a mark that the loop waits for
    THROUGH_FIRST = 10,  // ticks before the first look whether standing marks name what is done
    THROUGH_TICKS = 100, // ... and between looks
    PROCESS_SIZE = 17,
    MARK_BYTES_MAX = 64 + POISON_GROUP_MAX * 44,
};

typedef enum GuardState {
    GUARD_FREE,
    GUARD_MARKING,
    GUARD_SYNCING,
    GUARD_IN_HAND,
    GUARD_LIFTING,
} GuardState;

struct Guard {
    Bus *bus;
    char process[PROCESS_SIZE]; // this one's token
    uint64_t marks_made;        // makes the ids of marks differ
    PoisonMarks marks;          // of this service's processes, as far as they were read
    bool acquitted;             // some mark is to be stored again without an input
    Reader *reader;
    bool ready; // all marks have been read
    bool reader_failed, reader_leaves;
    uint64_t seen;     // IN_HAND was read up to here
    int unready_ticks; // while connected
    int blind_ticks;   // left
    bool is_blind;     // said
    struct Worker *workers[BUS_ENDPOINTS_MAX];
    size_t worker_count, next_worker;
    GuardState state;
    struct Worker *owner; // of the group
    size_t planned;       // the first so many of its suspects
    Batch *batch;         // IN_HAND, LIFTING: handed over; NULL: the group was given up
    uint64_t mark_at;     // SYNCING: the mark's sequence
    int ticks;            // in this state
    int quiet_ticks;      // since first deliveries were handed over
    bool closed;
    bool late;                  // IN_HAND: it is watched when it is not settled soon
    bool watched;               // ... and it is: the mark goes when the loop sleeps
    bool rounded;               // the loop went round once more, so it polls what was begun last
    int64_t marked_at_ms;       // watched: since when the mark stands
    int unwatched_ticks;        // left, in which only what has evidence is watched
    int through_ticks;          // since standing marks were compared with what is done
    void (*on_left)(void *ctx); // waits for the reader's end
    void *left_ctx;
};

static void move(Guard *g, GuardState next)
{
    g->state = next;
    g->ticks = 0;
    bus_again(g->bus);
}

static Str own(const Guard *g)
{
    return str_from(g->process);
}

// ---- writing marks ----

static void publish_mark(
    Guard *g, const char *process, Str text, const BusHeader *header, BusAcked on_acked, void *ctx)
{
    char subject[SUBJECT_SIZE], id[64];
    subject_in_hand(subject, g->bus->service, process);
    snprintf(id, sizeof id, "inhand-%s-%" PRIu64, g->process, ++g->marks_made);
    BusOut out = {
        .subject = subject,
        .event_id = str_from(id),
        .payload = text,
        .headers = header,
        .header_count = header != NULL ? 1 : 0,
        .after_acks = true, // what this process is through with does not come again if it dies next
    };
    bus_publish(g->bus, &out, on_acked, ctx);
}

// Once until marks can be stored again.
static void go_blind(Guard *g, const char *why)
{
    if (!g->is_blind) {
        LOG(LOG_WARN,
            "no guard against poison messages: what comes again is handed over without a mark "
            "(HINT: stentor doctor)",
            log_text("error", why));
    }
    g->is_blind = true;
    g->blind_ticks = BLIND_TICKS;
}

// ---- other processes' marks without what this one lived over ----

typedef struct Replacement {
    Guard *guard;
    uint64_t at; // the mark that it takes the place of
    char process[80];
} Replacement;

static void end_replacement(const Replacement *r, const Error *err, uint64_t sequence)
{
    Guard *g = r->guard;
    PoisonMark *mark = poison_marks_find(&g->marks, str_from(r->process));
    if (mark == NULL || mark->at > r->at) {
        return; // a newer one was read, and has its own replacement if it needs one
    }
    mark->storing = false;
    if (err == NULL) {
        mark->at = sequence > mark->at ? sequence : mark->at;
    } else {
        // PERMANENT: there is a newer one, which is being read.
        mark->acquitted = err->kind == ERROR_TRANSIENT;
        g->acquitted = g->acquitted || mark->acquitted;
    }
    if (err == NULL && mark->count == 0) {
        poison_marks_drop(&g->marks, mark);
    }
    bus_again(g->bus);
}

static void on_replaced(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)duplicate;
    end_replacement(ctx, err, sequence);
    free(ctx);
}

static void store_acquitted(Guard *g, PoisonMark *mark)
{
    Buf text;
    Arena *arena = arena_new(256);
    Replacement *r = xcalloc(1, sizeof *r);
    r->guard = g;
    r->at = mark->at;
    snprintf(r->process, sizeof r->process, "%s", mark->process);
    mark->acquitted = false;
    mark->storing = true;
    buf_init(&text, MARK_BYTES_MAX);
    poison_mark_write(&text, mark->stream, mark->size, mark->inputs, mark->count);
    BusHeader only_this = bus_replaces(mark->at, arena);
    publish_mark(g, r->process, buf_view(&text), &only_this, on_replaced, r);
    buf_done(&text);
    arena_free(arena);
}

static void store_all_acquitted(Guard *g)
{
    if (!g->acquitted) {
        return;
    }
    g->acquitted = false;
    for (size_t i = 0; i < g->marks.count; i++) {
        PoisonMark *mark = &g->marks.at[i];
        if (mark->acquitted && mark->storing) {
            g->acquitted = true; // once the one in the air is stored
        } else if (mark->acquitted) {
            store_acquitted(g, mark);
        }
    }
}

static PoisonInput input_of(uint64_t sequence, int64_t stored_at_us)
{
    return (PoisonInput){sequence, stored_at_us};
}

void guard_acquit(Guard *guard, const BusMessage *message)
{
    PoisonInput input = input_of(message->sequence, message->stored_at_us);
    if (guard->marks.count > 0 &&
        poison_acquit(&guard->marks, own(guard), message->stream, &input)) {
        guard->acquitted = true;
        bus_again(guard->bus);
    }
}

// ---- reading marks ----

static Str process_of(Str subject)
{
    Str token = STR_EMPTY;
    while (str_split(&subject, '.', &token)) {
        continue;
    }
    return token;
}

static void on_marks(void *ctx, const BusMessage *messages, size_t count)
{
    Guard *g = ctx;
    for (size_t i = 0; i < count; i++) {
        const BusMessage *m = &messages[i];
        if (!poison_marks_put(&g->marks, process_of(m->subject), m->sequence, m->payload)) {
            LOG(LOG_WARN, "not a mark of what is in hand, passed over",
                log_int("sequence", (int64_t)m->sequence));
        }
        const PoisonMark *mark = poison_marks_find(&g->marks, process_of(m->subject));
        g->acquitted = g->acquitted || (mark != NULL && mark->acquitted);
        g->seen = m->sequence;
    }
    bus_again(g->bus);
}

static void on_marks_read(void *ctx)
{
    Guard *g = ctx;
    g->ready = true;
    bus_again(g->bus);
}

static void on_marks_failed(void *ctx, const Error *err)
{
    Guard *g = ctx;
    g->reader_failed = true;
    g->ready = false;
    g->unready_ticks = 0;
    go_blind(g, err->text);
}

static void read_marks(Guard *g)
{
    static const ReaderHandlers handlers = {on_marks, on_marks_read, on_marks_failed};
    char filter[SUBJECT_SIZE];
    subject_in_hand(filter, g->bus->service, "*");
    poison_marks_done(&g->marks);
    g->seen = 0;
    g->ready = false;
    g->reader_failed = false;
    g->unready_ticks = 0;
    g->reader = reader_new(
        g->bus, &(ReaderOptions){.stream = "IN_HAND", .filter = filter, .last_per_subject = true},
        &handlers, g);
}

static void on_reader_left(void *ctx)
{
    Guard *g = ctx;
    g->reader_leaves = false;
    g->reader = NULL;
    if (g->worker_count > 0) {
        read_marks(g);
    }
    if (g->on_left != NULL) {
        void (*on_left)(void *) = g->on_left;
        g->on_left = NULL;
        on_left(g->left_ctx);
    }
}

static void leave_reader(Guard *g)
{
    if (!g->reader_leaves) {
        g->reader_leaves = true;
        g->ready = false;
        reader_free(g->reader, on_reader_left, g);
    }
}

// ---- marks of what is done ----

static void end_marks_through(struct Worker *w, Str reply, const Error *err)
{
    Guard *g = w->guard;
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    json_int_t floor =
        json_integer_value(json_object_get(json_object_get(root, "ack_floor"), "stream_seq"));
    if (floor > 0 && poison_marks_through(&g->marks, own(g), w->spec->stream, (uint64_t)floor)) {
        g->acquitted = true;
        bus_again(g->bus);
    }
    json_decref(root);
}

static void on_floor(void *ctx, Str reply, const Error *err)
{
    end_marks_through(ctx, reply, err);
}

static bool has_marks(const Guard *g, const char *stream)
{
    for (size_t i = 0; i < g->marks.count; i++) {
        const PoisonMark *mark = &g->marks.at[i];
        if (str_eq(str_from(mark->stream), str_from(stream)) &&
            !str_eq(str_from(mark->process), own(g))) {
            return true;
        }
    }
    return false;
}

// Whoever had an input first may have settled it while the mark of one that had it later stands.
static void ask_what_is_done(Guard *g)
{
    char subject[160];
    g->through_ticks = 0;
    for (size_t i = 0; i < g->worker_count; i++) {
        struct Worker *w = g->workers[i];
        if (has_marks(g, w->spec->stream)) {
            snprintf(
                subject, sizeof subject, "$JS.API.CONSUMER.INFO.%s.%s", w->spec->stream,
                w->spec->name);
            bus_request(g->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_floor, w);
        }
    }
}

// ---- choosing a group ----

static PoisonEvidence evidence_of(const Guard *g, const struct Worker *w, size_t i)
{
    const Arrived *arrived = waiting_at(&w->suspects, i);
    PoisonInput input = input_of(arrived->ack.stream_sequence, arrived->ack.stored_at_us);
    return poison_evidence(&g->marks, own(g), w->spec->stream, &input);
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

// ---- the group's way ----

static void set_free(Guard *g)
{
    if (g->owner != NULL) {
        bus_again(g->bus); // it may wait to stop
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
        go_blind(g, err->text); // the mark stands until the next one: at worst one death too many
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
    publish_mark(g, g->process, STR_EMPTY, NULL, on_lifted, g);
}

static void end_marking(Guard *g, const Error *err, uint64_t sequence)
{
    if (err != NULL) {
        if (err->kind != ERROR_CANCELLED) {
            go_blind(g, err->text);
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
        inputs[i] = input_of(ack->stream_sequence, ack->stored_at_us);
    }
    buf_init(&text, MARK_BYTES_MAX);
    poison_mark_write(&text, w->spec->stream, count, inputs, count);
    g->owner = w;
    g->planned = count;
    move(g, GUARD_MARKING);
    publish_mark(g, g->process, buf_view(&text), NULL, on_marked, g);
    buf_done(&text);
}

static bool may_mark(const Guard *g)
{
    return g->blind_ticks == 0 && g->unready_ticks < READY_TICKS && !g->reader_failed;
}

static void plan(Guard *g)
{
    uint32_t deaths = 0;
    struct Worker *w = next_owner(g);
    g->closed = false;
    if (w == NULL) {
        return;
    }
    if (!may_mark(g)) {
        worker_hand_over(w, &w->suspects, w->options.batch_max);
        bus_again(g->bus);
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

static void quarantine(Guard *g, struct Worker *w, const PoisonEvidence *evidence)
{
    g->batch = worker_take_group(w, 1);
    move(g, GUARD_IN_HAND);
    delivery_quarantine(g->batch, evidence->deaths);
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
        quarantine(g, w, &first);
        return;
    }
    g->late =
        synced && is_late(w, g->planned) && (deaths < ALONE_IS_QUIET || nothing_is_in_hand(g));
    g->batch = worker_take_group(w, g->planned);
    move(g, GUARD_IN_HAND);
    worker_hand_group(w, g->batch);
}

// ---- a watched group: the mark stands while the loop computes ----

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
    natsMsg_Destroy(reply);
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
            inputs[count++] = input_of(d->public.message.sequence, d->public.message.stored_at_us);
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

// The loop's own descriptor is readable when it would not sleep. What was begun in this round is
// polled for from the next one on, so one round more goes before.
static bool would_sleep(Guard *g, struct pollfd *loop, int timeout_ms)
{
    g->rounded = !g->rounded;
    return !g->rounded && timeout_ms != 0 && poll(loop, 1, 0) == 0;
}

bool guard_rest(Guard *g)
{
    if (g->state != GUARD_IN_HAND || !g->watched) {
        return false;
    }
    struct pollfd loop = {.fd = uv_backend_fd(g->bus->loop), .events = POLLIN};
    int timeout_ms = uv_backend_timeout(g->bus->loop);
    bool sleeps = would_sleep(g, &loop, timeout_ms);
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

// ---- the turn ----

// Most groups are settled before they would be watched, which slows the process.
static void look_after_group(Guard *g)
{
    bool may_be = g->late && (g->closed || g->unwatched_ticks == 0); // closed: it has evidence
    if (may_be && g->ticks == LIFT_TICKS) {
        g->late = false;
        g->unwatched_ticks = UNWATCHED_TICKS;
        g->watched = true;
        g->rounded = false;
        g->marked_at_ms = now_ms();
    }
    if (g->batch->undecided == 0 || g->ticks >= (g->watched ? WATCH_TICKS : LIFT_TICKS)) {
        lift(g);
    }
}

void guard_turn(Guard *g)
{
    store_all_acquitted(g);
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
        ask_what_is_done(g);
    }
    g->unwatched_ticks -= g->unwatched_ticks > 0 ? 1 : 0;
    g->blind_ticks -= g->blind_ticks > 0 ? 1 : 0;
    g->unready_ticks += !g->ready && bus_connected(g->bus) ? 1 : 0;
    if (g->unready_ticks == READY_TICKS && !g->reader_failed) {
        go_blind(g, "the marks of what is in hand cannot be read");
    }
    if (g->reader_failed && g->unready_ticks >= REREAD_TICKS) {
        leave_reader(g);
    }
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

// ---- life ----

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
        read_marks(g);
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
    leave_reader(g);
}

void guard_free(Guard *g)
{
    if (g != NULL) {
        poison_marks_done(&g->marks);
        free(g);
    }
}
