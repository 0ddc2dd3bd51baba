// SPDX-License-Identifier: Apache-2.0
// webhook deliveries, delivery, replay, recover, test: what was posted to a tenant's webhooks, and
// posting it again.
#include <jansson.h>

#include "common/base/clock.h"
#include "services/cli/api_client.h"

static const char *path_of(Cli *cli, const char *group, const char *tail)
{
    const char *id = api_client_escape(cli, args_word(&cli->args, 0));
    return arena_printf(cli->arena, "/v1/%s/%s%s", group, id, tail);
}

// ---- deliveries ----

static void print_row(const Cli *cli, const json_t *item)
{
    (void)cli;
    const json_t *last = json_object_get(item, "last_attempt");
    const json_t *code = json_object_get(last, "status_code");
    char status[16] = "-";
    if (code != NULL) {
        (void)snprintf(status, sizeof status, "%" JSON_INTEGER_FORMAT, json_integer_value(code));
    }
    printf(
        "%-26s  %-9s  %-24s  %-20s  %8" JSON_INTEGER_FORMAT "  %-6s  %s\n",
        api_client_text(item, "id", ""), api_client_text(item, "state", ""),
        api_client_text(item, "event", ""), api_client_text(item, "created_at", ""),
        json_integer_value(json_object_get(item, "attempts")), status,
        api_client_text(last, "error", "-"));
}

static void print_head(void)
{
    printf(
        "%-26s  %-9s  %-24s  %-20s  %s  %s  %s\n", "ID", "STATE", "EVENT", "CREATED", "ATTEMPTS",
        "STATUS", "ERROR");
}

int cmd_webhook_deliveries(Cli *cli)
{
    static const ApiFilter filters[] = {
        {"state", "state"}, {"event", "event"}, {"notification", "notification_id"}};
    ApiList list = {
        .path = path_of(cli, "subscriptions", "/deliveries"),
        .filters = filters,
        .filter_count = sizeof filters / sizeof filters[0],
        .none = "delivery",
        .head = print_head,
        .print = print_row,
    };
    return api_client_print_list(cli, &list);
}

int cmd_webhook_delivery(Cli *cli)
{
    return api_client_run(cli, "GET", path_of(cli, "deliveries", ""), NULL, api_client_show);
}

// ---- again ----

int cmd_webhook_replay(Cli *cli)
{
    return api_client_run(
        cli, "POST", path_of(cli, "deliveries", "/replay"), NULL, api_client_show);
}

int cmd_webhook_test(Cli *cli)
{
    return api_client_run(
        cli, "POST", path_of(cli, "subscriptions", "/test"), NULL, api_client_show);
}

// One call after another, as the API says how far it came.
static bool recover_all(
    Cli *cli, ApiClient *client, int64_t since_us, json_int_t *ret_count, ApiAnswer *answer,
    Error *err)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(since_us, at);
    const char *since = arena_cstr(cli->arena, str_from(at));
    while (since != NULL) {
        json_t *body = json_pack("{s:s}", "since", since);
        const char *path = path_of(cli, "subscriptions", "/recover");
        if (!api_client_ask(client, "POST", path, body, answer, err)) {
            return false;
        }
        *ret_count += json_integer_value(json_object_get(answer->json, "replayed"));
        const char *next = api_client_text(answer->json, "next_since", NULL);
        since = next != NULL ? arena_cstr(cli->arena, str_from(next)) : NULL;
    }
    return true;
}

int cmd_webhook_recover(Cli *cli)
{
    Error err = {0};
    ApiAnswer answer = {0};
    int64_t since_us = 0;
    json_int_t count = 0;
    if (!args_time(&cli->args, "since", TIME_BEFORE_NOW, clock_now_us(), &since_us, &err)) {
        return cli_fail(cli, &err);
    }
    ApiClient *client = api_client_new(cli, &err);
    bool ok = client != NULL && recover_all(cli, client, since_us, &count, &answer, &err);
    int status = ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
    api_client_free(client);
    if (ok && cli->json) {
        print_json_line(json_pack("{s:I}", "replayed", count));
    } else if (ok) {
        printf("replayed  %" JSON_INTEGER_FORMAT "\n", count);
    }
    return status;
}
