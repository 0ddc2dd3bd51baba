// SPDX-License-Identifier: Apache-2.0
// What leaves the bucket: objects of expired units and replaced ones, by key and version, by the
// owner, never under a hold; and the move to the cold tier, which replaces objects.
#pragma once

#include "common/archive/unit/units.h"

// removed -> expired: the manifest says `removed` first. PERMANENT: a hold keeps it.
bool unit_expire(Archive *archive, const Unit *unit, Error *err);
// The objects that are expired or replaced; of an expired unit the late rows first.
bool unit_delete(Archive *archive, const Unit *unit, Error *err);
// A month after the deletion: LIST shows none of them. PERMANENT names one that it shows.
bool unit_confirm(Archive *archive, const Unit *unit, Error *err);
// Each object of the warm tier once more under its name in the cold one, read back, then the former
// is replaced; then a new manifest.
bool unit_cool(Archive *archive, const Unit *unit, Error *err);
