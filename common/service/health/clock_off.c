// SPDX-License-Identifier: Apache-2.0
#include "common/service/health/clock_off.h"

#include "common/base/log.h"

int64_t clock_off_us(int64_t server_us, int64_t asked_us, int64_t answered_us)
{
    return server_us < asked_us      ? server_us - asked_us
           : server_us > answered_us ? server_us - answered_us
                                     : 0;
}

bool clock_is_off(int64_t off_us)
{
    int64_t limit_us = (int64_t)CLOCK_OFF_LIMIT_S * 1000000;
    return off_us > limit_us || off_us < -limit_us;
}

void clock_check_note(ClockCheck *check, int64_t off_us)
{
    bool off = clock_is_off(off_us);
    check->off_us = off_us;
    if (off && !check->off) {
        LOG(LOG_WARN, "a server's clock differs from this machine's",
            log_text("server", check->server), log_int("server_ahead_ms", off_us / 1000),
            log_text(
                "hint",
                "set both machines' clocks (chrony, systemd-timesyncd): due times, "
                "expiries and quiet hours are wrong by this difference; no restart is needed"));
    } else if (!off && check->off) {
        LOG(LOG_INFO, "the server's clock agrees with this machine's again",
            log_text("server", check->server));
    }
    check->off = off;
}
