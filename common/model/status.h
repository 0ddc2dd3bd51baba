// SPDX-License-Identifier: Apache-2.0
// The status lattice. Status events may come twice and in any order; merging by rank gives the same
// end whatever the order: status_merge is commutative, associative and idempotent (a property test
// shows it). queued < scheduled < rendering < sending < sent < delivered < opened < clicked, and
// above them the ends by their own rank: suppressed < superseded < failed < bounced < complained.
#pragma once

#include "common/model/enums.h"

int status_rank(Status status); // 0 for STATUS_NONE
bool status_is_end(Status status);
// Only ever heard from a vendor: delivered, opened, clicked, bounced, complained. (`failed` may be
// a vendor's word or ours.)
bool status_is_heard_back(Status status);
Status status_merge(Status a, Status b); // the higher rank
