// SPDX-License-Identifier: Apache-2.0
// What format.c and format_number.c share: the opened formatters, and what ICU is given.
#pragma once

#include <unicode/utypes.h>

#include "common/base/map.h"
#include "common/template/helpers/format.h"

enum { LOCALE_SIZE = 96, ZONE_MAX = 64, UNITS_MAX = 512, KEY_MAX = 320 };

#define DEFAULT_LOCALE STR("en-US")

typedef enum FormatKind { KIND_NUMBER, KIND_DATE, KIND_PLURAL, KIND_CASE } FormatKind;

typedef struct Format {
    FormatKind kind;
    void *icu;
} Format;

struct Formats {
    Map *by_key; // kind, locale and pattern -> Format
    size_t opened;
};

typedef struct Key {
    char text[KEY_MAX];
    Str view;
} Key;

void *formats_find(const Formats *formats, Str key);
// All are forgotten when there are too many: templates use a handful, and one that makes more of
// them from its variables only slows itself down.
void formats_keep(Formats *formats, Str key, FormatKind kind, void *icu);
bool format_append_units(const UChar *units, int32_t len, Buf *out, Error *err);
// Law: a message names the argument, never its value, which may come from the variables.
bool format_fail(Error *err, const char *what, UErrorCode status);
// "fa-AF" and "fa_AF" as ICU's "fa_AF"; what is no locale becomes the root.
void format_locale_id(Str locale, char out[LOCALE_SIZE]);
bool format_make_key(Key *key, char kind, Str locale, Str a, Str b, Str c);
// -1: longer than `size` units.
int32_t format_to_units(Str text, UChar *out, int32_t size);
