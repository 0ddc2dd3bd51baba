// SPDX-License-Identifier: Apache-2.0
#include "common/model/retention/retention.h"

#include <stdio.h>
#include <string.h>

#include "common/base/id.h"

// ---- classes ----

static const struct {
    char code;
    const char *name;
} classes[RETENTION_CLASS_COUNT] = {
    [RETENTION_RECORD] = {'R', "record"},
    [RETENTION_STANDARD] = {'S', "standard"},
    [RETENTION_BRIEF] = {'B', "brief"},
};

char retention_class_code(RetentionClass value)
{
    return classes[value].code;
}

const char *retention_class_name(RetentionClass value)
{
    return classes[value].name;
}

bool retention_class_from_name(Str name, RetentionClass *ret)
{
    for (int i = 0; i < RETENTION_CLASS_COUNT; i++) {
        if (str_eq(name, str_from(classes[i].name))) {
            *ret = (RetentionClass)i;
            return true;
        }
    }
    return false;
}

RetentionClass retention_class_from_code(char code)
{
    for (int i = 0; i < RETENTION_CLASS_COUNT; i++) {
        if (classes[i].code == code) {
            return (RetentionClass)i;
        }
    }
    return RETENTION_RECORD;
}

RetentionClass retention_class_of_id(Str id)
{
    return id.len < ULID_LEN
               ? RETENTION_RECORD
               : retention_class_from_code(id.ptr[id.len - ULID_LEN + RETENTION_CLASS_AT]);
}

void retention_id_set_code(char *id, char code)
{
    id[strlen(id) - ULID_LEN + RETENTION_CLASS_AT] = code;
}

// ---- categories ----

static const Category standard[] = {
    CATEGORY_MARKETING, CATEGORY_OPERATIONAL, CATEGORY_REMINDER, CATEGORY_SYSTEM, CATEGORY_SOCIAL};

static bool parse_class(Str part, RetentionClasses *ret, Error *err)
{
    Str value = part;
    Str name = STR_EMPTY;
    Category category = CATEGORY_NONE;
    (void)str_split(&value, '=', &name);
    if (!category_from_name(str_trim(name), &category)) {
        return error_set(
            err, ERROR_CONFIG,
            "'" STR_FMT "' is not a category (HINT: marketing=brief,social=brief)",
            STR_ARG(str_slice(name, 0, 64)));
    }
    return retention_class_from_name(str_trim(value), &ret->of[category]) ||
           error_set(
               err, ERROR_CONFIG, "'" STR_FMT "': expected record, standard or brief",
               STR_ARG(str_slice(part, 0, 64)));
}

bool retention_classes_parse(Str text, RetentionClasses *ret, Error *err)
{
    RetentionClasses parsed = {{RETENTION_RECORD}};
    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++) {
        parsed.of[standard[i]] = RETENTION_STANDARD;
    }
    Str part;
    while (text.len > 0 && str_split(&text, ',', &part)) {
        if (!parse_class(str_trim(part), &parsed, err)) {
            return false;
        }
    }
    *ret = parsed;
    return true;
}

// ---- spans ----

// clang-format off
static const struct {
    const char *name;
    RetentionPlan plan;
} presets[] = {
    {"default", {{
        [RETENTION_RECORD]   = {{24, 0}, {36, 0}, {84, 0}, RETENTION_MONTH},
        [RETENTION_STANDARD] = {{6, 0},  {24, 0}, {24, 0}, RETENTION_MONTH},
        [RETENTION_BRIEF]    = {{0, 30}, {0, 90}, {0, 90}, RETENTION_MONTH},
    }}},
    // A hotel's: 90 days at hand, two years for customer service, seven for the books.
    {"bookworm", {{
        [RETENTION_RECORD]   = {{0, 90}, {24, 0}, {84, 0}, RETENTION_MONTH},
        [RETENTION_STANDARD] = {{0, 90}, {24, 0}, {24, 0}, RETENTION_MONTH},
        [RETENTION_BRIEF]    = {{0, 30}, {0, 90}, {0, 90}, RETENTION_DAY},
    }}},
    // 50 million a day: a day is a unit, and Postgres holds 30 of them.
    {"large", {{
        [RETENTION_RECORD]   = {{0, 30}, {24, 0}, {84, 0}, RETENTION_DAY},
        [RETENTION_STANDARD] = {{0, 30}, {6, 0},  {24, 0}, RETENTION_DAY},
        [RETENTION_BRIEF]    = {{0, 30}, {0, 90}, {0, 90}, RETENTION_DAY},
    }}},
};
// clang-format on

static bool take_preset(Str name, RetentionPlan *ret)
{
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (str_eq(name, str_from(presets[i].name))) {
            *ret = presets[i].plan;
            return true;
        }
    }
    return false;
}

bool retention_span_parse(Str text, RetentionSpan *ret)
{
    int64_t number = 0;
    if (text.len < 2 || !str_to_i64(str_slice(text, 0, text.len - 1), &number) || number < 1 ||
        number > RETENTION_YEARS_MAX * 366) {
        return false;
    }
    char unit = text.ptr[text.len - 1];
    *ret = (RetentionSpan){0};
    if (unit == 'd') {
        ret->days = (int)number;
    } else if (unit == 'm' || unit == 'y') {
        ret->months = (int)number * (unit == 'y' ? 12 : 1);
    }
    return (ret->days > 0 || ret->months > 0) && ret->months <= RETENTION_YEARS_MAX * 12;
}

static bool parse_period(Str text, RetentionPeriod *ret)
{
    bool day = str_eq(text, STR("day"));
    *ret = day ? RETENTION_DAY : RETENTION_MONTH;
    return day || str_eq(text, STR("month"));
}

// The shortest and the longest that a span can be, in days.
static bool is_longer(RetentionSpan a, RetentionSpan b)
{
    return a.months * 365 + a.days * 12 > b.months * 365 + b.days * 12;
}

static bool read_spans(Str value, RetentionSpans *ret)
{
    Str spans = STR_EMPTY;
    Str hot = STR_EMPTY;
    Str warm = STR_EMPTY;
    bool has_period = str_find(value, '/') >= 0;
    (void)str_split(&value, '/', &spans);
    (void)str_split(&spans, ':', &hot);
    (void)str_split(&spans, ':', &warm);
    return (!has_period || parse_period(value, &ret->period)) && retention_span_parse(hot, &ret->hot) &&
           retention_span_parse(warm, &ret->warm) && retention_span_parse(spans, &ret->kept) &&
           !is_longer(ret->hot, ret->warm) && !is_longer(ret->warm, ret->kept);
}

static bool parse_spans(Str part, RetentionPlan *ret, Error *err)
{
    Str value = part;
    Str name = STR_EMPTY;
    RetentionClass class = RETENTION_RECORD;
    (void)str_split(&value, '=', &name);
    if (!retention_class_from_name(str_trim(name), &class)) {
        return error_set(
            err, ERROR_CONFIG,
            "'" STR_FMT "' is neither a preset (default, bookworm, large) nor a class (record, "
            "standard, brief)",
            STR_ARG(str_slice(name, 0, 64)));
    }
    RetentionSpans spans = ret->of[class];
    if (!read_spans(str_trim(value), &spans)) {
        return error_set(
            err, ERROR_CONFIG,
            "'" STR_FMT "': expected hot, warm and kept, none shorter than the one before, and "
            "perhaps /day or /month (HINT: record=24m:36m:7y/month)",
            STR_ARG(str_slice(part, 0, 64)));
    }
    ret->of[class] = spans;
    return true;
}

bool retention_plan_parse(Str text, RetentionPlan *ret, Error *err)
{
    RetentionPlan plan = presets[0].plan;
    Str part;
    for (bool first = true; text.len > 0 && str_split(&text, ',', &part); first = false) {
        bool preset = first && take_preset(str_trim(part), &plan);
        if (!preset && !parse_spans(str_trim(part), &plan, err)) {
            return false;
        }
    }
    *ret = plan;
    return true;
}

void retention_span_text(RetentionSpan span, char out[RETENTION_SPAN_SIZE])
{
    bool months = span.months > 0;
    (void)snprintf(
        out, RETENTION_SPAN_SIZE, "%d %s", months ? span.months : span.days,
        months ? "months" : "days");
}

const char *retention_period_name(RetentionPeriod period)
{
    return period == RETENTION_DAY ? "day" : "month";
}
