// SPDX-License-Identifier: Apache-2.0
// Calendar arithmetic by Howard Hinnant's "chrono-compatible low-level date algorithms": years
// begin in March, so that the leap day is the last of its year.
#include "common/base/clock.h"

#include <time.h>

#define SECOND_US INT64_C(1000000)
#define DAY_S INT64_C(86400)

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * SECOND_US + now.tv_nsec / 1000;
}

int64_t clock_now_us(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_mono_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_thread_cpu_us(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

typedef struct Civil {
    int64_t year;
    int64_t month; // 1..12
    int64_t day;   // 1..31
} Civil;

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t days_from_civil(Civil date)
{
    int64_t year = date.month <= 2 ? date.year - 1 : date.year;
    int64_t era = floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static Civil civil_from_days(int64_t days)
{
    days += 719468;
    int64_t era = floor_div(days, 146097);
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
    return (Civil){
        .year = year_of_era + era * 400 + (month <= 2),
        .month = month,
        .day = day_of_year - (153 * shifted + 2) / 5 + 1,
    };
}

static char *put_group(char *at, int64_t value, int width, char after)
{
    for (int i = width - 1; i >= 0; i--) {
        at[i] = (char)('0' + value % 10);
        value /= 10;
    }
    at[width] = after;
    return at + width + 1;
}

void clock_format(int64_t at_us, char out[CLOCK_RFC3339_SIZE])
{
    int64_t seconds = floor_div(at_us, SECOND_US);
    int64_t days = floor_div(seconds, DAY_S);
    int64_t of_day = seconds - days * DAY_S;
    Civil date = civil_from_days(days);
    char *at = put_group(out, date.year, 4, '-');
    at = put_group(at, date.month, 2, '-');
    at = put_group(at, date.day, 2, 'T');
    at = put_group(at, of_day / 3600, 2, ':');
    at = put_group(at, of_day / 60 % 60, 2, ':');
    at = put_group(at, of_day % 60, 2, '.');
    at = put_group(at, at_us - seconds * SECOND_US, 6, 'Z');
    *at = '\0';
}

static bool take_char(Str *rest, char a, char b)
{
    if (rest->len == 0 || (rest->ptr[0] != a && rest->ptr[0] != b)) {
        return false;
    }
    *rest = str_slice(*rest, 1, rest->len);
    return true;
}

static bool take_number(Str *rest, size_t width, int64_t *ret_value)
{
    int64_t value = 0;
    if (rest->len < width) {
        return false;
    }
    for (size_t i = 0; i < width; i++) {
        int digit = rest->ptr[i] - '0';
        if (digit < 0 || digit > 9) {
            return false;
        }
        value = value * 10 + digit;
    }
    *rest = str_slice(*rest, width, rest->len);
    *ret_value = value;
    return true;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

static bool take_date(Str *rest, int64_t *ret_days)
{
    Civil date;
    bool shaped = take_number(rest, 4, &date.year) && take_char(rest, '-', '-') &&
                  take_number(rest, 2, &date.month) && take_char(rest, '-', '-') &&
                  take_number(rest, 2, &date.day);
    if (!shaped || date.month < 1 || date.month > 12 || date.day < 1 ||
        date.day > days_in_month(date.year, date.month)) {
        return false;
    }
    *ret_days = days_from_civil(date);
    return true;
}

// A leap second, "23:59:60", counts as the first of the next minute, as POSIX time has none.
static bool take_time(Str *rest, int64_t *ret_seconds)
{
    int64_t hour;
    int64_t minute;
    int64_t second;
    bool shaped = take_number(rest, 2, &hour) && take_char(rest, ':', ':') &&
                  take_number(rest, 2, &minute) && take_char(rest, ':', ':') &&
                  take_number(rest, 2, &second);
    if (!shaped || hour > 23 || minute > 59 || second > 60) {
        return false;
    }
    *ret_seconds = hour * 3600 + minute * 60 + second;
    return true;
}

// Digits past the microsecond are dropped, not rounded: a time must not move into the future.
static bool take_fraction(Str *rest, int64_t *ret_us)
{
    *ret_us = 0;
    if (!take_char(rest, '.', '.')) {
        return true;
    }
    int64_t unit = SECOND_US;
    int64_t digit;
    size_t before = rest->len;
    while (take_number(rest, 1, &digit)) {
        unit /= 10;
        *ret_us += digit * unit;
    }
    return rest->len < before;
}

static bool take_offset(Str *rest, int64_t *ret_seconds)
{
    *ret_seconds = 0;
    if (take_char(rest, 'Z', 'z')) {
        return true;
    }
    bool east = rest->len > 0 && rest->ptr[0] == '+';
    int64_t hours;
    int64_t minutes;
    bool shaped = take_char(rest, '+', '-') && take_number(rest, 2, &hours) &&
                  take_char(rest, ':', ':') && take_number(rest, 2, &minutes);
    if (!shaped || hours > 23 || minutes > 59) {
        return false;
    }
    *ret_seconds = (hours * 3600 + minutes * 60) * (east ? 1 : -1);
    return true;
}

bool clock_parse(Str text, int64_t *ret_us)
{
    int64_t days;
    int64_t seconds;
    int64_t us;
    int64_t offset;
    bool shaped = take_date(&text, &days) && take_char(&text, 'T', 't') &&
                  take_time(&text, &seconds) && take_fraction(&text, &us) &&
                  take_offset(&text, &offset) && text.len == 0;
    if (!shaped) {
        return false;
    }
    int64_t at_us = (days * DAY_S + seconds - offset) * SECOND_US + us;
    int64_t end_us = days_from_civil((Civil){10000, 1, 1}) * DAY_S * SECOND_US;
    if (at_us < 0 || at_us >= end_us) {
        return false;
    }
    *ret_us = at_us;
    return true;
}

void clock_month(int64_t at_us, int64_t *ret_start_us, int64_t *ret_end_us)
{
    Civil start = civil_from_days(floor_div(at_us, DAY_S * SECOND_US));
    start.day = 1;
    Civil end =
        start.month == 12 ? (Civil){start.year + 1, 1, 1} : (Civil){start.year, start.month + 1, 1};
    *ret_start_us = days_from_civil(start) * DAY_S * SECOND_US;
    *ret_end_us = days_from_civil(end) * DAY_S * SECOND_US;
}
