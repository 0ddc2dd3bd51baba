// SPDX-License-Identifier: Apache-2.0
#include "common/render/version_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/variables/variable_check.h"
#include "common/variables/variable_format.h"

enum { NAME_MAX_BYTES = 256, LOCALE_MAX_BYTES = 64, ENUM_MAX = 100 };

typedef struct Reading {
    Arena *arena;
    FieldFaults *faults;
    const char *at; // "locales[1].", or "" at the top
} Reading;

static bool fault_at(const Reading *reading, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// A field has one fault, its first.
static bool fault_at(const Reading *reading, const char *name, const char *format, ...)
{
    FieldFaults *faults = reading->faults;
    FieldFault fault;
    va_list args;
    va_start(args, format);
    size_t at = strlen(reading->at); // of the element itself: without the dot
    at -= at > 0 && name[0] == '\0' ? 1 : 0;
    (void)snprintf(fault.field, sizeof fault.field, "%.*s%.60s", (int)at, reading->at, name);
    (void)vsnprintf(fault.detail, sizeof fault.detail, format, args);
    va_end(args);
    for (size_t i = 0; i < faults->count; i++) {
        if (strcmp(faults->items[i].field, fault.field) == 0) {
            return false;
        }
    }
    if (faults->count < FIELD_FAULTS_MAX) {
        faults->items[faults->count++] = fault;
    }
    return false;
}

static char *empty(Arena *arena)
{
    return arena_cstr(arena, STR_EMPTY);
}

static bool take_text(
    const Reading *reading, const json_t *object, const char *name, size_t max, char **ret)
{
    const json_t *value = json_object_get(object, name);
    if (value == NULL || json_is_null(value)) {
        *ret = empty(reading->arena);
        return true;
    }
    if (!json_is_string(value)) {
        return fault_at(reading, name, "expected a text");
    }
    Str text = {json_string_value(value), json_string_length(value)};
    if (text.len > max || !str_is_utf8(text)) {
        return fault_at(reading, name, "a text of at most %zu bytes without NUL", max);
    }
    *ret = arena_cstr(reading->arena, text);
    return true;
}

static void check_names(const Reading *reading, const json_t *object, const char *allowed)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_t *copy = (json_t *)(uintptr_t)object; // the walk changes nothing
    json_object_foreach(copy, name, value)
    {
        Str rest = str_from(allowed);
        bool known = false;
        for (Str one; str_split(&rest, ' ', &one);) {
            known = known || str_eq(one, str_from(name));
        }
        if (!known) {
            (void)fault_at(reading, name, "unknown; there are: %.150s", allowed);
        }
    }
}

static bool take_array(
    const Reading *reading, const json_t *object, const char *name, size_t max, const json_t **ret)
{
    const json_t *value = json_object_get(object, name);
    *ret = NULL;
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    if (!json_is_array(value)) {
        return fault_at(reading, name, "expected an array");
    }
    if (json_array_size(value) > max) {
        return fault_at(reading, name, "at most %zu elements", max);
    }
    *ret = value;
    return true;
}

// An array of texts.
static bool take_texts(
    const Reading *reading, const json_t *object, const char *name, size_t max, char ***ret,
    size_t *ret_count)
{
    const json_t *array = NULL;
    if (!take_array(reading, object, name, max, &array)) {
        return false;
    }
    size_t count = json_array_size(array);
    *ret = arena_array(reading->arena, count, sizeof **ret);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(array, i);
        Str text = {json_string_value(value), json_string_length(value)};
        if (!json_is_string(value) || !str_is_utf8(text) || text.len > VERSION_TEXT_MAX) {
            return fault_at(reading, name, "expected an array of texts");
        }
        (*ret)[i] = arena_cstr(reading->arena, text);
        *ret_count = i + 1;
    }
    return true;
}

// An object given as it is, or as the text of one; kept as text.
static bool take_json(
    const Reading *reading, const json_t *object, const char *name, bool may_be_text, char **ret)
{
    const json_t *value = json_object_get(object, name);
    if (may_be_text && json_is_string(value)) {
        return take_text(reading, object, name, VERSION_TEXT_MAX, ret);
    }
    if (value == NULL || json_is_null(value)) {
        *ret = empty(reading->arena);
        return true;
    }
    if (!json_is_object(value)) {
        return fault_at(reading, name, "expected an object");
    }
    Buf text;
    buf_init(&text, VERSION_SAMPLE_MAX);
    bool ok = buf_reserve(&text, VERSION_SAMPLE_MAX);
    size_t len = json_dumpb(value, text.ptr, VERSION_SAMPLE_MAX, JSON_COMPACT);
    ok = ok && len <= VERSION_SAMPLE_MAX;
    *ret = arena_cstr(reading->arena, str_of(text.ptr, ok ? len : 0));
    buf_done(&text);
    return ok || fault_at(reading, name, "at most %d bytes", VERSION_SAMPLE_MAX);
}

// ---- parts ----

static void take_locale(
    const Reading *reading, const json_t *object, Stentor__V1__LocaleVariant *ret)
{
    stentor__v1__locale_variant__init(ret);
    if (!json_is_object(object)) {
        (void)fault_at(reading, "", "expected an object");
        return;
    }
    check_names(
        reading, object,
        "locale subject preheader html text direction title data reference parameters");
    (void)take_text(reading, object, "locale", LOCALE_MAX_BYTES, &ret->locale);
    (void)take_text(reading, object, "subject", VERSION_TEXT_MAX, &ret->subject);
    (void)take_text(reading, object, "preheader", VERSION_TEXT_MAX, &ret->preheader);
    (void)take_text(reading, object, "html", VERSION_TEXT_MAX, &ret->html);
    (void)take_text(reading, object, "text", VERSION_TEXT_MAX, &ret->text);
    (void)take_text(reading, object, "direction", LOCALE_MAX_BYTES, &ret->direction);
    (void)take_text(reading, object, "title", VERSION_TEXT_MAX, &ret->title);
    (void)take_json(reading, object, "data", true, &ret->data);
    (void)take_text(reading, object, "reference", NAME_MAX_BYTES, &ret->reference);
    (void)take_texts(
        reading, object, "parameters", VERSION_PARAMETERS_MAX, &ret->parameters,
        &ret->n_parameters);
    if (ret->locale[0] == '\0') {
        (void)fault_at(reading, "locale", "required: a BCP 47 tag as 'en-US'");
    }
    Str direction = str_from(ret->direction);
    if (direction.len > 0 && !str_eq(direction, STR("ltr")) && !str_eq(direction, STR("rtl"))) {
        (void)fault_at(reading, "direction", "expected 'ltr' or 'rtl'");
    }
}

static void take_locales(
    const Reading *reading, const json_t *document, Stentor__V1__TemplateVersion *ret)
{
    const json_t *array = NULL;
    (void)take_array(reading, document, "locales", VERSION_LOCALES_MAX, &array);
    ret->n_locales = json_array_size(array);
    ret->locales = arena_array(reading->arena, ret->n_locales, sizeof *ret->locales);
    for (size_t i = 0; i < ret->n_locales; i++) {
        Reading inside = *reading;
        inside.at = arena_printf(reading->arena, "locales[%zu].", i);
        ret->locales[i] = arena_alloc(reading->arena, sizeof **ret->locales);
        take_locale(&inside, json_array_get(array, i), ret->locales[i]);
    }
    if (ret->n_locales == 0) {
        (void)fault_at(reading, "locales", "required: at least one");
    }
}

static void take_rule(
    const Reading *reading, const json_t *object, int depth, Stentor__V1__TemplateVariable *ret);

// A rule inside of a rule: its place is the outer one's and its name.
static void take_inner(
    const Reading *reading, const char *at, const json_t *object, const char *name, int depth,
    Stentor__V1__TemplateVariable **ret)
{
    Reading inside = *reading;
    inside.at = arena_printf(reading->arena, "%s%s.", reading->at, at);
    *ret = arena_alloc(reading->arena, sizeof **ret);
    take_rule(&inside, object, depth + 1, *ret);
    (*ret)->name = arena_cstr(reading->arena, str_from(name));
}

static bool takes(const Stentor__V1__TemplateVariable *rule, const char *type)
{
    return rule->type[0] == '\0' || strcmp(rule->type, type) == 0;
}

static void take_length(
    const Reading *reading, const json_t *object, const char *name, bool applies, uint32_t *ret)
{
    const json_t *value = json_object_get(object, name);
    if (value == NULL || json_is_null(value)) {
        return;
    }
    json_int_t number = json_integer_value(value);
    if (!applies) {
        (void)fault_at(reading, name, "does not fit the type");
    } else if (!json_is_integer(value) || number < 0 || number > VERSION_TEXT_MAX) {
        (void)fault_at(reading, name, "expected a whole number from 0 to %d", VERSION_TEXT_MAX);
    } else {
        *ret = (uint32_t)number;
    }
}

static void take_bound(
    const Reading *reading, const json_t *object, const char *name, bool applies,
    Stentor__V1__VariableBound **ret)
{
    const json_t *value = json_object_get(object, name);
    if (value == NULL || json_is_null(value)) {
        return;
    }
    if (!json_is_number(value) || !applies) {
        (void)fault_at(
            reading, name, "%s", applies ? "expected a number" : "does not fit the type");
        return;
    }
    *ret = arena_alloc(reading->arena, sizeof **ret);
    stentor__v1__variable_bound__init(*ret);
    (*ret)->value = json_number_value(value);
}

// Texts, numbers and truth values, each kept as its JSON text.
static void take_enum(
    const Reading *reading, const json_t *object, Stentor__V1__TemplateVariable *ret)
{
    const json_t *array = NULL;
    if (!take_array(reading, object, "enum", ENUM_MAX, &array) || array == NULL) {
        return;
    }
    ret->allowed = arena_array(reading->arena, json_array_size(array), sizeof *ret->allowed);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *value = json_array_get(array, i);
        char text[VARIABLE_ENUM_BYTES_MAX];
        size_t len = json_dumpb(value, text, sizeof text, VARIABLE_ENUM_FLAGS);
        if (json_is_object(value) || json_is_array(value) || json_is_null(value) ||
            len > sizeof text) {
            (void)fault_at(
                reading, "enum", "expected texts, numbers, true or false, of at most %d bytes",
                VARIABLE_ENUM_BYTES_MAX);
            return;
        }
        ret->allowed[ret->n_allowed++] = arena_cstr(reading->arena, str_of(text, len));
    }
    if (ret->n_allowed == 0) {
        (void)fault_at(reading, "enum", "expected at least one value");
    }
}

static void take_properties(
    const Reading *reading, const json_t *object, int depth, Stentor__V1__TemplateVariable *ret)
{
    json_t *members = json_object_get(object, "properties");
    const char *name = NULL;
    json_t *value = NULL;
    if (members == NULL || json_is_null(members)) {
        return;
    }
    if (!json_is_object(members) || json_object_size(members) > VERSION_VARIABLES_MAX ||
        !takes(ret, "object")) {
        (void)fault_at(
            reading, "properties", "expected an object of at most %d rules, of type object",
            VERSION_VARIABLES_MAX);
        return;
    }
    ret->properties =
        arena_array(reading->arena, json_object_size(members), sizeof *ret->properties);
    json_object_foreach(members, name, value)
    {
        const char *at = arena_printf(reading->arena, "properties.%.40s", name);
        take_inner(reading, at, value, name, depth, &ret->properties[ret->n_properties++]);
    }
}

static void take_nested(
    const Reading *reading, const json_t *object, int depth, Stentor__V1__TemplateVariable *ret)
{
    const json_t *items = json_object_get(object, "items");
    bool any = items != NULL || json_object_get(object, "properties") != NULL;
    if (any && depth == VARIABLE_DEPTH_MAX) {
        (void)fault_at(reading, "", "rules are at most %d deep", VARIABLE_DEPTH_MAX);
        return;
    }
    if (items != NULL && !takes(ret, "array")) {
        (void)fault_at(reading, "items", "does not fit the type");
    } else if (items != NULL) {
        take_inner(reading, "items", items, "", depth, &ret->items);
    }
    take_properties(reading, object, depth, ret);
}

static void check_order(const Reading *reading, const Stentor__V1__TemplateVariable *rule)
{
    if (rule->minimum != NULL && rule->maximum != NULL &&
        rule->minimum->value > rule->maximum->value) {
        (void)fault_at(reading, "maximum", "is below the minimum");
    }
    if (rule->max_length > 0 && rule->min_length > rule->max_length) {
        (void)fault_at(reading, "maxLength", "is below minLength");
    }
    if (rule->max_items > 0 && rule->min_items > rule->max_items) {
        (void)fault_at(reading, "maxItems", "is below minItems");
    }
}

static void take_bounds(
    const Reading *reading, const json_t *object, Stentor__V1__TemplateVariable *ret)
{
    bool number = takes(ret, "number") || takes(ret, "integer");
    take_bound(reading, object, "minimum", number, &ret->minimum);
    take_bound(reading, object, "maximum", number, &ret->maximum);
    take_length(reading, object, "minLength", takes(ret, "string"), &ret->min_length);
    take_length(reading, object, "maxLength", takes(ret, "string"), &ret->max_length);
    take_length(reading, object, "minItems", takes(ret, "array"), &ret->min_items);
    take_length(reading, object, "maxItems", takes(ret, "array"), &ret->max_items);
    check_order(reading, ret);
}

static void take_format(
    const Reading *reading, const json_t *object, Stentor__V1__TemplateVariable *ret)
{
    (void)take_text(reading, object, "format", LOCALE_MAX_BYTES, &ret->format);
    Str format = str_from(ret->format);
    if (format.len > 0 && !variable_format_is(format)) {
        (void)fault_at(reading, "format", "expected one of: %s", VARIABLE_FORMATS);
    } else if (format.len > 0 && !takes(ret, "string")) {
        (void)fault_at(reading, "format", "does not fit the type");
    }
}

static void take_rule(
    const Reading *reading, const json_t *object, int depth, Stentor__V1__TemplateVariable *ret)
{
    static const char types[] = "string number integer boolean array object";
    stentor__v1__template_variable__init(ret);
    ret->name = ret->type = ret->format = empty(reading->arena);
    if (!json_is_object(object)) {
        (void)fault_at(reading, "", "expected an object");
        return;
    }
    check_names(
        reading, object,
        depth == 1 ? "name type required format enum minimum maximum minLength maxLength minItems "
                     "maxItems items properties"
                   : "type required format enum minimum maximum minLength maxLength minItems "
                     "maxItems items properties");
    (void)take_text(reading, object, "type", LOCALE_MAX_BYTES, &ret->type);
    bool known = ret->type[0] == '\0';
    Str rest = str_from(types);
    for (Str one; str_split(&rest, ' ', &one);) {
        known = known || str_eq(one, str_from(ret->type));
    }
    if (!known) {
        (void)fault_at(reading, "type", "expected one of: %s", types);
    }
    const json_t *required = json_object_get(object, "required");
    if (required != NULL && !json_is_boolean(required)) {
        (void)fault_at(reading, "required", "expected true or false");
    }
    ret->required = json_is_true(required);
    take_format(reading, object, ret);
    take_enum(reading, object, ret);
    take_bounds(reading, object, ret);
    take_nested(reading, object, depth, ret);
}

static void take_variable(
    const Reading *reading, const json_t *object, Stentor__V1__TemplateVariable *ret)
{
    take_rule(reading, object, 1, ret);
    if (!json_is_object(object)) {
        return;
    }
    (void)take_text(reading, object, "name", NAME_MAX_BYTES, &ret->name);
    if (ret->name[0] == '\0') {
        (void)fault_at(reading, "name", "required");
    }
}

static void take_variables(
    const Reading *reading, const json_t *document, Stentor__V1__TemplateVersion *ret)
{
    const json_t *array = NULL;
    (void)take_array(reading, document, "variables", VERSION_VARIABLES_MAX, &array);
    ret->n_variables = json_array_size(array);
    ret->variables = arena_array(reading->arena, ret->n_variables, sizeof *ret->variables);
    for (size_t i = 0; i < ret->n_variables; i++) {
        Reading inside = *reading;
        inside.at = arena_printf(reading->arena, "variables[%zu].", i);
        ret->variables[i] = arena_alloc(reading->arena, sizeof **ret->variables);
        take_variable(&inside, json_array_get(array, i), ret->variables[i]);
    }
}

// {"footer": "<p>..."}
static void take_partials(
    const Reading *reading, const json_t *document, Stentor__V1__TemplateVersion *ret)
{
    json_t *object = json_object_get(document, "partials");
    const char *name = NULL;
    json_t *value = NULL;
    if (object == NULL || json_is_null(object)) {
        return;
    }
    if (!json_is_object(object) || json_object_size(object) > TEMPLATE_PARTIALS_MAX) {
        (void)fault_at(
            reading, "partials", "expected an object of at most %d texts", TEMPLATE_PARTIALS_MAX);
        return;
    }
    ret->partials = arena_array(reading->arena, json_object_size(object), sizeof *ret->partials);
    Reading inside = *reading;
    inside.at = "partials.";
    json_object_foreach(object, name, value)
    {
        Stentor__V1__TemplatePartial *partial = arena_alloc(reading->arena, sizeof *partial);
        stentor__v1__template_partial__init(partial);
        partial->name = arena_cstr(reading->arena, str_from(name));
        if (json_is_null(value)) {
            (void)fault_at(&inside, name, "expected a text");
        }
        (void)take_text(&inside, object, name, VERSION_TEXT_MAX, &partial->source);
        ret->partials[ret->n_partials++] = partial;
    }
}

// ---- the document ----

static void take_enums(
    const Reading *reading, const json_t *document, Stentor__V1__TemplateVersion *ret)
{
    char *channel = empty(reading->arena);
    char *category = empty(reading->arena);
    Channel known_channel = CHANNEL_EMAIL;
    Category known_category = CATEGORY_TRANSACTIONAL;
    (void)take_text(reading, document, "channel", LOCALE_MAX_BYTES, &channel);
    (void)take_text(reading, document, "category", LOCALE_MAX_BYTES, &category);
    if (channel[0] != '\0' && !channel_from_name(str_from(channel), &known_channel)) {
        (void)fault_at(reading, "channel", "not a channel");
    }
    if (category[0] != '\0' && !category_from_name(str_from(category), &known_category)) {
        (void)fault_at(reading, "category", "not a category");
    }
    ret->channel = (Stentor__V1__Channel)known_channel;
    ret->category = (Stentor__V1__Category)known_category;
}

static void take_source(
    const Reading *reading, const json_t *document, Stentor__V1__TemplateVersion *ret)
{
    (void)take_text(reading, document, "source", LOCALE_MAX_BYTES, &ret->source);
    Str source = str_from(ret->source);
    if (source.len > 0 && !str_eq(source, STR("platform")) && !str_eq(source, STR("tenant")) &&
        !str_eq(source, STR("ai_drafted"))) {
        (void)fault_at(reading, "source", "expected platform, tenant or ai_drafted");
    }
}

static void take_life(
    const Reading *reading, const json_t *document, Stentor__V1__TemplateVersion *ret)
{
    char *priority = empty(reading->arena);
    char *at = empty(reading->arena);
    Priority known = PRIORITY_NONE;
    (void)take_text(reading, document, "default_priority", LOCALE_MAX_BYTES, &priority);
    (void)take_text(reading, document, "deprecated_at", LOCALE_MAX_BYTES, &at);
    (void)take_text(reading, document, "supersedes", LOCALE_MAX_BYTES, &ret->supersedes);
    if (priority[0] != '\0' && !priority_from_name(str_from(priority), &known)) {
        (void)fault_at(reading, "default_priority", "not one of critical, high, normal, low");
    }
    if (at[0] != '\0' && !clock_parse(str_from(at), &ret->deprecated_at_us)) {
        (void)fault_at(reading, "deprecated_at", "expected a time as '2026-11-23T10:00:00Z'");
    }
    ret->default_priority = (Stentor__V1__Priority)known;
}

bool version_from_json(
    const json_t *document, Arena *arena, Stentor__V1__TemplateVersion *ret, FieldFaults *faults)
{
    Reading reading = {.arena = arena, .faults = faults, .at = ""};
    faults->count = 0;
    stentor__v1__template_version__init(ret);
    if (!json_is_object(document)) {
        return fault_at(&reading, "", "expected an object");
    }
    check_names(
        &reading, document,
        "key version status channel category locales variables partials fallback_locales "
        "source provenance approved_by published_by sample default_priority deprecated_at "
        "supersedes");
    (void)take_text(&reading, document, "key", LOCALE_MAX_BYTES, &ret->key);
    (void)take_text(&reading, document, "version", LOCALE_MAX_BYTES, &ret->version);
    take_enums(&reading, document, ret);
    take_locales(&reading, document, ret);
    take_variables(&reading, document, ret);
    take_partials(&reading, document, ret);
    (void)take_texts(
        &reading, document, "fallback_locales", VERSION_FALLBACKS_MAX, &ret->fallback_locales,
        &ret->n_fallback_locales);
    take_source(&reading, document, ret);
    take_life(&reading, document, ret);
    (void)take_text(&reading, document, "provenance", NAME_MAX_BYTES * 4, &ret->provenance);
    (void)take_text(&reading, document, "approved_by", NAME_MAX_BYTES, &ret->approved_by);
    (void)take_text(&reading, document, "published_by", NAME_MAX_BYTES, &ret->published_by);
    (void)take_json(&reading, document, "sample", false, &ret->sample_json);
    return faults->count == 0;
}

// ---- rules ----

const char *version_status_name(Stentor__V1__TemplateStatus status)
{
    switch ((int)status) {
    case STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT:
        return "draft";
    case STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE:
        return "active";
    case STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED:
        return "archived";
    default:
        return "";
    }
}

bool version_may_become(
    const Stentor__V1__TemplateVersion *version, Stentor__V1__TemplateStatus status, Error *err)
{
    if ((int)status <= (int)version->status) {
        return error_set(
            err, ERROR_PERMANENT, "version %.64s is %s and cannot become %s", version->version,
            version_status_name(version->status), version_status_name(status));
    }
    if (status == STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE &&
        str_eq(str_from(version->source), STR("ai_drafted")) && version->approved_by[0] == '\0') {
        return error_set(
            err, ERROR_PERMANENT,
            "approved_by: an ai_drafted version becomes active only with the name "
            "of its approver");
    }
    return true;
}

bool version_check(const Stentor__V1__TemplateVersion *version, Error *err)
{
    Arena *arena = arena_new(0);
    Str packed;
    bool ok = event_pack(&version->base, arena, &packed, err);
    CompiledVersion *compiled = ok ? version_compile(packed) : NULL;
    if (ok && compiled->broken.kind != ERROR_NONE) {
        *err = compiled->broken;
        ok = false;
    }
    version_free(compiled);
    arena_free(arena);
    return ok;
}

// ---- showing ----

static void add(json_t *object, const char *name, const char *text)
{
    if (text[0] != '\0') {
        (void)json_object_set_new(object, name, json_string(text));
    }
}

static json_t *texts_to_json(char *const *texts, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(array, json_string(texts[i]));
    }
    return array;
}

static json_t *locale_to_json(const Stentor__V1__LocaleVariant *variant)
{
    json_t *object = json_object();
    add(object, "locale", variant->locale);
    add(object, "subject", variant->subject);
    add(object, "preheader", variant->preheader);
    add(object, "html", variant->html);
    add(object, "text", variant->text);
    add(object, "direction", variant->direction);
    add(object, "title", variant->title);
    add(object, "data", variant->data);
    add(object, "reference", variant->reference);
    if (variant->n_parameters > 0) {
        (void)json_object_set_new(
            object, "parameters", texts_to_json(variant->parameters, variant->n_parameters));
    }
    return object;
}

static void add_number(json_t *object, const char *name, uint32_t number)
{
    if (number > 0) {
        (void)json_object_set_new(object, name, json_integer(number));
    }
}

static void add_bound(json_t *object, const char *name, const Stentor__V1__VariableBound *bound)
{
    if (bound != NULL) {
        (void)json_object_set_new(object, name, json_real(bound->value));
    }
}

static json_t *rule_to_json(const Stentor__V1__TemplateVariable *rule, int depth)
{
    json_t *object = json_pack("{s:s,s:b}", "type", rule->type, "required", rule->required);
    add(object, "name", rule->name);
    add(object, "format", rule->format);
    add_bound(object, "minimum", rule->minimum);
    add_bound(object, "maximum", rule->maximum);
    add_number(object, "minLength", rule->min_length);
    add_number(object, "maxLength", rule->max_length);
    add_number(object, "minItems", rule->min_items);
    add_number(object, "maxItems", rule->max_items);
    json_t *allowed = json_array();
    for (size_t i = 0; i < rule->n_allowed; i++) {
        (void)json_array_append_new(allowed, json_loads(rule->allowed[i], JSON_DECODE_ANY, NULL));
    }
    if (json_array_size(allowed) > 0) {
        (void)json_object_set(object, "enum", allowed);
    }
    json_decref(allowed);
    if (rule->items != NULL && depth < VARIABLE_DEPTH_MAX) {
        (void)json_object_set_new(object, "items", rule_to_json(rule->items, depth + 1));
    }
    json_t *members = json_object();
    for (size_t i = 0; i < rule->n_properties && depth < VARIABLE_DEPTH_MAX; i++) {
        json_t *member = rule_to_json(rule->properties[i], depth + 1);
        (void)json_object_del(member, "name"); // it is the member's own
        (void)json_object_set_new(members, rule->properties[i]->name, member);
    }
    if (json_object_size(members) > 0) {
        (void)json_object_set(object, "properties", members);
    }
    json_decref(members);
    return object;
}

static void add_content(json_t *object, const Stentor__V1__TemplateVersion *version)
{
    json_t *locales = json_array();
    json_t *variables = json_array();
    json_t *partials = json_object();
    for (size_t i = 0; i < version->n_locales; i++) {
        (void)json_array_append_new(locales, locale_to_json(version->locales[i]));
    }
    for (size_t i = 0; i < version->n_variables; i++) {
        (void)json_array_append_new(variables, rule_to_json(version->variables[i], 1));
    }
    for (size_t i = 0; i < version->n_partials; i++) {
        (void)json_object_set_new(
            partials, version->partials[i]->name, json_string(version->partials[i]->source));
    }
    (void)json_object_set_new(object, "locales", locales);
    (void)json_object_set_new(object, "variables", variables);
    (void)json_object_set_new(object, "partials", partials);
    json_t *sample = json_loads(version->sample_json, 0, NULL);
    if (sample != NULL) {
        (void)json_object_set_new(object, "sample", sample);
    }
}

json_t *version_to_json(const Stentor__V1__TemplateVersion *version, bool brief)
{
    char at[CLOCK_RFC3339_SIZE];
    json_t *object = json_object();
    Channel channel = (Channel)version->channel;
    add(object, "tenant", version->tenant);
    add(object, "key", version->key);
    add(object, "version", version->version);
    add(object, "status", version_status_name(version->status));
    add(object, "channel", channel_name(channel == CHANNEL_NONE ? CHANNEL_EMAIL : channel));
    add(object, "category", category_name((Category)version->category));
    add(object, "default_priority", priority_name((Priority)version->default_priority));
    add(object, "supersedes", version->supersedes);
    if (version->deprecated_at_us > 0) {
        clock_format(version->deprecated_at_us, at);
        add(object, "deprecated_at", at);
    }
    add(object, "source", version->source);
    add(object, "provenance", version->provenance);
    add(object, "approved_by", version->approved_by);
    add(object, "published_by", version->published_by);
    if (version->published_at_us > 0) {
        clock_format(version->published_at_us, at);
        add(object, "published_at", at);
    }
    if (version->n_fallback_locales > 0) {
        (void)json_object_set_new(
            object, "fallback_locales",
            texts_to_json(version->fallback_locales, version->n_fallback_locales));
    }
    if (!brief) {
        add_content(object, version);
    }
    return object;
}
