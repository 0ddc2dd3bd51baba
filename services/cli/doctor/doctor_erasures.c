// SPDX-License-Identifier: Apache-2.0
// Erasures that wait, and those that a restored database lacks.
#include <stdlib.h>

#include "services/cli/doctor/doctor.h"

static const char WAITING[] =
    "SELECT erasures, oldest_s::int8, keys.gate_closed() FROM erasure.waiting()";

enum { LATE_S = 86400 };

static void say(Doctor *doctor, const PGresult *row)
{
    Arena *arena = doctor->cli->arena;
    int64_t oldest_s = strtoll(PQgetvalue(row, 0, 1), NULL, 10);
    if (PQgetisnull(row, 0, 2) == 0) {
        doctor_say(
            doctor, "erasures", CHECK_FAIL,
            arena_printf(
                arena, "no service that holds keys starts: %s (HINT: stentor erase replay)",
                PQgetvalue(row, 0, 2)));
    } else if (oldest_s > LATE_S) {
        doctor_say(
            doctor, "erasures", CHECK_FAIL,
            arena_printf(
                arena,
                "%s wait, the oldest for %s: the person's data is readable (HINT: stentor erase "
                "run, every hour; it names what fails)",
                PQgetvalue(row, 0, 0), doctor_age(doctor->cli, oldest_s * 1000000)));
    } else {
        doctor_say(
            doctor, "erasures", CHECK_OK,
            arena_printf(arena, "%s wait for the next run", PQgetvalue(row, 0, 0)));
    }
}

void doctor_erasures(Doctor *doctor, PGconn *conn)
{
    PGresult *row = PQexec(conn, WAITING);
    if (PQresultStatus(row) == PGRES_TUPLES_OK && PQntuples(row) == 1) {
        say(doctor, row);
    } else {
        doctor_say(
            doctor, "erasures", CHECK_FAIL,
            "the function erasure.waiting cannot be called (HINT: stentor migrate)");
    }
    PQclear(row);
}
