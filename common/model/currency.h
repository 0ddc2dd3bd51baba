// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/str.h"

// Three capitals, as ISO 4217 has them; whether there is such a currency is not looked up.
bool currency_is_code(Str text);
