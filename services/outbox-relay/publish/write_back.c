// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/write_back.h"

#include "common/base/log.h"

enum {
    TRIES_MAX = 6,    // passes in which a row is rejected; batch.c pauses between them
    REFUSALS_MAX = 3, // one after the other; then the rest of the pass is tried as a whole
};

// For a row that cannot be changed at all: no claim takes it, and operators can read the reason.
static const DbStatement ASIDE = {
    "outbox_aside",
    "INSERT INTO stentor_outbox.rejected_rows AS f (mapping, row_key, reason, rejected_at)"
    " VALUES ($1::text, $2::text, $3::text, now()) ON CONFLICT (mapping, row_key)"
    " DO UPDATE SET reason = excluded.reason, rejected_at = now(), again = false"};

void write_back_init(
    WriteBack *back, const RelaySql *sql, Str claim_id, const Row *rows, Post *posts, size_t count,
    Arena *arena)
{
    *back = (WriteBack){
        .sql = sql,
        .claim_id = claim_id,
        .rows = rows,
        .posts = posts,
        .list = arena_array(arena, count, sizeof(*back->list)),
        .count = count,
        .late = arena_array(arena, count, sizeof(*back->late)),
        .tries = arena_array(arena, count, sizeof(*back->tries)),
        .to = count,
        .width = count,
        .index = -1,
    };
    for (size_t i = 0; i < count; i++) {
        back->list[i] = i;
    }
}

static size_t count_fate(const WriteBack *back, PostFate fate)
{
    size_t count = 0;
    for (size_t i = back->from; i < back->to; i++) {
        count += back->posts[back->list[i]].fate == fate ? 1 : 0;
    }
    return count;
}

typedef enum Column { COLUMN_KEYS, COLUMN_ATTEMPTS, COLUMN_REASONS } Column;

// One column of the rows with this fate.
static void push(const WriteBack *back, DbParams *p, PostFate fate, Column column)
{
    DbArray *values = db_array(p, column == COLUMN_ATTEMPTS ? DB_I32 : DB_TEXT);
    for (size_t i = back->from; i < back->to; i++) {
        size_t row = back->list[i];
        if (back->posts[row].fate != fate) {
            continue;
        }
        if (column == COLUMN_ATTEMPTS) {
            db_push_int(values, back->rows[row].attempt);
        } else {
            db_push_text(
                values, column == COLUMN_KEYS ? back->rows[row].key : back->posts[row].reason);
        }
    }
}

static void write_stored(WriteBack *back, DbTxn *txn)
{
    back->index = -1;
    if (count_fate(back, POST_STORED) > 0) {
        DbParams *p = db_txn_add(txn, &back->sql->mark, &back->index);
        push(back, p, POST_STORED, COLUMN_KEYS);
        push(back, p, POST_STORED, COLUMN_ATTEMPTS);
    }
}

static void write_unstored(const WriteBack *back, PostFate fate, DbTxn *txn)
{
    if (count_fate(back, fate) == 0) {
        return;
    }
    bool refused = fate == POST_REFUSED;
    DbParams *p = db_txn_add(txn, refused ? &back->sql->refuse : &back->sql->give_back, NULL);
    db_text(p, back->claim_id);
    push(back, p, fate, COLUMN_KEYS);
    if (refused) {
        push(back, p, fate, COLUMN_ATTEMPTS);
    }
    push(back, p, fate, COLUMN_REASONS);
}

// The release does nothing if `mark` has just found locked rows.
void write_back_write(WriteBack *back, DbTxn *txn)
{
    db_txn_add(txn, &back->sql->plan, NULL);
    if (back->aside) {
        back->index = -1;
        size_t row = back->list[back->from];
        DbParams *p = db_txn_add(txn, &ASIDE, NULL);
        db_text(p, back->sql->mapping->name);
        db_text(p, back->rows[row].key);
        db_text(p, back->posts[row].reason);
    } else {
        write_stored(back, txn);
        write_unstored(back, POST_LEFT, txn);
        write_unstored(back, POST_REFUSED, txn);
    }
    if (back->to == back->count && back->late_count == 0 && !back->keep) {
        db_text(db_txn_add(txn, &back->sql->release, NULL), back->claim_id);
    }
}

// ---- reading the outcome ----

static void pass(WriteBack *back)
{
    size_t left = back->count - back->to;
    back->from = back->to;
    back->to += back->width < left ? back->width : left;
    back->aside = false;
}

static void put_late(WriteBack *back, size_t row)
{
    back->late[back->late_count++] = row;
}

// The answer is usually, but not always, in the order of the request.
static size_t take_held(WriteBack *back, const PGresult *res)
{
    size_t held = 0;
    size_t at = back->from;
    for (int n = 0; n < db_rows(res); n++) {
        Str key = db_get_text(res, n, 1);
        for (size_t seen = back->from; !db_is_null(res, n, 1) && seen < back->to; seen++) {
            size_t row = back->list[at];
            at = at + 1 < back->to ? at + 1 : back->from;
            if (str_eq(back->rows[row].key, key)) {
                put_late(back, row);
                held++;
                break;
            }
        }
    }
    return held;
}

WriteBackCounts write_back_take(WriteBack *back, DbTxn *txn)
{
    WriteBackCounts counts = {
        .marked = count_fate(back, POST_STORED),
        .refused = count_fate(back, POST_REFUSED),
        .left = count_fate(back, POST_LEFT),
    };
    if (back->index >= 0) {
        counts.marked -= take_held(back, db_txn_result(txn, back->index));
    }
    back->refusals = 0;
    back->width = 2 * (back->to - back->from);
    pass(back);
    return counts;
}

// A stored row that cannot be marked is rejected with the reason, so that it is not published again
// and again. A row that cannot be changed at all is recorded in stentor_outbox. If even that fails,
// the claim is kept and adopted when it expires.
static void put_aside(WriteBack *back, const Error *err)
{
    size_t row = back->list[back->from];
    Post *post = &back->posts[row];
    if (post->fate == POST_STORED) {
        LOG(LOG_ERROR,
            "the outbox table rejects the marking of a published row, the row is put aside "
            "(stentor outbox show)",
            log_str("row", back->rows[row].key), log_error(err));
        post->fate = POST_REFUSED;
        post->reason = STR("the row is published, but its table rejects the mark");
    } else if (!back->aside) {
        back->aside = true;
        post->fate = POST_REFUSED;
    } else {
        back->keep = true;
        pass(back);
    }
}

static void refuse_one(WriteBack *back, const Error *err)
{
    size_t row = back->list[back->from];
    if (back->posts[row].fate != POST_STORED || ++back->tries[row] >= TRIES_MAX) {
        put_aside(back, err);
        return;
    }
    put_late(back, row);
    back->refusals++;
    back->width = back->refusals < REFUSALS_MAX ? 1 : back->count;
    pass(back);
}

bool write_back_narrow(WriteBack *back, const Error *err)
{
    if (err->kind != ERROR_PERMANENT) {
        return false;
    }
    size_t width = back->to - back->from;
    if (width == 1) {
        refuse_one(back, err);
    } else if (back->refusals < REFUSALS_MAX) {
        back->width = width / 2;
        back->to = back->from + back->width;
    } else {
        back->trouble = true;
        for (size_t i = back->from; i < back->to; i++) {
            put_late(back, back->list[i]);
        }
        pass(back);
    }
    return true;
}

WriteBackStep write_back_step(WriteBack *back)
{
    if (back->from < back->count) {
        return WRITE_BACK_WRITE;
    }
    if (back->late_count == 0) {
        return WRITE_BACK_DONE;
    }
    size_t *list = back->list;
    back->list = back->late;
    back->late = list;
    back->count = back->late_count;
    back->late_count = 0;
    back->width = back->count;
    back->from = 0;
    back->to = back->count;
    back->refusals = 0;
    return WRITE_BACK_PAUSE;
}
