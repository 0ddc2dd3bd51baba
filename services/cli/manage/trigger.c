// SPDX-License-Identifier: Apache-2.0
// trigger put, list, show, delete, try: /v1/triggers.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "services/cli/api_client.h"

enum { FILE_BYTES_MAX = 1024 * 1024 };

static const char *path_of(Cli *cli, const char *tail)
{
    const char *key = api_client_escape(cli, args_word(&cli->args, 0));
    return arena_printf(cli->arena, "/v1/triggers/%s%s", key, tail);
}

// ---- show ----

int cmd_trigger_show(Cli *cli)
{
    return api_client_run(cli, "GET", path_of(cli, ""), NULL, api_client_show);
}

// ---- put ----

typedef struct FieldFlag {
    const char *flag;
    const char *field;
} FieldFlag;

// clang-format off
static const FieldFlag TEXT_FLAGS[] = {
    {"event", "event_type"}, {"template", "template"}, {"resolver", "resolver"}, {"channel", "channel"}, {"category", "category"},
    {"priority", "priority"}, {"name-path", "name_path"}, {"locale-path", "locale_path"}, {"anchor", "anchor"},
    {"subject-path", "subject_path"}, {"identity", "identity"},
};
// clang-format on

static bool load_file(Cli *cli, json_t **ret, Error *err)
{
    bool ok = cli_load_object(cli, ret, err);
    if (ok) {
        (void)json_object_del(*ret, "key"); // as `trigger show --json` prints it
    }
    return ok;
}

static bool set_flags(Cli *cli, json_t *object, Error *err)
{
    for (size_t i = 0; i < sizeof TEXT_FLAGS / sizeof *TEXT_FLAGS; i++) {
        const char *value = args_flag(&cli->args, TEXT_FLAGS[i].flag);
        if (value != NULL &&
            json_object_set_new(object, TEXT_FLAGS[i].field, json_string(value)) != 0) {
            return error_set(err, ERROR_USAGE, "--%s is not UTF-8", TEXT_FLAGS[i].flag);
        }
    }
    int64_t offset_s = 0;
    if (!args_int(&cli->args, "offset", 0, -INT32_MAX, INT32_MAX, &offset_s, err)) {
        return false;
    }
    if (args_has(&cli->args, "offset")) {
        (void)json_object_set_new(object, "offset_s", json_integer(offset_s));
    }
    if (args_has(&cli->args, "keep-earlier")) {
        (void)json_object_set_new(object, "reschedule", json_false());
    }
    if (args_has(&cli->args, "disabled")) {
        (void)json_object_set_new(object, "enabled", json_false());
    }
    json_t *list = json_array();
    const char *type = NULL;
    for (int i = 0; (type = args_each(&cli->args, "obsoleted-by", &i)) != NULL;) {
        (void)json_array_append_new(list, json_string(type));
    }
    if (json_array_size(list) > 0) {
        (void)json_object_set(object, "obsoleted_by", list);
    }
    json_decref(list);
    return true;
}

// An unknown template is a warning only: it may come later than the trigger.
static int show_stored(Cli *cli, const json_t *answer)
{
    json_t *trigger = json_copy((json_t *)(uintptr_t)answer);
    size_t i = 0;
    json_t *warning = NULL;
    json_array_foreach(json_object_get(answer, "warnings"), i, warning)
    {
        cli_note(cli, "warning: %s", json_string_value(warning));
    }
    (void)json_object_del(trigger, "warnings");
    int status = api_client_show(cli, trigger);
    json_decref(trigger);
    return status;
}

int cmd_trigger_put(Cli *cli)
{
    Error err = {0};
    json_t *object = NULL;
    if (!load_file(cli, &object, &err) || !set_flags(cli, object, &err)) {
        json_decref(object);
        return cli_fail(cli, &err);
    }
    return api_client_run(cli, "PUT", path_of(cli, ""), object, show_stored);
}

// ---- list ----

static void print_row(const json_t *trigger)
{
    bool own = json_is_true(json_object_get(trigger, "own"));
    const char *state = !json_is_true(json_object_get(trigger, "enabled"))   ? "disabled"
                        : json_is_true(json_object_get(trigger, "in_force")) ? "in force"
                                                                             : "overridden";
    printf(
        "%-24s %-24s %-20s %-9s %-10s %s\n", api_client_text(trigger, "key", ""),
        api_client_text(trigger, "event_type", ""), api_client_text(trigger, "template", ""),
        own ? "own" : "platform", state, api_client_text(trigger, "resolver", ""));
}

int cmd_trigger_list(Cli *cli)
{
    json_t *list = json_array();
    json_t *trigger = NULL;
    size_t i = 0;
    int status = api_client_list(cli, "/v1/triggers", api_client_take, list);
    if (status == EXIT_DONE && cli->json) {
        api_client_dump(list);
    } else if (status == EXIT_DONE && json_array_size(list) == 0) {
        cli_note_empty(cli, "trigger, neither of the tenant nor of the platform");
    } else if (status == EXIT_DONE) {
        printf(
            "%-24s %-24s %-20s %-9s %-10s %s\n", "KEY", "EVENT", "TEMPLATE", "OF", "STATE",
            "RESOLVER");
    }
    json_array_foreach(list, i, trigger)
    {
        if (status == EXIT_DONE && !cli->json) {
            print_row(trigger);
        }
    }
    json_decref(list);
    return status;
}

// ---- delete ----

int cmd_trigger_delete(Cli *cli)
{
    Error err = {0};
    ApiAnswer answer = {0};
    const char *path = path_of(cli, "");
    ApiClient *client = api_client_new(cli, &err);
    bool ok = client != NULL && api_client_ask(client, "DELETE", path, NULL, &answer, &err);
    int status = ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
    if (ok) {
        bool uncovered = api_client_ask(client, "GET", path, NULL, &answer, &err);
        print_pairs(
            cli, (const char *const[]){
                     "trigger", args_word(&cli->args, 0), "state",
                     uncovered ? "deleted, the platform's is in force" : "deleted", NULL});
    }
    api_client_free(client);
    return status;
}

// ---- try ----

int cmd_trigger_try(Cli *cli)
{
    Error err = {0};
    Str event = STR_EMPTY;
    ApiAnswer answer = {0};
    const char *path = args_flag(&cli->args, "event-file");
    const char *message = args_flag(&cli->args, "message");
    if (!cli_read_file(cli, path, FILE_BYTES_MAX, &event, &err)) {
        return cli_fail(cli, &err);
    }
    ApiClient *client = api_client_new(cli, &err);
    if (client != NULL && message != NULL) {
        api_client_type(client, "application/protobuf");
        api_client_header(client, arena_printf(cli->arena, "Stentor-Type: %s", message));
    }
    event.ptr = event.len == 0 ? "" : event.ptr;
    bool ok = client != NULL &&
              api_client_call(client, "POST", path_of(cli, "/try"), event, &answer, &err) &&
              (answer.status / 100 == 2 || api_client_explain(client, &answer, &err));
    int status = ok ? api_client_show(cli, answer.json) : api_client_fail(cli, &answer, &err);
    if (ok && json_array_size(json_object_get(answer.json, "problems")) > 0) {
        status = EXIT_FAILED;
    }
    api_client_free(client);
    return status;
}
