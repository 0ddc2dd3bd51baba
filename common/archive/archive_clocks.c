// SPDX-License-Identifier: Apache-2.0
#include "common/archive/archive_clocks.h"

#include "common/archive/clocks.h"
#include "common/archive/database.h"
#include "common/base/clock.h"

static bool note_fault(Archive *archive, const Error *fault, Error *err)
{
    const char *params[] = {fault != NULL ? fault->text : NULL};
    return archive_do(
        archive->pg, "clocks.note", "SELECT archive.note_clocks($1::text)", params, 1, err);
}

bool archive_clocks_agree(Archive *archive, Error *err)
{
    Error ignored;
    AUTO(PGresult) rows = archive_ask(archive->pg, "clocks", clocks_sql, NULL, 0, err);
    if (rows == NULL) {
        return false;
    }
    ClockReadings readings = {
        .host_us = clock_now_us(),
        .postgres_us = archive_number(rows, 0, 0),
        .stored_us = archive_number(rows, 0, 1),
        .stream = archive_text(rows, 0, 2)};
    if (!clocks_agree(&readings, err)) {
        (void)note_fault(archive, err, &ignored);
        return false;
    }
    return note_fault(archive, NULL, err);
}
