// SPDX-License-Identifier: Apache-2.0
// links: stentor_segment
// What a log segment costs: events a second of CPU, packed and read back, and bytes an event, for
// requests (about 620 B, half of it random) and statuses (360 B, a third of it random).
//   tests/bench/archive builds and runs it
// A JSON list of {"name", "value", "unit"}, as tests/bench/run --json writes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/segment/segment_reader.h"
#include "common/segment/segment_writer.h"

enum { BATCH = 3000, EVENTS = 100 * BATCH, PAYLOAD_MAX = 1024 };

typedef struct Kind {
    const char *name;
    size_t words, random; // bytes of each in a payload
    int turns;            // random parts are spread over so many places
} Kind;

static bool keep(void *ctx, Str bytes, Error *err)
{
    (void)err;
    return buf_str(ctx, bytes);
}

static bool read_kept(void *ctx, uint64_t offset, char *into, size_t len, Error *err)
{
    (void)err;
    const Buf *file = ctx;
    memcpy(into, file->ptr + offset, len);
    return true;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// Words that repeat from event to event, random bytes between them.
static Str make(const Kind *kind, char out[PAYLOAD_MAX], uint64_t *random)
{
    static const char words[] =
        "order-confirmation en-GB customer.first_name order.number order.total order.lines "
        "transactional normal acme-shop https://shop.example.com/orders/ Europe/London ";
    size_t at = 0;
    for (int turn = 0; turn < kind->turns; turn++) {
        for (size_t i = 0; i < kind->words / (size_t)kind->turns; i++) {
            out[at] = words[at % (sizeof words - 1)];
            at++;
        }
        for (size_t i = 0; i < kind->random / (size_t)kind->turns; i++) {
            out[at++] = (char)(uint8_t)next_random(random);
        }
    }
    return str_of(out, at);
}

static void print(const char *kind, const char *what, double value, const char *unit, bool last)
{
    printf(
        "{\"name\": \"segment_%s_%s\", \"value\": %.0f, \"unit\": \"%s\"}%s\n", kind, what, value,
        unit, last ? "]" : ",");
}

static double rate(int64_t took_us)
{
    return (double)EVENTS * 1e6 / (double)(took_us > 0 ? took_us : 1);
}

typedef struct Batch {
    SegmentRecord records[BATCH];
    char payloads[BATCH][PAYLOAD_MAX];
    char subjects[BATCH][64];
} Batch;

static void fill(Batch *batch, const Kind *kind, uint64_t first, uint64_t *random)
{
    for (uint64_t i = 0; i < BATCH; i++) {
        int len = snprintf(
            batch->subjects[i], sizeof batch->subjects[i], "ntf.%s.tenant-%d", kind->name,
            (int)(i % 20));
        batch->records[i] = (SegmentRecord){
            .sequence = first + i,
            .stored_at_us = INT64_C(1790000000000000) + (int64_t)(first + i) * 37,
            .subject = str_of(batch->subjects[i], (size_t)len),
            .payload = make(kind, batch->payloads[i], random)};
    }
}

static int64_t pack(const Kind *kind, Buf *file)
{
    SegmentPacker *packer = segment_packer_new();
    SegmentWriter *writer =
        segment_writer_new(packer, &(SegmentOptions){"STATUS", 1, 'R'}, keep, file);
    Batch *batch = xmalloc(sizeof *batch);
    uint64_t random = 88172645463325252u;
    int64_t took_us = 0;
    Error err = {0};
    for (uint64_t first = 1; first <= EVENTS; first += BATCH) {
        fill(batch, kind, first, &random);
        int64_t from_us = clock_thread_cpu_us();
        for (size_t i = 0; i < BATCH; i++) {
            if (!segment_writer_add(writer, &batch->records[i], &err)) {
                abort();
            }
        }
        took_us += clock_thread_cpu_us() - from_us;
    }
    SegmentHeader header;
    if (!segment_writer_finish(writer, 1, EVENTS, &header, &err)) {
        abort();
    }
    free(batch);
    segment_writer_free(writer);
    segment_packer_free(packer);
    return took_us;
}

static int64_t unpack(Buf *file)
{
    Error err = {0};
    int64_t from_us = clock_thread_cpu_us();
    SegmentReader *reader = segment_reader_open(file->len, read_kept, file, &err);
    SegmentRecord record;
    uint64_t count = 0;
    while (segment_reader_next(reader, &record, &err) == SEGMENT_RECORD) {
        count++;
    }
    if (count != EVENTS) {
        abort();
    }
    segment_reader_free(reader);
    return clock_thread_cpu_us() - from_us;
}

static void measure(const Kind *kind, bool last)
{
    Buf file;
    buf_init(&file, (size_t)1 << 30);
    int64_t packed_us = pack(kind, &file);
    int64_t read_us = unpack(&file);
    print(kind->name, "packed", rate(packed_us), "events/s", false);
    print(kind->name, "read", rate(read_us), "events/s", false);
    print(kind->name, "bytes", (double)file.len / EVENTS, "B/event", last);
    buf_done(&file);
}

int main(void)
{
    static const Kind kinds[] = {{"request", 290, 330, 8}, {"status", 240, 120, 6}};
    printf("[");
    measure(&kinds[0], false);
    measure(&kinds[1], true);
    return 0;
}
