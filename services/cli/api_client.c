// SPDX-License-Identifier: Apache-2.0
#include "services/cli/api_client.h"

#include <curl/curl.h>
#include <stdlib.h>

enum { ANSWER_MAX = 16 * 1024 * 1024 };

struct ApiClient {
    Cli *cli;
    CURL *curl;
    struct curl_slist *headers;
    Buf text;
    json_t *json;
};

ApiClient *api_client_new(Cli *cli, Error *err)
{
    if (!cli_need(cli->settings.api_key, "STENTOR_API_KEY", err)) {
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
    client->headers = curl_slist_append(NULL, "Content-Type: application/json");
    client->headers = curl_slist_append(
        client->headers,
        arena_printf(cli->arena, "Authorization: Bearer %s", cli->settings.api_key));
    buf_init(&client->text, ANSWER_MAX);
    return client;
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
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->headers);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    if (body.ptr != NULL) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.ptr);
    }
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_curl_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &client->text);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
    CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK) {
        return cli_no_answer(client->cli, curl_easy_strerror(code), err);
    }
    *ret = (ApiAnswer){.text = buf_view(&client->text)};
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->status);
    client->json = json_loadb(ret->text.ptr, ret->text.len, 0, NULL);
    ret->json = client->json;
    return true;
}

bool api_client_explain(const ApiAnswer *answer, Error *err)
{
    const char *title = json_string_value(json_object_get(answer->json, "title"));
    const char *detail = json_string_value(json_object_get(answer->json, "detail"));
    const char *field = json_string_value(json_object_get(answer->json, "field"));
    bool again = answer->status == 429 || answer->status >= 500;
    return error_set(
        err, again ? ERROR_TRANSIENT : ERROR_PERMANENT, "the API answered %ld: %s%s%s%s%s",
        answer->status, title != NULL ? title : "no reason given", detail != NULL ? ": " : "",
        detail != NULL ? detail : "", field != NULL ? ", field " : "", field != NULL ? field : "");
}

const char *api_client_escape(ApiClient *client, const char *text)
{
    char *escaped = curl_easy_escape(client->curl, text, 0);
    const char *copy = arena_cstr(client->cli->arena, str_from(escaped != NULL ? escaped : ""));
    curl_free(escaped);
    return copy;
}

int api_client_print(Cli *cli, const char *method, const char *path, Str body)
{
    Error err = {0};
    ApiAnswer answer;
    ApiClient *client = api_client_new(cli, &err);
    int status = EXIT_FAILED;
    if (client == NULL || !api_client_call(client, method, path, body, &answer, &err)) {
        status = cli_fail(&err);
    } else if (answer.status / 100 != 2) {
        (void)api_client_explain(&answer, &err);
        status = cli_fail(&err);
        status = answer.status == 404 ? EXIT_NOT_FOUND : status;
    } else {
        char *text = json_dumps(
            answer.json, cli->json ? JSON_COMPACT : JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        printf("%s\n", text != NULL ? text : "{}");
        free(text);
        status = EXIT_DONE;
    }
    api_client_free(client);
    return status;
}
