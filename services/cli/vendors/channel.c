// SPDX-License-Identifier: Apache-2.0
// channel list, suspend, resume: /v1/channels.
#include <jansson.h>
#include <string.h>

#include "services/cli/api_client.h"

// It has no credential, and neither an operator nor a dispatcher has said anything of it.
static bool is_unused(const json_t *channel)
{
    return !json_is_true(json_object_get(channel, "usable")) &&
           strcmp(api_client_text(channel, "status", ""), "active") == 0;
}

static bool has_row(const json_t *list, const char *vendor)
{
    size_t i = 0;
    const json_t *channel = NULL;
    json_array_foreach(list, i, channel)
    {
        if (!is_unused(channel) && strcmp(api_client_text(channel, "vendor", ""), vendor) == 0) {
            return true;
        }
    }
    return false;
}

// Vendors without a row, in one line.
static void print_unused(const json_t *list)
{
    size_t i = 0;
    const char *before = "";
    const json_t *channel = NULL;
    json_array_foreach(list, i, channel)
    {
        const char *vendor = api_client_text(channel, "vendor", "");
        if (is_unused(channel) && !has_row(list, vendor) && strcmp(vendor, before) != 0) {
            printf("%s%s", before[0] == '\0' ? "no credential: " : ", ", vendor);
            before = vendor;
        }
    }
    printf("%s", before[0] == '\0' ? "" : " (stentor credential put VENDOR NAME)\n");
}

static void print_row(const json_t *channel)
{
    const char *status = api_client_text(channel, "status", "");
    const char *until = api_client_text(channel, "until", "");
    printf(
        "%-9s %-12s %-9s %-14s %-20s %-27s %s%s%s\n", api_client_text(channel, "channel", ""),
        api_client_text(channel, "vendor", ""), api_client_text(channel, "of", ""), status,
        api_client_text(channel, "credential", ""), api_client_text(channel, "since", ""),
        api_client_text(channel, "reason", ""), until[0] != '\0' ? ", until " : "", until);
}

static int show_list(Cli *cli, const json_t *answer)
{
    size_t i = 0;
    json_t *channel = NULL;
    const json_t *list = json_object_get(answer, "data");
    if (cli->json) {
        api_client_dump(list);
        return EXIT_DONE;
    }
    printf(
        "%-9s %-12s %-9s %-14s %-20s %-27s %s\n", "CHANNEL", "VENDOR", "OF", "STATUS", "CREDENTIAL",
        "SINCE", "REASON");
    json_array_foreach(list, i, channel)
    {
        if (!is_unused(channel)) {
            print_row(channel);
        }
    }
    print_unused(list);
    return EXIT_DONE;
}

int cmd_channel_list(Cli *cli)
{
    return api_client_run(cli, "GET", "/v1/channels", NULL, show_list);
}

static const char *path_of(Cli *cli, const char *verb)
{
    return arena_printf(
        cli->arena, "/v1/channels/%s/%s", api_client_escape(cli, args_word(&cli->args, 0)), verb);
}

int cmd_channel_suspend(Cli *cli)
{
    Error err = {0};
    const char *until = NULL;
    if (!cli_time_from_now(cli, "until", &until, &err)) {
        return cli_fail(cli, &err);
    }
    json_t *body = json_pack("{s:s}", "reason", args_flag(&cli->args, "reason"));
    if (body == NULL) {
        (void)error_set(&err, ERROR_USAGE, "--reason is not UTF-8");
        return cli_fail(cli, &err);
    }
    if (until != NULL) {
        (void)json_object_set_new(body, "until", json_string(until));
    }
    return api_client_run(cli, "POST", path_of(cli, "suspend"), body, api_client_show);
}

int cmd_channel_resume(Cli *cli)
{
    return api_client_run(cli, "POST", path_of(cli, "resume"), NULL, api_client_show);
}
