// SPDX-License-Identifier: Apache-2.0
// costs set, delete, list, import-invoice: what vendors take, and what they invoiced.
#include <inttypes.h>
#include <string.h>

#include "common/archive/database.h"
#include "common/model/addresses/calling_prefix.h"
#include "common/model/currency.h"
#include "common/routing/routes.h"
#include "services/cli/cli.h"
#include "services/cli/noted.h"

enum { INVOICE_MAX = 16 * 1024 * 1024, MICRO_DIGITS = 6, INVOICE_FIELDS = 6 };
static const int64_t micros_in_one = 1000000;

static PGconn *open_database(const Cli *cli, Error *err)
{
    return cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", err)
               ? archive_connect(cli->settings.database_url, "stentor costs", err)
               : NULL;
}

// "0.0079" as 7900; a digit behind the sixth place is refused.
static bool read_amount(Str text, int64_t *ret)
{
    Str whole = text, part = STR_EMPTY;
    ptrdiff_t point = str_find(text, '.');
    int64_t units, micros = 0;
    if (point >= 0) {
        whole = str_slice(text, 0, (size_t)point);
        part = str_slice(text, (size_t)point + 1, text.len);
    }
    char digits[MICRO_DIGITS + 1] = "000000";
    if (part.len > MICRO_DIGITS || (point >= 0 && part.len == 0) || whole.len == 0) {
        return false;
    }
    memcpy(digits, part.ptr, part.len);
    bool negative = whole.ptr[0] == '-';
    if (!str_to_i64(whole, &units) || !ascii_is_digit(digits[0]) ||
        !str_to_i64(str_from(digits), &micros) || units > INT64_MAX / micros_in_one - 1 ||
        units < INT64_MIN / micros_in_one + 1) {
        return false;
    }
    *ret = units * micros_in_one + (negative ? -micros : micros);
    return true;
}

// ---- prices ----

static bool is_prefix(const char *text)
{
    size_t digits = strspn(text + (text[0] == '+'), "0123456789");
    return text[0] == '+' && text[1] != '0' && digits >= 1 && digits <= CALLING_PREFIX_MAX &&
           text[1 + digits] == '\0';
}

static bool is_unit(const char *text)
{
    static const char *const units[] = {"message", "segment", "minute", "conversation"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text, units[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool check_vendor(const char *channel_word, const char *vendor, Error *err)
{
    Channel channel = CHANNEL_NONE;
    if (!channel_from_name(str_from(channel_word), &channel)) {
        return error_set(err, ERROR_USAGE, "'%.32s' is no channel: " CHANNEL_NAMES, channel_word);
    }
    if (!routing_is_vendor(str_from(vendor))) {
        return error_set(
            err, ERROR_USAGE, "'%.64s' is no vendor; 'stentor channel list' names them", vendor);
    }
    Channel own = routing_vendor_channel(str_from(vendor));
    return own == channel || own == CHANNEL_NONE ||
           error_set(
               err, ERROR_USAGE, "%s is of channel %s, not of %s", vendor, channel_name(own),
               channel_word);
}

static bool check_price(const Cli *cli, int64_t *ret_micros, Error *err)
{
    const char *price = args_flag(&cli->args, "price");
    const char *country = args_flag(&cli->args, "country");
    const char *currency = args_flag(&cli->args, "currency");
    const char *unit = args_flag(&cli->args, "unit");
    if (!read_amount(str_from(price), ret_micros) || *ret_micros < 0) {
        return error_set(err, ERROR_USAGE, "--price '%.40s' is no amount such as 0.0079", price);
    }
    if (!currency_is_code(str_from(currency))) {
        return error_set(
            err, ERROR_USAGE, "--currency '%.16s' is no code of three capitals such as EUR",
            currency);
    }
    if (unit != NULL && !is_unit(unit)) {
        return error_set(
            err, ERROR_USAGE, "--unit '%.16s' is none of message, segment, minute, conversation",
            unit);
    }
    if (country != NULL && !is_prefix(country)) {
        return error_set(
            err, ERROR_USAGE,
            "--country '%.16s' is not what numbers there begin with, such as +43 or +1242",
            country);
    }
    return check_vendor(args_word(&cli->args, 0), args_word(&cli->args, 1), err);
}

static bool note(Cli *cli, const char *action, Error *err)
{
    const char *target =
        arena_printf(cli->arena, "%.32s/%.64s", args_word(&cli->args, 0), args_word(&cli->args, 1));
    return cli_audit_write(cli, NULL, action, target, err);
}

int cmd_costs_set(Cli *cli)
{
    static const char sql[] =
        "INSERT INTO archive.unit_costs (channel, vendor, country, tenant, valid_from, unit, "
        "micros, currency, category)"
        " VALUES ($1, $2, coalesce($3, '*'), coalesce($4, '*'), coalesce($5::timestamptz, "
        "date_trunc('day', now())), coalesce($6, 'message'),"
        " $7::bigint, $8, coalesce($9, '*')) ON CONFLICT (channel, vendor, country, category, "
        "tenant, valid_from)"
        " DO UPDATE SET unit = EXCLUDED.unit, micros = EXCLUDED.micros, currency = "
        "EXCLUDED.currency, set_at = now()"
        " RETURNING valid_from";
    Error err = {0};
    int64_t micros = 0;
    if (!check_price(cli, &micros, &err)) {
        return cli_fail(cli, &err);
    }
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, micros);
    const char *const params[] = {
        args_word(&cli->args, 0),
        args_word(&cli->args, 1),
        args_flag(&cli->args, "country"),
        args_flag(&cli->args, "tenant"),
        args_flag(&cli->args, "from"),
        args_flag(&cli->args, "unit"),
        number,
        args_flag(&cli->args, "currency"),
        args_flag(&cli->args, "category")};
    PGconn *pg = open_database(cli, &err);
    PGresult *rows = pg != NULL && note(cli, "costs.set", &err)
                         ? archive_ask(pg, "costs", sql, params, 9, &err)
                         : NULL;
    if (rows != NULL) {
        const char *const pairs[] = {
            "price", args_flag(&cli->args, "price"), "valid from",
            arena_printf(cli->arena, "%s", archive_text(rows, 0, 0)), NULL};
        print_pairs(cli, pairs);
    }
    bool ok = rows != NULL;
    PQclear(rows);
    PQfinish(pg);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}

int cmd_costs_delete(Cli *cli)
{
    static const char sql[] =
        "DELETE FROM archive.unit_costs WHERE channel = $1 AND vendor = $2"
        " AND country = coalesce($3, '*') AND category = coalesce($4, '*')"
        " AND tenant = coalesce($5, '*') AND valid_from = $6::timestamptz RETURNING valid_from";
    Error err = {0};
    const char *const params[] = {
        args_word(&cli->args, 0),         args_word(&cli->args, 1),
        args_flag(&cli->args, "country"), args_flag(&cli->args, "category"),
        args_flag(&cli->args, "tenant"),  args_flag(&cli->args, "from")};
    PGconn *pg = open_database(cli, &err);
    PGresult *rows = pg != NULL && note(cli, "costs.deleted", &err)
                         ? archive_ask(pg, "costs", sql, params, 6, &err)
                         : NULL;
    int found = rows != NULL ? PQntuples(rows) : 0;
    bool ok = rows != NULL;
    PQclear(rows);
    PQfinish(pg);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    if (found == 0) {
        return cli_fail_as(
            cli, EXIT_NOT_FOUND, "there is no such price (HINT: 'stentor costs list' shows them)");
    }
    print_pairs(cli, (const char *const[]){"deleted", "yes", NULL});
    return EXIT_DONE;
}

static void print_cost(const Cli *cli, const PGresult *rows, int row, json_t *list)
{
    static const char *const names[] = {"channel", "vendor", "country",  "tenant",  "valid_from",
                                        "unit",    "micros", "currency", "category"};
    if (cli->json) {
        json_t *one = json_object();
        for (int i = 0; i < 9; i++) {
            json_object_set_new(
                one, names[i],
                i == 6 ? json_integer(archive_number(rows, row, i))
                       : json_string(archive_text(rows, row, i)));
        }
        json_array_append_new(list, one);
        return;
    }
    int64_t micros = archive_number(rows, row, 6);
    printf(
        "%-10s %-20s %-5s %-14s %-20s %s  %" PRId64 ".%06" PRId64 " %s a %s\n",
        archive_text(rows, row, 0), archive_text(rows, row, 1), archive_text(rows, row, 2),
        archive_text(rows, row, 8), archive_text(rows, row, 3), archive_text(rows, row, 4),
        micros / micros_in_one, micros % micros_in_one, archive_text(rows, row, 7),
        archive_text(rows, row, 5));
}

int cmd_costs_list(Cli *cli)
{
    static const char sql[] =
        "SELECT channel, vendor, country, tenant, to_char(valid_from, "
        "'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), unit, micros, currency, category"
        " FROM archive.unit_costs ORDER BY channel, vendor, country, category, tenant, valid_from";
    Error err = {0};
    PGconn *pg = open_database(cli, &err);
    PGresult *rows = pg != NULL ? archive_ask(pg, "costs", sql, NULL, 0, &err) : NULL;
    if (rows == NULL) {
        PQfinish(pg);
        return cli_fail(cli, &err);
    }
    json_t *list = json_array();
    for (int row = 0; row < PQntuples(rows); row++) {
        print_cost(cli, rows, row, list);
    }
    if (cli->json) {
        print_json_line(json_incref(list));
    } else if (PQntuples(rows) == 0) {
        cli_note_empty(cli, "prices");
    }
    json_decref(list);
    PQclear(rows);
    PQfinish(pg);
    return EXIT_DONE;
}

// ---- invoices ----

static bool import_line(PGconn *pg, Arena *arena, Str line, int number, Error *err)
{
    static const char sql[] = "INSERT INTO archive.invoiced (day, channel, vendor, tenant, micros, "
                              "currency) VALUES ($1::date, $2, $3, $4, $5::bigint, $6)"
                              " ON CONFLICT (day, channel, vendor, tenant)"
                              " DO UPDATE SET micros = EXCLUDED.micros, currency = "
                              "EXCLUDED.currency, imported_at = now()";
    const char *fields[INVOICE_FIELDS];
    Str rest = line, field;
    int count = 0;
    int64_t micros;
    while (str_split(&rest, ',', &field)) {
        if (count < INVOICE_FIELDS) {
            field = str_trim(field);
            fields[count] = arena_printf(arena, STR_FMT, STR_ARG(field));
        }
        count++;
    }
    if (count != INVOICE_FIELDS) {
        return error_set(
            err, ERROR_USAGE, "line %d: %d fields, not %d", number, count, INVOICE_FIELDS);
    }
    if (!read_amount(str_from(fields[4]), &micros)) {
        return error_set(err, ERROR_USAGE, "line %d: '%.40s' is no amount", number, fields[4]);
    }
    fields[4] = arena_printf(arena, "%" PRId64, micros);
    return archive_do(pg, "invoice", sql, fields, INVOICE_FIELDS, err) ||
           error_wrap(err, "line %d", number);
}

static bool import_lines(PGconn *pg, Arena *arena, Str text, int *ret_lines, Error *err)
{
    Str rest = text, line;
    int number = 0;
    *ret_lines = 0;
    while (str_split(&rest, '\n', &line)) {
        line = str_trim(line);
        if (++number == 1) {
            if (!str_eq(line, STR("day,channel,vendor,tenant,amount,currency"))) {
                return error_set(
                    err, ERROR_USAGE,
                    "the first line is not 'day,channel,vendor,tenant,amount,currency'");
            }
        } else if (line.len > 0) {
            if (!import_line(pg, arena, line, number, err)) {
                return false;
            }
            ++*ret_lines;
        }
    }
    return number > 0 || error_set(err, ERROR_USAGE, "the file is empty");
}

int cmd_costs_import_invoice(Cli *cli)
{
    Error err = {0};
    Str text;
    int lines = 0;
    const char *path = args_word(&cli->args, 0);
    PGconn *pg = NULL;
    bool ok = cli_read_file(cli, path, INVOICE_MAX, &text, &err) &&
              (pg = open_database(cli, &err)) != NULL &&
              cli_audit_write(cli, NULL, "costs.invoice_imported", "invoice", &err) &&
              archive_begin(pg, &err);
    if (ok && !import_lines(pg, cli->arena, text, &lines, &err)) {
        ok = error_wrap(&err, "%s: nothing was imported", path);
    }
    ok = ok && archive_commit(pg, &err);
    PQfinish(pg);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    const char *const pairs[] = {"imported", arena_printf(cli->arena, "%d", lines), NULL};
    print_pairs(cli, pairs);
    return EXIT_DONE;
}
