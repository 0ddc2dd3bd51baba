// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/marks.h"

#include "common/base/log.h"

// For a row that cannot be changed at all: no claim takes it any more, and its reason can be read.
static const DbStatement ASIDE = {
    "outbox_aside", "INSERT INTO stentor_outbox.refused AS f (mapping, row_key, reason, refused_at)"
                    " VALUES ($1::text, $2::text, $3::text, now()) ON CONFLICT (mapping, row_key)"
                    " DO UPDATE SET reason = excluded.reason, refused_at = now(), again = false"};

void marks_init(
    Marks *marks, const RelaySql *sql, Str claim_id, const Row *rows, Post *posts, size_t count)
{
    *marks = (Marks){
        .sql = sql,
        .claim_id = claim_id,
        .rows = rows,
        .posts = posts,
        .count = count,
        .to = count,
    };
}

static size_t count_fate(const Marks *marks, PostFate fate)
{
    size_t count = 0;
    for (size_t i = marks->from; i < marks->to; i++) {
        count += marks->posts[i].fate == fate ? 1 : 0;
    }
    return count;
}

static void push_keys(const Marks *marks, DbParams *p, PostFate fate)
{
    DbArray *keys = db_array(p, DB_TEXT);
    for (size_t i = marks->from; i < marks->to; i++) {
        if (marks->posts[i].fate == fate) {
            db_push_text(keys, marks->rows[i].key);
        }
    }
}

static void push_attempts(const Marks *marks, DbParams *p, PostFate fate)
{
    DbArray *attempts = db_array(p, DB_I32);
    for (size_t i = marks->from; i < marks->to; i++) {
        if (marks->posts[i].fate == fate) {
            db_push_int(attempts, marks->rows[i].attempt);
        }
    }
}

static void push_reasons(const Marks *marks, DbParams *p, PostFate fate)
{
    DbArray *reasons = db_array(p, DB_TEXT);
    for (size_t i = marks->from; i < marks->to; i++) {
        if (marks->posts[i].fate == fate) {
            db_push_text(reasons, marks->posts[i].reason);
        }
    }
}

static void write_stored(const Marks *marks, DbTxn *txn)
{
    if (count_fate(marks, POST_STORED) == 0) {
        return;
    }
    DbParams *p = db_txn_add(txn, &marks->sql->mark, NULL);
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

static void write_aside(const Marks *marks, DbTxn *txn)
{
    DbParams *p = db_txn_add(txn, &ASIDE, NULL);
    db_text(p, marks->sql->mapping->name);
    db_text(p, marks->rows[marks->from].key);
    db_text(p, marks->posts[marks->from].reason);
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

void marks_write(const Marks *marks, DbTxn *txn)
{
    db_txn_add(txn, &marks->sql->plan, NULL);
    if (marks->aside) {
        write_aside(marks, txn);
    } else {
        write_stored(marks, txn);
        write_left(marks, txn);
        write_refused(marks, txn);
    }
    if (marks->to == marks->count && !marks->keep) {
        db_text(db_txn_add(txn, &marks->sql->release, NULL), marks->claim_id);
    }
}

static void pass(Marks *marks)
{
    marks->from = marks->to;
    marks->to = marks->count;
    marks->aside = false;
}

MarkCounts marks_take(Marks *marks)
{
    MarkCounts counts = {
        .marked = count_fate(marks, POST_STORED),
        .refused = count_fate(marks, POST_REFUSED),
        .left = count_fate(marks, POST_LEFT),
    };
    pass(marks);
    return counts;
}

// A stored row that cannot be marked is refused with the reason, so that it is not published for
// ever; one that cannot be changed at all is put aside in a table of ours. If even that fails, the
// claim is kept, and comes again when it has ended.
static void put_aside(Marks *marks, const Error *err)
{
    Post *post = &marks->posts[marks->from];
    if (post->fate == POST_STORED) {
        LOG(LOG_ERROR, "the application's table does not let a row be marked",
            log_str("row", marks->rows[marks->from].key), log_error(err));
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

bool marks_narrow(Marks *marks, const Error *err)
{
    if (err->kind != ERROR_PERMANENT) {
        return false;
    }
    if (marks->to - marks->from > 1) {
        marks->to = marks->from + (marks->to - marks->from) / 2;
    } else {
        put_aside(marks, err);
    }
    return true;
}
