// SPDX-License-Identifier: Apache-2.0
// One suppression into CONFIG, a new one or a release, in the place of just what was known; and who
// may end what. Answers the call.
#pragma once

#include "services/gateway/suppressions/suppressions_api.h"

// What a complaint or the law made is ended by who may release it only.
bool suppressions_may_end(const ApiCall *call, SuppressionReason reason);
// The same of an entry that says less, or ends sooner, in the place of another.
bool suppressions_may_replace(
    const SuppressionsApi *api, const ApiCall *call, const Stentor__V1__Suppression *entry);

// The entry lives in the request's arena. replaces: the sequence that is known.
void suppression_put(
    const SuppressionsApi *api, ApiCall *call, const Stentor__V1__Suppression *entry,
    uint64_t replaces);
void suppression_answer(ApiCall *call, const Stentor__V1__Suppression *entry, int status);
