// SPDX-License-Identifier: Apache-2.0
// console login, sessions, revoke: people at the console. The link is good once and for ten
// minutes.
#include <jansson.h>

#include "common/base/str.h"
#include "services/cli/api_client.h"
#include "services/cli/noted.h"

static int show_link(Cli *cli, const json_t *answer)
{
    // Without an address of the console the one that the command uses: a browser here reaches it.
    const char *here = arena_printf(
        cli->arena, "%s%s", cli->settings.api_url, api_client_text(answer, "path", ""));
    const char *url = api_client_text(answer, "url", here);
    print_pairs(
        cli, (const char *const[]){
                 "url", url, "expires_at", api_client_text(answer, "expires_at", ""), NULL});
    if (!cli->json) {
        cli_note(cli, "open it in a browser: it signs in whoever opens it first, once");
    }
    return EXIT_DONE;
}

int cmd_console_login(Cli *cli)
{
    const char *name = args_flag(&cli->args, "name");
    const char *role = args_flag(&cli->args, "role");
    json_t *body = json_pack("{s:s}", "name", name != NULL ? name : cli_user());
    if (role != NULL) {
        (void)json_object_set_new(body, "role", json_string(role));
    }
    return api_client_run(cli, "POST", "/v1/console/logins", body, show_link);
}

static void print_head(void)
{
    printf(
        "%-30s  %-20s %-16s %-20s %-20s %s\n", "SESSION", "USER", "ROLE", "SEEN", "UNTIL",
        "TENANTS");
}

static void print_session(const Cli *cli, const json_t *session)
{
    const char *text = "";
    size_t i;
    json_t *tenant;
    json_array_foreach(json_object_get(session, "tenants"), i, tenant)
    {
        text =
            arena_printf(cli->arena, "%s%s%s", text, i > 0 ? "," : "", json_string_value(tenant));
    }
    printf(
        "%-30s  %-20s %-16s %-20.19s %-20.19s %s\n", api_client_text(session, "id", ""),
        api_client_text(session, "user", ""), api_client_text(session, "role", ""),
        api_client_text(session, "seen_at", ""), api_client_text(session, "expires_at", ""), text);
}

int cmd_console_sessions(Cli *cli)
{
    return api_client_print_list(
        cli, &(ApiList){
                 .path = "/v1/console/sessions",
                 .none = "session of the console",
                 .head = print_head,
                 .print = print_session});
}

static int show_revoked(Cli *cli, const json_t *answer)
{
    (void)answer;
    print_pairs(
        cli, (const char *const[]){"session", args_word(&cli->args, 0), "state", "revoked", NULL});
    return EXIT_DONE;
}

int cmd_console_revoke(Cli *cli)
{
    const char *id = api_client_escape(cli, args_word(&cli->args, 0));
    return api_client_run(
        cli, "DELETE", arena_printf(cli->arena, "/v1/console/sessions/%s", id), NULL, show_revoked);
}
