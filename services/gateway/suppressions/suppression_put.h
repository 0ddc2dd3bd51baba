// SPDX-License-Identifier: Apache-2.0
// One suppression into CONFIG, a new one or a release, in the place of just what was known or read;
// and who may end what. Answers the call. The entry lives in the request's arena.
#pragma once

#include "common/api/precondition.h"
#include "services/gateway/suppressions/suppressions_api.h"

// What a complaint or the law made is ended by who may release it only.
bool suppressions_may_end(const ApiCall *call, SuppressionReason reason);
// The same of a weaker entry, or one that ends sooner, in the place of another.
bool suppressions_may_replace(
    const SuppressionsApi *api, const ApiCall *call, const Stentor__V1__Suppression *entry);
// The list knows the entry just so: for that reason, until that time.
bool suppressions_is_known(const SuppressionsApi *api, const Stentor__V1__Suppression *entry);

// A new entry: 201; 200 with the stored one when it is the same, and nothing is stored.
void suppression_add(
    const SuppressionsApi *api, ApiCall *call, const Stentor__V1__Suppression *entry,
    const Precondition *needs);
// replaces: the sequence that was read.
void suppression_release(
    const SuppressionsApi *api, ApiCall *call, const Stentor__V1__Suppression *entry,
    const Precondition *needs, uint64_t replaces);
// sequence: of its message, for the ETag.
void suppression_answer(
    ApiCall *call, const Stentor__V1__Suppression *entry, int status, uint64_t sequence);
