// SPDX-License-Identifier: Apache-2.0
// Segments written and read back: whole, from a place, by subject; and what is damaged.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/segment/segment_reader.h"
#include "common/segment/segment_writer.h"

enum { MANY = 5000, PAYLOAD = 700, FILE_MAX = 64 * 1024 * 1024 };

typedef struct File {
    Buf bytes;
    int fails_after; // sink calls; 0: never
} File;

static bool sink(void *ctx, Str bytes, Error *err)
{
    File *file = ctx;
    if (file->fails_after > 0 && --file->fails_after == 0) {
        return error_set(err, ERROR_TRANSIENT, "the disk is full");
    }
    return buf_str(&file->bytes, bytes);
}

static bool read_file(void *ctx, uint64_t offset, char *into, size_t len, Error *err)
{
    const File *file = ctx;
    if (offset + len > file->bytes.len) {
        return error_set(err, ERROR_PERMANENT, "read beyond the end");
    }
    memcpy(into, file->bytes.ptr + offset, len);
    return true;
}

static const int64_t noon_us = INT64_C(1790000000) * 1000000;

// Every second sequence, from 10 on; two tenants; payloads that do not compress well.
static SegmentRecord make(size_t i, char payload[PAYLOAD])
{
    uint32_t random = (uint32_t)i * 2654435761u + 1;
    for (size_t at = 0; at < PAYLOAD; at++) {
        random = random * 1664525u + 1013904223u;
        payload[at] = (char)(uint8_t)(random >> 24);
    }
    return (SegmentRecord){
        .sequence = 10 + 2 * i,
        .stored_at_us = noon_us + (int64_t)i * 1000,
        .subject = i % 3 == 0 ? STR("ntf.request.low.beta") : STR("ntf.request.low.acme"),
        .header_form = i % 5 == 0 ? SEGMENT_HEADERS_OWN : SEGMENT_HEADERS_DERIVED,
        .headers = i % 5 == 0 ? STR("\1a\1b") : STR_EMPTY,
        .payload = str_of(payload, i % 7 == 0 ? 0 : PAYLOAD),
    };
}

static SegmentHeader write_file(File *file, size_t count)
{
    Error err = {0};
    SegmentPacker *packer = segment_packer_new();
    SegmentWriter *writer =
        segment_writer_new(packer, &(SegmentOptions){"REQUEST_LOW", noon_us - 5, 'S'}, sink, file);
    buf_init(&file->bytes, FILE_MAX);
    char payload[PAYLOAD];
    for (size_t i = 0; i < count; i++) {
        SegmentRecord record = make(i, payload);
        assert_true(segment_writer_add(writer, &record, &err));
    }
    assert_int_equal(segment_writer_events(writer), count);
    SegmentHeader header;
    assert_true(segment_writer_finish(writer, 9, 10 + 2 * MANY, &header, &err));
    assert_int_equal(segment_writer_bytes(writer), file->bytes.len);
    segment_writer_free(writer);
    segment_packer_free(packer);
    return header;
}

static SegmentReader *open_file(File *file)
{
    Error err = {0};
    SegmentReader *reader = segment_reader_open(file->bytes.len, read_file, file, &err);
    assert_non_null(reader);
    return reader;
}

static void assert_record(const SegmentRecord *is, size_t i)
{
    char payload[PAYLOAD];
    SegmentRecord wanted = make(i, payload);
    assert_int_equal(is->sequence, wanted.sequence);
    assert_int_equal(is->stored_at_us, wanted.stored_at_us);
    assert_true(str_eq(is->subject, wanted.subject));
    assert_int_equal(is->header_form, wanted.header_form);
    assert_true(str_eq(is->headers, wanted.headers));
    assert_true(str_eq(is->payload, wanted.payload));
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    File file = {0};
    SegmentHeader written = write_file(&file, MANY);
    SegmentReader *reader = open_file(&file);
    const SegmentHeader *header = segment_reader_header(reader);
    assert_string_equal(header->stream, "REQUEST_LOW");
    assert_int_equal(header->created_us, noon_us - 5);
    assert_int_equal(header->class_code, 'S');
    assert_int_equal(header->first, 9);
    assert_int_equal(header->last, written.last);
    assert_int_equal(header->events, MANY);
    assert_int_equal(header->min_at_us, noon_us);
    assert_int_equal(header->max_at_us, noon_us + (MANY - 1) * 1000);
    size_t frames;
    (void)segment_reader_frames(reader, &frames);
    assert_in_range(frames, 3, 5);
    SegmentRecord record;
    Error err = {0};
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(segment_reader_next(reader, &record, &err), SEGMENT_RECORD);
        assert_record(&record, i);
    }
    assert_int_equal(segment_reader_next(reader, &record, &err), SEGMENT_END);
    segment_reader_free(reader);
    buf_done(&file.bytes);
}

static void it_begins_anywhere(void **state)
{
    (void)state;
    File file = {0};
    write_file(&file, MANY);
    SegmentReader *reader = open_file(&file);
    SegmentRecord record;
    Error err = {0};
    static const size_t places[] = {0, 1, 1497, 1498, 1499, 3000, MANY - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        segment_reader_from_sequence(reader, 10 + 2 * places[i] - 1); // between two of them
        assert_int_equal(segment_reader_next(reader, &record, &err), SEGMENT_RECORD);
        assert_record(&record, places[i]);
        segment_reader_from_time(reader, noon_us + (int64_t)places[i] * 1000 - 999);
        assert_int_equal(segment_reader_next(reader, &record, &err), SEGMENT_RECORD);
        assert_record(&record, places[i]);
    }
    segment_reader_from_sequence(reader, 10 + 2 * MANY);
    assert_int_equal(segment_reader_next(reader, &record, &err), SEGMENT_END);
    segment_reader_free(reader);
    buf_done(&file.bytes);
}

static void a_filter_gives_its_subjects_alone(void **state)
{
    (void)state;
    File file = {0};
    write_file(&file, 100);
    SegmentReader *reader = open_file(&file);
    segment_reader_filter(reader, "ntf.request.*.beta");
    SegmentRecord record;
    Error err = {0};
    size_t count = 0;
    while (segment_reader_next(reader, &record, &err) == SEGMENT_RECORD) {
        assert_record(&record, 3 * count++);
    }
    assert_int_equal(count, 34);
    segment_reader_free(reader);
    buf_done(&file.bytes);
}

static void subjects_match_as_in_nats(void **state)
{
    (void)state;
    assert_true(segment_subject_matches(STR("a.b"), STR("a.b")));
    assert_true(segment_subject_matches(STR("a.*"), STR("a.b")));
    assert_true(segment_subject_matches(STR("a.>"), STR("a.b.c")));
    assert_true(segment_subject_matches(STR(">"), STR("a")));
    assert_false(segment_subject_matches(STR("a.>"), STR("a")));
    assert_false(segment_subject_matches(STR("a.*"), STR("a.b.c")));
    assert_false(segment_subject_matches(STR("a.b"), STR("a")));
    assert_false(segment_subject_matches(STR("a.b"), STR("a.c")));
}

static void the_same_records_give_the_same_bytes(void **state)
{
    (void)state;
    File one = {0}, two = {0};
    write_file(&one, 2000);
    write_file(&two, 2000);
    assert_true(str_eq(buf_view(&one.bytes), buf_view(&two.bytes)));
    buf_done(&one.bytes);
    buf_done(&two.bytes);
}

// The library skips what is skippable: a stock `zstd -d` gives the records.
static void zstd_alone_unpacks_it(void **state)
{
    (void)state;
    File file = {0};
    write_file(&file, MANY);
    size_t room = (size_t)MANY * (PAYLOAD + 64);
    char *out = malloc(room);
    size_t len = ZSTD_decompress(out, room, file.bytes.ptr, file.bytes.len);
    assert_false(ZSTD_isError(len));
    assert_true(len > (size_t)MANY * PAYLOAD / 2);
    free(out);
    buf_done(&file.bytes);
}

// Each byte of a small one is changed in turn, and each length is tried: never another record.
static void a_damaged_one_is_refused_or_gives_what_was_written(void **state)
{
    (void)state;
    File file = {0};
    write_file(&file, 3);
    size_t refused = 0, size = file.bytes.len;
    for (size_t at = 0; at < 2 * size; at++) {
        Error err = {0};
        bool cut = at >= size;
        file.bytes.len = cut ? at - size : size;
        if (!cut) {
            file.bytes.ptr[at] ^= 0x20;
        }
        SegmentReader *reader = segment_reader_open(file.bytes.len, read_file, &file, &err);
        SegmentStep step = SEGMENT_BAD;
        SegmentRecord record;
        for (size_t i = 0; reader != NULL &&
                           (step = segment_reader_next(reader, &record, &err)) == SEGMENT_RECORD;
             i++) {
            assert_record(&record, i);
        }
        refused += reader == NULL || step == SEGMENT_BAD ? 1 : 0;
        assert_true(step == SEGMENT_END || (err.kind == ERROR_PERMANENT && err.text[0] != '\0'));
        segment_reader_free(reader);
        if (!cut) {
            file.bytes.ptr[at] ^= 0x20;
        }
    }
    // The seek table's copy of a frame's checksum is for other readers: 4 bytes, and 4 of the
    // index's.
    assert_in_range(refused, 2 * size - 8, 2 * size);
    buf_done(&file.bytes);
}

static void what_no_segment_takes_is_refused(void **state)
{
    (void)state;
    File file = {0};
    buf_init(&file.bytes, FILE_MAX);
    SegmentPacker *packer = segment_packer_new();
    SegmentWriter *writer =
        segment_writer_new(packer, &(SegmentOptions){"DEAD", 1, 'R'}, sink, &file);
    Error err = {0};
    SegmentRecord record = {.sequence = 5, .subject = STR("a"), .payload = STR("b")};
    assert_true(segment_writer_add(writer, &record, &err));
    assert_false(segment_writer_add(writer, &record, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_string_equal(err.text, "segment of 'DEAD': sequence 5 follows 5");
    record.sequence = 6;
    record.subject = STR_EMPTY;
    assert_false(segment_writer_add(writer, &record, &err));
    record.subject = STR("a");
    record.payload.len = SEGMENT_PAYLOAD_MAX + 1;
    assert_false(segment_writer_add(writer, &record, &err));
    SegmentHeader header;
    assert_false(segment_writer_finish(writer, 6, 9, &header, &err)); // 5 is outside
    assert_string_equal(err.text, "segment of 'DEAD': it does not cover 6 to 9");
    segment_writer_free(writer);
    segment_packer_free(packer);
    buf_done(&file.bytes);
}

static void a_full_disk_is_the_sinks_error(void **state)
{
    (void)state;
    File file = {.fails_after = 2};
    buf_init(&file.bytes, FILE_MAX);
    SegmentPacker *packer = segment_packer_new();
    SegmentWriter *writer =
        segment_writer_new(packer, &(SegmentOptions){"DEAD", 1, 'R'}, sink, &file);
    Error err = {0};
    char payload[PAYLOAD];
    bool added = true;
    for (size_t i = 0; i < MANY && added; i++) {
        SegmentRecord record = make(i, payload);
        added = segment_writer_add(writer, &record, &err);
    }
    assert_false(added);
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    segment_writer_free(writer);
    segment_packer_free(packer);
    buf_done(&file.bytes);
}

static void one_without_records_says_what_it_covers(void **state)
{
    (void)state;
    File file = {0};
    SegmentHeader header = write_file(&file, 0);
    assert_int_equal(header.events, 0);
    SegmentReader *reader = open_file(&file);
    SegmentRecord record;
    Error err = {0};
    assert_int_equal(segment_reader_next(reader, &record, &err), SEGMENT_END);
    assert_int_equal(segment_reader_header(reader)->first, 9);
    segment_reader_free(reader);
    buf_done(&file.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(it_begins_anywhere),
        cmocka_unit_test(a_filter_gives_its_subjects_alone),
        cmocka_unit_test(subjects_match_as_in_nats),
        cmocka_unit_test(the_same_records_give_the_same_bytes),
        cmocka_unit_test(zstd_alone_unpacks_it),
        cmocka_unit_test(a_damaged_one_is_refused_or_gives_what_was_written),
        cmocka_unit_test(what_no_segment_takes_is_refused),
        cmocka_unit_test(a_full_disk_is_the_sinks_error),
        cmocka_unit_test(one_without_records_says_what_it_covers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
