// SPDX-License-Identifier: Apache-2.0
#include "common/archive/requests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/archive_clocks.h"
#include "common/archive/database.h"
#include "common/archive/owner.h"
#include "common/archive/unit/unit_restore.h"
#include "common/base/clock.h"

enum { PROGRESS_US = 500 * 1000, FAULTS_MAX = 64 * 1024, ORPHANS_MAX = 64 * 1024 };

typedef struct Request {
    char id[24];
    const char *kind, *unit;
    int64_t older_us; // -1: not said
    int64_t until_us;
    bool chosen; // by an operator, and so the hour
} Request;

// ---- progress ----

static void write_more(RequestProgress *progress)
{
    char numbers[2][24];
    Error ignored;
    (void)snprintf(numbers[0], sizeof numbers[0], "%" PRIu64, progress->rows);
    (void)snprintf(numbers[1], sizeof numbers[1], "%" PRIu64, progress->bytes);
    const char *params[] = {progress->request, numbers[0], numbers[1]};
    if (progress->request[0] != '\0') {
        archive_do(
            progress->pg, "request.more",
            "UPDATE archive.requests SET rows_done = rows_done + $2::int8, bytes_done = bytes_done "
            "+ $3::int8 WHERE id = $1",
            params, 3, &ignored);
    }
    progress->rows = 0;
    progress->bytes = 0;
    progress->written_us = clock_mono_us();
}

static void on_more(void *ctx, uint64_t rows, uint64_t bytes)
{
    RequestProgress *progress = ctx;
    progress->rows += rows;
    progress->bytes += bytes;
    if (clock_mono_us() - progress->written_us > PROGRESS_US) {
        write_more(progress);
    }
}

// clang-format off
static const char step_sql[] =
    "WITH seen AS (UPDATE archive.installation SET seen_at = now() WHERE owner_epoch = $2::int8)"
    " UPDATE archive.requests SET step = $3, step_at = now(), rows_done = 0, bytes_done = 0,"
    " rows_total = coalesce((SELECT sum(c.rows) FROM archive.counts c WHERE c.unit = $4), 0),"
    " bytes_total = coalesce((SELECT sum(o.bytes) FROM archive.objects o WHERE o.unit = $4 AND o.state IN ('written', 'verified')), 0)"
    " WHERE id = nullif($1, '')::int8";
// clang-format on

static void on_step(void *ctx, const char *step, const char *unit)
{
    RequestProgress *progress = ctx;
    char text[160];
    Error ignored;
    (void)snprintf(text, sizeof text, "%s %s", step, unit);
    const char *params[] = {progress->request, progress->epoch, text, unit};
    progress->rows = 0;
    progress->bytes = 0;
    archive_do(progress->pg, "request.step", step_sql, params, 4, &ignored);
}

ArchiveProgress request_progress(RequestProgress *progress)
{
    return (ArchiveProgress){.step = on_step, .more = on_more, .ctx = progress};
}

// ---- the requests themselves ----

static bool do_run(
    Archive *archive, const Request *request, const ArchiveRun *defaults, Buf *message, Error *err)
{
    ArchiveRun run = *defaults;
    ArchiveRan ran;
    run.unit = request->unit;
    run.hot_us = request->older_us;
    run.quiet = run.quiet || request->chosen;
    run.at_once = strcmp(request->kind, "expire") == 0;
    if (!archive_run(archive, &run, &ran, err)) {
        return false;
    }
    if (ran.failed > 0) {
        return error_set(err, ERROR_PERMANENT, "%s", ran.failure);
    }
    return buf_printf(
        message, "%" PRId64 " units moved, in %" PRId64 " steps", ran.units, ran.steps);
}

static bool do_verify(Archive *archive, const Request *request, Buf *message, Error *err)
{
    Buf faults;
    int64_t count = 0;
    buf_init(&faults, FAULTS_MAX);
    bool ok = archive_verify(archive, request->unit, &faults, &count, err);
    if (ok && faults.len > 0) {
        buf_str(message, str_trim(buf_view(&faults)));
        ok = error_set(err, ERROR_PERMANENT, "%s", "faults");
    }
    buf_done(&faults);
    return ok && buf_printf(message, "%" PRId64 " objects are as they were written", count);
}

static int64_t number_of(const Request *request)
{
    int64_t number = 0;
    return str_to_i64(str_from(request->id), &number) ? number : 0;
}

static bool do_restore(
    Archive *archive, const Request *request, const ArchiveRun *defaults, Buf *message, Error *err)
{
    Unit unit;
    Arena *arena = arena_new(0);
    bool ok = request->unit != NULL ||
              error_set(err, ERROR_CONFIG, "a restore names its unit (HINT: stentor archive list)");
    ok = ok && units_find(archive, request->unit, arena, &unit, err) &&
         unit_want(archive, &unit, number_of(request), request->until_us, err) &&
         do_run(archive, request, defaults, message, err) &&
         units_find(archive, request->unit, arena, &unit, err);
    if (ok && unit.facts.state != UNIT_RESTORED) {
        ok = error_set(
            err, ERROR_PERMANENT, "unit '%s' is %s", unit.id, unit_state_name(unit.facts.state));
    }
    if (ok) {
        char until[CLOCK_RFC3339_SIZE];
        clock_format(unit.facts.restore_us, until);
        buf_clear(message);
        buf_printf(message, "unit '%s' is in Postgres until %s", unit.id, until);
    }
    arena_free(arena);
    return ok;
}

static bool do_orphans(Archive *archive, const Request *request, Buf *message, Error *err)
{
    Buf found;
    ArchiveOrphans orphans = {
        .older_us = request->older_us < 0 ? INT64_C(7) * 86400 * 1000000 : request->older_us,
        .removes = true};
    buf_init(&found, ORPHANS_MAX);
    bool ok = archive_clocks_agree(archive, err) && archive_orphans(archive, &orphans, &found, err);
    buf_done(&found);
    return ok && buf_printf(
                     message, "%" PRId64 " orphans deleted, %" PRIu64 " bytes", orphans.count,
                     orphans.bytes);
}

static bool do_request(
    Archive *archive, const Request *request, const ArchiveRun *defaults, Buf *message, Error *err)
{
    const char *kind = request->kind;
    if (strcmp(kind, "adopt") == 0) {
        return owner_take(archive, true, err) &&
               buf_printf(message, "the bucket is this database's, epoch %" PRId64, archive->epoch);
    }
    if (archive->epoch == 0 && !owner_take(archive, false, err)) {
        return false;
    }
    if (strcmp(kind, "verify") == 0) {
        return do_verify(archive, request, message, err);
    }
    if (strcmp(kind, "restore") == 0) {
        return do_restore(archive, request, defaults, message, err);
    }
    if (strcmp(kind, "delete-orphans") == 0) {
        return do_orphans(archive, request, message, err);
    }
    Request plain = *request;
    plain.older_us = strcmp(kind, "expire") == 0 ? -1 : request->older_us;
    return do_run(archive, &plain, defaults, message, err);
}

// ---- one request ----

// clang-format off
static const char take_sql[] =
    "UPDATE archive.requests SET state = 'running', started_at = coalesce(started_at, now()) WHERE id = (SELECT min(id)"
    " FROM archive.requests WHERE state IN ('waiting', 'running')) RETURNING id, kind, argument->>'unit',"
    " coalesce((argument->>'older_than_us')::int8, -1), coalesce((argument->>'until_us')::int8, 0), requested_by <> current_user";
// clang-format on

static bool finish(
    Archive *archive, const Request *request, const char *state, const char *message, Error *err)
{
    const char *params[] = {request->id, state, message};
    return archive_do(
        archive->pg, "request.end",
        "UPDATE archive.requests SET state = $2, message = $3, ended_at = now() WHERE id = $1",
        params, 3, err);
}

static bool serve(
    Archive *archive, RequestProgress *progress, const Request *request, const ArchiveRun *defaults,
    Error *err)
{
    Buf message;
    Error failure = {0};
    buf_init(&message, FAULTS_MAX);
    memcpy(progress->request, request->id, sizeof progress->request);
    bool ok = do_request(archive, request, defaults, &message, &failure);
    archive_rollback(archive->pg);
    write_more(progress);
    progress->request[0] = '\0';
    bool alive = PQstatus(archive->pg) == CONNECTION_OK && failure.kind != ERROR_CANCELLED;
    if (alive) {
        const char *text = ok || message.len > 0 ? buf_c(&message) : failure.text;
        alive = finish(archive, request, ok ? "done" : "failed", text, err);
    } else {
        *err = failure;
    }
    buf_done(&message);
    return alive;
}

bool archive_serve(
    Archive *archive, RequestProgress *progress, const ArchiveRun *defaults, bool *ret_worked,
    Error *err)
{
    AUTO(PGresult) rows = archive_ask(archive->pg, "request.take", take_sql, NULL, 0, err);
    if (rows == NULL) {
        return false;
    }
    *ret_worked = PQntuples(rows) > 0;
    if (!*ret_worked) {
        return true;
    }
    Request request = {
        .kind = archive_text(rows, 0, 1),
        .unit = PQgetisnull(rows, 0, 2) ? NULL : archive_text(rows, 0, 2),
        .older_us = archive_number(rows, 0, 3),
        .until_us = archive_number(rows, 0, 4),
        .chosen = archive_text(rows, 0, 5)[0] == 't'};
    (void)snprintf(request.id, sizeof request.id, "%s", archive_text(rows, 0, 0));
    (void)snprintf(progress->epoch, sizeof progress->epoch, "%" PRId64, archive->epoch);
    return serve(archive, progress, &request, defaults, err);
}
