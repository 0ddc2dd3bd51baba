// SPDX-License-Identifier: Apache-2.0
#include "common/model/currency.h"

bool currency_is_code(Str text)
{
    bool good = text.len == 3;
    for (size_t i = 0; good && i < text.len; i++) {
        good = text.ptr[i] >= 'A' && text.ptr[i] <= 'Z';
    }
    return good;
}
