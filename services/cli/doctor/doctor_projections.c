// SPDX-License-Identifier: Apache-2.0
// A projection reads by position and has no consumer that shows it. So: is its lock held, does
// its position move, and is each stream still the one that the position belongs to? Why Postgres
// refuses a flush only the service's own log says.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/db/lock.h"
#include "common/history/rebuild.h"
#include "services/cli/doctor/doctor.h"
#include "services/cli/operate/stream_same.h"

enum { PROJECTIONS_MAX = 64, LOOKS = 10, LOOK_MS = 200 };

typedef struct Known {
    const char *schema, *name, *service;
    const char *const *streams;
    const char *remedy; // a whole command for one that has failed; NULL: none
} Known;

static const char *const of_people[] = {"PEOPLE", NULL};
static const char *const of_feed[] = {"FEED", NULL};
static const char *const of_status[] = {"STATUS", NULL};
static const Known known_projections[] = {
    {"archiver", "history", "archiver", history_streams, "stentor rebuild history --carry-older"},
    {"people", "people", "ingest", of_people, NULL},
    {"digest_flusher", "digests", "digest-flusher", of_people, NULL},
    {"feed", "feed", "gateway", of_feed, NULL},
    {"find", "find", "gateway", of_status, "stentor rebuild find"},
};
static const Known outbox_projections = {"stentor_outbox", NULL, "outbox-relay", NULL, NULL};

typedef struct Projection {
    const char *name;
    const Known *known;
    bool held;         // some process has its lock
    uint64_t position; // of all streams together: whether it moves
    uint64_t behind;
    const char *at;      // "STATUS 12, REQUEST_LOW 3"
    const char *failure; // NULL, or why it cannot go on
} Projection;

typedef struct Look {
    Projection at[PROJECTIONS_MAX];
    size_t count;
} Look;

// ---- one stream of a projection ----

typedef struct Row {
    const char *stream; // perhaps with a filter: "STATUS ntf.status.acme.>"
    StreamPlace place;
} Row;

// NULL: nothing keeps it from going on.
static const char *find_failure(
    Doctor *doctor, const Row *row, const char *stream, const char *filter,
    const StreamState *state)
{
    Arena *arena = doctor->cli->arena;
    Error err = {0};
    bool same = true;
    if (!stream_same(&doctor->session, arena, stream, &row->place, state, &same, &err)) {
        return arena_cstr(arena, str_from(err.text));
    }
    if (!same) {
        return arena_printf(arena, "stream '%s' was replaced since it was read", stream);
    }
    bool follows_all = filter == NULL && !state->last_per_subject;
    if (row->place.next > 1 && follows_all && state->first > row->place.next) {
        return arena_printf(
            arena, "stream '%s' begins at %llu, but it was read only up to %llu", stream,
            (unsigned long long)state->first, (unsigned long long)row->place.next - 1);
    }
    return NULL;
}

// Of a filter it is known whether anything waits, not how much.
static uint64_t count_behind(
    Doctor *doctor, const Row *row, const char *stream, const char *filter,
    const StreamState *state)
{
    Error ignored;
    int64_t at_us = 0;
    uint64_t next = row->place.next > state->first ? row->place.next : state->first;
    if (filter == NULL) {
        return state->last >= next ? state->last - next + 1 : 0;
    }
    (void)stream_stored_at(
        &doctor->session, doctor->cli->arena, stream, next, filter, &at_us, &ignored);
    return at_us != 0 ? 1 : 0;
}

static void add_row(Doctor *doctor, Projection *p, const Row *row)
{
    Arena *arena = doctor->cli->arena;
    char *stream = arena_cstr(arena, str_from(row->stream));
    char *filter = strchr(stream, ' ');
    if (filter != NULL) {
        *filter++ = '\0';
    }
    const StreamState *state = doctor_stream(doctor, stream);
    if (state == NULL) {
        p->failure = arena_printf(arena, "there is no stream '%s'", stream);
        return;
    }
    const char *failure = find_failure(doctor, row, stream, filter, state);
    p->failure = p->failure != NULL ? p->failure : failure;
    p->position += row->place.next;
    p->behind += count_behind(doctor, row, stream, filter, state);
    if (row->place.next > 1) {
        p->at = arena_printf(
            arena, "%s%s%s %llu", p->at, p->at[0] != '\0' ? ", " : "", row->stream,
            (unsigned long long)row->place.next - 1);
    }
}

// ---- a look at all of a schema ----

static PGresult *query(PGconn *conn, const char *sql, const char *param)
{
    const char *params[] = {param};
    PGresult *res = PQexecParams(conn, sql, param != NULL, NULL, params, NULL, NULL, 0);
    if (PQresultStatus(res) == PGRES_TUPLES_OK) {
        return res;
    }
    PQclear(res);
    return NULL;
}

static bool is_held(PGconn *conn, const char *name)
{
    char key[24];
    (void)snprintf(key, sizeof key, "%lld", (long long)db_lock_key(name));
    PGresult *res = query(
        conn,
        "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND classid = (($1::int8 >> 32) & 4294967295)::oid"
        " AND objid = ($1::int8 & 4294967295)::oid",
        key);
    bool held = res != NULL && PQntuples(res) > 0;
    PQclear(res);
    return held;
}

static Projection *find_projection(
    Doctor *doctor, PGconn *conn, const Known *known, const char *name, Look *look)
{
    for (size_t i = 0; i < look->count; i++) {
        if (strcmp(look->at[i].name, name) == 0) {
            return &look->at[i];
        }
    }
    if (look->count == PROJECTIONS_MAX) {
        return NULL;
    }
    Projection *p = &look->at[look->count++];
    *p = (Projection){
        .name = arena_cstr(doctor->cli->arena, str_from(name)),
        .known = known,
        .held = is_held(conn, name),
        .at = ""};
    return p;
}

static int64_t number_of(const PGresult *rows, int row, int column)
{
    return strtoll(PQgetvalue(rows, row, column), NULL, 10);
}

static bool has_row(const PGresult *rows, const char *stream)
{
    for (int i = 0; i < PQntuples(rows); i++) {
        if (strcmp(PQgetvalue(rows, i, 1), stream) == 0) {
            return true;
        }
    }
    return false;
}

// false: the positions cannot be read.
static bool look_at(Doctor *doctor, PGconn *conn, const Known *known, Look *look)
{
    const char *sql = arena_printf(
        doctor->cli->arena,
        "SELECT projection, stream, sequence, (extract(epoch FROM stream_created_at) * 1e6)::int8,"
        " coalesce((extract(epoch FROM stored_at) * 1e6)::int8, 0) FROM %s.positions"
        " ORDER BY projection, stream",
        known->schema);
    PGresult *rows = query(conn, sql, NULL);
    if (rows == NULL) {
        return false;
    }
    Projection *p =
        known->name != NULL ? find_projection(doctor, conn, known, known->name, look) : NULL;
    for (int i = 0; i < PQntuples(rows); i++) {
        p = find_projection(doctor, conn, known, PQgetvalue(rows, i, 0), look);
        Row row = {
            PQgetvalue(rows, i, 1),
            {number_of(rows, i, 3), (uint64_t)number_of(rows, i, 2) + 1, number_of(rows, i, 4)}};
        if (p != NULL) {
            add_row(doctor, p, &row);
        }
    }
    // Of which nothing was folded yet there is no row.
    for (int i = 0; p != NULL && known->streams != NULL && known->streams[i] != NULL; i++) {
        if (!has_row(rows, known->streams[i])) {
            add_row(doctor, p, &(Row){known->streams[i], {.next = 1}});
        }
    }
    PQclear(rows);
    return true;
}

// ---- what is said ----

// Behind is well when it moves.
static bool stands(const Projection *before, const Projection *now)
{
    return now->behind > 0 && now->position == before->position;
}

static const char *state_text(Arena *arena, const Projection *p, bool still, Verdict *ret_verdict)
{
    const char *service = p->known->service;
    const char *remedy = p->known->remedy;
    *ret_verdict = CHECK_WARN;
    if (p->failure != NULL) {
        *ret_verdict = CHECK_FAIL;
        return arena_printf(
            arena, "failed: %s%s%s%s", p->failure, remedy != NULL ? " (HINT: " : "",
            remedy != NULL ? remedy : "", remedy != NULL ? ")" : "");
    }
    if (!p->held) {
        return arena_printf(arena, "no process folds it (HINT: is stentor-%s running?)", service);
    }
    if (still) {
        return arena_printf(arena, "stands still (HINT: the log of stentor-%s says why)", service);
    }
    *ret_verdict = CHECK_OK;
    return "folding";
}

static void say(Doctor *doctor, const Projection *before, const Projection *now)
{
    Verdict verdict;
    Arena *arena = doctor->cli->arena;
    const char *state = state_text(arena, now, stands(before, now), &verdict);
    const char *text = arena_printf(
        arena, "%llu event%s behind%s%s, %s", (unsigned long long)now->behind,
        now->behind == 1 ? "" : "s", now->at[0] != '\0' ? ", at " : "", now->at, state);
    doctor_say(doctor, arena_printf(arena, "projection %s", now->name), verdict, text);
}

static bool any_in_doubt(const Look *before, const Look *now)
{
    for (size_t i = 0; i < now->count && i < before->count; i++) {
        if (!now->at[i].held || stands(&before->at[i], &now->at[i])) {
            return true;
        }
    }
    return false;
}

static void check_projections(Doctor *doctor, PGconn *conn, const Known *known)
{
    Look before = {0}, now = {0};
    if (!look_at(doctor, conn, known, &before)) {
        doctor_say(
            doctor,
            arena_printf(
                doctor->cli->arena, "projection %s",
                known->name != NULL ? known->name : known->schema),
            CHECK_WARN,
            known->name != NULL
                ? "its position cannot be read (HINT: stentor migrate)"
                : "no positions that this role can read (HINT: as the relay's role: stentor doctor "
                  "--outbox-database URL)");
        return;
    }
    now = before;
    for (int i = 0; i < LOOKS && any_in_doubt(&before, &now); i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
        now = (Look){0};
        (void)look_at(doctor, conn, known, &now);
    }
    for (size_t i = 0; i < now.count; i++) {
        say(doctor, i < before.count ? &before.at[i] : &now.at[i], &now.at[i]);
    }
}

void doctor_projections(Doctor *doctor, PGconn *conn)
{
    for (size_t i = 0; i < sizeof known_projections / sizeof known_projections[0]; i++) {
        check_projections(doctor, conn, &known_projections[i]);
    }
}

void doctor_outbox_projections(Doctor *doctor, PGconn *conn)
{
    check_projections(doctor, conn, &outbox_projections);
}
