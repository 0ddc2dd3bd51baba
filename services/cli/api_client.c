// SPDX-License-Identifier: Apache-2.0
#include "services/cli/api_client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "services/cli/api_field.h"

enum {
    ANSWER_MAX = 16 * 1024 * 1024,
    LIST_LIMIT = 100, // a list's --limit
    PAGE_MAX = 1000,  // of the API
};

struct ApiClient {
    Cli *cli;
    CURL *curl;
    struct curl_slist *headers;
    const char *type;
    Buf text;
    json_t *json;
};

static const char *tenant_of(const Cli *cli)
{
    const char *flag = args_flag(&cli->args, "tenant");
    return cli->tenant != NULL ? cli->tenant : flag != NULL ? flag : cli->settings.tenant;
}

ApiClient *api_client_new(Cli *cli, Error *err)
{
    if (tenant_of(cli)[0] != '\0' && !id_is_tenant(str_from(tenant_of(cli)))) {
        error_set(
            err, ERROR_USAGE, "'%s' is not a tenant id: 1 to 32 of a-z 0-9 '_' '-'",
            tenant_of(cli));
        return NULL;
    }
    if (!cli_need(cli->settings.api_key, "STENTOR_API_KEY", err) || !cli_key_fits(cli, err)) {
        return NULL;
    }
    CURL *curl = curl_easy_init();
    if (curl == NULL) {
        error_set(err, ERROR_TRANSIENT, "libcurl cannot start");
        return NULL;
    }
    ApiClient *client = xcalloc(1, sizeof *client);
    client->cli = cli;
    client->curl = curl;
    client->type = "Content-Type: application/json";
    api_client_header(
        client, arena_printf(cli->arena, "Authorization: Bearer %s", cli->settings.api_key));
    if (tenant_of(cli)[0] != '\0') {
        api_client_header(client, arena_printf(cli->arena, "Stentor-Tenant: %s", tenant_of(cli)));
    }
    buf_init(&client->text, ANSWER_MAX);
    return client;
}

void api_client_trust(const Cli *cli, CURL *curl)
{
    if (cli->settings.api_ca_file[0] != '\0') {
        curl_easy_setopt(curl, CURLOPT_CAINFO, cli->settings.api_ca_file);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
}

void api_client_header(ApiClient *client, const char *header)
{
    client->headers = curl_slist_append(client->headers, header);
}

void api_client_free(ApiClient *client)
{
    if (client == NULL) {
        return;
    }
    json_decref(client->json);
    buf_done(&client->text);
    curl_slist_free_all(client->headers);
    curl_easy_cleanup(client->curl);
    free(client);
}

static size_t on_curl_body(char *data, size_t size, size_t count, void *ctx)
{
    return buf_append(ctx, data, size * count) ? size * count : 0;
}

void api_client_type(ApiClient *client, const char *type)
{
    client->type = arena_printf(client->cli->arena, "Content-Type: %s", type);
}

bool api_client_call(
    ApiClient *client, const char *method, const char *path, Str body, ApiAnswer *ret, Error *err)
{
    CURL *curl = client->curl;
    char url[2048];
    int length = snprintf(url, sizeof url, "%s%s", client->cli->settings.api_url, path);
    if (length < 0 || (size_t)length >= sizeof url) {
        return error_set(err, ERROR_PERMANENT, "the address of the request is too long");
    }
    curl_easy_reset(curl); // options only: the connection stays
    buf_clear(&client->text);
    json_decref(client->json);
    client->json = NULL;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    struct curl_slist *headers = curl_slist_append(NULL, client->type);
    headers->next = client->headers;
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    api_client_trust(client->cli, curl);
    if (body.ptr != NULL) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.ptr);
    }
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_curl_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &client->text);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
    CURLcode code = curl_easy_perform(curl);
    headers->next = NULL;
    curl_slist_free_all(headers);
    if (code != CURLE_OK) {
        return cli_no_answer(client->cli, curl_easy_strerror(code), err);
    }
    *ret = (ApiAnswer){.text = buf_view(&client->text)};
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->status);
    client->json = json_loadb(ret->text.ptr, ret->text.len, 0, NULL);
    ret->json = client->json;
    return true;
}

const char *api_client_answer_header(ApiClient *client, const char *name)
{
    struct curl_header *header = NULL;
    CURLHcode code = curl_easy_header(client->curl, name, 0, CURLH_HEADER, -1, &header);
    return code == CURLHE_OK ? arena_cstr(client->cli->arena, str_from(header->value)) : "";
}

static ErrorKind kind_of(long status)
{
    bool invalid = status == 400 || status == 413 || status == 422;
    return invalid                          ? ERROR_USAGE
           : status == 429 || status >= 500 ? ERROR_TRANSIENT
                                            : ERROR_PERMANENT;
}

bool api_client_explain(ApiClient *client, const ApiAnswer *answer, Error *err)
{
    Cli *cli = client->cli;
    const char *title = api_client_text(answer->json, "title", "no reason given");
    const char *detail = api_client_text(answer->json, "detail", NULL);
    const char *field = api_client_text(answer->json, "field", NULL);
    const char *option = field == NULL || cli->command == NULL
                             ? NULL
                             : api_field_option(cli->command, str_from(field), cli->arena);
    cli->problem = answer->json != NULL ? arena_cstr(cli->arena, answer->text) : NULL;
    if (option != NULL) {
        return error_set(
            err, kind_of(answer->status), "%s: %s (the API answered %ld)", option,
            detail != NULL ? detail : title, answer->status);
    }
    return error_set(
        err, kind_of(answer->status), "the API answered %ld: %s%s%s%s%s%s", answer->status, title,
        detail != NULL ? ": " : "", detail != NULL ? detail : "", field != NULL ? ", field " : "",
        field != NULL ? field : "",
        answer->status == 401 ? " (HINT: stentor login URL, or STENTOR_API_KEY)" : "");
}

const char *api_client_escape(Cli *cli, const char *text)
{
    char *escaped = curl_easy_escape(NULL, text, 0);
    const char *copy = arena_cstr(cli->arena, str_from(escaped != NULL ? escaped : ""));
    curl_free(escaped);
    return copy;
}

bool api_client_ask(
    ApiClient *client, const char *method, const char *path, json_t *body, ApiAnswer *ret,
    Error *err)
{
    char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
    Str bytes = text == NULL ? (Str){NULL, 0} : str_from(text);
    *ret = (ApiAnswer){0};
    bool ok = api_client_call(client, method, path, bytes, ret, err);
    free(text);
    json_decref(body);
    return ok && (ret->status / 100 == 2 || api_client_explain(client, ret, err));
}

bool api_client_each(
    ApiClient *client, const char *path, int64_t max, ApiEach each, void *ctx, ApiAnswer *ret,
    Error *err)
{
    Arena *arena = client->cli->arena;
    const char *page = path;
    int64_t count = 0;
    while (page != NULL) {
        size_t i = 0;
        json_t *item = NULL;
        if (!api_client_ask(client, "GET", page, NULL, ret, err)) {
            return false;
        }
        json_array_foreach(json_object_get(ret->json, "data"), i, item)
        {
            if (!each(ctx, item) || ++count == max) {
                return true;
            }
        }
        const char *next = api_client_text(ret->json, "next", NULL);
        page = next == NULL
                   ? NULL
                   : arena_printf(
                         arena, "%s%ccursor=%s", path, strchr(path, '?') == NULL ? '?' : '&', next);
    }
    return true;
}

int api_client_fail(const Cli *cli, const ApiAnswer *answer, const Error *err)
{
    return answer->status == 404 ? cli_fail_as(cli, EXIT_NOT_FOUND, "%s", err->text)
                                 : cli_fail(cli, err);
}

const char *api_client_text(const json_t *object, const char *name, const char *def)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : def;
}

void api_client_dump(const json_t *json)
{
    (void)json_dumpf(json, stdout, JSON_COMPACT);
    (void)putchar('\n');
}

static int run(Cli *cli, const char *method, const char *path, json_t *json, Str body, ApiShow show)
{
    Error err = {0};
    ApiAnswer answer = {0};
    ApiClient *client = api_client_new(cli, &err);
    bool ok = client != NULL;
    if (ok && body.ptr != NULL) {
        ok = api_client_call(client, method, path, body, &answer, &err) &&
             (answer.status / 100 == 2 || api_client_explain(client, &answer, &err));
    } else if (ok) {
        ok = api_client_ask(client, method, path, json_incref(json), &answer, &err);
    }
    int status = ok ? show(cli, answer.json) : api_client_fail(cli, &answer, &err);
    api_client_free(client);
    json_decref(json);
    return status;
}

int api_client_run(Cli *cli, const char *method, const char *path, json_t *body, ApiShow show)
{
    return run(cli, method, path, body, (Str){NULL, 0}, show);
}

int api_client_list(Cli *cli, const char *path, ApiEach each, void *ctx)
{
    Error err = {0};
    ApiAnswer answer = {0};
    ApiClient *client = api_client_new(cli, &err);
    bool ok = client != NULL && api_client_each(client, path, 0, each, ctx, &answer, &err);
    int status = ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
    api_client_free(client);
    return status;
}

const char *api_client_filter(Cli *cli, const char *path, const ApiFilter *filters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = args_flag(&cli->args, filters[i].flag);
        if (value != NULL) {
            path = arena_printf(
                cli->arena, "%s&%s=%s", path, filters[i].parameter, api_client_escape(cli, value));
        }
    }
    return path;
}

static const char *list_path(Cli *cli, const ApiList *list, int64_t limit)
{
    int64_t page = limit == 0 || limit > PAGE_MAX ? PAGE_MAX : limit;
    char first = strchr(list->path, '?') == NULL ? '?' : '&';
    const char *path = arena_printf(cli->arena, "%s%climit=%" PRId64, list->path, first, page);
    return api_client_filter(cli, path, list->filters, list->filter_count);
}

bool api_client_take(void *ctx, const json_t *item)
{
    (void)json_array_append(ctx, (json_t *)(uintptr_t)item);
    return true;
}

static void print_items(Cli *cli, const ApiList *list, const json_t *items)
{
    json_t *item = NULL;
    size_t i = 0;
    if (cli->json) {
        api_client_dump(items);
    } else if (json_array_size(items) == 0) {
        cli_note_empty(cli, list->none);
    } else if (list->head != NULL) {
        list->head();
    }
    json_array_foreach(items, i, item)
    {
        if (!cli->json) {
            list->print(cli, item);
        }
    }
}

int api_client_print_list(Cli *cli, const ApiList *list)
{
    Error err = {0};
    ApiAnswer answer = {0};
    int64_t limit = 0;
    if (!args_int(&cli->args, "limit", LIST_LIMIT, 0, INT64_MAX, &limit, &err)) {
        return cli_fail(cli, &err);
    }
    json_t *items = json_array();
    ApiClient *client = api_client_new(cli, &err);
    bool ok = client != NULL && api_client_each(
                                    client, list_path(cli, list, limit), limit, api_client_take,
                                    items, &answer, &err);
    int status = ok ? EXIT_DONE : api_client_fail(cli, &answer, &err);
    api_client_free(client);
    if (ok) {
        print_items(cli, list, items);
    }
    json_decref(items);
    return status;
}

// "limits.per_minute  5", "addresses[0].channel  email": a line for each value.
static void print_value(const Cli *cli, const char *name, const json_t *value)
{
    const char *key = NULL;
    json_t *item = NULL;
    size_t i = 0;
    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, item)
        {
            bool top = name[0] == '\0';
            print_value(cli, arena_printf(cli->arena, "%s%s%s", name, top ? "" : ".", key), item);
        }
    } else if (json_array_size(value) > 0) {
        json_array_foreach(value, i, item)
        {
            print_value(cli, arena_printf(cli->arena, "%s[%zu]", name, i), item);
        }
    } else if (json_is_string(value)) {
        printf("%-24s %s\n", name, json_string_value(value));
    } else if (!json_is_null(value) && !json_is_array(value)) {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        printf("%-24s %s\n", name, text);
        free(text);
    }
}

int api_client_show(Cli *cli, const json_t *answer)
{
    if (cli->json) {
        api_client_dump(answer);
    } else {
        print_value(cli, "", answer);
    }
    return EXIT_DONE;
}

int api_client_print(Cli *cli, const char *method, const char *path, Str body)
{
    return run(cli, method, path, NULL, body, api_client_show);
}

void api_client_warnings(Cli *cli, const json_t *answer)
{
    size_t i = 0;
    json_t *warning = NULL;
    json_array_foreach(json_object_get(answer, "warnings"), i, warning)
    {
        cli_note(cli, "warning: %s", json_string_value(warning));
    }
}
