// SPDX-License-Identifier: Apache-2.0
#include "services/cli/manage/send_attach.h"

#include <string.h>

#include "common/codec/attachment.h"
#include "services/cli/api_client.h"

static const char *type_of(Str name)
{
    static const struct {
        const char *ending, *type;
    } rows[] = {
        {".pdf", "application/pdf"},   {".png", "image/png"},       {".jpg", "image/jpeg"},
        {".jpeg", "image/jpeg"},       {".gif", "image/gif"},       {".txt", "text/plain"},
        {".csv", "text/csv"},          {".html", "text/html"},      {".ics", "text/calendar"},
        {".json", "application/json"}, {".xml", "application/xml"}, {".zip", "application/zip"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = strlen(rows[i].ending);
        if (name.len > len &&
            str_eq_nocase(str_slice(name, name.len - len, name.len), str_from(rows[i].ending))) {
            return rows[i].type;
        }
    }
    return "application/octet-stream";
}

static const char *upload(Cli *cli, const char *path, Error *err)
{
    Str bytes = STR_EMPTY;
    ApiAnswer answer = {0};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    // One byte more than the API ever takes: it says how much is allowed.
    if (!cli_read_file(cli, path, ATTACHMENT_BYTES_MAX + 1, &bytes, err)) {
        (void)error_wrap(err, "--attach");
        return NULL;
    }
    ApiClient *client = api_client_new(cli, err);
    if (client == NULL) {
        return NULL;
    }
    api_client_type(client, type_of(str_from(name)));
    bytes.ptr = bytes.len == 0 ? "" : bytes.ptr; // an empty file is the API's to refuse
    bool ok = api_client_call(
                  client, "POST",
                  arena_printf(cli->arena, "/v1/attachments?name=%s", api_client_escape(cli, name)),
                  bytes, &answer, err) &&
              (answer.status == 201 || api_client_explain(client, &answer, err));
    const char *id =
        ok ? arena_cstr(cli->arena, str_from(api_client_text(answer.json, "id", ""))) : NULL;
    if (!ok) {
        (void)error_wrap(err, "--attach %s", path);
    }
    api_client_free(client);
    return id;
}

bool send_attach(Cli *cli, json_t *request, Error *err)
{
    const char *word = NULL;
    json_t *list = json_array();
    bool ok = true;
    for (int i = 0; ok && (word = args_each(&cli->args, "attach", &i)) != NULL;) {
        const char *id = word;
        if (!str_starts(str_from(word), STR("att_"))) {
            ok = !args_has(&cli->args, "idempotency-key") ||
                 error_set(
                     err, ERROR_USAGE,
                     "--attach FILE is another upload each time, so the repeat of an "
                     "--idempotency-key would be another request: name the id of an uploaded file");
            id = ok ? upload(cli, word, err) : NULL;
            ok = id != NULL;
        }
        ok = ok && (json_array_append_new(list, json_pack("{s:s}", "id", id)) == 0 ||
                    error_set(err, ERROR_USAGE, "--attach is not UTF-8"));
    }
    if (ok && json_array_size(list) > 0) {
        (void)json_object_set(request, "attachments", list);
    }
    json_decref(list);
    return ok;
}
