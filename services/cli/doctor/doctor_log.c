// SPDX-License-Identifier: Apache-2.0
// The log in object storage: events that wait to be stored, for how long, and events stored
// nowhere. Age-based removal by the server waits for no reader, so a stream that is not stored in
// time has a hole.
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "services/cli/doctor/doctor.h"
#include "services/cli/operate/stream_same.h"

static const int64_t LATE_US = INT64_C(2) * 86400 * 1000000; // a segment ends after a day

typedef struct LogStand {
    uint64_t waiting;
    int64_t oldest_us; // the age of the oldest of them; 0: none
    const char *stream;
} LogStand;

static PGresult *query(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);
    if (PQresultStatus(res) == PGRES_TUPLES_OK) {
        return res;
    }
    PQclear(res);
    return NULL;
}

static void add_stream(Doctor *doctor, LogStand *stand, const char *stream, uint64_t stored)
{
    Error ignored;
    int64_t at_us = 0;
    const StreamState *state = doctor_stream(doctor, stream);
    if (state == NULL || state->last <= stored) {
        return;
    }
    uint64_t next = stored + 1 > state->first ? stored + 1 : state->first;
    stand->waiting += state->last - next + 1;
    (void)stream_stored_at(
        &doctor->session, doctor->cli->arena, stream, next, topology_stream(stream)->subjects,
        &at_us, &ignored);
    int64_t age_us = at_us != 0 ? clock_now_us() - at_us : 0;
    if (age_us > stand->oldest_us) {
        stand->oldest_us = age_us;
        stand->stream = stream;
    }
}

static void say_waiting(Doctor *doctor, const LogStand *stand)
{
    Arena *arena = doctor->cli->arena;
    bool late = stand->oldest_us > LATE_US;
    const char *text =
        arena_printf(arena, "%llu messages wait to be stored", (unsigned long long)stand->waiting);
    if (stand->stream != NULL) {
        const StreamSpec *spec = topology_stream(stand->stream);
        text = arena_printf(
            arena, "%s, the oldest for %s in %s%s", text, doctor_age(doctor->cli, stand->oldest_us),
            stand->stream,
            !late                 ? ""
            : spec->max_age_s > 0 ? arena_printf(
                                        arena,
                                        ", which removes them after %lld days (HINT: the "
                                        "archiver's log says why they are not stored)",
                                        (long long)(spec->max_age_s / 86400))
                                  : " (HINT: the archiver's log says why they are not stored)");
    }
    doctor_say(doctor, "log in storage", late ? CHECK_WARN : CHECK_OK, text);
}

static void say_holes(Doctor *doctor, PGconn *conn)
{
    PGresult *res = query(
        conn, "SELECT stream || ' ' || first_sequence || ' to ' || last_sequence || ' (' || reason "
              "|| ')', count(*) OVER () FROM archive.log_faults() WHERE reason <> 'before' "
              "ORDER BY found_at DESC NULLS FIRST LIMIT 1");
    if (res != NULL && PQntuples(res) > 0) {
        doctor_say(
            doctor, "log's holes", CHECK_WARN,
            arena_printf(
                doctor->cli->arena, "%s in no stream and no segment, last %s",
                PQgetvalue(res, 0, 1), PQgetvalue(res, 0, 0)));
    }
    PQclear(res);
}

void doctor_log(Doctor *doctor, PGconn *conn)
{
    PGresult *res = query(
        conn, "SELECT stream, sequence FROM archive.log_positions WHERE active ORDER BY stream");
    LogStand stand = {0};
    int rows = res != NULL ? PQntuples(res) : 0;
    for (int row = 0; row < rows; row++) {
        const char *stream = arena_cstr(doctor->cli->arena, str_from(PQgetvalue(res, row, 0)));
        if (topology_stream(stream) != NULL) {
            add_stream(doctor, &stand, stream, strtoull(PQgetvalue(res, row, 1), NULL, 10));
        }
    }
    if (rows > 0) {
        say_waiting(doctor, &stand);
    }
    PQclear(res);
    say_holes(doctor, conn);
}
