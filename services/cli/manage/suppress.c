// SPDX-License-Identifier: Apache-2.0
// suppress list, add, release, export: /v1/suppressions. suppress import is in
// manage/suppress_import.c.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "services/cli/api_client.h"

#define EXPORT_LINES "20000" // of one answer

// ---- what is shown ----

static const char *state_of(const json_t *entry)
{
    const char *expires = api_client_text(entry, "expires_at", NULL);
    int64_t at_us = 0;
    if (api_client_text(entry, "released_at", "")[0] != '\0') {
        return "released";
    }
    bool over =
        expires != NULL && clock_parse(str_from(expires), &at_us) && at_us <= clock_now_us();
    return over ? "expired" : "active";
}

static const char *category_of(const json_t *entry)
{
    const char *name = api_client_text(entry, "category", "");
    return name[0] == '\0' ? "any" : name;
}

static void print_line(const Cli *cli, const json_t *entry)
{
    (void)cli;
    printf(
        "%s  %-8s  %-13s  %-15s  %-8s  %.19sZ  %s  %s\n", api_client_text(entry, "id", ""),
        api_client_text(entry, "channel", ""), category_of(entry),
        api_client_text(entry, "reason", ""), state_of(entry),
        api_client_text(entry, "created_at", ""), api_client_text(entry, "created_by", ""),
        api_client_text(entry, "address", ""));
}

static void print_head(void)
{
    printf(
        "%-30s  %-8s  %-13s  %-15s  %-8s  %-20s  %s\n", "ID", "CHANNEL", "CATEGORY", "REASON",
        "STATE", "CREATED", "BY, ADDRESS");
}

static void csv_value(const char *text, bool last)
{
    bool plain = strpbrk(text, ",\"\r\n") == NULL;
    fputs(plain ? "" : "\"", stdout);
    for (const char *c = text; *c != '\0'; c++) {
        // One record is one line: a break in a note becomes a space.
        fputc(*c == '\r' || *c == '\n' ? ' ' : *c, stdout);
        if (*c == '"') {
            fputc('"', stdout);
        }
    }
    fputs(plain ? "" : "\"", stdout);
    fputc(last ? '\n' : ',', stdout);
}

static void print_csv(const json_t *entry)
{
    static const char *const columns[] = {
        "id",   "address",    "address_hash", "channel",    "category",    "reason",
        "note", "created_at", "created_by",   "expires_at", "released_at", "released_by"};
    enum { COLUMNS = sizeof columns / sizeof columns[0] };
    for (size_t i = 0; i < COLUMNS; i++) {
        bool category = strcmp(columns[i], "category") == 0;
        csv_value(
            category ? category_of(entry) : api_client_text(entry, columns[i], ""),
            i + 1 == COLUMNS);
    }
}

// ---- which ----

static const ApiFilter FILTERS[] = {
    {"channel", "channel"}, {"reason", "reason"}, {"address", "address"}};
enum { FILTER_COUNT = sizeof FILTERS / sizeof FILTERS[0] };

// "?limit=..." with what the flags narrow it to.
static const char *query_of(Cli *cli, const char *limit, bool all)
{
    const char *query = arena_printf(cli->arena, "?limit=%s%s", limit, all ? "&state=all" : "");
    return api_client_filter(cli, query, FILTERS, FILTER_COUNT);
}

int cmd_suppress_list(Cli *cli)
{
    bool all = args_has(&cli->args, "all");
    ApiList list = {
        .path = all ? "/v1/suppressions?state=all" : "/v1/suppressions",
        .filters = FILTERS,
        .filter_count = FILTER_COUNT,
        .none = all ? "suppression" : "suppression in force",
        .head = print_head,
        .print = print_line,
    };
    return api_client_print_list(cli, &list);
}

// ---- export: page by page, for the list may be long ----

static void print_page(Str text, bool csv)
{
    Str line = STR_EMPTY;
    if (!csv) {
        fwrite(text.ptr, 1, text.len, stdout);
        return;
    }
    while (str_split(&text, '\n', &line)) {
        json_t *entry = line.len == 0 ? NULL : json_loadb(line.ptr, line.len, 0, NULL);
        if (entry != NULL) {
            print_csv(entry);
        }
        json_decref(entry);
    }
}

int cmd_suppress_export(Cli *cli)
{
    Error err = {0};
    ApiAnswer answer = {0};
    const char *format = args_flag(&cli->args, "format");
    bool csv = format == NULL || strcmp(format, "csv") == 0;
    if (!csv && strcmp(format, "ndjson") != 0) {
        (void)error_set(&err, ERROR_USAGE, "--format '%s': expected csv or ndjson", format);
        return cli_fail(cli, &err);
    }
    ApiClient *client = api_client_new(cli, &err);
    const char *path = arena_printf(
        cli->arena, "/v1/suppressions/export%s",
        query_of(cli, EXPORT_LINES, args_has(&cli->args, "all")));
    const char *page = path;
    bool ok = client != NULL;
    while (ok && page != NULL) {
        ok = api_client_ask(client, "GET", page, NULL, &answer, &err);
        if (ok && page == path && csv) {
            puts("id,address,address_hash,channel,category,reason,note,created_at,created_by,"
                 "expires_at,released_at,released_by");
        }
        const char *next = api_client_answer_header(client, "Stentor-Next");
        if (ok) {
            print_page(answer.text, csv);
        }
        page = next[0] == '\0' ? NULL : arena_printf(cli->arena, "%s&cursor=%s", path, next);
    }
    api_client_free(client);
    return ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
}

// ---- add ----

static int show_entry(Cli *cli, const json_t *entry)
{
    if (cli->json) {
        api_client_dump(entry);
    } else {
        print_line(cli, entry);
    }
    return EXIT_DONE;
}

int cmd_suppress_add(Cli *cli)
{
    Error err = {0};
    const char *expires = NULL;
    if (!cli_time_from_now(cli, "expires", &expires, &err)) {
        return cli_fail(cli, &err);
    }
    json_t *body = json_pack(
        "{s:s, s:s*, s:s*, s:s*, s:s*, s:s*}", "address", args_word(&cli->args, 0), "channel",
        args_flag(&cli->args, "channel"), "category", args_flag(&cli->args, "category"), "reason",
        args_flag(&cli->args, "reason"), "note", args_flag(&cli->args, "note"), "expires_at",
        expires);
    if (body == NULL) {
        (void)error_set(&err, ERROR_USAGE, "an option is not UTF-8");
        return cli_fail(cli, &err);
    }
    return api_client_run(cli, "POST", "/v1/suppressions", body, show_entry);
}

// ---- release ----

static int release(Cli *cli, const char *id)
{
    const char *path = arena_printf(cli->arena, "/v1/suppressions/%s/release", id);
    return api_client_run(cli, "POST", path, NULL, show_entry);
}

// All the address's entries on its channel that were not released.
static int release_address(Cli *cli)
{
    json_t *list = json_array();
    json_t *entry = NULL;
    size_t i = 0;
    size_t released = 0;
    int status = api_client_list(
        cli, arena_printf(cli->arena, "/v1/suppressions%s", query_of(cli, "1000", true)),
        api_client_take, list);
    json_array_foreach(list, i, entry)
    {
        if (status == EXIT_DONE && api_client_text(entry, "released_at", "")[0] == '\0') {
            status = release(cli, api_client_text(entry, "id", ""));
            released++;
        }
    }
    json_decref(list);
    if (status == EXIT_DONE && released == 0) {
        return cli_fail_as(
            cli, EXIT_NOT_FOUND, "no suppression of this address is left to release");
    }
    return status;
}

int cmd_suppress_release(Cli *cli)
{
    const char *id = args_word(&cli->args, 0);
    bool by_address = args_has(&cli->args, "address");
    if ((id != NULL) == by_address || (id != NULL && !id_parse(str_from(id), "sup_", NULL))) {
        return cli_fail_as(
            cli, EXIT_USAGE, "expected either an id ('sup_...') or --address ADDRESS");
    }
    return by_address ? release_address(cli) : release(cli, id);
}
