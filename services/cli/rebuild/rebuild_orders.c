// SPDX-License-Identifier: Apache-2.0
#include "services/cli/rebuild/rebuild_orders.h"

#include "common/base/buf.h"
#include "common/base/crash.h"
#include "common/base/str.h"

#define SCHEMA ORDERS_SCHEMA
#define COPY ORDERS_COPY

enum { SQL_MAX = 16 * 1024 };

// Runs what stands in `sql` and empties it.
static PGresult *ask(RebuildOrders *orders, Buf *sql, const char *what, Error *err)
{
    PGresult *res = rebuild_pg_ask(orders->pg, what, buf_c(sql), NULL, err);
    buf_clear(sql);
    return res;
}

static bool run(RebuildOrders *orders, Buf *sql, const char *what, Error *err)
{
    CLEANUP(rebuild_pg_free) PGresult *res = ask(orders, sql, what, err);
    return res != NULL;
}

static bool ask_number(
    RebuildOrders *orders, const char *what, const char *sql, int64_t *ret, Error *err)
{
    CLEANUP(rebuild_pg_free) PGresult *res = rebuild_pg_ask(orders->pg, what, sql, NULL, err);
    *ret = 0;
    return res != NULL && str_to_i64(str_from(PQgetvalue(res, 0, 0)), ret);
}

bool rebuild_orders_open(RebuildOrders *orders, const char *url, Error *err)
{
    orders->pg = rebuild_pg_open(url, SCHEMA, "saga", err);
    return orders->pg != NULL;
}

void rebuild_orders_close(RebuildOrders *orders)
{
    rebuild_pg_close(orders->pg);
}

bool rebuild_orders_drop(RebuildOrders *orders, Error *err)
{
    return rebuild_pg_run(
        orders->pg, "drop the copy", "DROP SCHEMA IF EXISTS " COPY " CASCADE", err);
}

// ---- digests ----

#define NOT_CARRIED(alias, id)                                                                     \
    " NOT EXISTS (SELECT FROM " COPY ".carried k WHERE k.tenant_id = " alias                       \
    ".tenant_id AND k.id = " id ")"

// Numbers, ids and states; not who ordered, when a row was written, nor when a wait is due.
#define ORDER_DIGEST(total)                                                                        \
    "hashtextextended(concat_ws('|', o.order_id, coalesce(o.basket_id::text, '-'),"                \
    " o.current_state, coalesce(" total "::text, '-'), o.currency,"                                \
    " extract(epoch FROM o.order_placed_date), o.version,"                                         \
    " coalesce(o.place_order_timeout_token_id::text, '-'), o.timeout_retry_count), 0)::numeric"
#define STATE_DIGEST ORDER_DIGEST("(o.total_money * 1000000)::int8")

static void add_since(const RebuildOrders *orders, Buf *sql)
{
    buf_printf(
        sql, "('epoch'::timestamptz + %lld * interval '1 microsecond')",
        (long long)orders->since_us);
}

static void add_states(Buf *sql, const char *schema)
{
    buf_printf(
        sql,
        "SELECT 'orders'::text AS source, o.tenant_id, o.correlation_id::text AS id, " STATE_DIGEST
        " AS digest FROM %s.order_state o WHERE" NOT_CARRIED("o", "o.correlation_id::text"),
        schema);
}

static void add_moved_orders(const RebuildOrders *orders, Buf *sql, const char *table)
{
    static const char digest[] = ORDER_DIGEST("o.total_micros");
    static const char not_carried[] = NOT_CARRIED("o", "o.correlation_id");
    buf_printf(
        sql,
        " UNION SELECT 'orders', o.tenant_id, o.correlation_id, %s FROM " SCHEMA
        ".%s o WHERE%s AND o.finished_at >= ",
        digest, table, not_carried);
    add_since(orders, sql);
}

static void add_inbox(const RebuildOrders *orders, Buf *sql, const char *schema)
{
    static const char not_carried[] = NOT_CARRIED("i", "i.correlation_id::text");
    buf_printf(
        sql,
        "SELECT i.tenant_id, i.correlation_id::text AS id, i.message_id, i.event_type,"
        " i.from_state, i.to_state, i.verdict FROM %s.inbox_state i WHERE"
        " i.verdict IN ('applied', 'unmatched') AND%s AND i.received >= ",
        schema, not_carried);
    add_since(orders, sql);
}

static void add_moved_transitions(const RebuildOrders *orders, Buf *sql, const char *table)
{
    static const char not_carried[] = NOT_CARRIED("t", "t.correlation_id");
    buf_printf(
        sql,
        " UNION SELECT t.tenant_id, t.correlation_id, t.message_id, t.event_type, t.from_state,"
        " t.to_state, 'applied' FROM " SCHEMA ".%s t WHERE%s AND t.finished_at >= ",
        table, not_carried);
    add_since(orders, sql);
}

// One line for each order, and one for its transitions.
static void add_digests(const RebuildOrders *orders, Buf *sql, bool live)
{
    const char *schema = live ? SCHEMA : COPY;
    add_states(sql, schema);
    if (live) {
        add_moved_orders(orders, sql, "order_archive");
        add_moved_orders(orders, sql, "late_orders");
    }
    buf_cstr(
        sql, " UNION ALL SELECT 'transitions', m.tenant_id, m.id,"
             " sum(hashtextextended(concat_ws('|', m.message_id, m.event_type,"
             " coalesce(m.from_state, '-'), coalesce(m.to_state, '-'), m.verdict), 0)::numeric)"
             " FROM (");
    add_inbox(orders, sql, schema);
    if (live) {
        add_moved_transitions(orders, sql, "order_transitions");
        add_moved_transitions(orders, sql, "late_transitions");
    }
    buf_cstr(sql, ") AS m GROUP BY m.tenant_id, m.id");
}

// ---- remembering ----

static void add_carried(const RebuildOrders *orders, Buf *sql)
{
    static const char *const moved[] = {"order_transitions", "late_transitions"};
    buf_cstr(
        sql, "CREATE TABLE " COPY ".carried (tenant_id text COLLATE \"C\", id text COLLATE \"C\","
             " PRIMARY KEY (tenant_id, id));"
             "INSERT INTO " COPY ".carried SELECT i.tenant_id, i.correlation_id::text FROM " SCHEMA
             ".inbox_state i WHERE i.verdict = 'applied' AND i.received < ");
    add_since(orders, sql);
    for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++) {
        buf_printf(
            sql,
            " UNION SELECT t.tenant_id, t.correlation_id FROM " SCHEMA ".%s t WHERE t.received < ",
            moved[i]);
        add_since(orders, sql);
        buf_cstr(sql, " AND t.finished_at >= ");
        add_since(orders, sql);
    }
    buf_cstr(sql, ";ANALYZE " COPY ".carried;");
}

// Moved orders that are not in the log are looked up where they are.
static void add_view(const RebuildOrders *orders, Buf *sql, const char *table)
{
    buf_printf(
        sql, "CREATE VIEW " COPY ".%s AS SELECT a.* FROM " SCHEMA ".%s a WHERE a.finished_at < ",
        table, table);
    add_since(orders, sql);
    buf_cstr(sql, " OR NOT" NOT_CARRIED("a", "a.correlation_id") ";");
}

static void add_carried_rows(const RebuildOrders *orders, Buf *sql)
{
    static const char state[] = NOT_CARRIED("o", "o.correlation_id::text");
    static const char inbox[] = NOT_CARRIED("i", "i.correlation_id::text");
    buf_printf(
        sql,
        "INSERT INTO " COPY ".order_state SELECT o.* FROM " SCHEMA ".order_state o WHERE NOT%s;"
        "INSERT INTO " COPY ".inbox_state SELECT i.* FROM " SCHEMA
        ".inbox_state i WHERE NOT%s OR (i.verdict = 'unmatched' AND i.received < ",
        state, inbox);
    add_since(orders, sql);
    buf_cstr(sql, ");");
}

static void add_consumed(const RebuildOrders *orders, Buf *sql, uint64_t settled)
{
    buf_printf(
        sql,
        "CREATE TABLE " COPY
        ".consumed (message_id text COLLATE \"C\", tenant_id text COLLATE \"C\","
        " PRIMARY KEY (message_id, tenant_id));"
        "INSERT INTO " COPY ".consumed SELECT DISTINCT i.message_id, i.tenant_id FROM " SCHEMA
        ".inbox_state i WHERE i.sequence > %llu AND i.received >= ",
        (unsigned long long)settled);
    add_since(orders, sql);
    buf_cstr(sql, ";");
}

static bool make(RebuildOrders *orders, Error *err)
{
    return rebuild_pg_run(
        orders->pg, "create the copy",
        "SELECT stentor.make_rebuild_schema('" SCHEMA "', '" COPY
        "', '{order_state,inbox_state,outbox_message}')",
        err);
}

static bool remember(
    RebuildOrders *orders, Buf *sql, uint64_t settled, int64_t *ret_carried, Error *err)
{
    add_carried(orders, sql);
    if (!run(orders, sql, "find orders that are older than the log", err)) {
        return false;
    }
    add_view(orders, sql, "order_archive");
    add_view(orders, sql, "late_orders");
    add_carried_rows(orders, sql);
    add_consumed(orders, sql, settled);
    if (!run(orders, sql, "copy what is older than the log", err) ||
        !ask_number(
            orders, "count it", "SELECT count(*) FROM " COPY ".order_state", ret_carried, err)) {
        return false;
    }
    buf_cstr(sql, "DROP TABLE IF EXISTS rebuild_live; CREATE TEMP TABLE rebuild_live AS ");
    add_digests(orders, sql, true);
    return run(orders, sql, "digest the live rows", err);
}

bool rebuild_orders_remember(
    RebuildOrders *orders, uint64_t settled, int64_t *ret_carried, Error *err)
{
    Buf sql;
    buf_init(&sql, SQL_MAX);
    bool ok = make(orders, err) &&
              rebuild_pg_run(orders->pg, "begin", "BEGIN ISOLATION LEVEL REPEATABLE READ", err) &&
              remember(orders, &sql, settled, ret_carried, err) &&
              rebuild_pg_run(orders->pg, "commit", "COMMIT", err);
    buf_done(&sql);
    return ok;
}

// ---- comparing ----

// An order that ended in a sealed month and is not live any more is in the archive's files.
bool rebuild_orders_compare(
    RebuildOrders *orders, RebuildLine on_difference, void *ctx, int64_t *ret_count, Error *err)
{
    Buf sql;
    buf_init(&sql, SQL_MAX);
    buf_cstr(
        &sql, "CREATE TEMP TABLE rebuild_different AS SELECT source, tenant_id, id,"
              " CASE WHEN l.digest IS NULL THEN 'only in the log' WHEN c.digest IS NULL"
              " THEN 'only in the live table' ELSE 'differs' END AS how FROM rebuild_live AS l"
              " FULL JOIN (");
    add_digests(orders, &sql, false);
    buf_cstr(
        &sql, ") AS c USING (source, tenant_id, id) WHERE l.digest IS DISTINCT FROM c.digest;"
              "DELETE FROM rebuild_different d USING " COPY
              ".order_state o WHERE d.how = 'only in the log' AND o.tenant_id = d.tenant_id"
              " AND o.correlation_id::text = d.id AND " SCHEMA ".is_sealed(o.finished_at);"
              "SELECT concat_ws(' ', source, id, tenant_id) || ': ' || how, count(*) OVER ()"
              " FROM rebuild_different ORDER BY 1 LIMIT 100");
    CLEANUP(rebuild_pg_free) PGresult *res = ask(orders, &sql, "compare the rows", err);
    buf_done(&sql);
    if (res == NULL) {
        return false;
    }
    *ret_count = 0;
    for (int i = 0; i < PQntuples(res); i++) {
        on_difference(ctx, PQgetvalue(res, i, 0));
        (void)str_to_i64(str_from(PQgetvalue(res, i, 1)), ret_count);
    }
    return true;
}

// ---- replacing ----

bool rebuild_orders_stand_still(RebuildOrders *orders, Error *err)
{
    int64_t count = 0;
    return ask_number(
               orders, "look for order-saga",
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
               " AND application_name = 'stentor-order-saga'",
               &count, err) &&
           (count == 0 ||
            error_set(
                err, ERROR_CONFLICT,
                "stentor-order-saga runs and has %lld connections to this database: it would "
                "decide by orders that change under it (HINT: stop it, rebuild, start it; "
                "--dry-run compares while it runs)",
                (long long)count));
}

static bool is_as_compared(RebuildOrders *orders, Buf *sql, Error *err)
{
    int64_t changed = 0;
    buf_cstr(sql, "CREATE TEMP TABLE rebuild_now ON COMMIT DROP AS ");
    add_digests(orders, sql, true);
    return run(orders, sql, "digest the live rows again", err) &&
           ask_number(
               orders, "compare them with the former digests",
               "SELECT count(*) FROM rebuild_now n FULL JOIN rebuild_live l"
               " USING (source, tenant_id, id) WHERE n.digest IS DISTINCT FROM l.digest"
               " AND (tenant_id, id) IN (SELECT tenant_id, id FROM rebuild_different)",
               &changed, err) &&
           (changed == 0 ||
            error_set(
                err, ERROR_TRANSIENT, "%lld orders changed since they were compared (HINT: again)",
                (long long)changed));
}

static bool choose(RebuildOrders *orders, int64_t *ret_left, Error *err)
{
    return ask_number(
        orders, "choose what is replaced",
        "CREATE TEMP TABLE rebuild_ids ON COMMIT DROP AS SELECT DISTINCT tenant_id, id FROM"
        " rebuild_different;"
        "WITH moved AS (DELETE FROM rebuild_ids k WHERE EXISTS (SELECT FROM " SCHEMA
        ".order_archive a WHERE a.correlation_id = k.id AND a.tenant_id = k.tenant_id)"
        " OR EXISTS (SELECT FROM " SCHEMA
        ".late_orders a WHERE a.correlation_id = k.id AND a.tenant_id = k.tenant_id) RETURNING 1)"
        " SELECT count(*) FROM moved",
        ret_left, err);
}

// Who ordered stays as it was sealed; a wait goes on, or is requested again when it is overdue.
static const char replace_orders[] =
    "DELETE FROM " SCHEMA ".order_state o USING rebuild_ids k WHERE o.tenant_id = k.tenant_id AND"
    " o.correlation_id::text = k.id AND NOT EXISTS (SELECT FROM " COPY
    ".order_state c WHERE c.correlation_id = o.correlation_id AND c.tenant_id = o.tenant_id);"
    "INSERT INTO " SCHEMA ".order_state AS o SELECT c.* FROM " COPY
    ".order_state c JOIN rebuild_ids k ON c.tenant_id = k.tenant_id AND"
    " c.correlation_id::text = k.id ON CONFLICT (correlation_id, tenant_id) DO UPDATE SET"
    " order_id = excluded.order_id, basket_id = excluded.basket_id,"
    " current_state = excluded.current_state, total_money = excluded.total_money,"
    " currency = excluded.currency, order_placed_date = excluded.order_placed_date,"
    " version = excluded.version,"
    " place_order_timeout_token_id = excluded.place_order_timeout_token_id,"
    " timeout_retry_count = excluded.timeout_retry_count, finished_at = CASE WHEN"
    " excluded.finished_at IS NOT NULL THEN coalesce(o.finished_at, excluded.finished_at) END,"
    " wait_due = CASE WHEN o.place_order_timeout_token_id = excluded.place_order_timeout_token_id"
    " THEN coalesce(o.wait_due, excluded.wait_due) ELSE excluded.wait_due END";

static void add_inbox_replacement(const RebuildOrders *orders, Buf *sql)
{
    buf_cstr(
        sql, "DELETE FROM " SCHEMA ".inbox_state i USING rebuild_ids k WHERE i.tenant_id ="
             " k.tenant_id AND i.correlation_id::text = k.id AND i.received >= ");
    add_since(orders, sql);
    buf_cstr(
        sql, ";INSERT INTO " SCHEMA ".inbox_state AS i SELECT c.* FROM " COPY
             ".inbox_state c JOIN rebuild_ids k ON c.tenant_id = k.tenant_id AND"
             " c.correlation_id::text = k.id ON CONFLICT (message_id, consumer_id, tenant_id)"
             " DO UPDATE SET correlation_id = excluded.correlation_id,"
             " consumed = excluded.consumed, verdict = excluded.verdict,"
             " reason = excluded.reason, from_state = excluded.from_state,"
             " to_state = excluded.to_state, event = excluded.event");
}

static bool replace(RebuildOrders *orders, Buf *sql, int64_t *ret_left, Error *err)
{
    if (!rebuild_pg_run(
            orders->pg, "hold the live tables",
            "BEGIN; SET LOCAL lock_timeout = '5s'; LOCK TABLE " SCHEMA ".order_state, " SCHEMA
            ".inbox_state IN ACCESS EXCLUSIVE MODE",
            err) ||
        !rebuild_orders_stand_still(orders, err) || !is_as_compared(orders, sql, err) ||
        !choose(orders, ret_left, err) ||
        !rebuild_pg_run(orders->pg, "replace the orders that differ", replace_orders, err)) {
        return false;
    }
    add_inbox_replacement(orders, sql);
    if (!run(orders, sql, "replace their transitions", err)) {
        return false;
    }
    CRASH_POINT("rebuild.orders_replacing");
    return rebuild_pg_run(orders->pg, "commit", "COMMIT", err);
}

bool rebuild_orders_replace(RebuildOrders *orders, int64_t *ret_left, Error *err)
{
    Error ignored;
    Buf sql;
    buf_init(&sql, SQL_MAX);
    bool ok =
        replace(orders, &sql, ret_left, err) || (rebuild_pg_thaw(orders->pg, &ignored), false);
    buf_done(&sql);
    if (ok) {
        CRASH_POINT("rebuild.orders_replaced");
    }
    return ok;
}
