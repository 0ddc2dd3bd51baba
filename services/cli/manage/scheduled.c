// SPDX-License-Identifier: Apache-2.0
// scheduled list, cancel: /v1/scheduled and /v1/notifications/{id}/cancel.
#include <jansson.h>

#include "services/cli/api_client.h"

// ---- scheduled list ----

static void print_row(const Cli *cli, const json_t *item)
{
    (void)cli;
    const char *trigger = api_client_text(item, "trigger", "");
    const char *subject = api_client_text(item, "subject", "");
    printf(
        "%s  %s  %-8s  %-8s  %-20s  %s%s%s\n", api_client_text(item, "id", ""),
        api_client_text(item, "due_at", ""), api_client_text(item, "reason", ""),
        api_client_text(item, "channel", "-"), api_client_text(item, "template", "-"), trigger,
        subject[0] != '\0' ? "/" : "", subject);
}

int cmd_scheduled_list(Cli *cli)
{
    static const ApiFilter filters[] = {
        {"reason", "reason"},
        {"recipient", "recipient_id"},
        {"trigger", "trigger"},
        {"subject", "subject"},
        {"before", "due_before"}};
    static const ApiList list = {
        .path = "/v1/scheduled",
        .filters = filters,
        .filter_count = sizeof filters / sizeof filters[0],
        .none = "notification that waits for a time",
        .print = print_row,
    };
    return api_client_print_list(cli, &list);
}

// ---- cancel ----

int cmd_cancel(Cli *cli)
{
    const char *id = api_client_escape(cli, args_word(&cli->args, 0));
    const char *path = arena_printf(cli->arena, "/v1/notifications/%s/cancel", id);
    return api_client_run(cli, "POST", path, NULL, api_client_show);
}
