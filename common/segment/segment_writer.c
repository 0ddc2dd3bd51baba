// SPDX-License-Identifier: Apache-2.0
#include "common/segment/segment_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <zstd.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/codec/hash.h"
#include "common/segment/segment_bytes.h"

enum { LEVEL = 1, RECORD_HEAD = 6 * VARINT_MAX, CHECKSUM = 4 };

struct SegmentPacker {
    ZSTD_CCtx *zstd;
    char *out;
    size_t out_size;
};

typedef struct FrameEntry {
    SegmentFrame is;
    uint32_t checksum; // the low half of XXH64 of its records, as zstd wrote it
} FrameEntry;

struct SegmentWriter {
    SegmentPacker *packer;
    SegmentSink sink;
    void *ctx;
    SegmentHeader header;
    Buf raw; // the frame under way
    SegmentFrame frame;
    Buf subject; // of the record before, in this frame
    int64_t last_at_us;
    FrameEntry *frames;
    size_t frame_count, frame_cap;
    uint64_t bytes;
};

SegmentPacker *segment_packer_new(void)
{
    SegmentPacker *packer = xcalloc(1, sizeof *packer);
    packer->zstd = ZSTD_createCCtx();
    if (packer->zstd == NULL) {
        abort(); // out of memory, as xmalloc
    }
    ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_checksumFlag, 1);
    packer->out_size = ZSTD_compressBound(SEGMENT_FRAME_MAX);
    packer->out = xmalloc(packer->out_size);
    return packer;
}

void segment_packer_free(SegmentPacker *packer)
{
    if (packer != NULL) {
        ZSTD_freeCCtx(packer->zstd);
        free(packer->out);
        free(packer);
    }
}

SegmentWriter *segment_writer_new(
    SegmentPacker *packer, const SegmentOptions *options, SegmentSink sink, void *ctx)
{
    SegmentWriter *w = xcalloc(1, sizeof *w);
    w->packer = packer;
    w->sink = sink;
    w->ctx = ctx;
    bool fits = str_to_c(str_from(options->stream), w->header.stream, sizeof w->header.stream);
    assert(fits && options->stream[0] != '\0' && "a stream's name, which the topology checks");
    (void)fits;
    w->header.created_us = options->created_us;
    w->header.class_code = options->class_code;
    buf_init(&w->raw, SEGMENT_FRAME_MAX);
    buf_init(&w->subject, SEGMENT_SUBJECT_MAX);
    return w;
}

void segment_writer_free(SegmentWriter *w)
{
    if (w != NULL) {
        buf_done(&w->raw);
        buf_done(&w->subject);
        free(w->frames);
        free(w);
    }
}

static bool hand_over(SegmentWriter *w, Str bytes, Error *err)
{
    w->bytes += bytes.len;
    return w->sink(w->ctx, bytes, err);
}

// ---- frames ----

static void note_frame(SegmentWriter *w, Str packed)
{
    if (w->frame_count == w->frame_cap) {
        w->frame_cap = w->frame_cap > 0 ? 2 * w->frame_cap : 64;
        w->frames = xrealloc(w->frames, w->frame_cap * sizeof *w->frames);
    }
    w->frame.bytes = (uint32_t)w->raw.len;
    w->frame.compressed_bytes = (uint32_t)packed.len;
    w->frames[w->frame_count++] =
        (FrameEntry){w->frame, get_u32(packed.ptr + packed.len - CHECKSUM)};
}

static bool end_frame(SegmentWriter *w, Error *err)
{
    if (w->raw.len == 0) {
        return true;
    }
    size_t len = ZSTD_compress2(
        w->packer->zstd, w->packer->out, w->packer->out_size, w->raw.ptr, w->raw.len);
    if (ZSTD_isError(len)) {
        return error_set(err, ERROR_PERMANENT, "segment: zstd: %s", ZSTD_getErrorName(len));
    }
    Str packed = str_of(w->packer->out, len);
    note_frame(w, packed);
    buf_clear(&w->raw);
    buf_clear(&w->subject);
    return hand_over(w, packed, err);
}

// ---- records ----

static bool check(const SegmentWriter *w, const SegmentRecord *r, Error *err)
{
    uint64_t last = w->raw.len > 0       ? w->frame.last
                    : w->frame_count > 0 ? w->frames[w->frame_count - 1].is.last
                                         : 0;
    if (r->sequence <= last) {
        return error_set(
            err, ERROR_PERMANENT, "segment of '%s': sequence %llu follows %llu", w->header.stream,
            (unsigned long long)r->sequence, (unsigned long long)last);
    }
    if (r->subject.len == 0 || r->subject.len > SEGMENT_SUBJECT_MAX ||
        r->payload.len > SEGMENT_PAYLOAD_MAX ||
        r->subject.len + r->headers.len + r->payload.len > SEGMENT_RECORD_MAX - RECORD_HEAD) {
        return error_set(
            err, ERROR_PERMANENT,
            "segment of '%s': message %llu has a subject of %zu, headers of %zu and a payload of "
            "%zu bytes",
            w->header.stream, (unsigned long long)r->sequence, r->subject.len, r->headers.len,
            r->payload.len);
    }
    return true;
}

static void put_record(SegmentWriter *w, const SegmentRecord *r)
{
    bool begins = w->raw.len == 0;
    bool same = !begins && str_eq(buf_view(&w->subject), r->subject);
    (void)buf_reserve(&w->raw, RECORD_HEAD + r->subject.len + r->headers.len + r->payload.len);
    char *out = w->raw.ptr + w->raw.len;
    char *at = out;
    at += put_varint(at, r->sequence - (begins ? 0 : w->frame.last));
    // Without signed overflow, whatever the times are.
    uint64_t delta = (uint64_t)r->stored_at_us - (begins ? 0 : (uint64_t)w->last_at_us);
    at += put_varint(at, zigzag((int64_t)delta));
    *at++ = (char)r->header_form;
    at += put_bytes(at, same ? STR_EMPTY : r->subject);
    if (r->header_form != SEGMENT_HEADERS_DERIVED) {
        at += put_bytes(at, r->headers);
    }
    at += put_bytes(at, r->payload);
    w->raw.len += (size_t)(at - out);
    if (!same) {
        buf_clear(&w->subject);
        buf_str(&w->subject, r->subject);
    }
}

static void note_record(SegmentWriter *w, const SegmentRecord *r, bool begins)
{
    SegmentFrame *f = &w->frame;
    int64_t at_us = r->stored_at_us;
    if (begins) {
        *f = (SegmentFrame){.first = r->sequence, .min_at_us = at_us, .max_at_us = at_us};
    }
    f->last = r->sequence;
    f->events++;
    f->min_at_us = at_us < f->min_at_us ? at_us : f->min_at_us;
    f->max_at_us = at_us > f->max_at_us ? at_us : f->max_at_us;
    SegmentHeader *h = &w->header;
    h->min_at_us = h->events == 0 || at_us < h->min_at_us ? at_us : h->min_at_us;
    h->max_at_us = h->events == 0 || at_us > h->max_at_us ? at_us : h->max_at_us;
    h->events++;
    w->last_at_us = at_us;
}

bool segment_writer_add(SegmentWriter *w, const SegmentRecord *r, Error *err)
{
    if (!check(w, r, err)) {
        return false;
    }
    size_t most = RECORD_HEAD + r->subject.len + r->headers.len + r->payload.len;
    if (w->raw.len > 0 && w->raw.len + most > SEGMENT_FRAME_BYTES && !end_frame(w, err)) {
        return false;
    }
    bool begins = w->raw.len == 0;
    put_record(w, r);
    note_record(w, r, begins);
    return true;
}

uint64_t segment_writer_bytes(const SegmentWriter *w)
{
    return w->bytes;
}

uint64_t segment_writer_events(const SegmentWriter *w)
{
    return w->header.events;
}

bool segment_writer_full(const SegmentWriter *w)
{
    return w->frame_count >= SEGMENT_FRAMES_MAX - 1;
}

// ---- the end ----

static void put_number(Buf *out, uint64_t value)
{
    char bytes[VARINT_MAX];
    buf_append(out, bytes, put_varint(bytes, value));
}

static void put_signed(Buf *out, int64_t value)
{
    put_number(out, zigzag(value));
}

static void put_word(Buf *out, uint32_t value)
{
    char bytes[4];
    put_u32(bytes, value);
    buf_append(out, bytes, sizeof bytes);
}

static void put_index_header(Buf *out, const SegmentHeader *h)
{
    buf_str(out, STR(INDEX_WORD));
    buf_char(out, SEGMENT_VERSION);
    put_number(out, strlen(h->stream));
    buf_cstr(out, h->stream);
    put_signed(out, h->created_us);
    buf_char(out, h->class_code);
    put_number(out, h->first);
    put_number(out, h->last);
    put_number(out, h->events);
    put_signed(out, h->min_at_us);
    put_signed(out, h->max_at_us);
}

// Sizes are in the seek table.
static void put_index(Buf *out, const SegmentWriter *w)
{
    size_t head = out->len;
    put_word(out, INDEX_FRAME_MAGIC);
    put_word(out, 0);
    size_t from = out->len;
    put_index_header(out, &w->header);
    put_number(out, w->frame_count);
    for (size_t i = 0; i < w->frame_count; i++) {
        const SegmentFrame *f = &w->frames[i].is;
        put_number(out, f->first);
        put_number(out, f->last - f->first);
        put_signed(out, f->min_at_us);
        put_number(out, (uint64_t)f->max_at_us - (uint64_t)f->min_at_us);
        put_number(out, f->events);
    }
    uint8_t digest[SHA256_LEN];
    sha256(str_of(out->ptr + from, out->len - from), digest);
    buf_append(out, digest, INDEX_DIGEST);
    put_u32(out->ptr + head + 4, (uint32_t)(out->len - from));
}

static void put_seek_entry(Buf *out, uint32_t compressed, uint32_t bytes, uint32_t checksum)
{
    put_word(out, compressed);
    put_word(out, bytes);
    put_word(out, checksum);
}

static void put_seek_table(Buf *out, const SegmentWriter *w, uint32_t index_bytes)
{
    put_word(out, SEEK_FRAME_MAGIC);
    put_word(out, (uint32_t)((w->frame_count + 1) * SEEK_ENTRY + SEEK_FOOTER));
    for (size_t i = 0; i < w->frame_count; i++) {
        const FrameEntry *f = &w->frames[i];
        put_seek_entry(out, f->is.compressed_bytes, f->is.bytes, f->checksum);
    }
    put_seek_entry(out, index_bytes, 0, 0);
    put_word(out, (uint32_t)w->frame_count + 1);
    buf_char(out, (char)SEEK_CHECKSUMS);
    put_word(out, SEEK_TABLE_MAGIC);
}

static bool check_range(const SegmentWriter *w, uint64_t first, uint64_t last, Error *err)
{
    bool empty = w->frame_count == 0;
    bool holds = first > 0 && first <= last &&
                 (empty || (w->frames[0].is.first >= first &&
                            w->frames[w->frame_count - 1].is.last <= last));
    return holds || error_set(
                        err, ERROR_PERMANENT, "segment of '%s': it does not cover %llu to %llu",
                        w->header.stream, (unsigned long long)first, (unsigned long long)last);
}

bool segment_writer_finish(
    SegmentWriter *w, uint64_t first, uint64_t last, SegmentHeader *ret, Error *err)
{
    if (!end_frame(w, err) || !check_range(w, first, last, err)) {
        return false;
    }
    w->header.first = first;
    w->header.last = last;
    Buf end;
    buf_init(&end, (size_t)SEGMENT_FRAMES_MAX * 96);
    put_index(&end, w);
    put_seek_table(&end, w, (uint32_t)end.len);
    bool done = !end.full && hand_over(w, buf_view(&end), err);
    if (end.full) {
        error_set(err, ERROR_PERMANENT, "segment of '%s': too many frames", w->header.stream);
    }
    buf_done(&end);
    if (done) {
        *ret = w->header;
    }
    return done;
}
