// SPDX-License-Identifier: Apache-2.0
// why: /v1/notifications/{id}/why. The gateway's answer, so that both say the same.
#include <jansson.h>

#include "services/cli/api_client.h"

static void print_evidence(const json_t *evidence)
{
    const char *name;
    const json_t *value;
    const char *before = "            ";
    json_object_foreach((json_t *)(uintptr_t)evidence, name, value)
    {
        printf("%s%s=%s", before, name, json_string_value(value));
        before = "  ";
    }
    if (json_object_size(evidence) > 0) {
        printf("\n");
    }
}

static int show(Cli *cli, const json_t *answer)
{
    if (cli->json) {
        api_client_dump(answer);
        return EXIT_DONE;
    }
    printf(
        "%s  %s\n%s\n\n", api_client_text(answer, "id", ""), api_client_text(answer, "status", ""),
        api_client_text(answer, "summary", ""));
    size_t index;
    const json_t *item;
    json_array_foreach(json_object_get(answer, "why"), index, item)
    {
        printf(
            "  %-8s  %s %s\n", api_client_text(item, "outcome", ""),
            api_client_text(item, "question", ""), api_client_text(item, "answer", ""));
        print_evidence(json_object_get(item, "evidence"));
    }
    return EXIT_DONE;
}

int cmd_why(Cli *cli)
{
    const char *id = api_client_escape(cli, args_word(&cli->args, 0));
    const char *path = arena_printf(cli->arena, "/v1/notifications/%s/why", id);
    return api_client_run(cli, "GET", path, NULL, show);
}
