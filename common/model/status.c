// SPDX-License-Identifier: Apache-2.0
#include "common/model/status.h"

// clang-format off
static const int ranks[STATUS_COUNT] = {
    [STATUS_NONE]       = 0,
    [STATUS_QUEUED]     = 1,
    [STATUS_SCHEDULED]  = 2,
    [STATUS_RENDERING]  = 3,
    [STATUS_SENDING]    = 4,
    [STATUS_SENT]       = 5,
    [STATUS_DELIVERED]  = 6,
    [STATUS_OPENED]     = 7,
    [STATUS_CLICKED]    = 8,
    // The ends.
    [STATUS_SUPPRESSED] = 9,
    [STATUS_SUPERSEDED] = 10,
    [STATUS_FAILED]     = 11,
    [STATUS_BOUNCED]    = 12,
    [STATUS_COMPLAINED] = 13,
};
// clang-format on

int status_rank(Status status)
{
    unsigned value = (unsigned)status;
    return value < STATUS_COUNT ? ranks[value] : 0;
}

bool status_is_from_vendor(Status status)
{
    return status == STATUS_DELIVERED || status == STATUS_OPENED || status == STATUS_CLICKED ||
           status == STATUS_BOUNCED || status == STATUS_COMPLAINED;
}
