// SPDX-License-Identifier: Apache-2.0
// A recipient's data keys, for a command that opens values sealed under them. It blocks.
#pragma once

#include "common/codec/seal.h"
#include "common/erasure/erasure_person.h"

typedef struct PersonKeys PersonKeys;

// Those of the person that exist, with those that a duty keeps after an erasure: the law that keeps
// the data also gives access to it. NULL: ERROR_PERMANENT when they are restricted (an erasure
// under a hold), ERROR_CONFIG when one is wrapped by a key that `master` does not hold.
PersonKeys *person_keys_open(
    PGconn *pg, MasterKey *master, const ErasurePerson *person, Error *err);
void person_keys_close(PersonKeys *keys); // NULL-safe

// A packed stentor.v1.Sealed, opened; in `arena`. false: its key does not exist (any more), or it
// was altered.
bool person_keys_unseal(
    PersonKeys *keys, Str tenant, Str id, const char *field, const Stentor__V1__Sealed *sealed,
    Arena *arena, Str *ret);
// Whether it is sealed under a key of the person, there or not. false: it is another's.
bool person_keys_of_person(const ErasurePerson *person, const Stentor__V1__Sealed *sealed);
