// SPDX-License-Identifier: Apache-2.0
// rebuild people, rebuild clock, rebuild feed: what is made of PEOPLE or FEED, in a copy; what
// differs from it in the live tables is replaced.
//
// First the copy is folded exactly up to where the live tables stood in one snapshot: so the
// recipients that differ are known, while both go on. A later event does the same to rows that are
// equal. So only those recipients' rows are replaced, under a lock against writing, once the copy
// has reached the live position. A flush that waits for the lock folds on what it finds.
#include "common/recipients/people_rebuild.h"
#include "services/cli/rebuild/rebuild_rows.h"
#include "services/cli/rebuild/rebuild_run.h"

// ---- folding ----

static void start_folding(Rebuild *rebuild, const RowsTarget *target, PeopleKind kind, bool bounded)
{
    rebuild_open_pool(rebuild);
    PeopleRebuildOptions options = {
        .kind = kind,
        .projection = target->projection,
        .schema = target->schema,
        .copy = target->copy,
        .database_url = rebuild->cli->settings.database_url,
        .pool = rebuild->pool,
        .bounded = bounded,
        .until = rebuild->folded[0].sequence,
        .until_at_us = rebuild->folded[0].stored_at_us,
        .first = rebuild->first[0],
        .readers = rebuild->log.open ? &log_readers : NULL,
        .readers_ctx = &rebuild->log.past};
    rebuild->people = people_rebuild_new(rebuild->session.bus, &options);
}

// Writes the folded rows. Safe to repeat.
static void stop_folding(Rebuild *rebuild)
{
    PeopleRebuild *people = rebuild->people;
    if (people == NULL) {
        return;
    }
    SessionWait stopped = rebuild_wait_for(rebuild);
    people_rebuild_stop(people, rebuild_on_ended, &stopped);
    rebuild_wait_ended(&stopped);
    rebuild->events += people_rebuild_events(people);
    rebuild->unreadable += people_rebuild_unreadable(people);
    rebuild->missing_before_us = people_rebuild_missing_before_us(people);
    rebuild->position[0] = people_rebuild_position(people);
    rebuild_close_pool(rebuild);
    people_rebuild_free(people);
    rebuild->people = NULL;
}

static const char *failure_of(const Rebuild *rebuild)
{
    return rebuild->people != NULL ? people_rebuild_failure(rebuild->people) : NULL;
}

static bool has_caught_up(Rebuild *rebuild)
{
    return people_rebuild_caught_up(rebuild->people);
}

static bool has_reached_until(Rebuild *rebuild)
{
    return people_rebuild_position(rebuild->people) >= rebuild->until[0];
}

// ---- the order ----

typedef struct Place {
    RebuildRows *rows;
    const RowsTarget *target;
    PeopleKind kind;
    RebuildPositions live; // when the live rows were digested
    bool goes_on;          // the live projection can: its position is of the stream that is there
} Place;

static bool plan(Rebuild *rebuild, Place *place, Error *err)
{
    RebuildPositions live;
    return rebuild_ask_streams(rebuild, err) && rebuild_rows_positions(place->rows, &live, err) &&
           rebuild_recognise_streams(rebuild, &live, err) &&
           rebuild_find_beginning(rebuild, &live, &rebuild->before_us, err) &&
           rebuild_rows_make(place->rows, err) &&
           rebuild_rows_remember(
               place->rows, rebuild->carry && rebuild->before_us != 0, &place->live,
               &rebuild->carried, err) &&
           rebuild_set_until(rebuild, &place->live, err);
}

static bool find_differences(Rebuild *rebuild, Place *place, Error *err)
{
    place->goes_on = place->live.stream_created_us[0] == rebuild->streams[0].created_us;
    start_folding(rebuild, place->target, place->kind, place->goes_on || rebuild->dry);
    if (!rebuild_wait(rebuild, has_caught_up, 0, err)) {
        return false;
    }
    stop_folding(rebuild);
    return rebuild_ask_streams(rebuild, err) && rebuild_check_whole(rebuild, err) &&
           rebuild_rows_compare(place->rows, rebuild_show, rebuild, &rebuild->differences, err);
}

static bool freeze(void *ctx, RebuildPositions *ret, Error *err)
{
    return rebuild_rows_freeze(ctx, ret, err);
}

static bool thaw(void *ctx, Error *err)
{
    return rebuild_rows_thaw(ctx, err);
}

// A live projection that has stopped stands still by itself, and begins again where the copy ends.
static bool replace(Rebuild *rebuild, Place *place, Error *err)
{
    const RebuildFreeze level = {freeze, thaw, place->rows, has_caught_up, has_reached_until};
    RebuildPositions live;
    if (!place->goes_on) {
        return rebuild_rows_freeze(place->rows, &live, err) &&
               rebuild_rows_replace(place->rows, true, err);
    }
    if (rebuild->differences == 0) {
        return true;
    }
    if (!rebuild_rows_rewind(place->rows, &place->live, err)) {
        return false;
    }
    start_folding(rebuild, place->target, place->kind, false);
    if (!rebuild_freeze_level(rebuild, &level, err)) {
        return false;
    }
    stop_folding(rebuild);
    return rebuild_rows_replace(place->rows, false, err);
}

bool rebuild_people(Rebuild *rebuild, PeopleKind kind, Error *err)
{
    Error ignored;
    const ProjectionRow *row = rebuild->row;
    const RowsTarget target = {
        .schema = row->schema,
        .copy = arena_printf(rebuild->cli->arena, "%s_rebuild", row->schema),
        .names = row->tables,
        .projection = row->position,
        .stream = row->streams[0],
        .person = kind == PEOPLE_FEED ? "recipient" : "recipient_id"};
    Place place = {.target = &target, .kind = kind};
    rebuild->stream_names = row->streams;
    rebuild->stream_count = 1;
    rebuild->failure = failure_of;
    bool opened = rebuild_rows_open(&place.rows, rebuild->cli->settings.database_url, &target, err);
    bool ok = opened && plan(rebuild, &place, err) && find_differences(rebuild, &place, err) &&
              (rebuild->dry || replace(rebuild, &place, err));
    stop_folding(rebuild);
    if (opened) {
        ok = rebuild_rows_drop(place.rows, ok ? err : &ignored) && ok;
    }
    rebuild_rows_close(place.rows);
    return ok;
}
