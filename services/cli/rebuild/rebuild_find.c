// SPDX-License-Identifier: Apache-2.0
// rebuild find: the search index. Each of its rows says what one event of STATUS says, and none is
// ever changed, so there is nothing to compare: what is made of the log goes, and the gateway that
// folds it begins again, while the index is searched. The days before the log stay as they are.
//
// Killed before the commit: nothing happened. Killed after it: the gateway folds all the same.
#include <time.h>

#include "common/base/clock.h"
#include "common/db/lock.h"
#include "common/history/rebuild_pg.h"
#include "services/cli/rebuild/rebuild_run.h"

enum { LOOK_MS = 200, IDLE_LOOKS = 150 }; // half a minute without a gateway

static const char position_sql[] =
    "SELECT coalesce((SELECT sequence FROM find.positions WHERE projection = 'find'), 0),"
    " EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND classid = (($1::int8 >> 32) & 4294967295)::oid AND objid = ($1::int8 & "
    "4294967295)::oid)::int";

static bool rewind_index(Rebuild *rebuild, RebuildPg *pg, Error *err)
{
    char since[CLOCK_RFC3339_SIZE];
    if (rebuild->streams[0].count == 0) {
        return error_set(
            err, ERROR_CONFIG, "'STATUS' holds nothing that the index could be made of");
    }
    clock_format(rebuild->streams[0].first_at_us, since);
    CLEANUP(rebuild_pg_free)
    PGresult *done =
        rebuild_pg_ask(pg, "the index", "SELECT find.rewind($1::timestamptz)::text", since, err);
    return done != NULL;
}

static int64_t number_of(const PGresult *rows, int column)
{
    int64_t value = 0;
    (void)str_to_i64(str_from(PQgetvalue(rows, 0, column)), &value);
    return value;
}

// Until the gateway has folded what the log held when this began.
static bool wait_until_folded(Rebuild *rebuild, RebuildPg *pg, Error *err)
{
    int idle = 0;
    const char *lock = arena_printf(rebuild->cli->arena, "%lld", (long long)db_lock_key("find"));
    for (;;) {
        CLEANUP(rebuild_pg_free)
        PGresult *rows = rebuild_pg_ask(pg, "the position", position_sql, lock, err);
        if (rows == NULL) {
            return false;
        }
        if ((uint64_t)number_of(rows, 0) >= rebuild->streams[0].last) {
            return true;
        }
        idle = number_of(rows, 1) != 0 ? 0 : idle + 1;
        if (idle == IDLE_LOOKS) {
            return error_set(
                err, ERROR_TRANSIENT,
                "the index is taken back, and no gateway folds it (HINT: is stentor-gateway "
                "running, with STENTOR_GATEWAY_FIND on and this database?)");
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

bool rebuild_find(Rebuild *rebuild, Error *err)
{
    if (rebuild->dry || rebuild->carry) {
        return error_set(
            err, ERROR_USAGE,
            "find takes neither --dry-run nor --carry-older: its rows are only added, what is "
            "older than the log stays");
    }
    rebuild->stream_names = rebuild->row->streams;
    rebuild->stream_count = 1;
    RebuildPg *pg = rebuild_pg_open(rebuild->cli->settings.database_url, "find", "find", err);
    bool ok = pg != NULL && rebuild_ask_streams(rebuild, err) && rewind_index(rebuild, pg, err) &&
              wait_until_folded(rebuild, pg, err);
    rebuild->events = rebuild->streams[0].count;
    rebuild_pg_close(pg);
    return ok;
}
