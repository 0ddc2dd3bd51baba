// SPDX-License-Identifier: Apache-2.0
#include "common/template/html_css.h"

#include <string.h>

#include "common/template/html_scheme.h"

// The longest name below, and the byte before it.
enum { WINDOW = 16 };

// The last characters, in lower case, without white space and what else may be passed over.
typedef struct Window {
    char text[WINDOW];
    ptrdiff_t url; // -1: not within url()
} Window;

static void push(Window *window, uint32_t c)
{
    memmove(window->text, window->text + 1, WINDOW - 1);
    window->text[WINDOW - 1] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool ends_with(const Window *window, const char *name)
{
    return str_ends(str_of(window->text, WINDOW), str_from(name));
}

// *at is behind `c`.
static void follow(Window *window, uint32_t c, size_t at)
{
    bool quote =
        (c == '"' || c == '\'') && (ends_with(window, "url(\"") || ends_with(window, "url('"));
    if (ends_with(window, "url(") || quote) {
        window->url = (ptrdiff_t)at;
    } else if (c == ')') {
        window->url = -1;
    }
}

static bool is_script(const Window *window)
{
    static const char *const names[] = {"\\", "/*", "@import", "expression(", "-moz-binding:"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (ends_with(window, names[i])) {
            return true;
        }
    }
    return ends_with(window, "behavior:") && !ends_with(window, "-behavior:"); // scroll-behavior
}

static bool is_refused_url(const Window *window, Str css, size_t at)
{
    size_t end = 0;
    return window->url >= 0 &&
           html_read_scheme(str_slice(css, (size_t)window->url, at), &end) == SCHEME_REFUSED;
}

bool html_css_is_unsafe(Str css, size_t from)
{
    Window window = {.url = -1};
    for (size_t at = 0; at < css.len;) {
        uint32_t c = html_next_character(css, &at);
        if (html_is_passed_over(c)) {
            continue;
        }
        push(&window, c);
        follow(&window, c, at);
        if (at > from && (is_script(&window) || (c == ':' && is_refused_url(&window, css, at)))) {
            return true;
        }
    }
    return false;
}

ptrdiff_t html_css_url(Str css)
{
    Window window = {.url = -1};
    for (size_t at = 0; at < css.len;) {
        uint32_t c = html_next_character(css, &at);
        if (!html_is_passed_over(c)) {
            push(&window, c);
            follow(&window, c, at);
        }
    }
    return window.url;
}

static size_t skip_space(Str text, size_t at)
{
    while (at < text.len && html_is_passed_over((unsigned char)text.ptr[at])) {
        at++;
    }
    return at;
}

// Source: the HTML standard, "shared declarative refresh steps".
ptrdiff_t html_refresh_url(Str content)
{
    size_t start = skip_space(content, 0);
    size_t at = start;
    while (at < content.len &&
           ((content.ptr[at] >= '0' && content.ptr[at] <= '9') || content.ptr[at] == '.')) {
        at++;
    }
    size_t behind = skip_space(content, at);
    bool parted = behind > at;
    if (behind < content.len && (content.ptr[behind] == ';' || content.ptr[behind] == ',')) {
        parted = true;
        behind = skip_space(content, behind + 1);
    }
    if (at == start || !parted || behind == content.len) {
        return -1;
    }
    at = behind;
    if (str_eq_nocase(str_slice(content, at, at + 3), STR("url"))) {
        size_t sign = skip_space(content, at + 3);
        bool is_sign = sign < content.len && content.ptr[sign] == '=';
        // "&#x3D;" is what the writer makes of a value's own '='.
        bool is_entity = str_starts(str_slice(content, sign, content.len), STR("&#x3D;"));
        at = is_sign     ? skip_space(content, sign + 1)
             : is_entity ? skip_space(content, sign + 6)
                         : at;
    }
    static const char *const quotes[] = {"\"", "'", "&quot;", "&#x27;"};
    for (size_t i = 0; i < sizeof quotes / sizeof *quotes; i++) {
        if (str_starts(str_slice(content, at, content.len), str_from(quotes[i]))) {
            return (ptrdiff_t)(at + str_from(quotes[i]).len);
        }
    }
    return (ptrdiff_t)at;
}
