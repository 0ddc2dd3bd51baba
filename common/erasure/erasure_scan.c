// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_scan.h"

#include <stdlib.h>
#include <string.h>

#include "common/erasure/erasure_segment.h"
#include "common/eventlog/log_streams.h"
#include "common/session/stream_walk.h"

enum { ROOM = 64 };

static const char FIELDS[] = "SELECT field, key_exists FROM erasure.fields($1)";
static const char TABLES[] =
    "SELECT place, looked_at, sealed, readable, in_clear FROM erasure.scan($1, $2::text[])";
static const char SEGMENTS[] =
    "SELECT stream || ' ' || first_sequence || '-' || last_sequence || ' ' || class, key, bytes,"
    " encode(sha256, 'hex'), first_sequence, last_sequence FROM archive.segments"
    " WHERE deleted_at IS NULL ORDER BY stream, window_number, class";

static uint64_t number(const PGresult *rows, int row, int column)
{
    return strtoull(PQgetvalue(rows, row, column), NULL, 10);
}

ErasurePlace *erasure_add_place(ErasureScan *scan, const char *kind, const char *name)
{
    if (scan->count == scan->room) {
        ErasurePlace *more = arena_array(scan->arena, scan->room + ROOM, sizeof *more);
        if (scan->count > 0) {
            memcpy(more, scan->places, scan->count * sizeof *more);
        }
        scan->places = more;
        scan->room += ROOM;
    }
    ErasurePlace *place = &scan->places[scan->count++];
    *place = (ErasurePlace){.kind = kind, .name = arena_cstr(scan->arena, str_from(name))};
    return place;
}

bool erasure_scan_begin(
    PGconn *pg, const char *id, const Str *texts, size_t text_count, Arena *arena, ErasureScan *ret,
    Error *err)
{
    *ret = (ErasureScan){.arena = arena, .id = id, .texts = texts, .text_count = text_count};
    AUTO(PGresult) rows = erasure_pg_query(pg, FIELDS, 1, &id, err);
    if (rows == NULL) {
        return false;
    }
    ret->field_count = (size_t)PQntuples(rows);
    ret->fields = arena_array(arena, ret->field_count + 1, sizeof *ret->fields);
    for (size_t i = 0; i < ret->field_count; i++) {
        ret->fields[i] = (ErasureField){
            .bytes = erasure_pg_get_bytes(rows, (int)i, 0, arena),
            .key_exists = PQgetvalue(rows, (int)i, 1)[0] == 't'};
    }
    return true;
}

// ---- tables ----

bool erasure_scan_tables(ErasureScan *scan, PGconn *pg, Error *err)
{
    const char *params[] = {scan->id, erasure_pg_texts(scan->texts, scan->text_count, scan->arena)};
    AUTO(PGresult) rows = erasure_pg_query(pg, TABLES, 2, params, err);
    for (int i = 0; rows != NULL && i < PQntuples(rows); i++) {
        ErasurePlace *place = erasure_add_place(scan, "table", PQgetvalue(rows, i, 0));
        place->looked_at = number(rows, i, 1);
        place->sealed = number(rows, i, 2);
        place->readable = number(rows, i, 3);
        place->in_clear = number(rows, i, 4);
    }
    return rows != NULL;
}

// ---- bytes ----

void erasure_look_at(const ErasureScan *scan, ErasurePlace *place, Str bytes)
{
    bool sealed = false, readable = false, in_clear = false;
    for (size_t i = 0; i < scan->field_count; i++) {
        bool named = str_contains(bytes, scan->fields[i].bytes);
        sealed |= named;
        readable |= named && scan->fields[i].key_exists;
    }
    for (size_t i = 0; i < scan->text_count; i++) {
        in_clear |= str_contains(bytes, scan->texts[i]);
    }
    place->looked_at++;
    place->sealed += sealed;
    place->readable += readable;
    place->in_clear += in_clear;
}

// ---- streams ----

typedef struct Looking {
    const ErasureScan *scan;
    ErasurePlace *place;
} Looking;

static void on_message(void *ctx, const BusMessage *message)
{
    const Looking *looking = ctx;
    ErasurePlace *place = looking->place;
    place->first = place->first == 0 ? message->sequence : place->first;
    place->last = message->sequence;
    erasure_look_at(looking->scan, place, message->payload);
}

bool erasure_scan_streams(ErasureScan *scan, Session *session, Error *err)
{
    size_t count = 0;
    const LogStream *streams = log_streams(&count);
    for (size_t i = 0; i < count; i++) {
        Looking looking = {scan, erasure_add_place(scan, "stream", streams[i].stream)};
        if (!session_walk(session, streams[i].stream, NULL, on_message, &looking, err)) {
            return error_wrap(err, "stream '%s'", streams[i].stream);
        }
    }
    return true;
}

// ---- segments ----

static void on_record(void *ctx, const SegmentRecord *record)
{
    const Looking *looking = ctx;
    erasure_look_at(looking->scan, looking->place, record->payload);
}

bool erasure_scan_segments(ErasureScan *scan, PGconn *pg, StorageWait *storage, Error *err)
{
    AUTO(PGresult) rows = erasure_pg_query(pg, SEGMENTS, 0, NULL, err);
    bool ok = rows != NULL;
    for (int i = 0; ok && i < PQntuples(rows); i++) {
        ErasurePlace *place = erasure_add_place(scan, "segment", PQgetvalue(rows, i, 0));
        place->sha256 = arena_cstr(scan->arena, str_from(PQgetvalue(rows, i, 3)));
        place->first = number(rows, i, 4);
        place->last = number(rows, i, 5);
        Looking looking = {scan, place};
        ok = erasure_segment_each(
            storage, PQgetvalue(rows, i, 1), number(rows, i, 2), on_record, &looking, err);
    }
    return ok;
}
