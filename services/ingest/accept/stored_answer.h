// SPDX-License-Identifier: Apache-2.0
// What a key's first request was answered, for a repeat that would be refused by now: a newer
// template version requires more, a time of its own has passed. What was accepted stays accepted.
// Asked for refused requests alone, so it costs the others nothing.
#pragma once

#include "common/db/db.h"
#include "services/ingest/accept/accept.h"

// Of the submission's tenant, scope, key and body hash. `done` comes once, from the loop:
// ACCEPT_REPLAYED with the answer; ACCEPT_OTHER_BODY: no request with this body came under the key
// within a day (or it is being committed now); ACCEPT_UNAVAILABLE: Postgres cannot say.
void stored_answer_find(DbPool *pool, Submission *submission);
