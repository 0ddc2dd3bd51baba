// SPDX-License-Identifier: Apache-2.0
// The clocks of the servers, compared with this machine's.
#include "common/base/clock.h"
#include "common/service/health/clock_off.h"
#include "services/cli/doctor/doctor.h"

static void say_clock(Doctor *doctor, const char *name, int64_t off_us)
{
    bool off = clock_is_off(off_us);
    long long seconds = (long long)(off_us < 0 ? -off_us : off_us) / 1000000;
    doctor_say(
        doctor, name, off ? CHECK_FAIL : CHECK_OK,
        off ? arena_printf(
                  doctor->cli->arena,
                  "%lld s %s this machine's: due times, expiries and quiet hours are wrong by as "
                  "much (HINT: synchronise both clocks, with chrony or systemd-timesyncd)",
                  seconds, off_us < 0 ? "behind" : "ahead of")
            : "agrees with this machine's");
}

void doctor_postgres_clock(Doctor *doctor, PGconn *conn)
{
    int64_t server_us = 0, asked_us = clock_now_us();
    PGresult *res = PQexec(conn, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8");
    int64_t answered_us = clock_now_us();
    if (PQntuples(res) == 1 && str_to_i64(str_from(PQgetvalue(res, 0, 0)), &server_us)) {
        say_clock(doctor, "postgres clock", clock_off_us(server_us, asked_us, answered_us));
    }
    PQclear(res);
}

void doctor_nats_clock(Doctor *doctor)
{
    BusClock clock;
    int64_t now_us = clock_now_us(), now_ns = (int64_t)uv_hrtime();
    if (bus_server_clock(doctor->session.bus, &clock)) {
        say_clock(
            doctor, "nats clock",
            clock_off_us(
                clock.server_us, now_us - (now_ns - clock.asked_ns) / 1000,
                now_us - (now_ns - clock.heard_ns) / 1000));
    }
}
