// SPDX-License-Identifier: Apache-2.0
// Where a phone number belongs, as far as prices of vendors tell numbers apart. Pure.
#pragma once

#include "common/base/str.h"

enum { CALLING_PREFIX_MAX = 4 };

// The country code of a number in E.164 ("+4915112345678": "49"; "+420123456789": "420"), a
// slice of it. "+1" and "+7" are several countries: with the area code ("1242", the Bahamas), or
// one more digit ("77", Kazakhstan). Empty: it is no such number.
Str calling_prefix(Str number);
