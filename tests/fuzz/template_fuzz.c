// SPDX-License-Identifier: Apache-2.0
// links: stentor_template
// Source, and behind a NUL the JSON of the variables (none: a fixed object). Whatever compiles must
// render within its limits, and twice the same; in a locale and a zone, and strictly.
#include <assert.h>
#include <string.h>

#include "common/template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *variables_of(const uint8_t *json, size_t size)
{
    static const char fixed[] = "{\"a\":{\"b\":[1,2.5,\"<x>\",null,true,{\"c\":[]}]},\"s\":"
                                "\"text\",\"n\":0,\"o\":{\"k\":1}}";
    json_t *variables = json_loadb((const char *)json, size, JSON_DECODE_ANY, NULL);
    return variables != NULL ? variables : json_loads(fixed, 0, NULL);
}

static bool find_asset(void *ctx, Str name, Buf *out, Error *err)
{
    (void)ctx;
    return name.len > 0 ? buf_str(out, name) : error_set(err, ERROR_PERMANENT, "no name");
}

static void count_asset(void *ctx, Str name)
{
    *(size_t *)ctx += name.len;
}

static void render_twice(const Template *tpl, const json_t *variables)
{
    Buf first;
    Buf second;
    buf_init(&first, 2 * TEMPLATE_OUTPUT_MAX);
    buf_init(&second, 2 * TEMPLATE_OUTPUT_MAX);
    Error err = {0};
    bool ok = template_render(tpl, variables, &first, &err);
    assert(ok || err.kind == ERROR_PERMANENT);
    assert(!ok || first.len <= TEMPLATE_OUTPUT_MAX);
    assert(template_render(tpl, variables, &second, NULL) == ok);
    assert(str_eq(buf_view(&first), buf_view(&second)));
    static TemplateTools *tools = NULL;
    if (tools == NULL) {
        tools = template_tools_new();
    }
    static const TemplateAssets assets = {.find = find_asset};
    TemplateContext context = {
        .locale = STR("fa-AF"),
        .zone = STR("Europe/Berlin"),
        .strict = true,
        .tools = tools,
        .assets = &assets,
    };
    buf_clear(&second);
    ok = template_render_in(tpl, &context, variables, &second, &err);
    assert(ok || err.kind == ERROR_PERMANENT);
    buf_done(&first);
    buf_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size > 0 ? memchr(data, '\0', size) : NULL;
    size_t len = nul == NULL ? size : (size_t)(nul - data);
    Str source = str_of(data, len);
    json_t *variables = nul == NULL ? variables_of(NULL, 0) : variables_of(nul + 1, size - len - 1);
    TemplateSet *set = template_set_new();
    Error err = {0};
    // The source is its own partial too, so that recursion is tried.
    bool ok = template_set_add(set, STR("p"), source, TEMPLATE_ESCAPE_NONE, &err);
    Template *tpl = ok ? template_compile(source, TEMPLATE_ESCAPE_HTML, set, &err) : NULL;
    assert(tpl != NULL || err.kind == ERROR_PERMANENT);
    if (tpl != NULL) {
        size_t named = 0;
        template_assets(tpl, count_asset, &named);
        assert(named <= 3 * source.len); // the source, and itself as a partial
        render_twice(tpl, variables);
    }
    template_free(tpl);
    template_set_free(set);
    json_decref(variables);
    return 0;
}
