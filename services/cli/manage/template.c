// SPDX-License-Identifier: Apache-2.0
// template put: a version's document from flags and files, or from a document that they go over, to
// POST /v1/templates. The API compiles it, so a broken template never reaches the pipeline.
#include <jansson.h>
#include <string.h>

#include "common/template/template.h"
#include "services/cli/api_client.h"
#include "services/cli/manage/template_show.h"

enum { DOCUMENT_BYTES_MAX = 4 * 1024 * 1024 };

// ---- content from the command line ----

static bool set_text(json_t *object, const char *field, const char *text, Error *err)
{
    return text == NULL || json_object_set_new(object, field, json_string(text)) == 0 ||
           error_set(err, ERROR_USAGE, "field '%s' is not UTF-8", field);
}

// The flag's file becomes the field.
static bool set_file(
    Cli *cli, const char *flag, const char *path, json_t *object, const char *field, Error *err)
{
    Str text;
    if (path == NULL) {
        return true;
    }
    if (!cli_read_file(cli, path, TEMPLATE_SOURCE_MAX, &text, err)) {
        return error_wrap(err, "--%s", flag);
    }
    return json_object_set_new(object, field, json_stringn(text.ptr, text.len)) == 0 ||
           error_set(err, ERROR_USAGE, "--%s: '%s' is not UTF-8", flag, path);
}

// "name=file" pairs become partials.
static bool set_partials(Cli *cli, json_t *document, Error *err)
{
    json_t *partials = json_object();
    const char *pair;
    (void)json_object_set_new(document, "partials", partials);
    for (int i = 0; (pair = args_each(&cli->args, "partial", &i)) != NULL;) {
        Str rest = str_from(pair);
        Str name;
        str_split(&rest, '=', &name);
        if (name.len == 0 || rest.len == 0) {
            return error_set(err, ERROR_USAGE, "--partial '%s': expected NAME=FILE", pair);
        }
        if (!set_file(
                cli, "partial", arena_cstr(cli->arena, rest), partials,
                arena_cstr(cli->arena, name), err)) {
            return false;
        }
    }
    return true;
}

// "name[:type]" flags become required variables.
static void set_required(Cli *cli, json_t *document)
{
    json_t *variables = json_array();
    const char *text;
    for (int i = 0; (text = args_each(&cli->args, "require", &i)) != NULL;) {
        Str rest = str_from(text);
        Str name;
        str_split(&rest, ':', &name);
        (void)json_array_append_new(
            variables, json_pack(
                           "{s:s, s:s, s:b}", "name", arena_cstr(cli->arena, name), "type",
                           arena_cstr(cli->arena, rest), "required", true));
    }
    (void)json_object_set_new(document, "variables", variables);
}

static bool set_locale(Cli *cli, json_t *document, Error *err)
{
    const char *channel = args_flag(&cli->args, "channel");
    const char *tag = args_flag(&cli->args, "locale");
    const char *html = args_flag(&cli->args, "html");
    const char *text = args_flag(&cli->args, "text");
    json_t *locale = json_object();
    (void)json_object_set_new(document, "locales", json_pack("[o]", locale));
    if (channel == NULL || strcmp(channel, "email") == 0) {
        if (args_flag(&cli->args, "subject") == NULL) {
            return error_set(err, ERROR_USAGE, "--subject is required");
        }
        if (html == NULL && text == NULL) {
            return error_set(err, ERROR_USAGE, "--html FILE or --text FILE is required");
        }
    }
    return set_text(locale, "locale", tag != NULL ? tag : "en-US", err) &&
           set_text(locale, "subject", args_flag(&cli->args, "subject"), err) &&
           set_text(locale, "preheader", args_flag(&cli->args, "preheader"), err) &&
           set_text(locale, "title", args_flag(&cli->args, "title"), err) &&
           set_file(cli, "html", html, locale, "html", err) &&
           set_file(cli, "text", text, locale, "text", err);
}

// ---- the document ----

// --from FILE.json: the whole of it, with as many locales as it likes.
static bool read_document(Cli *cli, const char *path, json_t **ret, Error *err)
{
    Str text;
    json_error_t where;
    if (!cli_read_file(cli, path, DOCUMENT_BYTES_MAX, &text, err)) {
        return error_wrap(err, "--from");
    }
    json_t *document = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(document)) {
        json_decref(document);
        return error_set(
            err, ERROR_USAGE, "--from '%s': line %d, column %d: %s", path, where.line, where.column,
            document == NULL ? where.text : "expected an object");
    }
    *ret = document;
    return true;
}

static bool set_sample(Cli *cli, json_t *document, Error *err)
{
    const char *path = args_flag(&cli->args, "sample");
    Str text;
    if (path == NULL) {
        return true;
    }
    if (!cli_read_file(cli, path, TEMPLATE_SOURCE_MAX, &text, err)) {
        return error_wrap(err, "--sample");
    }
    json_t *sample = json_loadb(text.ptr, text.len, 0, NULL);
    if (!json_is_object(sample)) {
        json_decref(sample);
        return error_set(err, ERROR_USAGE, "--sample: not a JSON object");
    }
    return json_object_set_new(document, "sample", sample) == 0;
}

static void set_fallbacks(Cli *cli, json_t *document)
{
    const char *locale = NULL;
    json_t *list = json_array();
    for (int i = 0; (locale = args_each(&cli->args, "fallback", &i)) != NULL;) {
        (void)json_array_append_new(list, json_string(locale));
    }
    if (json_array_size(list) > 0) {
        (void)json_object_set(document, "fallback_locales", list);
    }
    json_decref(list);
}

// Flags about the version; a field of the document that no flag names stays.
static bool set_facts(Cli *cli, json_t *document, Error *err)
{
    static const char *const fields[][2] = {
        {"version", "version"}, {"category", "category"},         {"channel", "channel"},
        {"source", "source"},   {"provenance", "provenance"},     {"approved-by", "approved_by"},
        {"by", "published_by"}, {"priority", "default_priority"}, {"supersedes", "supersedes"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!set_text(document, fields[i][1], args_flag(&cli->args, fields[i][0]), err)) {
            return false;
        }
    }
    set_fallbacks(cli, document);
    if (args_has(&cli->args, "allow-category-change")) {
        (void)json_object_set_new(document, "allow_category_change", json_true());
    }
    const char *status = args_has(&cli->args, "draft") ? "draft" : "active";
    return set_sample(cli, document, err) &&
           set_text(document, "key", args_word(&cli->args, 0), err) &&
           set_text(document, "status", status, err);
}

static bool build(Cli *cli, json_t **ret, Error *err)
{
    const char *from = args_flag(&cli->args, "from");
    if (from != NULL) {
        return read_document(cli, from, ret, err) && set_facts(cli, *ret, err);
    }
    *ret = json_object();
    set_required(cli, *ret);
    return set_partials(cli, *ret, err) && set_locale(cli, *ret, err) && set_facts(cli, *ret, err);
}

static int show_published(Cli *cli, const json_t *version)
{
    api_client_warnings(cli, version);
    print_pairs(
        cli, (const char *const[]){
                 "template", api_client_text(version, "key", ""), "version",
                 api_client_text(version, "version", ""), "tenant",
                 api_client_text(version, "tenant", ""), "status",
                 api_client_text(version, "status", ""), "channel",
                 api_client_text(version, "channel", ""), "category",
                 api_client_text(version, "category", ""), NULL});
    return EXIT_DONE;
}

int cmd_template_put(Cli *cli)
{
    Error err = {0};
    json_t *document = NULL;
    if (!build(cli, &document, &err)) {
        json_decref(document);
        return cli_fail(cli, &err);
    }
    return api_client_run(cli, "POST", "/v1/templates", document, show_published);
}
