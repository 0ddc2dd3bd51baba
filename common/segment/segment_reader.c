// SPDX-License-Identifier: Apache-2.0
#include "common/segment/segment_reader.h"

#include <stdlib.h>
#include <zstd.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/codec/hash.h"
#include "common/segment/segment_bytes.h"

enum { INDEX_MAX = SEGMENT_FRAMES_MAX * 64 };

struct SegmentReader {
    SegmentRead read;
    void *ctx;
    uint64_t size;
    SegmentHeader header;
    SegmentFrame *frames;
    uint64_t *offsets;
    size_t frame_count;
    const char *filter;
    uint64_t from_sequence;
    int64_t from_us;
    bool by_time;
    ZSTD_DCtx *zstd;
    Buf packed, raw;
    size_t next_frame;
    Str rest; // of the frame's records
    Str subject;
    uint64_t sequence;
    int64_t at_us;
    uint32_t events; // of the frame, so far
    bool bad;
};

static bool damaged(const SegmentReader *r, Error *err, const char *what)
{
    const char *stream = r->header.stream[0] != '\0' ? r->header.stream : "?";
    return error_set(err, ERROR_PERMANENT, "segment of '%s': %s", stream, what);
}

// ---- opening ----

static bool read_range(SegmentReader *r, uint64_t offset, size_t len, Buf *into, Error *err)
{
    buf_clear(into);
    if (!buf_reserve(into, len)) {
        return damaged(r, err, "a part is too large");
    }
    if (!r->read(r->ctx, offset, into->ptr, len, err)) {
        return false;
    }
    into->len = len;
    return true;
}

// The footer says how long the table is.
static bool read_seek_table(SegmentReader *r, Buf *table, Error *err)
{
    if (r->size < SKIPPABLE_HEAD + SEEK_ENTRY + SEEK_FOOTER) {
        return damaged(r, err, "it is too short");
    }
    if (!read_range(r, r->size - SEEK_FOOTER, SEEK_FOOTER, table, err)) {
        return false;
    }
    uint32_t count = get_u32(table->ptr);
    if (get_u32(table->ptr + 5) != SEEK_TABLE_MAGIC || (uint8_t)table->ptr[4] != SEEK_CHECKSUMS) {
        return damaged(r, err, "it does not end with a seek table");
    }
    size_t len = SKIPPABLE_HEAD + (size_t)count * SEEK_ENTRY + SEEK_FOOTER;
    if (count == 0 || count > SEGMENT_FRAMES_MAX || len > r->size) {
        return damaged(r, err, "its seek table has an impossible number of frames");
    }
    if (!read_range(r, r->size - len, len, table, err)) {
        return false;
    }
    if (get_u32(table->ptr) != SEEK_FRAME_MAGIC ||
        get_u32(table->ptr + 4) != len - SKIPPABLE_HEAD) {
        return damaged(r, err, "its seek table has no head");
    }
    r->frame_count = count - 1;
    return true;
}

// The sizes must fill the file exactly. *ret_index: bytes of the index, whose frame is the last.
static bool read_sizes(SegmentReader *r, const Buf *table, size_t *ret_index, Error *err)
{
    uint64_t at = 0;
    const char *entry = table->ptr + SKIPPABLE_HEAD;
    r->frames = xcalloc(r->frame_count + 1, sizeof *r->frames);
    r->offsets = xcalloc(r->frame_count + 1, sizeof *r->offsets);
    for (size_t i = 0; i <= r->frame_count; i++, entry += SEEK_ENTRY) {
        r->frames[i].compressed_bytes = get_u32(entry);
        r->frames[i].bytes = get_u32(entry + 4);
        r->offsets[i] = at;
        at += r->frames[i].compressed_bytes;
        bool is_index = i == r->frame_count;
        if (is_index ? r->frames[i].bytes != 0
                     : r->frames[i].bytes == 0 || r->frames[i].bytes > SEGMENT_FRAME_MAX) {
            return damaged(r, err, "its seek table has an impossible frame");
        }
    }
    *ret_index = r->frames[r->frame_count].compressed_bytes;
    bool fits = at + table->len == r->size && *ret_index <= INDEX_MAX &&
                *ret_index > SKIPPABLE_HEAD + INDEX_DIGEST;
    return fits || damaged(r, err, "its frames do not fill it");
}

static bool take_signed(Str *rest, int64_t *ret)
{
    uint64_t value;
    if (!take_varint(rest, &value)) {
        return false;
    }
    *ret = unzigzag(value);
    return true;
}

static bool take_char(Str *rest, char *ret)
{
    if (rest->len == 0) {
        return false;
    }
    *ret = rest->ptr[0];
    *rest = str_slice(*rest, 1, rest->len);
    return true;
}

static bool take_header(Str *rest, SegmentHeader *h)
{
    char version;
    Str stream;
    if (!str_starts(*rest, STR(INDEX_WORD))) {
        return false;
    }
    *rest = str_slice(*rest, sizeof INDEX_WORD - 1, rest->len);
    return take_char(rest, &version) && version == SEGMENT_VERSION &&
           take_bytes(rest, SEGMENT_STREAM_MAX, &stream) && stream.len > 0 &&
           !str_has_control(stream) && str_to_c(stream, h->stream, sizeof h->stream) &&
           take_signed(rest, &h->created_us) && take_char(rest, &h->class_code) &&
           h->class_code >= 'A' && h->class_code <= 'Z' && take_varint(rest, &h->first) &&
           take_varint(rest, &h->last) && take_varint(rest, &h->events) &&
           take_signed(rest, &h->min_at_us) && take_signed(rest, &h->max_at_us) && h->first > 0 &&
           h->first <= h->last;
}

static bool take_frame(Str *rest, SegmentFrame *f)
{
    uint64_t span, events, lasted;
    if (!take_varint(rest, &f->first) || !take_varint(rest, &span) ||
        !take_signed(rest, &f->min_at_us) || !take_varint(rest, &lasted) ||
        !take_varint(rest, &events)) {
        return false;
    }
    f->last = f->first + span;
    f->max_at_us = (int64_t)((uint64_t)f->min_at_us + lasted);
    f->events = (uint32_t)events;
    return f->last >= f->first && f->max_at_us >= f->min_at_us && events > 0 && events <= f->bytes;
}

static bool take_index(SegmentReader *r, Str rest, Error *err)
{
    uint64_t count, events = 0, last = 0;
    if (!take_header(&rest, &r->header) || !take_varint(&rest, &count) || count != r->frame_count) {
        return damaged(r, err, "its index is of another form");
    }
    for (size_t i = 0; i < r->frame_count; i++) {
        SegmentFrame *f = &r->frames[i];
        if (!take_frame(&rest, f) || f->first <= last || f->first < r->header.first ||
            f->last > r->header.last) {
            return damaged(r, err, "its index has an impossible frame");
        }
        last = f->last;
        events += f->events;
    }
    return (rest.len == 0 && events == r->header.events) ||
           damaged(r, err, "its index does not add up");
}

static bool read_index(SegmentReader *r, size_t len, Error *err)
{
    uint8_t digest[SHA256_LEN];
    if (!read_range(r, r->offsets[r->frame_count], len, &r->packed, err)) {
        return false;
    }
    const char *at = r->packed.ptr;
    if (get_u32(at) != INDEX_FRAME_MAGIC || get_u32(at + 4) != len - SKIPPABLE_HEAD) {
        return damaged(r, err, "its index has no head");
    }
    Str index = str_of(at + SKIPPABLE_HEAD, len - SKIPPABLE_HEAD - INDEX_DIGEST);
    sha256(index, digest);
    if (memcmp(digest, index.ptr + index.len, INDEX_DIGEST) != 0) {
        return damaged(r, err, "its index was changed");
    }
    return take_index(r, index, err);
}

SegmentReader *segment_reader_open(uint64_t size, SegmentRead read, void *ctx, Error *err)
{
    SegmentReader *r = xcalloc(1, sizeof *r);
    *r = (SegmentReader){.read = read, .ctx = ctx, .size = size};
    buf_init(&r->packed, ZSTD_compressBound(SEGMENT_FRAME_MAX));
    buf_init(&r->raw, SEGMENT_FRAME_MAX);
    size_t index = 0;
    bool opened = read_seek_table(r, &r->packed, err) && read_sizes(r, &r->packed, &index, err) &&
                  read_index(r, index, err);
    r->zstd = opened ? ZSTD_createDCtx() : NULL;
    if (!opened) {
        segment_reader_free(r);
        return NULL;
    }
    return r;
}

void segment_reader_free(SegmentReader *r)
{
    if (r != NULL) {
        ZSTD_freeDCtx(r->zstd);
        buf_done(&r->packed);
        buf_done(&r->raw);
        free(r->frames);
        free(r->offsets);
        free(r);
    }
}

const SegmentHeader *segment_reader_header(const SegmentReader *r)
{
    return &r->header;
}

const SegmentFrame *segment_reader_frames(const SegmentReader *r, size_t *ret_count)
{
    *ret_count = r->frame_count;
    return r->frames;
}

// ---- where ----

static void begin_at(SegmentReader *r, uint64_t sequence, int64_t at_us, bool by_time)
{
    r->from_sequence = sequence;
    r->from_us = at_us;
    r->by_time = by_time;
    r->next_frame = 0;
    r->rest = STR_EMPTY;
    r->events = 0;
    buf_clear(&r->raw);
}

void segment_reader_from_sequence(SegmentReader *r, uint64_t sequence)
{
    begin_at(r, sequence, 0, false);
}

void segment_reader_from_time(SegmentReader *r, int64_t at_us)
{
    begin_at(r, 0, at_us, true);
}

void segment_reader_filter(SegmentReader *r, const char *subjects)
{
    r->filter = subjects;
}

bool segment_subject_matches(Str pattern, Str subject)
{
    Str want, token;
    bool more = true;
    while (str_split(&pattern, '.', &want)) {
        if (str_eq(want, STR(">"))) {
            return subject.len > 0;
        }
        more = str_split(&subject, '.', &token);
        if (!more || (!str_eq(want, STR("*")) && !str_eq(want, token))) {
            return false;
        }
    }
    return !str_split(&subject, '.', &token);
}

// ---- reading ----

static bool is_wanted_frame(const SegmentReader *r, const SegmentFrame *f)
{
    return r->by_time ? f->max_at_us >= r->from_us : f->last >= r->from_sequence;
}

static bool load_frame(SegmentReader *r, Error *err)
{
    const SegmentFrame *f = &r->frames[r->next_frame];
    if (!read_range(r, r->offsets[r->next_frame], f->compressed_bytes, &r->packed, err)) {
        return false;
    }
    buf_clear(&r->raw);
    (void)buf_reserve(&r->raw, f->bytes);
    size_t len =
        ZSTD_decompressDCtx(r->zstd, r->raw.ptr, f->bytes, r->packed.ptr, f->compressed_bytes);
    if (ZSTD_isError(len) || len != f->bytes) {
        return damaged(r, err, "a frame cannot be unpacked or has a wrong checksum");
    }
    r->raw.len = len;
    r->rest = buf_view(&r->raw);
    r->subject = STR_EMPTY;
    r->sequence = 0;
    r->at_us = 0;
    r->events = 0;
    r->next_frame++;
    return true;
}

static bool take_record(SegmentReader *r, SegmentRecord *ret)
{
    uint64_t step, delta;
    char form;
    Str headers = STR_EMPTY, subject, payload;
    if (!take_varint(&r->rest, &step) || !take_varint(&r->rest, &delta) ||
        !take_char(&r->rest, &form) || form < 0 || form > SEGMENT_HEADERS_OWN ||
        !take_bytes(&r->rest, SEGMENT_SUBJECT_MAX, &subject) ||
        (form != SEGMENT_HEADERS_DERIVED && !take_bytes(&r->rest, SEGMENT_RECORD_MAX, &headers)) ||
        !take_bytes(&r->rest, SEGMENT_PAYLOAD_MAX, &payload)) {
        return false;
    }
    r->subject = subject.len > 0 ? subject : r->subject;
    uint64_t sequence = r->sequence + step;
    if (r->subject.len == 0 || sequence <= r->sequence) {
        return false;
    }
    r->sequence = sequence;
    r->at_us = (int64_t)((uint64_t)r->at_us + (uint64_t)unzigzag(delta));
    *ret = (SegmentRecord){sequence, r->at_us, r->subject, (SegmentHeaders)form, headers, payload};
    return true;
}

// The index and the frame say the same.
static bool agrees(const SegmentReader *r)
{
    const SegmentFrame *f = &r->frames[r->next_frame - 1];
    r = r->events > f->events ? NULL : r;
    return r != NULL && r->sequence >= f->first && r->sequence <= f->last &&
           (r->events > 1 || r->sequence == f->first) && r->at_us >= f->min_at_us &&
           r->at_us <= f->max_at_us &&
           (r->rest.len > 0 || (r->events == f->events && r->sequence == f->last));
}

static bool is_wanted(const SegmentReader *r, const SegmentRecord *record)
{
    bool reached =
        r->by_time ? record->stored_at_us >= r->from_us : record->sequence >= r->from_sequence;
    return reached &&
           (r->filter == NULL || segment_subject_matches(str_from(r->filter), record->subject));
}

static SegmentStep go_bad(SegmentReader *r)
{
    r->bad = true;
    return SEGMENT_BAD;
}

SegmentStep segment_reader_next(SegmentReader *r, SegmentRecord *ret, Error *err)
{
    if (r->bad) {
        damaged(r, err, "it could not be read before");
        return SEGMENT_BAD;
    }
    for (;;) {
        while (r->rest.len == 0 && r->next_frame < r->frame_count &&
               !is_wanted_frame(r, &r->frames[r->next_frame])) {
            r->next_frame++;
        }
        if (r->rest.len == 0 && r->next_frame == r->frame_count) {
            return SEGMENT_END;
        }
        if (r->rest.len == 0 && !load_frame(r, err)) {
            return go_bad(r);
        }
        bool taken = take_record(r, ret);
        r->events++;
        if (!taken || !agrees(r)) {
            damaged(r, err, "a frame has an impossible record");
            return go_bad(r);
        }
        if (is_wanted(r, ret)) {
            return SEGMENT_RECORD;
        }
    }
}
