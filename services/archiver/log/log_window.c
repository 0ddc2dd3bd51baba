// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/log/log_window.h"

#include "common/segment/segment_headers.h"

static const char codes[LOG_CLASSES] = {'R', 'S', 'B'};

void log_window_clear(LogWindow *w)
{
    for (int i = 0; i < LOG_CLASSES; i++) {
        log_part_free(w->parts[i]);
    }
    *w = (LogWindow){
        .stream = w->stream,
        .packer = w->packer,
        .folder = w->folder,
        .scratch = w->scratch,
        .created_us = w->created_us};
}

static LogPart *find_part(LogWindow *w, Str payload, Error *err)
{
    char code =
        w->stream->keeping == KEPT_BY_CLASS ? log_class(segment_notification_id(payload)) : 'R';
    int at = 0;
    while (codes[at] != code) {
        at++;
    }
    if (w->parts[at] == NULL) {
        SegmentOptions options = {w->stream->stream, w->created_us, code};
        w->parts[at] = log_part_open(w->packer, &options, w->folder, err);
    }
    return w->parts[at];
}

static bool read_headers(
    const BusMessage *message, Arena *arena, SegmentPair pairs[SEGMENT_PAIRS_MAX],
    size_t *ret_count, Error *err)
{
    BusHeader *headers;
    if (!bus_message_headers(message, arena, SEGMENT_PAIRS_MAX, &headers, ret_count)) {
        return error_set(
            err, ERROR_PERMANENT, "message %llu has more than %d headers",
            (unsigned long long)message->sequence, (int)SEGMENT_PAIRS_MAX);
    }
    for (size_t i = 0; i < *ret_count; i++) {
        pairs[i] = (SegmentPair){str_from(headers[i].name), headers[i].value};
    }
    return true;
}

static bool add_record(LogWindow *w, const BusMessage *message, Arena *arena, Error *err)
{
    SegmentPair pairs[SEGMENT_PAIRS_MAX];
    SegmentHeaderSpace space;
    size_t count;
    SegmentRecord record = {
        .sequence = message->sequence,
        .stored_at_us = message->stored_at_us,
        .subject = message->subject,
        .payload = message->payload};
    if (!read_headers(message, arena, pairs, &count, err) ||
        !segment_headers_pack(&record, pairs, count, &space, err)) {
        return false;
    }
    LogPart *part = find_part(w, message->payload, err);
    return part != NULL && log_part_add(part, &record, segment_tenant(message->payload), err);
}

bool log_window_add(
    LogWindow *w, uint64_t first, const BusMessage *message, int64_t now_us, Error *err)
{
    arena_reset(w->scratch);
    if (!add_record(w, message, w->scratch, err)) {
        return false;
    }
    if (w->events == 0) {
        w->first = first;
        w->first_at_us = message->stored_at_us;
        w->opened_us = now_us;
    }
    w->last = message->sequence;
    w->last_at_us = message->stored_at_us;
    w->events++;
    w->raw_bytes += message->payload.len + message->subject.len;
    return true;
}

uint64_t log_window_bytes(const LogWindow *w)
{
    uint64_t bytes = 0;
    for (int i = 0; i < LOG_CLASSES; i++) {
        bytes += w->parts[i] != NULL ? log_part_bytes(w->parts[i]) : 0;
    }
    return bytes;
}

bool log_window_full(const LogWindow *w)
{
    for (int i = 0; i < LOG_CLASSES; i++) {
        if (w->parts[i] != NULL && log_part_full(w->parts[i])) {
            return true;
        }
    }
    return false;
}

bool log_window_close(LogWindow *w, Error *err)
{
    w->file_count = 0;
    for (int i = 0; i < LOG_CLASSES; i++) {
        if (w->parts[i] != NULL &&
            !log_part_finish(w->parts[i], w->first, w->last, &w->files[w->file_count++], err)) {
            return false;
        }
    }
    w->closed = true;
    return true;
}
