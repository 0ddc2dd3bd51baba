// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/dead_trim.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/bus/consume/reader.h"
#include "common/bus/topology/topology.h"
#include "common/bus/topology/trim.h"
#include "common/deadletter/letter.h"
#include "common/deadletter/store.h"

enum {
    TIMEOUT_MS = 5000,
    REMOVED_MAX = 10000, // in one pass
    READ_MAX = 50000,
    READ_BATCH = 64,
    WINDOW = 64,      // deletions in flight
    SUBJECTS_MAX = 4, // looked at in one pass
    STALL_MS = 10000, // without a letter, when a read is given up
};

typedef struct Subject {
    char name[SUBJECT_SIZE];
    uint64_t letters;
} Subject;

typedef struct Pass {
    Bus *bus;
    bool removes;
    DeadTrim result;
    DeadTrimDone on_done;
    void *ctx;
    DeadState state;
    Subject fullest[SUBJECTS_MAX + 1]; // the fullest first; the last one only for its number
    size_t at;                         // the one in hand
    uint64_t wanted, read, read_before;
    Reader *reader;
    uv_timer_t stall;
    Arena *arena; // of the letter in hand
    uint64_t *sequences;
    size_t count, next, in_flight;
    Error failure;
} Pass;

uint64_t dead_trim_wanted(const DeadState *state)
{
    uint64_t limit = state->max_bytes / 100 * TRIM_TO_PERCENT;
    if (state->messages == 0 || state->max_bytes == 0 ||
        state->bytes <= state->max_bytes / 100 * TRIM_FROM_PERCENT) {
        return 0;
    }
    // By the average size; letters of unequal size need another pass.
    uint64_t average = state->bytes / state->messages > 0 ? state->bytes / state->messages : 1;
    uint64_t excess = (state->bytes - limit) / average + 1;
    uint64_t lead = state->first > state->second ? state->first - state->second : 0;
    uint64_t share = lead > state->first / 4 ? lead : state->first / 4 + 1;
    uint64_t wanted = excess < share ? excess : share;
    return wanted < REMOVED_MAX ? wanted : REMOVED_MAX;
}

static void on_timer_closed(uv_handle_t *handle)
{
    Pass *pass = handle->data;
    pass->on_done(
        pass->ctx, &pass->result, pass->failure.kind != ERROR_NONE ? &pass->failure : NULL);
    arena_free(pass->arena);
    free(pass->sequences);
    free(pass);
}

static void log_result(const Pass *pass)
{
    static const char *const hint = "stentor dlq list shows what there is; resend or drop it";
    if (pass->result.removed > 0) {
        LOG(LOG_WARN, "DEAD is nearly full: the oldest letters of its fullest subject are gone",
            log_text("subject", pass->fullest[pass->at].name),
            log_int("letters", (int64_t)pass->result.removed), log_text("hint", hint));
    } else if (pass->result.stuck) {
        LOG(LOG_WARN,
            "DEAD is nearly full of letters whose notification has no end: none may be removed, "
            "and when it is full every service with a letter to write waits",
            log_text("subject", pass->fullest[0].name),
            log_int("letters", (int64_t)pass->fullest[0].letters), log_text("hint", hint));
    }
}

static void finish(Pass *pass)
{
    pass->result.stuck =
        pass->removes && pass->wanted > 0 && pass->count == 0 && pass->failure.kind == ERROR_NONE;
    log_result(pass);
    uv_close((uv_handle_t *)&pass->stall, on_timer_closed);
}

// ---- removing ----

static void delete_more(Pass *pass);

static void on_deleted(void *ctx, Str reply, const Error *err)
{
    Pass *pass = ctx;
    Error refusal = {0};
    pass->in_flight--;
    if (err == NULL && letter_deleted(reply, &refusal)) {
        pass->result.removed++;
    } else if (err != NULL || refusal.kind != ERROR_CONFLICT) { // CONFLICT: a replica was first
        pass->failure = err != NULL ? *err : refusal;
        pass->next = pass->count;
    }
    delete_more(pass);
}

static void delete_more(Pass *pass)
{
    while (pass->in_flight < WINDOW && pass->next < pass->count) {
        pass->in_flight++;
        letter_delete(pass->bus, pass->sequences[pass->next++], false, on_deleted, pass);
    }
    if (pass->in_flight == 0) {
        finish(pass);
    }
}

// ---- reading ----

static bool take_next_subject(Pass *pass);
static void read_letters(Pass *pass);

// Of a subject that has nothing to remove the others are not to suffer.
static void on_reader_freed(void *ctx)
{
    Pass *pass = ctx;
    if (pass->count == 0 && pass->failure.kind == ERROR_NONE && take_next_subject(pass)) {
        read_letters(pass);
    } else {
        delete_more(pass);
    }
}

static void end_reading(Pass *pass)
{
    if (pass->reader != NULL) {
        Reader *reader = pass->reader;
        pass->reader = NULL;
        uv_timer_stop(&pass->stall);
        reader_free(reader, on_reader_freed, pass);
    }
}

// A reader tries for ever: without the server, and without the right to read.
static void on_stall_timer(uv_timer_t *timer)
{
    Pass *pass = timer->data;
    if (pass->read == pass->read_before) {
        error_set(
            &pass->failure, ERROR_TRANSIENT,
            "trimming DEAD: no letter came in %d s (HINT: the NATS rights of this version: stentor "
            "init files --renew)",
            STALL_MS / 1000);
        end_reading(pass);
    }
    pass->read_before = pass->read;
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Pass *pass = ctx;
    for (size_t i = 0; i < count && pass->count < pass->wanted; i++) {
        Letter letter;
        arena_reset(pass->arena);
        letter_read(&messages[i], pass->arena, &letter);
        if (letter_end_reported(&letter)) {
            pass->sequences[pass->count++] = letter.sequence;
        }
    }
    pass->read += count;
    if (pass->count == pass->wanted || pass->read >= READ_MAX) {
        end_reading(pass);
    }
}

static void on_reader_caught_up(void *ctx)
{
    end_reading(ctx);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    Pass *pass = ctx;
    pass->failure = *err;
    end_reading(pass);
}

static void read_letters(Pass *pass)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    ReaderOptions options = {
        .stream = "DEAD", .filter = pass->fullest[pass->at].name, .batch_max = READ_BATCH};
    pass->read = pass->read_before = 0;
    pass->reader = reader_new(pass->bus, &options, &handlers, pass);
    uv_timer_start(&pass->stall, on_stall_timer, STALL_MS, STALL_MS);
}

// ---- how full it is ----

static uint64_t number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

static void note_subject(Pass *pass, Str name, uint64_t letters)
{
    size_t at = SUBJECTS_MAX + 1;
    while (at > 0 && letters > pass->fullest[at - 1].letters) {
        at--;
    }
    if (at > SUBJECTS_MAX || name.len >= SUBJECT_SIZE) {
        return;
    }
    memmove(
        &pass->fullest[at + 1], &pass->fullest[at], (SUBJECTS_MAX - at) * sizeof pass->fullest[0]);
    (void)str_to_c(name, pass->fullest[at].name, SUBJECT_SIZE);
    pass->fullest[at].letters = letters;
}

// How many letters of the subject in hand may go.
static void count_wanted(Pass *pass)
{
    pass->state.first = pass->fullest[pass->at].letters;
    pass->state.second = pass->fullest[pass->at + 1].letters;
    pass->wanted = dead_trim_wanted(&pass->state);
}

static bool take_next_subject(Pass *pass)
{
    if (pass->at + 1 >= SUBJECTS_MAX || pass->fullest[pass->at + 1].letters == 0) {
        return false;
    }
    pass->at++;
    count_wanted(pass);
    return true;
}

static void take_info(Pass *pass, const json_t *root)
{
    const json_t *stream = json_object_get(root, "state");
    const char *name;
    json_t *value;
    DeadState state = {
        .bytes = number(stream, "bytes"),
        .messages = number(stream, "messages"),
        .max_bytes = number(json_object_get(root, "config"), "max_bytes"),
    };
    json_object_foreach(json_object_get(stream, "subjects"), name, value)
    {
        json_int_t letters = json_integer_value(value);
        note_subject(pass, str_from(name), letters > 0 ? (uint64_t)letters : 0);
    }
    pass->state = state;
    pass->result.fill = state.max_bytes > 0 ? (double)state.bytes / (double)state.max_bytes : 0;
    count_wanted(pass);
}

// false: the pass has its failure.
static bool take_reply(Pass *pass, Str reply, const Error *err)
{
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    const char *refusal =
        json_string_value(json_object_get(json_object_get(root, "error"), "description"));
    bool ok = root != NULL && refusal == NULL;
    if (ok) {
        take_info(pass, root);
    } else {
        error_set(
            &pass->failure, ERROR_TRANSIENT, "trimming DEAD: %s",
            err != NULL       ? err->text
            : refusal != NULL ? refusal
                              : "unreadable answer");
    }
    json_decref(root);
    return ok;
}

static void on_subjects(void *ctx, Str reply, const Error *err)
{
    Pass *pass = ctx;
    if (!take_reply(pass, reply, err) || pass->wanted == 0 || pass->fullest[0].letters == 0) {
        finish(pass);
        return;
    }
    pass->sequences = xcalloc(REMOVED_MAX, sizeof *pass->sequences);
    read_letters(pass);
}

// The numbers by subject are as many as stages and tenants: asked for only when they are needed.
static void on_info(void *ctx, Str reply, const Error *err)
{
    Pass *pass = ctx;
    if (!take_reply(pass, reply, err) || pass->wanted == 0 || !pass->removes) {
        finish(pass);
        return;
    }
    bus_request(
        pass->bus, "$JS.API.STREAM.INFO.DEAD", STR("{\"subjects_filter\":\">\"}"), TIMEOUT_MS,
        on_subjects, pass);
}

void dead_trim_pass(Bus *bus, bool removes, DeadTrimDone on_done, void *ctx)
{
    Pass *pass = xcalloc(1, sizeof *pass);
    pass->bus = bus;
    pass->removes = removes;
    uv_timer_init(bus_loop(bus), &pass->stall);
    pass->stall.data = pass;
    pass->on_done = on_done;
    pass->ctx = ctx;
    pass->arena = arena_new(0);
    bus_request(bus, "$JS.API.STREAM.INFO.DEAD", STR_EMPTY, TIMEOUT_MS, on_info, pass);
}
