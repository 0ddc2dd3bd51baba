// SPDX-License-Identifier: Apache-2.0
#include "common/base/span.h"

enum { SPAN_MAX_S = 3650 * 86400 };

static const int64_t SECOND_US = 1000000;

bool span_parse(Str text, int64_t *ret_us)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    int64_t count = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (text.len > 1 && text.ptr[text.len - 1] == units[i].unit &&
            str_to_i64(str_slice(text, 0, text.len - 1), &count) && count >= 0 &&
            count <= SPAN_MAX_S / units[i].seconds) {
            *ret_us = count * units[i].seconds * SECOND_US;
            return true;
        }
    }
    return false;
}
