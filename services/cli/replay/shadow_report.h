// SPDX-License-Identifier: Apache-2.0
// What a shadow replay has found, on standard output: for people, or as one line of JSON.
#pragma once

#include "common/replay/shadow/shadow.h"

void shadow_print(const ShadowPlan *plan, const ShadowTally *tally, bool json);
