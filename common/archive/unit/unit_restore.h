// SPDX-License-Identifier: Apache-2.0
// A removed unit's rows in Postgres again, until the time in archive.restores; then gone again.
#pragma once

#include "common/archive/unit/units.h"

// removed -> restored: fresh tables filled from the objects, counted equal, then attached.
// PERMANENT names the object that is damaged or the table that differs. A column that a file does
// not have yet gets its default.
bool unit_attach(Archive *archive, const Unit *unit, Error *err);
// restored -> removed
bool unit_detach(Archive *archive, const Unit *unit, Error *err);
// Wants the unit back until then, or for longer than before. CONFIG: it was not removed.
bool unit_want(Archive *archive, const Unit *unit, int64_t request, int64_t until_us, Error *err);
