// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/publish/marks.h"

#include "common/base/log.h"

enum {
    TRIES_MAX = 6,    // passes in which a row is refused; the pauses between them are the batch's
    REFUSALS_MAX = 3, // one by one; then the rest of the pass is tried as a whole
};

// For a row that cannot be changed at all: no claim takes it any more, and its reason can be read.
static const DbStatement ASIDE = {
    "outbox_aside", "INSERT INTO stentor_outbox.refused AS f (mapping, row_key, reason, refused_at)"
                    " VALUES ($1::text, $2::text, $3::text, now()) ON CONFLICT (mapping, row_key)"
                    " DO UPDATE SET reason = excluded.reason, refused_at = now(), again = false"};

void marks_init(
    Marks *marks, const RelaySql *sql, Str claim_id, const Row *rows, Post *posts, size_t count,
    Arena *arena)
{
    *marks = (Marks){
        .sql = sql,
        .claim_id = claim_id,
        .rows = rows,
        .posts = posts,
        .list = arena_array(arena, count, sizeof(*marks->list)),
        .count = count,
        .late = arena_array(arena, count, sizeof(*marks->late)),
        .tries = arena_array(arena, count, sizeof(*marks->tries)),
        .to = count,
        .width = count,
        .index = -1,
    };
    for (size_t i = 0; i < count; i++) {
        marks->list[i] = i;
    }
}

static size_t count_fate(const Marks *marks, PostFate fate)
{
    size_t count = 0;
    for (size_t i = marks->from; i < marks->to; i++) {
        count += marks->posts[marks->list[i]].fate == fate ? 1 : 0;
    }
    return count;
}

static void push_keys(const Marks *marks, DbParams *p, PostFate fate)
{
    DbArray *keys = db_array(p, DB_TEXT);
    for (size_t i = marks->from; i < marks->to; i++) {
        if (marks->posts[marks->list[i]].fate == fate) {
            db_push_text(keys, marks->rows[marks->list[i]].key);
        }
    }
}

static void push_attempts(const Marks *marks, DbParams *p, PostFate fate)
{
    DbArray *attempts = db_array(p, DB_I32);
    for (size_t i = marks->from; i < marks->to; i++) {
        if (marks->posts[marks->list[i]].fate == fate) {
            db_push_int(attempts, marks->rows[marks->list[i]].attempt);
        }
    }
}

static void push_reasons(const Marks *marks, DbParams *p, PostFate fate)
{
    DbArray *reasons = db_array(p, DB_TEXT);
    for (size_t i = marks->from; i < marks->to; i++) {
        if (marks->posts[marks->list[i]].fate == fate) {
            db_push_text(reasons, marks->posts[marks->list[i]].reason);
        }
    }
}

static void write_stored(Marks *marks, DbTxn *txn)
{
    marks->index = -1;
    if (count_fate(marks, POST_STORED) == 0) {
        return;
    }
    DbParams *p = db_txn_add(txn, &marks->sql->mark, &marks->index);
    push_keys(marks, p, POST_STORED);
    push_attempts(marks, p, POST_STORED);
}

static void write_left(const Marks *marks, DbTxn *txn)
{
    if (count_fate(marks, POST_LEFT) == 0) {
        return;
    }
    DbParams *p = db_txn_add(txn, &marks->sql->give_back, NULL);
    db_text(p, marks->claim_id);
    push_keys(marks, p, POST_LEFT);
    push_reasons(marks, p, POST_LEFT);
}

static void write_refused(const Marks *marks, DbTxn *txn)
{
    if (count_fate(marks, POST_REFUSED) == 0) {
        return;
    }
    DbParams *p = db_txn_add(txn, &marks->sql->refuse, NULL);
    db_text(p, marks->claim_id);
    push_keys(marks, p, POST_REFUSED);
    push_attempts(marks, p, POST_REFUSED);
    push_reasons(marks, p, POST_REFUSED);
}

// The release does nothing when `mark` has just found rows that somebody holds.
void marks_write(Marks *marks, DbTxn *txn)
{
    db_txn_add(txn, &marks->sql->plan, NULL);
    if (marks->aside) {
        marks->index = -1;
        size_t row = marks->list[marks->from];
        DbParams *p = db_txn_add(txn, &ASIDE, NULL);
        db_text(p, marks->sql->mapping->name);
        db_text(p, marks->rows[row].key);
        db_text(p, marks->posts[row].reason);
    } else {
        write_stored(marks, txn);
        write_left(marks, txn);
        write_refused(marks, txn);
    }
    if (marks->to == marks->count && marks->late_count == 0 && !marks->keep) {
        db_text(db_txn_add(txn, &marks->sql->release, NULL), marks->claim_id);
    }
}

// ---- what came of it ----

static void pass(Marks *marks)
{
    size_t left = marks->count - marks->to;
    marks->from = marks->to;
    marks->to += marks->width < left ? marks->width : left;
    marks->aside = false;
}

static void put_late(Marks *marks, size_t row)
{
    marks->late[marks->late_count++] = row;
}

// The answer has them in the order in which they were asked for, or in another.
static size_t take_held(Marks *marks, const PGresult *res)
{
    size_t held = 0;
    size_t at = marks->from;
    for (int n = 0; n < db_rows(res); n++) {
        Str key = db_get_text(res, n, 1);
        for (size_t seen = marks->from; !db_is_null(res, n, 1) && seen < marks->to; seen++) {
            size_t row = marks->list[at];
            at = at + 1 < marks->to ? at + 1 : marks->from;
            if (str_eq(marks->rows[row].key, key)) {
                put_late(marks, row);
                held++;
                break;
            }
        }
    }
    return held;
}

MarkCounts marks_take(Marks *marks, DbTxn *txn)
{
    MarkCounts counts = {
        .marked = count_fate(marks, POST_STORED),
        .refused = count_fate(marks, POST_REFUSED),
        .left = count_fate(marks, POST_LEFT),
    };
    if (marks->index >= 0) {
        counts.marked -= take_held(marks, db_txn_result(txn, marks->index));
    }
    marks->refusals = 0;
    marks->width = 2 * (marks->to - marks->from);
    pass(marks);
    return counts;
}

// A stored row that cannot be marked is refused with the reason, so that it is not published for
// ever; one that cannot be changed at all is put aside in a table of ours. If even that fails, the
// claim is kept, and comes again when it has ended.
static void put_aside(Marks *marks, const Error *err)
{
    size_t row = marks->list[marks->from];
    Post *post = &marks->posts[row];
    if (post->fate == POST_STORED) {
        LOG(LOG_ERROR, "the application's table does not let a row be marked",
            log_str("row", marks->rows[row].key), log_error(err));
        post->fate = POST_REFUSED;
        post->reason = STR("it is published, but its table does not let it be marked");
    } else if (!marks->aside) {
        marks->aside = true;
        post->fate = POST_REFUSED;
    } else {
        marks->keep = true;
        pass(marks);
    }
}

static void refuse_one(Marks *marks, const Error *err)
{
    size_t row = marks->list[marks->from];
    if (marks->posts[row].fate != POST_STORED || ++marks->tries[row] >= TRIES_MAX) {
        put_aside(marks, err);
        return;
    }
    put_late(marks, row);
    marks->refusals++;
    marks->width = marks->refusals < REFUSALS_MAX ? 1 : marks->count;
    pass(marks);
}

bool marks_narrow(Marks *marks, const Error *err)
{
    if (err->kind != ERROR_PERMANENT) {
        return false;
    }
    size_t width = marks->to - marks->from;
    if (width == 1) {
        refuse_one(marks, err);
    } else if (marks->refusals < REFUSALS_MAX) {
        marks->width = width / 2;
        marks->to = marks->from + marks->width;
    } else {
        marks->trouble = true;
        for (size_t i = marks->from; i < marks->to; i++) {
            put_late(marks, marks->list[i]);
        }
        pass(marks);
    }
    return true;
}

MarkStep marks_step(Marks *marks)
{
    if (marks->from < marks->count) {
        return MARKS_WRITE;
    }
    if (marks->late_count == 0) {
        return MARKS_DONE;
    }
    size_t *list = marks->list;
    marks->list = marks->late;
    marks->late = list;
    marks->count = marks->late_count;
    marks->late_count = 0;
    marks->width = marks->count;
    marks->from = 0;
    marks->to = marks->count;
    marks->refusals = 0;
    return MARKS_PAUSE;
}
