// SPDX-License-Identifier: Apache-2.0
// template render: the pipeline's template engine over files, without a server. A partial that is
// not given is nothing, as Mustache has it; `template put` refuses it.
#include "common/model/asset.h"
#include "common/template/helpers/format.h"
#include "common/template/template.h"
#include "services/cli/cli.h"

enum { DATA_BYTES_MAX = 64 * 1024 }; // as of a notification's variables

typedef struct Work {
    TemplateSet *set;
    TemplateTools *tools;
    Template *tpl;
    json_t *data;
} Work;

static bool add_partial(
    Cli *cli, TemplateSet *set, const char *pair, TemplateEscape escape, Error *err)
{
    Str rest = str_from(pair);
    Str name;
    Str source;
    str_split(&rest, '=', &name);
    if (name.len == 0 || rest.len == 0) {
        return error_set(err, ERROR_USAGE, "--partial '%s': expected NAME=FILE", pair);
    }
    return (cli_read_file(cli, arena_cstr(cli->arena, rest), TEMPLATE_SOURCE_MAX, &source, err) ||
            error_wrap(err, "--partial '%s'", pair)) &&
           template_set_add(set, name, source, escape, err);
}

static bool read_data(Cli *cli, json_t **ret, Error *err)
{
    const char *path = args_flag(&cli->args, "data");
    Str text = STR("{}");
    json_error_t where;
    if (path != NULL && !cli_read_file(cli, path, DATA_BYTES_MAX, &text, err)) {
        return error_wrap(err, "--data");
    }
    *ret = json_loadb(text.ptr, text.len, JSON_DECODE_ANY, &where);
    return *ret != NULL || error_set(
                               err, ERROR_USAGE, "--data: line %d, column %d: %s", where.line,
                               where.column, where.text);
}

static bool compile_file(Cli *cli, Work *work, Error *err)
{
    const char *path = args_flag(&cli->args, "file");
    const char *pair = NULL;
    Str source;
    TemplateEscape escape =
        args_has(&cli->args, "plain") ? TEMPLATE_ESCAPE_NONE : TEMPLATE_ESCAPE_HTML;
    if (path == NULL) {
        return error_set(err, ERROR_USAGE, "--file FILE is required");
    }
    if (!cli_read_file(cli, path, TEMPLATE_SOURCE_MAX, &source, err)) {
        return error_wrap(err, "--file");
    }
    template_set_allow_missing(work->set);
    for (int i = 0; (pair = args_each(&cli->args, "partial", &i)) != NULL;) {
        if (!add_partial(cli, work->set, pair, escape, err)) {
            return false;
        }
    }
    work->tpl = template_compile(source, escape, work->set, err);
    return work->tpl != NULL;
}

// As a relative address: a browser shows the file of that name next to the output.
static bool find_asset(void *ctx, Str name, Buf *out, Error *err)
{
    (void)ctx;
    return asset_is_name(name)
               ? buf_str(out, name)
               : error_set(err, ERROR_PERMANENT, "expected an asset's name such as 'logo.png'");
}

static bool render(Cli *cli, Work *work, Buf *out, Error *err)
{
    const char *zone = args_flag(&cli->args, "zone");
    TemplateAssets assets = {.find = find_asset};
    TemplateContext context = {
        .locale = str_from(args_flag(&cli->args, "locale")),
        .zone = str_from(zone),
        .strict = args_has(&cli->args, "strict"),
        .tools = work->tools,
        .assets = &assets,
    };
    if (zone != NULL && !format_zone_exists(str_from(zone))) {
        return error_set(
            err, ERROR_USAGE,
            "--zone '%s' is not a time zone: expected a name such as 'Europe/Berlin'", zone);
    }
    return compile_file(cli, work, err) && read_data(cli, &work->data, err) &&
           template_render_in(work->tpl, &context, work->data, out, err);
}

static void print_output(const Cli *cli, Buf *out)
{
    if (!cli->json) {
        fwrite(out->ptr, 1, out->len, stdout);
        return;
    }
    Buf json;
    buf_init(&json, 8 * TEMPLATE_OUTPUT_MAX);
    buf_cstr(&json, "{\"output\": ");
    buf_json(&json, buf_view(out));
    buf_cstr(&json, "}\n");
    fwrite(json.ptr, 1, json.len, stdout);
    buf_done(&json);
}

int cmd_template_render(Cli *cli)
{
    Error err = {0};
    Work work = {.set = template_set_new(), .tools = template_tools_new()};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    bool ok = render(cli, &work, &out, &err);
    if (ok) {
        print_output(cli, &out);
    }
    buf_done(&out);
    json_decref(work.data);
    template_free(work.tpl);
    template_set_free(work.set);
    template_tools_free(work.tools);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}
