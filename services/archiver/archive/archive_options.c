// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/archive/archive_options.h"

bool archive_settings_check(const ArchiveSettings *settings, Error *err)
{
    QuietHours hours;
    return archive_quiet_parse(settings->quiet_hours, &hours, err);
}

bool archive_quiet_parse(const char *text, QuietHours *ret, Error *err)
{
    Str rest = str_from(text);
    Str from = STR_EMPTY;
    int64_t hours[2] = {0, 0};
    *ret = (QuietHours){0};
    if (rest.len == 0) {
        return true;
    }
    bool ok = str_split(&rest, '-', &from) && str_to_i64(from, &hours[0]) &&
              str_to_i64(rest, &hours[1]) && hours[0] >= 0 && hours[0] < 24 && hours[1] >= 0 &&
              hours[1] <= 24;
    *ret = (QuietHours){(int)hours[0], (int)hours[1] % 24};
    return ok ||
           error_set(
               err, ERROR_CONFIG,
               "STENTOR_ARCHIVE_QUIET_HOURS is '%.40s': expected two hours of UTC, as 1-5", text);
}

bool archive_is_quiet(QuietHours hours, int64_t now_us)
{
    int hour = (int)(now_us / 1000000 / 3600 % 24);
    if (hours.from == hours.until) {
        return true;
    }
    return hours.from < hours.until ? hour >= hours.from && hour < hours.until
                                    : hour >= hours.from || hour < hours.until;
}
