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
// and the read goes on behind it (CHECK). Else the log lost its tail, and the read begins again by
// time: whatever the log held before the loss was stored before the last message read, and has been
// read; whatever came after the loss was stored after it, by the server's clock. TAIL_MARGIN is for
// a clock that was set back; what is read twice for it, readers must bear anyway.
// (reader_nats_test: a_lost_tail_is_read_again, one_that_has_grown_past_is_noticed)
//
// The same look at the last message read decides where the server reports another creation time for
// a stream (stream_check.h): with the time that it had, the stream is the same and the new creation
// time is taken over; else the stream is refused. (reader_nats_test, "a stream whose creation time
// the server changes")
#include "common/bus/consume/reader.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/consume/stream_check.h"
#include "common/bus/jetstream/bus_internal.h"
#include "common/bus/topology/topology.h"

// INACTIVE_S: after it the names of processes that died are free again, so that a crash loop does
// not use them all up. A pull that waits keeps its consumer, however long it is idle.
enum { BATCH_DEFAULT = 512, RETRY_MS = 500, INACTIVE_S = 5, CONFIG_MAX = 768 };

static const int64_t TAIL_MARGIN_US = INT64_C(60) * 1000000;

typedef enum ReaderState {
    READER_WAITING,
    READER_ASKING,
    READER_CREATING,
    READER_READING,
    READER_FAILED
} ReaderState;

typedef struct Held {
    natsMsg *message;
    AckSubject ack;
} Held;

struct Reader {
    Bus *bus;
    ReaderOptions options;
    const StreamSpec *spec; // NULL: a stream of somebody else
    char *stream;
    char *filter;
    ReaderHandlers handlers;
    void *ctx;
    Endpoint endpoint;
    ReaderState state;
    int64_t retry_at_ms;
    uint64_t next;         // the first sequence not handed over yet
    int64_t last_at_us;    // when message next - 1 was stored; 0: not known
    bool checking;         // CHECK: the next delivery must be message next - 1
    bool last_per_subject; // the stream keeps no more: what was read may be gone rightly
    uint64_t tails_lost;
    unsigned names_taken;   // tries in a row that met another reader's consumer
    uint64_t next_consumer; // the consumer sequence that must come next
    uint64_t end;           // the stream's last sequence at the start
    bool begun;             // the first STREAM.INFO was read
    int64_t created_us;     // that of the stream that next belongs to; 0: not known
    int64_t doubted_us;     // what the server reports instead, while CHECK decides; 0: no doubt
    uint64_t lag;
    bool caught_up, told;
    bool paused;
    bool freeing;
    size_t asked;
    int64_t heard_ms;
    Held *held; // batch_max: pulls never ask for more than is free here
    BusMessage *messages;
    size_t held_count;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// ---- beginning again ----

// The name is free at once, not only when nobody has pulled for INACTIVE_S.
static void drop_consumer(Reader *r)
{
    if (r->endpoint.consumer[0] != '\0' && bus_connected(r->bus)) {
        char subject[192];
        snprintf(
            subject, sizeof subject, "$JS.API.CONSUMER.DELETE.%s.%s", r->stream,
            r->endpoint.consumer);
        (void)bus_send(r->bus, subject, NULL, STR_EMPTY);
    }
    r->endpoint.consumer[0] = '\0'; // what it still delivers is nobody's
}

static void restart(Reader *r, int64_t after_ms)
{
    if (r->state == READER_FAILED) {
        return;
    }
    r->state = READER_WAITING;
    r->retry_at_ms = bus_now_ms(r->bus) + after_ms;
    drop_consumer(r);
    r->asked = 0;
    bus_forget_requests(r->bus, r);
    bus_again(r->bus);
}

static void fail(Reader *r, const Error *err)
{
    r->state = READER_FAILED;
    drop_consumer(r);
    r->handlers.on_failed(r->ctx, err);
}

// Another reader has it. With many names taken a few tries find a free one; with all of them taken
// somebody has to end first.
static void try_another_name(Reader *r)
{
    enum { TRIES = 64 };
    r->names_taken++;
    if (r->names_taken % TRIES == 0) {
        LOG(LOG_WARN, "no name is free for a reader's consumer, waiting",
            log_text("stream", r->stream), log_int("names", topology_reader_names(r->stream)),
            log_text("hint", "too many processes of one service, or processes that died lately"));
    }
    restart(r, r->names_taken < TRIES ? 0 : RETRY_MS);
}

// false: retried or failed already. `root` holds JetStream's answer.
static bool accept_answer(Reader *r, json_t *root, const char *what)
{
    enum { STREAM_NOT_FOUND = 10059, NAME_IN_USE = 10013, NOT_THE_SAME = 10012, EXISTS = 10148 };
    json_t *error = json_object_get(root, "error");
    if (root != NULL && error == NULL) {
        return true;
    }
    const char *text = json_string_value(json_object_get(error, "description"));
    int code = (int)json_integer_value(json_object_get(error, "err_code"));
    if (code == STREAM_NOT_FOUND) {
        Error err;
        error_set(
            &err, ERROR_PERMANENT, "there is no stream '%s' (HINT: run 'stentor migrate')",
            r->stream);
        fail(r, &err);
        return false;
    }
    if (code == NAME_IN_USE || code == NOT_THE_SAME || code == EXISTS) {
        try_another_name(r);
        return false;
    }
    LOG(LOG_DEBUG, "reader tries again", log_text("stream", r->stream), log_text("step", what),
        log_text("error", text != NULL ? text : "no answer"));
    restart(r, RETRY_MS);
    return false;
}

static json_t *parse(Str reply, const Error *err)
{
    return err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
}

// ---- is it the same stream? ----

static bool refuse_log(const Reader *r, const char *why, Error *err)
{
    const char *remedy = r->options.remedy;
    return error_set(
        err, ERROR_CONFIG, "stream '%s' %s%s%s%s", r->stream, why, remedy != NULL ? " (HINT: " : "",
        remedy != NULL ? remedy : "", remedy != NULL ? ")" : "");
}

static bool refuse_other(const Reader *r, int64_t created_us, Error *err)
{
    char why[160], then[CLOCK_RFC3339_SIZE], now[CLOCK_RFC3339_SIZE];
    clock_format(r->created_us, then);
    clock_format(created_us, now);
    (void)snprintf(why, sizeof why, "was made anew (%s, the stored sequence is of %s)", now, then);
    return refuse_log(r, why, err);
}

static void take_over(Reader *r, int64_t created_us)
{
    char then[CLOCK_RFC3339_SIZE], now[CLOCK_RFC3339_SIZE];
    clock_format(r->created_us, then);
    clock_format(created_us, now);
    LOG(LOG_INFO,
        "the server reports another creation time for the stream, which is the one that was read: "
        "going on",
        log_text("stream", r->stream),
        log_int("read_up_to", r->next > 0 ? (int64_t)r->next - 1 : 0), log_text("created", now),
        log_text("known_as", then));
    r->created_us = created_us;
    r->doubted_us = 0;
}

// from_us 0: from the stream's beginning.
static void begin_again(Reader *r, int64_t from_us)
{
    r->next = 0;
    r->last_at_us = 0;
    r->checking = false;
    r->options.start_time_us = from_us;
}

// The last message read does not show that the stream is the same. Where it may be gone rightly and
// all can be read again, that is done.
static void settle_doubt(Reader *r, bool gone)
{
    Error err;
    if (gone && r->last_per_subject) {
        take_over(r, r->doubted_us);
        begin_again(r, 0);
        restart(r, 0);
    } else {
        (void)refuse_other(r, r->doubted_us, &err);
        fail(r, &err);
    }
}

// ---- CONSUMER.CREATE ----

static void handle_created(Reader *r, Str reply, const Error *err)
{
    json_t *root = parse(reply, err);
    if (accept_answer(r, root, "consumer")) {
        const char *name = json_string_value(json_object_get(root, "name"));
        r->lag = (uint64_t)json_integer_value(json_object_get(root, "num_pending"));
        bool empty = r->lag == 0;
        r->lag -= r->checking && !empty ? 1 : 0;
        if (name == NULL ||
            !str_to_c(str_from(name), r->endpoint.consumer, sizeof r->endpoint.consumer)) {
            restart(r, RETRY_MS);
        } else if (empty && r->doubted_us != 0) {
            settle_doubt(r, true);
        } else {
            r->state = READER_READING;
            r->names_taken = 0;
            r->next_consumer = 1;
            r->heard_ms = bus_now_ms(r->bus);
            r->caught_up = r->caught_up || empty;
            bus_again(r->bus);
        }
    }
    json_decref(root);
}

static void on_consumer_created(void *ctx, Str reply, const Error *err)
{
    handle_created(ctx, reply, err);
}

// Where the consumer begins. Once something was handed over it is the sequence after it, except for
// the last of each subject: those come anew, and handle_delivery() passes over the known ones.
static void describe_start(const Reader *r, json_t *config)
{
    const char *policy = "by_start_sequence";
    if (r->options.last_per_subject) {
        policy = "last_per_subject";
        if (r->filter == NULL) { // which this policy must have
            const char *all = r->spec != NULL ? r->spec->subjects : ">";
            json_object_set_new(config, "filter_subject", json_string(all));
        }
    } else if (r->next == 0 && r->options.start_time_us > 0) {
        char time[CLOCK_RFC3339_SIZE];
        clock_format(r->options.start_time_us, time);
        policy = "by_start_time";
        json_object_set_new(config, "opt_start_time", json_string(time));
    } else {
        uint64_t first = r->checking ? r->next - 1 : r->next;
        json_object_set_new(
            config, "opt_start_seq", json_integer((json_int_t)(first > 0 ? first : 1)));
    }
    json_object_set_new(config, "deliver_policy", json_string(policy));
}

// max_waiting says whose it is: nats-server 2.9 answers a create of a consumer that exists as if it
// were new when nothing differs, and this cannot be changed of one that exists.
static json_t *describe_consumer(const Reader *r, const char *name)
{
    enum { WAITING_MIN = 64, WAITING_SPAN = 4096 };
    uint16_t random;
    random_bytes(&random, sizeof random);
    json_t *config = json_pack(
        "{s:s, s:s, s:b, s:I, s:i, s:i}", "name", name, "ack_policy", "none", "mem_storage", 1,
        "inactive_threshold", (json_int_t)INACTIVE_S * 1000000000, "num_replicas", 1, "max_waiting",
        WAITING_MIN + random % WAITING_SPAN);
    if (r->filter != NULL) {
        json_object_set_new(config, "filter_subject", json_string(r->filter));
    }
    describe_start(r, config);
    return json_pack("{s:s, s:o}", "stream_name", r->stream, "config", config);
}

// The filter stands in the subject too when it is the reader's own: an application's right spells
// it.
static void create_consumer(Reader *r)
{
    char subject[256], name[READER_NAME_SIZE], body[CONFIG_MAX];
    bus_reader_name(r->bus, r->stream, name);
    json_t *request = describe_consumer(r, name);
    size_t len = json_dumpb(request, body, sizeof body, JSON_COMPACT);
    json_decref(request);
    int written = snprintf(
        subject, sizeof subject, "$JS.API.CONSUMER.CREATE.%s.%s%s%s", r->stream, name,
        r->filter != NULL ? "." : "", r->filter != NULL ? r->filter : "");
    if (len == 0 || len > sizeof body || written >= (int)sizeof subject) {
        Error err;
        error_set(&err, ERROR_CONFIG, "reader of '%s': the filter is too long", r->stream);
        fail(r, &err);
        return;
    }
    r->state = READER_CREATING;
    bus_request(r->bus, subject, str_of(body, len), API_TIMEOUT_MS, on_consumer_created, r);
}

// ---- STREAM.INFO ----

// Never continue in silence where something is missing.
static bool check_ends(const Reader *r, const StreamState *s, Error *err)
{
    char why[160];
    if (r->next > s->last + 1 && r->last_at_us == 0) {
        (void)snprintf(
            why, sizeof why,
            "lost its end: it ends at %llu, and %llu was read at a time that is not known",
            (unsigned long long)s->last, (unsigned long long)r->next - 1);
        return refuse_log(r, why, err);
    }
    if (r->next > 1 && s->first > r->next && !s->last_per_subject) {
        (void)snprintf(
            why, sizeof why, "begins at %llu, but %llu was not read yet: it is past its age",
            (unsigned long long)s->first, (unsigned long long)r->next);
        return refuse_log(r, why, err);
    }
    return true;
}

// The messages up to next - 1 are not those that were read. By time, or, where only the last of
// each subject is kept (few messages, and each may be gone rightly), from the beginning.
static void lose_tail(Reader *r)
{
    int64_t from_us = r->last_per_subject ? 0 : r->last_at_us - TAIL_MARGIN_US;
    char from[CLOCK_RFC3339_SIZE] = "its beginning";
    if (from_us > 0) {
        clock_format(from_us, from);
    }
    LOG(LOG_WARN, "the log lost its tail, reading again", log_text("stream", r->stream),
        log_int("read_up_to", (int64_t)r->next - 1), log_text("from", from));
    r->tails_lost++;
    begin_again(r, from_us);
}

// A reader of the last of each subject has a consumer that cannot begin at a message, and whoever
// asked for it asks again when it fails. One that waits for the first new message has read nothing.
static bool check_created(Reader *r, const StreamState *s, Error *err)
{
    bool waits = r->options.only_new && r->last_at_us == 0;
    StreamPlace place = {r->created_us, waits ? 0 : r->next, r->last_at_us};
    StreamVerdict verdict = stream_check(&place, s);
    bool cannot_look = r->options.last_per_subject;
    r->doubted_us = 0;
    switch (verdict) {
    case STREAM_SAME:
        r->created_us = s->created_us;
        return true;
    case STREAM_RENAMED:
        take_over(r, s->created_us);
        return true;
    case STREAM_LOOK:
        r->doubted_us = s->created_us;
        return !cannot_look || refuse_other(r, s->created_us, err);
    case STREAM_AGAIN:
        if (!cannot_look) {
            take_over(r, s->created_us);
            begin_again(r, 0);
            return true;
        }
        return refuse_other(r, s->created_us, err);
    case STREAM_OTHER:
        return refuse_other(r, s->created_us, err);
    }
    return false;
}

static void plan_start(Reader *r, const StreamState *s)
{
    r->checking = false;
    if (r->last_at_us == 0 || r->next <= 1) {
        return;
    }
    if (r->next > s->last + 1) {
        lose_tail(r);
    } else if (!r->options.last_per_subject) { // whose consumer cannot begin at a message
        r->checking = s->first < r->next;      // else it is past its age, and cannot be looked at
    }
}

static void handle_info(Reader *r, Str reply, const Error *request_err)
{
    StreamState s = {0};
    Error err;
    json_t *root = parse(reply, request_err);
    bool usable = accept_answer(r, root, "stream");
    if (usable && !stream_state_read(root, &s)) {
        restart(r, RETRY_MS);
        usable = false;
    }
    json_decref(root);
    if (!usable) {
        return;
    }
    r->last_per_subject = s.last_per_subject;
    if (!check_created(r, &s, &err) || !check_ends(r, &s, &err)) {
        fail(r, &err);
        return;
    }
    plan_start(r, &s);
    if (!r->begun) {
        r->begun = true;
        r->end = s.last;
        r->next = r->options.only_new ? s.last + 1 : r->next;
        r->caught_up = !r->checking && (r->next > s.last || s.first > s.last);
    }
    create_consumer(r);
}

static void on_stream_info(void *ctx, Str reply, const Error *err)
{
    handle_info(ctx, reply, err);
}

static void ask_stream(Reader *r)
{
    char subject[160];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", r->stream);
    r->state = READER_ASKING;
    bus_request(r->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_stream_info, r);
}

// ---- reading ----

static void pull(Reader *r)
{
    if (r->state != READER_READING || r->paused || r->freeing || !bus_connected(r->bus)) {
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

// The first delivery under CHECK. What the last of each subject replaced is gone rightly, and then
// cannot be told from a loss: reading those few again costs less than a doubt.
static void check_last(Reader *r, const AckSubject *ack)
{
    bool first = ack->consumer_sequence == 1;
    bool there = first && ack->stream_sequence == r->next - 1;
    if (there && ack->stored_at_us == r->last_at_us) {
        if (r->doubted_us != 0) {
            take_over(r, r->doubted_us);
        }
        r->checking = false;
        r->next_consumer = 2;
        r->lag = ack->pending;
        r->caught_up = r->caught_up || ack->pending == 0 || ack->stream_sequence >= r->end;
        return;
    }
    if (first && r->doubted_us != 0) {
        settle_doubt(r, !there);
        return;
    }
    if (first) {
        lose_tail(r);
    }
    restart(r, 0);
}

static void handle_delivery(Reader *r, natsMsg *message, const AckSubject *ack)
{
    r->heard_ms = bus_now_ms(r->bus);
    r->asked -= r->asked > 0 ? 1 : 0;
    if (r->state == READER_READING && r->checking) {
        check_last(r, ack);
        natsMsg_Destroy(message);
        return;
    }
    bool follows = ack->consumer_sequence == r->next_consumer;
    if (r->state == READER_READING && follows && r->options.last_per_subject &&
        ack->stream_sequence < r->next) {
        natsMsg_Destroy(message); // handed over before the consumer was made anew
        r->next_consumer++;
        return;
    }
    bool in_order = follows && ack->stream_sequence >= r->next;
    if (r->state != READER_READING || !in_order || r->held_count >= r->options.batch_max) {
        natsMsg_Destroy(message);
        restart(r, 0); // something between was lost
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
        restart(r, RETRY_MS); // the consumer is gone, or nobody answers
    }
}

static void on_pull_status(void *ctx, int code, const char *text, int64_t unfilled)
{
    (void)text;
    handle_status(ctx, code, unfilled);
}

static void hand_over(Reader *r)
{
    size_t count = r->held_count;
    for (size_t i = 0; i < count; i++) {
        bus_message_fill(&r->messages[i], r->held[i].message, &r->held[i].ack);
        r->messages[i].stream = r->spec != NULL ? r->spec->name : r->stream;
    }
    const AckSubject *last = &r->held[count - 1].ack;
    r->lag = last->pending;
    r->caught_up = r->caught_up || last->stream_sequence >= r->end || last->pending == 0;
    r->held_count = 0;
    r->handlers.on_messages(r->ctx, r->messages, count);
    for (size_t i = 0; i < count; i++) {
        natsMsg_Destroy(r->held[i].message);
    }
}

static void on_bus_freed(Reader *r)
{
    void (*on_freed)(void *) = r->on_freed;
    void *ctx = r->freed_ctx;
    drop_consumer(r);
    endpoint_remove(r->bus, &r->endpoint);
    bus_forget_requests(r->bus, r);
    for (size_t i = 0; i < r->held_count; i++) {
        natsMsg_Destroy(r->held[i].message);
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
    if (r->freeing) {
        on_bus_freed(r);
        return true;
    }
    if (r->state == READER_WAITING && bus_connected(r->bus) &&
        bus_now_ms(r->bus) >= r->retry_at_ms) {
        ask_stream(r);
    }
    if (r->held_count > 0 && !r->paused) {
        hand_over(r);
    }
    if (r->caught_up && !r->told && !r->freeing && r->held_count == 0) {
        r->told = true;
        r->handlers.on_caught_up(r->ctx);
    }
    pull(r);
    return r->freeing;
}

static bool on_turn(void *ctx)
{
    return run_turn(ctx);
}

static void on_tick(void *ctx, int64_t now_ms)
{
    Reader *r = ctx;
    if (r->state == READER_READING && r->asked > 0 && now_ms - r->heard_ms > PULL_SILENCE_MS) {
        restart(r, 0);
    }
}

static void on_link(void *ctx, bool connected)
{
    (void)connected;
    restart(ctx, 0);
}

// ---- life ----

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
    bus_again(bus);
    return r;
}

void reader_pause(Reader *reader, bool paused)
{
    reader->paused = paused;
    bus_again(reader->bus);
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
    reader->freeing = true;
    reader->on_freed = on_freed;
    reader->freed_ctx = ctx;
    bus_again(reader->bus);
}
