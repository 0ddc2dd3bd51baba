// SPDX-License-Identifier: Apache-2.0
// order show, order list: what the order saga knows of an order. Who ordered is sealed and not
// shown.
#include <jansson.h>
#include <libpq-fe.h>
#include <string.h>

#include "common/archive/database.h"
#include "common/orders/machine.h"
#include "common/orders/uuid.h"
#include "services/cli/cli.h"
#include "services/cli/operate/tenant_database.h"

// clang-format off
#define AT(column) "to_char(" column " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"

#define ORDER_COLUMNS                                                                                                              \
    "json_strip_nulls(json_build_object('correlation_id', o.id, 'order_id', o.order_id, 'basket_id', o.basket_id,"                 \
    " 'state', o.state, 'total', o.total, 'currency', o.currency, 'placed_at', " AT("o.placed_at") ","                             \
    " 'finished_at', " AT("o.finished_at") ", 'next_attempt_at', " AT("o.wait_due") ", 'attempts', o.attempts,"                    \
    " 'version', o.version, 'archived', o.archived))"

#define LIVE                                                                                                                       \
    "SELECT s.correlation_id::text AS id, s.tenant_id, s.order_id::text, s.basket_id::text, s.current_state AS state,"             \
    " s.total_money::text AS total, s.currency, s.order_placed_date AS placed_at, s.finished_at,"                                  \
    " CASE WHEN s.current_state = 'Placed' THEN s.wait_due END AS wait_due, s.timeout_retry_count AS attempts, s.version,"         \
    " false AS archived FROM order_saga.order_state s WHERE "
#define MOVED(table)                                                                                                               \
    "SELECT a.correlation_id, a.tenant_id, a.order_id, a.basket_id, a.current_state, (a.total_micros / 1000000.0)::numeric(18, 2)::text," \
    " a.currency, a.order_placed_date, a.finished_at, NULL, a.timeout_retry_count, a.version, true FROM order_saga." table " a WHERE "

// An order is in one of the three places. Duplicates and stale time-outs change nothing and are many: not shown.
static const char show_sql[] =
    "SELECT " ORDER_COLUMNS "::text, (SELECT coalesce(json_agg(json_strip_nulls(json_build_object('event', t.event_type,"
    "   'verdict', t.verdict, 'from', t.from_state, 'to', t.to_state, 'at', " AT("t.at") ", 'message_id', t.message_id,"
    "   'reason', nullif(t.reason, ''))) ORDER BY t.sequence), '[]') FROM ("
    "  SELECT i.event_type, i.verdict, i.from_state, i.to_state, coalesce(i.consumed, i.received) AS at, i.message_id, i.reason, i.sequence"
    "   FROM order_saga.inbox_state i WHERE i.correlation_id = o.id::uuid AND i.verdict = 'applied' AND NOT o.archived"
    "  UNION ALL SELECT i.event_type, i.verdict, i.from_state, i.to_state, coalesce(i.consumed, i.received), i.message_id, i.reason, i.sequence"
    "   FROM order_saga.inbox_state i WHERE i.correlation_id = o.id::uuid AND i.verdict = 'conflict'"
    "  UNION ALL SELECT a.event_type, 'applied', a.from_state, a.to_state, a.consumed, a.message_id, a.reason, a.sequence"
    "   FROM order_saga.order_transitions a WHERE a.correlation_id = o.id AND a.finished_at = o.finished_at AND o.archived"
    "  UNION ALL SELECT a.event_type, 'applied', a.from_state, a.to_state, a.consumed, a.message_id, a.reason, a.sequence"
    "   FROM order_saga.late_transitions a WHERE a.correlation_id = o.id AND a.finished_at = o.finished_at AND o.archived) t)::text"
    " FROM (" LIVE "s.correlation_id = $1::text::uuid UNION ALL " LIVE "s.order_id = $1::text::uuid AND s.correlation_id <> s.order_id"
    "  UNION ALL " MOVED("order_archive") "a.correlation_id = $1::text UNION ALL " MOVED("order_archive") "a.order_id = $1::text AND a.correlation_id <> a.order_id"
    "  UNION ALL " MOVED("late_orders") "a.correlation_id = $1::text UNION ALL " MOVED("late_orders") "a.order_id = $1::text AND a.correlation_id <> a.order_id"
    " ) o LIMIT 1";

static const char list_sql[] =
    "SELECT " ORDER_COLUMNS "::text FROM (" LIVE "($1::text IS NULL OR s.current_state = $1)"
    " ORDER BY s.order_placed_date DESC LIMIT $2::int8) o";
// clang-format on

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "" : text;
}

static int64_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

// ---- show ----

static void print_transition(const json_t *t)
{
    bool applied = strcmp(text_of(t, "verdict"), "applied") == 0;
    printf(
        "  %s  %-20s %s%s%s%s%s\n", text_of(t, "at"), text_of(t, "event"),
        applied ? text_of(t, "from") : text_of(t, "verdict"),
        applied && text_of(t, "from")[0] != '\0' ? " -> " : "", applied ? text_of(t, "to") : "",
        text_of(t, "reason")[0] != '\0' ? ": " : "", text_of(t, "reason"));
}

static void print_order(const json_t *order)
{
    static const char *const shown[] = {
        "order_id", "basket_id", "placed_at", "finished_at", "next_attempt_at"};
    printf("%s  %s\n", text_of(order, "correlation_id"), text_of(order, "state"));
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        if (text_of(order, shown[i])[0] != '\0') {
            printf("  %-16s %s\n", shown[i], text_of(order, shown[i]));
        }
    }
    if (text_of(order, "total")[0] != '\0') {
        printf("  %-16s %s %s\n", "total", text_of(order, "total"), text_of(order, "currency"));
    }
    printf("  %-16s %lld\n", "attempts", (long long)number_of(order, "attempts"));
    size_t index;
    json_t *transition;
    json_array_foreach(json_object_get(order, "transitions"), index, transition)
    {
        print_transition(transition);
    }
}

int cmd_order_show(Cli *cli)
{
    Error err = {0};
    char id[UUID_SIZE];
    const char *word = args_word(&cli->args, 0);
    if (!uuid_read(str_from(word), id)) {
        error_set(&err, ERROR_USAGE, "'%s' is not an order's id or correlation id: a UUID", word);
        return cli_fail(cli, &err);
    }
    PGconn *pg = tenant_database(cli, &err);
    const char *params[] = {id};
    AUTO(PGresult)
    rows = pg != NULL ? archive_ask(pg, "the order", show_sql, params, 1, &err) : NULL;
    PQfinish(pg);
    if (rows == NULL) {
        return cli_fail(cli, &err);
    }
    if (PQntuples(rows) == 0) {
        return cli_fail_as(
            cli, EXIT_NOT_FOUND, "tenant '%s' has no order '%s'", cli->settings.tenant, id);
    }
    json_t *order = json_loads(PQgetvalue(rows, 0, 0), 0, NULL);
    (void)json_object_set_new(order, "transitions", json_loads(PQgetvalue(rows, 0, 1), 0, NULL));
    if (cli->json) {
        print_json_line(json_incref(order));
    } else {
        print_order(order);
    }
    json_decref(order);
    return EXIT_DONE;
}

// ---- list ----

static void print_list(const Cli *cli, const PGresult *rows)
{
    json_t *list = json_array();
    for (int i = 0; i < PQntuples(rows); i++) {
        json_t *order = json_loads(PQgetvalue(rows, i, 0), 0, NULL);
        (void)json_array_append_new(list, order);
        if (!cli->json) {
            printf(
                "%s  %-9s  %s  %12s %s  attempts %lld\n", text_of(order, "order_id"),
                text_of(order, "state"), text_of(order, "placed_at"), text_of(order, "total"),
                text_of(order, "currency"), (long long)number_of(order, "attempts"));
        }
    }
    if (cli->json) {
        print_json_line(json_incref(list));
    } else if (json_array_size(list) == 0) {
        cli_note_empty(cli, "orders");
    }
    json_decref(list);
}

int cmd_order_list(Cli *cli)
{
    Error err = {0};
    int64_t limit = 0;
    OrderState known;
    const char *state = args_flag(&cli->args, "state");
    if (state != NULL && !order_state_from_name(str_from(state), &known)) {
        error_set(
            &err, ERROR_USAGE, "--state '%s' is not one of Placed, Completed, Cancelled, Failed",
            state);
    } else {
        args_int(&cli->args, "limit", 100, 1, 100000, &limit, &err);
    }
    if (err.kind != ERROR_NONE) {
        return cli_fail(cli, &err);
    }
    PGconn *pg = tenant_database(cli, &err);
    char most[24];
    (void)snprintf(most, sizeof most, "%lld", (long long)limit);
    const char *params[] = {state, most};
    AUTO(PGresult)
    rows = pg != NULL ? archive_ask(pg, "the orders", list_sql, params, 2, &err) : NULL;
    PQfinish(pg);
    if (rows == NULL) {
        return cli_fail(cli, &err);
    }
    print_list(cli, rows);
    return EXIT_DONE;
}
