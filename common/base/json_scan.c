// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_scan.h"

static bool exceeds(Str text, size_t at, const char *what, JsonExcess *ret)
{
    *ret = (JsonExcess){.what = what, .line = 1, .column = 1};
    for (size_t i = 0; i < at; i++) {
        bool line = text.ptr[i] == '\n';
        ret->line += line ? 1 : 0;
        ret->column = line ? 1 : ret->column + 1;
    }
    return false;
}

// Every value but the first of a text follows a comma or an opening bracket, so these are counted.
bool json_is_modest(Str text, JsonExcess *ret)
{
    size_t values = 1;
    size_t depth = 0;
    for (size_t i = 0; i < text.len; i++) {
        switch (text.ptr[i]) {
        case '"':
            for (i++; i < text.len && text.ptr[i] != '"'; i++) { // behind it, or to the end
                i += text.ptr[i] == '\\' ? 1 : 0;
            }
            break;
        case '{':
        case '[':
            values++;
            if (++depth > JSON_DEPTH_MAX) {
                return exceeds(text, i, "more than 128 levels", ret);
            }
            break;
        case '}':
        case ']':
            depth -= depth > 0 ? 1 : 0;
            break;
        case ',':
            values++;
            break;
        default:
            break;
        }
        if (values > JSON_VALUES_MAX) {
            return exceeds(text, i, "more than 100000 values", ret);
        }
    }
    return true;
}
