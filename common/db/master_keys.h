// SPDX-License-Identifier: Apache-2.0
// The table keys.master_keys: which keys of the master key file this installation works with
// (common/codec/key_register.h). Services read it from the loop; the command line reads and writes
// it, blocking.
#pragma once

#include "common/codec/key_register.h"
#include "common/db/db.h"

// keys is valid during the call. err TRANSIENT: ask again; CONFIG: the table is not there or may
// not be read.
typedef void (*MasterKeysRead)(void *ctx, const KeyRegister *keys, const Error *err);
void master_keys_read(DbPool *pool, MasterKeysRead done, void *ctx);

bool master_keys_load(PGconn *pg, KeyRegister *ret, Error *err);
// Registers the file's current keys (key_register_learn) as current. Into an empty table only a
// file that opens the data keys and finds the recipients of this database. *ret: what is
// registered now.
bool master_keys_learn(PGconn *pg, MasterKey *master, KeyRegister *ret, Error *err);
