// SPDX-License-Identifier: Apache-2.0
// People: what digests need to know of PEOPLE, folded into clock.preferences and clock.silenced. A
// recipient who no longer wants a digest has the open windows made due at once; what becomes of
// them then is decided when they are frozen (clock.digest_verdict).
#pragma once

#include "common/bus/bus.h"
#include "common/db/db.h"

typedef struct People People;

People *people_new(void);
void people_free(People *people);
// One event; text lives in `arena` until people_clear. ERROR_PERMANENT names what is wrong.
bool people_fold(People *people, const BusMessage *message, Arena *arena, Error *err);
// Everything folded since the last clear. In the order removals, preferences, silence, windows.
void people_write(const People *people, DbTxn *txn);
void people_clear(People *people);
size_t people_count(const People *people); // preferences and recipients that would be written
