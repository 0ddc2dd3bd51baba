// SPDX-License-Identifier: Apache-2.0
// scheduled list, cancel: /v1/scheduled and /v1/notifications/{id}/cancel.
#include <inttypes.h>
#include <jansson.h>

#include "services/cli/api_client.h"

enum { LIST_LIMIT = 100, PAGE_MAX = 1000 };

// ---- scheduled list ----

static void print_row(const json_t *item)
{
    const char *trigger = api_client_text(item, "trigger", "");
    const char *subject = api_client_text(item, "subject", "");
    printf(
        "%s  %s  %-8s  %-8s  %-20s  %s%s%s\n", api_client_text(item, "id", ""),
        api_client_text(item, "due_at", ""), api_client_text(item, "reason", ""),
        api_client_text(item, "channel", "-"), api_client_text(item, "template", "-"), trigger,
        subject[0] != '\0' ? "/" : "", subject);
}

static bool take_item(void *ctx, const json_t *item)
{
    (void)json_array_append(ctx, (json_t *)(uintptr_t)item);
    return true;
}

// clang-format off
static const struct { const char *flag, *parameter; } FILTERS[] = {
    {"reason", "reason"}, {"recipient", "recipient_id"}, {"trigger", "trigger"}, {"subject", "subject"}, {"before", "due_before"},
};
// clang-format on

static const char *list_path(Cli *cli, int64_t limit)
{
    int64_t page = limit == 0 || limit > PAGE_MAX ? PAGE_MAX : limit;
    const char *path = arena_printf(cli->arena, "/v1/scheduled?limit=%" PRId64, page);
    for (size_t i = 0; i < sizeof FILTERS / sizeof FILTERS[0]; i++) {
        const char *value = args_flag(&cli->args, FILTERS[i].flag);
        if (value != NULL) {
            path = arena_printf(
                cli->arena, "%s&%s=%s", path, FILTERS[i].parameter, api_client_escape(cli, value));
        }
    }
    return path;
}

static void print_list(Cli *cli, json_t *list)
{
    json_t *item = NULL;
    size_t i = 0;
    if (cli->json) {
        api_client_dump(list);
    } else if (json_array_size(list) == 0) {
        cli_note_empty(cli, "notification that waits for a time");
    } else {
        json_array_foreach(list, i, item)
        {
            print_row(item);
        }
    }
}

int cmd_scheduled_list(Cli *cli)
{
    Error err = {0};
    ApiAnswer answer = {0};
    int64_t limit = 0;
    if (!args_int(&cli->args, "limit", LIST_LIMIT, 0, INT64_MAX, &limit, &err)) {
        return cli_fail(cli, &err);
    }
    json_t *list = json_array();
    ApiClient *client = api_client_new(cli, &err);
    bool ok = client != NULL &&
              api_client_each(client, list_path(cli, limit), limit, take_item, list, &answer, &err);
    int status = ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
    api_client_free(client);
    if (ok) {
        print_list(cli, list);
    }
    json_decref(list);
    return status;
}

// ---- cancel ----

int cmd_cancel(Cli *cli)
{
    const char *id = api_client_escape(cli, args_word(&cli->args, 0));
    const char *path = arena_printf(cli->arena, "/v1/notifications/%s/cancel", id);
    return api_client_run(cli, "POST", path, NULL, api_client_show);
}
