// SPDX-License-Identifier: Apache-2.0
// The order of things: the reader hands over a batch and is paused; what is wanted of it is kept
// and published as the window, its bytes and the rate allow; when all of it is under way the reader
// goes on. Killed anywhere: the same run started again makes the same ids, which JetStream drops
// within its duplicate window; beyond it each stage does with the second copy what it does with the
// first. (test_replay.py: test_an_interrupted_replay_goes_on_under_the_same_run)
#include "common/replay/replay_run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/bus/consume/reader.h"
#include "common/domain/domain_event.h"
#include "common/replay/replay_room.h"

enum {
    BATCH = 256,                     // messages kept at most
    WINDOW = 4096,                   // publishes in flight
    WINDOW_BYTES = 16 * 1024 * 1024, // of their payloads
    BEAT_MS = 10,                    // pacing
    BEATS_A_LINE = 50,               // progress
    EVENT_HEADERS_MAX = 10,
    SIGNALS = 2,
    HANDLES = SIGNALS + 1,
};

typedef struct Run Run;

// What an event on EVENTS is may stand in its headers alone (common/domain/domain_event.h).
typedef struct EventHeaders {
    BusHeader at[EVENT_HEADERS_MAX];
    size_t count;
} EventHeaders;

// One publish that waits for its ack; a ring of them keeps the order of the sequences.
typedef struct Flight {
    Run *run;
    uint64_t sequence;
    size_t bytes;
    bool done;
} Flight;

struct Run {
    const ReplayPlan *plan;
    Session *session;
    const ReaderKind *readers;
    void *reader;
    ReplayTally *tally;
    Arena *arena;   // of the batch
    Arena *scratch; // of one message
    BusMessage waiting[BATCH];
    EventHeaders waiting_headers[BATCH];
    size_t waiting_count, waiting_at;
    Flight flights[WINDOW];
    size_t head, tail; // head .. tail are in flight; both only grow
    size_t air_bytes;
    uint64_t seen;         // the last sequence looked at
    uint64_t first_failed; // 0: none
    double tokens;
    int64_t filled_us;
    int64_t started_us;
    int beats;
    int closed;
    bool read_all;
    bool stopping;
    bool finished;
    Error err;
    ReplayRoom room;
    uv_timer_t beat;
    uv_signal_t signals[SIGNALS];
};

static void pump(Run *run);

// ---- ending ----

// The first sequence that a continuation has to begin with.
static uint64_t next_sequence(const Run *run)
{
    uint64_t next = run->seen + 1;
    if (run->head < run->tail) {
        next = run->flights[run->head % WINDOW].sequence;
    } else if (run->waiting_at < run->waiting_count) {
        next = run->waiting[run->waiting_at].sequence;
    }
    return run->first_failed > 0 && run->first_failed < next ? run->first_failed : next;
}

static void finish_if_over(Run *run)
{
    bool handled = run->stopping || (run->read_all && run->waiting_at == run->waiting_count);
    if (handled && run->head == run->tail && !run->finished) {
        run->finished = true;
        run->tally->next = next_sequence(run);
        run->tally->complete = run->read_all && !run->stopping;
        session_finish(run->session, run->err.kind != ERROR_NONE ? &run->err : NULL);
    }
}

static void stop(Run *run, const Error *err)
{
    run->stopping = true;
    if (err != NULL && run->err.kind == ERROR_NONE) {
        run->err = *err;
    }
    run->readers->pause(run->reader, true);
    finish_if_over(run);
}

// ---- publishing ----

static void land(Flight *flight, const Error *err, bool duplicate)
{
    Run *run = flight->run;
    ReplayTally *tally = run->tally;
    bool refused = err != NULL && err->kind == ERROR_PERMANENT;
    if (err == NULL) {
        tally->published++;
        tally->duplicates += duplicate ? 1 : 0;
    } else if (refused) {
        tally->refused++; // its like will never be taken; the others are
        fprintf(
            stderr, "stentor: sequence %" PRIu64 " is left out: %s\n", flight->sequence, err->text);
    } else if (run->first_failed == 0 || flight->sequence < run->first_failed) {
        run->first_failed = flight->sequence;
    }
    flight->done = true;
    run->air_bytes -= flight->bytes;
    while (run->head < run->tail && run->flights[run->head % WINDOW].done) {
        run->head++;
    }
    if (err != NULL && !refused) {
        stop(run, err);
    }
    pump(run);
}

static void on_copy_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    land(ctx, err, duplicate);
}

// No stream takes it, so there is no ack to wait for: what the server has not read is lost with the
// connection.
static bool send_elsewhere(Run *run, const BusMessage *message, BusOut *out)
{
    char place[96];
    snprintf(place, sizeof place, "%s/%" PRIu64, run->plan->stream->name, message->sequence);
    BusHeader headers[] = {
        out->headers[0],
        {"Stentor-Subject", message->subject},
        {"Stentor-Sequence", str_from(place)},
    };
    out->subject = run->plan->subject;
    out->headers = headers;
    out->header_count = sizeof headers / sizeof *headers;
    if (bus_send_event(run->session->bus, out)) {
        run->tally->published++;
        return true;
    }
    Error err;
    run->first_failed = message->sequence;
    error_set(
        &err, ERROR_TRANSIENT, "sequence %" PRIu64 " could not be handed to the server",
        message->sequence);
    stop(run, &err);
    return false;
}

static bool publish_one(Run *run, const BusMessage *message, const EventHeaders *event)
{
    char id[REPLAY_ID_SIZE];
    BusHeader headers[1 + EVENT_HEADERS_MAX] = {{BUS_REPLAY_HEADER, str_from(run->plan->run)}};
    BusOut out = {
        .event_id = replay_event_id(run->plan, message, id),
        .payload = message->payload,
        .traceparent = message->traceparent,
        .headers = headers,
        .header_count = 1 + event->count,
    };
    memcpy(headers + 1, event->at, event->count * sizeof *headers);
    if (run->plan->service == NULL) {
        return send_elsewhere(run, message, &out);
    }
    out.subject = arena_cstr(run->scratch, message->subject);
    Flight *flight = &run->flights[run->tail++ % WINDOW];
    *flight = (Flight){run, message->sequence, message->payload.len, false};
    run->air_bytes += flight->bytes;
    replay_room_take(&run->room, flight->bytes);
    bus_publish(run->session->bus, &out, on_copy_acked, flight);
    arena_reset(run->scratch);
    return true;
}

static void fill_tokens(Run *run)
{
    int64_t now_us = clock_mono_us();
    double rate = (double)run->plan->rate;
    double most = rate / 50 > 1 ? rate / 50 : 1; // a burst of 20 ms
    run->tokens += rate * (double)(now_us - run->filled_us) / 1e6;
    run->tokens = run->tokens > most ? most : run->tokens;
    run->filled_us = now_us;
}

static bool has_room(Run *run)
{
    if (run->tail - run->head >= WINDOW || run->air_bytes >= WINDOW_BYTES) {
        return false; // an ack pumps again
    }
    if (run->plan->service != NULL && !replay_room_is_there(&run->room)) {
        return false; // a look pumps again
    }
    return run->plan->rate == 0 || run->tokens >= 1; // else the next beat does
}

static void pump(Run *run)
{
    if (run->plan->rate > 0) {
        fill_tokens(run);
    }
    while (!run->stopping && run->waiting_at < run->waiting_count && has_room(run)) {
        if (!publish_one(
                run, &run->waiting[run->waiting_at], &run->waiting_headers[run->waiting_at])) {
            break;
        }
        run->waiting_at++;
        run->tokens -= run->plan->rate > 0 ? 1 : 0;
    }
    if (!run->stopping && run->waiting_at == run->waiting_count && run->waiting_count > 0) {
        run->waiting_at = run->waiting_count = 0;
        arena_reset(run->arena);
        run->readers->pause(run->reader, run->read_all);
    }
    finish_if_over(run);
}

// ---- reading ----

static void keep_headers(const Run *run, const BusMessage *message, EventHeaders *ret)
{
    static const char *const names[EVENT_HEADERS_MAX] = {
        "content-type", "Content-Type", "Stentor-Type", "ce-specversion",      "ce-id",
        "ce-source",    "ce-type",      "ce-time",      DOMAIN_MADE_ID_HEADER, EVENT_SEALED_HEADER};
    ret->count = 0;
    bool events = strcmp(run->plan->stream->name, "EVENTS") == 0;
    for (size_t i = 0; events && i < EVENT_HEADERS_MAX; i++) {
        Str value = bus_message_header(message, names[i]);
        if (value.len > 0) {
            ret->at[ret->count++] = (BusHeader){names[i], arena_str(run->arena, value)};
        }
    }
}

// What a program outside gets of EVENTS. false: it cannot be opened, and the replay stops before
// it.
static bool open_event(Run *run, BusMessage *message)
{
    Error err = {0};
    EventKeys *keys = run->plan->event_keys;
    if (keys == NULL || event_open(keys, clock_mono_us(), message, run->arena, &err)) {
        return true;
    }
    (void)error_wrap(&err, "sequence %" PRIu64, message->sequence);
    run->first_failed = message->sequence;
    stop(run, &err);
    return false;
}

static void keep(Run *run, const BusMessage *stored)
{
    BusMessage opened = *stored;
    const BusMessage *message = &opened;
    if (!open_event(run, &opened)) {
        return;
    }
    keep_headers(run, message, &run->waiting_headers[run->waiting_count]);
    BusMessage *copy = &run->waiting[run->waiting_count++];
    *copy = *message;
    copy->subject = arena_str(run->arena, message->subject);
    copy->payload = arena_str(run->arena, message->payload);
    copy->event_id = arena_str(run->arena, message->event_id);
    copy->traceparent = arena_str(run->arena, message->traceparent);
    copy->native = NULL;
}

static void end_reading(Run *run)
{
    run->read_all = true;
    run->readers->pause(run->reader, true);
}

static void take_message(Run *run, const BusMessage *message, int64_t now_us)
{
    bool in_end = message->stored_at_us >= run->tally->end_at_us;
    if ((message->sequence > run->tally->end && in_end) || replay_is_past(run->plan, message)) {
        end_reading(run);
        return;
    }
    ReplayVerdict verdict = replay_classify(run->plan, message, now_us, run->scratch);
    arena_reset(run->scratch);
    run->tally->verdicts[verdict]++;
    run->seen = message->sequence;
    if (verdict == REPLAY_TAKE) {
        replay_tally_take(run->tally, message);
        if (!run->plan->dry_run) {
            keep(run, message);
        }
    }
    if (message->sequence == run->tally->end && in_end) {
        end_reading(run);
    }
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Run *run = ctx;
    int64_t now_us = clock_now_us();
    for (size_t i = 0; i < count && !run->read_all && !run->stopping; i++) {
        take_message(run, &messages[i], now_us);
    }
    if (run->waiting_count > 0) {
        run->readers->pause(run->reader, true);
    }
    pump(run);
}

static void on_reader_caught_up(void *ctx)
{
    Run *run = ctx;
    end_reading(run);
    pump(run);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    stop(ctx, err);
}

// ---- beats and signals ----

static void print_progress(const Run *run)
{
    double seconds = (double)(clock_mono_us() - run->started_us) / 1e6;
    uint64_t count = run->plan->dry_run ? run->tally->verdicts[REPLAY_TAKE] : run->tally->published;
    fprintf(
        stderr, "\r%" PRIu64 " at sequence %" PRIu64 " of %" PRIu64 ", %.0f/s ", count, run->seen,
        run->tally->end, seconds > 0 ? (double)count / seconds : 0.0);
}

// What waits in the stream may be removed before it is read, when the clock makes room.
static void look_at_stream(Run *run)
{
    Error err;
    int64_t now_us = clock_mono_us();
    size_t in_flight = run->tail - run->head;
    replay_room_look(&run->room, now_us, run->air_bytes + in_flight * REPLAY_COPY_OVERHEAD);
    if (replay_room_in_vain(&run->room, now_us, &err)) {
        stop(run, &err);
    } else if (
        !run->read_all && run->readers->reads_stream(run->reader) &&
        run->tally->last.sequence > 0 && run->room.first > run->seen + 1) {
        run->tally->removed_before = run->room.first;
    }
}

static void on_timer_beat(uv_timer_t *timer)
{
    Run *run = timer->data;
    if (isatty(STDERR_FILENO) && ++run->beats % BEATS_A_LINE == 0) {
        print_progress(run);
    }
    if (run->plan->service != NULL && !run->stopping) {
        look_at_stream(run);
    }
    pump(run);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    stop(handle->data, NULL);
}

static void start_handles(Run *run)
{
    static const int numbers[SIGNALS] = {SIGINT, SIGTERM};
    uv_timer_init(&run->session->loop, &run->beat);
    run->beat.data = run;
    uv_timer_start(&run->beat, on_timer_beat, BEAT_MS, BEAT_MS);
    for (int i = 0; i < SIGNALS; i++) {
        uv_signal_init(&run->session->loop, &run->signals[i]);
        run->signals[i].data = run;
        uv_signal_start(&run->signals[i], on_signal, numbers[i]);
    }
}

static void on_reader_freed(void *ctx)
{
    Run *run = ctx;
    run->reader = NULL;
    session_finish(run->session, NULL);
}

static void on_handle_closed(uv_handle_t *handle)
{
    Run *run = handle->data;
    if (++run->closed == HANDLES) {
        session_finish(run->session, NULL);
    }
}

// The handles are in `run`, so it may go only when they have closed.
static void end_handles(Run *run)
{
    Error ignored;
    run->session->err = (Error){0};
    if (isatty(STDERR_FILENO)) {
        fputc('\n', stderr);
    }
    run->readers->free(run->reader, on_reader_freed, run);
    while (run->reader != NULL) {
        session_run(run->session, 0, &ignored); // a look at the room ends it too
    }
    uv_close((uv_handle_t *)&run->beat, on_handle_closed);
    for (int i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&run->signals[i], on_handle_closed);
    }
    while (run->closed < HANDLES || run->room.looking) {
        session_run(run->session, 0, &ignored);
    }
}

// ---- the stream ----

// The end is where the stream ends now: a replay never reads its own copies.
static bool find_end(const ReplayPlan *plan, const ReplayRoom *room, ReplayTally *tally, Error *err)
{
    uint64_t first = room->first;
    uint64_t last = room->last;
    if (plan->readers == NULL && plan->from_sequence > 1 && plan->from_sequence < first &&
        plan->stream->max_per_subject != 1) {
        return error_set(
            err, ERROR_PERMANENT,
            "%s begins at sequence %" PRIu64 ": what was before is past its age (HINT: --from-seq "
            "%" PRIu64 ")",
            plan->stream->name, first, first);
    }
    bool given = plan->to_sequence > 0 && plan->to_sequence < last;
    tally->end = given ? plan->to_sequence : last;
    tally->end_at_us = plan->readers != NULL && !given ? room->last_at_us : 0;
    return true;
}

bool replay_run(
    Session *session, const ReplayPlan *plan, Arena *arena, ReplayTally *tally, Error *err)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    ReplayRoom room;
    if (!replay_room_open(&room, session, plan->stream->name, arena, err) ||
        !find_end(plan, &room, tally, err)) {
        return false;
    }
    tally->next = plan->from_sequence;
    if (tally->end == 0 || plan->from_sequence > tally->end) {
        tally->complete = true;
        return true;
    }
    Run *run = xcalloc(1, sizeof *run);
    run->plan = plan;
    run->readers = plan->readers != NULL ? plan->readers : &stream_readers;
    run->session = session;
    run->tally = tally;
    run->room = room;
    run->arena = arena_new(0);
    run->scratch = arena_new(0);
    run->seen = plan->from_sequence > 0 ? plan->from_sequence - 1 : 0;
    run->started_us = run->filled_us = clock_mono_us();
    ReaderOptions options = {
        .stream = plan->stream->name,
        .filter = replay_filter(plan, arena),
        .start_sequence = plan->from_sequence,
        .start_time_us = plan->from_time_us,
        .last_per_subject = plan->last_per_subject,
        .batch_max = BATCH,
    };
    start_handles(run);
    run->reader = run->readers->open(plan->readers_ctx, session->bus, &options, &handlers, run);
    bool ok = true;
    while (ok && !run->finished) {
        ok = session_run(session, 0, err); // a look at the room ends it too
    }
    tally->took_us = clock_mono_us() - run->started_us;
    end_handles(run);
    arena_free(run->arena);
    arena_free(run->scratch);
    free(run);
    return ok;
}
