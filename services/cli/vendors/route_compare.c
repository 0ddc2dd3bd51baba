// SPDX-License-Identifier: Apache-2.0
// route compare: what became of the messages at each vendor of a route, by history. The route's
// vendors come from the API, the figures from Postgres, in one query (stentor.vendor_outcomes).
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "common/archive/database.h"
#include "common/base/clock.h"
#include "services/cli/api_client.h"

enum { LIMIT = 100000, LIMIT_MAX = 1000000, SPAN_DAYS = 1, SPAN_DAYS_MAX = 31, NAMES_MAX = 1024 };

static const int64_t day_us = INT64_C(86400000000);

// clang-format off
// $1 tenant, or NULL: all; $2 channel, $3 vendors, $4 since, $5 limit. Figures that are not known are left out.
static const char compare_sql[] =
    "SELECT json_strip_nulls(json_build_object('vendor', o.vendor, 'attempts', o.attempts, 'sent', o.sent, 'refused', o.refused,"
    " 'unknown', o.unknown, 'delivered', o.delivered, 'bounced', o.bounced, 'blocked', o.blocked,"
    " 'delivered_rate', round(o.delivered::numeric / nullif(o.sent, 0), 4), 'bounced_rate', round(o.bounced::numeric / nullif(o.sent, 0), 4),"
    " 'blocked_rate', round(o.blocked::numeric / nullif(o.sent, 0), 4), 'delivered_p50_ms', o.p50_ms, 'delivered_p95_ms', o.p95_ms,"
    " 'cost_per_1000', CASE WHEN o.currency IS NOT NULL THEN trim_scale(round(o.cost_micros / 1000.0 / nullif(o.priced, 0), 4))::text END,"
    " 'currency', o.currency, 'unpriced', o.sent - o.priced, 'cost_estimated', CASE WHEN o.priced > 0 THEN o.estimated > 0 END))::text"
    " FROM stentor.vendor_outcomes($1, $2, $3::text[], $4::timestamptz, now(), $5::integer) o"
    " ORDER BY array_position($3::text[], o.vendor)";
// clang-format on

typedef struct Compare {
    Cli *cli;
    const char *channel;
    char names[NAMES_MAX]; // of its vendors, as an array of Postgres
    json_t *weights;       // "twilio" -> "90" or "90/10"; a fallback's with its step
    int64_t since_us, limit;
    bool missing; // there is no such route
} Compare;

// ---- the route ----

static void add_weight(Compare *compare, const json_t *vendor)
{
    const char *name = api_client_text(vendor, "vendor", "");
    const char *before = json_string_value(json_object_get(compare->weights, name));
    long long step = (long long)json_integer_value(json_object_get(vendor, "step"));
    long long weight = (long long)json_integer_value(json_object_get(vendor, "weight"));
    const char *text = step == 0 ? arena_printf(compare->cli->arena, "%lld", weight)
                                 : arena_printf(compare->cli->arena, "fallback %lld", step);
    if (before != NULL) { // another credential of the same vendor
        text = arena_printf(compare->cli->arena, "%s, %s", before, text);
    }
    (void)json_object_set_new(compare->weights, name, json_string(text));
}

static bool name_vendors(Compare *compare, Error *err)
{
    const char *name = NULL;
    json_t *weight = NULL;
    size_t used = 1;
    compare->names[0] = '{';
    json_object_foreach(compare->weights, name, weight)
    {
        size_t room = sizeof compare->names - used;
        int len = snprintf(compare->names + used, room, "%s\"%s\"", used > 1 ? "," : "", name);
        if (len < 0 || (size_t)len + 2 > room || strpbrk(name, "\"\\") != NULL) {
            return error_set(err, ERROR_PERMANENT, "the route names no vendors that can be read");
        }
        used += (size_t)len;
    }
    memcpy(compare->names + used, "}", 2);
    return true;
}

static bool read_route(Compare *compare, ApiClient *client, Error *err)
{
    Cli *cli = compare->cli;
    ApiAnswer answer = {0};
    size_t i = 0;
    json_t *vendor = NULL;
    const char *key = api_client_escape(cli, args_word(&cli->args, 0));
    const char *path = arena_printf(cli->arena, "/v1/routes/%s", key);
    if (!api_client_ask(client, "GET", path, NULL, &answer, err)) {
        compare->missing = answer.status == 404;
        return false;
    }
    compare->channel =
        arena_cstr(cli->arena, str_from(api_client_text(answer.json, "channel", "email")));
    json_array_foreach(json_object_get(answer.json, "vendors"), i, vendor)
    {
        add_weight(compare, vendor);
    }
    return name_vendors(compare, err);
}

// ---- history ----

static PGresult *ask(const Compare *compare, PGconn *pg, Error *err)
{
    const Cli *cli = compare->cli;
    char since[CLOCK_RFC3339_SIZE];
    char limit[24];
    bool all = strcmp(cli->settings.tenant, "platform") == 0;
    clock_format(compare->since_us, since);
    (void)snprintf(limit, sizeof limit, "%" PRId64, compare->limit);
    const char *const params[] = {
        all ? NULL : cli->settings.tenant, compare->channel, compare->names, since, limit};
    return archive_do(pg, "the time limit", "SET statement_timeout = '120s'", NULL, 0, err)
               ? archive_ask(pg, "history", compare_sql, params, 5, err)
               : NULL;
}

// ---- the answer ----

// "97.1 %", "3.1 s"; empty: it is not known.
static const char *figure(
    const Compare *compare, const json_t *row, const char *name, double factor, const char *unit)
{
    const json_t *value = json_object_get(row, name);
    return value == NULL
               ? ""
               : arena_printf(
                     compare->cli->arena, "%.1f %s", json_number_value(value) * factor, unit);
}

static void print_head(void)
{
    printf(
        "%-12s %-11s %8s %9s %8s %8s %8s %8s %8s %8s  %s\n", "vendor", "weight", "sent",
        "delivered", "bounced", "blocked", "refused", "unknown", "p50", "p95", "a thousand");
}

static void print_line(const Compare *compare, const json_t *row)
{
    const char *cost = json_string_value(json_object_get(row, "cost_per_1000"));
    bool estimated = json_is_true(json_object_get(row, "cost_estimated"));
    printf(
        "%-12s %-11s %8lld %9s %8s %8s %8lld %8lld %8s %8s  %s%s%s%s\n",
        api_client_text(row, "vendor", ""), api_client_text(row, "weight", ""),
        (long long)json_integer_value(json_object_get(row, "sent")),
        figure(compare, row, "delivered_rate", 100, "%"),
        figure(compare, row, "bounced_rate", 100, "%"),
        figure(compare, row, "blocked_rate", 100, "%"),
        (long long)json_integer_value(json_object_get(row, "refused")),
        (long long)json_integer_value(json_object_get(row, "unknown")),
        figure(compare, row, "delivered_p50_ms", 0.001, "s"),
        figure(compare, row, "delivered_p95_ms", 0.001, "s"), cost != NULL ? cost : "",
        cost != NULL ? " " : "", cost != NULL ? api_client_text(row, "currency", "") : "",
        cost != NULL && estimated ? " (estimated)" : "");
}

static int print_all(const Compare *compare, const PGresult *rows)
{
    const Cli *cli = compare->cli;
    json_t *list = json_array();
    json_int_t attempts = 0;
    if (!cli->json) {
        print_head();
    }
    for (int i = 0; i < PQntuples(rows); i++) {
        json_t *row = json_loads(PQgetvalue(rows, i, 0), 0, NULL);
        const char *name = api_client_text(row, "vendor", "");
        (void)json_object_set(row, "weight", json_object_get(compare->weights, name));
        attempts += json_integer_value(json_object_get(row, "attempts"));
        (void)json_array_append_new(list, row);
        if (!cli->json) {
            print_line(compare, row);
        }
    }
    if (cli->json) {
        print_json_line(json_incref(list));
    }
    if (attempts >= compare->limit) {
        cli_note(
            cli, "these are the newest %lld attempts since then: --limit takes more",
            (long long)attempts);
    }
    json_decref(list);
    return EXIT_DONE;
}

// ---- the command ----

static bool read_plan(Compare *compare, Error *err)
{
    Cli *cli = compare->cli;
    int64_t now_us = clock_now_us();
    compare->since_us = now_us - SPAN_DAYS * day_us;
    if (!args_time(&cli->args, "since", TIME_BEFORE_NOW, now_us, &compare->since_us, err) ||
        !args_int(&cli->args, "limit", LIMIT, 1, LIMIT_MAX, &compare->limit, err)) {
        return false;
    }
    return compare->since_us >= now_us - SPAN_DAYS_MAX * day_us - day_us / 24 ||
           error_set(err, ERROR_USAGE, "--since is at most %dd ago", SPAN_DAYS_MAX);
}

int cmd_route_compare(Cli *cli)
{
    Error err = {0};
    Compare compare = {.cli = cli, .weights = json_object()};
    ApiClient *client = NULL;
    PGconn *pg = NULL;
    bool ok =
        read_plan(&compare, &err) &&
        cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", &err) &&
        cli_need(cli->settings.tenant, "STENTOR_TENANT", &err) &&
        (client = api_client_new(cli, &err)) != NULL && read_route(&compare, client, &err) &&
        (pg = archive_connect(cli->settings.database_url, "stentor route compare", &err)) != NULL;
    AUTO(PGresult) rows = ok ? ask(&compare, pg, &err) : NULL;
    int status = rows != NULL      ? print_all(&compare, rows)
                 : compare.missing ? cli_fail_as(cli, EXIT_NOT_FOUND, "%s", err.text)
                                   : cli_fail(cli, &err);
    PQfinish(pg);
    api_client_free(client);
    json_decref(compare.weights);
    return status;
}
