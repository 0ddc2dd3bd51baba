// SPDX-License-Identifier: Apache-2.0
#include "common/variables/variable_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/names/member.h"
#include "common/variables/variable_format.h"

typedef Stentor__V1__TemplateVariable Rule;

// Where a value stands: printed when it is at fault, so that a good one costs nothing.
typedef struct Place {
    const struct Place *around; // NULL: the variable itself
    const char *name;           // of a variable or a member; NULL: the item at `index`
    size_t index;
    int depth;
    Arena *arena;
    VariableFault *fault;
} Place;

static bool check(const Place *place, const Rule *rule, const json_t *value);

static bool fail(const Place *place, VariableFaultKind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// A path that is too long is cut.
static void print_path(const Place *place, char *out, size_t size)
{
    out[0] = '\0';
    if (place->around != NULL) {
        print_path(place->around, out, size);
    }
    size_t len = strlen(out);
    if (place->name == NULL) {
        (void)snprintf(out + len, size - len, "[%zu]", place->index);
    } else {
        (void)snprintf(
            out + len, size - len, "%s%s", place->around != NULL ? "." : "", place->name);
    }
}

static bool fail(const Place *place, VariableFaultKind kind, const char *format, ...)
{
    va_list args;
    place->fault->kind = kind;
    print_path(place, place->fault->path, sizeof place->fault->path);
    va_start(args, format);
    (void)vsnprintf(place->fault->text, sizeof place->fault->text, format, args);
    va_end(args);
    return false;
}

const char *variable_type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    case JSON_ARRAY:
        return "array";
    case JSON_OBJECT:
        return "object";
    case JSON_NULL:
        break;
    }
    return "null";
}

static bool check_type(const Place *place, const Rule *rule, const json_t *value)
{
    const char *type = variable_type_name(value);
    bool whole = json_is_integer(value) ||
                 (json_is_real(value) && floor(json_real_value(value)) == json_real_value(value));
    bool fits = strcmp(rule->type, "integer") == 0 ? whole : strcmp(rule->type, type) == 0;
    return rule->type[0] == '\0' || fits ||
           fail(place, VARIABLE_TYPE, "is of type %s, expected %.20s", type, rule->type);
}

static bool fail_enum(const Place *place, const Rule *rule)
{
    char names[80] = "";
    size_t len = 0;
    for (size_t i = 0; i < rule->n_allowed; i++) {
        int more =
            snprintf(names + len, sizeof names - len, "%s%s", i > 0 ? ", " : "", rule->allowed[i]);
        len += more > 0 && (size_t)more < sizeof names - len ? (size_t)more : 0;
        names[len] = '\0';
    }
    return fail(place, VARIABLE_VALUE, "must be one of %s", names);
}

// The allowed values are kept as the JSON texts that jansson writes of them: so is the value.
static bool check_enum(const Place *place, const Rule *rule, const json_t *value)
{
    char text[VARIABLE_ENUM_BYTES_MAX];
    if (rule->n_allowed == 0) {
        return true;
    }
    size_t len = json_dumpb(value, text, sizeof text, VARIABLE_ENUM_FLAGS);
    for (size_t i = 0; len <= sizeof text && i < rule->n_allowed; i++) {
        if (str_eq(str_of(text, len), str_from(rule->allowed[i]))) {
            return true;
        }
    }
    return fail_enum(place, rule);
}

static size_t count_characters(Str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    }
    return count;
}

static bool check_text(const Place *place, const Rule *rule, const json_t *value)
{
    Str text = {json_string_value(value), json_string_length(value)};
    size_t count = count_characters(text);
    if (count < rule->min_length) {
        return fail(place, VARIABLE_VALUE, "must have at least %u characters", rule->min_length);
    }
    if (rule->max_length > 0 && count > rule->max_length) {
        return fail(place, VARIABLE_VALUE, "must have at most %u characters", rule->max_length);
    }
    return rule->format[0] == '\0' ||
           variable_format_met(str_from(rule->format), text, place->arena) ||
           fail(place, VARIABLE_VALUE, "must be of format %.20s", rule->format);
}

static bool check_number(const Place *place, const Rule *rule, const json_t *value)
{
    double number = json_number_value(value);
    if (rule->minimum != NULL && number < rule->minimum->value) {
        return fail(place, VARIABLE_VALUE, "must be at least %g", rule->minimum->value);
    }
    return rule->maximum == NULL || number <= rule->maximum->value ||
           fail(place, VARIABLE_VALUE, "must be at most %g", rule->maximum->value);
}

static Place inside_of(const Place *around, const char *name, size_t index)
{
    Place place = *around;
    place.around = around;
    place.name = name;
    place.index = index;
    place.depth = around->depth + 1;
    return place;
}

static bool check_items(const Place *place, const Rule *rule, const json_t *value)
{
    size_t count = json_array_size(value);
    if (count < rule->min_items) {
        return fail(place, VARIABLE_VALUE, "must have at least %u items", rule->min_items);
    }
    if (rule->max_items > 0 && count > rule->max_items) {
        return fail(place, VARIABLE_VALUE, "must have at most %u items", rule->max_items);
    }
    bool ok = true;
    for (size_t i = 0; ok && rule->items != NULL && i < count; i++) {
        Place inside = inside_of(place, NULL, i);
        ok = check(&inside, rule->items, json_array_get(value, i));
    }
    return ok;
}

static bool check_members(const Place *place, const Rule *rule, const json_t *value)
{
    for (size_t i = 0; i < rule->n_properties; i++) {
        const Rule *member = rule->properties[i];
        const json_t *there = member_value(value, member->name); // as a template finds it
        Place inside = inside_of(place, member->name, 0);
        if (there == NULL) {
            if (member->required) {
                return fail(&inside, VARIABLE_MISSING, "is missing");
            }
        } else if (!check(&inside, member, there)) {
            return false;
        }
    }
    return true;
}

static bool check(const Place *place, const Rule *rule, const json_t *value)
{
    if (place->depth == VARIABLE_DEPTH_MAX) {
        return true; // no such rule is published
    }
    return check_type(place, rule, value) && check_enum(place, rule, value) &&
           (!json_is_string(value) || check_text(place, rule, value)) &&
           (!json_is_number(value) || check_number(place, rule, value)) &&
           (!json_is_array(value) || check_items(place, rule, value)) &&
           (!json_is_object(value) || check_members(place, rule, value));
}

bool variable_check(
    const Stentor__V1__TemplateVariable *rule, const json_t *value, Arena *arena,
    VariableFault *ret)
{
    ret->kind = VARIABLE_FINE;
    Place place = {.name = rule->name, .arena = arena, .fault = ret};
    return check(&place, rule, value);
}
