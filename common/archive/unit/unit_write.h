// SPDX-License-Identifier: Apache-2.0
// counted -> written: a unit's rows as objects, tenant by tenant, part by part, in the order of
// their keys. The same rows, columns and releases of writer and zstd give the same objects; a part
// that has a row in the catalogue is not made again.
#pragma once

#include "common/archive/objects.h"

// PERMANENT: the table holds other rows than were counted (the failure names table and tenant).
// TRANSIENT: database, spool or bucket.
bool unit_write(Archive *archive, const Unit *unit, Error *err);
// What a written unit lacks is made again from the rows, which are in Postgres still, over what is
// there: an object that was read back as damaged, or (NULL) those that have no row.
bool unit_write_again(Archive *archive, const Unit *unit, const ObjectRow *damaged, Error *err);
