// SPDX-License-Identifier: Apache-2.0
// guard list, guard resume: the pauses of a tenant's marketing e-mails, which are suppressions of
// every address (SUPPRESSION_EVERY_ADDRESS) in /v1/suppressions.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec/hash.h"
#include "common/model/suppressions.h"
#include "services/cli/api_client.h"

static bool take_entry(void *ctx, const json_t *entry)
{
    (void)json_array_append(ctx, (json_t *)(uintptr_t)entry);
    return true;
}

static int fetch(Cli *cli, const char *state, json_t *list)
{
    char hash[2 * SUPPRESSION_HASH_LEN + 1];
    hex_encode(SUPPRESSION_EVERY_ADDRESS, SUPPRESSION_HASH_LEN, hash);
    return api_client_list(
        cli,
        arena_printf(
            cli->arena, "/v1/suppressions?channel=email&state=%s&address_hash=%s", state, hash),
        take_entry, list);
}

static void print_pause(const json_t *entry)
{
    const char *released = api_client_text(entry, "released_at", "");
    printf(
        "%s  %-7s  %.19sZ  %s\n", api_client_text(entry, "id", ""),
        released[0] == '\0' ? "paused" : "resumed", api_client_text(entry, "created_at", ""),
        api_client_text(entry, "note", ""));
}

int cmd_guard_list(Cli *cli)
{
    json_t *list = json_array();
    json_t *entry = NULL;
    size_t i = 0;
    int status = fetch(cli, args_has(&cli->args, "all") ? "all" : "active", list);
    if (status == EXIT_DONE && cli->json) {
        print_json_line(json_incref(list));
    } else if (status == EXIT_DONE) {
        json_array_foreach(list, i, entry)
        {
            print_pause(entry);
        }
        if (json_array_size(list) == 0) {
            cli_note_empty(cli, "pause in force");
        }
    }
    json_decref(list);
    return status;
}

int cmd_guard_resume(Cli *cli)
{
    json_t *list = json_array();
    json_t *entry = NULL;
    size_t i = 0;
    int status = fetch(cli, "active", list);
    if (status == EXIT_DONE && json_array_size(list) == 0) {
        status = cli_fail_as(cli, EXIT_NOT_FOUND, "the tenant's marketing e-mails are not paused");
    }
    json_array_foreach(list, i, entry)
    {
        if (status == EXIT_DONE) {
            status = api_client_run(
                cli, "POST",
                arena_printf(
                    cli->arena, "/v1/suppressions/%s/release", api_client_text(entry, "id", "")),
                NULL, api_client_show);
        }
    }
    json_decref(list);
    return status;
}
