// SPDX-License-Identifier: Apache-2.0
// A definition out of its document: the request. The answer and the callback are read next to what
// uses them.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/id.h"
#include "common/base/json_scan.h"
#include "common/vendor/generic/definition_parts.h"

bool definition_fault(Error *err, const char *place, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(err, ERROR_PERMANENT, "definition.%.80s: %s", place, text);
}

bool definition_check_members(
    const json_t *object, const char *place, const char *names, Error *err)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        Str rest = str_from(names);
        Str one;
        bool known = false;
        while (!known && str_split(&rest, ' ', &one)) {
            known = str_eq(one, str_from(name));
        }
        if (!known) {
            return definition_fault(err, place, "has no member '%.40s'; it has %s", name, names);
        }
    }
    return true;
}

bool definition_take_text(
    const VendorDefinition *definition, const json_t *object, const char *place, const char *name,
    const char **ret, Error *err)
{
    const json_t *value = json_object_get(object, name);
    if (value == NULL) {
        return true;
    }
    const char *at = arena_printf(definition->arena, "%s.%s", place, name);
    if (!json_is_string(value) || json_string_length(value) == 0) {
        return definition_fault(err, at, "must be a text");
    }
    *ret = json_string_value(value);
    return !str_has_control(str_from(*ret)) || definition_fault(err, at, "has control characters");
}

// ---- templates ----

// Where templates stand, and how deep.
typedef struct Place {
    VendorDefinition *definition;
    const char *name; // "request.json"
    int depth;
    TemplateEscape escape;
} Place;

static bool take_template(const Place *place, const char *source, Slot *ret, Error *err)
{
    VendorDefinition *definition = place->definition;
    if (++definition->template_count > DEFINITION_TEMPLATES_MAX) {
        return definition_fault(err, place->name, "more than %d texts", DEFINITION_TEMPLATES_MAX);
    }
    Error why = {0};
    ret->place = place->name;
    ret->tpl = template_compile(str_from(source), place->escape, NULL, &why);
    return ret->tpl != NULL || definition_fault(err, place->name, "%s", why.text);
}

static Place inside(const Place *place, const char *name)
{
    Place inner = *place;
    inner.depth++;
    inner.name = arena_printf(place->definition->arena, "%s.%.40s", place->name, name);
    return inner;
}

static bool take_leaves(const Place *place, const json_t *value, Error *err)
{
    VendorDefinition *definition = place->definition;
    const char *name = NULL;
    json_t *inner = NULL;
    size_t i = 0;
    if (json_is_string(value)) {
        return take_template(
                   place, json_string_value(value),
                   &definition->leaves[definition->leaf_count].slot, err) &&
               ++definition->leaf_count > 0;
    }
    if (place->depth > DEFINITION_DEPTH_MAX) {
        return definition_fault(err, place->name, "deeper than %d levels", DEFINITION_DEPTH_MAX);
    }
    json_object_foreach((json_t *)(uintptr_t)value, name, inner)
    {
        Place next = inside(place, name);
        if (!take_leaves(&next, inner, err)) {
            return false;
        }
    }
    json_array_foreach(value, i, inner)
    {
        char number[24];
        (void)snprintf(number, sizeof number, "%zu", i);
        Place next = inside(place, number);
        if (!take_leaves(&next, inner, err)) {
            return false;
        }
    }
    return true;
}

static bool take_named(
    const Place *place, const json_t *object, size_t max, NamedSlot *slots, size_t *ret_count,
    Error *err)
{
    const char *name = NULL;
    json_t *value = NULL;
    if (!json_is_object(object) || json_object_size(object) > max) {
        return definition_fault(err, place->name, "must be an object of at most %zu texts", max);
    }
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        Place next = inside(place, name);
        if (!json_is_string(value)) {
            return definition_fault(err, next.name, "must be a text");
        }
        slots[*ret_count].name = name;
        if (!take_template(&next, json_string_value(value), &slots[*ret_count].slot, err)) {
            return false;
        }
        ++*ret_count;
    }
    return true;
}

// ---- the request ----

static bool is_origin_end(char c)
{
    return c == '/' || c == '?' || c == '{';
}

// "https://api.acme.example/v1/{{id}}": the origin has no template in it.
static bool take_url(VendorDefinition *definition, const json_t *request, Error *err)
{
    const char *url = "";
    Place place = {definition, "request.url", 1, TEMPLATE_ESCAPE_NONE};
    if (!definition_take_text(definition, request, "request", "url", &url, err)) {
        return false;
    }
    if (strcmp(url, "{{to}}") == 0 && definition->channel == CHANNEL_WEBHOOK) {
        return take_template(&place, "", &definition->url, err); // the address is the URL
    }
    Str text = str_from(url);
    Str scheme = str_starts(text, STR("https://")) ? STR("https://") : STR("http://");
    size_t at = scheme.len;
    while (at < text.len && !is_origin_end(text.ptr[at])) {
        at++;
    }
    bool written_out = str_starts(text, scheme) && at > scheme.len &&
                       (at == text.len || text.ptr[at] != '{') &&
                       str_find(str_slice(text, 0, at), '@') < 0;
    if (!written_out) {
        return definition_fault(
            err, "request.url", "must begin with https:// and a host that is written out%s",
            definition->channel == CHANNEL_WEBHOOK ? ", or be {{to}}" : "");
    }
    definition->origin = str_slice(text, 0, at);
    return take_template(&place, url + at, &definition->url, err);
}

static bool is_header_name(const char *name)
{
    static const char *const ours[] = {"host",       "content-length", "transfer-encoding",
                                       "connection", "content-type",   "expect",
                                       "user-agent", "cookie"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (str_eq_nocase(str_from(name), str_from(ours[i]))) {
            return false;
        }
    }
    for (const char *c = name; *c != '\0'; c++) {
        if (!ascii_is_alnum(*c) && *c != '-' && *c != '_') {
            return false;
        }
    }
    return name[0] != '\0';
}

static bool take_headers(VendorDefinition *definition, const json_t *request, Error *err)
{
    const json_t *headers = json_object_get(request, "headers");
    Place place = {definition, "request.headers", 1, TEMPLATE_ESCAPE_NONE};
    if (headers == NULL) {
        return true;
    }
    if (!take_named(
            &place, headers, DEFINITION_HEADERS_MAX, definition->headers, &definition->header_count,
            err)) {
        return false;
    }
    for (size_t i = 0; i < definition->header_count; i++) {
        if (!is_header_name(definition->headers[i].name)) {
            return definition_fault(
                err, "request.headers", "'%.40s' cannot be set", definition->headers[i].name);
        }
    }
    return true;
}

static bool take_text_body(VendorDefinition *definition, const json_t *body, Error *err)
{
    const char *escape = NULL;
    const char *source = NULL;
    if (!json_is_object(body)) {
        return definition_fault(err, "request.body", "must be an object");
    }
    if (!definition_check_members(body, "request.body", "type escape template", err) ||
        !definition_take_text(
            definition, body, "request.body", "type", &definition->body_type, err) ||
        !definition_take_text(definition, body, "request.body", "escape", &escape, err)) {
        return false;
    }
    source = json_string_value(json_object_get(body, "template"));
    if (source == NULL || definition->body_type == NULL || escape == NULL) {
        return definition_fault(
            err, "request.body", "needs 'type', 'escape' (json, xml or none) and 'template'");
    }
    Place place = {definition, "request.body.template", 1, TEMPLATE_ESCAPE_NONE};
    if (strcmp(escape, "json") == 0) {
        place.escape = TEMPLATE_ESCAPE_JSON;
    } else if (strcmp(escape, "xml") == 0) {
        place.escape = TEMPLATE_ESCAPE_HTML;
    } else if (strcmp(escape, "none") != 0) {
        return definition_fault(err, "request.body.escape", "is none of json, xml, none");
    }
    definition->body = BODY_TEXT;
    definition->leaf_count = 1;
    return take_template(&place, source, &definition->leaves[0].slot, err);
}

static bool take_body(VendorDefinition *definition, const json_t *request, Error *err)
{
    const json_t *json = json_object_get(request, "json");
    const json_t *form = json_object_get(request, "form");
    const json_t *body = json_object_get(request, "body");
    if ((json != NULL) + (form != NULL) + (body != NULL) != 1) {
        return definition_fault(err, "request", "needs one of 'json', 'form' and 'body'");
    }
    if (body != NULL) {
        return take_text_body(definition, body, err);
    }
    if (form != NULL) {
        Place place = {definition, "request.form", 1, TEMPLATE_ESCAPE_NONE};
        definition->body = BODY_FORM;
        return take_named(
            &place, form, DEFINITION_TEMPLATES_MAX, definition->leaves, &definition->leaf_count,
            err);
    }
    Place place = {definition, "request.json", 1, TEMPLATE_ESCAPE_NONE};
    definition->body = BODY_JSON;
    definition->json = json;
    return json_is_object(json) || json_is_array(json)
               ? take_leaves(&place, json, err)
               : definition_fault(err, "request.json", "must be an object or an array");
}

static bool take_request(VendorDefinition *definition, const json_t *request, Error *err)
{
    if (!json_is_object(request)) {
        return definition_fault(err, "request", "required: url, headers, and json, form or body");
    }
    definition->method = "POST";
    if (!definition_check_members(request, "request", "method url headers json form body", err) ||
        !definition_take_text(definition, request, "request", "method", &definition->method, err)) {
        return false;
    }
    if (strcmp(definition->method, "POST") != 0 && strcmp(definition->method, "PUT") != 0) {
        return definition_fault(err, "request.method", "is POST or PUT");
    }
    return take_url(definition, request, err) && take_headers(definition, request, err) &&
           take_body(definition, request, err);
}

// ---- all of it ----

static bool take_key_time(VendorDefinition *definition, Error *err)
{
    const json_t *value = json_object_get(definition->root, "key_known_s");
    definition->key_known_s = json_integer_value(value);
    bool good = value == NULL || (json_is_integer(value) && definition->key_known_s >= 0 &&
                                  definition->key_known_s <= DEFINITION_KEY_MAX_S);
    return good ||
           definition_fault(
               err, "key_known_s", "is a number of seconds, at most %d", DEFINITION_KEY_MAX_S);
}

static bool take_all(VendorDefinition *definition, Error *err)
{
    const json_t *root = definition->root;
    if (!json_is_object(root)) {
        return error_set(err, ERROR_PERMANENT, "definition: must be a JSON object");
    }
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(definition->root, name, value)
    {
        if (strcmp(name, "request") != 0 && strcmp(name, "answer") != 0 &&
            strcmp(name, "callback") != 0 && strcmp(name, "key_known_s") != 0) {
            return definition_fault(
                err, name, "unknown; there are request, answer, callback, key_known_s");
        }
    }
    return take_request(definition, json_object_get(root, "request"), err) &&
           definition_read_answer(definition, json_object_get(root, "answer"), err) &&
           take_key_time(definition, err) &&
           definition_read_callback(definition, json_object_get(root, "callback"), err);
}

static json_t *parse(Str document, Error *err)
{
    JsonExcess excess;
    json_error_t where;
    if (document.len == 0 || document.len > DEFINITION_MAX) {
        (void)error_set(
            err, ERROR_PERMANENT, "definition: required, a JSON document of at most %d bytes",
            DEFINITION_MAX);
        return NULL;
    }
    if (!json_is_modest(document, &excess)) {
        (void)error_set(err, ERROR_PERMANENT, "definition: %s", excess.what);
        return NULL;
    }
    json_t *root = json_loadb(document.ptr, document.len, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL) {
        (void)error_set(
            err, ERROR_PERMANENT, "definition: not JSON: line %d, column %d: %.80s", where.line,
            where.column, where.text);
    }
    return root;
}

VendorDefinition *definition_compile(Str document, Channel channel, Error *err)
{
    json_t *root = parse(document, err);
    if (root == NULL) {
        return NULL;
    }
    Arena *arena = arena_new(0);
    VendorDefinition *definition = arena_zalloc(arena, sizeof *definition);
    definition->holders = 1;
    definition->arena = arena;
    definition->document = arena_str(arena, document);
    definition->root = root;
    definition->channel = channel;
    if (!take_all(definition, err)) {
        definition_drop(definition);
        return NULL;
    }
    return definition;
}

VendorDefinition *definition_hold(VendorDefinition *definition)
{
    if (definition != NULL) {
        definition->holders++;
    }
    return definition;
}

void definition_drop(VendorDefinition *definition)
{
    if (definition == NULL || --definition->holders > 0) {
        return;
    }
    template_free(definition->url.tpl);
    for (size_t i = 0; i < DEFINITION_HEADERS_MAX; i++) {
        template_free(definition->headers[i].slot.tpl);
    }
    for (size_t i = 0; i < DEFINITION_TEMPLATES_MAX; i++) {
        template_free(definition->leaves[i].slot.tpl);
    }
    json_decref(definition->root);
    arena_free(definition->arena);
}

bool definition_is(const VendorDefinition *definition, Str document)
{
    return definition != NULL && str_eq(definition->document, document);
}

int64_t definition_key_known_s(const VendorDefinition *definition)
{
    return definition->key_known_s;
}

bool definition_calls_back(const VendorDefinition *definition)
{
    return definition->callback.there;
}

Str definition_origin(const VendorDefinition *definition)
{
    return definition->origin;
}

Channel definition_channel(Str vendor)
{
    Str rest = vendor;
    Str name;
    Channel channel = CHANNEL_NONE;
    if (vendor.len > VENDOR_NAME_MAX || !str_split(&rest, '-', &name) || rest.len == 0 ||
        !channel_from_name(name, &channel)) {
        return CHANNEL_NONE;
    }
    for (size_t i = 0; i < rest.len; i++) {
        char c = rest.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c)) {
            return CHANNEL_NONE;
        }
    }
    return channel;
}
