// SPDX-License-Identifier: Apache-2.0
// FindFold: events of STATUS as entries, gathered until they are written (find_sql.h). Pure.
//
// The first status of a notification (queued, scheduled, suppressed) says whose it is, of which
// template, batch, correlation and event; a status with an attempt says how the vendor calls it; an
// end that is not a happy one is an entry itself. So STATUS is enough, and REQUEST, which is
// larger, is not read. An event depends on no other one: what comes twice makes its entries twice,
// and the search passes over the second.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/bus/jetstream/bus.h"
#include "common/find/find_key.h"

enum {
    // What a projector folds into one flush (projector.h), so that it fits one transaction.
    FIND_FLUSH_MAX = 4000,
    FIND_FLUSH_BYTES = 4 * 1024 * 1024,
};

typedef struct FindRow {
    Str tenant;
    Str id; // the notification's
    int64_t created_at_us;
    int64_t key;
    FindKind kind;
} FindRow;

typedef struct FindFold FindFold;

FindFold *find_fold_new(const MasterKey *master); // borrowed
void find_fold_free(FindFold *fold);              // NULL-safe
void find_fold_clear(FindFold *fold);
// Notifications that are older than this have no entries from now on; 0: all have.
void find_fold_keep(FindFold *fold, int64_t oldest_us);
// `arena` lives until find_fold_clear. ERROR_PERMANENT: not a status of its subject's tenant, or
// none that can be stored.
bool find_fold_event(FindFold *fold, const BusMessage *message, Arena *arena, Error *err);
// By their keys: neighbours in the index are written one after the other.
const FindRow *find_fold_rows(FindFold *fold, size_t *ret_count);
bool find_fold_span(const FindFold *fold, int64_t *ret_first_us, int64_t *ret_last_us); // of rows
int64_t find_fold_as_of_us(const FindFold *fold); // when the last event was stored; 0: none
