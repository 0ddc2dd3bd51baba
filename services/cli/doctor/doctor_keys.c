// SPDX-License-Identifier: Apache-2.0
// Epoch keys and the keys' own dump, as the process that does the work on keys has noted them.
#include <stdlib.h>
#include <string.h>

#include "services/cli/doctor/doctor.h"

// One row. Seconds are null where nothing was noted.
static const char STATE_SQL[] =
    "SELECT (SELECT count(*) FROM keys.epochs), w.failure,"
    " extract(epoch FROM now() - w.looked_at)::int8,"
    " (SELECT extract(epoch FROM now() - e.opened_at)::int8 FROM keys.epochs e WHERE e.closed_at "
    "IS NULL),"
    " (SELECT count(*) FROM keys.epochs e WHERE e.closed_at IS NOT NULL AND e.emptied_at IS NULL),"
    " extract(epoch FROM now() - w.dumped_at)::int8, w.dumped_keys FROM keys.work w";

enum { SILENT_S = 600, DAY_S = 86400, DUMP_MAX_S = 2 * DAY_S, UNEMPTIED_MAX = 1 };

static int64_t number(const PGresult *row, int column)
{
    return PQgetisnull(row, 0, column) == 1 ? -1 : strtoll(PQgetvalue(row, 0, column), NULL, 10);
}

static const char *age(const Doctor *doctor, int64_t seconds)
{
    return doctor_age(doctor->cli, seconds * 1000000);
}

static void check_epochs(Doctor *doctor, const PGresult *row)
{
    Arena *arena = doctor->cli->arena;
    int64_t silent_s = number(row, 2);
    if (PQgetisnull(row, 0, 1) == 0) {
        doctor_say(
            doctor, "epoch keys", CHECK_FAIL,
            arena_printf(arena, "the work on keys fails: %s", PQgetvalue(row, 0, 1)));
    } else if (number(row, 0) == 0) {
        doctor_say(
            doctor, "epoch keys", CHECK_WARN,
            doctor->cli->settings.epoch_keys_dir[0] != '\0'
                ? "none yet: ingest makes the first one a minute or two after its first start"
                : "none: what is erased still opens from old backups of Postgres, with the master "
                  "key (HINT: STENTOR_EPOCH_KEYS_DIR, deploy/KEYS.md)");
    } else if (silent_s < 0 || silent_s > SILENT_S) {
        doctor_say(
            doctor, "epoch keys", CHECK_FAIL,
            "no ingest has done the work on keys for ten minutes (HINT: is one running?)");
    } else {
        doctor_say(
            doctor, "epoch keys", number(row, 4) > UNEMPTIED_MAX ? CHECK_WARN : CHECK_OK,
            arena_printf(
                arena, "the open epoch is %s old; %s closed ones still wrap data keys",
                age(doctor, number(row, 3)), PQgetvalue(row, 0, 4)));
    }
}

// Without epochs every backup of Postgres opens by itself.
static void check_dump(Doctor *doctor, const PGresult *row)
{
    int64_t old_s = number(row, 5);
    if (number(row, 0) == 0) {
        return;
    }
    if (old_s < 0) {
        doctor_say(
            doctor, "keys dump", CHECK_WARN,
            "none: an old backup of Postgres cannot be restored (HINT: STENTOR_KEYS_DUMP_DIR, "
            "deploy/KEYS.md)");
        return;
    }
    doctor_say(
        doctor, "keys dump", old_s > DUMP_MAX_S ? CHECK_FAIL : CHECK_OK,
        arena_printf(
            doctor->cli->arena, "%s data keys, read back %s ago", PQgetvalue(row, 0, 6),
            age(doctor, old_s)));
}

void doctor_keys(Doctor *doctor, PGconn *conn)
{
    PGresult *row = PQexec(conn, STATE_SQL);
    if (PQresultStatus(row) == PGRES_TUPLES_OK && PQntuples(row) == 1) {
        check_epochs(doctor, row);
        check_dump(doctor, row);
    } else {
        doctor_say(doctor, "epoch keys", CHECK_FAIL, "the table keys.work cannot be read");
    }
    PQclear(row);
}
