// SPDX-License-Identifier: Apache-2.0
// resolver put, list, show, remove: /v1/resolvers.
#include <jansson.h>

#include "services/cli/api_client.h"

static const char *path_of(Cli *cli)
{
    const char *name = api_client_escape(cli, args_word(&cli->args, 0));
    return arena_printf(cli->arena, "/v1/resolvers/%s", name);
}

// ---- put, show ----

int cmd_resolver_put(Cli *cli)
{
    Error err = {0};
    const char *rule = NULL;
    json_t *rules = json_array();
    for (int i = 0; (rule = args_each(&cli->args, "rule", &i)) != NULL;) {
        if (json_array_append_new(rules, json_string(rule)) != 0) {
            json_decref(rules);
            (void)error_set(&err, ERROR_USAGE, "--rule is not UTF-8");
            return cli_fail(cli, &err);
        }
    }
    json_t *body = json_pack("{s:o}", "rules", rules);
    return api_client_run(cli, "PUT", path_of(cli), body, api_client_show);
}

int cmd_resolver_show(Cli *cli)
{
    return api_client_run(cli, "GET", path_of(cli), NULL, api_client_show);
}

// ---- list ----

static void print_row(const json_t *resolver)
{
    size_t i = 0;
    json_t *rule = NULL;
    bool in_force = json_is_true(json_object_get(resolver, "in_force"));
    printf(
        "%-24s %-9s %-10s ", api_client_text(resolver, "name", ""),
        api_client_text(resolver, "scope", ""), in_force ? "in force" : "overridden");
    json_array_foreach(json_object_get(resolver, "rules"), i, rule)
    {
        printf("%s%s", i > 0 ? ", else " : "", json_string_value(rule));
    }
    printf("\n");
}

int cmd_resolver_list(Cli *cli)
{
    json_t *list = json_array();
    json_t *resolver = NULL;
    size_t i = 0;
    int status = api_client_list(cli, "/v1/resolvers", api_client_take, list);
    if (status == EXIT_DONE && cli->json) {
        api_client_dump(list);
    } else if (status == EXIT_DONE) {
        printf("%-24s %-9s %-10s %s\n", "NAME", "OF", "STATE", "RULES");
    }
    json_array_foreach(list, i, resolver)
    {
        if (status == EXIT_DONE && !cli->json) {
            print_row(resolver);
        }
    }
    json_decref(list);
    return status;
}

// ---- remove ----

int cmd_resolver_remove(Cli *cli)
{
    Error err = {0};
    ApiAnswer answer = {0};
    const char *path = path_of(cli);
    ApiClient *client = api_client_new(cli, &err);
    bool ok = client != NULL && api_client_ask(client, "DELETE", path, NULL, &answer, &err);
    int status = ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
    if (ok) {
        bool uncovered = api_client_ask(client, "GET", path, NULL, &answer, &err);
        const char *scope = uncovered ? api_client_text(answer.json, "scope", "") : "";
        print_pairs(
            cli, (const char *const[]){
                     "resolver", args_word(&cli->args, 0), "state",
                     uncovered ? arena_printf(cli->arena, "removed, the %s one is in force", scope)
                               : "removed",
                     NULL});
    }
    api_client_free(client);
    return status;
}
