// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/dead_trim.h"

#include <jansson.h>
#include <stdlib.h>

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
    WINDOW = 64, // deletions in flight
};

typedef struct Pass {
    Bus *bus;
    DeadTrim result;
    DeadTrimDone on_done;
    void *ctx;
    char subject[SUBJECT_SIZE]; // the fullest
    uint64_t wanted, read;
    Reader *reader;
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

static void finish(Pass *pass)
{
    const Error *err = pass->failure.kind != ERROR_NONE ? &pass->failure : NULL;
    if (pass->result.removed > 0) {
        LOG(LOG_WARN, "DEAD is nearly full: the oldest letters of its fullest subject are gone",
            log_text("subject", pass->subject), log_int("letters", (int64_t)pass->result.removed),
            log_text("hint", "stentor dlq list shows what there is; resend or drop it"));
    }
    pass->on_done(pass->ctx, &pass->result, err);
    arena_free(pass->arena);
    free(pass->sequences);
    free(pass);
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

static void on_reader_freed(void *ctx)
{
    delete_more(ctx);
}

static void end_reading(Pass *pass)
{
    if (pass->reader != NULL) {
        Reader *reader = pass->reader;
        pass->reader = NULL;
        reader_free(reader, on_reader_freed, pass);
    }
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
    ReaderOptions options = {.stream = "DEAD", .filter = pass->subject, .batch_max = READ_BATCH};
    pass->sequences = xcalloc(pass->wanted, sizeof *pass->sequences);
    pass->reader = reader_new(pass->bus, &options, &handlers, pass);
}

// ---- how full it is ----

static uint64_t number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

// The fullest subject and the number of the next.
static void choose_subject(Pass *pass, json_t *subjects, DeadState *state)
{
    const char *name;
    json_t *value;
    json_object_foreach(subjects, name, value)
    {
        uint64_t letters = json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
        if (letters > state->first && str_to_c(str_from(name), pass->subject, SUBJECT_SIZE)) {
            state->second = state->first;
            state->first = letters;
        } else if (letters > state->second) {
            state->second = letters;
        }
    }
}

static void take_info(Pass *pass, const json_t *root)
{
    const json_t *stream = json_object_get(root, "state");
    DeadState state = {
        .bytes = number(stream, "bytes"),
        .messages = number(stream, "messages"),
        .max_bytes = number(json_object_get(root, "config"), "max_bytes"),
    };
    choose_subject(pass, json_object_get(stream, "subjects"), &state);
    pass->result.fill = state.max_bytes > 0 ? (double)state.bytes / (double)state.max_bytes : 0;
    pass->wanted = dead_trim_wanted(&state);
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
    if (!take_reply(pass, reply, err) || pass->wanted == 0 || pass->subject[0] == '\0') {
        finish(pass);
    } else {
        read_letters(pass);
    }
}

// The numbers by subject are as many as stages and tenants: asked for only when they are needed.
static void on_info(void *ctx, Str reply, const Error *err)
{
    Pass *pass = ctx;
    if (!take_reply(pass, reply, err) || pass->wanted == 0) {
        finish(pass);
        return;
    }
    bus_request(
        pass->bus, "$JS.API.STREAM.INFO.DEAD", STR("{\"subjects_filter\":\">\"}"), TIMEOUT_MS,
        on_subjects, pass);
}

void dead_trim_pass(Bus *bus, DeadTrimDone on_done, void *ctx)
{
    Pass *pass = xcalloc(1, sizeof *pass);
    pass->bus = bus;
    pass->on_done = on_done;
    pass->ctx = ctx;
    pass->arena = arena_new(0);
    bus_request(bus, "$JS.API.STREAM.INFO.DEAD", STR_EMPTY, TIMEOUT_MS, on_info, pass);
}
