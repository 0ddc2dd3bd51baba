// SPDX-License-Identifier: Apache-2.0
#include "common/render/html_tag.h"

#include <string.h>

#include "common/base/id.h"
#include "common/render/html_text.h"

bool html_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

// Those that mails use; an unknown one stays as it is written.
static uint32_t named_entity(Str name)
{
    static const struct {
        const char *name;
        uint32_t c;
    } names[] = {
        {"amp", '&'},      {"lt", '<'},       {"gt", '>'},        {"quot", '"'},
        {"apos", '\''},    {"nbsp", ' '},     {"copy", 0xa9},     {"reg", 0xae},
        {"trade", 0x2122}, {"euro", 0x20ac},  {"pound", 0xa3},    {"yen", 0xa5},
        {"cent", 0xa2},    {"sect", 0xa7},    {"deg", 0xb0},      {"plusmn", 0xb1},
        {"middot", 0xb7},  {"bull", 0x2022},  {"hellip", 0x2026}, {"ndash", 0x2013},
        {"mdash", 0x2014}, {"lsquo", 0x2018}, {"rsquo", 0x2019},  {"sbquo", 0x201a},
        {"ldquo", 0x201c}, {"rdquo", 0x201d}, {"bdquo", 0x201e},  {"laquo", 0xab},
        {"raquo", 0xbb},   {"times", 0xd7},   {"divide", 0xf7},   {"frac12", 0xbd},
        {"larr", 0x2190},  {"rarr", 0x2192},  {"check", 0x2713},  {"auml", 0xe4},
        {"ouml", 0xf6},    {"uuml", 0xfc},    {"Auml", 0xc4},     {"Ouml", 0xd6},
        {"Uuml", 0xdc},    {"szlig", 0xdf},   {"eacute", 0xe9},   {"egrave", 0xe8},
        {"agrave", 0xe0},  {"ccedil", 0xe7},  {"ntilde", 0xf1},   {"zwnj", 0x200c},
        {"zwj", 0x200d},   {"shy", 0xad},     {"ensp", ' '},      {"emsp", ' '},
        {"thinsp", ' '},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq(name, str_from(names[i].name))) {
            return names[i].c;
        }
    }
    return 0;
}

// "#39" and "#x27"; 0: not a character.
static uint32_t numeric_entity(Str digits)
{
    uint32_t base = digits.len > 0 && lower(digits.ptr[0]) == 'x' ? 16 : 10;
    uint32_t c = 0;
    Str rest = base == 16 ? str_slice(digits, 1, digits.len) : digits;
    if (rest.len == 0 || rest.len > 7) {
        return 0;
    }
    for (size_t i = 0; i < rest.len; i++) {
        int value = hex_value(rest.ptr[i]);
        if (value < 0 || value >= (int)base) {
            return 0;
        }
        c = c * base + (uint32_t)value;
    }
    bool bad = c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff;
    return bad ? (c == '\n' || c == '\t' ? ' ' : 0xfffd) : c;
}

// Of "&amp;..."; *ret_len is its length, 0 when it is none.
uint32_t html_entity(Str text, size_t *ret_len)
{
    *ret_len = 0;
    size_t end = 1;
    while (end < text.len && end < 12 && text.ptr[end] != ';') {
        end++;
    }
    if (end >= text.len || text.ptr[end] != ';' || end < 2) {
        return 0;
    }
    Str name = str_slice(text, 1, end);
    uint32_t c =
        name.ptr[0] == '#' ? numeric_entity(str_slice(name, 1, name.len)) : named_entity(name);
    *ret_len = c != 0 ? end + 1 : 0;
    return c;
}

static TagKind kind_of(const char *name)
{
    static const struct {
        const char *name;
        TagKind kind;
    } kinds[] = {
        {"a", TAG_LINK},        {"address", TAG_BLOCK},   {"area", TAG_VOID},
        {"article", TAG_BLOCK}, {"base", TAG_VOID},       {"blockquote", TAG_QUOTE},
        {"br", TAG_BREAK},      {"caption", TAG_BLOCK},   {"col", TAG_VOID},
        {"dd", TAG_BLOCK},      {"div", TAG_BLOCK},       {"dl", TAG_BLOCK},
        {"dt", TAG_BLOCK},      {"embed", TAG_VOID},      {"figcaption", TAG_BLOCK},
        {"figure", TAG_BLOCK},  {"footer", TAG_BLOCK},    {"form", TAG_BLOCK},
        {"h1", TAG_PARAGRAPH},  {"h2", TAG_PARAGRAPH},    {"h3", TAG_PARAGRAPH},
        {"h4", TAG_PARAGRAPH},  {"h5", TAG_PARAGRAPH},    {"h6", TAG_PARAGRAPH},
        {"header", TAG_BLOCK},  {"hr", TAG_RULE},         {"img", TAG_IMAGE},
        {"input", TAG_VOID},    {"li", TAG_ITEM},         {"link", TAG_VOID},
        {"main", TAG_BLOCK},    {"meta", TAG_VOID},       {"ol", TAG_NUMBERS},
        {"p", TAG_PARAGRAPH},   {"pre", TAG_PRE},         {"script", TAG_UNSEEN},
        {"section", TAG_BLOCK}, {"select", TAG_UNSEEN},   {"source", TAG_VOID},
        {"style", TAG_UNSEEN},  {"table", TAG_PARAGRAPH}, {"tbody", TAG_BLOCK},
        {"td", TAG_CELL},       {"template", TAG_UNSEEN}, {"tfoot", TAG_BLOCK},
        {"th", TAG_CELL},       {"thead", TAG_BLOCK},     {"title", TAG_UNSEEN},
        {"tr", TAG_ROW},        {"track", TAG_VOID},      {"ul", TAG_BULLETS},
        {"wbr", TAG_VOID},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].name[0] == name[0] && strcmp(kinds[i].name, name) == 0) {
            return kinds[i].kind;
        }
    }
    return TAG_OTHER;
}

static size_t skip_spaces(Str text, size_t at)
{
    while (at < text.len && html_is_blank(text.ptr[at])) {
        at++;
    }
    return at;
}

// One attribute from *at on; false: there is none left.
static bool next_attribute(Str text, size_t *at, Str *name, Str *value)
{
    size_t from = skip_spaces(text, *at);
    size_t to = from;
    while (to < text.len && !html_is_blank(text.ptr[to]) && text.ptr[to] != '=') {
        to++;
    }
    *name = str_slice(text, from, to);
    *value = STR_EMPTY;
    size_t next = skip_spaces(text, to);
    if (next < text.len && text.ptr[next] == '=') {
        next = skip_spaces(text, next + 1);
        char quote = next < text.len ? text.ptr[next] : '\0';
        bool quoted = quote == '"' || quote == '\'';
        next += quoted ? 1 : 0;
        size_t end = next;
        while (end < text.len &&
               (quoted ? text.ptr[end] != quote : !html_is_blank(text.ptr[end]))) {
            end++;
        }
        *value = str_slice(text, next, end);
        next = end + (quoted ? 1 : 0);
    }
    bool any = next > *at && from < text.len;
    *at = next > from ? next : from + 1;
    return any;
}

bool html_attribute(const Tag *tag, const char *wanted, Str *ret)
{
    Str name;
    Str value;
    for (size_t at = 0; next_attribute(tag->attributes, &at, &name, &value);) {
        if (str_eq_nocase(name, str_from(wanted))) {
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool has_word(Str text, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= text.len; i++) {
        if (str_eq_nocase(str_slice(text, i, i + len), str_from(word))) {
            return true;
        }
    }
    return false;
}

bool html_is_hidden(const Tag *tag)
{
    Str value;
    return html_attribute(tag, "hidden", &value) ||
           (html_attribute(tag, "style", &value) &&
            (has_word(value, "display:none") || has_word(value, "display: none")));
}

// Behind the tag that begins at `from`; its end is the first '>' outside of quotes.
size_t html_read_tag(Str html, size_t from, Tag *tag)
{
    size_t at = from + 1;
    size_t len = 0;
    tag->closes = at < html.len && html.ptr[at] == '/';
    at += tag->closes ? 1 : 0;
    while (at < html.len && !html_is_blank(html.ptr[at]) && html.ptr[at] != '>' &&
           html.ptr[at] != '/') {
        if (len + 1 < sizeof tag->name) {
            tag->name[len++] = lower(html.ptr[at]);
        }
        at++;
    }
    tag->name[len] = '\0';
    tag->kind = kind_of(tag->name);
    size_t attributes = at;
    char quote = '\0';
    while (at < html.len && (quote != '\0' || html.ptr[at] != '>')) {
        char c = html.ptr[at++];
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        }
    }
    tag->attributes = str_slice(html, attributes, at);
    return at < html.len ? at + 1 : html.len;
}

bool html_begins_tag(Str html, size_t at)
{
    char c = at + 1 < html.len ? html.ptr[at + 1] : '\0';
    return (lower(c) >= 'a' && lower(c) <= 'z') || c == '/' || c == '!' || c == '?';
}

size_t html_find(Str html, size_t from, const char *text)
{
    Str wanted = str_from(text);
    for (size_t at = from; at + wanted.len <= html.len; at++) {
        if (memcmp(html.ptr + at, wanted.ptr, wanted.len) == 0) {
            return at + wanted.len;
        }
    }
    return html.len;
}

// Behind the end of an element that is not shown, with all that is in it.
size_t html_skip_element(Str html, size_t at, const char *name)
{
    int depth = 1;
    while (at < html.len && depth > 0) {
        const char *next = memchr(html.ptr + at, '<', html.len - at);
        if (next == NULL) {
            return html.len;
        }
        at = (size_t)(next - html.ptr);
        Tag tag;
        if (!html_begins_tag(html, at)) {
            at++;
            continue;
        }
        at = html_read_tag(html, at, &tag);
        if (strcmp(tag.name, name) == 0) {
            depth += tag.closes ? -1 : 1;
        }
    }
    return at;
}

bool html_is_void(const Tag *tag)
{
    return tag->kind == TAG_VOID || tag->kind == TAG_BREAK || tag->kind == TAG_RULE ||
           tag->kind == TAG_IMAGE || str_ends(tag->attributes, STR("/"));
}

ptrdiff_t html_after_tag(Str html, const char *name)
{
    for (size_t at = 0; at < html.len;) {
        const char *next = memchr(html.ptr + at, '<', html.len - at);
        if (next == NULL) {
            return -1;
        }
        at = (size_t)(next - html.ptr);
        if (str_starts(str_slice(html, at, html.len), STR("<!--"))) {
            at = html_find(html, at + 4, "-->");
            continue;
        }
        Tag tag;
        at = html_begins_tag(html, at) ? html_read_tag(html, at, &tag) : at + 1;
        if (html.ptr[at - 1] == '>' && !tag.closes && strcmp(tag.name, name) == 0) {
            return (ptrdiff_t)at;
        }
    }
    return -1;
}

size_t html_end_of_body(Str html)
{
    Str wanted = STR("</body");
    for (size_t at = html.len; at > wanted.len; at--) {
        size_t from = at - wanted.len;
        if (html.ptr[from] == '<' && str_eq_nocase(str_slice(html, from, at), wanted)) {
            return from;
        }
    }
    return html.len;
}
