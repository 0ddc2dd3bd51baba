// SPDX-License-Identifier: Apache-2.0
// What becomes of a notification whose dead letter an operator drops. Pure.
#pragma once

#include "common/deadletter/letter.h"

// The status `failed`, reason_code "dropped", of the dead letter's notification: without it no
// event would ever end it, and the audit would call it lost. *ret_needed false: the letter is about
// no notification, or its end was published when it was written (letter_end_reported). The same
// letter always gives the same event. Everything lives in `arena` or in the letter.
bool letter_end(const Letter *letter, Arena *arena, BusOut *ret, bool *ret_needed, Error *err);
