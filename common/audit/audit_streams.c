// SPDX-License-Identifier: Apache-2.0
#include "common/audit/audit_streams.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "common/audit/audit_events.h"
#include "common/base/clock.h"
#include "common/bus/consume/reader.h"
#include "common/bus/topology/topology.h"
#include "common/bus/topology/trim.h"

enum { BATCH = 2048, SKEW_S = 60, TRIMMED_PERCENT = TRIM_TO_PERCENT - 10, STALL_MS = 15000 };
static const int64_t SECOND_US = 1000000;

typedef struct StreamFacts {
    uint64_t first, last;
    int64_t first_us;
    int64_t kept_us; // how long messages are kept; 0: for ever
    bool makes_room; // so full that its oldest may have gone before their time
} StreamFacts;

typedef struct StreamRead {
    Audit *audit;
    Arena *scratch;
    AuditMarks marks;
    uint64_t end;
} StreamRead;

// ---- JetStream's answers ----

static json_t *ask(Audit *audit, Arena *arena, const char *subject, Str payload, Error *err)
{
    Str reply;
    if (!session_request(audit->session, subject, payload, arena, &reply, err)) {
        return NULL;
    }
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const char *refusal =
        json_string_value(json_object_get(json_object_get(root, "error"), "description"));
    if (root == NULL || refusal != NULL) {
        error_set(err, ERROR_PERMANENT, "%s: %s", subject, refusal != NULL ? refusal : "not JSON");
        json_decref(root);
        return NULL;
    }
    return root;
}

static uint64_t number_at(const json_t *root, const char *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(json_object_get(root, object), name));
    return value > 0 ? (uint64_t)value : 0;
}

static bool read_facts(Audit *audit, Arena *arena, const char *stream, StreamFacts *ret, Error *err)
{
    const char *subject = arena_printf(arena, "$JS.API.STREAM.INFO.%s", stream);
    json_t *root = ask(audit, arena, subject, STR_EMPTY, err);
    if (root == NULL) {
        return false;
    }
    const char *first =
        json_string_value(json_object_get(json_object_get(root, "state"), "first_ts"));
    uint64_t bytes_max = number_at(root, "config", "max_bytes");
    // A nearly full stream is trimmed down to TRIM_TO_PERCENT; STATUS drops its oldest when full.
    uint64_t trimmed = bytes_max / 100 * TRIMMED_PERCENT;
    *ret = (StreamFacts){
        .first = number_at(root, "state", "first_seq"),
        .last = number_at(root, "state", "last_seq"),
        .kept_us = (int64_t)(number_at(root, "config", "max_age") / 1000),
        .makes_room = bytes_max > 0 && number_at(root, "state", "bytes") >= trimmed,
    };
    if (first == NULL || !clock_parse(str_from(first), &ret->first_us)) {
        ret->first_us = 0; // an empty stream
    }
    json_decref(root);
    return true;
}

// Everything up to here was acknowledged by the consumer.
static bool read_floor(
    Audit *audit, Arena *arena, const ConsumerSpec *spec, uint64_t *ret, Error *err)
{
    const char *subject =
        arena_printf(arena, "$JS.API.CONSUMER.INFO.%s.%s", spec->stream, spec->name);
    json_t *root = ask(audit, arena, subject, STR_EMPTY, err);
    if (root == NULL) {
        return false;
    }
    bool idle = json_integer_value(json_object_get(root, "num_ack_pending")) == 0;
    // The floor stands still while nothing is open, the last delivery does not.
    *ret = number_at(root, idle ? "delivered" : "ack_floor", "stream_seq");
    json_decref(root);
    return true;
}

// When the first message at or after the sequence was stored; 0: there is none.
static bool stored_at(
    Audit *audit, const char *stream, uint64_t sequence, int64_t *ret_us, Error *err)
{
    Arena *arena = arena_new(0);
    BusMessage message = {0};
    bool found = false;
    MessageQuery query = {.stream = stream, .sequence = sequence, .next_of = ">"};
    bool ok = session_get_message(audit->session, &query, arena, &message, &found, err);
    *ret_us = message.stored_at_us;
    arena_free(arena);
    return ok;
}

// The first sequence that was stored at or after the time, by halving.
static bool find_start(
    Audit *audit, const char *stream, const StreamFacts *facts, int64_t at_us, uint64_t *ret,
    Error *err)
{
    uint64_t low = facts->first;
    uint64_t high = facts->last + 1;
    if (facts->first_us >= at_us) {
        high = low;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int64_t stored_us = 0;
        if (!stored_at(audit, stream, middle, &stored_us, err)) {
            return false;
        }
        if (stored_us != 0 && stored_us < at_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *ret = low;
    return true;
}

// ---- reading ----

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    StreamRead *read = ctx;
    for (size_t i = 0; i < count; i++) {
        arena_reset(read->scratch);
        audit_event(read->audit->table, &messages[i], &read->marks, read->scratch);
    }
    read->audit->rows += count;
    // On a busy stream the end runs away: what came after the start belongs to the next reading.
    if (messages[count - 1].sequence >= read->end) {
        session_finish(read->audit->session, NULL);
    }
}

static void on_reader_caught_up(void *ctx)
{
    StreamRead *read = ctx;
    session_finish(read->audit->session, NULL);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    StreamRead *read = ctx;
    session_finish(read->audit->session, err);
}

static void on_reader_freed(void *ctx)
{
    session_wait_end(ctx, NULL);
}

// A reader tries for ever; a command gives up when nothing comes any more.
static bool run_until_read(StreamRead *read, Error *err)
{
    Session *session = read->audit->session;
    for (;;) {
        uint64_t rows = read->audit->rows;
        if (session_run(session, STALL_MS, err)) {
            return true;
        }
        if (!session->timed_out || rows == read->audit->rows) {
            session->err = (Error){0};
            return false;
        }
    }
}

static bool run_reader(StreamRead *read, const char *stream, uint64_t start, Error *err)
{
    static const ReaderHandlers handlers = {
        on_reader_messages, on_reader_caught_up, on_reader_failed};
    Session *session = read->audit->session;
    ReaderOptions options = {.stream = stream, .start_sequence = start, .batch_max = BATCH};
    Reader *reader = reader_new(session->bus, &options, &handlers, read);
    bool ok = run_until_read(read, err);
    Error ignored = {0};
    SessionWait freed = {.session = session};
    reader_free(reader, on_reader_freed, &freed);
    (void)session_wait(&freed, &ignored);
    session->err = (Error){0};
    return ok;
}

static void note_age(Audit *audit, const char *stage, const StreamFacts *facts)
{
    int64_t limit_us = 0;
    if (facts->kept_us > 0) {
        limit_us = audit->read_at_us - facts->kept_us + SKEW_S * SECOND_US;
    }
    if (facts->makes_room && facts->first_us > limit_us) {
        limit_us = facts->first_us;
    }
    int64_t *age_us = strcmp(stage, "REQUEST") == 0    ? &audit->ages.request_us
                      : strcmp(stage, "RENDERED") == 0 ? &audit->ages.rendered_us
                      : strcmp(stage, "DEFERRED") == 0 ? &audit->ages.deferred_us
                      : strcmp(stage, "STATUS") == 0   ? &audit->ages.status_us
                      : strcmp(stage, "FEED") == 0     ? &audit->ages.feed_us
                                                       : NULL;
    if (age_us != NULL && limit_us > *age_us) {
        *age_us = limit_us;
    }
}

static const ConsumerSpec *consumer_of(const char *stream)
{
    size_t count = 0;
    const ConsumerSpec *specs = topology_consumers(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(specs[i].stream, stream) == 0) {
            return &specs[i];
        }
    }
    return NULL;
}

static bool read_stream(
    StreamRead *read, Arena *arena, const char *stage, const char *stream, Error *err)
{
    Audit *audit = read->audit;
    StreamFacts facts;
    uint64_t start = 0;
    const ConsumerSpec *consumer = consumer_of(stream);
    // The floor first: what is above it now may be handled while the stream is read, and then
    // waits in the eyes of this reading only.
    bool ok = (consumer == NULL || read_floor(audit, arena, consumer, &read->marks.floor, err)) &&
              read_facts(audit, arena, stream, &facts, err);
    if (!ok) {
        return false;
    }
    note_age(audit, stage, &facts);
    read->end = facts.last;
    if (facts.last == 0 || facts.first > facts.last) {
        return true;
    }
    int64_t from_us = audit->options.since_us - SKEW_S * SECOND_US;
    return find_start(audit, stream, &facts, from_us, &start, err) &&
           (start > facts.last || run_reader(read, stream, start, err));
}

bool audit_read_stage(
    Audit *audit, const char *stage, AuditPosition position, void *ctx, Error *err)
{
    size_t count = 0;
    const StreamSpec *streams = topology_streams(&count);
    size_t len = strlen(stage);
    StreamRead read = {.audit = audit, .scratch = arena_new(64 * 1024)};
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        const char *name = streams[i].name;
        if (strncmp(name, stage, len) == 0 && (name[len] == '\0' || name[len] == '_')) {
            Arena *arena = arena_new(0);
            read.marks = (AuditMarks){
                .floor = UINT64_MAX,
                .position = position != NULL ? position(ctx, name) : 0,
                .now_us = audit->read_at_us};
            ok = read_stream(&read, arena, stage, name, err) || error_wrap(err, "stream %s", name);
            arena_free(arena);
        }
    }
    arena_free(read.scratch);
    return ok;
}
