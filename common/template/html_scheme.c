// SPDX-License-Identifier: Apache-2.0
#include "common/template/html_scheme.h"

enum { SCHEME_MAX = 12 };

bool html_is_space(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool html_is_letter(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool html_is_scheme_character(uint32_t c)
{
    return html_is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

bool html_is_passed_over(uint32_t c)
{
    return c <= ' ' || c >= 0x7f;
}

// ---- schemes ----

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

// Behind "&#"; the ';' may be missing, as browsers have it.
static uint32_t numeric_character(Str text, size_t *at)
{
    bool hex = *at < text.len && (text.ptr[*at] == 'x' || text.ptr[*at] == 'X');
    int base = hex ? 16 : 10;
    uint32_t c = 0;
    *at += hex ? 1 : 0;
    for (; *at < text.len && digit_of(text.ptr[*at]) < base; ++*at) {
        c = c > 0x110000 ? c : c * (uint32_t)base + (uint32_t)digit_of(text.ptr[*at]);
    }
    *at += *at < text.len && text.ptr[*at] == ';' ? 1 : 0;
    return c;
}

uint32_t html_next_character(Str text, size_t *at)
{
    static const struct {
        Str name;
        char c;
    } names[] = {{{"&colon;", 7}, ':'}, {{"&Tab;", 5}, '\t'}, {{"&NewLine;", 9}, '\n'},
                 {{"&quot;", 6}, '"'},  {{"&lpar;", 6}, '('}, {{"&bsol;", 6}, '\\'},
                 {{"&apos;", 6}, '\''}, {{"&sol;", 5}, '/'},  {{"&ast;", 5}, '*'},
                 {{"&commat;", 8}, '@'}};
    Str rest = str_slice(text, *at, text.len);
    if (str_starts(rest, STR("&#"))) {
        *at += 2;
        return numeric_character(text, at);
    }
    for (size_t i = 0; rest.ptr[0] == '&' && i < sizeof names / sizeof *names; i++) {
        if (str_starts(rest, names[i].name)) {
            *at += names[i].name.len;
            return (unsigned char)names[i].c;
        }
    }
    ++*at;
    return (unsigned char)rest.ptr[0];
}

static bool is_allowed(Str name)
{
    static const char *const allowed[] = {"http", "https", "mailto", "tel", "cid"};
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (str_eq_nocase(name, str_from(allowed[i]))) {
            return true;
        }
    }
    return false;
}

HtmlScheme html_read_scheme(Str text, size_t *ret_end)
{
    char name[SCHEME_MAX];
    size_t len = 0;
    for (size_t at = 0; at < text.len;) {
        uint32_t c = html_next_character(text, &at);
        if (c == ':') {
            *ret_end = at;
            return len == 0 || !html_is_letter((unsigned char)name[0]) ? SCHEME_ODD
                   : len < SCHEME_MAX && is_allowed(str_of(name, len)) ? SCHEME_ALLOWED
                                                                       : SCHEME_REFUSED;
        }
        if (html_is_scheme_character(c)) {
            name[len] = (char)c;
            len += len + 1 < SCHEME_MAX ? 1 : 0;
        } else if (!html_is_passed_over(c)) {
            return SCHEME_NONE;
        }
    }
    return SCHEME_OPEN;
}
