// SPDX-License-Identifier: Apache-2.0
// Marks in the stream IN_HAND: this process's are written, all are read, and those of others are
// stored again without what this process lived over or what is done.
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/bus/consume/guard/guard_internal.h"
#include "common/bus/topology/topology.h"

enum { BLIND_TICKS = 300 }; // no marks are tried for so long after one could not be stored

// ---- writing marks ----

void guard_publish_mark(
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
    };
    // The acks that were sent before are ahead of it: what this process is through with does not
    // come again if it dies next.
    bus_publish(g->bus, &out, on_acked, ctx);
}

// Once until marks can be stored again.
void guard_go_blind(Guard *g, const char *why)
{
    if (!g->is_blind) {
        LOG(LOG_WARN,
            "the guard against poison messages is off, redelivered messages are handled without a "
            "mark "
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
    bus_want_turn(g->bus);
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
    guard_publish_mark(g, r->process, buf_view(&text), &only_this, on_replaced, r);
    buf_done(&text);
    arena_free(arena);
}

void guard_store_acquitted(Guard *g)
{
    if (!g->acquitted) {
        return;
    }
    g->acquitted = false;
    for (size_t i = 0; i < g->marks.count; i++) {
        PoisonMark *mark = &g->marks.at[i];
        if (mark->acquitted && mark->storing) {
            g->acquitted = true; // once the one in flight is stored
        } else if (mark->acquitted) {
            store_acquitted(g, mark);
        }
    }
}

void guard_acquit(Guard *guard, const BusMessage *message)
{
    PoisonInput input = guard_input_of(message->sequence, message->stored_at_us);
    if (guard->marks.count > 0 &&
        poison_acquit(&guard->marks, guard_own(guard), message->stream, &input)) {
        guard->acquitted = true;
        bus_want_turn(guard->bus);
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
            LOG(LOG_WARN, "message in IN_HAND is no mark, ignored",
                log_int("sequence", (int64_t)m->sequence));
        }
        const PoisonMark *mark = poison_marks_find(&g->marks, process_of(m->subject));
        g->acquitted = g->acquitted || (mark != NULL && mark->acquitted);
        g->seen = m->sequence;
    }
    bus_want_turn(g->bus);
}

static void on_marks_read(void *ctx)
{
    Guard *g = ctx;
    g->ready = true;
    bus_want_turn(g->bus);
}

static void on_marks_failed(void *ctx, const Error *err)
{
    Guard *g = ctx;
    g->reader_failed = true;
    g->ready = false;
    g->unready_ticks = 0;
    guard_go_blind(g, err->text);
}

void guard_read_marks(Guard *g)
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
        guard_read_marks(g);
    }
    if (g->on_left != NULL) {
        void (*on_left)(void *) = g->on_left;
        g->on_left = NULL;
        on_left(g->left_ctx);
    }
}

void guard_leave_reader(Guard *g)
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
    if (floor > 0 &&
        poison_marks_through(&g->marks, guard_own(g), w->spec->stream, (uint64_t)floor)) {
        g->acquitted = true;
        bus_want_turn(g->bus);
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
            !str_eq(str_from(mark->process), guard_own(g))) {
            return true;
        }
    }
    return false;
}

// Whoever had an input first may have settled it while the mark of one that had it later stands.
void guard_ask_what_is_done(Guard *g)
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
