// SPDX-License-Identifier: Apache-2.0
// Teller: rows that could not be told what became of them when it was heard, because the
// application held them or their table refused the change. It tells them later, those that are
// refused alone and ever more seldom, until such a row is put aside in `refused`. Any number of
// relays may do it at once.
#pragma once

#include "common/outbox/sql/relay_sql.h"

typedef struct Teller Teller;

Teller *teller_new(DbPool *pool, const RelaySql *sql); // borrows both
void teller_start(Teller *teller); // once the statements are complete; requests only
void teller_stop(Teller *teller, void (*on_stopped)(void *ctx), void *ctx);
void teller_free(Teller *teller);
// NULL, or why no row can be told at all now.
const char *teller_trouble(const Teller *teller);
