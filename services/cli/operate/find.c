// SPDX-License-Identifier: Apache-2.0
// find: which notifications belong to an order, an event, a digest, an original or a vendor's
// message. From history as it is in Postgres; rows are merged with what came after their period was
// archived, as `status` merges them.
#include <jansson.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "common/archive/database.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/orders/uuid.h"
#include "services/cli/cli.h"
#include "services/cli/operate/tenant_database.h"

enum { KEY_MAX = 512, LIMIT_MAX = 100000, SQL_MAX = 8192 };

// clang-format off
#define AT(column) "to_char(" column " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"

// $1: the ids that are looked for, as an array; $2: none is older; $3: at most so many. %s: which
// rows; it ends in a condition.
#define KEYS "SELECT created_at, id, tenant_id FROM archiver."
#define SINCE " AND created_at >= $2::timestamptz"
#define OF_NOTIFICATIONS(column)                                                                     \
    KEYS "notifications WHERE " column " = ANY ($1::text[])" SINCE                                     \
    " UNION " KEYS "late_notifications WHERE " column " = ANY ($1::text[])" SINCE
#define OF_ATTEMPTS(table)                                                                           \
    "SELECT created_at, notification_id AS id, tenant_id FROM archiver." table                               \
    " WHERE vendor_message_id = ANY ($1::text[]) AND ($4::text IS NULL OR vendor = $4)" SINCE
// The index has those that do not begin with the notification's own id; $5 and $6 are that id and
// its time, of a Message-ID of ours.
#define FOREIGN " AND NOT starts_with(vendor_message_id COLLATE \"C\", notification_id || '@')"
#define OWN " AND created_at = $6::timestamptz AND notification_id = $5::text"

#define SAME "created_at = f.created_at AND id = f.id AND tenant_id = f.tenant_id"
static const char list_sql[] =
    "WITH found AS MATERIALIZED (SELECT * FROM (%s) k ORDER BY created_at DESC, id DESC LIMIT $3::int8)"
    " SELECT json_strip_nulls(json_build_object('id', f.id, 'status', m.status, 'reason_code', m.reason_code, 'reason', m.reason,"
    " 'channel', m.channel, 'category', m.category, 'template', m.template, 'template_version', m.template_version,"
    " 'recipient_id', m.recipient_id, 'correlation_id', m.correlation_id, 'source_event_id', m.source_event_id,"
    " 'source_event_type', m.source_event_type, 'batch_id', m.batch_id, 'digest_window_id', m.digest_window_id, 'copy_of', m.copy_of,"
    " 'accepted_at', " AT("f.created_at") ", 'scheduled_for', " AT("m.scheduled_for") ", 'rendered_at', " AT("m.rendered_at") ","
    " 'sent_at', " AT("m.sent_at") ", 'delivered_at', " AT("m.delivered_at") ", 'opened_at', " AT("m.opened_at") ","
    " 'clicked_at', " AT("m.clicked_at") ", 'ended_at', " AT("m.ended_at") "))::text"
    " FROM found f, LATERAL (SELECT (array_agg(status ORDER BY status_rank DESC))[1] AS status,"
    "  (array_agg(reason_code ORDER BY status_rank DESC))[1] AS reason_code, (array_agg(reason ORDER BY status_rank DESC))[1] AS reason,"
    "  max(channel) AS channel, max(category) AS category, max(template) AS template, max(template_version) AS template_version,"
    "  max(recipient_id) AS recipient_id, max(correlation_id) AS correlation_id, max(source_event_id) AS source_event_id,"
    "  max(source_event_type) AS source_event_type, max(batch_id) AS batch_id, max(digest_window_id) AS digest_window_id,"
    "  max(copy_of) AS copy_of, min(scheduled_for) AS scheduled_for, min(rendered_at) AS rendered_at, min(sent_at) AS sent_at,"
    "  min(delivered_at) AS delivered_at, min(opened_at) AS opened_at, min(clicked_at) AS clicked_at, min(ended_at) AS ended_at"
    "  FROM (SELECT * FROM archiver.notifications WHERE " SAME
    "   UNION ALL SELECT * FROM archiver.late_notifications WHERE " SAME ") b) m ORDER BY f.created_at DESC, f.id DESC";

// An order's mails have its correlation id, which is its order id unless its events say another.
static const char order_sql[] =
    "SELECT array_agg(DISTINCT o.id)::text FROM (SELECT $1::text AS id"
    " UNION ALL SELECT s.correlation_id::text FROM order_saga.order_state s WHERE s.order_id = $1::text::uuid"
    " UNION ALL SELECT a.correlation_id FROM order_saga.order_archive a WHERE a.order_id = $1::text"
    " UNION ALL SELECT l.correlation_id FROM order_saga.late_orders l WHERE l.order_id = $1::text) o";

static const char one_sql[] = "SELECT ARRAY[$1::text]::text";

static const char archived_sql[] =
    "SELECT count(*) FROM archive.units u WHERE kind = 'notifications' AND ends_at > $1::timestamptz"
    " AND state IN ('removing', 'removed') AND EXISTS ("
    "SELECT 1 FROM archive.objects o WHERE o.unit = u.id AND o.tenant = $2 AND o.deleted_at IS NULL)";

// What is looked for: a flag, and the rows that it means.
typedef struct Look {
    const char *flag;
    const char *rows;
} Look;

static const Look looks[] = {
    {"correlation",       OF_NOTIFICATIONS("correlation_id")},
    {"order",             OF_NOTIFICATIONS("correlation_id")},
    {"source-event",      OF_NOTIFICATIONS("source_event_id")},
    {"digest",            OF_NOTIFICATIONS("digest_window_id")},
    {"copy-of",           OF_NOTIFICATIONS("copy_of")},
    {"recipient",         OF_NOTIFICATIONS("recipient_id")},
    {"vendor-message-id", OF_ATTEMPTS("delivery_attempts") FOREIGN " UNION " OF_ATTEMPTS("delivery_attempts") OWN
        " UNION " OF_ATTEMPTS("late_attempts")},
};
// clang-format on

typedef struct Find {
    const Look *look;
    const char *key;
    const char *vendor; // NULL: any
    char since[CLOCK_RFC3339_SIZE];
    char limit[24];
    char uuid[UUID_SIZE];
} Find;

// ---- the command line ----

static bool choose(const Cli *cli, Find *find, Error *err)
{
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        const char *key = args_flag(&cli->args, looks[i].flag);
        if (key != NULL && find->look != NULL) {
            return error_set(
                err, ERROR_USAGE, "give one of --%s and --%s", find->look->flag, looks[i].flag);
        }
        if (key != NULL) {
            find->look = &looks[i];
            find->key = key;
        }
    }
    if (find->look == NULL) {
        return error_set(
            err, ERROR_USAGE,
            "say what to look for: --correlation, --order, --source-event, --digest, --copy-of, "
            "--recipient or --vendor-message-id");
    }
    if (find->key[0] == '\0' || strlen(find->key) > KEY_MAX) {
        return error_set(err, ERROR_USAGE, "--%s: 1 to %d bytes", find->look->flag, KEY_MAX);
    }
    return true;
}

// A Message-ID is looked for as it stands in the mail, or without its brackets.
static const char *unbracketed(Cli *cli, const char *key)
{
    Str text = str_from(key);
    bool bracketed = text.len > 2 && key[0] == '<' && str_ends(text, STR(">"));
    return bracketed ? arena_cstr(cli->arena, str_slice(text, 1, text.len - 1)) : key;
}

static bool read_flags(Cli *cli, Find *find, Error *err)
{
    int64_t limit = 0;
    int64_t since_us = 0;
    find->vendor = args_flag(&cli->args, "vendor");
    if (!choose(cli, find, err) || !args_int(&cli->args, "limit", 100, 1, LIMIT_MAX, &limit, err) ||
        !args_time(&cli->args, "since", TIME_BEFORE_NOW, clock_now_us(), &since_us, err)) {
        return false;
    }
    bool by_vendor = strcmp(find->look->flag, "vendor-message-id") == 0;
    if (strcmp(find->look->flag, "recipient") == 0 && since_us == 0) {
        return error_set(
            err, ERROR_USAGE, "--recipient needs --since: history is read from there on");
    }
    if (find->vendor != NULL && !by_vendor) {
        return error_set(err, ERROR_USAGE, "--vendor goes with --vendor-message-id");
    }
    if (strcmp(find->look->flag, "order") == 0 && !uuid_read(str_from(find->key), find->uuid)) {
        return error_set(
            err, ERROR_USAGE, "--order '%.64s' is not an order's id or correlation id: a UUID",
            find->key);
    }
    find->key = find->uuid[0] != '\0' ? find->uuid : find->key;
    find->key = by_vendor ? unbracketed(cli, find->key) : find->key;
    clock_format(since_us, find->since);
    (void)snprintf(find->limit, sizeof find->limit, "%lld", (long long)limit);
    return true;
}

// ---- history ----

// The notification's id that a Message-ID of ours begins with, and its time; else no id.
static void read_own_id(const char *message_id, char own[ID_SIZE], char own_at[CLOCK_RFC3339_SIZE])
{
    int64_t created_ms = 0;
    const char *at = strchr(message_id, '@');
    Str id = str_of(message_id, at == NULL ? 0 : (size_t)(at - message_id));
    if (id_parse(id, "ntf_", &created_ms)) {
        (void)str_to_c(id, own, ID_SIZE);
    }
    clock_format(created_ms * 1000, own_at);
}

static PGresult *ask_rows(PGconn *pg, const Find *find, Error *err)
{
    const char *key[] = {find->key};
    AUTO(PGresult)
    keys = archive_ask(pg, "the order", find->uuid[0] != '\0' ? order_sql : one_sql, key, 1, err);
    if (keys == NULL) {
        return NULL;
    }
    char sql[SQL_MAX];
    int len = snprintf(sql, sizeof sql, list_sql, find->look->rows);
    if (len < 0 || (size_t)len >= sizeof sql) {
        error_set(err, ERROR_PERMANENT, "the statement is longer than %d bytes", SQL_MAX);
        return NULL;
    }
    char own[ID_SIZE] = "";
    char own_at[CLOCK_RFC3339_SIZE];
    read_own_id(find->key, own, own_at);
    const char *params[] = {PQgetvalue(keys, 0, 0), find->since, find->limit,
                            find->vendor,           own,         own_at};
    bool by_vendor = strstr(find->look->rows, "$4") != NULL;
    return archive_ask(pg, "history", sql, params, by_vendor ? 6 : 3, err);
}

// Months in object storage are not looked through: the note says so, also when something was found.
static void note_archived(const Cli *cli, PGconn *pg, const Find *find)
{
    Error ignored = {0};
    const char *params[] = {find->since, cli->settings.tenant};
    AUTO(PGresult)
    rows = archive_ask(pg, "the archive", archived_sql, params, 2, &ignored);
    int64_t units = rows == NULL ? 0 : archive_number(rows, 0, 0);
    if (units > 0) {
        cli_note(
            cli,
            "%lld archived unit%s with notifications of the tenant %s not looked through: stentor "
            "archive list, stentor archive restore UNIT",
            (long long)units, units == 1 ? "" : "s", units == 1 ? "was" : "were");
    }
}

// ---- the answer ----

static const char *text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text == NULL ? "" : text;
}

static void print_line(const json_t *row)
{
    static const char *const times[] = {"ended_at",     "clicked_at", "opened_at",
                                        "delivered_at", "sent_at",    "rendered_at"};
    const char *last = "";
    for (size_t i = 0; last[0] == '\0' && i < sizeof times / sizeof *times; i++) {
        last = text_of(row, times[i]);
    }
    printf(
        "%s  %-10s  accepted %s%s%s  %s %s\n", text_of(row, "id"), text_of(row, "status"),
        text_of(row, "accepted_at"), last[0] != '\0' ? "  last " : "", last,
        text_of(row, "channel"), text_of(row, "template"));
}

static void print_found(const Cli *cli, const PGresult *rows)
{
    json_t *list = json_array();
    for (int i = 0; i < PQntuples(rows); i++) {
        json_t *row = json_loads(PQgetvalue(rows, i, 0), 0, NULL);
        (void)json_array_append_new(list, row);
        if (!cli->json) {
            print_line(row);
        }
    }
    if (cli->json) {
        print_json_line(json_incref(list));
    }
    json_decref(list);
}

int cmd_find(Cli *cli)
{
    Error err = {0};
    Find find = {.look = NULL};
    PGconn *pg = read_flags(cli, &find, &err) ? tenant_database(cli, &err) : NULL;
    AUTO(PGresult) rows = pg != NULL ? ask_rows(pg, &find, &err) : NULL;
    int status = EXIT_DONE;
    if (rows == NULL) {
        status = cli_fail(cli, &err);
    } else {
        note_archived(cli, pg, &find);
        print_found(cli, rows);
        if (PQntuples(rows) == 0) {
            status = cli_fail_as(
                cli, EXIT_NOT_FOUND, "tenant '%s' has no notification with that --%s",
                cli->settings.tenant, find.look->flag);
        }
    }
    PQfinish(pg);
    return status;
}
