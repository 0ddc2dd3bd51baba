// SPDX-License-Identifier: Apache-2.0
#include "common/template/helpers/format_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unicode/ucal.h>
#include <unicode/ucasemap.h>
#include <unicode/uchar.h>
#include <unicode/udat.h>
#include <unicode/udatpg.h>
#include <unicode/uloc.h>
#include <unicode/unum.h>
#include <unicode/upluralrules.h>
#include <unicode/ustring.h>

#include "common/base/arena.h"
#include "common/base/map.h"

static void free_format(void *value)
{
    Format *format = value;
    switch (format->kind) {
    case KIND_NUMBER:
        unum_close(format->icu);
        break;
    case KIND_DATE:
        udat_close(format->icu);
        break;
    case KIND_PLURAL:
        uplrules_close(format->icu);
        break;
    case KIND_CASE:
        ucasemap_close(format->icu);
        break;
    }
    free(format);
}

Formats *formats_new(void)
{
    Formats *formats = xcalloc(1, sizeof *formats);
    formats->by_key = map_new(free_format);
    return formats;
}

void formats_free(Formats *formats)
{
    if (formats != NULL) {
        map_free(formats->by_key);
        free(formats);
    }
}

size_t formats_count(const Formats *formats)
{
    return map_count(formats->by_key);
}

size_t formats_opened(const Formats *formats)
{
    return formats->opened;
}

void formats_keep(Formats *formats, Str key, FormatKind kind, void *icu)
{
    if (map_count(formats->by_key) >= FORMATS_MAX) {
        map_free(formats->by_key);
        formats->by_key = map_new(free_format);
    }
    Format *format = xcalloc(1, sizeof *format);
    *format = (Format){kind, icu};
    formats->opened++;
    map_put(formats->by_key, key, format);
}

void *formats_find(const Formats *formats, Str key)
{
    const Format *format = map_get(formats->by_key, key);
    return format == NULL ? NULL : format->icu;
}

// ---- what ICU is given ----

void format_locale_id(Str locale, char out[LOCALE_SIZE])
{
    char tag[LOCALE_SIZE];
    UErrorCode status = U_ZERO_ERROR;
    int32_t parsed = 0;
    Str wanted = locale.len > 0 ? locale : DEFAULT_LOCALE;
    out[0] = '\0';
    if (!str_to_c(wanted, tag, sizeof tag)) {
        return;
    }
    for (char *c = tag; *c != '\0'; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    uloc_forLanguageTag(tag, out, LOCALE_SIZE, &parsed, &status);
    if (U_FAILURE(status) || status == U_STRING_NOT_TERMINATED_WARNING) {
        out[0] = '\0';
    }
}

int32_t format_to_units(Str text, UChar *out, int32_t size)
{
    UErrorCode status = U_ZERO_ERROR;
    int32_t len = 0;
    if (text.len > INT32_MAX) {
        return -1;
    }
    u_strFromUTF8(out, size, &len, text.ptr, (int32_t)text.len, &status);
    return U_FAILURE(status) ? -1 : len;
}

bool format_append_units(const UChar *units, int32_t len, Buf *out, Error *err)
{
    char text[UNITS_MAX * 3];
    UErrorCode status = U_ZERO_ERROR;
    int32_t bytes = 0;
    u_strToUTF8(text, sizeof text, &bytes, units, len, &status);
    if (U_FAILURE(status)) {
        return error_set(err, ERROR_PERMANENT, "the text cannot be made: %s", u_errorName(status));
    }
    buf_append(out, text, (size_t)bytes);
    return true;
}

bool format_make_key(Key *key, char kind, Str locale, Str a, Str b, Str c)
{
    const Str parts[] = {locale, a, b, c};
    size_t len = 0;
    key->text[len++] = kind;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].len + 1 > sizeof key->text - len) {
            return false;
        }
        if (parts[i].len > 0) {
            memcpy(key->text + len, parts[i].ptr, parts[i].len);
        }
        len += parts[i].len;
        key->text[len++] = '\n';
    }
    key->view = str_of(key->text, len);
    return true;
}

bool format_fail(Error *err, const char *what, UErrorCode status)
{
    return error_set(err, ERROR_PERMANENT, "the %s cannot be used (%s)", what, u_errorName(status));
}

// ---- dates ----

static bool date_style(Str style, UDateFormatStyle *ret)
{
    static const struct {
        const char *name;
        UDateFormatStyle style;
    } names[] = {
        {"none", UDAT_NONE}, {"short", UDAT_SHORT}, {"medium", UDAT_MEDIUM},
        {"long", UDAT_LONG}, {"full", UDAT_FULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq(style, str_from(names[i].name))) {
            *ret = names[i].style;
            return true;
        }
    }
    return false;
}

bool format_zone_exists(Str zone)
{
    UChar units[ZONE_MAX];
    UChar canonical[ZONE_MAX];
    UErrorCode status = U_ZERO_ERROR;
    int32_t len = format_to_units(zone, units, ZONE_MAX);
    if (len <= 0) {
        return false;
    }
    ucal_getCanonicalTimeZoneID(units, len, canonical, ZONE_MAX, NULL, &status);
    return U_SUCCESS(status);
}

// What a date is opened with: two styles, or a pattern.
typedef struct DatePlan {
    UDateFormatStyle date;
    UDateFormatStyle time;
    UChar pattern[FORMAT_PATTERN_MAX];
    int32_t pattern_len; // 0: none
} DatePlan;

static bool plan_skeleton(const char *locale, Str skeleton, DatePlan *plan, Error *err)
{
    UErrorCode status = U_ZERO_ERROR;
    UChar units[FORMAT_PATTERN_MAX];
    int32_t len = format_to_units(skeleton, units, FORMAT_PATTERN_MAX);
    UDateTimePatternGenerator *generator = udatpg_open(locale, &status);
    if (U_SUCCESS(status) && len > 0) {
        plan->pattern_len = udatpg_getBestPattern(
            generator, units, len, plan->pattern, FORMAT_PATTERN_MAX, &status);
    }
    udatpg_close(generator);
    if (U_FAILURE(status) || plan->pattern_len <= 0) {
        return format_fail(err, "date style's skeleton", status);
    }
    plan->date = UDAT_PATTERN;
    plan->time = UDAT_PATTERN;
    return true;
}

static bool plan_pattern(Str pattern, DatePlan *plan, Error *err)
{
    plan->pattern_len = format_to_units(pattern, plan->pattern, FORMAT_PATTERN_MAX);
    if (plan->pattern_len <= 0) {
        return error_set(
            err, ERROR_PERMANENT, "a date's pattern has 1 to %d characters", FORMAT_PATTERN_MAX);
    }
    plan->date = UDAT_PATTERN;
    plan->time = UDAT_PATTERN;
    return true;
}

static bool plan_date(const char *locale, const DateFormat *format, DatePlan *plan, Error *err)
{
    *plan = (DatePlan){.date = UDAT_MEDIUM, .time = UDAT_NONE};
    Str skeleton = STR("skeleton:");
    if (format->time.len > 0 && !date_style(format->time, &plan->time)) {
        return error_set(err, ERROR_PERMANENT, "time= is short, medium, long or full");
    }
    if (format->style.len == 0 || date_style(format->style, &plan->date)) {
        return true;
    }
    if (str_eq(format->style, STR("datetime"))) {
        plan->time = format->time.len > 0 ? plan->time : UDAT_SHORT;
        return true;
    }
    if (str_eq(format->style, STR("time"))) {
        plan->date = UDAT_NONE;
        plan->time = format->time.len > 0 ? plan->time : UDAT_SHORT;
        return true;
    }
    if (str_eq(format->style, STR("iso"))) {
        return plan_pattern(STR("yyyy-MM-dd'T'HH:mm:ssXXX"), plan, err);
    }
    if (str_starts(format->style, skeleton)) {
        return plan_skeleton(
            locale, str_slice(format->style, skeleton.len, format->style.len), plan, err);
    }
    return plan_pattern(format->style, plan, err);
}

static UDateFormat *open_date(const DateFormat *format, Error *err)
{
    char locale[LOCALE_SIZE];
    UChar zone[ZONE_MAX];
    UErrorCode status = U_ZERO_ERROR;
    DatePlan plan;
    Str wanted = format->zone.len > 0 ? format->zone : STR("UTC");
    int32_t zone_len = format_to_units(wanted, zone, ZONE_MAX);
    // A machine's date: not in the digits and calendar of a locale.
    format_locale_id(
        str_eq(format->style, STR("iso")) ? STR("en-US-POSIX") : format->locale, locale);
    if (!format_zone_exists(wanted)) {
        (void)error_set(
            err, ERROR_PERMANENT,
            "the time zone does not exist: expected one of IANA, 'Europe/Berlin'");
        return NULL;
    }
    if (!plan_date(locale, format, &plan, err)) {
        return NULL;
    }
    UDateFormat *icu = udat_open(
        plan.time, plan.date, locale, zone, zone_len, plan.pattern, plan.pattern_len, &status);
    if (U_FAILURE(status)) {
        (void)format_fail(err, "date style", status);
        return NULL;
    }
    return icu;
}

bool format_date(Formats *formats, const DateFormat *format, double at_ms, Buf *out, Error *err)
{
    Key key;
    if (format->style.len >= FORMAT_PATTERN_MAX ||
        !format_make_key(&key, 'd', format->locale, format->zone, format->style, format->time)) {
        return error_set(err, ERROR_PERMANENT, "the locale, zone or date style is too long");
    }
    UDateFormat *icu = formats_find(formats, key.view);
    if (icu == NULL) {
        if ((icu = open_date(format, err)) == NULL) {
            return false;
        }
        formats_keep(formats, key.view, KIND_DATE, (void *)icu);
    }
    UChar units[UNITS_MAX];
    UErrorCode status = U_ZERO_ERROR;
    int32_t len = udat_format(icu, at_ms, units, UNITS_MAX, NULL, &status);
    if (U_FAILURE(status)) {
        return format_fail(err, "date style", status);
    }
    return format_append_units(units, len, out, err);
}

// ---- plural rules ----

bool format_plural(
    Formats *formats, Str locale, bool ordinal, double number, char out[16], Error *err)
{
    Key key;
    UErrorCode status = U_ZERO_ERROR;
    if (!format_make_key(&key, ordinal ? 'o' : 'p', locale, STR_EMPTY, STR_EMPTY, STR_EMPTY)) {
        return error_set(err, ERROR_PERMANENT, "the locale is too long");
    }
    UPluralRules *icu = formats_find(formats, key.view);
    if (icu == NULL) {
        char id[LOCALE_SIZE];
        format_locale_id(locale, id);
        icu = uplrules_openForType(
            id, ordinal ? UPLURAL_TYPE_ORDINAL : UPLURAL_TYPE_CARDINAL, &status);
        if (U_FAILURE(status)) {
            return format_fail(err, "locale", status);
        }
        formats_keep(formats, key.view, KIND_PLURAL, icu);
    }
    UChar units[16];
    int32_t len = uplrules_select(icu, number, units, 16, &status);
    if (U_FAILURE(status) || len > 15) {
        return format_fail(err, "locale", status);
    }
    u_UCharsToChars(units, out, len);
    out[len] = '\0';
    return true;
}

// ---- text ----

static UCaseMap *use_case_map(Formats *formats, Str locale, Error *err)
{
    Key key;
    char id[LOCALE_SIZE];
    UErrorCode status = U_ZERO_ERROR;
    if (!format_make_key(&key, 'c', locale, STR_EMPTY, STR_EMPTY, STR_EMPTY)) {
        (void)error_set(err, ERROR_PERMANENT, "the locale is too long");
        return NULL;
    }
    UCaseMap *icu = formats_find(formats, key.view);
    if (icu != NULL) {
        return icu;
    }
    format_locale_id(locale, id);
    icu = ucasemap_open(id, 0, &status);
    if (U_FAILURE(status)) {
        (void)format_fail(err, "locale", status);
        return NULL;
    }
    formats_keep(formats, key.view, KIND_CASE, icu);
    return icu;
}

bool format_case(Formats *formats, Str locale, bool upper, Str text, Buf *out, Error *err)
{
    UCaseMap *icu = use_case_map(formats, locale, err);
    UErrorCode status = U_ZERO_ERROR;
    size_t room = 3 * text.len + 16; // no character grows by more (full case mapping)
    if (icu == NULL) {
        return false;
    }
    if (room > INT32_MAX || !buf_reserve(out, room)) {
        return error_set(err, ERROR_PERMANENT, "the text of %zu bytes is too long", text.len);
    }
    int32_t (*map)(const UCaseMap *, char *, int32_t, const char *, int32_t, UErrorCode *) =
        upper ? ucasemap_utf8ToUpper : ucasemap_utf8ToLower;
    int32_t len =
        map(icu, out->ptr + out->len, (int32_t)room, text.ptr, (int32_t)text.len, &status);
    if (U_FAILURE(status)) {
        return format_fail(err, "text", status);
    }
    out->len += (size_t)len;
    return true;
}

// The character at the beginning of well-formed UTF-8.
static UChar32 first_character(Str text, size_t len)
{
    UChar32 c = (unsigned char)text.ptr[0];
    if (len > 1) {
        c &= 0x7f >> len;
    }
    for (size_t i = 1; i < len; i++) {
        c = (c << 6) | ((unsigned char)text.ptr[i] & 0x3f);
    }
    return c;
}

// Walks over characters until `max` of them are behind it; *ret_at is where it stands then.
static size_t walk_characters(Str text, size_t max, size_t *ret_at)
{
    bool joined = false;
    size_t count = 0;
    size_t at = 0;
    while (at < text.len) {
        Str rest = str_slice(text, at, text.len);
        size_t len = str_utf8_step(rest);
        len = len > 0 ? len : 1;
        UChar32 c = first_character(rest, len);
        bool extends = c >= 0x300 && (u_hasBinaryProperty(c, UCHAR_GRAPHEME_EXTEND) || c == 0x200d);
        if (!joined && !extends && count++ == max) {
            count--;
            break;
        }
        joined = c == 0x200d;
        at += len;
    }
    *ret_at = at;
    return count;
}

size_t format_prefix(Str text, size_t count)
{
    size_t at = 0;
    (void)walk_characters(text, count, &at);
    return at;
}

size_t format_length(Str text, size_t max)
{
    size_t at = 0;
    return walk_characters(text, max, &at);
}

bool format_is_rtl(Str locale)
{
    char id[LOCALE_SIZE];
    format_locale_id(locale, id);
    return id[0] != '\0' && uloc_isRightToLeft(id);
}
