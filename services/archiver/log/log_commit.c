// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/log/log_tape.h"

enum { TENANTS_SIZE = LOG_TENANTS_MAX * 33 + 1 };

// clang-format off
static const DbStatement store_window = {
    .name = "log_store_window",
    .sql = "SELECT archive.store_window($1::text, $2::int8, $3::timestamptz, $4::int8, $5::int8, $6::timestamptz, $7::text[], $8::text[], "
           "$9::int8[], $10::int8[], $11::bytea[], $12::timestamptz[], $13::timestamptz[], $14::text[], $15::text[])"};
static const DbStatement note_hole = {
    .name = "log_note_hole",
    .sql = "SELECT archive.note_hole($1::text, $2::int8, $3::int8, $4::int8, $5::text, $6::timestamptz)"};
// clang-format on

static void add_texts(const LogWindow *w, DbParams *params)
{
    DbArray *classes = db_array(params, DB_TEXT);
    DbArray *keys = db_array(params, DB_TEXT);
    for (size_t i = 0; i < w->file_count; i++) {
        db_push_text(classes, str_of(&w->files[i].header.class_code, 1));
        db_push_text(keys, str_from(w->files[i].key));
    }
}

static void add_numbers(const LogWindow *w, DbParams *params)
{
    DbArray *events = db_array(params, DB_I64);
    DbArray *bytes = db_array(params, DB_I64);
    DbArray *hashes = db_array(params, DB_BYTES);
    DbArray *from = db_array(params, DB_TIME);
    DbArray *to = db_array(params, DB_TIME);
    for (size_t i = 0; i < w->file_count; i++) {
        const LogFile *file = &w->files[i];
        db_push_int(events, (int64_t)file->header.events);
        db_push_int(bytes, (int64_t)file->bytes);
        db_push_text(hashes, str_of(file->sha256, sizeof file->sha256));
        db_push_time(from, file->header.min_at_us);
        db_push_time(to, file->header.max_at_us);
    }
}

// Versions are what a deletion names; tenants, what a hold asks for.
static void add_owners(const LogWindow *w, DbParams *params)
{
    DbArray *versions = db_array(params, DB_TEXT);
    DbArray *tenants = db_array(params, DB_TEXT);
    Buf names;
    buf_init(&names, TENANTS_SIZE);
    for (size_t i = 0; i < w->file_count; i++) {
        buf_clear(&names);
        log_tenants_print(w->files[i].tenants, &names);
        db_push_optional(versions, str_from(w->files[i].version));
        db_push_optional(tenants, buf_view(&names));
    }
    buf_done(&names);
}

void tape_add_window(const Tape *tape, DbTxn *txn)
{
    const LogWindow *w = &tape->window;
    DbParams *params = db_txn_add(txn, &store_window, NULL);
    db_text(params, str_from(tape->stream->stream));
    db_i64(params, (int64_t)tape->at.number + 1);
    db_time(params, w->created_us);
    db_i64(params, (int64_t)w->first);
    db_i64(params, (int64_t)w->last);
    db_time(params, w->last_at_us);
    add_texts(w, params);
    add_numbers(w, params);
    add_owners(w, params);
}

void tape_add_hole(const Tape *tape, DbTxn *txn)
{
    DbParams *params = db_txn_add(txn, &note_hole, NULL);
    db_text(params, str_from(tape->stream->stream));
    db_i64(params, (int64_t)tape->at.number + 1);
    db_i64(params, (int64_t)tape->hole.first);
    db_i64(params, (int64_t)tape->hole.last);
    db_text(params, str_from(tape->hole.reason));
    db_time(params, tape->found_created_us);
}
