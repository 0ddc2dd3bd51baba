// SPDX-License-Identifier: Apache-2.0
// route put, list, show, delete: /v1/routes.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "services/cli/api_client.h"

static const char *path_of(Cli *cli)
{
    return arena_printf(
        cli->arena, "/v1/routes/%s", api_client_escape(cli, args_word(&cli->args, 0)));
}

// ---- put ----

static bool load_file(Cli *cli, json_t **ret, Error *err)
{
    static const char *const shown[] = {"key", "of", "updated_at", "updated_by", "warnings"};
    bool ok = cli_load_object(cli, ret, err);
    for (size_t i = 0; ok && i < sizeof shown / sizeof *shown; i++) {
        (void)json_object_del(*ret, shown[i]); // as `route show --json` prints it
    }
    return ok;
}

// "sendgrid", "sendgrid/main", "sendgrid=90", "sendgrid/main=90".
static bool add_vendor(json_t *list, const char *flag, const char *text, int step, Error *err)
{
    Str rest = str_from(text);
    Str name, vendor;
    int64_t weight = 1;
    bool ok = str_split(&rest, '=', &name) && name.len > 0 &&
              (memchr(text, '=', strlen(text)) == NULL || str_to_i64(rest, &weight));
    if (!ok || weight < 1) {
        return error_set(
            err, ERROR_USAGE,
            "--%s '%.64s' is not VENDOR[/CREDENTIAL][=WEIGHT], such as ses/main=90", flag, text);
    }
    (void)str_split(&name, '/', &vendor);
    json_t *object = json_pack(
        "{s:s%, s:I, s:i}", "vendor", vendor.ptr, vendor.len, "weight", (json_int_t)weight, "step",
        step);
    if (name.len > 0) {
        (void)json_object_set_new(object, "credential", json_stringn(name.ptr, name.len));
    }
    return (object != NULL && json_array_append_new(list, object) == 0) ||
           error_set(err, ERROR_USAGE, "--%s is not UTF-8", flag);
}

static bool set_vendors(Cli *cli, json_t *object, Error *err)
{
    json_t *list = json_array();
    const char *text = NULL;
    bool ok = true;
    int step = 0;
    for (int i = 0; ok && (text = args_each(&cli->args, "vendor", &i)) != NULL;) {
        ok = add_vendor(list, "vendor", text, 0, err);
    }
    for (int i = 0; ok && (text = args_each(&cli->args, "fallback", &i)) != NULL;) {
        ok = add_vendor(list, "fallback", text, ++step, err);
    }
    if (ok && json_array_size(list) > 0) {
        (void)json_object_set(object, "vendors", list);
    }
    json_decref(list);
    return ok;
}

static bool set_number(Cli *cli, json_t *object, const char *flag, const char *field, Error *err)
{
    int64_t value = 0;
    if (!args_int(&cli->args, flag, 0, 0, 100000000, &value, err)) {
        return false;
    }
    if (args_has(&cli->args, flag)) {
        (void)json_object_set_new(object, field, json_integer(value));
    }
    return true;
}

static bool set_texts(Cli *cli, json_t *object, Error *err)
{
    static const char *const names[] = {"channel", "category", "domain", "country", "unknown"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = args_flag(&cli->args, names[i]);
        if (value != NULL && json_object_set_new(object, names[i], json_string(value)) != 0) {
            return error_set(err, ERROR_USAGE, "--%s is not UTF-8", names[i]);
        }
    }
    const char *on = args_flag(&cli->args, "fallback-on");
    if (on != NULL) {
        json_t *list = json_array();
        Str rest = str_from(on);
        Str name;
        while (str_split(&rest, ',', &name)) {
            (void)json_array_append_new(list, json_stringn(name.ptr, name.len));
        }
        (void)json_object_set_new(object, "fallback_on", list);
    }
    return true;
}

static int show_stored(Cli *cli, const json_t *answer)
{
    json_t *route = json_copy((json_t *)(uintptr_t)answer);
    api_client_warnings(cli, answer);
    (void)json_object_del(route, "warnings");
    int status = api_client_show(cli, route);
    json_decref(route);
    return status;
}

int cmd_route_put(Cli *cli)
{
    Error err = {0};
    json_t *object = NULL;
    bool ok = load_file(cli, &object, &err) && set_vendors(cli, object, &err) &&
              set_texts(cli, object, &err) &&
              set_number(cli, object, "position", "position", &err) &&
              set_number(cli, object, "max-vendors", "max_vendors", &err) &&
              set_number(cli, object, "settle-ms", "settle_ms", &err);
    if (!ok) {
        json_decref(object);
        return cli_fail(cli, &err);
    }
    if (args_has(&cli->args, "disabled")) {
        (void)json_object_set_new(object, "enabled", json_false());
    }
    return api_client_run(cli, "PUT", path_of(cli), object, show_stored);
}

// ---- show, list, delete ----

int cmd_route_show(Cli *cli)
{
    return api_client_run(cli, "GET", path_of(cli), NULL, show_stored);
}

static void print_vendors(const json_t *route)
{
    size_t i = 0;
    json_int_t before = 0;
    json_t *one = NULL;
    json_array_foreach(json_object_get(route, "vendors"), i, one)
    {
        json_int_t step = json_integer_value(json_object_get(one, "step"));
        const char *credential = api_client_text(one, "credential", "");
        printf(
            "%s%s%s%s=%lld",
            i == 0          ? ""
            : step > before ? ", else "
                            : " ",
            api_client_text(one, "vendor", ""), credential[0] != '\0' ? "/" : "", credential,
            (long long)json_integer_value(json_object_get(one, "weight")));
        before = step;
    }
    printf("\n");
}

static void print_row(const json_t *route)
{
    bool enabled = json_is_true(json_object_get(route, "enabled"));
    const char *domain = api_client_text(route, "domain", api_client_text(route, "country", "any"));
    printf(
        "%-20s %-9s %5lld %-8s %-8s %-14s %-20s ", api_client_text(route, "key", ""),
        api_client_text(route, "of", ""),
        (long long)json_integer_value(json_object_get(route, "position")),
        enabled ? "enabled" : "disabled", api_client_text(route, "channel", ""),
        api_client_text(route, "category", "any"), domain);
    print_vendors(route);
}

int cmd_route_list(Cli *cli)
{
    json_t *list = json_array();
    json_t *route = NULL;
    size_t i = 0;
    int status = api_client_list(cli, "/v1/routes", api_client_take, list);
    if (status == EXIT_DONE && cli->json) {
        api_client_dump(list);
    } else if (status == EXIT_DONE && json_array_size(list) == 0) {
        cli_note_empty(cli, "route: the dispatchers' SMTP server takes all e-mails");
    } else if (status == EXIT_DONE) {
        printf(
            "%-20s %-9s %5s %-8s %-8s %-14s %-20s %s\n", "KEY", "OF", "POS", "STATE", "CHANNEL",
            "CATEGORY", "TO", "VENDORS");
    }
    json_array_foreach(list, i, route)
    {
        if (status == EXIT_DONE && !cli->json) {
            print_row(route);
        }
    }
    json_decref(list);
    return status;
}

static int show_deleted(Cli *cli, const json_t *answer)
{
    (void)answer;
    print_pairs(
        cli, (const char *const[]){"route", args_word(&cli->args, 0), "state", "deleted", NULL});
    return EXIT_DONE;
}

int cmd_route_delete(Cli *cli)
{
    return api_client_run(cli, "DELETE", path_of(cli), NULL, show_deleted);
}
