// SPDX-License-Identifier: Apache-2.0
// Most values are decided by themselves: "https://...", "/path", "Anna". What is left is asked what
// stands in front of it (a few bytes), and only then the HTML is read from where it was read last.
#include "common/template/html_url.h"

#include <string.h>

enum { SCHEME_MAX = 12, LOOK_BACK_MAX = 256, SCAN_STEP_BYTES = 128 };

static bool is_space(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_letter(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_scheme_character(uint32_t c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

// What browsers, or some of them, pass over in a scheme.
static bool is_passed_over(uint32_t c)
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

// The character at *at as a browser reads it. Of the named ones those that matter in a scheme; the
// others are an '&', which ends it as they do.
static uint32_t next_character(Str text, size_t *at)
{
    static const struct {
        Str name;
        char c;
    } names[] = {{{"&colon;", 7}, ':'}, {{"&Tab;", 5}, '\t'}, {{"&NewLine;", 9}, '\n'}};
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

typedef enum Scheme {
    SCHEME_OPEN,    // the text ends before it does
    SCHEME_NONE,    // a relative URL, a fragment
    SCHEME_ODD,     // a ':' without a name before it
    SCHEME_ALLOWED, // one of the list
    SCHEME_REFUSED,
} Scheme;

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

// *ret_end is behind its ':'.
static Scheme read_scheme(Str text, size_t *ret_end)
{
    char name[SCHEME_MAX];
    size_t len = 0;
    for (size_t at = 0; at < text.len;) {
        uint32_t c = next_character(text, &at);
        if (c == ':') {
            *ret_end = at;
            return len == 0 || !is_letter((unsigned char)name[0])      ? SCHEME_ODD
                   : len < SCHEME_MAX && is_allowed(str_of(name, len)) ? SCHEME_ALLOWED
                                                                       : SCHEME_REFUSED;
        }
        if (is_scheme_character(c)) {
            name[len] = (char)c;
            len += len + 1 < SCHEME_MAX ? 1 : 0;
        } else if (!is_passed_over(c)) {
            return SCHEME_NONE;
        }
    }
    return SCHEME_OPEN;
}

bool html_url_ends_scheme(Str text)
{
    size_t end = 0;
    Scheme scheme = read_scheme(text, &end);
    return scheme == SCHEME_ODD || scheme == SCHEME_REFUSED;
}

// ---- where in the HTML ----

static void leave_tag(HtmlScan *scan, Str html)
{
    Str name = str_slice(html, scan->tag_at, scan->tag_at + 6);
    Str next = str_slice(html, scan->tag_at + 6, scan->tag_at + 7);
    bool whole = next.len > 0 && !is_letter((unsigned char)next.ptr[0]);
    scan->state = whole && str_eq_nocase(name, STR("script")) ? HTML_SCRIPT : HTML_TEXT;
}

// Inside of a tag; source: the HTML standard, 13.2.5.
static void step_tag(HtmlScan *scan, Str html, char c)
{
    switch (scan->state) {
    case HTML_TAG_NAME:
        scan->state = is_space((unsigned char)c) || c == '/' ? HTML_BEFORE_NAME : HTML_TAG_NAME;
        break;
    case HTML_NAME:
        scan->name_len = scan->at - scan->name_at;
        scan->state = c == '='                     ? HTML_BEFORE_VALUE
                      : is_space((unsigned char)c) ? HTML_AFTER_NAME
                      : c == '/'                   ? HTML_BEFORE_NAME
                                                   : HTML_NAME;
        break;
    case HTML_AFTER_NAME:
        if (c == '=') {
            scan->state = HTML_BEFORE_VALUE;
            break;
        }
        // fall through
    case HTML_BEFORE_NAME:
        if (!is_space((unsigned char)c)) {
            scan->state = c == '/' ? HTML_BEFORE_NAME : HTML_NAME;
            scan->name_at = scan->at;
            scan->name_len = 1;
        }
        break;
    case HTML_BEFORE_VALUE:
        if (!is_space((unsigned char)c)) {
            scan->state = c == '"'    ? HTML_VALUE_DOUBLE
                          : c == '\'' ? HTML_VALUE_SINGLE
                                      : HTML_VALUE_BARE;
            scan->value_at = scan->at + (scan->state == HTML_VALUE_BARE ? 0 : 1);
        }
        break;
    case HTML_VALUE_BARE:
        scan->state = is_space((unsigned char)c) ? HTML_BEFORE_NAME : HTML_VALUE_BARE;
        break;
    default:
        break;
    }
    if (c == '>') {
        leave_tag(scan, html);
    }
}

// Behind '<'.
static void step_markup(HtmlScan *scan, char c)
{
    bool letter = is_letter((unsigned char)c);
    switch (scan->state) {
    case HTML_TAG_OPEN:
        scan->tag_at = scan->at;
        scan->state = letter     ? HTML_TAG_NAME
                      : c == '/' ? HTML_END_TAG_OPEN
                      : c == '!' ? HTML_MARKUP
                      : c == '?' ? HTML_BOGUS
                      : c == '<' ? HTML_TAG_OPEN
                                 : HTML_TEXT;
        break;
    case HTML_END_TAG_OPEN:
        scan->state = letter ? HTML_TAG_NAME : c == '>' ? HTML_TEXT : HTML_BOGUS;
        break;
    case HTML_MARKUP:
        scan->state = c == '-' ? HTML_MARKUP_DASH : c == '>' ? HTML_TEXT : HTML_BOGUS;
        break;
    case HTML_MARKUP_DASH:
        scan->state = c == '-' ? HTML_COMMENT : c == '>' ? HTML_TEXT : HTML_BOGUS;
        scan->value_at = scan->at + 1;
        break;
    default:
        break;
    }
}

// What is inside of <!--[if mso]> is HTML to those that read it.
static void step_comment(HtmlScan *scan, Str html, char c)
{
    size_t seen = scan->at - scan->value_at;
    Str tail = str_slice(html, scan->value_at, scan->at);
    if (seen == 0 && c == '[') {
        scan->state = HTML_BOGUS;
    } else if (c == '>' && (seen == 0 || str_ends(tail, STR("--")) || str_ends(tail, STR("--!")))) {
        scan->state = HTML_TEXT;
    }
}

// To the next byte of that kind; false: there is none before `to`.
static bool seek(HtmlScan *scan, Str html, size_t to, char c)
{
    const char *found = memchr(html.ptr + scan->at, c, to - scan->at);
    scan->at = found == NULL ? to : (size_t)(found - html.ptr);
    return found != NULL;
}

static void step(HtmlScan *scan, Str html, size_t to)
{
    switch (scan->state) {
    case HTML_TEXT:
        scan->state = seek(scan, html, to, '<') ? HTML_TAG_OPEN : HTML_TEXT;
        break;
    case HTML_BOGUS:
        scan->state = seek(scan, html, to, '>') ? HTML_TEXT : HTML_BOGUS;
        break;
    case HTML_VALUE_DOUBLE:
        scan->state = seek(scan, html, to, '"') ? HTML_BEFORE_NAME : HTML_VALUE_DOUBLE;
        break;
    case HTML_VALUE_SINGLE:
        scan->state = seek(scan, html, to, '\'') ? HTML_BEFORE_NAME : HTML_VALUE_SINGLE;
        break;
    case HTML_SCRIPT:
        if (seek(scan, html, to, '<') &&
            str_eq_nocase(str_slice(html, scan->at, scan->at + 8), STR("</script"))) {
            scan->state = HTML_TAG_OPEN;
        }
        break;
    case HTML_COMMENT:
        step_comment(scan, html, html.ptr[scan->at]);
        break;
    case HTML_TAG_OPEN:
    case HTML_END_TAG_OPEN:
    case HTML_MARKUP:
    case HTML_MARKUP_DASH:
        step_markup(scan, html.ptr[scan->at]);
        break;
    case HTML_TAG_NAME:
    case HTML_BEFORE_NAME:
    case HTML_NAME:
    case HTML_AFTER_NAME:
    case HTML_BEFORE_VALUE:
    case HTML_VALUE_BARE:
        step_tag(scan, html, html.ptr[scan->at]);
        break;
    }
    scan->at += scan->at < to ? 1 : 0;
}

static bool takes_url(Str name)
{
    static const char *const names[] = {
        "href",       "src",  "action", "formaction", "background", "poster", "srcset",
        "xlink:href", "data", "cite",   "longdesc",   "ping",       "lowsrc", "dynsrc",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq_nocase(name, str_from(names[i]))) {
            return true;
        }
    }
    return false;
}

// Where the URL that `from` belongs to begins; false: it belongs to none.
static bool url_begin(HtmlScan *scan, Str html, size_t from, size_t *ret_begin, uint32_t *steps)
{
    *steps += (uint32_t)((from - scan->at) / SCAN_STEP_BYTES) + 1;
    while (scan->at < from) {
        step(scan, html, from);
    }
    bool inside = scan->state == HTML_VALUE_DOUBLE || scan->state == HTML_VALUE_SINGLE ||
                  scan->state == HTML_VALUE_BARE;
    Str name = str_slice(html, scan->name_at, scan->name_at + scan->name_len);
    if ((!inside && scan->state != HTML_BEFORE_VALUE) || !takes_url(name)) {
        return false;
    }
    size_t begin = inside ? scan->value_at : from;
    // Of several ("a.png 1x, b.png 2x") the last.
    for (size_t at = from; str_eq_nocase(name, STR("srcset")) && at > begin; at--) {
        if (html.ptr[at - 1] == ',') {
            begin = at;
        }
    }
    *ret_begin = begin;
    return true;
}

// May a URL begin a few bytes in front of `from`? What stands between could be part of a scheme.
static bool may_be_begin(Str html, size_t from)
{
    size_t floor = from > LOOK_BACK_MAX ? from - LOOK_BACK_MAX : 0;
    for (size_t at = from; at > floor; at--) {
        unsigned char c = (unsigned char)html.ptr[at - 1];
        if (c == '"' || c == '\'' || c == '=' || c == ',') {
            return true;
        }
        if (!is_scheme_character(c) && !is_passed_over(c) && c != '&' && c != '#' && c != ';') {
            return false;
        }
    }
    return floor > 0;
}

bool html_url_is_unsafe(HtmlScan *scan, Str html, size_t from, uint32_t *steps)
{
    size_t begin = 0;
    size_t end = 0;
    Str value = str_slice(html, from, html.len);
    Scheme alone = read_scheme(value, &end);
    if ((alone != SCHEME_REFUSED && alone != SCHEME_ODD) || !may_be_begin(html, from) ||
        !url_begin(scan, html, from, &begin, steps)) {
        return false;
    }
    Scheme whole = read_scheme(str_slice(html, begin, html.len), &end);
    return whole == SCHEME_REFUSED && begin + end > from;
}

bool html_url_has_begun(HtmlScan *scan, Str html, size_t from, uint32_t *steps)
{
    size_t begin = 0;
    return may_be_begin(html, from) && url_begin(scan, html, from, &begin, steps) &&
           str_trim(str_slice(html, begin, from)).len > 0;
}
