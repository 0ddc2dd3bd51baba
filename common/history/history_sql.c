// SPDX-License-Identifier: Apache-2.0
#include "common/history/history_sql.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"

// clang-format off
// Columns in the order of write_head(), FoldText and FoldTime. Each merges by a maximum or a minimum; NULL loses.
// The tenant is part of the key: an event with another tenant's notification id makes a row of its own tenant, where a
// conflict with a row that row-level security hides would fail this flush for ever.
#define NOTIFICATION_COLUMNS                                                                                           \
    "created_at, retention_class, id, tenant_id, status, status_rank, reason_code, reason,"                            \
    " channel, category, priority, template, template_version, locale, recipient_id, correlation_id, source_event_id," \
    " source_event_type, batch_id, digest_window_id, copy_of, from_domain, provider, gate_trace, address_hash, address,"\
    " content_checksum,"                                                                                               \
    " scheduled_for, expires_at, queued_at, scheduled_at, rendered_at, sent_at, delivered_at, opened_at, clicked_at,"  \
    " ended_at"
static const char notification_rows[] =
    "unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int2[], $7::text[], $8::text[],"
    " $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[],"
    " $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[],"
    " $25::bytea[], $26::bytea[], $27::bytea[], $28::timestamptz[], $29::timestamptz[], $30::timestamptz[],"
    " $31::timestamptz[], $32::timestamptz[], $33::timestamptz[], $34::timestamptz[], $35::timestamptz[],"
    " $36::timestamptz[], $37::timestamptz[])";
static const char merge_notifications[] =
    " ON CONFLICT (created_at, id, tenant_id, retention_class) DO UPDATE SET"
    " status = CASE WHEN excluded.status_rank > n.status_rank THEN excluded.status ELSE n.status END,"
    " status_rank = GREATEST(n.status_rank, excluded.status_rank),"
    " reason_code = CASE WHEN"
    "  (excluded.status_rank, COALESCE(excluded.reason_code, '') COLLATE \"C\", COALESCE(excluded.reason, '') COLLATE \"C\")"
    "  > (n.status_rank, COALESCE(n.reason_code, ''), COALESCE(n.reason, ''))"
    "  THEN excluded.reason_code ELSE n.reason_code END,"
    " reason = CASE WHEN"
    "  (excluded.status_rank, COALESCE(excluded.reason_code, '') COLLATE \"C\", COALESCE(excluded.reason, '') COLLATE \"C\")"
    "  > (n.status_rank, COALESCE(n.reason_code, ''), COALESCE(n.reason, ''))"
    "  THEN excluded.reason ELSE n.reason END,"
    " channel = GREATEST(n.channel, excluded.channel),"
    " category = GREATEST(n.category, excluded.category),"
    " priority = GREATEST(n.priority, excluded.priority),"
    " template = GREATEST(n.template COLLATE \"C\", excluded.template COLLATE \"C\"),"
    " template_version = GREATEST(n.template_version COLLATE \"C\", excluded.template_version COLLATE \"C\"),"
    " locale = GREATEST(n.locale COLLATE \"C\", excluded.locale COLLATE \"C\"),"
    " recipient_id = GREATEST(n.recipient_id, excluded.recipient_id),"
    " correlation_id = GREATEST(n.correlation_id COLLATE \"C\", excluded.correlation_id COLLATE \"C\"),"
    " source_event_id = GREATEST(n.source_event_id COLLATE \"C\", excluded.source_event_id COLLATE \"C\"),"
    " source_event_type = GREATEST(n.source_event_type COLLATE \"C\", excluded.source_event_type COLLATE \"C\"),"
    " batch_id = GREATEST(n.batch_id, excluded.batch_id),"
    " digest_window_id = GREATEST(n.digest_window_id, excluded.digest_window_id),"
    " copy_of = GREATEST(n.copy_of, excluded.copy_of),"
    " from_domain = GREATEST(n.from_domain COLLATE \"C\", excluded.from_domain COLLATE \"C\"),"
    " provider = GREATEST(n.provider COLLATE \"C\", excluded.provider COLLATE \"C\"),"
    " gate_trace = GREATEST(n.gate_trace COLLATE \"C\", excluded.gate_trace COLLATE \"C\"),"
    " address_hash = GREATEST(n.address_hash, excluded.address_hash),"
    " address = GREATEST(n.address, excluded.address),"
    " content_checksum = GREATEST(n.content_checksum, excluded.content_checksum),"
    " scheduled_for = LEAST(n.scheduled_for, excluded.scheduled_for),"
    " expires_at = LEAST(n.expires_at, excluded.expires_at),"
    " queued_at = LEAST(n.queued_at, excluded.queued_at),"
    " scheduled_at = LEAST(n.scheduled_at, excluded.scheduled_at),"
    " rendered_at = LEAST(n.rendered_at, excluded.rendered_at),"
    " sent_at = LEAST(n.sent_at, excluded.sent_at),"
    " delivered_at = LEAST(n.delivered_at, excluded.delivered_at),"
    " opened_at = LEAST(n.opened_at, excluded.opened_at),"
    " clicked_at = LEAST(n.clicked_at, excluded.clicked_at),"
    " ended_at = LEAST(n.ended_at, excluded.ended_at),"
    " updated_at = clock_timestamp()";

// The greater row stays whole, in the order of compare_attempts() in fold.c; a repeat writes nothing.
#define OUTCOME_RANK(row)                                                                                              \
    "array_position('{accepted,rejected_retryable,rejected_terminal,timeout,delivered,bounce,complaint,opened,"        \
    "clicked,failed}'::text[], " row ".outcome)"
#define ATTEMPT_ORDER(row)                                                                                             \
    "(" OUTCOME_RANK(row) ", " row ".was_unknown, COALESCE(" row ".finished_at, '-infinity'),"                         \
    " COALESCE(" row ".started_at, '-infinity'), COALESCE(" row ".retry_after_ms, 0), " row ".id,"                     \
    " " row ".vendor COLLATE \"C\","                                                                                   \
    " COALESCE(" row ".vendor_message_id, '') COLLATE \"C\", COALESCE(" row ".code, '') COLLATE \"C\","                \
    " COALESCE(" row ".enhanced_code, '') COLLATE \"C\", COALESCE(" row ".reply, '') COLLATE \"C\","                \
    " COALESCE(" row ".credential, '') COLLATE \"C\", COALESCE(" row ".route, '') COLLATE \"C\")"

#define ATTEMPT_COLUMNS                                                                                                \
    "created_at, retention_class, notification_id, attempt_number, id, tenant_id, channel, vendor, vendor_message_id," \
    " outcome, code, enhanced_code, reply, started_at, finished_at, was_unknown, retry_after_ms, credential, route,"   \
    " segments, cost_micros, currency, calling_code, price_category"
static const char attempt_rows[] =
    "unnest($1::timestamptz[], $2::text[], $3::text[], $4::int2[], $5::text[], $6::text[], $7::text[], $8::text[],"
    " $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::timestamptz[], $15::timestamptz[],"
    " $16::boolean[], $17::int4[], $18::text[], $19::text[], $20::int4[], $21::int8[], $22::text[], $23::text[],"
    " $24::text[])";
// What stays whole, of the greater row; its cost merges column by column, the amount with its currency.
#define WHOLE(row)                                                                                                     \
    row ".id, " row ".vendor, " row ".vendor_message_id, " row ".outcome, " row ".code, " row ".enhanced_code, " row   \
        ".reply, " row ".started_at, " row ".finished_at, " row ".was_unknown, " row ".retry_after_ms, " row           \
        ".credential, " row ".route"
#define BY_ORDER ATTEMPT_ORDER("excluded") " > " ATTEMPT_ORDER("n")
#define AMOUNT(row) "(COALESCE(" row ".cost_micros, 0), COALESCE(" row ".currency, '') COLLATE \"C\")"
#define GREATER(column) "GREATEST(n." column ", excluded." column ")"
#define GREATER_TEXT(column) "GREATEST(n." column " COLLATE \"C\", excluded." column " COLLATE \"C\")"
#define MERGE_ATTEMPTS(last)                                                                                           \
    " ON CONFLICT (created_at, notification_id, attempt_number, tenant_id, retention_class) DO UPDATE SET"             \
    " (id, vendor, vendor_message_id, outcome, code, enhanced_code, reply, started_at, finished_at, was_unknown,"      \
    " retry_after_ms, credential, route) = (SELECT w.* FROM (SELECT " WHOLE("excluded") " UNION ALL SELECT " WHOLE("n") ") w"             \
    " ORDER BY " ATTEMPT_ORDER("w") " DESC LIMIT 1),"                                                                  \
    " segments = " GREATER("segments") ","                                                                             \
    " cost_micros = " GREATER("cost_micros") ","                                                                       \
    " currency = CASE WHEN " AMOUNT("excluded") " > " AMOUNT("n") " THEN excluded.currency ELSE n.currency END,"       \
    " calling_code = " GREATER_TEXT("calling_code") ", price_category = " GREATER_TEXT("price_category") last          \
    " WHERE " BY_ORDER " OR " AMOUNT("excluded") " > " AMOUNT("n")                                                     \
    " OR excluded.segments > COALESCE(n.segments, 0)"                                                                  \
    " OR excluded.calling_code COLLATE \"C\" > COALESCE(n.calling_code, '') COLLATE \"C\""                             \
    " OR excluded.price_category COLLATE \"C\" > COALESCE(n.price_category, '') COLLATE \"C\""

// The rows as u, each with whether its period is sealed. Nothing is looked up for a row younger than all that is
// sealed. Postgres takes the snapshot after its locks on the tables, so what was sealed while this waited is seen.
static const char with_rows[] =
    "WITH u AS %s (SELECT i.*,"
    " i.created_at < COALESCE((SELECT max(s.ends_at) FROM stentor.sealed_periods s), '-infinity')"
    " AND COALESCE((SELECT s.starts_at FROM stentor.sealed_periods s WHERE s.class = i.retention_class"
    " AND s.ends_at > i.created_at ORDER BY s.ends_at LIMIT 1) <= i.created_at, false) AS late FROM %s AS i (%s))";
// clang-format on

typedef struct TableSql {
    const char *table;
    const char *late_table;
    const char *columns;
    const char *rows;
    const char *written; // column of the time of writing; the late tables all have one
    const char *merge;
    const char *late_merge;
} TableSql;

static const TableSql tables[] = {
    {"notifications", "late_notifications", NOTIFICATION_COLUMNS, notification_rows, ", updated_at",
     merge_notifications, merge_notifications},
    {"delivery_attempts", "late_attempts", ATTEMPT_COLUMNS, attempt_rows, "", MERGE_ATTEMPTS(""),
     MERGE_ATTEMPTS(", updated_at = clock_timestamp()")},
};

static void print_upsert(
    char out[HISTORY_SQL_MAX], const char *schema, const TableSql *sql, HistoryLate late)
{
    Buf text;
    buf_init(&text, HISTORY_SQL_MAX - 1);
    // Read twice, it is made once; read once, each row goes through without a copy.
    const char *made = late == HISTORY_LATE_APART ? "MATERIALIZED" : "NOT MATERIALIZED";
    buf_printf(&text, with_rows, made, sql->rows, sql->columns);
    if (late == HISTORY_LATE_APART) {
        buf_printf(
            &text,
            ", late AS (INSERT INTO %s.%s AS n (%s, updated_at) SELECT %s, clock_timestamp()"
            " FROM u WHERE u.late%s)",
            schema, sql->late_table, sql->columns, sql->columns, sql->late_merge);
    }
    buf_printf(
        &text, " INSERT INTO %s.%s AS n (%s%s) SELECT %s%s FROM u WHERE NOT u.late%s", schema,
        sql->table, sql->columns, sql->written, sql->columns,
        sql->written[0] != '\0' ? ", clock_timestamp()" : "", sql->merge);
    assert(!text.full);
    memcpy(out, buf_c(&text), text.len + 1);
    buf_done(&text);
}

static void name_statement(
    HistorySql *out, int slot, DbStatement *ret, const char *schema, const char *what)
{
    snprintf(out->names[slot], sizeof out->names[slot], "%.32s_%s", schema, what);
    *ret = (DbStatement){.name = out->names[slot], .sql = out->text[slot]};
}

void history_sql_init(HistorySql *out, const char *schema, HistoryLate late)
{
    print_upsert(out->text[0], schema, &tables[0], late);
    print_upsert(out->text[1], schema, &tables[1], late);
    int len = snprintf(
        out->text[2], HISTORY_SQL_MAX,
        "SELECT stentor.ensure_partitions(('%s.notifications' || m.ending)::regclass, since, "
        "until),"
        " stentor.ensure_partitions(('%s.delivery_attempts' || m.ending)::regclass, since, until)"
        // A new month locks its parent; readers lock the parents in this order, of their bounds.
        " FROM (SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[]) AS u "
        "(ending, since, until) ORDER BY ending) AS m",
        schema, schema);
    assert(len > 0 && len < HISTORY_SQL_MAX);
    name_statement(out, 0, &out->notifications, schema, "notifications");
    name_statement(out, 1, &out->attempts, schema, "attempts");
    name_statement(out, 2, &out->months, schema, "months");
}

// ---- notifications ----

static void push_class(DbArray *column, Str id)
{
    char code = retention_class_code(retention_class_of_id(id));
    db_push_text(column, str_of(&code, 1));
}

static void write_head(DbParams *params, HistoryRow *const *rows, size_t count)
{
    DbArray *created_at = db_array(params, DB_TIME);
    DbArray *class = db_array(params, DB_TEXT);
    DbArray *id = db_array(params, DB_TEXT);
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *status = db_array(params, DB_TEXT);
    DbArray *rank = db_array(params, DB_I16);
    DbArray *reason_code = db_array(params, DB_TEXT);
    DbArray *reason = db_array(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_push_time(created_at, rows[i]->created_at_us);
        push_class(class, rows[i]->id);
        db_push_text(id, rows[i]->id);
        db_push_text(tenant, rows[i]->tenant);
        db_push_text(status, str_from(status_name(rows[i]->status)));
        db_push_int(rank, rows[i]->rank);
        db_push_optional(reason_code, rows[i]->reason_code);
        db_push_optional(reason, rows[i]->reason);
    }
}

static void write_rows(const HistorySql *sql, DbTxn *txn, HistoryRow *const *rows, size_t count)
{
    DbParams *params = db_txn_add(txn, &sql->notifications, NULL);
    write_head(params, rows, count);
    for (int field = 0; field < FOLD_TEXT_COUNT; field++) {
        DbArray *column = db_array(params, field >= FOLD_ADDRESS_HASH ? DB_BYTES : DB_TEXT);
        for (size_t i = 0; i < count; i++) {
            db_push_optional(column, rows[i]->text[field]);
        }
    }
    for (int field = 0; field < FOLD_TIME_COUNT; field++) {
        DbArray *column = db_array(params, DB_TIME);
        for (size_t i = 0; i < count; i++) {
            db_push_time(column, rows[i]->at_us[field]);
        }
    }
}

// ---- attempts ----

static void write_attempt_keys(DbParams *params, AttemptRow *const *attempts, size_t count)
{
    DbArray *created_at = db_array(params, DB_TIME);
    DbArray *class = db_array(params, DB_TEXT);
    DbArray *notification = db_array(params, DB_TEXT);
    DbArray *number = db_array(params, DB_I16);
    DbArray *id = db_array(params, DB_TEXT);
    DbArray *tenant = db_array(params, DB_TEXT);
    DbArray *channel = db_array(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        const HistoryRow *row = attempts[i]->row;
        db_push_time(created_at, row->created_at_us);
        push_class(class, row->id);
        db_push_text(notification, row->id);
        db_push_int(number, attempts[i]->number);
        db_push_text(id, attempts[i]->id);
        db_push_text(tenant, row->tenant);
        db_push_text(channel, row->text[FOLD_CHANNEL]);
    }
}

static void push_positive(DbArray *column, int64_t value)
{
    if (value > 0) {
        db_push_int(column, value);
    } else {
        db_push_null(column);
    }
}

static void write_costs(DbParams *params, AttemptRow *const *attempts, size_t count)
{
    DbArray *segments = db_array(params, DB_I32);
    DbArray *micros = db_array(params, DB_I64);
    DbArray *currency = db_array(params, DB_TEXT);
    DbArray *calling_code = db_array(params, DB_TEXT);
    DbArray *price_category = db_array(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        const AttemptCost *cost = &attempts[i]->cost;
        push_positive(segments, cost->segments);
        push_positive(micros, cost->micros);
        db_push_optional(currency, cost->currency);
        db_push_optional(calling_code, cost->calling_code);
        db_push_optional(price_category, cost->price_category);
    }
}

static void write_attempts(
    const HistorySql *sql, DbTxn *txn, AttemptRow *const *attempts, size_t count)
{
    DbParams *params = db_txn_add(txn, &sql->attempts, NULL);
    write_attempt_keys(params, attempts, count);
    DbArray *vendor = db_array(params, DB_TEXT);
    DbArray *vendor_message_id = db_array(params, DB_TEXT);
    DbArray *outcome = db_array(params, DB_TEXT);
    DbArray *code = db_array(params, DB_TEXT);
    DbArray *enhanced_code = db_array(params, DB_TEXT);
    DbArray *reply = db_array(params, DB_TEXT);
    DbArray *started_at = db_array(params, DB_TIME);
    DbArray *finished_at = db_array(params, DB_TIME);
    DbArray *was_unknown = db_array(params, DB_BOOL);
    DbArray *retry_after = db_array(params, DB_I32);
    DbArray *credential = db_array(params, DB_TEXT);
    DbArray *route = db_array(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        const AttemptRow *attempt = attempts[i];
        db_push_text(vendor, attempt->vendor);
        db_push_optional(vendor_message_id, attempt->vendor_message_id);
        db_push_text(outcome, str_from(outcome_name(attempt->outcome)));
        db_push_optional(code, attempt->code);
        db_push_optional(enhanced_code, attempt->enhanced_code);
        db_push_optional(reply, attempt->reply);
        db_push_time(started_at, attempt->started_at_us);
        db_push_time(finished_at, attempt->finished_at_us);
        db_push_int(was_unknown, attempt->was_unknown);
        push_positive(retry_after, attempt->retry_after_ms);
        db_push_optional(credential, attempt->credential);
        db_push_optional(route, attempt->route);
    }
    write_costs(params, attempts, count);
}

// ---- both ----

static void name_tenants(HistoryRow *const *rows, size_t count, DbTxn *txn)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !str_eq(rows[i]->tenant, rows[i - 1]->tenant)) {
            db_txn_tenant(txn, rows[i]->tenant);
        }
    }
}

void history_write_notifications(const HistorySql *sql, const Fold *fold, DbTxn *txn)
{
    size_t count = 0;
    HistoryRow *const *rows = fold_rows(fold, &count);
    if (count > 0) {
        name_tenants(rows, count, txn);
        write_rows(sql, txn, rows, count);
    }
}

void history_write_attempts(const HistorySql *sql, const Fold *fold, DbTxn *txn)
{
    size_t row_count = 0;
    size_t count = 0;
    HistoryRow *const *rows = fold_rows(fold, &row_count);
    AttemptRow *const *attempts = fold_attempts(fold, &count);
    if (count > 0) {
        name_tenants(rows, row_count, txn);
        write_attempts(sql, txn, attempts, count);
    }
}

void history_write(const HistorySql *sql, const Fold *fold, DbTxn *txn)
{
    history_write_notifications(sql, fold, txn);
    history_write_attempts(sql, fold, txn);
}

// ---- months ----

typedef struct MonthArrays {
    DbArray *table_ending;
    DbArray *since;
    DbArray *until;
} MonthArrays;

static MonthArrays add_months(const HistorySql *sql, DbTxn *txn)
{
    DbParams *params = db_txn_add(txn, &sql->months, NULL);
    DbArray *table_ending = db_array(params, DB_TEXT);
    DbArray *since = db_array(params, DB_TIME);
    DbArray *until = db_array(params, DB_TIME);
    return (MonthArrays){table_ending, since, until};
}

void history_ensure_months(const HistorySql *sql, DbTxn *txn, int64_t since_us, int64_t until_us)
{
    MonthArrays months = add_months(sql, txn);
    db_push_text(months.table_ending, STR_EMPTY);
    db_push_time(months.since, since_us);
    db_push_time(months.until, until_us);
}

static bool has_month(const HistoryMonths *months, RetentionClass class, int64_t start_us)
{
    for (size_t i = 0; i < months->asked; i++) {
        if (months->at[i].start_us == start_us && months->at[i].class == class) {
            return true;
        }
    }
    return false;
}

static void ask_month(
    HistoryMonths *months, MonthArrays *arrays, RetentionClass class, int64_t start_us)
{
    static const char *const endings[] = {
        [RETENTION_RECORD] = "_record",
        [RETENTION_STANDARD] = "_standard",
        [RETENTION_BRIEF] = "_brief"};
    db_push_text(arrays->table_ending, str_from(endings[class]));
    db_push_time(arrays->since, start_us);
    db_push_time(arrays->until, start_us);
    // A full table forgets: the statement is then asked again with each flush, which is slow
    // and right.
    if (months->asked < HISTORY_MONTHS_MAX) {
        months->at[months->asked++] = (HistoryMonth){start_us, class};
    }
}

// The months of the rows, one after another; some come again.
typedef struct MonthWalk {
    HistoryRow *const *rows;
    size_t count, at;
    int64_t start_us[RETENTION_CLASS_COUNT];
    int64_t end_us[RETENTION_CLASS_COUNT];
} MonthWalk;

static MonthWalk walk_months(const Fold *fold)
{
    MonthWalk walk = {.at = 0};
    walk.rows = fold_rows(fold, &walk.count);
    return walk;
}

static bool next_month(MonthWalk *walk, HistoryMonth *ret)
{
    while (walk->at < walk->count) {
        const HistoryRow *row = walk->rows[walk->at++];
        RetentionClass class = retention_class_of_id(row->id);
        if (row->created_at_us < walk->start_us[class] ||
            row->created_at_us >= walk->end_us[class]) {
            clock_month(row->created_at_us, &walk->start_us[class], &walk->end_us[class]);
            *ret = (HistoryMonth){walk->start_us[class], class};
            return true;
        }
    }
    return false;
}

void history_months_write(
    const HistorySql *sql, HistoryMonths *months, const Fold *fold, DbTxn *txn)
{
    months->asked = months->known;
    MonthArrays arrays = {0};
    MonthWalk walk = walk_months(fold);
    HistoryMonth month;
    while (next_month(&walk, &month)) {
        if (!has_month(months, month.class, month.start_us)) {
            arrays = arrays.since == NULL ? add_months(sql, txn) : arrays;
            ask_month(months, &arrays, month.class, month.start_us);
        }
    }
}

bool history_months_known(HistoryMonths *months, const Fold *fold)
{
    months->asked = months->known;
    MonthWalk walk = walk_months(fold);
    HistoryMonth month;
    while (next_month(&walk, &month)) {
        if (!has_month(months, month.class, month.start_us)) {
            return false;
        }
    }
    return true;
}

void history_months_committed(HistoryMonths *months)
{
    months->known = months->asked;
}

void history_months_forget(HistoryMonths *months)
{
    months->known = 0;
    months->asked = 0;
}
