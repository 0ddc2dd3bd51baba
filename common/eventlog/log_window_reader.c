// SPDX-License-Identifier: Apache-2.0
#include "common/eventlog/log_window_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/bus/jetstream/get_message.h"
#include "common/segment/segment_headers.h"
#include "common/segment/segment_reader.h"

enum { BLOCK_MAX = 64 * 1024 };

typedef struct Part {
    LogWindowReader *window;
    const char *key;
    SegmentReader *reader; // NULL: deleted, or at its end
    SegmentRecord head;
} Part;

struct LogWindowReader {
    StorageWait *storage;
    const char *stream;
    Part parts[LOG_CLASS_COUNT];
    size_t count;
    SegmentHeaderSpace space;
};

static bool read_object(void *ctx, uint64_t offset, char *into, size_t len, Error *err)
{
    const Part *part = ctx;
    return storage_wait_read(part->window->storage, str_from(part->key), offset, into, len, err);
}

// An error's text is short: the key stands in it once.
static bool name_object(const char *key, Error *err)
{
    return strstr(err->text, key) == NULL ? error_wrap(err, "object '%.120s'", key) : false;
}

static bool step(Part *part, Error *err)
{
    switch (segment_reader_next(part->reader, &part->head, err)) {
    case SEGMENT_RECORD:
        return true;
    case SEGMENT_END:
        segment_reader_free(part->reader);
        part->reader = NULL;
        return true;
    case SEGMENT_BAD:
        break;
    }
    return name_object(part->key, err);
}

static bool fits(const SegmentHeader *header, const LogWindowRow *row, const LogSegmentRow *segment)
{
    return header->first == row->first && header->last == row->last &&
           header->class_code == segment->class_code && header->events == segment->events;
}

static bool open_part(
    Part *part, const LogWindowRow *row, const LogSegmentRow *segment, const char *filter,
    uint64_t from_sequence, int64_t from_us, Error *err)
{
    part->key = segment->key;
    if (segment->key[0] == '\0') {
        return true;
    }
    part->reader = segment_reader_open(segment->bytes, read_object, part, err);
    if (part->reader == NULL) {
        return name_object(segment->key, err);
    }
    const SegmentHeader *header = segment_reader_header(part->reader);
    if (!fits(header, row, segment) ||
        !str_eq(str_from(header->stream), str_from(part->window->stream))) {
        return error_set(
            err, ERROR_PERMANENT, "object '%.120s' is another segment than its row says",
            segment->key);
    }
    segment_reader_filter(part->reader, filter);
    if (from_us > 0) {
        segment_reader_from_time(part->reader, from_us);
    } else {
        segment_reader_from_sequence(part->reader, from_sequence);
    }
    return step(part, err);
}

LogWindowReader *log_window_open(
    StorageWait *storage, const LogWindowRow *row, const char *stream, uint64_t from_sequence,
    int64_t from_us, const char *filter, Error *err)
{
    LogWindowReader *w = xcalloc(1, sizeof *w);
    w->storage = storage;
    w->stream = stream;
    for (size_t i = 0; i < row->count; i++) {
        w->parts[i].window = w;
        if (!open_part(&w->parts[i], row, &row->segments[i], filter, from_sequence, from_us, err)) {
            log_window_end(w);
            return NULL;
        }
    }
    w->count = row->count;
    return w;
}

void log_window_end(LogWindowReader *w)
{
    if (w != NULL) {
        for (size_t i = 0; i < LOG_CLASS_COUNT; i++) {
            segment_reader_free(w->parts[i].reader);
        }
        free(w);
    }
}

// As the server stores them.
static bool make_headers(
    LogWindowReader *w, const SegmentRecord *record, Arena *arena, Str *ret, Error *err)
{
    const SegmentPair *pairs;
    size_t count;
    if (!segment_headers_unpack(record, &w->space, &pairs, &count)) {
        return error_set(
            err, ERROR_PERMANENT, "message %llu of '%s' has impossible headers",
            (unsigned long long)record->sequence, w->stream);
    }
    Buf block;
    buf_init(&block, BLOCK_MAX);
    buf_cstr(&block, "NATS/1.0\r\n");
    for (size_t i = 0; i < count; i++) {
        buf_printf(
            &block, STR_FMT ": " STR_FMT "\r\n", STR_ARG(pairs[i].name), STR_ARG(pairs[i].value));
    }
    buf_cstr(&block, "\r\n");
    *ret = arena_str(arena, buf_view(&block));
    buf_done(&block);
    return true;
}

static bool make_message(
    LogWindowReader *w, const SegmentRecord *record, Arena *arena, BusMessage *ret, Error *err)
{
    Str block;
    if (!make_headers(w, record, arena, &block, err)) {
        return false;
    }
    *ret = (BusMessage){
        .subject = arena_str(arena, record->subject),
        .payload = arena_str(arena, record->payload),
        .event_id = get_message_header(block, "Nats-Msg-Id"),
        .traceparent = get_message_header(block, "traceparent"),
        .stream = w->stream,
        .sequence = record->sequence,
        .stored_at_us = record->stored_at_us,
        .delivered = 1,
        .replayed = get_message_header(block, BUS_REPLAY_HEADER).len > 0,
        .headers = block};
    return true;
}

bool log_window_next(LogWindowReader *w, Arena *arena, BusMessage *ret, bool *ret_more, Error *err)
{
    Part *next = NULL;
    for (size_t i = 0; i < w->count; i++) {
        Part *part = &w->parts[i];
        if (part->reader != NULL && (next == NULL || part->head.sequence < next->head.sequence)) {
            next = part;
        }
    }
    *ret_more = next != NULL;
    return next == NULL || (make_message(w, &next->head, arena, ret, err) && step(next, err));
}
