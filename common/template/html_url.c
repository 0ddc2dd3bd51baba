// SPDX-License-Identifier: Apache-2.0
// Most values are decided by themselves: "https://...", "/path", "Anna". What is left is asked what
// stands in front of it (a few bytes), and only then the HTML is read from where it was read last.
#include "common/template/html_url.h"

#include <string.h>

#include "common/template/html_css.h"
#include "common/template/html_scheme.h"

enum { LOOK_BACK_MAX = 256, SCAN_STEP_BYTES = 128 };

bool html_url_ends_scheme(Str text)
{
    size_t end = 0;
    HtmlScheme scheme = html_read_scheme(text, &end);
    return scheme == SCHEME_ODD || scheme == SCHEME_REFUSED;
}

// ---- where in the HTML ----

static bool tag_is(const HtmlScan *scan, Str html, Str name)
{
    Str tag = str_slice(html, scan->tag_at, scan->tag_at + name.len);
    Str next = str_slice(html, scan->tag_at + name.len, scan->tag_at + name.len + 1);
    return str_eq_nocase(tag, name) && next.len > 0 && !html_is_letter((unsigned char)next.ptr[0]);
}

// Inside of a tag; source: the HTML standard, 13.2.5.
static void step_tag(HtmlScan *scan, Str html, char c)
{
    switch (scan->state) {
    case HTML_TAG_NAME:
        scan->state =
            html_is_space((unsigned char)c) || c == '/' ? HTML_BEFORE_NAME : HTML_TAG_NAME;
        break;
    case HTML_NAME:
        scan->name_len = scan->at - scan->name_at;
        scan->state = c == '='                          ? HTML_BEFORE_VALUE
                      : html_is_space((unsigned char)c) ? HTML_AFTER_NAME
                      : c == '/'                        ? HTML_BEFORE_NAME
                                                        : HTML_NAME;
        break;
    case HTML_AFTER_NAME:
        if (c == '=') {
            scan->state = HTML_BEFORE_VALUE;
            break;
        }
        // fall through
    case HTML_BEFORE_NAME:
        if (!html_is_space((unsigned char)c)) {
            scan->state = c == '/' ? HTML_BEFORE_NAME : HTML_NAME;
            scan->name_at = scan->at;
            scan->name_len = 1;
        }
        break;
    case HTML_BEFORE_VALUE:
        if (!html_is_space((unsigned char)c)) {
            scan->state = c == '"'    ? HTML_VALUE_DOUBLE
                          : c == '\'' ? HTML_VALUE_SINGLE
                                      : HTML_VALUE_BARE;
            scan->value_at = scan->at + (scan->state == HTML_VALUE_BARE ? 0 : 1);
        }
        break;
    case HTML_VALUE_BARE:
        scan->state = html_is_space((unsigned char)c) ? HTML_BEFORE_NAME : HTML_VALUE_BARE;
        break;
    default:
        break;
    }
    if (c == '>') {
        scan->value_at = scan->at + 1;
        scan->state = tag_is(scan, html, STR("script"))  ? HTML_SCRIPT
                      : tag_is(scan, html, STR("style")) ? HTML_STYLE
                                                         : HTML_TEXT;
    }
}

// Behind '<'.
static void step_markup(HtmlScan *scan, char c)
{
    bool letter = html_is_letter((unsigned char)c);
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

static void step_to_end(HtmlScan *scan, Str html, size_t to, Str end)
{
    if (seek(scan, html, to, '<') &&
        str_eq_nocase(str_slice(html, scan->at, scan->at + end.len), end)) {
        scan->state = HTML_TAG_OPEN;
    }
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
        step_to_end(scan, html, to, STR("</script"));
        break;
    case HTML_STYLE:
        step_to_end(scan, html, to, STR("</style"));
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

// ---- what stands there ----

typedef enum Place {
    PLACE_PLAIN,
    PLACE_URL,
    PLACE_URLS, // several, parted by commas
    PLACE_CSS,
    PLACE_REFRESH, // content of <meta>
    PLACE_CODE,    // of which each character counts
} Place;

// clang-format off
static const struct {
    const char *attribute;
    const char *tag; // NULL: any
    Place place;
} places[] = {
    {"href",        NULL,    PLACE_URL},
    {"src",         NULL,    PLACE_URL},
    {"xlink:href",  NULL,    PLACE_URL},
    {"action",      NULL,    PLACE_URL},
    {"formaction",  NULL,    PLACE_URL},
    {"background",  NULL,    PLACE_URL},
    {"poster",      NULL,    PLACE_URL},
    {"data",        NULL,    PLACE_URL},
    {"cite",        NULL,    PLACE_URL},
    {"longdesc",    NULL,    PLACE_URL},
    {"ping",        NULL,    PLACE_URL},
    {"lowsrc",      NULL,    PLACE_URL},
    {"dynsrc",      NULL,    PLACE_URL},
    {"codebase",    NULL,    PLACE_URL},
    {"classid",     NULL,    PLACE_URL},
    {"code",        NULL,    PLACE_URL},
    {"archive",     NULL,    PLACE_URL},
    {"manifest",    NULL,    PLACE_URL},
    {"profile",     NULL,    PLACE_URL},
    {"usemap",      NULL,    PLACE_URL},
    {"icon",        NULL,    PLACE_URL},
    {"value",       "param", PLACE_URL},
    {"to",          NULL,    PLACE_URL}, // <set> and <animate> of SVG
    {"from",        NULL,    PLACE_URL},
    {"by",          NULL,    PLACE_URL},
    {"values",      NULL,    PLACE_URL},
    {"srcset",      NULL,    PLACE_URLS},
    {"imagesrcset", NULL,    PLACE_URLS},
    {"style",       NULL,    PLACE_CSS},
    {"content",     "meta",  PLACE_REFRESH},
    {"srcdoc",      NULL,    PLACE_CODE},
};
// clang-format on

static bool is_handler(Str name)
{
    return name.len > 2 && str_eq_nocase(str_slice(name, 0, 2), STR("on"));
}

static bool is_inside(const HtmlScan *scan)
{
    return scan->state == HTML_VALUE_DOUBLE || scan->state == HTML_VALUE_SINGLE ||
           scan->state == HTML_VALUE_BARE;
}

// Where the byte at `from` stands; reads the HTML on until there.
static Place find_place(HtmlScan *scan, Str html, size_t from, uint32_t *steps)
{
    *steps += (uint32_t)((from - scan->at) / SCAN_STEP_BYTES) + 1;
    while (scan->at < from) {
        step(scan, html, from);
    }
    if (scan->state == HTML_STYLE) {
        return PLACE_CSS;
    }
    if (!is_inside(scan) && scan->state != HTML_BEFORE_VALUE) {
        return PLACE_PLAIN;
    }
    Str name = str_slice(html, scan->name_at, scan->name_at + scan->name_len);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (str_eq_nocase(name, str_from(places[i].attribute)) &&
            (places[i].tag == NULL || tag_is(scan, html, str_from(places[i].tag)))) {
            return places[i].place;
        }
    }
    return is_handler(name) ? PLACE_CODE : PLACE_PLAIN;
}

// Where the CSS or the attribute begins, as far back as is looked.
static size_t place_begin(const HtmlScan *scan, size_t from)
{
    size_t begin = is_inside(scan) || scan->state == HTML_STYLE ? scan->value_at : from;
    return from > LOOK_BACK_MAX && from - LOOK_BACK_MAX > begin ? from - LOOK_BACK_MAX : begin;
}

// Of several ("a.png 1x, b.png 2x") the last.
static size_t last_of(Str html, size_t begin, size_t from)
{
    for (size_t at = from; at > begin; at--) {
        if (html.ptr[at - 1] == ',') {
            return at;
        }
    }
    return begin;
}

// Where the URL that `from` belongs to begins; false: it belongs to none.
static bool url_begin(HtmlScan *scan, Str html, size_t from, size_t *ret_begin, uint32_t *steps)
{
    Place place = find_place(scan, html, from, steps);
    size_t begin = is_inside(scan) ? scan->value_at : from;
    ptrdiff_t within = 0;
    switch (place) {
    case PLACE_PLAIN:
    case PLACE_CODE:
        return false;
    case PLACE_URL:
        break;
    case PLACE_URLS:
        begin = last_of(html, begin, from);
        break;
    case PLACE_CSS:
        begin = place_begin(scan, from);
        within = html_css_url(str_slice(html, begin, from));
        break;
    case PLACE_REFRESH:
        within = html_refresh_url(str_slice(html, begin, html.len));
        break;
    }
    *ret_begin = begin + (size_t)(within > 0 ? within : 0);
    return within >= 0;
}

// May a URL begin a few bytes in front of `from`? What stands between could be part of a scheme.
static bool may_be_begin(Str html, size_t from)
{
    size_t floor = from > LOOK_BACK_MAX ? from - LOOK_BACK_MAX : 0;
    for (size_t at = from; at > floor; at--) {
        unsigned char c = (unsigned char)html.ptr[at - 1];
        if (c == '"' || c == '\'' || c == '=' || c == ',' || c == '(') {
            return true;
        }
        if (!html_is_scheme_character(c) && !html_is_passed_over(c) && c != '&' && c != '#' &&
            c != ';') {
            return false;
        }
    }
    return floor > 0;
}

static bool is_unsafe_scheme(HtmlScan *scan, Str html, size_t from, uint32_t *steps)
{
    size_t begin = 0;
    size_t end = 0;
    HtmlScheme alone = html_read_scheme(str_slice(html, from, html.len), &end);
    if ((alone != SCHEME_REFUSED && alone != SCHEME_ODD) || !may_be_begin(html, from) ||
        !url_begin(scan, html, from, &begin, steps)) {
        return false;
    }
    HtmlScheme whole = html_read_scheme(str_slice(html, begin, html.len), &end);
    return whole == SCHEME_REFUSED && begin + end > from;
}

// What most values are, wherever they stand, is seen without reading the HTML: this comes first.
static bool is_unsafe_css(HtmlScan *scan, Str html, size_t from, bool raw, uint32_t *steps)
{
    size_t floor = from > LOOK_BACK_MAX ? from - LOOK_BACK_MAX : 0;
    *steps += (uint32_t)((html.len - floor) / SCAN_STEP_BYTES);
    if (!html_css_is_unsafe(str_slice(html, floor, html.len), from - floor) ||
        find_place(scan, html, from, steps) != PLACE_CSS || (raw && scan->state == HTML_STYLE)) {
        return false;
    }
    size_t begin = place_begin(scan, from);
    return html_css_is_unsafe(str_slice(html, begin, html.len), from - begin);
}

// The '<' that is nearest, within reach, is that of a <meta>.
static bool may_be_meta(Str html, size_t from)
{
    size_t floor = from > LOOK_BACK_MAX ? from - LOOK_BACK_MAX : 0;
    for (size_t at = from; at > floor; at--) {
        if (html.ptr[at - 1] == '>') {
            return false;
        }
        if (html.ptr[at - 1] == '<') {
            return str_eq_nocase(str_slice(html, at, at + 4), STR("meta"));
        }
    }
    return floor > 0;
}

// A refresh whose URL begins within the value.
static bool is_unsafe_refresh(HtmlScan *scan, Str html, size_t from, uint32_t *steps)
{
    size_t begin = 0;
    size_t end = 0;
    return str_find(str_slice(html, from, html.len), ':') >= 0 && may_be_meta(html, from) &&
           find_place(scan, html, from, steps) == PLACE_REFRESH &&
           url_begin(scan, html, from, &begin, steps) &&
           html_read_scheme(str_slice(html, begin, html.len), &end) == SCHEME_REFUSED &&
           begin + end > from;
}

static bool is_plain_words(Str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if (!html_is_letter(c) && !(c >= '0' && c <= '9') && c < 0x80 &&
            memchr(" _-.,", c, 5) == NULL) {
            return false;
        }
    }
    return true;
}

static bool is_unsafe_code(HtmlScan *scan, Str html, size_t from, uint32_t *steps)
{
    return scan->has_code && !is_plain_words(str_slice(html, from, html.len)) &&
           find_place(scan, html, from, steps) == PLACE_CODE;
}

bool html_url_is_unsafe(HtmlScan *scan, Str html, size_t from, bool raw, uint32_t *steps)
{
    return is_unsafe_scheme(scan, html, from, steps) ||
           is_unsafe_css(scan, html, from, raw, steps) ||
           is_unsafe_refresh(scan, html, from, steps) || is_unsafe_code(scan, html, from, steps);
}

bool html_url_has_started(HtmlScan *scan, Str html, size_t from, uint32_t *steps)
{
    size_t begin = 0;
    return may_be_begin(html, from) && url_begin(scan, html, from, &begin, steps) &&
           str_trim(str_slice(html, begin, from)).len > 0;
}

// "srcdoc", or a name that begins with "on" behind what parts attributes.
bool html_url_has_code(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char before = i == 0 ? ' ' : (unsigned char)text.ptr[i - 1];
        Str rest = str_slice(text, i, text.len);
        if (str_eq_nocase(str_slice(rest, 0, 6), STR("srcdoc"))) {
            return true;
        }
        if (!is_handler(rest) || html_is_letter(before)) {
            continue;
        }
        size_t end = 2;
        while (end < rest.len && html_is_letter((unsigned char)rest.ptr[end])) {
            end++;
        }
        if (end > 2 && str_starts(str_trim(str_slice(rest, end, rest.len)), STR("="))) {
            return true;
        }
    }
    return false;
}
