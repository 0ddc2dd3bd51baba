// SPDX-License-Identifier: Apache-2.0
// What is read from CONFIG itself: a page of the list, the export, one entry by its id (to show, or
// to release). A reader per call, at most SUPPRESSIONS_READS_MAX at once.
#pragma once

#include "services/gateway/suppressions/suppressions_api.h"

enum {
    SUPPRESSIONS_READS_MAX = 8,
    SUPPRESSIONS_EXPORT_MAX =
        50000,                    // lines of one answer; Stentor-Next is the cursor of those behind
    SUPPRESSIONS_READ_MS = 20000, // then 503
};

void suppressions_list(ApiCall *call); // and the export
void suppressions_one(ApiCall *call);  // by its id: GET shows it, any other method releases it
void suppressions_list_tick(SuppressionsApi *suppressions); // every 500 ms: what reads too long
