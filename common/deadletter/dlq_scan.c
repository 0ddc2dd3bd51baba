// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/dlq_scan.h"

#include <inttypes.h>
#include <jansson.h>

#include "common/bus/consume/reader.h"
#include "common/bus/topology/topology.h"

enum { BATCH_MAX = 32 }; // a letter may have 900 KB

struct Scan {
    SessionWait wait; // for the whole scan
    const Selection *selection;
    ScanLetters on_letters;
    void *ctx;
    Reader *reader;
    Arena *arena;
    uint64_t last; // of the stream when the scan began
    bool ended;    // everything up to it was handed over
    bool waiting;
};

// ---- in order ----

static void finish_if_ended(Scan *scan)
{
    if (scan->ended && !scan->waiting) {
        session_wait_end(&scan->wait, NULL);
    }
}

void scan_go_on(Scan *scan, const Error *err)
{
    scan->waiting = false;
    if (err != NULL) {
        session_wait_end(&scan->wait, err);
        return;
    }
    reader_pause(scan->reader, false);
    finish_if_ended(scan);
}

static void take_messages(Scan *scan, const BusMessage *messages, size_t count)
{
    arena_reset(scan->arena);
    Letter *letters = arena_array(scan->arena, count, sizeof *letters);
    size_t kept = 0;
    for (size_t i = 0; i < count && messages[i].sequence <= scan->last; i++) {
        if (messages[i].stored_at_us >= scan->selection->since_us) {
            letter_read(&messages[i], scan->arena, &letters[kept++]);
        }
    }
    scan->ended = scan->ended || messages[count - 1].sequence >= scan->last;
    scan->waiting = kept > 0 && scan->on_letters(scan->ctx, scan, letters, kept, scan->arena);
    reader_pause(scan->reader, scan->waiting);
    finish_if_ended(scan);
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Scan *scan = ctx;
    if (!scan->ended) {
        take_messages(scan, messages, count);
    }
}

static void on_reader_caught_up(void *ctx)
{
    Scan *scan = ctx;
    scan->ended = true;
    finish_if_ended(scan);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    session_wait_end(&((Scan *)ctx)->wait, err);
}

static void on_reader_freed(void *ctx)
{
    session_wait_end(ctx, NULL);
}

static bool ask_last(Session *session, Arena *arena, uint64_t *ret, Error *err)
{
    Str reply;
    if (!session_request(session, "$JS.API.STREAM.INFO.DEAD", STR_EMPTY, arena, &reply, err)) {
        return false;
    }
    json_t *info = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *state = json_object_get(info, "state");
    bool ok = json_is_object(state);
    *ret = (uint64_t)json_integer_value(json_object_get(state, "last_seq"));
    json_decref(info);
    return ok ||
           error_set(
               err, ERROR_PERMANENT, "stream 'DEAD' does not exist (HINT: run 'stentor migrate')");
}

bool scan_run(
    Session *session, const Selection *selection, ScanLetters on_letters, void *ctx, Error *err)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    Scan scan = {
        .wait = {.session = session},
        .selection = selection,
        .on_letters = on_letters,
        .ctx = ctx,
        .arena = arena_new(0)};
    bool ok = ask_last(session, scan.arena, &scan.last, err);
    if (ok && scan.last > 0) {
        Str stage = selection->stage.len > 0 ? selection->stage : STR("*");
        Str tenant = selection->tenant.len > 0 ? selection->tenant : STR("*");
        ReaderOptions options = {
            .stream = "DEAD",
            .filter = arena_printf(
                scan.arena, "ntf.dead." STR_FMT "." STR_FMT, STR_ARG(stage), STR_ARG(tenant)),
            .batch_max = BATCH_MAX,
        };
        scan.reader = reader_new(session->bus, &options, &handlers, &scan);
        ok = session_wait(&scan.wait, err);
        Error ignored = {0};
        SessionWait freed = {.session = session};
        reader_free(scan.reader, on_reader_freed, &freed);
        (void)session_wait(&freed, &ignored);
    }
    arena_free(scan.arena);
    return ok;
}

// ---- one ----

bool letter_fetch(
    Session *session, const Selection *selection, uint64_t sequence, Arena *arena, Letter *ret,
    bool *ret_found, Error *err)
{
    BusMessage message;
    MessageQuery query = {.stream = "DEAD", .sequence = sequence};
    if (!session_get_message(session, &query, arena, &message, ret_found, err)) {
        return error_wrap(err, "dead letter %" PRIu64, sequence);
    }
    if (*ret_found) {
        letter_read(&message, arena, ret);
        *ret_found = selection->tenant.len == 0 || str_eq(ret->tenant, selection->tenant);
    }
    return true;
}
