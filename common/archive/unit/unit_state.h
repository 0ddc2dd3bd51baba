// SPDX-License-Identifier: Apache-2.0
// What a unit of archiving is in, and which step comes next. Pure: rows, plan and clock are
// arguments.
//
//   open -> sealed -> counted -> written -> verified -> committed -> removing -> removed
//   removed -> restored -> removed, removed -> expired
//
// A unit is (kind, retention class, period). Ages count from the end of its period. The same table
// stands in migrations/archive/0001_catalogue.sql (on_unit_moved).
#pragma once

#include "common/base/str.h"
#include "common/model/retention/retention.h"

typedef enum UnitState {
    UNIT_OPEN,      // its rows change
    UNIT_SEALED,    // they do not any more: events go to the late tables
    UNIT_COUNTED,   // what Postgres holds is counted
    UNIT_WRITTEN,   // every part is an object
    UNIT_VERIFIED,  // every object was read back and decoded
    UNIT_COMMITTED, // the manifest is stored
    UNIT_REMOVING,  // its tables are detached and wait for their DROP
    UNIT_REMOVED,   // only the objects are left
    UNIT_RESTORED,  // and a table again, for a while
    UNIT_EXPIRED,   // its time is over: the objects are deleted
    UNIT_STATE_COUNT
} UnitState;

const char *unit_state_name(UnitState state);
bool unit_state_from_name(Str name, UnitState *ret);
bool unit_state_allows(UnitState from, UnitState to);

typedef enum UnitStep {
    UNIT_WAIT, // nothing is due
    UNIT_SEAL,
    UNIT_COUNT,
    UNIT_WRITE,
    UNIT_VERIFY,
    UNIT_COMMIT,
    UNIT_REMOVE,
    UNIT_DROP,
    UNIT_ATTACH,  // its rows into Postgres again
    UNIT_DETACH,  // the restored table goes
    UNIT_COOL,    // its objects into the cold tier
    UNIT_EXPIRE,  // its class's time is over
    UNIT_DELETE,  // objects that are replaced, or of a unit that has been expired for a day
    UNIT_CONFIRM, // a month later: the bucket shows none of them
    UNIT_STEP_COUNT
} UnitStep;

const char *unit_step_name(UnitStep step); // "writing": for people

typedef struct UnitFacts {
    UnitState state;
    int64_t state_us; // since when
    int64_t ends_us;
    int64_t folded_us;  // all events stored before this are in history
    int64_t removed_us; // when its tables were detached
    int64_t restore_us; // until when a restore is wanted; 0: none
    bool warm;          // an object of it is in the warm tier
    bool deletable;     // an object of it is to be deleted now
    bool gone;          // all were deleted a month ago
} UnitFacts;

typedef struct UnitRules {
    RetentionSpans spans; // of its class
    int64_t hot_us;       // instead of spans.hot; negative: spans.hot counts
    int64_t grace_us;     // between the detaching and the DROP
    bool quiet;           // tables may be detached now
    bool at_once;         // a unit's objects are deleted as soon as it is expired
    int64_t now_us;
} UnitRules;

UnitStep unit_next(const UnitFacts *facts, const UnitRules *rules);
// The same day and time, so many months and days later, in UTC; a day that the month does not have:
// its last.
int64_t unit_span_after(int64_t at_us, RetentionSpan span);

enum {
    UNIT_ID_SIZE = 96,
    UNIT_PERIOD_SIZE = 16,
    UNIT_FOLD_MARGIN_S = 3600,
    UNIT_EXPIRED_S = 86400, // time for `stentor hold set --unit` after a span that was not meant
};
// "2026-10", or "2026-10-05" when it is a day.
void unit_period(int64_t starts_us, int64_t ends_us, char out[UNIT_PERIOD_SIZE]);
