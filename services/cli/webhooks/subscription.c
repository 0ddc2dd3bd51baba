// SPDX-License-Identifier: Apache-2.0
// webhook create, put, list, show, enable, disable, rotate, delete, test: /v1/subscriptions.
#include <jansson.h>

#include "common/base/span.h"
#include "services/cli/api_client.h"

static const char *path_of(Cli *cli, const char *tail)
{
    const char *id = api_client_escape(cli, args_word(&cli->args, 0));
    return arena_printf(cli->arena, "/v1/subscriptions/%s%s", id, tail);
}

// As api_client_run, under the --idempotency-key.
static int run_once(Cli *cli, const char *path, json_t *body)
{
    Error err = {0};
    ApiAnswer answer = {0};
    const char *key = args_flag(&cli->args, "idempotency-key");
    ApiClient *client = api_client_new(cli, &err);
    if (client == NULL) {
        json_decref(body);
        return cli_fail(cli, &err);
    }
    if (key != NULL) {
        api_client_header(client, arena_printf(cli->arena, "Idempotency-Key: %s", key));
    }
    bool ok = api_client_ask(client, "POST", path, body, &answer, &err);
    int status = ok ? api_client_show(cli, answer.json) : api_client_fail(cli, &answer, &err);
    api_client_free(client);
    return status;
}

// ---- create, put ----

static bool set_text(Cli *cli, json_t *body, const char *flag, const char *field, Error *err)
{
    const char *value = args_flag(&cli->args, flag);
    return value == NULL || json_object_set_new(body, field, json_string(value)) == 0 ||
           error_set(err, ERROR_USAGE, "--%s is not UTF-8", flag);
}

static bool set_list(Cli *cli, json_t *body, const char *flag, const char *field, Error *err)
{
    json_t *list = json_array();
    const char *text = NULL;
    bool ok = true;
    for (int i = 0; ok && (text = args_each(&cli->args, flag, &i)) != NULL;) {
        ok = json_array_append_new(list, json_string(text)) == 0 ||
             error_set(err, ERROR_USAGE, "--%s is not UTF-8", flag);
    }
    (void)json_object_set(body, field, list);
    json_decref(list);
    return ok;
}

static bool set_number(Cli *cli, json_t *body, const char *flag, const char *field, Error *err)
{
    int64_t value = 0;
    if (!args_int(&cli->args, flag, 0, INT32_MIN, INT32_MAX, &value, err)) {
        return false;
    }
    if (args_has(&cli->args, flag)) { // the API knows the limits
        (void)json_object_set_new(body, field, json_integer(value));
    }
    return true;
}

// NULL: a flag is wrong.
static json_t *read_flags(Cli *cli, Error *err)
{
    json_t *body = json_pack("{s:b}", "in_order", args_has(&cli->args, "in-order"));
    bool ok = set_text(cli, body, "name", "name", err) &&
              set_text(cli, body, "url", "target_url", err) &&
              set_list(cli, body, "event", "events", err) &&
              set_list(cli, body, "channel", "channels", err) &&
              set_list(cli, body, "category", "categories", err) &&
              set_number(cli, body, "rate-per-s", "rate_per_s", err) &&
              set_number(cli, body, "in-flight", "in_flight", err) &&
              set_number(cli, body, "disable-after", "disable_after", err);
    if (!ok) {
        json_decref(body);
    }
    return ok ? body : NULL;
}

int cmd_webhook_create(Cli *cli)
{
    Error err = {0};
    json_t *body = read_flags(cli, &err);
    return body == NULL ? cli_fail(cli, &err) : run_once(cli, "/v1/subscriptions", body);
}

int cmd_webhook_put(Cli *cli)
{
    Error err = {0};
    json_t *body = read_flags(cli, &err);
    return body == NULL ? cli_fail(cli, &err)
                        : api_client_run(cli, "PUT", path_of(cli, ""), body, api_client_show);
}

// ---- show, list, delete ----

int cmd_webhook_show(Cli *cli)
{
    return api_client_run(cli, "GET", path_of(cli, ""), NULL, api_client_show);
}

static void print_row(const char *id, const char *state, const char *name, const char *url)
{
    printf("%-30s  %-8s  %-24s  %s\n", id, state, name, url);
}

int cmd_webhook_list(Cli *cli)
{
    json_t *list = json_array();
    json_t *item = NULL;
    size_t i = 0;
    int status = api_client_list(cli, "/v1/subscriptions", api_client_take, list);
    if (status == EXIT_DONE && cli->json) {
        api_client_dump(list);
    } else if (status == EXIT_DONE && json_array_size(list) == 0) {
        cli_note_empty(cli, "webhook (HINT: stentor webhook create --name NAME --url https://...)");
    } else if (status == EXIT_DONE) {
        print_row("ID", "STATE", "NAME", "URL");
    }
    json_array_foreach(list, i, item)
    {
        if (status == EXIT_DONE && !cli->json) {
            print_row(
                api_client_text(item, "id", ""), api_client_text(item, "state", ""),
                api_client_text(item, "name", ""), api_client_text(item, "target_url", ""));
        }
    }
    json_decref(list);
    return status;
}

static int show_deleted(Cli *cli, const json_t *answer)
{
    (void)answer;
    print_pairs(
        cli, (const char *const[]){
                 "webhook", args_word(&cli->args, 0), "state", "deleted: it gets nothing any more",
                 NULL});
    return EXIT_DONE;
}

int cmd_webhook_delete(Cli *cli)
{
    return api_client_run(cli, "DELETE", path_of(cli, ""), NULL, show_deleted);
}

// ---- states ----

int cmd_webhook_enable(Cli *cli)
{
    return api_client_run(cli, "POST", path_of(cli, "/enable"), NULL, api_client_show);
}

int cmd_webhook_disable(Cli *cli)
{
    Error err = {0};
    json_t *body = json_object();
    if (!set_text(cli, body, "reason", "reason", &err)) {
        json_decref(body);
        return cli_fail(cli, &err);
    }
    return api_client_run(cli, "POST", path_of(cli, "/disable"), body, api_client_show);
}

int cmd_webhook_rotate(Cli *cli)
{
    Error err = {0};
    const char *grace = args_flag(&cli->args, "grace");
    int64_t grace_us = 0;
    json_t *body = json_object();
    if (grace != NULL && !span_parse(str_from(grace), &grace_us)) {
        json_decref(body);
        (void)error_set(
            &err, ERROR_USAGE, "--grace '%s': expected how long (0s, 30m, 24h, 7d)", grace);
        return cli_fail(cli, &err);
    }
    if (grace != NULL) {
        (void)json_object_set_new(body, "overlap_s", json_integer(grace_us / 1000000));
    }
    return run_once(cli, path_of(cli, "/rotate-secret"), body);
}
