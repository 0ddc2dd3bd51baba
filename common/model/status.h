// SPDX-License-Identifier: Apache-2.0
// The rank of a status. Status events may come twice and in any order; a fold that keeps the higher
// rank has the same end whatever the order. queued < scheduled < rendering < sending < sent <
// delivered < opened < clicked, and above them the ends by their own rank: suppressed < superseded
// < failed < bounced < complained.
#pragma once

#include "common/model/enums.h"

int status_rank(Status status); // 0 for STATUS_NONE
// Only a vendor reports these: delivered, opened, clicked, bounced, complained. (`failed` may be
// a vendor's or ours.)
bool status_is_from_vendor(Status status);
