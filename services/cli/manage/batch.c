// SPDX-License-Identifier: Apache-2.0
// batch create, start, schedule, pause, resume, cancel, show, list: the API's /v1/batches.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/model/status.h"
#include "services/cli/api_client.h"
#include "services/cli/manage/send.h"

enum {
    DATA_MAX = 64 * 1024,
    WATCH_US = 1000000,
    WATCH_SHARE = 4, // a watcher asks at most for a fifth of the time
};

// ---- printing ----

static const char *text_of(const json_t *batch, const char *name)
{
    const char *text = json_string_value(json_object_get(batch, name));
    return text != NULL ? text : "";
}

static int64_t number_of(const json_t *batch, const char *name)
{
    return json_integer_value(json_object_get(batch, name));
}

static void print_line(const json_t *batch)
{
    int64_t members = number_of(batch, "members");
    int64_t accepted = number_of(batch, "accepted");
    bool chooses = json_is_false(json_object_get(batch, "chosen"));
    printf(
        "%s  %s%s  %" PRId64 " of %s%" PRId64 " accepted", text_of(batch, "id"),
        text_of(batch, "status"), json_is_true(json_object_get(batch, "paused")) ? " (paused)" : "",
        accepted, chooses ? "at least " : "", members);
    if (members > 0) {
        printf(" (%d %%)", (int)(100 * accepted / members));
    }
    if (number_of(batch, "rate_per_second") > 0) {
        printf(", at most %" PRId64 "/s", number_of(batch, "rate_per_second"));
    }
    if (json_object_get(batch, "eta_seconds") != NULL) {
        printf(", %" PRId64 " s left", number_of(batch, "eta_seconds"));
    }
}

static void print_totals(const json_t *batch)
{
    const char *status = NULL;
    json_t *count = NULL;
    const char *before = "  ";
    json_object_foreach(json_object_get(batch, "totals"), status, count)
    {
        printf("%s%s %lld", before, status, (long long)json_integer_value(count));
        before = ", ";
    }
}

static void print_batch(const Cli *cli, const json_t *batch)
{
    if (cli->json) {
        api_client_dump(batch);
        return;
    }
    print_line(batch);
    print_totals(batch);
    printf("  %s\n", text_of(batch, "name"));
    if (text_of(batch, "reason")[0] != '\0') {
        printf("  %s\n", text_of(batch, "reason"));
    }
}

// ---- create ----

static bool add_texts(Cli *cli, json_t *request, Error *err)
{
    // clang-format off
    static const char *const fields[][2] = { // flag, field of the API
        {"name", "name"}, {"template", "template"}, {"template-version", "template_version"}, {"category", "category"},
        {"channel", "channel"}, {"locale", "locale"}, {"priority", "priority"},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *value = args_flag(&cli->args, fields[i][0]);
        if (value != NULL && json_object_set_new(request, fields[i][1], json_string(value)) != 0) {
            return error_set(err, ERROR_USAGE, "--%s is not UTF-8", fields[i][0]);
        }
    }
    const char *at = NULL;
    if (!cli_time_from_now(cli, "at", &at, err)) {
        return false;
    }
    if (at != NULL) {
        (void)json_object_set_new(request, "scheduled_for", json_string(at));
    }
    return true;
}

static bool add_variables(Cli *cli, json_t *request, Error *err)
{
    const char *path = args_flag(&cli->args, "data");
    Str text;
    if (path == NULL) {
        return true;
    }
    if (!cli_read_file(cli, path, DATA_MAX, &text, err)) {
        return error_wrap(err, "--data");
    }
    json_t *data = json_loadb(text.ptr, text.len, 0, NULL);
    if (!json_is_object(data)) {
        json_decref(data);
        return error_set(err, ERROR_USAGE, "--data '%s' is not a JSON object", path);
    }
    json_object_set_new(request, "variables", data);
    return true;
}

// ---- whom it is for ----

// --label is all of them, the others one of those given.
static bool add_condition(Cli *cli, json_t *query, const char *flag, const char *name, Error *err)
{
    json_t *list = json_array();
    const char *word = NULL;
    bool ok = true;
    for (int i = 0; ok && (word = args_each(&cli->args, flag, &i)) != NULL;) {
        ok = json_array_append_new(list, json_string(word)) == 0 ||
             error_set(err, ERROR_USAGE, "--%s is not UTF-8", flag);
    }
    if (json_array_size(list) > 0) {
        (void)json_object_set(query, name, list);
    }
    json_decref(list);
    return ok;
}

static bool read_query(Cli *cli, json_t **ret, Error *err)
{
    const char *path = args_flag(&cli->args, "query");
    json_error_t where;
    Str text = STR_EMPTY;
    if (!cli_read_file(cli, path, DATA_MAX, &text, err)) {
        return error_wrap(err, "--query");
    }
    *ret = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &where);
    return *ret != NULL || error_set(
                               err, ERROR_USAGE, "--query '%s' line %d, column %d: %s", path,
                               where.line, where.column, where.text);
}

static bool add_query(Cli *cli, json_t *request, Error *err)
{
    json_t *query = NULL;
    bool ok = true;
    if (args_has(&cli->args, "query")) {
        ok = read_query(cli, &query, err);
    } else {
        query = json_object();
        ok = add_condition(cli, query, "label", "labels", err) &&
             add_condition(cli, query, "recipient-locale", "locales", err) &&
             add_condition(cli, query, "identity-type", "identity_types", err);
        if (args_has(&cli->args, "consented")) {
            (void)json_object_set_new(query, "consent", json_true());
        }
    }
    bool said = args_has(&cli->args, "query") || json_object_size(query) > 0;
    if (ok && said) {
        (void)json_object_set(request, "recipient_query", query);
    }
    if (ok && args_has(&cli->args, "dry-run")) {
        (void)json_object_set_new(request, "dry_run", json_true());
    }
    json_decref(query);
    return ok;
}

static void print_count(const json_t *answer)
{
    bool complete = json_is_true(json_object_get(answer, "complete"));
    printf(
        "%s%" PRId64 " recipients match%s\n", complete ? "" : "at least ",
        number_of(answer, "matched"), complete ? "" : ": there was no time to look at all of them");
}

static int post_and_print(Cli *cli, const char *path, Str body)
{
    Error err = {0};
    ApiAnswer answer = {0};
    ApiClient *client = api_client_new(cli, &err);
    bool ok = client != NULL && api_client_call(client, "POST", path, body, &answer, &err) &&
              (answer.status / 100 == 2 || api_client_explain(client, &answer, &err));
    int status = ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
    bool counted = ok && json_object_get(answer.json, "dry_run") != NULL;
    if (counted && !cli->json) {
        print_count(answer.json);
    } else if (ok) {
        print_batch(cli, answer.json);
    }
    api_client_free(client);
    return status;
}

int cmd_batch_create(Cli *cli)
{
    Error err = {0};
    int64_t rate = 0;
    json_t *request = json_object();
    bool ok = args_int(&cli->args, "rate", 0, 0, 100000, &rate, &err) &&
              add_texts(cli, request, &err) && send_add_consent(cli, request, &err) &&
              add_variables(cli, request, &err) && add_query(cli, request, &err);
    if (ok && rate > 0) {
        json_object_set_new(request, "rate_per_second", json_integer(rate));
    }
    char *body = ok ? json_dumps(request, JSON_COMPACT) : NULL;
    int status = ok ? post_and_print(cli, "/v1/batches", str_from(body)) : cli_fail(cli, &err);
    free(body);
    json_decref(request);
    return status;
}

// ---- commands ----

static int move(Cli *cli, const char *word, Str body)
{
    const char *path =
        arena_printf(cli->arena, "/v1/batches/%s/%s", args_word(&cli->args, 0), word);
    return post_and_print(cli, path, body);
}

int cmd_batch_start(Cli *cli)
{
    return move(cli, "start", STR_EMPTY);
}

int cmd_batch_pause(Cli *cli)
{
    return move(cli, "pause", STR_EMPTY);
}

int cmd_batch_resume(Cli *cli)
{
    return move(cli, "resume", STR_EMPTY);
}

int cmd_batch_cancel(Cli *cli)
{
    return move(cli, "cancel", STR_EMPTY);
}

int cmd_batch_schedule(Cli *cli)
{
    Error err = {0};
    const char *at = NULL;
    if (!cli_time_from_now(cli, "at", &at, &err)) {
        return cli_fail(cli, &err);
    }
    if (at == NULL) {
        return move(cli, "schedule", STR_EMPTY);
    }
    Buf body;
    buf_init(&body, 1024);
    buf_cstr(&body, "{\"scheduled_for\":");
    buf_json(&body, str_from(at));
    buf_char(&body, '}');
    int status = move(cli, "schedule", buf_view(&body));
    buf_done(&body);
    return status;
}

// ---- show, list ----

// Nothing more will change: it is over, and everything that it made has its end or was sent.
static bool is_settled(const json_t *batch)
{
    const char *status = text_of(batch, "status");
    bool over = strcmp(status, "completed") == 0 || strcmp(status, "cancelled") == 0 ||
                strcmp(status, "failed") == 0;
    int64_t settled = 0;
    const char *name = NULL;
    json_t *count = NULL;
    json_object_foreach(json_object_get(batch, "totals"), name, count)
    {
        Status reached = STATUS_NONE;
        bool known = status_from_name(str_from(name), &reached);
        settled += known && status_rank(reached) >= status_rank(STATUS_SENT)
                       ? json_integer_value(count)
                       : 0;
    }
    return over && settled >= number_of(batch, "accepted");
}

static int show(Cli *cli, ApiClient *client, const char *path, bool watch)
{
    for (;;) {
        Error err = {0};
        ApiAnswer answer = {0};
        int64_t began_us = clock_mono_us();
        if (!api_client_ask(client, "GET", path, NULL, &answer, &err)) {
            return api_client_fail(cli, &answer, &err);
        }
        print_batch(cli, answer.json);
        (void)fflush(stdout);
        if (!watch || is_settled(answer.json)) {
            return EXIT_DONE;
        }
        int64_t took_us = clock_mono_us() - began_us;
        int64_t us = took_us * WATCH_SHARE > WATCH_US ? took_us * WATCH_SHARE : WATCH_US;
        struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
        (void)nanosleep(&pause, NULL);
    }
}

int cmd_batch_show(Cli *cli)
{
    Error err = {0};
    const char *path = arena_printf(cli->arena, "/v1/batches/%s", args_word(&cli->args, 0));
    ApiClient *client = api_client_new(cli, &err);
    int status = client == NULL ? cli_fail(cli, &err)
                                : show(cli, client, path, args_has(&cli->args, "watch"));
    api_client_free(client);
    return status;
}

int cmd_batch_list(Cli *cli)
{
    static const ApiFilter filters[] = {{"status", "status"}};
    ApiList list = {
        .path = "/v1/batches",
        .filters = filters,
        .filter_count = 1,
        .none = args_has(&cli->args, "status") ? "batch with this status" : "batch",
        .print = print_batch,
    };
    return api_client_print_list(cli, &list);
}
