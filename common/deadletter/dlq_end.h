// SPDX-License-Identifier: Apache-2.0
// What becomes of a notification whose dead letter a person drops. Pure.
#pragma once

#include "common/deadletter/letter.h"

// The status `failed`, reason_code "dropped", of the letter's notification: without it nothing
// would ever tell an end, and the audit would call it lost. *ret_needed false: the letter is about
// no notification, or its end was told when it was written (letter_end_reported). The same letter
// always gives the same event. Everything lives in `arena` or in the letter.
bool letter_end(const Letter *letter, Arena *arena, BusOut *ret, bool *ret_needed, Error *err);
