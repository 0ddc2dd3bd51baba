// SPDX-License-Identifier: Apache-2.0
#include "common/request/semver.h"

#include <stdio.h>

static bool is_number(Str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!ascii_is_digit(s.ptr[i])) {
            return false;
        }
    }
    return s.len > 0;
}

// A number without a leading zero.
static bool is_strict_number(Str s)
{
    return is_number(s) && (s.len == 1 || s.ptr[0] != '0');
}

static bool is_identifier(Str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!ascii_is_alnum(c) && c != '-') {
            return false;
        }
    }
    return s.len > 0;
}

// Cuts at the first `sep`; without one the rest is empty and *ret_found false.
static Str cut(Str text, char sep, Str *ret_rest, bool *ret_found)
{
    ptrdiff_t at = str_find(text, sep);
    *ret_found = at >= 0;
    *ret_rest = at < 0 ? STR_EMPTY : str_slice(text, (size_t)at + 1, text.len);
    return at < 0 ? text : str_slice(text, 0, (size_t)at);
}

static bool are_identifiers(Str rest, bool strict_numbers)
{
    bool more = true;
    while (more) {
        Str one = cut(rest, '.', &rest, &more);
        if (!is_identifier(one) || (strict_numbers && is_number(one) && !is_strict_number(one))) {
            return false;
        }
    }
    return true;
}

bool semver_is(Str text)
{
    if (text.len > SEMVER_MAX) {
        return false;
    }
    Str build;
    Str pre;
    bool has_build;
    bool has_pre;
    Str before_build = cut(text, '+', &build, &has_build);
    Str core = cut(before_build, '-', &pre, &has_pre);
    if ((has_build && !are_identifiers(build, false)) || (has_pre && !are_identifiers(pre, true))) {
        return false;
    }
    int numbers = 0;
    bool more = true;
    while (more) {
        Str one = cut(core, '.', &core, &more);
        if (!is_strict_number(one)) {
            return false;
        }
        numbers++;
    }
    return numbers == 3;
}

static int compare_identifiers(Str a, Str b)
{
    bool a_number = is_number(a);
    bool b_number = is_number(b);
    if (a_number != b_number) {
        return a_number ? -1 : 1;
    }
    if (a_number && a.len != b.len) { // of any length, without leading zeros: the longer is higher
        return a.len < b.len ? -1 : 1;
    }
    return str_cmp(a, b);
}

static int compare_lists(Str a, Str b)
{
    bool more_a = true;
    bool more_b = true;
    while (more_a && more_b) {
        int order = compare_identifiers(cut(a, '.', &a, &more_a), cut(b, '.', &b, &more_b));
        if (order != 0) {
            return order;
        }
    }
    return (more_a ? 1 : 0) - (more_b ? 1 : 0);
}

int semver_compare(Str a, Str b)
{
    Str unused;
    bool found;
    Str pre_a;
    Str pre_b;
    bool has_a;
    bool has_b;
    Str core_a = cut(cut(a, '+', &unused, &found), '-', &pre_a, &has_a);
    Str core_b = cut(cut(b, '+', &unused, &found), '-', &pre_b, &has_b);
    int order = compare_lists(core_a, core_b);
    if (order != 0) {
        return order;
    }
    if (has_a != has_b) {
        return has_a ? -1 : 1; // a pre-release comes before its release
    }
    return has_a ? compare_lists(pre_a, pre_b) : 0;
}

bool semver_next(Str highest, char ret[SEMVER_MAX + 1])
{
    Str unused;
    Str pre;
    bool found;
    bool has_pre;
    Str core = cut(cut(highest, '+', &unused, &found), '-', &pre, &has_pre);
    if (highest.len == 0 || has_pre) {
        return str_to_c(highest.len == 0 ? STR("1.0.0") : core, ret, SEMVER_MAX + 1);
    }
    Str patch = core;
    for (int i = 0; i < 2; i++) {
        (void)cut(patch, '.', &patch, &found);
    }
    int64_t number = 0;
    if (!str_to_i64(patch, &number) || number == INT64_MAX) {
        return false;
    }
    int len = snprintf(
        ret, SEMVER_MAX + 1, STR_FMT "%lld", STR_ARG(str_slice(core, 0, core.len - patch.len)),
        (long long)number + 1);
    return len > 0 && len <= SEMVER_MAX;
}
