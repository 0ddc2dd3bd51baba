// SPDX-License-Identifier: Apache-2.0
// send: one request over the HTTP API, as any client would make it.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "services/cli/api_client.h"
#include "services/cli/manage/send.h"
#include "services/cli/manage/send_attach.h"

enum { DATA_MAX = 1024 * 1024 };

static bool add_variable(json_t *variables, const char *pair, bool is_json, Error *err)
{
    const char *flag = is_json ? "var-json" : "var";
    const char *equals = strchr(pair, '=');
    if (equals == NULL || equals == pair) {
        return error_set(
            err, ERROR_USAGE, "--%s is '%s': expected NAME=%s", flag, pair,
            is_json ? "JSON" : "TEXT");
    }
    json_error_t json_err;
    json_t *value =
        is_json ? json_loads(equals + 1, JSON_DECODE_ANY, &json_err) : json_string(equals + 1);
    if (value == NULL) {
        return error_set(
            err, ERROR_USAGE, "--%s is '%s': not %s", flag, pair,
            is_json ? json_err.text : "UTF-8");
    }
    char name[128];
    if (!str_to_c(str_of(pair, (size_t)(equals - pair)), name, sizeof name)) {
        json_decref(value);
        return error_set(
            err, ERROR_USAGE, "--%s '%s': the name is longer than 127 bytes", flag, pair);
    }
    json_object_set_new(variables, name, value);
    return true;
}

static bool build_variables(Cli *cli, json_t *variables, Error *err)
{
    const char *path = args_flag(&cli->args, "data");
    if (path != NULL) {
        Str text;
        json_error_t json_err;
        if (!cli_read_file(cli, path, DATA_MAX, &text, err)) {
            return error_wrap(err, "--data");
        }
        json_t *data = json_loadb(text.ptr, text.len, 0, &json_err);
        if (!json_is_object(data)) {
            json_decref(data);
            return error_set(err, ERROR_USAGE, "--data '%s' is not a JSON object", path);
        }
        json_object_update(variables, data);
        json_decref(data);
    }
    const char *pair;
    for (int i = 0; (pair = args_each(&cli->args, "var", &i)) != NULL;) {
        if (!add_variable(variables, pair, false, err)) {
            return false;
        }
    }
    for (int i = 0; (pair = args_each(&cli->args, "var-json", &i)) != NULL;) {
        if (!add_variable(variables, pair, true, err)) {
            return false;
        }
    }
    return true;
}

static bool build_target(Cli *cli, json_t *request, Error *err)
{
    const char *to = args_flag(&cli->args, "to");
    const char *name = args_flag(&cli->args, "name");
    if (to == NULL && name != NULL) {
        return error_set(err, ERROR_USAGE, "--name needs --to ADDRESS, whose display name it is");
    }
    if (to == NULL) {
        return true; // the recipient's own address
    }
    json_t *target =
        name == NULL ? json_string(to) : json_pack("{s:s, s:s}", "address", to, "name", name);
    if (target == NULL) {
        return error_set(err, ERROR_USAGE, "--to or --name is not UTF-8");
    }
    json_object_set_new(request, "to", target);
    return true;
}

// "email,sms": one notification for each.
static bool build_channels(Cli *cli, json_t *request, Error *err)
{
    const char *text = args_flag(&cli->args, "channel");
    if (text == NULL) {
        return true;
    }
    json_t *channels = json_array();
    Str rest = str_from(text);
    Str name = STR_EMPTY;
    while (str_split(&rest, ',', &name)) {
        if (json_array_append_new(channels, json_stringn(name.ptr, name.len)) != 0) {
            json_decref(channels);
            return error_set(err, ERROR_USAGE, "--channel is not UTF-8");
        }
    }
    if (json_array_size(channels) == 1) {
        json_object_set(request, "channel", json_array_get(channels, 0));
        json_decref(channels);
    } else {
        json_object_set_new(request, "channels", channels);
    }
    return true;
}

static bool set_text(
    json_t *request, const char *field, const char *flag, const char *value, Error *err)
{
    return value == NULL || json_object_set_new(request, field, json_string(value)) == 0 ||
           error_set(err, ERROR_USAGE, "--%s is not UTF-8", flag);
}

static bool build_times(Cli *cli, json_t *request, Error *err)
{
    const char *at = NULL, *expires = NULL;
    return cli_time_from_now(cli, "at", &at, err) &&
           cli_time_from_now(cli, "expires", &expires, err) &&
           set_text(request, "scheduled_for", "at", at, err) &&
           set_text(request, "expires_at", "expires", expires, err);
}

bool send_add_consent(Cli *cli, json_t *request, Error *err)
{
    const char *source = args_flag(&cli->args, "consent-source");
    const char *at = args_flag(&cli->args, "consent-at");
    if (source == NULL && at == NULL) {
        return true;
    }
    json_t *consent = json_object();
    json_object_set_new(request, "consent", consent);
    return set_text(consent, "source", "consent-source", source, err) &&
           set_text(consent, "given_at", "consent-at", at, err);
}

static bool add_copies(Cli *cli, json_t *request, const char *flag, Error *err)
{
    json_t *list = json_array();
    const char *address = NULL;
    for (int i = 0; (address = args_each(&cli->args, flag, &i)) != NULL;) {
        if (json_array_append_new(list, json_string(address)) != 0) {
            json_decref(list);
            return error_set(err, ERROR_USAGE, "--%s is not UTF-8", flag);
        }
    }
    if (json_array_size(list) > 0) {
        (void)json_object_set(request, flag, list);
    }
    json_decref(list);
    return true;
}

static bool build_request(Cli *cli, json_t *request, Error *err)
{
    // clang-format off
    static const char *const fields[][2] = { // flag, field of the API
        {"template", "template"}, {"template-version", "template_version"}, {"locale", "locale"}, {"category", "category"},
        {"priority", "priority"}, {"correlation-id", "correlation_id"}, {"recipient", "recipient_id"},
        {"reply-to", "reply_to"}, {"list-id", "list_id"},
    };
    // clang-format on
    if (!args_has(&cli->args, "to") && !args_has(&cli->args, "recipient")) {
        return error_set(err, ERROR_USAGE, "one of --to ADDRESS and --recipient ID is required");
    }
    if (!build_target(cli, request, err) || !build_channels(cli, request, err) ||
        !build_times(cli, request, err) || !send_add_consent(cli, request, err) ||
        !add_copies(cli, request, "cc", err) || !add_copies(cli, request, "bcc", err)) {
        return false;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *value = args_flag(&cli->args, fields[i][0]);
        if (!set_text(request, fields[i][1], fields[i][0], value, err)) {
            return false;
        }
    }
    json_t *variables = json_object();
    json_object_set_new(request, "variables", variables);
    return build_variables(cli, variables, err) && send_attach(cli, request, err);
}

static void print_line(const json_t *notification)
{
    printf(
        "%s %s\n", json_string_value(json_object_get(notification, "id")),
        json_string_value(json_object_get(notification, "status")));
}

static int report(Cli *cli, ApiClient *client, const ApiAnswer *answer)
{
    Error err = {0};
    const json_t *json = answer->json;
    const json_t *list = json_object_get(json, "notifications"); // of several channels
    if (answer->status != 202 || (json_object_get(json, "id") == NULL && list == NULL)) {
        (void)api_client_explain(client, answer, &err);
        return api_client_fail(cli, answer, &err);
    }
    if (cli->json) {
        printf(STR_FMT "\n", STR_ARG(answer->text));
    } else if (list == NULL) {
        print_line(json);
    }
    for (size_t i = 0; !cli->json && i < json_array_size(list); i++) {
        print_line(json_array_get(list, i));
    }
    return EXIT_DONE;
}

int send_request(Cli *cli, const json_t *request)
{
    Error err = {0};
    ApiAnswer answer;
    ApiClient *client = api_client_new(cli, &err);
    const char *key = args_flag(&cli->args, "idempotency-key");
    if (client != NULL && key != NULL) {
        api_client_header(client, arena_printf(cli->arena, "Idempotency-Key: %s", key));
    }
    char *body = json_dumps(request, JSON_COMPACT);
    bool ok = client != NULL &&
              api_client_call(client, "POST", "/v1/notifications", str_from(body), &answer, &err);
    int status = ok ? report(cli, client, &answer) : cli_fail(cli, &err);
    free(body);
    api_client_free(client);
    return status;
}

int cmd_send(Cli *cli)
{
    Error err = {0};
    json_t *request = json_object();
    bool ok = cli_need(cli->settings.api_key, "STENTOR_API_KEY", &err) &&
              build_request(cli, request, &err);
    int result = ok ? send_request(cli, request) : cli_fail(cli, &err);
    json_decref(request);
    return result;
}
