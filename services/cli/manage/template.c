// SPDX-License-Identifier: Apache-2.0
// template put: publishes a version after compiling it, so that a broken template never reaches the
// pipeline.
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/render/version_json.h"
#include "services/cli/manage/template_store.h"

enum { VARIABLES_MAX = ARGS_MAX, DOCUMENT_BYTES_MAX = 4 * 1024 * 1024 };

// ---- words from the command line ----

static bool read_flag_file(Cli *cli, const char *flag, char **ret, Error *err)
{
    const char *path = args_flag(&cli->args, flag);
    *ret = arena_cstr(cli->arena, STR_EMPTY);
    if (path == NULL) {
        return true;
    }
    Str text;
    if (!cli_read_file(cli, path, TEMPLATE_SOURCE_MAX, &text, err)) {
        return error_wrap(err, "--%s", flag);
    }
    if (!str_is_utf8(text)) {
        return error_set(err, ERROR_PERMANENT, "--%s: '%s' is not UTF-8", flag, path);
    }
    *ret = arena_cstr(cli->arena, text);
    return true;
}

// "name=file" pairs become partials.
static bool read_partials(Cli *cli, Stentor__V1__TemplateVersion *version, Error *err)
{
    version->partials = arena_array(cli->arena, ARGS_MAX, sizeof *version->partials);
    const char *pair;
    for (int i = 0; (pair = args_each(&cli->args, "partial", &i)) != NULL;) {
        Str rest = str_from(pair);
        Str name;
        str_split(&rest, '=', &name);
        if (name.len == 0 || rest.len == 0) {
            return error_set(err, ERROR_PERMANENT, "--partial '%s': expected NAME=FILE", pair);
        }
        Str source;
        if (!cli_read_file(cli, arena_cstr(cli->arena, rest), TEMPLATE_SOURCE_MAX, &source, err)) {
            return error_wrap(err, "--partial '%s'", pair);
        }
        Stentor__V1__TemplatePartial *partial = arena_alloc(cli->arena, sizeof *partial);
        stentor__v1__template_partial__init(partial);
        partial->name = arena_cstr(cli->arena, name);
        partial->source = arena_cstr(cli->arena, source);
        version->partials[version->n_partials++] = partial;
    }
    return true;
}

// "name[:type]" flags become required variables.
static void read_required(Cli *cli, Stentor__V1__TemplateVersion *version)
{
    version->variables = arena_array(cli->arena, VARIABLES_MAX, sizeof *version->variables);
    const char *text;
    for (int i = 0; (text = args_each(&cli->args, "require", &i)) != NULL;) {
        Str rest = str_from(text);
        Str name;
        str_split(&rest, ':', &name);
        Stentor__V1__TemplateVariable *variable = arena_alloc(cli->arena, sizeof *variable);
        stentor__v1__template_variable__init(variable);
        variable->name = arena_cstr(cli->arena, name);
        variable->type = arena_cstr(cli->arena, rest);
        variable->required = true;
        version->variables[version->n_variables++] = variable;
    }
}

static char *text_flag(Cli *cli, const char *name, const char *def)
{
    const char *value = args_flag(&cli->args, name);
    return arena_cstr(cli->arena, str_from(value != NULL ? value : def));
}

static bool read_locale(Cli *cli, Stentor__V1__TemplateVersion *version, Error *err)
{
    Stentor__V1__LocaleVariant *locale = arena_alloc(cli->arena, sizeof *locale);
    stentor__v1__locale_variant__init(locale);
    bool is_mail = version->channel == STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    locale->locale = text_flag(cli, "locale", "en-US");
    locale->subject = text_flag(cli, "subject", "");
    locale->preheader = text_flag(cli, "preheader", "");
    locale->title = text_flag(cli, "title", "");
    if (!read_flag_file(cli, "html", &locale->html, err) ||
        !read_flag_file(cli, "text", &locale->text, err)) {
        return false;
    }
    if (is_mail && locale->subject[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "--subject is required");
    }
    if (is_mail && locale->html[0] == '\0' && locale->text[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "--html FILE or --text FILE is required");
    }
    version->locales = arena_array(cli->arena, 1, sizeof *version->locales);
    version->locales[0] = locale;
    version->n_locales = 1;
    return true;
}

// ---- versions ----

static bool choose_version(
    Cli *cli, const TemplateStore *store, Stentor__V1__TemplateVersion *version, Error *err)
{
    const StoredVersion *there = template_store_find(store, version->version);
    if (there != NULL && there->status != STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT) {
        return error_set(
            err, ERROR_CONFLICT,
            "version %s of '%s' is published and cannot change (HINT: leave --version out)",
            version->version, version->key);
    }
    if (version->version[0] == '\0') {
        version->version = template_store_next(cli, store);
    }
    return true;
}

// ---- commands ----

// Category, channel and what is told about the version; what stands in a document given with
// --from stays where no flag speaks.
static bool read_facts(Cli *cli, Stentor__V1__TemplateVersion *version, Error *err)
{
    const char *category_text = args_flag(&cli->args, "category");
    const char *channel_text = args_flag(&cli->args, "channel");
    Category category = (Category)version->category;
    Channel channel = (Channel)version->channel;
    if (category_text != NULL && !category_from_name(str_from(category_text), &category)) {
        return error_set(err, ERROR_PERMANENT, "--category '%s' is not one", category_text);
    }
    if (channel_text != NULL && !channel_from_name(str_from(channel_text), &channel)) {
        return error_set(err, ERROR_PERMANENT, "--channel '%s' is not one", channel_text);
    }
    version->category = (Stentor__V1__Category)category;
    version->channel = (Stentor__V1__Channel)channel;
    version->source = text_flag(cli, "source", version->source);
    version->provenance = text_flag(cli, "provenance", version->provenance);
    version->approved_by = text_flag(cli, "approved-by", version->approved_by);
    return true;
}

static bool read_sample(Cli *cli, Stentor__V1__TemplateVersion *version, Error *err)
{
    if (!args_has(&cli->args, "sample")) {
        return true;
    }
    json_error_t where;
    if (!read_flag_file(cli, "sample", &version->sample_json, err)) {
        return false;
    }
    json_t *sample = json_loads(version->sample_json, 0, &where);
    bool ok = json_is_object(sample);
    json_decref(sample);
    return ok || error_set(err, ERROR_PERMANENT, "--sample: not a JSON object");
}

static void read_fallbacks(Cli *cli, Stentor__V1__TemplateVersion *version)
{
    const char *locale = NULL;
    if (!args_has(&cli->args, "fallback")) {
        return;
    }
    version->fallback_locales = arena_array(cli->arena, ARGS_MAX, sizeof(char *));
    version->n_fallback_locales = 0;
    for (int i = 0; (locale = args_each(&cli->args, "fallback", &i)) != NULL;) {
        version->fallback_locales[version->n_fallback_locales++] =
            arena_cstr(cli->arena, str_from(locale));
    }
}

// --from FILE.json: the whole document, with as many locales as it likes.
static bool read_document(
    Cli *cli, const char *path, Stentor__V1__TemplateVersion *version, Error *err)
{
    Str text;
    json_error_t where;
    FieldFault fault;
    if (!cli_read_file(cli, path, DOCUMENT_BYTES_MAX, &text, err)) {
        return error_wrap(err, "--from");
    }
    json_t *json = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &where);
    if (json == NULL) {
        return error_set(
            err, ERROR_PERMANENT, "--from '%s': line %d, column %d: %s", path, where.line,
            where.column, where.text);
    }
    bool ok = version_from_json(json, cli->arena, version, &fault);
    json_decref(json);
    return ok || error_set(
                     err, ERROR_PERMANENT, "--from '%s': field '%s': %s", path, fault.field,
                     fault.detail);
}

static bool read_words(Cli *cli, Stentor__V1__TemplateVersion *version, Error *err)
{
    const char *document = args_flag(&cli->args, "from");
    if (document != NULL) {
        return read_document(cli, document, version, err);
    }
    version->category = STENTOR__V1__CATEGORY__CATEGORY_TRANSACTIONAL;
    version->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    read_required(cli, version);
    return read_partials(cli, version, err);
}

static bool read_version(Cli *cli, Stentor__V1__TemplateVersion *version, Error *err)
{
    if (!read_words(cli, version, err) || !read_facts(cli, version, err) ||
        !read_sample(cli, version, err)) {
        return false;
    }
    read_fallbacks(cli, version);
    version->tenant = arena_cstr(cli->arena, str_from(cli->settings.tenant));
    version->key = arena_cstr(cli->arena, str_from(args_word(&cli->args, 0)));
    version->version = text_flag(cli, "version", version->version);
    version->published_at_us = clock_now_us();
    version->published_by = text_flag(cli, "by", "cli");
    if (!id_is_key(str_from(version->key))) {
        return error_set(
            err, ERROR_PERMANENT, "'%s' is not a template key: 1 to 64 of a-z 0-9 '_' '-'",
            version->key);
    }
    Semver semver;
    if (version->version[0] != '\0' && !parse_semver(str_from(version->version), &semver)) {
        return error_set(err, ERROR_PERMANENT, "--version '%s': expected X.Y.Z", version->version);
    }
    Stentor__V1__TemplateStatus wanted = args_has(&cli->args, "draft")
                                             ? STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT
                                             : STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    bool from = args_has(&cli->args, "from");
    if ((!from && !read_locale(cli, version, err)) || !version_may_become(version, wanted, err)) {
        return false;
    }
    version->status = wanted;
    return version_check(version, err);
}

int cmd_template_put(Cli *cli)
{
    Error err = {0};
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    Session session;
    if (!cli_need(cli->settings.tenant, "STENTOR_TENANT", &err) ||
        !read_version(cli, &version, &err) ||
        !session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(&err);
    }
    TemplateStore store;
    bool ok =
        template_store_read(&session, cli, version.tenant, version.key, false, &store, &err) &&
        choose_version(cli, &store, &version, &err) &&
        template_store_put(&session, cli, &store, &version, &err);
    session_close(&session);
    if (!ok) {
        return cli_fail(&err);
    }
    print_pairs(
        cli, (const char *const[]){
                 "template", version.key, "version", version.version, "tenant", version.tenant,
                 "status", version_status_name(version.status), NULL});
    return EXIT_DONE;
}
