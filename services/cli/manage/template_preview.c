// SPDX-License-Identifier: Apache-2.0
// template preview: what a version would say, with its sample or other data. template test-send: an
// ordinary notification with them, to one's own address.
#include <stdlib.h>
#include <string.h>

#include "services/cli/api_client.h"
#include "services/cli/manage/send.h"
#include "services/cli/manage/template_show.h"

enum { SAMPLE_MAX = 64 * 1024 };

// ---- what is read ----

// --data FILE, else NULL: the version's sample.
static bool read_data(Cli *cli, json_t **ret, Error *err)
{
    const char *path = args_flag(&cli->args, "data");
    Str text;
    json_error_t where;
    *ret = NULL;
    if (path == NULL) {
        return true;
    }
    if (!cli_read_file(cli, path, SAMPLE_MAX, &text, err)) {
        return error_wrap(err, "--data");
    }
    *ret = json_loadb(text.ptr, text.len, 0, &where);
    if (*ret == NULL) {
        return error_set(
            err, ERROR_USAGE, "--data '%s': line %d, column %d: %s", path, where.line, where.column,
            where.text);
    }
    if (!json_is_object(*ret)) {
        json_decref(*ret);
        *ret = NULL;
        return error_set(err, ERROR_USAGE, "--data '%s': not a JSON object", path);
    }
    return true;
}

// ---- preview ----

static void print_parts(const json_t *answer)
{
    const char *name = NULL;
    json_t *value = NULL;
    size_t i = 0;
    printf(
        "%s, %s, %s\n", json_string_value(json_object_get(answer, "channel")),
        json_string_value(json_object_get(answer, "locale")),
        json_string_value(json_object_get(answer, "direction")));
    json_object_foreach(json_object_get(answer, "parts"), name, value)
    {
        if (json_is_string(value)) {
            printf("\n--- %s ---\n%s\n", name, json_string_value(value));
        }
    }
    const json_t *sms = json_object_get(answer, "sms");
    if (sms != NULL) {
        printf(
            "\n%lld segments of %s, %lld units\n",
            (long long)json_integer_value(json_object_get(sms, "segments")),
            json_string_value(json_object_get(sms, "alphabet")),
            (long long)json_integer_value(json_object_get(sms, "units")));
    }
    json_array_foreach(json_object_get(answer, "warnings"), i, value)
    {
        printf("%swarning: %s\n", i == 0 ? "\n" : "", json_string_value(value));
    }
}

static int show_preview(Cli *cli, const json_t *answer)
{
    if (cli->json) {
        api_client_dump(answer);
    } else {
        print_parts(answer);
    }
    return EXIT_DONE;
}

static const char *platform_query(const Cli *cli)
{
    return args_has(&cli->args, "platform") ? "?platform=true" : "?platform=false";
}

int cmd_template_preview(Cli *cli)
{
    Error err = {0};
    json_t *data = NULL;
    if (!read_data(cli, &data, &err)) {
        return cli_fail(cli, &err);
    }
    json_t *body = json_pack(
        "{s:s, s:s*, s:s*, s:s*, s:o*}", "template", args_word(&cli->args, 0), "version",
        args_flag(&cli->args, "version"), "locale", args_flag(&cli->args, "locale"), "channel",
        args_flag(&cli->args, "channel"), "data", data);
    const char *path = arena_printf(cli->arena, "/v1/templates/preview%s", platform_query(cli));
    return api_client_run(cli, "POST", path, body, show_preview);
}

// ---- test send ----

static json_t *test_request(Cli *cli, const json_t *version, json_t *data)
{
    const char *key = api_client_text(version, "key", "");
    const char *number = api_client_text(version, "version", "");
    json_t *sample = json_object_get(version, "sample");
    json_t *variables = data != NULL             ? json_incref(data)
                        : json_is_object(sample) ? json_incref(sample)
                                                 : json_object();
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:s*}", "to", args_flag(&cli->args, "to"), "template",
        key, "template_version", number, "category", "transactional", "correlation_id",
        arena_printf(cli->arena, "test-send/%s/%s", key, number), "channel",
        api_client_text(version, "channel", "email"), "variables", variables, "locale",
        args_flag(&cli->args, "locale"));
}

// The version as it is published; NULL: why not was printed, and *ret_status is the command's.
static json_t *fetch_version(Cli *cli, int *ret_status)
{
    Error err = {0};
    ApiAnswer answer = {0};
    const char *path = template_path(cli, args_flag(&cli->args, "version"));
    ApiClient *client = api_client_new(cli, &err);
    bool ok = client != NULL && api_client_ask(client, "GET", path, NULL, &answer, &err);
    json_t *found = ok ? json_incref((json_t *)(uintptr_t)answer.json) : NULL;
    *ret_status = ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
    api_client_free(client);
    return found;
}

int cmd_template_test_send(Cli *cli)
{
    Error err = {0};
    json_t *data = NULL;
    int status = EXIT_DONE;
    if (args_flag(&cli->args, "to") == NULL) {
        error_set(&err, ERROR_USAGE, "--to ADDRESS is required");
        return cli_fail(cli, &err);
    }
    if (!read_data(cli, &data, &err)) {
        return cli_fail(cli, &err);
    }
    json_t *version = fetch_version(cli, &status);
    if (version != NULL) {
        json_t *request = test_request(cli, version, data);
        status = send_request(cli, request);
        json_decref(request);
    }
    json_decref(version);
    json_decref(data);
    return status;
}
