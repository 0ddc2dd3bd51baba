// SPDX-License-Identifier: Apache-2.0
// template preview: what a version would say, with its sample or other data. template test-send: an
// ordinary notification with them, to one's own address.
#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/render/preview.h"
#include "common/render/version_json.h"
#include "services/cli/manage/send.h"
#include "services/cli/manage/template_store.h"

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
    if (!cli_read_file(cli, path, VERSION_SAMPLE_MAX, &text, err)) {
        return error_wrap(err, "--data");
    }
    *ret = json_loadb(text.ptr, text.len, 0, &where);
    if (*ret == NULL) {
        return error_set(
            err, ERROR_PERMANENT, "--data '%s': line %d, column %d: %s", path, where.line,
            where.column, where.text);
    }
    if (!json_is_object(*ret)) {
        json_decref(*ret);
        *ret = NULL;
        return error_set(err, ERROR_PERMANENT, "--data '%s': not a JSON object", path);
    }
    return true;
}

static const StoredVersion *choose(Cli *cli, const TemplateStore *store)
{
    const char *wanted = args_flag(&cli->args, "version");
    return wanted != NULL ? template_store_find(store, wanted) : template_store_best(store);
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

static bool render(Cli *cli, const StoredVersion *stored, json_t **ret, Error *err)
{
    Str packed;
    json_t *data = NULL;
    RenderFailure failure = {.code = FAILURE_NONE};
    if (!read_data(cli, &data, err) ||
        !event_pack(&stored->whole->base, cli->arena, &packed, err)) {
        return false;
    }
    CompiledVersion *version = version_compile(packed);
    PreviewAsk ask = {.locale = str_from(args_flag(&cli->args, "locale")), .data = data};
    bool ok = version->broken.kind == ERROR_NONE;
    if (!ok) {
        *err = version->broken;
    } else if (!preview(version, &ask, ret, &failure)) {
        ok = error_set(
            err, ERROR_PERMANENT, "%s: %s", failure_code_name(failure.code), failure.reason);
    }
    version_free(version);
    json_decref(data);
    return ok;
}

int cmd_template_preview(Cli *cli)
{
    Error err = {0};
    Session session;
    TemplateStore store;
    json_t *answer = NULL;
    const char *key = args_word(&cli->args, 0);
    if (!template_store_open(&session, cli, key, true, &store, &err)) {
        return cli_fail(&err);
    }
    session_close(&session);
    const StoredVersion *stored = choose(cli, &store);
    if (stored == NULL) {
        return template_not_found(key, args_flag(&cli->args, "version"));
    }
    if (!render(cli, stored, &answer, &err)) {
        return cli_fail(&err);
    }
    if (cli->json) {
        (void)json_object_set_new(answer, "version", json_string(stored->version));
        char *text = json_dumps(answer, JSON_INDENT(2));
        printf("%s\n", text);
        free(text);
    } else {
        print_parts(answer);
    }
    json_decref(answer);
    return EXIT_DONE;
}

// ---- test send ----

static json_t *test_request(Cli *cli, const StoredVersion *stored, json_t *data)
{
    const char *locale = args_flag(&cli->args, "locale");
    json_t *variables =
        data != NULL ? json_incref(data) : json_loads(stored->whole->sample_json, 0, NULL);
    json_t *request = json_pack(
        "{s:s,s:s,s:s,s:s,s:s}", "to", args_flag(&cli->args, "to"), "template", stored->key,
        "template_version", stored->version, "category", "transactional", "correlation_id",
        arena_printf(cli->arena, "test-send/%s/%s", stored->key, stored->version));
    (void)json_object_set_new(
        request, "channel", json_string(channel_name((Channel)stored->channel)));
    (void)json_object_set_new(request, "variables", variables != NULL ? variables : json_object());
    if (locale != NULL) {
        (void)json_object_set_new(request, "locale", json_string(locale));
    }
    return request;
}

int cmd_template_test_send(Cli *cli)
{
    Error err = {0};
    Session session;
    TemplateStore store;
    json_t *data = NULL;
    const char *key = args_word(&cli->args, 0);
    if (args_flag(&cli->args, "to") == NULL) {
        error_set(&err, ERROR_PERMANENT, "--to ADDRESS is required");
        return cli_fail(&err);
    }
    if (!cli_need(cli->settings.api_key, "STENTOR_API_KEY", &err) || !read_data(cli, &data, &err) ||
        !template_store_open(&session, cli, key, true, &store, &err)) {
        json_decref(data);
        return cli_fail(&err);
    }
    session_close(&session);
    const StoredVersion *stored = choose(cli, &store);
    json_t *request = stored != NULL ? test_request(cli, stored, data) : NULL;
    json_decref(data);
    if (request == NULL) {
        return template_not_found(key, args_flag(&cli->args, "version"));
    }
    int result = send_request(cli, request);
    json_decref(request);
    return result;
}
