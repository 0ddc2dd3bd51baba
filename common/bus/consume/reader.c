// SPDX-License-Identifier: Apache-2.0
// How a read goes: STREAM.INFO (is it still the same stream, is the start still there) ->
// CONSUMER.CREATE (of a name of the service's, no acks, in memory) -> pulls. A gap in the
// consumer's sequence, silence, a lost consumer or a new connection begin again from the last
// sequence handed over + 1, so nothing is skipped and nothing comes twice. There is no state on the
// server that matters, and none here: the caller stores the sequence. (reader_nats_test:
// resumes_after_the_server_restarted)
//
// A sequence alone does not name a message: a server that lost its tail (a power cut before its
// fsync, a store restored from a copy) gives the same sequences to other messages. So the consumer
// begins AT the last message read, and only when that has the time that it had is it passed over
// and the read goes on behind it (CHECKING). Else the log lost its tail, and the read begins again
// by time: whatever the log held before the loss was stored before the last message read, and has
// been read; whatever came after the loss was stored after it, by the server's clock. TAIL_MARGIN
// is for a clock that was set back; what is read twice for it, readers must bear anyway.
// (reader_nats_test: a_lost_tail_is_read_again, one_that_has_grown_past_is_noticed)
//
// The same look at the last message read decides where the server reports another creation time for
// a stream (stream_check.h): with the time that it had, the stream is the same and the new creation
// time is taken over; else the stream is refused. (reader_nats_test, "a stream whose creation time
// the server changes")
#include <stdlib.h>
#include <string.h>

#include "common/bus/consume/presence.h"
#include "common/bus/consume/reader_internal.h"

enum { BATCH_DEFAULT = 512 };

// ---- states ----

bool reader_move(Reader *r, ReaderState next)
{
    if (reader_state_move(&r->state, next, r->stream)) {
        return true;
    }
    reader_restart(r, READER_RETRY_MS);
    return false;
}

void reader_note_progress(Reader *r, bool at_end)
{
    if (at_end && r->progress == READER_BEHIND) {
        (void)reader_progress_move(&r->progress, READER_CAUGHT_UP, r->stream);
    }
}

// ---- reading ----

static bool is_pulling(const Reader *r)
{
    return r->state == READER_READING || r->state == READER_CHECKING;
}

static void pull(Reader *r)
{
    if (!is_pulling(r) || r->paused || !bus_connected(r->bus)) {
        return;
    }
    size_t used = r->asked + r->held_count;
    size_t room = used < r->options.batch_max ? r->options.batch_max - used : 0;
    if (room == 0 || (r->asked > 0 && room < (r->options.batch_max + 1) / 2)) {
        return;
    }
    if (endpoint_pull(r->bus, &r->endpoint, room)) {
        r->heard_ms = bus_now_ms(r->bus);
        r->asked += room;
    }
}

// The first delivery while CHECKING. What the last of each subject replaced is gone rightly, and
// then looks like a loss: reading those few again costs less than a doubt.
static void check_last(Reader *r, const AckSubject *ack)
{
    bool first = ack->consumer_sequence == 1;
    bool there = first && ack->stream_sequence == r->next - 1;
    if (there && ack->stored_at_us == r->last_at_us) {
        if (r->doubted_us != 0) {
            reader_take_over(r, r->doubted_us);
        }
        if (reader_move(r, READER_READING)) {
            r->next_consumer = 2;
            r->lag = ack->pending;
            reader_note_progress(r, ack->pending == 0 || ack->stream_sequence >= r->end);
        }
        return;
    }
    if (first && r->doubted_us != 0) {
        reader_settle_doubt(r, !there);
        return;
    }
    if (first) {
        reader_lose_tail(r);
    } else {
        reader_restart(r, 0);
    }
}

static void handle_delivery(Reader *r, natsMsg *message, const AckSubject *ack)
{
    r->heard_ms = bus_now_ms(r->bus);
    r->asked -= r->asked > 0 ? 1 : 0;
    if (r->state == READER_CHECKING) {
        check_last(r, ack);
        link_discard(r->bus->link, message);
        return;
    }
    bool follows = ack->consumer_sequence == r->next_consumer;
    if (r->state == READER_READING && follows && r->options.last_per_subject &&
        ack->stream_sequence < r->next) {
        link_discard(r->bus->link, message); // handed over before the consumer was recreated
        r->next_consumer++;
        return;
    }
    bool in_order = follows && ack->stream_sequence >= r->next;
    if (r->state != READER_READING || !in_order || r->held_count >= r->options.batch_max) {
        link_discard(r->bus->link, message);
        reader_restart(r, 0); // something between was lost
        return;
    }
    r->next_consumer++;
    r->next = ack->stream_sequence + 1; // what is held is handed over by this reader for certain
    r->last_at_us = ack->stored_at_us;
    r->held[r->held_count++] = (Held){message, *ack};
}

static void on_delivery(void *ctx, natsMsg *message, const AckSubject *ack)
{
    handle_delivery(ctx, message, ack);
}

static void handle_status(Reader *r, int code, int64_t unfilled)
{
    r->heard_ms = bus_now_ms(r->bus);
    if (code == 100) {
        return;
    }
    size_t left = unfilled >= 0 && (size_t)unfilled < r->asked ? (size_t)unfilled : r->asked;
    r->asked -= left;
    if (code != 404 && code != 408) {
        presence_doubt(r->bus->presence);
        reader_restart(r, READER_RETRY_MS); // the consumer is gone, or there is no responder
    }
}

static void on_pull_status(void *ctx, int code, const char *text, int64_t unfilled)
{
    (void)text;
    handle_status(ctx, code, unfilled);
}

// Of what is held.
static size_t next_batch(const Reader *r)
{
    size_t bytes = 0;
    for (size_t i = 0; i < r->held_count; i++) {
        bytes += (size_t)natsMsg_GetDataLength(r->held[i].message);
        if (r->options.batch_bytes > 0 && bytes >= r->options.batch_bytes) {
            return i + 1;
        }
    }
    return r->held_count;
}

static void hand_over(Reader *r)
{
    size_t count = next_batch(r);
    for (size_t i = 0; i < count; i++) {
        bus_message_fill(&r->messages[i], r->held[i].message, &r->held[i].ack);
        r->messages[i].stream = r->spec != NULL ? r->spec->name : r->stream;
    }
    const AckSubject *last = &r->held[count - 1].ack;
    reader_note_progress(r, last->stream_sequence >= r->end || last->pending == 0);
    r->lag = r->held[r->held_count - 1].ack.pending;
    r->held_count -= count;
    r->handlers.on_messages(r->ctx, r->messages, count);
    for (size_t i = 0; i < count; i++) {
        link_discard(r->bus->link, r->held[i].message);
    }
    memmove(r->held, r->held + count, r->held_count * sizeof *r->held);
}

static void on_bus_freed(Reader *r)
{
    void (*on_freed)(void *) = r->on_freed;
    void *ctx = r->freed_ctx;
    reader_drop_consumer(r);
    endpoint_remove(r->bus, &r->endpoint);
    bus_forget_requests(r->bus, r);
    for (size_t i = 0; i < r->held_count; i++) {
        link_discard(r->bus->link, r->held[i].message);
    }
    free(r->held);
    free(r->messages);
    free(r->stream);
    free(r->filter);
    free(r);
    on_freed(ctx);
}

static bool run_turn(Reader *r)
{
    if (r->state == READER_FREEING) {
        on_bus_freed(r);
        return true;
    }
    if (r->state == READER_WAITING && bus_connected(r->bus) &&
        bus_now_ms(r->bus) >= r->retry_at_ms) {
        reader_ask_stream(r);
    }
    while (r->held_count > 0 && !r->paused && r->state != READER_FREEING) {
        hand_over(r);
    }
    if (r->progress == READER_CAUGHT_UP && r->state != READER_FREEING && r->held_count == 0 &&
        reader_progress_move(&r->progress, READER_REPORTED, r->stream)) {
        r->handlers.on_caught_up(r->ctx);
    }
    pull(r);
    r->endpoint.holds = reader_lag(r) > 0; // who is behind does not rest (bus_rest)
    return r->state == READER_FREEING;
}

static bool on_turn(void *ctx)
{
    return run_turn(ctx);
}

static void on_tick(void *ctx, int64_t now_ms)
{
    Reader *r = ctx;
    if (is_pulling(r) && r->asked > 0 && now_ms - r->heard_ms > PULL_SILENCE_MS) {
        reader_restart(r, 0);
    }
}

static void on_link(void *ctx, bool connected)
{
    (void)connected;
    reader_restart(ctx, 0);
}

// ---- start and stop ----

Reader *reader_new(
    Bus *bus, const ReaderOptions *options, const ReaderHandlers *handlers, void *ctx)
{
    static const EndpointHandlers endpoint = {
        on_delivery, on_pull_status, on_turn, on_tick, on_link};
    Reader *r = xcalloc(1, sizeof *r);
    r->bus = bus;
    r->options = *options;
    r->options.batch_max = options->batch_max > 0 ? options->batch_max : BATCH_DEFAULT;
    r->handlers = *handlers;
    r->ctx = ctx;
    r->stream = xstrdup(options->stream);
    r->filter = options->filter != NULL ? xstrdup(options->filter) : NULL;
    r->spec = topology_stream(options->stream);
    bool by_sequence =
        !options->only_new && options->start_time_us == 0 && !options->last_per_subject;
    r->next = by_sequence ? options->start_sequence : 0;
    r->last_at_us = by_sequence && r->next > 1 ? options->last_stored_at_us : 0;
    r->created_us = options->expect_created_us;
    r->held = xcalloc(r->options.batch_max, sizeof *r->held);
    r->messages = xcalloc(r->options.batch_max, sizeof *r->messages);
    r->endpoint.stream = str_from(r->stream);
    endpoint_add(bus, &r->endpoint, &endpoint, r);
    bus_want_turn(bus);
    return r;
}

void reader_pause(Reader *reader, bool paused)
{
    reader->paused = paused;
    bus_want_turn(reader->bus);
}

int64_t reader_stream_created_us(const Reader *reader)
{
    return reader->created_us;
}

uint64_t reader_lag(const Reader *reader)
{
    return reader->lag + reader->held_count;
}

uint64_t reader_tails_lost(const Reader *reader)
{
    return reader->tails_lost;
}

void reader_free(Reader *reader, void (*on_freed)(void *ctx), void *ctx)
{
    if (!reader_move(reader, READER_FREEING)) {
        return; // freed twice: once is enough
    }
    reader->on_freed = on_freed;
    reader->freed_ctx = ctx;
    bus_want_turn(reader->bus);
}
