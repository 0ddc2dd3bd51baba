// SPDX-License-Identifier: Apache-2.0
// Few keys: updated where they are, in batches, each a transaction of its own. Killed anywhere, the
// rest is left for the next turn.
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "common/db/db.h"
#include "common/keywork/internal.h"

enum { BATCH = 500 };

typedef struct Batch {
    KeyworkArray subjects, generations, old, fresh;
    size_t count;
} Batch;

static void begin_batch(Batch *batch)
{
    keywork_array_begin(&batch->subjects, KEYWORK_BYTEA);
    keywork_array_begin(&batch->generations, KEYWORK_INT4);
    keywork_array_begin(&batch->old, KEYWORK_BYTEA);
    keywork_array_begin(&batch->fresh, KEYWORK_BYTEA);
    batch->count = 0;
}

static void push_row(Batch *batch, const PGresult *rows, int row, const uint8_t *wrapped)
{
    keywork_array_push(&batch->subjects, PQgetvalue(rows, row, 1), KEY_SUBJECT_LEN);
    keywork_array_push(&batch->generations, PQgetvalue(rows, row, 2), 4);
    Str old = db_get_text(rows, row, 3);
    keywork_array_push(&batch->old, old.ptr, old.len);
    keywork_array_push(&batch->fresh, wrapped, WRAPPED_KEY_LEN);
    batch->count++;
}

// A key that cannot be opened stays as it is.
static void wrap_rows(Keywork *work, const PGresult *rows, Batch *batch, KeyworkReport *ret)
{
    ret->failed = 0; // the rows that fail are those that are left: they come again
    begin_batch(batch);
    for (int i = 0; i < db_rows(rows); i++) {
        uint8_t wrapped[WRAPPED_KEY_LEN];
        Str subject = db_get_text(rows, i, 1);
        bool ok = subject.len == KEY_SUBJECT_LEN &&
                  data_key_rewrap(
                      work->master, (const uint8_t *)subject.ptr, (uint32_t)db_get_int(rows, i, 2),
                      db_get_text(rows, i, 3), wrapped, &ret->failure);
        if (ok) {
            push_row(batch, rows, i, wrapped);
        } else {
            ret->failed++;
        }
    }
}

static bool write_batch(Keywork *work, Batch *batch, KeyworkReport *ret, Error *err)
{
    KeyworkArray *arrays[] = {&batch->subjects, &batch->generations, &batch->old, &batch->fresh};
    const char *values[4];
    int lengths[4];
    for (int i = 0; i < 4; i++) {
        keywork_array_end(arrays[i]);
        values[i] = arrays[i]->bytes.ptr;
        lengths[i] = (int)arrays[i]->bytes.len;
    }
    CLEANUP(keywork_clear)
    PGresult *done = keywork_ask(
        work, "SELECT keys.rewrap($1::bytea[], $2::int4[], $3::bytea[], $4::bytea[])", 4, values,
        lengths, err);
    if (done != NULL) {
        ret->wrapped += (uint64_t)db_get_int(done, 0, 0);
    }
    return done != NULL;
}

// *ret_more false: nothing is left, or nothing that can be opened.
static bool next_batch(
    Keywork *work, Str head, Batch *batch, KeyworkReport *ret, bool *ret_more, Error *err)
{
    const char *const values[] = {head.ptr};
    const int lengths[] = {(int)head.len};
    CLEANUP(keywork_clear)
    PGresult *rows = keywork_ask(
        work, "SELECT tenant_id, subject, generation, wrapped FROM keys.to_rewrap($1::bytea, 500)",
        1, values, lengths, err);
    if (rows == NULL) {
        return false;
    }
    wrap_rows(work, rows, batch, ret);
    *ret_more = batch->count > 0;
    return batch->count == 0 || write_batch(work, batch, ret, err);
}

static bool update_all(Keywork *work, Str head, KeyworkReport *ret, Error *err)
{
    Batch batch = {.count = 0};
    bool more = true;
    bool ok = true;
    while (ok && more) {
        ok = keywork_goes_on(work, err) && next_batch(work, head, &batch, ret, &more, err);
    }
    buf_done(&batch.subjects.bytes);
    buf_done(&batch.generations.bytes);
    buf_done(&batch.old.bytes);
    buf_done(&batch.fresh.bytes);
    return ok;
}

static bool count_left(Keywork *work, Str head, uint64_t *ret, Error *err)
{
    char most[16];
    const char *const values[] = {head.ptr, most};
    const int lengths[] = {(int)head.len, 0};
    (void)snprintf(most, sizeof most, "%zu", work->options.bulk_min);
    CLEANUP(keywork_clear)
    PGresult *rows = keywork_ask(
        work, "SELECT keys.count_left($1::bytea, $2::text::int4)", 2, values, lengths, err);
    if (rows == NULL) {
        return false;
    }
    // Null: Postgres names another key as the current one. A file that is older has nothing to do.
    *ret = db_is_null(rows, 0, 0) ? 0 : (uint64_t)db_get_int(rows, 0, 0);
    return true;
}

bool keywork_rewrap(Keywork *work, KeyworkReport *ret, Error *err)
{
    uint8_t bytes[WRAPPED_HEAD_LEN];
    wrapper_head(work->master, bytes);
    Str head = str_of(bytes, sizeof bytes);
    uint64_t left = 0;
    if (!count_left(work, head, &left, err)) {
        return false;
    }
    if (left == 0) {
        return true;
    }
    bool bulk = left >= work->options.bulk_min && work->stuck < work->options.bulk_min;
    bool ok = bulk ? keywork_bulk(work, head, ret, err) : update_all(work, head, ret, err);
    work->stuck = ok ? ret->failed : work->stuck;
    return ok && count_left(work, head, &ret->left, err);
}
