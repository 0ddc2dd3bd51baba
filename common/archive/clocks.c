// SPDX-License-Identifier: Apache-2.0
#include "common/archive/clocks.h"

#include <string.h>

#include "common/base/clock.h"

// clang-format off
const char clocks_sql[] =
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8, coalesce((extract(epoch FROM p.stored_at) * 1000000)::int8, 0),"
    " coalesce(p.stream, '') FROM (SELECT) AS one LEFT JOIN (SELECT l.stream, l.stored_at FROM archive.log_positions l"
    " WHERE l.active AND l.stored_at IS NOT NULL ORDER BY l.stored_at DESC LIMIT 1) p ON true";
// clang-format on

static const int64_t second_us = 1000000;

// To the second: the text is for people.
static void print(int64_t at_us, char out[CLOCK_RFC3339_SIZE])
{
    clock_format(at_us - at_us % second_us, out);
    char *fraction = strchr(out, '.');
    if (fraction != NULL) {
        memcpy(fraction, "Z", 2);
    }
}

static bool is_apart(int64_t one_us, int64_t other_us)
{
    int64_t apart_us = one_us > other_us ? one_us - other_us : other_us - one_us;
    return apart_us > CLOCKS_APART_S * second_us;
}

bool clocks_agree(const ClockReadings *readings, Error *err)
{
    char host[CLOCK_RFC3339_SIZE];
    char other[CLOCK_RFC3339_SIZE];
    print(readings->host_us, host);
    if (is_apart(readings->host_us, readings->postgres_us)) {
        print(readings->postgres_us, other);
        return error_set(
            err, ERROR_PERMANENT,
            "nothing is deleted while clocks disagree: this host's says %s, Postgres's %s (HINT: "
            "set the wrong one right, by NTP)",
            host, other);
    }
    if (readings->stored_us == 0) {
        return true;
    }
    print(readings->stored_us, other);
    if (readings->stored_us > readings->host_us + CLOCKS_APART_S * second_us) {
        return error_set(
            err, ERROR_PERMANENT,
            "nothing is deleted while clocks disagree: this host's says %s, NATS stored a message "
            "of '%s' at %s (HINT: NTP; ends with the stream's next segment)",
            host, readings->stream, other);
    }
    return readings->host_us - readings->stored_us <= CLOCKS_QUIET_S * second_us ||
           error_set(
               err, ERROR_PERMANENT,
               "nothing is deleted while clocks disagree: this host's says %s, the newest stored "
               "message is of %s (HINT: NTP; if it was quiet, this ends by itself in a day)",
               host, other);
}
