// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/retention.h"

#include <stdio.h>

static bool parse_part(Str part, Retention *ret, Error *err)
{
    Str value = part;
    Str name = STR_EMPTY;
    Category category = CATEGORY_NONE;
    int64_t months = 0;
    (void)str_split(&value, '=', &name);
    if (!category_from_name(str_trim(name), &category)) {
        return error_set(
            err, ERROR_CONFIG, "'" STR_FMT "' is not a category (HINT: marketing=24, in months)",
            STR_ARG(str_slice(name, 0, 64)));
    }
    if (!str_to_i64(str_trim(value), &months) || months < RETENTION_MONTHS_MIN ||
        months > RETENTION_MONTHS_MAX) {
        return error_set(
            err, ERROR_CONFIG, "'" STR_FMT "': expected %d to %d months",
            STR_ARG(str_slice(part, 0, 64)), (int)RETENTION_MONTHS_MIN, (int)RETENTION_MONTHS_MAX);
    }
    ret->months[category] = (int)months;
    return true;
}

static bool parse_parts(Str text, Retention *ret, Error *err)
{
    Str part;
    while (text.len > 0 && str_split(&text, ',', &part)) {
        if (!parse_part(str_trim(part), ret, err)) {
            return false;
        }
    }
    return true;
}

bool retention_parse(Str text, Retention *ret, Error *err)
{
    Retention retention = {0};
    if (!parse_parts(STR(RETENTION_DEFAULT), &retention, err) ||
        !parse_parts(text, &retention, err)) {
        return false;
    }
    for (int i = CATEGORY_NONE + 1; i < CATEGORY_COUNT; i++) {
        int months = retention.months[i];
        int *longest = &retention.months[CATEGORY_NONE];
        *longest = months > *longest ? months : *longest;
    }
    *ret = retention;
    return true;
}

void retention_rule(const Retention *retention, Category category, char out[RETENTION_RULE_SIZE])
{
    (void)snprintf(
        out, RETENTION_RULE_SIZE, "%s=%d months", category_name(category),
        retention->months[category]);
}
