// SPDX-License-Identifier: Apache-2.0
// How a read starts: is it the same stream, is the start still there, a consumer. And what
// starts it again.
#include <jansson.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/bus/consume/reader_internal.h"
#include "common/bus/consume/stream_check.h"

// INACTIVE_S: after it the names of processes that died are free again, so that a crash loop does
// not use them all up. A pull that waits keeps its consumer, however long it is idle.
enum { INACTIVE_S = 5, CONFIG_MAX = 768 };

static const int64_t TAIL_MARGIN_US = INT64_C(60) * 1000000;

// ---- beginning again ----

// The name is free at once, not only after INACTIVE_S without a pull.
void reader_drop_consumer(Reader *r)
{
    if (r->endpoint.consumer[0] != '\0' && bus_connected(r->bus)) {
        char subject[192];
        snprintf(
            subject, sizeof subject, "$JS.API.CONSUMER.DELETE.%s.%s", r->stream,
            r->endpoint.consumer);
        (void)bus_send(r->bus, subject, NULL, STR_EMPTY);
    }
    r->endpoint.consumer[0] = '\0'; // what it still delivers is dropped
}

void reader_restart(Reader *r, int64_t after_ms)
{
    if (r->state == READER_FAILED || r->state == READER_FREEING) {
        return;
    }
    if (r->state != READER_WAITING) {
        (void)reader_state_move(&r->state, READER_WAITING, r->stream);
    }
    r->retry_at_ms = bus_now_ms(r->bus) + after_ms;
    reader_drop_consumer(r);
    r->asked = 0;
    bus_forget_requests(r->bus, r);
    bus_want_turn(r->bus);
}

static void fail(Reader *r, const Error *err)
{
    if (!reader_move(r, READER_FAILED)) {
        return;
    }
    reader_drop_consumer(r);
    r->handlers.on_failed(r->ctx, err);
}

// Another reader has it. With many names taken a few tries find a free one; with all of them taken
// another reader has to end first.
static void try_another_name(Reader *r)
{
    enum { TRIES = 64 };
    r->names_taken++;
    if (r->names_taken % TRIES == 0) {
        LOG(LOG_WARN,
            "all consumer names of this service's readers are in use, waiting for a free one",
            log_text("stream", r->stream), log_int("names", topology_reader_names(r->stream)),
            log_text("hint", "too many processes of one service, or processes that died lately"));
    }
    reader_restart(r, r->names_taken < TRIES ? 0 : READER_RETRY_MS);
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
            &err, ERROR_PERMANENT, "stream '%s' does not exist (HINT: run 'stentor migrate')",
            r->stream);
        fail(r, &err);
        return false;
    }
    if (code == NAME_IN_USE || code == NOT_THE_SAME || code == EXISTS) {
        try_another_name(r);
        return false;
    }
    LOG(LOG_DEBUG, "reader cannot start, trying again", log_text("stream", r->stream),
        log_text("step", what), log_text("error", text != NULL ? text : "no answer"));
    reader_restart(r, READER_RETRY_MS);
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
    (void)snprintf(
        why, sizeof why,
        "was recreated (created %s; the stored position belongs to the stream created %s)", now,
        then);
    return refuse_log(r, why, err);
}

void reader_take_over(Reader *r, int64_t created_us)
{
    char then[CLOCK_RFC3339_SIZE], now[CLOCK_RFC3339_SIZE];
    clock_format(r->created_us, then);
    clock_format(created_us, now);
    LOG(LOG_INFO, "stream's creation time changed but its messages are the same, reading on",
        log_text("stream", r->stream),
        log_int("read_up_to", r->next > 0 ? (int64_t)r->next - 1 : 0), log_text("created", now),
        log_text("known_as", then));
    r->created_us = created_us;
    r->doubted_us = 0;
}

static bool may_begin_again(const Reader *r, Error *err)
{
    return !r->options.reads_once || r->next <= 1 ||
           error_set(
               err, ERROR_CONFIG,
               "stream '%s' no longer holds the last message read (HINT: start again)", r->stream);
}

// from_us 0: from the stream's beginning.
static void begin_again(Reader *r, int64_t from_us)
{
    r->next = 0;
    r->last_at_us = 0;
    r->options.start_time_us = from_us;
}

// The last message read does not show that the stream is the same. Where it may be gone rightly and
// all can be read again, that is done.
void reader_settle_doubt(Reader *r, bool gone)
{
    Error err;
    bool again = gone && r->last_per_subject;
    if (again ? may_begin_again(r, &err) : refuse_other(r, r->doubted_us, &err)) {
        reader_take_over(r, r->doubted_us);
        begin_again(r, 0);
        reader_restart(r, 0);
    } else {
        fail(r, &err);
    }
}

// ---- CONSUMER.CREATE ----

static int64_t ahead_us(const BusClock *clock)
{
    return clock->server_us - clock->heard_ns / 1000;
}

// The server's clock, from when it says that it made the consumer. One that was there already, an
// earlier process's of the same name, says an older time; so only two that agree count.
static void note_clock(const Reader *r, const json_t *root)
{
    enum { AGREE_US = 2000000 };
    int64_t created_us = 0;
    const char *created = json_string_value(json_object_get(root, "created"));
    json_int_t delivered =
        json_integer_value(json_object_get(json_object_get(root, "delivered"), "consumer_seq"));
    if (delivered > 0 || created == NULL || !clock_parse(str_from(created), &created_us)) {
        return;
    }
    BusClock now = {created_us, r->asked_ns, (int64_t)uv_hrtime()};
    int64_t apart_us = ahead_us(&now) - ahead_us(&r->bus->clock_candidate);
    if (r->bus->clock_candidate.server_us != 0 && apart_us < AGREE_US && apart_us > -AGREE_US) {
        r->bus->clock = now;
    }
    r->bus->clock_candidate = now;
}

static void handle_created(Reader *r, Str reply, const Error *err)
{
    bool at_last = r->state == READER_CREATING_AT_LAST;
    if (!at_last && r->state != READER_CREATING) {
        return; // freed since
    }
    json_t *root = parse(reply, err);
    if (accept_answer(r, root, "consumer")) {
        const char *name = json_string_value(json_object_get(root, "name"));
        note_clock(r, root);
        r->lag = (uint64_t)json_integer_value(json_object_get(root, "num_pending"));
        bool empty = r->lag == 0;
        r->lag -= at_last && !empty ? 1 : 0;
        if (name == NULL ||
            !str_to_c(str_from(name), r->endpoint.consumer, sizeof r->endpoint.consumer)) {
            reader_restart(r, READER_RETRY_MS);
        } else if (empty && r->doubted_us != 0) {
            reader_settle_doubt(r, true);
        } else if (reader_move(r, at_last ? READER_CHECKING : READER_READING)) {
            r->names_taken = 0;
            r->next_consumer = 1;
            r->heard_ms = bus_now_ms(r->bus);
            reader_note_progress(r, empty);
            bus_want_turn(r->bus);
        }
    }
    json_decref(root);
}

static void on_consumer_created(void *ctx, Str reply, const Error *err)
{
    handle_created(ctx, reply, err);
}

// Where the consumer begins. Once something was handed over it is the sequence after it, except for
// the last of each subject: those come again, and handle_delivery() passes over the known ones.
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
        uint64_t first = r->state == READER_CREATING_AT_LAST ? r->next - 1 : r->next;
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
static void create_consumer(Reader *r, bool at_last)
{
    if (!reader_move(r, at_last ? READER_CREATING_AT_LAST : READER_CREATING)) {
        return;
    }
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
    r->asked_ns = (int64_t)uv_hrtime();
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
            "lost messages at its end: it ends at %llu, but %llu was read, at an unknown time",
            (unsigned long long)s->last, (unsigned long long)r->next - 1);
        return refuse_log(r, why, err);
    }
    if (r->next > 1 && s->first > r->next && !s->last_per_subject) {
        (void)snprintf(
            why, sizeof why, "begins at %llu, but %llu was not read yet: retention removed it",
            (unsigned long long)s->first, (unsigned long long)r->next);
        return refuse_log(r, why, err);
    }
    return true;
}

// The messages up to next - 1 are not those that were read. By time, or, where only the last of
// each subject is kept (few messages, and each may be gone rightly), from the beginning.
static bool lose_tail(Reader *r, Error *err)
{
    if (!may_begin_again(r, err)) {
        return false;
    }
    int64_t from_us = r->last_per_subject ? 0 : r->last_at_us - TAIL_MARGIN_US;
    char from[CLOCK_RFC3339_SIZE] = "its beginning";
    if (from_us > 0) {
        clock_format(from_us, from);
    }
    LOG(LOG_WARN, "stream lost its newest messages, reading again from before the loss",
        log_text("stream", r->stream), log_int("read_up_to", (int64_t)r->next - 1),
        log_text("from", from));
    r->tails_lost++;
    begin_again(r, from_us);
    return true;
}

void reader_lose_tail(Reader *r)
{
    Error err;
    if (lose_tail(r, &err)) {
        reader_restart(r, 0);
    } else {
        fail(r, &err);
    }
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
        reader_take_over(r, s->created_us);
        return true;
    case STREAM_LOOK:
        r->doubted_us = s->created_us;
        return !cannot_look || refuse_other(r, s->created_us, err);
    case STREAM_AGAIN:
        if (cannot_look) {
            return refuse_other(r, s->created_us, err);
        }
        if (!may_begin_again(r, err)) {
            return false;
        }
        reader_take_over(r, s->created_us);
        begin_again(r, 0);
        return true;
    case STREAM_OTHER:
        return refuse_other(r, s->created_us, err);
    }
    return false;
}

// Whether the consumer is to begin at the last message read.
static bool plan_start(const Reader *r, const StreamState *s)
{
    if (r->last_at_us == 0 || r->next <= 1) {
        return false;
    }
    // The consumer of the last of each subject cannot begin at a message; what is past its age
    // cannot be looked at.
    return !r->options.last_per_subject && s->first < r->next;
}

static void handle_info(Reader *r, Str reply, const Error *request_err)
{
    StreamState s = {0};
    Error err;
    if (r->state != READER_ASKING) {
        return; // freed since
    }
    json_t *root = parse(reply, request_err);
    bool usable = accept_answer(r, root, "stream");
    if (usable && !stream_state_read(root, &s)) {
        reader_restart(r, READER_RETRY_MS);
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
    bool has_lost_tail = r->last_at_us != 0 && r->next > 1 && r->next > s.last + 1;
    if (has_lost_tail && !lose_tail(r, &err)) {
        fail(r, &err);
        return;
    }
    bool at_last = plan_start(r, &s);
    if (r->progress == READER_NOT_BEGUN) {
        r->end = s.last;
        r->next = r->options.only_new ? s.last + 1 : r->next;
        bool nothing_waits = !at_last && (r->next > s.last || s.first > s.last);
        (void)reader_progress_move(
            &r->progress, nothing_waits ? READER_CAUGHT_UP : READER_BEHIND, r->stream);
    }
    create_consumer(r, at_last);
}

static void on_stream_info(void *ctx, Str reply, const Error *err)
{
    handle_info(ctx, reply, err);
}

void reader_ask_stream(Reader *r)
{
    char subject[160];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", r->stream);
    if (!reader_move(r, READER_ASKING)) {
        return;
    }
    bus_request(r->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_stream_info, r);
}
