// SPDX-License-Identifier: Apache-2.0
// status: one notification from the history projection, else from the accept log: where it stands,
// its timeline, its attempts.
#include <jansson.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/model/retention/retention.h"
#include "common/model/status.h"
#include "services/cli/cli.h"
#include "services/cli/manage/status_accepted.h"
#include "services/cli/manage/status_wait.h"

// Text results: this is one row for a reader, not a hot path. The timeline is made by Postgres from
// the columns.
// Both are merged with what came after their period was archived, as the projection would merge.
static const char find_head_sql[] =
    "SELECT json_build_object('id', id, 'tenant', tenant_id, 'channel', channel, 'status', status, "
    "'category', category,"
    "  'priority', priority, 'template', template, 'template_version', template_version, "
    "'correlation_id', correlation_id,"
    "  'reason_code', reason_code, 'reason', reason, 'scheduled_for', scheduled_for,"
    "  'source_event_id', source_event_id, 'source_event_type', source_event_type,"
    "  'copy_of', copy_of, 'copies', (SELECT json_agg(c.id ORDER BY c.id)"
    "    FROM archiver.notifications c WHERE c.created_at = $1::timestamptz AND c.copy_of = n.id"
    "    AND c.tenant_id = n.tenant_id),"
    "  'digest_window_id', digest_window_id, ";

// Any month may hold them, and to plan for every partition takes 50 ms of Postgres' CPU time: only
// what has a window asks. What waited in the window was `scheduled` first, the digest never was.
static const char digest_sql[] =
    "'taken_up_by', (SELECT min(d.id)"
    "    FROM archiver.notifications d WHERE n.status = 'superseded'"
    "    AND d.digest_window_id = n.digest_window_id AND d.tenant_id = n.tenant_id"
    "    AND d.scheduled_at IS NULL AND d.created_at >= $1::timestamptz),"
    "  'takes_up', (SELECT json_agg(d.id ORDER BY d.id) FROM archiver.notifications d"
    "    WHERE n.scheduled_at IS NULL AND d.digest_window_id = n.digest_window_id"
    "    AND d.tenant_id = n.tenant_id AND d.status = 'superseded')";
static const char no_digest_sql[] = "'taken_up_by', NULL, 'takes_up', NULL";

static const char find_tail_sql[] =
    ",  'timeline', (SELECT json_agg(json_build_object('status', s, 'at',"
    "      to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')) ORDER BY n)"
    "    FROM (VALUES (1, 'queued', queued_at), (2, 'scheduled', scheduled_at), (3, 'rendered', "
    "rendered_at), (4, 'sent', sent_at),"
    "      (5, 'delivered', delivered_at), (6, 'opened', opened_at), (7, 'clicked', clicked_at), "
    "      (CASE WHEN e.last THEN 8 ELSE 3.5 END, CASE WHEN e.last THEN status ELSE 'failed' END, "
    "ended_at))"
    "      AS t (n, s, at) WHERE at IS NOT NULL),"
    "  'attempts', coalesce((SELECT json_agg(json_build_object('number', attempt_number, 'vendor', "
    "vendor, 'outcome', outcome, 'code', code, 'enhanced_code', enhanced_code, 'reply', reply,"
    "      'vendor_message_id', vendor_message_id, 'was_unknown', was_unknown, 'at', "
    "to_char(finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'),"
    "      'segments', segments, 'cost', trim_scale((cost_micros / 1000000.0)::numeric(20, "
    "6))::text,"
    "      'currency', currency, 'cost_estimated', cost_estimated) ORDER BY attempt_number)"
    "      FROM stentor.notification_attempts(n.tenant_id, $1::timestamptz, $2)), '[]'))::text"
    ", status"
    // After a resend ended_at is the end of an earlier resend generation; only a failed mail can be
    // sent again.
    " FROM (SELECT id, tenant_id, max(channel) AS channel, max(category) AS category,"
    "  max(priority) AS priority, max(template) AS template,"
    "  max(template_version) AS template_version, max(correlation_id) AS correlation_id,"
    "  max(source_event_id) AS source_event_id, max(source_event_type) AS source_event_type,"
    "  max(digest_window_id) AS digest_window_id, max(copy_of) AS copy_of,"
    "  (array_agg(status ORDER BY status_rank DESC))[1] AS status,"
    "  (array_agg(reason_code ORDER BY status_rank DESC))[1] AS reason_code,"
    "  (array_agg(reason ORDER BY status_rank DESC))[1] AS reason,"
    "  min(scheduled_for) AS scheduled_for, min(queued_at) AS queued_at,"
    "  min(scheduled_at) AS scheduled_at, min(rendered_at) AS rendered_at, min(sent_at) AS sent_at,"
    "  min(delivered_at) AS delivered_at, min(opened_at) AS opened_at,"
    "  min(clicked_at) AS clicked_at, min(ended_at) AS ended_at FROM ("
    "   SELECT * FROM archiver.notifications WHERE created_at = $1::timestamptz AND id = $2"
    "   UNION ALL"
    "   SELECT * FROM archiver.late_notifications WHERE created_at = $1::timestamptz AND id = $2)"
    "  AS b GROUP BY id, tenant_id) AS n, LATERAL (SELECT n.status IN "
    "('suppressed', 'superseded', 'failed', 'bounced', 'complained') AND "
    "(n.sent_at IS NULL OR n.ended_at >= n.sent_at) AS last) e";

// How far it is, and no more: asked every 50 ms while waiting, so of one month's partition alone.
static const char state_sql[] =
    "SELECT (array_agg(status ORDER BY status_rank DESC))[1], max(digest_window_id) FROM ("
    " SELECT status, status_rank, digest_window_id FROM archiver.notifications"
    " WHERE created_at = $1::timestamptz AND id = $2 UNION ALL"
    " SELECT status, status_rank, digest_window_id FROM archiver.late_notifications"
    " WHERE created_at = $1::timestamptz AND id = $2) AS b HAVING count(*) > 0";

static bool set_tenant(PGconn *conn, const char *tenant, Error *err)
{
    const char *params[] = {tenant};
    PGresult *res = PQexecParams(
        conn, "SELECT set_config('app.tenant_id', $1, false)", 1, NULL, params, NULL, NULL, 0);
    bool ok = PQresultStatus(res) == PGRES_TUPLES_OK;
    PQclear(res);
    return ok || error_set(err, ERROR_TRANSIENT, "postgres: %s", PQerrorMessage(conn));
}

static PGconn *open_database(const Cli *cli, Error *err)
{
    if (!cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", err) ||
        !cli_need(cli->settings.tenant, "STENTOR_TENANT", err)) {
        return NULL;
    }
    PGconn *conn = PQconnectdb(cli->settings.database_url);
    if (PQstatus(conn) != CONNECTION_OK) {
        error_set(err, ERROR_TRANSIENT, "cannot connect to postgres: %s", PQerrorMessage(conn));
        PQfinish(conn);
        return NULL;
    }
    if (!set_tenant(conn, cli->settings.tenant, err)) {
        PQfinish(conn);
        return NULL;
    }
    return conn;
}

// NULL without an error: not there (yet).
static PGresult *ask(PGconn *conn, const char *sql, const char *id, Error *err)
{
    int64_t created_ms = 0;
    char created[CLOCK_RFC3339_SIZE];
    id_parse(str_from(id), "ntf_", &created_ms);
    clock_format(created_ms * 1000, created);
    const char *params[] = {created, id};
    PGresult *res = PQexecParams(conn, sql, 2, NULL, params, NULL, NULL, 0);
    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        error_set(err, ERROR_TRANSIENT, "postgres: %s", PQerrorMessage(conn));
        PQclear(res);
        return NULL;
    }
    if (PQntuples(res) == 0) {
        PQclear(res);
        return NULL;
    }
    return res;
}

static PGresult *find(PGconn *conn, const char *id, bool has_window, Error *err)
{
    Buf sql;
    buf_init(&sql, 8192);
    buf_printf(
        &sql, "%s%s%s", find_head_sql, has_window ? digest_sql : no_digest_sql, find_tail_sql);
    PGresult *res = ask(conn, buf_c(&sql), id, err);
    buf_done(&sql);
    return res;
}

static const char unit_sql[] =
    "SELECT id, state FROM archive.units WHERE kind = 'notifications' AND class = $2 AND starts_at "
    "<= "
    "$1::timestamptz AND ends_at > $1::timestamptz AND state IN ('removing', 'removed', 'expired')";

// The unit whose tables its row would be in, had they not been removed, and its state. NULL: they
// are there.
static PGresult *find_unit(PGconn *conn, const char *id)
{
    int64_t created_ms = 0;
    char created[CLOCK_RFC3339_SIZE];
    char class[] = {retention_class_code(retention_class_of_id(str_from(id))), '\0'};
    id_parse(str_from(id), "ntf_", &created_ms);
    clock_format(created_ms * 1000, created);
    const char *params[] = {created, class};
    PGresult *res = PQexecParams(conn, unit_sql, 2, NULL, params, NULL, NULL, 0);
    if (PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1) {
        return res;
    }
    PQclear(res);
    return NULL;
}

// Is it as far as `wanted` (NULL: any status will do)?
static bool is_far_enough(const char *status, const char *wanted)
{
    Status now = STATUS_NONE;
    Status want = STATUS_NONE;
    return wanted == NULL ||
           (status_from_name(str_from(status), &now) && status_from_name(str_from(wanted), &want) &&
            status_rank(now) >= status_rank(want));
}

static PGresult *wait_for(
    PGconn *conn, const char *id, const char *wanted, int64_t timeout_s, Error *err)
{
    int64_t until_us = clock_mono_us() + timeout_s * 1000000;
    bool over = false;
    bool has_window = false;
    while (!over) {
        PGresult *state = ask(conn, state_sql, id, err);
        over = err->kind != ERROR_NONE || wanted == NULL || clock_mono_us() > until_us ||
               (state != NULL && is_far_enough(PQgetvalue(state, 0, 0), wanted));
        has_window = state != NULL && !PQgetisnull(state, 0, 1);
        PQclear(state);
        if (!over) {
            nanosleep(&(struct timespec){.tv_nsec = 50 * 1000000}, NULL);
        }
    }
    return err->kind == ERROR_NONE ? find(conn, id, has_window, err) : NULL;
}

// ", 2 segments, 0.0158 USD (estimated)"
static void print_cost(const json_t *attempt)
{
    long long segments = (long long)json_integer_value(json_object_get(attempt, "segments"));
    const char *cost = json_string_value(json_object_get(attempt, "cost"));
    const char *currency = json_string_value(json_object_get(attempt, "currency"));
    if (segments > 0) {
        printf(", %lld segment%s", segments, segments == 1 ? "" : "s");
    }
    if (cost != NULL && currency != NULL) {
        bool estimated = json_is_true(json_object_get(attempt, "cost_estimated"));
        printf(", %s %s%s", cost, currency, estimated ? " (estimated)" : "");
    }
    printf("\n");
}

static void print_attempt(const json_t *attempt)
{
    const char *code = json_string_value(json_object_get(attempt, "code"));
    const char *reply = json_string_value(json_object_get(attempt, "reply"));
    printf(
        "  attempt %lld via %s: %s%s%s%s%s",
        (long long)json_integer_value(json_object_get(attempt, "number")),
        json_string_value(json_object_get(attempt, "vendor")),
        json_string_value(json_object_get(attempt, "outcome")), code != NULL ? ", " : "",
        code != NULL ? code : "", reply != NULL ? " " : "", reply != NULL ? reply : "");
    print_cost(attempt);
}

static void print_wait(const json_t *wait)
{
    if (wait != NULL) {
        printf(
            "  %-17s for %s since %s: %s\n", "waiting",
            json_string_value(json_object_get(wait, "for")),
            json_string_value(json_object_get(wait, "since")),
            json_string_value(json_object_get(wait, "reason")));
    }
}

static void print_ids(const json_t *row, const char *name)
{
    size_t index;
    json_t *id;
    json_array_foreach(json_object_get(row, name), index, id)
    {
        printf("  %-17s %s\n", index == 0 ? name : "", json_string_value(id));
    }
}

static void print_row(const json_t *row)
{
    static const char *const shown[] = {
        "template",        "template_version",  "category", "priority",    "correlation_id",
        "source_event_id", "source_event_type", "copy_of",  "taken_up_by", "reason_code",
        "reason"};
    printf(
        "%s  %s\n", json_string_value(json_object_get(row, "id")),
        json_string_value(json_object_get(row, "status")));
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const char *value = json_string_value(json_object_get(row, shown[i]));
        if (value != NULL && value[0] != '\0') {
            printf("  %-17s %s\n", shown[i], value);
        }
    }
    print_ids(row, "copies");
    print_ids(row, "takes_up");
    print_wait(json_object_get(row, "waiting"));
    size_t index;
    json_t *step;
    json_array_foreach(json_object_get(row, "timeline"), index, step)
    {
        printf(
            "  %s  %s\n", json_string_value(json_object_get(step, "at")),
            json_string_value(json_object_get(step, "status")));
    }
    json_array_foreach(json_object_get(row, "attempts"), index, step)
    {
        print_attempt(step);
    }
}

// Takes the row. With what its channel waits for, when it has not been sent yet.
static void show(Cli *cli, json_t *row)
{
    json_t *wait = status_wait(cli, row);
    if (wait != NULL) {
        json_object_set_new(row, "waiting", wait);
    }
    if (cli->json) {
        print_json_line(row); // Postgres writes blanks around its colons; no other command does
        return;
    }
    print_row(row);
    json_decref(row);
}

static void fail_status(const char *wanted, Error *err)
{
    Buf names;
    buf_init(&names, 1024);
    for (Status status = STATUS_NONE + 1; status < STATUS_COUNT; status++) {
        buf_printf(&names, " %s", status_name(status));
    }
    error_set(
        err, ERROR_USAGE, "--wait '%s' is not a status: expected one of%s", wanted, buf_c(&names));
    buf_done(&names);
}

// How to see what is in an archived unit: a unit in grace is not restored (unit_restore.c), and of
// an expired one the objects are deleted.
static const char *hint_of(const Cli *cli, const PGresult *unit)
{
    const char *id = PQgetvalue(unit, 0, 0);
    const char *state = PQgetvalue(unit, 0, 1);
    if (strcmp(state, "removed") == 0) {
        return arena_printf(cli->arena, "HINT: stentor archive restore %s", id);
    }
    return strcmp(state, "removing") == 0
               ? arena_printf(
                     cli->arena,
                     "it is in its grace and cannot be restored yet; HINT: stentor archive show %s "
                     "--rows 100",
                     id)
               : "its retention is over";
}

static int fail_unknown(const Cli *cli, const char *id, const PGresult *unit)
{
    if (unit != NULL) {
        return cli_fail_as(
            cli, EXIT_NOT_FOUND,
            "'%s': notifications of its time and class are archived in unit '%s' (%s)", id,
            PQgetvalue(unit, 0, 0), hint_of(cli, unit));
    }
    return cli_fail_as(
        cli, EXIT_NOT_FOUND, "'%s' is neither in the history of tenant '%s' nor in its accept log",
        id, cli->settings.tenant);
}

static bool check_use(
    Cli *cli, const char *id, const char *wanted, int64_t *ret_timeout_s, Error *err)
{
    Status ignored;
    *ret_timeout_s = 0;
    if (!id_parse(str_from(id), "ntf_", NULL)) {
        return error_set(
            err, ERROR_USAGE, "'%s' is not a notification id: 'ntf_' and 26 characters", id);
    }
    if (wanted != NULL && !status_from_name(str_from(wanted), &ignored)) {
        fail_status(wanted, err);
        return false;
    }
    args_int(&cli->args, "timeout", 30, 1, 86400, ret_timeout_s, err);
    return err->kind == ERROR_NONE;
}

// From history, else from the accept log. NULL without an error: in neither. In a month that is
// archived the accept log is no answer: what came since would be missing.
static json_t *read_row(
    const Cli *cli, PGconn *conn, const char *id, bool archived, const PGresult *res, Error *err)
{
    if (res != NULL) {
        return json_loads(PQgetvalue(res, 0, 0), 0, NULL);
    }
    return archived ? NULL : status_accepted(cli, conn, id, err);
}

int cmd_status(Cli *cli)
{
    Error err = {0};
    const char *id = args_word(&cli->args, 0);
    const char *wanted = args_flag(&cli->args, "wait");
    int64_t timeout_s = 0;
    if (!check_use(cli, id, wanted, &timeout_s, &err)) {
        return cli_fail(cli, &err);
    }
    PGconn *conn = open_database(cli, &err);
    PGresult *res = conn != NULL ? wait_for(conn, id, wanted, timeout_s, &err) : NULL;
    PGresult *unit = err.kind == ERROR_NONE ? find_unit(conn, id) : NULL;
    json_t *row = err.kind == ERROR_NONE ? read_row(cli, conn, id, unit != NULL, res, &err) : NULL;
    bool known = row != NULL;
    bool far_enough =
        known && is_far_enough(json_string_value(json_object_get(row, "status")), wanted);
    int result = EXIT_DONE;
    if (err.kind != ERROR_NONE) {
        result = cli_fail(cli, &err);
    } else if (!known) {
        result = fail_unknown(cli, id, unit);
    } else {
        show(cli, row);
    }
    if (res != NULL && unit != NULL) {
        cli_note(
            cli, "what came before is archived in unit '%s' (%s)", PQgetvalue(unit, 0, 0),
            hint_of(cli, unit));
    }
    if (known && !far_enough) {
        result = cli_fail_as(
            cli, EXIT_FAILED, "'%s' is not '%s' after %lld s", id, wanted, (long long)timeout_s);
    }
    PQclear(unit);
    PQclear(res);
    PQfinish(conn);
    return result;
}
