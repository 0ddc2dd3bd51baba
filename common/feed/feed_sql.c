// SPDX-License-Identifier: Apache-2.0
#include "common/feed/feed_sql.h"

#include "common/codec/event.h"
#include "common/feed/feed_event.h"
#include "common/model/enums.h"

// Rows are found by key, for each of them: never a scan, whatever the planner believes of the
// tables' sizes.
// clang-format off
static const DbStatement PLAN = {"feed_plan",
    "SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true),"
    " set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)"};

static const DbStatement LOST_TAIL = {"feed_lost_tail", "SELECT feed.forget_lost_tail($1::int8)"};

// An item that is there already changes nothing.
static const DbStatement ITEMS = {"feed_items",
    "WITH added AS (INSERT INTO feed.items (tenant_id, recipient, notification_id, category, template, locale, direction, key_subject,"
    " content, created_at, placed_at, expires_at, stored_sequence, sequence)"
    " SELECT u.tenant_id, u.recipient, u.notification_id, u.category, u.template, u.locale, u.direction, u.key_subject, u.content,"
    " u.created_at, u.created_at, u.expires_at, u.sequence, u.sequence"
    " FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[], $9::bytea[],"
    " $10::timestamptz[], $11::timestamptz[], $12::int8[]) AS u (tenant_id, recipient, notification_id, category, template, locale,"
    " direction, key_subject, content, created_at, expires_at, sequence)"
    " ON CONFLICT DO NOTHING RETURNING tenant_id, recipient, category, sequence)"
    " INSERT INTO feed.counters AS c (tenant_id, recipient, category, unseen, unread, total, version)"
    " SELECT tenant_id, recipient, category, count(*), count(*), count(*), max(sequence) FROM added GROUP BY 1, 2, 3"
    " ON CONFLICT (recipient, tenant_id, category) DO UPDATE SET unseen = c.unseen + excluded.unseen,"
    " unread = c.unread + excluded.unread, total = c.total + excluded.total, version = greatest(c.version, excluded.version)"};

#define FOUND " FROM u CROSS JOIN LATERAL (SELECT * FROM feed.items q WHERE q.recipient = u.recipient AND q.notification_id = u.notification_id" \
    " AND q.tenant_id = u.tenant_id OFFSET 0) AS i"

// The row as it will be, and what that changes. `m` has what is said of it.
#define CHANGE \
    ", n AS MATERIALIZED (SELECT m.*, CASE WHEN m.read_last IS NULL OR m.read_last <= m.unread THEN NULL" \
    "   WHEN m.unread IS NULL THEN m.opened ELSE m.read_last END AS is_read FROM m)," \
    " d AS MATERIALIZED (SELECT n.*," \
    "   (n.archived IS NULL AND n.snoozed IS NULL)::int AS shown, (n.old_archived IS NULL AND n.old_snoozed IS NULL)::int AS was_shown FROM n)," \
    " done AS (UPDATE feed.items i SET fetched_at = d.fetched, seen_at = d.seen, opened_at = d.opened, clicked_at = d.clicked," \
    "   read_last_at = d.read_last, unread_at = d.unread, read_at = d.is_read, archived_at = d.archived, archive_changed_at = d.archive_changed," \
    "   snoozed_until = d.snoozed, snooze_changed_at = d.snooze_changed, placed_at = d.placed, sequence = greatest(i.sequence, d.said)" \
    "  FROM d WHERE i.recipient = d.recipient AND i.notification_id = d.notification_id AND i.tenant_id = d.tenant_id" \
    "  RETURNING d.tenant_id, d.recipient, d.category, d.notification_id, d.said," \
    "   CASE WHEN d.old_fetched IS NULL THEN d.fetched END AS delivered, CASE WHEN d.old_opened IS NULL THEN d.opened END AS opened," \
    "   CASE WHEN d.old_clicked IS NULL THEN d.clicked END AS clicked, d.shown - d.was_shown AS total," \
    "   d.shown * (d.seen IS NULL)::int - d.was_shown * (d.old_seen IS NULL)::int AS unseen," \
    "   d.shown * (d.is_read IS NULL)::int - d.was_shown * (d.old_read IS NULL)::int AS unread)"

#define TELL \
    ", reports AS (INSERT INTO feed.statuses (tenant_id, notification_id, status, category, occurred_at)" \
    "  SELECT o.tenant_id, o.notification_id, v.status, o.category, v.at FROM done o CROSS JOIN LATERAL" \
    "  (VALUES ('delivered', o.delivered), ('opened', o.opened), ('clicked', o.clicked)) AS v (status, at)" \
    "  WHERE v.at IS NOT NULL ON CONFLICT DO NOTHING)"

#define COUNT(source) \
    " UPDATE feed.counters c SET unseen = c.unseen + s.unseen, unread = c.unread + s.unread, total = c.total + s.total," \
    " version = greatest(c.version, s.version) FROM (SELECT tenant_id, recipient, category, sum(unseen)::int AS unseen," \
    " sum(unread)::int AS unread, sum(total)::int AS total, max(said) AS version FROM " source " GROUP BY 1, 2, 3) AS s" \
    " WHERE c.recipient = s.recipient AND c.tenant_id = s.tenant_id AND c.category = s.category"

// The columns of `m` that what is said does not change.
#define KEYS "i.tenant_id, i.recipient, i.notification_id, i.category, u.sequence AS said, i.fetched_at AS old_fetched, i.seen_at AS old_seen," \
    " i.opened_at AS old_opened, i.clicked_at AS old_clicked, i.read_at AS old_read, i.archived_at AS old_archived, i.snoozed_until AS old_snoozed,"

// Of several of a round that end or delete one item the first does it, as if each were written alone.
#define FIRST "DISTINCT ON (i.recipient, i.notification_id, i.tenant_id) "
#define IN_TURN " ORDER BY i.recipient, i.notification_id, i.tenant_id, u.sequence"

// A snooze that was changed meanwhile does not end.
#define ENDED \
    "WITH u AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::bytea[], $3::text[], $4::timestamptz[], $5::int8[])" \
    " AS u (tenant_id, recipient, notification_id, at, sequence))," \
    " m AS MATERIALIZED (SELECT " FIRST KEYS " i.fetched_at AS fetched, i.seen_at AS seen, i.opened_at AS opened, i.clicked_at AS clicked," \
    "  i.read_last_at AS read_last, greatest(i.unread_at, u.at) AS unread, i.archived_at AS archived, i.archive_changed_at AS archive_changed," \
    "  NULL::timestamptz AS snoozed, greatest(i.snooze_changed_at, u.at) AS snooze_changed, greatest(i.placed_at, u.at) AS placed" \
    FOUND " WHERE i.snoozed_until <= u.at" IN_TURN ")" CHANGE

#define PATCH \
    "WITH u AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::bytea[], $3::text[], $4::int8[], $5::timestamptz[], $6::timestamptz[]," \
    " $7::timestamptz[], $8::timestamptz[], $9::timestamptz[], $10::timestamptz[], $11::timestamptz[], $12::bool[], $13::timestamptz[]," \
    " $14::timestamptz[]) AS u (tenant_id, recipient, notification_id, sequence, fetched, seen, read_first, read_last, unread, clicked," \
    " archive_at, archived, snooze_at, snoozed))," \
    " m AS MATERIALIZED (SELECT " KEYS " least(i.fetched_at, u.fetched) AS fetched, least(i.seen_at, u.seen) AS seen," \
    "  least(i.opened_at, u.read_first) AS opened, least(i.clicked_at, u.clicked) AS clicked, greatest(i.read_last_at, u.read_last) AS read_last," \
    "  greatest(i.unread_at, u.unread) AS unread," \
    "  CASE WHEN u.archive_at >= coalesce(i.archive_changed_at, '-infinity') THEN CASE WHEN u.archived THEN u.archive_at END" \
    "   ELSE i.archived_at END AS archived, greatest(i.archive_changed_at, u.archive_at) AS archive_changed," \
    "  CASE WHEN u.snooze_at >= coalesce(i.snooze_changed_at, '-infinity') THEN u.snoozed ELSE i.snoozed_until END AS snoozed," \
    "  greatest(i.snooze_changed_at, u.snooze_at) AS snooze_changed, i.placed_at AS placed" \
    FOUND ")" CHANGE

// Of all up to a place in the inbox, and never of an item that was stored later than this was said. $7: 1 seen, 2 read, 3 archive.
#define UP_TO \
    "WITH u AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::bytea[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::int8[]," \
    " $7::int2[]) AS u (tenant_id, recipient, last_id, placed, at, sequence, what))," \
    " m AS MATERIALIZED (SELECT " KEYS " least(i.fetched_at, u.at) AS fetched," \
    "  CASE WHEN u.what IN (1, 2) THEN least(i.seen_at, u.at) ELSE i.seen_at END AS seen," \
    "  CASE WHEN u.what = 2 THEN least(i.opened_at, u.at) ELSE i.opened_at END AS opened, i.clicked_at AS clicked," \
    "  CASE WHEN u.what = 2 THEN greatest(i.read_last_at, u.at) ELSE i.read_last_at END AS read_last, i.unread_at AS unread," \
    "  CASE WHEN u.what = 3 AND u.at >= coalesce(i.archive_changed_at, '-infinity') THEN u.at ELSE i.archived_at END AS archived," \
    "  CASE WHEN u.what = 3 THEN greatest(i.archive_changed_at, u.at) ELSE i.archive_changed_at END AS archive_changed," \
    "  i.snoozed_until AS snoozed, i.snooze_changed_at AS snooze_changed, i.placed_at AS placed" \
    " FROM u CROSS JOIN LATERAL (SELECT * FROM feed.items q WHERE q.recipient = u.recipient AND q.tenant_id = u.tenant_id" \
    "  AND (q.placed_at, q.notification_id) <= (u.placed, u.last_id) AND q.stored_sequence < u.sequence" \
    "  AND q.archived_at IS NULL AND q.snoozed_until IS NULL" \
    "  AND (u.what = 3 OR (u.what = 1 AND q.seen_at IS NULL) OR (u.what = 2 AND q.read_at IS NULL)) OFFSET 0) AS i)" CHANGE

#define GONE ", done AS (SELECT tenant_id, recipient, category, said, -shown AS total, -shown * (seen_at IS NULL)::int AS unseen," \
    " -shown * (read_at IS NULL)::int AS unread FROM gone)" COUNT("done")
#define DELETED " gone AS (DELETE FROM feed.items i USING m AS u WHERE i.recipient = u.recipient AND i.notification_id = u.notification_id" \
    " AND i.tenant_id = u.tenant_id RETURNING i.tenant_id, i.recipient, i.category, u.said, i.seen_at, i.read_at," \
    " (i.archived_at IS NULL AND i.snoozed_until IS NULL)::int AS shown)"

static const DbStatement EXPIRED = {"feed_expired",
    "WITH u AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::bytea[], $3::text[], $4::timestamptz[], $5::int8[])"
    " AS u (tenant_id, recipient, notification_id, at, sequence)),"
    " m AS MATERIALIZED (SELECT " FIRST "i.tenant_id, i.recipient, i.notification_id, u.sequence AS said" FOUND
    " WHERE i.expires_at <= u.at" IN_TURN ")," DELETED GONE};
static const DbStatement REMOVED = {"feed_removed",
    "WITH u AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::bytea[], $3::int8[]) AS u (tenant_id, key_subject, sequence)),"
    " m AS MATERIALIZED (SELECT " FIRST "i.tenant_id, i.recipient, i.notification_id, u.sequence AS said"
    " FROM u CROSS JOIN LATERAL (SELECT * FROM feed.items q WHERE q.key_subject = u.key_subject AND q.tenant_id = u.tenant_id"
    " AND q.stored_sequence < u.sequence OFFSET 0) AS i" IN_TURN ")," DELETED GONE};

// With what an application is to hear of, and, in a rebuild, without.
static const DbStatement ENDS[] = {{"feed_ended_again", ENDED COUNT("done")}, {"feed_ended", ENDED TELL COUNT("done")}};
static const DbStatement PATCHES[] = {{"feed_patch_again", PATCH COUNT("done")}, {"feed_patch", PATCH TELL COUNT("done")}};
static const DbStatement UP_TOS[] = {{"feed_up_to_again", UP_TO COUNT("done")}, {"feed_up_to", UP_TO TELL COUNT("done")}};
// clang-format on

// ---- parameters ----

typedef struct Batch {
    FeedRow *const *at;
    size_t count;
    DbTxn *txn;
} Batch;

// $1 tenant, $2 recipient, $3 notification.
static DbParams *begin(const Batch *batch, const DbStatement *statement)
{
    DbParams *p = db_txn_add(batch->txn, statement, NULL);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *recipient = db_array(p, DB_BYTES);
    DbArray *id = db_array(p, DB_TEXT);
    for (size_t i = 0; i < batch->count; i++) {
        db_push_text(tenant, batch->at[i]->tenant);
        db_push_text(recipient, batch->at[i]->recipient);
        db_push_text(id, batch->at[i]->id);
    }
    return p;
}

typedef int64_t (*TimeOf)(const FeedRow *row);

static void add_times(DbParams *p, const Batch *batch, TimeOf time_of)
{
    DbArray *times = db_array(p, DB_TIME);
    for (size_t i = 0; i < batch->count; i++) {
        db_push_time(times, time_of(batch->at[i]));
    }
}

static void add_sequences(DbParams *p, const Batch *batch)
{
    DbArray *sequences = db_array(p, DB_I64);
    for (size_t i = 0; i < batch->count; i++) {
        db_push_int(sequences, (int64_t)batch->at[i]->sequence);
    }
}

// clang-format off
static int64_t at_of(const FeedRow *row)         { return row->at_us; }
static int64_t up_to_of(const FeedRow *row)      { return row->up_to_us; }
static int64_t fetched_of(const FeedRow *row)    { return row->fetched_us; }
static int64_t seen_of(const FeedRow *row)       { return row->seen_us; }
static int64_t read_first_of(const FeedRow *row) { return row->read_first_us; }
static int64_t read_last_of(const FeedRow *row)  { return row->read_last_us; }
static int64_t unread_of(const FeedRow *row)     { return row->unread_us; }
static int64_t clicked_of(const FeedRow *row)    { return row->clicked_us; }
static int64_t archive_of(const FeedRow *row)    { return row->archive_us; }
static int64_t snooze_of(const FeedRow *row)     { return row->snooze_us; }
static int64_t snoozed_of(const FeedRow *row)    { return row->snoozed_until_us; }
static int64_t created_of(const FeedRow *row)    { return row->item->created_at_us; }
static int64_t expires_of(const FeedRow *row)    { return row->item->expires_at_us; }
// clang-format on

static Str pack_content(const FeedRow *row, Arena *arena)
{
    Str bytes = STR_EMPTY;
    (void)event_pack(&row->item->content->base, arena, &bytes, NULL); // part of what fitted
    return bytes;
}

static void write_items(const Batch *batch)
{
    DbParams *p = begin(batch, &ITEMS);
    DbArray *category = db_array(p, DB_TEXT);
    DbArray *template = db_array(p, DB_TEXT);
    DbArray *locale = db_array(p, DB_TEXT);
    DbArray *direction = db_array(p, DB_TEXT);
    DbArray *subject = db_array(p, DB_BYTES);
    DbArray *content = db_array(p, DB_BYTES);
    for (size_t i = 0; i < batch->count; i++) {
        const Stentor__V1__FeedItem *item = batch->at[i]->item;
        db_push_text(category, str_from(category_name((Category)item->category)));
        db_push_text(template, str_from(item->template_));
        db_push_optional(locale, str_from(item->locale));
        db_push_optional(direction, str_from(item->direction));
        db_push_text(subject, pb_bytes(item->content->key_subject));
        db_push_text(content, pack_content(batch->at[i], db_txn_arena(batch->txn)));
    }
    add_times(p, batch, created_of);
    add_times(p, batch, expires_of);
    add_sequences(p, batch);
}

// $4 time, $5 sequence.
static void write_timed(const Batch *batch, const DbStatement *statement)
{
    DbParams *p = begin(batch, statement);
    add_times(p, batch, at_of);
    add_sequences(p, batch);
}

static void write_patches(const Batch *batch, const DbStatement *statement)
{
    static const TimeOf first[] = {fetched_of, seen_of,    read_first_of, read_last_of,
                                   unread_of,  clicked_of, archive_of};
    DbParams *p = begin(batch, statement);
    add_sequences(p, batch);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        add_times(p, batch, first[i]);
    }
    DbArray *archived = db_array(p, DB_BOOL);
    for (size_t i = 0; i < batch->count; i++) {
        db_push_int(archived, batch->at[i]->archived);
    }
    add_times(p, batch, snooze_of);
    add_times(p, batch, snoozed_of);
}

static void write_up_tos(const Batch *batch, const DbStatement *statement)
{
    DbParams *p = begin(batch, statement);
    add_times(p, batch, up_to_of);
    add_times(p, batch, at_of);
    add_sequences(p, batch);
    DbArray *what = db_array(p, DB_I16);
    for (size_t i = 0; i < batch->count; i++) {
        Stentor__V1__FeedAction action = batch->at[i]->action;
        bool reads = action == STENTOR__V1__FEED_ACTION__FEED_ACTION_READ;
        db_push_int(what, reads ? 2 : action == STENTOR__V1__FEED_ACTION__FEED_ACTION_SEEN ? 1 : 3);
    }
}

static void write_removals(const Batch *batch)
{
    DbParams *p = db_txn_add(batch->txn, &REMOVED, NULL);
    DbArray *tenant = db_array(p, DB_TEXT);
    DbArray *subject = db_array(p, DB_BYTES);
    for (size_t i = 0; i < batch->count; i++) {
        db_push_text(tenant, batch->at[i]->tenant);
        db_push_text(subject, batch->at[i]->key_subject);
    }
    add_sequences(p, batch);
}

static void write_step(const Batch *batch, FeedStep step, bool reports)
{
    switch (step) {
    case FEED_ITEM:
        write_items(batch);
        break;
    case FEED_ENDED:
        write_timed(batch, &ENDS[reports]);
        break;
    case FEED_PATCH:
        write_patches(batch, &PATCHES[reports]);
        break;
    case FEED_UP_TO:
        write_up_tos(batch, &UP_TOS[reports]);
        break;
    case FEED_EXPIRED:
        write_timed(batch, &EXPIRED);
        break;
    case FEED_REMOVED:
        write_removals(batch);
        break;
    case FEED_STEPS:
        break;
    }
}

// Whatever a flush holds, it is one transaction: one that is refused would stop the projection.
_Static_assert(FEED_ROUNDS *FEED_STEPS < DB_STATEMENTS_MAX, "every round has room for its steps");
_Static_assert(
    2 * FEED_FLUSH_BYTES + FEED_EVENT_MAX <= DB_VALUES_MAX_BYTES,
    "the largest items of a flush fit");

void feed_sql_forget_tail(const FeedFold *fold, DbTxn *txn)
{
    db_i64(db_txn_add(txn, &LOST_TAIL, NULL), (int64_t)feed_fold_first(fold));
}

void feed_sql_write(const FeedFold *fold, bool reports, DbTxn *txn)
{
    (void)db_txn_add(txn, &PLAN, NULL);
    for (size_t round = 0; round < FEED_ROUNDS; round++) {
        for (int step = 0; step < FEED_STEPS; step++) {
            Batch batch = {.txn = txn};
            batch.at = feed_fold_rows(fold, round, (FeedStep)step, &batch.count);
            for (size_t i = 0; i < batch.count; i++) {
                db_txn_tenant(txn, batch.at[i]->tenant);
            }
            if (batch.count > 0) {
                write_step(&batch, (FeedStep)step, reports);
            }
        }
    }
}
