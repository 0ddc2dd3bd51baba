// SPDX-License-Identifier: Apache-2.0
// Which statements one connection has prepared, and with which parameter types. Private to
// common/db. Law: an entry counts only once the server has confirmed it; what was not confirmed by
// the end of the transaction is forgotten and prepared again under another name.
#pragma once

#include "common/base/map.h"
#include "common/db/txn.h"

enum { PREPARED_NAME_SIZE = 64 };

typedef struct Prepared {
    const DbStatement *statement;
    char name[PREPARED_NAME_SIZE]; // "<statement>/<serial>", on the server
    unsigned serial;
    bool confirmed;
    int count;
    Oid types[DB_PARAMS_MAX]; // 0: only nulls were given so far
} Prepared;

typedef struct PreparedSet {
    Map *by_name;
    unsigned last_serial;
} PreparedSet;

void prepared_init(PreparedSet *set);
void prepared_done(PreparedSet *set);
// The entry for this statement. *ret_fresh: it must be sent with PQsendPrepare first. NULL
// (CONFIG): two statements share a name, or one is used with changing types. A null has no type of
// its own: the first value that is not null prepares the statement once more, with its type.
Prepared *prepared_get(PreparedSet *set, const DbParams *p, bool *ret_fresh, Error *err);
void prepared_forget(PreparedSet *set, const DbStatement *statement);
