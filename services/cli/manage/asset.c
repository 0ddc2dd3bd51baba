// SPDX-License-Identifier: Apache-2.0
// asset put, list, remove: /v1/template-assets.
#include <jansson.h>

#include "common/model/asset.h"
#include "services/cli/api_client.h"

enum {
    FILE_BYTES_MAX = 2 * ASSET_BYTES_MAX
}; // a little too large: the API says how much is allowed

static const char *asset_path_of(Cli *cli)
{
    return arena_printf(
        cli->arena, "/v1/template-assets/%s", api_client_escape(cli, args_word(&cli->args, 0)));
}

int cmd_asset_put(Cli *cli)
{
    Error err = {0};
    Str bytes = STR_EMPTY;
    ApiAnswer answer = {0};
    if (!cli_read_file(cli, args_flag(&cli->args, "file"), FILE_BYTES_MAX, &bytes, &err)) {
        (void)error_wrap(&err, "--file");
        return cli_fail(cli, &err);
    }
    ApiClient *client = api_client_new(cli, &err);
    if (client != NULL) {
        api_client_type(client, "application/octet-stream");
    }
    bytes.ptr = bytes.len == 0 ? "" : bytes.ptr; // an empty file is the API's to refuse
    bool ok = client != NULL &&
              api_client_call(client, "PUT", asset_path_of(cli), bytes, &answer, &err) &&
              (answer.status / 100 == 2 || api_client_explain(client, &answer, &err));
    int status = ok ? api_client_show(cli, answer.json) : api_client_fail(cli, &answer, &err);
    api_client_free(client);
    return status;
}

// ---- list ----

static void print_assets(const Cli *cli, const json_t *list)
{
    size_t i = 0;
    json_t *asset = NULL;
    if (cli->json) {
        api_client_dump(list);
        return;
    }
    if (json_array_size(list) == 0) {
        cli_note_empty(cli, "template asset (HINT: stentor asset put logo.png --file FILE)");
        return;
    }
    printf("%-24s %-10s %9s  %-20s  %s\n", "NAME", "TYPE", "BYTES", "PUT", "URL");
    json_array_foreach((json_t *)(uintptr_t)list, i, asset)
    {
        printf(
            "%-24s %-10s %9lld  %.19sZ  %s\n", api_client_text(asset, "name", ""),
            api_client_text(asset, "content_type", ""),
            (long long)json_integer_value(json_object_get(asset, "size_bytes")),
            api_client_text(asset, "updated_at", ""), api_client_text(asset, "url", ""));
    }
}

int cmd_asset_list(Cli *cli)
{
    json_t *list = json_array();
    const char *path = args_has(&cli->args, "platform") ? "/v1/template-assets?platform=true"
                                                        : "/v1/template-assets";
    int status = api_client_list(cli, path, api_client_take, list);
    if (status == EXIT_DONE) {
        print_assets(cli, list);
    }
    json_decref(list);
    return status;
}

// ---- remove ----

int cmd_asset_remove(Cli *cli)
{
    Error err = {0};
    ApiAnswer answer = {0};
    const char *path = asset_path_of(cli);
    ApiClient *client = api_client_new(cli, &err);
    bool ok = client != NULL && api_client_ask(client, "DELETE", path, NULL, &answer, &err);
    int status = ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
    if (ok) {
        bool uncovered = api_client_ask(client, "GET", path, NULL, &answer, &err);
        print_pairs(
            cli, (const char *const[]){
                     "asset", args_word(&cli->args, 0), "state",
                     uncovered ? "removed, the platform's is in force"
                               : "removed; mails that were sent still show it",
                     NULL});
    }
    api_client_free(client);
    return status;
}
