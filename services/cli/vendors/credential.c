// SPDX-License-Identifier: Apache-2.0
// credential put, list, show, promote, revoke, delete: /v1/credentials. It knows references only.
#include <jansson.h>
#include <string.h>

#include "services/cli/api_client.h"
#include "services/cli/vendors/definition_file.h"

static const char *path_of(Cli *cli, const char *tail)
{
    return arena_printf(
        cli->arena, "/v1/credentials/%s/%s%s", api_client_escape(cli, args_word(&cli->args, 0)),
        api_client_escape(cli, args_word(&cli->args, 1)), tail);
}

// ---- put ----

static bool set_settings(Cli *cli, json_t *object, Error *err)
{
    json_t *settings = json_object();
    const char *text = NULL;
    bool ok = true;
    for (int i = 0; ok && (text = args_each(&cli->args, "set", &i)) != NULL;) {
        Str rest = str_from(text);
        Str name;
        ok = (strchr(text, '=') != NULL && str_split(&rest, '=', &name) && name.len > 0 &&
              json_object_set_new(
                  settings, arena_cstr(cli->arena, name), json_stringn(rest.ptr, rest.len)) == 0) ||
             error_set(err, ERROR_USAGE, "--set is not NAME=VALUE, such as region=eu-west-1");
    }
    (void)json_object_set(object, "settings", settings);
    json_decref(settings);
    return ok;
}

static bool set_rate(Cli *cli, json_t *object, const char *flag, const char *field, Error *err)
{
    int64_t value = 0;
    if (!args_int(&cli->args, flag, 0, 0, INT64_C(4000000000), &value, err)) {
        return false;
    }
    if (args_has(&cli->args, flag)) {
        (void)json_object_set_new(object, field, json_integer(value));
    }
    return true;
}

static bool set_definition(Cli *cli, json_t *object, Error *err)
{
    const char *path = args_flag(&cli->args, "definition");
    json_t *definition = path != NULL ? definition_file(path, err) : NULL;
    return path == NULL ||
           (definition != NULL && json_object_set_new(object, "definition", definition) == 0);
}

int cmd_credential_put(Cli *cli)
{
    Error err = {0};
    const char *key_id = args_flag(&cli->args, "key-id");
    const char *reference = args_flag(&cli->args, "reference");
    json_t *object = json_object();
    bool ok = reference == NULL ||
              json_object_set_new(object, "reference", json_string(reference)) == 0 ||
              error_set(&err, ERROR_USAGE, "--reference is not UTF-8");
    ok = ok && set_definition(cli, object, &err) && set_settings(cli, object, &err) &&
         set_rate(cli, object, "rate-per-s", "rate_per_s", &err) &&
         set_rate(cli, object, "rate-per-day", "rate_per_day", &err);
    if (ok && key_id != NULL && json_object_set_new(object, "key_id", json_string(key_id)) != 0) {
        ok = error_set(&err, ERROR_USAGE, "--key-id is not UTF-8");
    }
    if (!ok) {
        json_decref(object);
        return cli_fail(cli, &err);
    }
    return api_client_run(cli, "PUT", path_of(cli, ""), object, api_client_show);
}

// ---- show, list ----

int cmd_credential_show(Cli *cli)
{
    return api_client_run(cli, "GET", path_of(cli, ""), NULL, api_client_show);
}

static void print_row(const json_t *credential)
{
    printf(
        "%-12s %-20s %-9s %-11s %-27s %s\n", api_client_text(credential, "vendor", ""),
        api_client_text(credential, "name", ""), api_client_text(credential, "of", ""),
        api_client_text(credential, "state", ""), api_client_text(credential, "changed_at", ""),
        api_client_text(credential, "reference", ""));
}

int cmd_credential_list(Cli *cli)
{
    json_t *list = json_array();
    json_t *credential = NULL;
    size_t i = 0;
    int status = api_client_list(cli, "/v1/credentials", api_client_take, list);
    if (status == EXIT_DONE && cli->json) {
        api_client_dump(list);
    } else if (status == EXIT_DONE && json_array_size(list) == 0) {
        cli_note_empty(cli, "credential");
    } else if (status == EXIT_DONE) {
        printf(
            "%-12s %-20s %-9s %-11s %-27s %s\n", "VENDOR", "NAME", "OF", "STATE", "SINCE",
            "REFERENCE");
    }
    json_array_foreach(list, i, credential)
    {
        if (status == EXIT_DONE && !cli->json) {
            print_row(credential);
        }
    }
    json_decref(list);
    return status;
}

// ---- states ----

int cmd_credential_promote(Cli *cli)
{
    return api_client_run(cli, "POST", path_of(cli, "/promote"), NULL, api_client_show);
}

int cmd_credential_revoke(Cli *cli)
{
    return api_client_run(cli, "POST", path_of(cli, "/revoke"), NULL, api_client_show);
}

static int show_deleted(Cli *cli, const json_t *answer)
{
    (void)answer;
    print_pairs(
        cli,
        (const char *const[]){"credential", args_word(&cli->args, 1), "state", "deleted", NULL});
    return EXIT_DONE;
}

int cmd_credential_delete(Cli *cli)
{
    return api_client_run(cli, "DELETE", path_of(cli, ""), NULL, show_deleted);
}
