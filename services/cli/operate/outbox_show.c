// SPDX-License-Identifier: Apache-2.0
// outbox show, retry: what waits, what is under way, what failed and why; and once more.
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "services/cli/operate/outbox_database.h"

enum { COUNT_MAX = 1000000, LIST_DEFAULT = 20, LIST_MAX = 100000, KEYS_MAX = 64 * 1024 * 1024 };

static json_t *text_of(Str text)
{
    return json_stringn(text.ptr, text.len);
}

static json_t *time_of(int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text);
    return at_us == 0 ? json_null() : json_string(text);
}

// A query over the mapping's name as $1.
static PGresult *query_named(Outbox *outbox, const char *what, const char *sql, Error *err)
{
    const char *params[] = {arena_cstr(outbox->cli->arena, outbox->mapping->name)};
    return outbox_query(outbox, what, sql, 1, params, err);
}

// ---- what is shown ----

static bool add_backlog(Outbox *outbox, json_t *out, Error *err)
{
    const char *params[] = {"1000000", NULL};
    PGresult *res = outbox_query(outbox, "backlog", outbox->sql->backlog.sql, 2, params, err);
    if (res == NULL) {
        return false;
    }
    json_object_set_new(out, "pending", json_integer(db_get_int(res, 0, 0)));
    json_object_set_new(out, "oldest_at", time_of(db_get_time(res, 0, 1)));
    json_object_set_new(out, "refused", json_integer(db_get_int(res, 0, 3)));
    PQclear(res);
    return true;
}

static bool add_claims(Outbox *outbox, json_t *out, Error *err)
{
    PGresult *res = query_named(
        outbox, "claims",
        "SELECT claim_id, relay, cardinality(row_keys), claimed_at, claimed_until < now()"
        " FROM stentor_outbox.claims WHERE mapping = $1::text ORDER BY claimed_at",
        err);
    if (res == NULL) {
        return false;
    }
    json_t *claims = json_array();
    for (int i = 0; i < db_rows(res); i++) {
        json_array_append_new(
            claims, json_pack(
                        "{s:o, s:o, s:I, s:o, s:b}", "claim_id", text_of(db_get_text(res, i, 0)),
                        "relay", text_of(db_get_text(res, i, 1)), "rows",
                        (json_int_t)db_get_int(res, i, 2), "claimed_at",
                        time_of(db_get_time(res, i, 3)), "expired", db_get_int(res, i, 4) != 0));
    }
    json_object_set_new(out, "claims", claims);
    PQclear(res);
    return true;
}

static bool add_letters(Outbox *outbox, json_t *out, Error *err)
{
    PGresult *res = query_named(
        outbox, "letters",
        "SELECT state, count(*) FROM stentor_outbox.requests WHERE mapping = $1::text"
        " GROUP BY state ORDER BY state",
        err);
    if (res == NULL) {
        return false;
    }
    json_t *letters = json_object();
    for (int i = 0; i < db_rows(res); i++) {
        const char *state = arena_cstr(outbox->cli->arena, db_get_text(res, i, 0));
        json_object_set_new(letters, state, json_integer(db_get_int(res, i, 1)));
    }
    json_object_set_new(out, "letters", letters);
    PQclear(res);
    return true;
}

static json_t *rows_of(const PGresult *res)
{
    json_t *rows = json_array();
    for (int i = 0; i < db_rows(res); i++) {
        json_array_append_new(
            rows, json_pack(
                      "{s:o, s:o, s:o}", "key", text_of(db_get_text(res, i, 0)), "reason",
                      db_is_null(res, i, 1) ? json_null() : text_of(db_get_text(res, i, 1)), "at",
                      time_of(db_get_time(res, i, 2))));
    }
    return rows;
}

static bool add_rows(
    Outbox *outbox, const char *member, const char *sql, const char *limit, json_t *out, Error *err)
{
    const char *params[] = {limit};
    PGresult *res = outbox_query(outbox, member, sql, 1, params, err);
    if (res == NULL) {
        return false;
    }
    json_object_set_new(out, member, rows_of(res));
    PQclear(res);
    return true;
}

static const char *refused_sql(Outbox *outbox)
{
    return arena_printf(
        outbox->cli->arena,
        "SELECT row_key, reason, rejected_at FROM stentor_outbox.rejected_rows WHERE mapping = "
        "'%.*s'"
        " AND NOT again ORDER BY rejected_at DESC LIMIT $1::int4",
        STR_ARG(outbox->mapping->name));
}

static bool gather(Outbox *outbox, int64_t limit, json_t *out, Error *err)
{
    const Mapping *m = outbox->mapping;
    const char *rows = arena_printf(outbox->cli->arena, "%" PRId64, limit);
    json_object_set_new(out, "mapping", text_of(m->name));
    json_object_set_new(out, "table", text_of(m->table));
    json_object_set_new(out, "publish", json_string(mapping_is_request(m) ? "request" : "event"));
    return add_backlog(outbox, out, err) && add_claims(outbox, out, err) &&
           (!mapping_is_request(m) || add_letters(outbox, out, err)) &&
           add_rows(outbox, "refused_rows", refused_sql(outbox), rows, out, err) &&
           (!mapping_is_request(m) ||
            add_rows(outbox, "failed_rows", outbox->sql->failed.sql, rows, out, err));
}

// ---- as text ----

static const char *text_at(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "-" : text;
}

static void print_rows(const json_t *out, const char *member, const char *word)
{
    size_t index;
    json_t *row;
    json_array_foreach(json_object_get(out, member), index, row)
    {
        printf(
            "  %s %s  %s  %s\n", word, text_at(row, "key"), text_at(row, "at"),
            text_at(row, "reason"));
    }
}

static void print_text(const json_t *out)
{
    size_t index;
    const char *state;
    json_t *value;
    printf(
        "%s: table %s, published as %s\n", text_at(out, "mapping"), text_at(out, "table"),
        text_at(out, "publish"));
    printf(
        "  pending %" JSON_INTEGER_FORMAT ", oldest %s\n",
        json_integer_value(json_object_get(out, "pending")), text_at(out, "oldest_at"));
    json_array_foreach(json_object_get(out, "claims"), index, value)
    {
        printf(
            "  claim of %s: %" JSON_INTEGER_FORMAT " rows since %s%s\n", text_at(value, "relay"),
            json_integer_value(json_object_get(value, "rows")), text_at(value, "claimed_at"),
            json_is_true(json_object_get(value, "expired")) ? ", expired" : "");
    }
    json_object_foreach(json_object_get(out, "letters"), state, value)
    {
        printf("  letters %s %" JSON_INTEGER_FORMAT "\n", state, json_integer_value(value));
    }
    printf(
        "  refused %" JSON_INTEGER_FORMAT "\n",
        json_integer_value(json_object_get(out, "refused")));
    print_rows(out, "refused_rows", "refused");
    print_rows(out, "failed_rows", "failed");
}

static void print_answer(const Cli *cli, const json_t *out)
{
    if (!cli->json) {
        print_text(out);
        return;
    }
    (void)json_dumpf(out, stdout, JSON_COMPACT);
    (void)putchar('\n');
}

int cmd_outbox_show(Cli *cli)
{
    Error err = {0};
    Outbox outbox;
    int64_t limit = LIST_DEFAULT;
    json_t *out = json_object();
    bool ok = args_int(&cli->args, "limit", LIST_DEFAULT, 0, LIST_MAX, &limit, &err);
    bool opened = ok && outbox_open_bound(&outbox, cli, &err);
    if (opened && gather(&outbox, limit, out, &err)) {
        print_answer(cli, out);
    }
    if (ok) {
        outbox_close(&outbox);
    }
    json_decref(out);
    return err.kind == ERROR_NONE ? EXIT_DONE : cli_fail(cli, &err);
}

// ---- retry ----

// Postgres's text form of a list: {"a","b"}.
static void add_key(Buf *out, Str key)
{
    buf_cstr(out, out->len <= 1 ? "\"" : ",\"");
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] == '"' || key.ptr[i] == '\\') {
            buf_char(out, '\\');
        }
        buf_char(out, key.ptr[i]);
    }
    buf_char(out, '"');
}

static bool add_found(Outbox *outbox, const char *what, const char *sql, Buf *keys, Error *err)
{
    const char *params[] = {"100000"};
    PGresult *res = outbox_query(outbox, what, sql, 1, params, err);
    if (res == NULL) {
        return false;
    }
    for (int i = 0; i < db_rows(res); i++) {
        add_key(keys, db_get_text(res, i, 0));
    }
    PQclear(res);
    return true;
}

static bool gather_keys(Outbox *outbox, Buf *keys, Error *err)
{
    const Args *args = &outbox->cli->args;
    for (int i = 0; i < args->word_count; i++) {
        add_key(keys, str_from(args->words[i]));
    }
    if (args_has(args, "failed") && !mapping_is_request(outbox->mapping)) {
        return error_set(err, ERROR_USAGE, "--failed is for requests; events have --all-refused");
    }
    return (!args_has(args, "all-refused") ||
            add_found(outbox, "refused", refused_sql(outbox), keys, err)) &&
           (!args_has(args, "failed") ||
            add_found(outbox, "failed", outbox->sql->failed.sql, keys, err));
}

static void print_retried(const Outbox *outbox, const PGresult *res)
{
    json_t *keys = json_array();
    for (int i = 0; i < db_rows(res); i++) {
        json_array_append_new(keys, text_of(db_get_text(res, i, 0)));
        if (!outbox->cli->json) {
            printf(STR_FMT " will be published again\n", STR_ARG(db_get_text(res, i, 0)));
        }
    }
    if (outbox->cli->json) {
        json_t *out = json_pack("{s:O}", "retried", keys);
        print_json_line(out);
    } else {
        printf("%d rows\n", db_rows(res));
    }
    json_decref(keys);
}

static bool retry(Outbox *outbox, const char *keys, int *ret_rows, Error *err)
{
    const char *params[] = {keys, args_has(&outbox->cli->args, "force") ? "true" : "false"};
    PGresult *res = outbox_query(outbox, "retry", outbox->sql->retry.sql, 2, params, err);
    if (res == NULL) {
        return false;
    }
    print_retried(outbox, res);
    *ret_rows = db_rows(res);
    PQclear(res);
    return outbox_notify(outbox, err);
}

int cmd_outbox_retry(Cli *cli)
{
    Error err = {0};
    Outbox outbox;
    int rows = 0;
    if (cli->args.word_count == 0 && !args_has(&cli->args, "all-refused") &&
        !args_has(&cli->args, "failed")) {
        return cli_fail_as(cli, EXIT_USAGE, "no row is named: give KEY, --all-refused or --failed");
    }
    Buf keys;
    buf_init(&keys, KEYS_MAX);
    buf_char(&keys, '{');
    bool ok = outbox_open_bound(&outbox, cli, &err) && gather_keys(&outbox, &keys, &err);
    buf_char(&keys, '}');
    ok = ok && retry(&outbox, buf_c(&keys), &rows, &err);
    outbox_close(&outbox);
    buf_done(&keys);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    return rows == 0 && cli->args.word_count > 0 ? EXIT_NOT_FOUND : EXIT_DONE;
}
