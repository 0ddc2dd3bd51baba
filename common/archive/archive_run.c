// SPDX-License-Identifier: Apache-2.0
#include "common/archive/archive_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/archive_clocks.h"
#include "common/archive/database.h"
#include "common/archive/owner.h"
#include "common/archive/unit/unit_delete.h"
#include "common/archive/unit/unit_restore.h"
#include "common/archive/unit/unit_steps.h"
#include "common/archive/unit/unit_write.h"
#include "common/base/clock.h"

typedef bool (*StepFunction)(Archive *archive, const Unit *unit, Error *err);

static const StepFunction step_functions[UNIT_STEP_COUNT] = {
    [UNIT_SEAL] = unit_seal,       [UNIT_COUNT] = unit_count,   [UNIT_WRITE] = unit_write,
    [UNIT_VERIFY] = unit_verify,   [UNIT_COMMIT] = unit_commit, [UNIT_REMOVE] = unit_remove,
    [UNIT_DROP] = unit_drop,       [UNIT_ATTACH] = unit_attach, [UNIT_DETACH] = unit_detach,
    [UNIT_COOL] = unit_cool,       [UNIT_EXPIRE] = unit_expire, [UNIT_DELETE] = unit_delete,
    [UNIT_CONFIRM] = unit_confirm,
};

// What these take away comes back from nowhere: not while a clock may be wrong.
static const bool destroys[UNIT_STEP_COUNT] = {
    [UNIT_DROP] = true, [UNIT_EXPIRE] = true, [UNIT_DELETE] = true, [UNIT_CONFIRM] = true};

enum { STEPS_MAX = 32 }; // of one unit in one run

// Orders are looked at for a season: 90 days, or less where the class says so.
static RetentionSpans spans_of(const Archive *archive, const Unit *unit)
{
    RetentionSpans spans = archive->options->plan.of[unit->class];
    RetentionSpan season = {.days = 90};
    bool orders = strcmp(unit->kind, "orders") == 0;
    bool longer =
        unit_span_after(unit->ends_us, spans.hot) > unit_span_after(unit->ends_us, season);
    if (orders && longer) {
        spans.hot = season;
    }
    return spans;
}

static UnitStep next_step(const Archive *archive, const ArchiveRun *run, const Unit *unit)
{
    UnitRules rules = {
        .spans = spans_of(archive, unit),
        .hot_us = run->hot_us,
        .grace_us = archive->options->grace_us,
        .quiet = run->quiet,
        .at_once = run->at_once,
        .now_us = clock_now_us()};
    return unit_next(&unit->facts, &rules);
}

// Of the process, not of this unit: what follows would fail the same.
static bool is_general(const Archive *archive, const Error *err)
{
    return archive->epoch == 0 || PQstatus(archive->pg) != CONNECTION_OK ||
           err->kind == ERROR_CANCELLED;
}

static bool do_step(Archive *archive, const Unit *unit, UnitStep step, Error *err)
{
    archive_step(archive, unit_step_name(step), unit->id);
    bool ok = (!destroys[step] || archive_clocks_agree(archive, err)) &&
              step_functions[step](archive, unit, err);
    archive_rollback(archive->pg);
    return ok;
}

static bool note_failure(Archive *archive, const Unit *unit, ArchiveRan *ran, Error *err)
{
    Error failure = *err;
    if (ran->failed++ == 0) {
        (void)snprintf(ran->failure, sizeof ran->failure, "%s", err->text);
    }
    return !is_general(archive, err) && units_note(archive, unit->id, &failure, err);
}

static bool is_stopped(const ArchiveRun *run, Error *err)
{
    return run->stop != NULL && run->stop(run->ctx) &&
           !error_set(err, ERROR_CANCELLED, "stopped between two steps");
}

// As far as it goes. false: nothing can go on.
static bool run_unit(
    Archive *archive, const ArchiveRun *run, const char *id, ArchiveRan *ran, Error *err)
{
    Arena *arena = arena_new(0);
    bool go_on = true;
    bool moved = false;
    for (int i = 0; i < STEPS_MAX; i++) {
        Unit unit;
        go_on = !is_stopped(run, err) && units_find(archive, id, arena, &unit, err);
        UnitStep step = go_on ? next_step(archive, run, &unit) : UNIT_WAIT;
        if (step == UNIT_WAIT) {
            break;
        }
        if (!do_step(archive, &unit, step, err)) {
            go_on = note_failure(archive, &unit, ran, err);
            break;
        }
        moved = true;
        ran->steps++;
        go_on = units_note(archive, id, NULL, err);
    }
    ran->units += moved ? 1 : 0;
    arena_free(arena);
    return go_on;
}

bool archive_run(Archive *archive, const ArchiveRun *run, ArchiveRan *ret, Error *err)
{
    *ret = (ArchiveRan){0};
    int64_t found = 0;
    Unit *units = NULL;
    size_t count = 0;
    Arena *arena = arena_new(0);
    bool ok = owner_check(archive, err) && units_discover(archive, clock_now_us(), &found, err) &&
              units_load(archive, run->unit, arena, &units, &count, err);
    if (ok && run->unit != NULL && count == 0) {
        ok = error_set(
            err, ERROR_CONFIG, "there is no unit '%s' (HINT: stentor archive list)", run->unit);
    }
    for (size_t i = 0; i < count && ok; i++) {
        ok = run_unit(archive, run, units[i].id, ret, err);
    }
    arena_free(arena);
    return ok;
}
