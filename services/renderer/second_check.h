// SPDX-License-Identifier: Apache-2.0
// The second check, before a mail is made: is its tenant suspended, its address suppressed? The
// gate in ingest checked the same when the request was accepted; a mail scheduled a week ago must
// honour today's opt-out. Pure, except for the index that it reads.
#pragma once

#include "common/model/suppressions.h"
#include "common/render/render_events.h"

// NULL: go on. Else the reason_code of `suppressed`; *ret_reason is its text. `hash_keys` are used
// only when the platform has suppressions, for their hashes are others.
const char *second_check(
    const Suppressions *suppressions, const Sender *sender, const HashKeys *hash_keys,
    const Job *job, const char **ret_reason);

bool suppressed_event(
    const Job *job, const char *reason_code, const char *reason, BusOut *ret_out, Error *err);
