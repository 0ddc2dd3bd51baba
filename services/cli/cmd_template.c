// SPDX-License-Identifier: Apache-2.0
// template put: publishes a version after compiling it, so that a broken template never reaches the
// pipeline. template render: the same engine without a server.
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/bus/reader.h"
#include "common/bus/topology.h"
#include "common/codec/event.h"
#include "common/template/template.h"
#include "services/cli/config_put.h"
#include "stentor/v1/config.pb-c.h"

enum { VARIABLES_MAX = ARGS_MAX, VERSION_PART_MAX = 999999 };

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
    locale->locale = text_flag(cli, "locale", "en-US");
    locale->subject = text_flag(cli, "subject", "");
    locale->preheader = text_flag(cli, "preheader", "");
    if (!read_flag_file(cli, "html", &locale->html, err) ||
        !read_flag_file(cli, "text", &locale->text, err)) {
        return false;
    }
    if (locale->subject[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "--subject is required");
    }
    if (locale->html[0] == '\0' && locale->text[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "--html FILE or --text FILE is required");
    }
    version->locales = arena_array(cli->arena, 1, sizeof *version->locales);
    version->locales[0] = locale;
    version->n_locales = 1;
    return true;
}

// ---- checking ----

static bool compiles(
    const char *what, const char *source, TemplateEscape escape, const TemplateSet *set, Error *err)
{
    Template *compiled = template_compile(str_from(source), escape, set, err);
    if (compiled == NULL) {
        return error_wrap(err, "%s", what);
    }
    template_free(compiled);
    return true;
}

static TemplateSet *partial_set(
    const Stentor__V1__TemplateVersion *version, TemplateEscape escape, Error *err)
{
    TemplateSet *set = template_set_new();
    for (size_t i = 0; i < version->n_partials; i++) {
        const Stentor__V1__TemplatePartial *partial = version->partials[i];
        if (!template_set_add(
                set, str_from(partial->name), str_from(partial->source), escape, err)) {
            template_set_free(set);
            return NULL;
        }
    }
    return set;
}

static bool check_version(const Stentor__V1__TemplateVersion *version, Error *err)
{
    const Stentor__V1__LocaleVariant *locale = version->locales[0];
    TemplateSet *html = partial_set(version, TEMPLATE_ESCAPE_HTML, err);
    TemplateSet *plain = html != NULL ? partial_set(version, TEMPLATE_ESCAPE_NONE, err) : NULL;
    bool ok = plain != NULL &&
              compiles("--subject", locale->subject, TEMPLATE_ESCAPE_NONE, plain, err) &&
              compiles("--preheader", locale->preheader, TEMPLATE_ESCAPE_NONE, plain, err) &&
              compiles("--html", locale->html, TEMPLATE_ESCAPE_HTML, html, err) &&
              compiles("--text", locale->text, TEMPLATE_ESCAPE_NONE, plain, err);
    template_set_free(plain);
    template_set_free(html);
    return ok;
}

// ---- versions ----

typedef struct Semver {
    int64_t part[3];
} Semver;

static bool parse_semver(Str text, Semver *ret)
{
    Str rest = text;
    Str token;
    int count = 0;
    while (str_split(&rest, '.', &token)) {
        if (count == 3 || !str_to_i64(token, &ret->part[count]) || ret->part[count] < 0 ||
            ret->part[count] > VERSION_PART_MAX) {
            return false;
        }
        count++;
    }
    return count == 3;
}

static int compare_semver(Semver a, Semver b)
{
    for (int i = 0; i < 3; i++) {
        if (a.part[i] != b.part[i]) {
            return a.part[i] < b.part[i] ? -1 : 1;
        }
    }
    return 0;
}

// What is published under the key so far.
typedef struct Published {
    Session *session;
    Arena *arena;
    Str wanted; // version to look for; empty: none
    bool found; // `wanted` is there
    bool any;
    Semver highest;
} Published;

static void note_version(Published *published, const BusMessage *message)
{
    Error err;
    const Stentor__V1__TemplateVersion *version =
        (const Stentor__V1__TemplateVersion *)event_unpack(
            &stentor__v1__template_version__descriptor, message->payload, published->arena, &err);
    Semver semver;
    if (version == NULL || !parse_semver(str_from(version->version), &semver)) {
        return;
    }
    published->found = published->found || str_eq(str_from(version->version), published->wanted);
    if (!published->any || compare_semver(semver, published->highest) > 0) {
        published->highest = semver;
    }
    published->any = true;
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        note_version(ctx, &messages[i]);
    }
}

static void on_reader_caught_up(void *ctx)
{
    Published *published = ctx;
    session_finish(published->session, NULL);
}

static void on_reader_failed(void *ctx, const Error *err)
{
    Published *published = ctx;
    session_finish(published->session, err);
}

static void on_reader_freed(void *ctx)
{
    session_finish(ctx, NULL);
}

static bool read_published(
    Session *session, Cli *cli, const Stentor__V1__TemplateVersion *version, Published *ret,
    Error *err)
{
    *ret =
        (Published){.session = session, .arena = cli->arena, .wanted = str_from(version->version)};
    const char *filter =
        arena_printf(cli->arena, "cfg.template.%s.%s.*", version->tenant, version->key);
    ReaderOptions options = {.stream = "CONFIG", .filter = filter};
    ReaderHandlers handlers = {on_reader_messages, on_reader_caught_up, on_reader_failed};
    Reader *reader = reader_new(session->bus, &options, &handlers, ret);
    bool ok = session_run(session, 10000, err);
    reader_free(reader, on_reader_freed, session);
    Error ignored;
    session_run(session, 5000, &ignored);
    return ok || error_wrap(err, "reading the published versions of '%s'", version->key);
}

static bool choose_version(
    Cli *cli, const Published *published, Stentor__V1__TemplateVersion *version, Error *err)
{
    if (published->found) {
        return error_set(
            err, ERROR_CONFLICT,
            "version %s of '%s' is published and cannot change (HINT: leave --version out)",
            version->version, version->key);
    }
    if (version->version[0] == '\0') {
        Semver next = published->any ? published->highest : (Semver){{1, 0, -1}};
        version->version = arena_printf(
            cli->arena, "%lld.%lld.%lld", (long long)next.part[0], (long long)next.part[1],
            (long long)next.part[2] + 1);
    }
    return true;
}

// ---- commands ----

static bool read_version(Cli *cli, Stentor__V1__TemplateVersion *version, Error *err)
{
    version->tenant = arena_cstr(cli->arena, str_from(cli->settings.tenant));
    version->key = arena_cstr(cli->arena, str_from(args_word(&cli->args, 0)));
    version->version = text_flag(cli, "version", "");
    version->status = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    version->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    version->published_at_us = clock_now_us();
    Category category = CATEGORY_TRANSACTIONAL;
    Str name = str_from(text_flag(cli, "category", "transactional"));
    if (!id_is_key(str_from(version->key))) {
        return error_set(
            err, ERROR_PERMANENT, "'%s' is not a template key: 1 to 64 of a-z 0-9 '_' '-'",
            version->key);
    }
    if (!category_from_name(name, &category)) {
        return error_set(
            err, ERROR_PERMANENT, "--category '" STR_FMT "' is not one", STR_ARG(name));
    }
    version->category = (Stentor__V1__Category)category;
    Semver semver;
    if (version->version[0] != '\0' && !parse_semver(str_from(version->version), &semver)) {
        return error_set(err, ERROR_PERMANENT, "--version '%s': expected X.Y.Z", version->version);
    }
    read_required(cli, version);
    return read_locale(cli, version, err) && read_partials(cli, version, err) &&
           check_version(version, err);
}

int cmd_template_put(Cli *cli)
{
    Error err = {0};
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    Session session;
    if (!cli_need(cli->settings.tenant, "STENTOR_TENANT", &err) ||
        !read_version(cli, &version, &err) || !session_open(&session, cli, &err)) {
        return cli_fail(&err);
    }
    Published published;
    bool ok = read_published(&session, cli, &version, &published, &err) &&
              choose_version(cli, &published, &version, &err);
    if (ok) {
        Str key = str_from(arena_printf(cli->arena, "%s.%s", version.key, version.version));
        for (char *c = (char *)(uintptr_t)key.ptr + strlen(version.key) + 1; *c != '\0'; c++) {
            *c = *c == '.' ? '_' : *c;
        }
        ConfigEntry entry = {"template", str_from(version.tenant), key, &version.base};
        ok = config_put(&session, cli, &entry, &err);
    }
    session_close(&session);
    if (!ok) {
        return cli_fail(&err);
    }
    print_pairs(
        cli,
        (const char *const[]){
            "template", version.key, "version", version.version, "tenant", version.tenant, NULL});
    return EXIT_DONE;
}

static bool render_file(Cli *cli, Buf *out, Error *err)
{
    Str source = STR_EMPTY;
    Str data = STR("{}");
    const char *path = args_flag(&cli->args, "file");
    const char *data_path = args_flag(&cli->args, "data");
    if (path == NULL) {
        return error_set(err, ERROR_PERMANENT, "--file FILE is required");
    }
    if (!cli_read_file(cli, path, TEMPLATE_SOURCE_MAX, &source, err) ||
        (data_path != NULL && !cli_read_file(cli, data_path, 16 * 1024 * 1024, &data, err))) {
        return false;
    }
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    TemplateEscape escape =
        args_has(&cli->args, "plain") ? TEMPLATE_ESCAPE_NONE : TEMPLATE_ESCAPE_HTML;
    TemplateSet *set =
        read_partials(cli, &version, err) ? partial_set(&version, escape, err) : NULL;
    Template *compiled = set != NULL ? template_compile(source, escape, set, err) : NULL;
    json_error_t json_err;
    json_t *variables =
        compiled != NULL ? json_loadb(data.ptr, data.len, JSON_DECODE_ANY, &json_err) : NULL;
    if (compiled != NULL && variables == NULL) {
        error_set(
            err, ERROR_PERMANENT, "--data: line %d, column %d: %s", json_err.line, json_err.column,
            json_err.text);
    }
    bool ok = variables != NULL && template_render(compiled, variables, out, err);
    json_decref(variables);
    template_free(compiled);
    template_set_free(set);
    return ok;
}

int cmd_template_render(Cli *cli)
{
    Error err = {0};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    bool ok = render_file(cli, &out, &err);
    if (ok) {
        fwrite(out.ptr, 1, out.len, stdout);
    }
    buf_done(&out);
    return ok ? EXIT_DONE : cli_fail(&err);
}
