// SPDX-License-Identifier: Apache-2.0
#include "common/model/zone.h"

#include <stdlib.h>
#include <unicode/ucal.h>
#include <unicode/ustring.h>

#include "common/base/arena.h"
#include "common/base/map.h"

enum {
    SPANS_MAX = 8,
    SPANS_TRIED_MAX = 64, // of changes within two days; more than any zone ever had
    SHORT_NAME_LEN = 3,
};

#define SECOND_US INT64_C(1000000)
#define MINUTE_US (60 * SECOND_US)
#define DAY_US (MINUTES_OF_DAY * MINUTE_US)
#define OFFSET_MAX_US (18 * 60 * MINUTE_US) // no zone was ever further from UTC

// The time between two changes of the clock.
typedef struct Span {
    int64_t from_us;
    int64_t until_us; // the first instant after it
    int64_t offset_us;
} Span;

struct Zone {
    char name[ZONE_NAME_MAX + 1];
    UCalendar *calendar;
    Span spans[SPANS_MAX]; // a ring of those used last
    size_t count;
    size_t next;
};

struct Zones {
    Map *by_name;
};

static void free_zone(void *value)
{
    Zone *zone = value;
    ucal_close(zone->calendar);
    free(zone);
}

Zones *zones_new(void)
{
    Zones *zones = xcalloc(1, sizeof *zones);
    zones->by_name = map_new(free_zone);
    return zones;
}

void zones_free(Zones *zones)
{
    if (zones != NULL) {
        map_free(zones->by_name);
        free(zones);
    }
}

size_t zones_count(const Zones *zones)
{
    return map_count(zones->by_name);
}

// Of the names of three letters IANA knows these; ICU adds two dozen with surprising meanings.
static bool is_known_short(Str name)
{
    static const char *const KNOWN[] = {"UTC", "GMT", "UCT", "EST", "MST", "HST", "WET",
                                        "CET", "MET", "EET", "PRC", "ROC", "ROK"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        if (str_eq(name, str_from(KNOWN[i]))) {
            return true;
        }
    }
    return false;
}

static bool is_iana(Str name, UChar wide[ZONE_NAME_MAX + 1])
{
    if (name.len == 0 || name.len > ZONE_NAME_MAX || str_eq(name, STR("Etc/Unknown")) ||
        (name.len == SHORT_NAME_LEN && !is_known_short(name))) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c <= ' ' || c >= 0x7f) {
            return false;
        }
        wide[i] = c;
    }
    wide[name.len] = 0;
    UChar canonical[ZONE_NAME_MAX + 1];
    UBool is_system = false;
    UErrorCode status = U_ZERO_ERROR;
    (void)ucal_getCanonicalTimeZoneID(
        wide, (int32_t)name.len, canonical, ZONE_NAME_MAX, &is_system, &status);
    return U_SUCCESS(status) && is_system; // an offset such as "GMT+3" is understood, but no zone
}

static Zone *open_zone(Str name, Error *err)
{
    UChar wide[ZONE_NAME_MAX + 1];
    if (!is_iana(name, wide)) {
        (void)error_set(
            err, ERROR_PERMANENT,
            "unknown time zone '%.*s'; expected an IANA name such as 'Europe/Berlin'",
            STR_ARG(str_slice(name, 0, ZONE_NAME_MAX)));
        return NULL;
    }
    UErrorCode status = U_ZERO_ERROR;
    UCalendar *calendar = ucal_open(wide, (int32_t)name.len, "en_US", UCAL_GREGORIAN, &status);
    if (U_FAILURE(status)) {
        (void)error_set(
            err, ERROR_PERMANENT, "time zone '%.*s' cannot be opened: %s", STR_ARG(name),
            u_errorName(status));
        return NULL;
    }
    Zone *zone = xcalloc(1, sizeof *zone);
    zone->calendar = calendar;
    (void)str_to_c(name, zone->name, sizeof zone->name); // of a zone's length: is_iana()
    return zone;
}

Zone *zones_get(Zones *zones, Str name, Error *err)
{
    Str wanted = name.len == 0 ? STR("UTC") : name;
    Zone *zone = map_get(zones->by_name, wanted);
    if (zone == NULL) {
        zone = open_zone(wanted, err);
        if (zone != NULL) {
            map_put(zones->by_name, wanted, zone);
        }
    }
    return zone;
}

const char *zone_name(const Zone *zone)
{
    return zone->name;
}

// ---- spans ----

static int64_t floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

static int64_t find_change(const Zone *zone, UTimeZoneTransitionType type, int64_t none)
{
    UDate at_ms = 0;
    UErrorCode status = U_ZERO_ERROR;
    bool found = ucal_getTimeZoneTransitionDate(zone->calendar, type, &at_ms, &status);
    return found && U_SUCCESS(status) ? (int64_t)at_ms * 1000 : none;
}

static Span load_span(Zone *zone, int64_t at_us)
{
    UErrorCode status = U_ZERO_ERROR;
    ucal_setMillis(zone->calendar, (UDate)floor_div(at_us, 1000), &status);
    int32_t standard_ms = ucal_get(zone->calendar, UCAL_ZONE_OFFSET, &status);
    int32_t summer_ms = ucal_get(zone->calendar, UCAL_DST_OFFSET, &status);
    return (Span){
        .from_us = find_change(zone, UCAL_TZ_TRANSITION_PREVIOUS_INCLUSIVE, INT64_MIN),
        .until_us = find_change(zone, UCAL_TZ_TRANSITION_NEXT, INT64_MAX),
        .offset_us = ((int64_t)standard_ms + summer_ms) * 1000,
    };
}

static Span find_span(Zone *zone, int64_t at_us)
{
    for (size_t i = 0; i < zone->count; i++) {
        const Span *span = &zone->spans[i];
        if (span->from_us <= at_us && at_us < span->until_us) {
            return *span;
        }
    }
    Span *place = &zone->spans[zone->next];
    *place = load_span(zone, at_us);
    zone->next = (zone->next + 1) % SPANS_MAX;
    zone->count += zone->count < SPANS_MAX;
    return *place;
}

// ---- local times ----

LocalTime zone_local(Zone *zone, int64_t at_us)
{
    Span span = find_span(zone, at_us);
    int64_t local_us = at_us + span.offset_us;
    int64_t day = floor_div(local_us, DAY_US);
    int64_t of_day_us = local_us - day * DAY_US;
    return (LocalTime){
        .day = day,
        .minute = (int32_t)(of_day_us / MINUTE_US),
        .rest_us = of_day_us % MINUTE_US,
        .offset_s = (int32_t)(span.offset_us / SECOND_US),
    };
}

// Walks the spans forward from one that surely began before the wall showed it.
int64_t zone_instant(Zone *zone, int64_t day, int32_t minute)
{
    int64_t local_us = day * DAY_US + minute * MINUTE_US;
    int64_t at_us = local_us - OFFSET_MAX_US;
    for (int tried = 0; tried < SPANS_TRIED_MAX; tried++) {
        Span span = find_span(zone, at_us);
        int64_t candidate_us = local_us - span.offset_us;
        if (candidate_us < span.until_us) {
            return candidate_us > span.from_us ? candidate_us : span.from_us; // the latter: a gap
        }
        at_us = span.until_us;
    }
    return at_us;
}

int32_t weekday_of(int64_t day)
{
    return (int32_t)(day + 3 - floor_div(day + 3, 7) * 7) + 1; // 1970-01-01 was a Thursday
}
