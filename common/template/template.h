// SPDX-License-Identifier: Apache-2.0
// Templates, Handlebars-compatible: compiled once into a flat list of operations, rendered against
// JSON as often as wanted. Pure: no I/O, no clock; locale and zone are arguments. Not Handlebars:
// no custom helpers, no decorators but inline partials. Language and limits: README.md of this
// folder.
#pragma once

#include <jansson.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/error.h"

enum {
    TEMPLATE_SOURCE_MAX = 256 * 1024,
    TEMPLATE_OUTPUT_MAX = 512 * 1024,
    TEMPLATE_DEPTH_MAX = 32,         // blocks and partials inside each other
    TEMPLATE_ITERATIONS_MAX = 10000, // rounds of all #each, and calls of partials, of one render
    TEMPLATE_STEPS_MAX = 1000000,    // operations of one render
    TEMPLATE_PARTIALS_MAX = 128,     // in one set, and inline ones in one source
    TEMPLATE_PARTIAL_NAME_MAX = 64,
};

typedef enum TemplateEscape {
    TEMPLATE_ESCAPE_HTML, // {{x}}: & < > " ' ` = become entities; {{{x}}} and {{&x}} do not
    TEMPLATE_ESCAPE_NONE, // plain text and subjects
    TEMPLATE_ESCAPE_JSON, // {{x}} inside of a JSON string
} TemplateEscape;

// What helpers need and keep between renders: ICU's formatters and memory. One a thread.
typedef struct TemplateTools TemplateTools;

// What renders may take together, and what they did: one for all parts of a notification. CPU time
// is asked every few thousand steps, so that small renders cost nothing; it begins with the first
// time it is asked.
typedef struct TemplateMeter {
    int64_t (*cpu_us)(void); // that this thread has used; NULL: there is no limit of time
    int64_t max_us;
    int64_t until_us;     // 0: not started
    bool over;            // a render was ended: too many steps or rounds, or too much time
    uint32_t unsafe_urls; // values that TEMPLATE_UNSAFE_URL stands for
} TemplateMeter;

// Stands where a value would have made a URL that may run a script. See html_url.h.
#define TEMPLATE_UNSAFE_URL "#stentor-unsafe-url"

// Where a template's assets are: {{asset "logo.png"}}. Appends the address to `out`;
// ERROR_PERMANENT without the helper's name: there is none.
typedef struct TemplateAssets {
    bool (*find)(void *ctx, Str name, Buf *out, Error *err);
    void *ctx;
} TemplateAssets;

typedef struct TemplateContext {
    Str locale;  // BCP 47, "de-DE"; empty: en-US
    Str zone;    // IANA, "Europe/Berlin"; empty: UTC
    bool strict; // a variable that is not there is an error, but in conditions and `default`
    TemplateTools *tools;         // NULL: made for this render, which is slow when a helper is used
    TemplateMeter *meter;         // NULL: none
    const TemplateAssets *assets; // NULL: none, and `asset` is an error
    // {{name}} prints itself in the place of its value, and where a helper's result chooses, both
    // branches are there: the rendering is shown without what it was rendered with, and not sent.
    bool as_written;
} TemplateContext;

typedef struct Template Template;
typedef struct TemplateSet
    TemplateSet; // partials by name; compiled with the template that uses them

TemplateSet *template_set_new(void);
void template_set_free(TemplateSet *set);
// Partials that are not there (also inline ones and blocks) are nothing, as in Mustache, instead of
// an error.
void template_set_allow_missing(TemplateSet *set);
// ERROR_PERMANENT with the partial's name, line and column on a syntax error.
bool template_set_add(TemplateSet *set, Str name, Str source, TemplateEscape escape, Error *err);

// `set` may be NULL and must outlive the template; the source is copied.
// ERROR_PERMANENT "line 3, column 7: '{{#if' is never closed" and the like; an unknown partial or
// helper is named.
Template *template_compile(Str source, TemplateEscape escape, const TemplateSet *set, Error *err);
void template_free(Template *tpl);

TemplateTools *template_tools_new(void);
void template_tools_free(TemplateTools *tools); // NULL-safe

// false and meter->over: the time is used up. A NULL meter has no end.
bool template_meter_ask(TemplateMeter *meter, Error *err);

// Appends to `out`. A variable that is not there renders as nothing (which variables are required
// is the template version's own list, checked by the renderer with template_lookup).
// ERROR_PERMANENT with line and column when a limit is passed or a helper refuses its argument; the
// text holds no values.
bool template_render(const Template *tpl, const json_t *variables, Buf *out, Error *err);

// The same in a locale and a zone.
bool template_render_in(
    const Template *tpl, const TemplateContext *context, const json_t *variables, Buf *out,
    Error *err);

// The names that the template and its set's partials give to `asset` as literals; a name may come
// again. One that a value gives is known when it is rendered.
typedef void (*TemplateAssetNamed)(void *ctx, Str name);
void template_assets(const Template *tpl, TemplateAssetNamed each, void *ctx);

// The value at a dotted path ("order.items.0.name"), as a template finds it; NULL: not there.
const json_t *template_lookup(const json_t *variables, Str path);
