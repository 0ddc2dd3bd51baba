// SPDX-License-Identifier: Apache-2.0
#include "common/render/html_text.h"

#include <string.h>

enum { LISTS_MAX = 8, QUOTES_MAX = 8, BLANK_LINES_MAX = 2, NAME_MAX_LEN = 16 };

typedef struct List {
    bool ordered;
    unsigned number;
} List;

typedef struct Writer {
    Buf *out;
    size_t breaks;   // line breaks owed before the next text
    bool space;      // a space owed
    bool begun;      // some text is there
    bool line_begun; // this line has text
    bool cell;       // a cell of this row was written
    int pre;
    int quotes;
    List lists[LISTS_MAX];
    int list_count;
    bool item;      // the next text begins an item
    Str link;       // of the <a> that is open; empty: none
    size_t link_at; // where its text begins in `out`
} Writer;

// What a tag does to the text.
typedef enum TagKind {
    TAG_OTHER,
    TAG_VOID, // has no end tag, and no meaning here
    TAG_BREAK,
    TAG_PARAGRAPH,
    TAG_BLOCK,
    TAG_ROW,
    TAG_CELL,
    TAG_BULLETS,
    TAG_NUMBERS,
    TAG_ITEM,
    TAG_LINK,
    TAG_IMAGE,
    TAG_RULE,
    TAG_PRE,
    TAG_QUOTE,
    TAG_UNSEEN, // with all that is in it
} TagKind;

typedef struct Tag {
    char name[NAME_MAX_LEN]; // lower case; longer ones are cut, and are none that matters
    TagKind kind;
    bool closes;
    Str attributes;
} Tag;

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
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

// ---- writing ----

static void owe_breaks(Writer *writer, size_t count)
{
    writer->breaks = count > writer->breaks ? count : writer->breaks;
    writer->space = false;
}

static void begin_item(Writer *writer)
{
    List *list = &writer->lists[writer->list_count > 0 ? writer->list_count - 1 : 0];
    for (int i = 1; i < writer->list_count; i++) {
        buf_cstr(writer->out, "  ");
    }
    if (writer->list_count > 0 && list->ordered) {
        buf_printf(writer->out, "%u. ", list->number);
    } else {
        buf_cstr(writer->out, "- ");
    }
    writer->item = false;
}

static void begin_line(Writer *writer)
{
    for (int i = 0; i < writer->quotes && i < QUOTES_MAX; i++) {
        buf_cstr(writer->out, "> ");
    }
    if (writer->item) {
        begin_item(writer);
    } else {
        for (int i = 0; i < writer->list_count; i++) {
            buf_cstr(writer->out, "  ");
        }
    }
    writer->line_begun = true;
    writer->space = false;
}

// Pays what is owed before some text.
static void pay(Writer *writer)
{
    if (writer->begun) {
        for (size_t i = 0; i < writer->breaks && i < BLANK_LINES_MAX; i++) {
            buf_char(writer->out, '\n');
            writer->line_begun = false;
        }
    }
    writer->breaks = 0;
    writer->begun = true;
    if (!writer->line_begun) {
        begin_line(writer);
    } else if (writer->space) {
        buf_char(writer->out, ' ');
    }
    writer->space = false;
}

static void put(Writer *writer, Str text)
{
    if (text.len > 0) {
        pay(writer);
        buf_str(writer->out, text);
    }
}

static void put_break(Writer *writer)
{
    if (writer->breaks > 0 || !writer->line_begun) {
        owe_breaks(writer, writer->breaks < BLANK_LINES_MAX ? writer->breaks + 1 : writer->breaks);
        return;
    }
    owe_breaks(writer, 1);
}

static void put_character(Writer *writer, uint32_t c)
{
    char bytes[4];
    size_t len = 1;
    if (c < 0x80) {
        bytes[0] = (char)c;
    } else if (c < 0x800) {
        bytes[0] = (char)(0xc0 | (c >> 6));
        len = 2;
    } else if (c < 0x10000) {
        bytes[0] = (char)(0xe0 | (c >> 12));
        len = 3;
    } else {
        bytes[0] = (char)(0xf0 | (c >> 18));
        len = 4;
    }
    for (size_t i = 1; i < len; i++) {
        bytes[i] = (char)(0x80 | ((c >> (6 * (len - 1 - i))) & 0x3f));
    }
    put(writer, str_of(bytes, len));
}

// ---- entities ----

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

static int digit_value(char c, uint32_t base)
{
    int value = c >= '0' && c <= '9' ? c - '0' : lower(c) >= 'a' ? lower(c) - 'a' + 10 : 99;
    return value < (int)base ? value : -1;
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
        int value = digit_value(rest.ptr[i], base);
        if (value < 0) {
            return 0;
        }
        c = c * base + (uint32_t)value;
    }
    bool bad = c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff;
    return bad ? (c == '\n' || c == '\t' ? ' ' : 0xfffd) : c;
}

// Of "&amp;..."; *ret_len is its length, 0 when it is none.
static uint32_t entity(Str text, size_t *ret_len)
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

// ---- text ----

static bool is_invisible(uint32_t c)
{
    // soft hyphen, combining grapheme joiner, zero width space, byte order mark
    return c == 0xad || c == 0x34f || c == 0x200b || c == 0xfeff;
}

// The length of the run that is copied as it is: words with one blank between them.
static size_t plain_run(Str text, bool pre)
{
    size_t at = 0;
    for (; at < text.len && text.ptr[at] != '&'; at++) {
        char c = text.ptr[at];
        if (pre ? c == '\n' || c == '\r' : is_space(c)) {
            bool single = !pre && c == ' ' && at > 0 && at + 1 < text.len &&
                          text.ptr[at + 1] != '&' && !is_space(text.ptr[at + 1]);
            if (!single) {
                break;
            }
        }
    }
    return at;
}

static size_t put_entity(Writer *writer, Str text)
{
    size_t len = 0;
    uint32_t c = entity(text, &len);
    if (len == 0) {
        put(writer, str_slice(text, 0, 1));
        return 1;
    }
    if (c == ' ') {
        writer->space = writer->line_begun && writer->breaks == 0;
    } else if (!is_invisible(c)) {
        put_character(writer, c);
    }
    return len;
}

static void put_text(Writer *writer, Str text)
{
    while (text.len > 0 && !writer->out->full) {
        bool pre = writer->pre > 0;
        size_t used = plain_run(text, pre);
        if (used > 0) {
            put(writer, str_slice(text, 0, used));
        } else if (text.ptr[0] == '&') {
            used = put_entity(writer, text);
        } else {
            used = 1;
            if (pre && text.ptr[0] == '\n') {
                put_break(writer);
            } else if (!pre) {
                writer->space = writer->line_begun && writer->breaks == 0;
            }
        }
        text = str_slice(text, used, text.len);
    }
}

// ---- tags ----

static size_t skip_spaces(Str text, size_t at)
{
    while (at < text.len && is_space(text.ptr[at])) {
        at++;
    }
    return at;
}

// One attribute from *at on; false: there is none left.
static bool next_attribute(Str text, size_t *at, Str *name, Str *value)
{
    size_t from = skip_spaces(text, *at);
    size_t to = from;
    while (to < text.len && !is_space(text.ptr[to]) && text.ptr[to] != '=') {
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
        while (end < text.len && (quoted ? text.ptr[end] != quote : !is_space(text.ptr[end]))) {
            end++;
        }
        *value = str_slice(text, next, end);
        next = end + (quoted ? 1 : 0);
    }
    bool any = next > *at && from < text.len;
    *at = next > from ? next : from + 1;
    return any;
}

static bool attribute(const Tag *tag, const char *wanted, Str *ret)
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

static bool is_hidden(const Tag *tag)
{
    Str value;
    return attribute(tag, "hidden", &value) ||
           (attribute(tag, "style", &value) &&
            (has_word(value, "display:none") || has_word(value, "display: none")));
}

static void open_link(Writer *writer, const Tag *tag)
{
    Str href = STR_EMPTY;
    (void)attribute(tag, "href", &href);
    href = str_trim(href);
    bool shown = str_starts(href, STR("http://")) || str_starts(href, STR("https://")) ||
                 str_starts(href, STR("mailto:")) || str_starts(href, STR("tel:"));
    writer->link = shown ? href : STR_EMPTY;
    writer->link_at = writer->out->len;
}

// "text (url)", unless the text is the address itself.
static void close_link(Writer *writer)
{
    Str link = writer->link;
    writer->link = STR_EMPTY;
    if (link.len == 0) {
        return;
    }
    ptrdiff_t colon = str_starts(link, STR("http")) ? -1 : str_find(link, ':');
    Str address = str_slice(link, (size_t)(colon + 1), link.len);
    Buf *out = writer->out;
    Buf decoded;
    buf_init(&decoded, address.len + 16);
    for (size_t i = 0; i < address.len;) {
        size_t len = 0;
        uint32_t c = address.ptr[i] == '&' ? entity(str_slice(address, i, address.len), &len) : 0;
        bool ascii = len > 0 && c > ' ' && c < 0x7f;
        buf_char(&decoded, ascii ? (char)c : address.ptr[i]);
        i += ascii ? len : 1;
    }
    Str shown = str_slice(buf_view(out), writer->link_at, out->len);
    if (!str_eq(str_trim(shown), buf_view(&decoded)) && shown.len > 0) {
        put(writer, STR(" ("));
        put(writer, buf_view(&decoded));
        put(writer, STR(")"));
    } else if (shown.len == 0) {
        put(writer, buf_view(&decoded));
    }
    buf_done(&decoded);
}

static void open_list(Writer *writer, bool ordered)
{
    owe_breaks(writer, writer->list_count > 0 ? 1 : 2);
    if (writer->list_count < LISTS_MAX) {
        writer->lists[writer->list_count++] = (List){.ordered = ordered};
    }
}

static void close_list(Writer *writer)
{
    writer->item = false;
    writer->list_count -= writer->list_count > 0 ? 1 : 0;
    owe_breaks(writer, writer->list_count > 0 ? 1 : 2);
}

static void handle_item(Writer *writer, bool closes)
{
    owe_breaks(writer, 1);
    writer->item = !closes;
    if (!closes && writer->list_count > 0) {
        writer->lists[writer->list_count - 1].number++;
    }
}

static void handle_cell(Writer *writer, bool closes)
{
    if (closes) {
        writer->cell = writer->line_begun && writer->breaks == 0;
    } else if (writer->cell) {
        put(writer, STR(" |"));
        writer->space = true;
        writer->cell = false;
    }
}

static void handle_image(Writer *writer, const Tag *tag)
{
    Str alt;
    if (attribute(tag, "alt", &alt)) {
        put_text(writer, alt);
    }
}

static void handle_link(Writer *writer, const Tag *tag)
{
    close_link(writer);
    if (!tag->closes) {
        open_link(writer, tag);
    }
}

static void handle_list(Writer *writer, const Tag *tag)
{
    if (tag->closes) {
        close_list(writer);
    } else {
        open_list(writer, tag->kind == TAG_NUMBERS);
    }
}

static void count_open(int *count, bool closes)
{
    *count += !closes ? 1 : *count > 0 ? -1 : 0;
}

static void handle_tag(Writer *writer, const Tag *tag)
{
    switch (tag->kind) {
    case TAG_BREAK:
        put_break(writer);
        break;
    case TAG_PARAGRAPH:
        owe_breaks(writer, 2);
        break;
    case TAG_BLOCK:
        owe_breaks(writer, 1);
        break;
    case TAG_ROW:
        owe_breaks(writer, 1);
        writer->cell = false;
        break;
    case TAG_CELL:
        handle_cell(writer, tag->closes);
        break;
    case TAG_BULLETS:
    case TAG_NUMBERS:
        handle_list(writer, tag);
        break;
    case TAG_ITEM:
        handle_item(writer, tag->closes);
        break;
    case TAG_LINK:
        handle_link(writer, tag);
        break;
    case TAG_IMAGE:
        handle_image(writer, tag);
        break;
    case TAG_RULE:
        owe_breaks(writer, 1);
        put(writer, STR("----------------------------------------"));
        owe_breaks(writer, 1);
        break;
    case TAG_PRE:
        owe_breaks(writer, 2);
        count_open(&writer->pre, tag->closes);
        break;
    case TAG_QUOTE:
        owe_breaks(writer, 2);
        count_open(&writer->quotes, tag->closes);
        break;
    case TAG_OTHER:
    case TAG_VOID:
    case TAG_UNSEEN:
        break;
    }
}

// ---- the walk ----

// Behind the tag that begins at `from`; its end is the first '>' outside of quotes.
static size_t read_tag(Str html, size_t from, Tag *tag)
{
    size_t at = from + 1;
    size_t len = 0;
    tag->closes = at < html.len && html.ptr[at] == '/';
    at += tag->closes ? 1 : 0;
    while (at < html.len && !is_space(html.ptr[at]) && html.ptr[at] != '>' && html.ptr[at] != '/') {
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

static bool begins_tag(Str html, size_t at)
{
    char c = at + 1 < html.len ? html.ptr[at + 1] : '\0';
    return (lower(c) >= 'a' && lower(c) <= 'z') || c == '/' || c == '!' || c == '?';
}

static size_t find_text(Str html, size_t from, const char *text)
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
static size_t skip_element(Str html, size_t at, const char *name)
{
    int depth = 1;
    while (at < html.len && depth > 0) {
        const char *next = memchr(html.ptr + at, '<', html.len - at);
        if (next == NULL) {
            return html.len;
        }
        at = (size_t)(next - html.ptr);
        Tag tag;
        if (!begins_tag(html, at)) {
            at++;
            continue;
        }
        at = read_tag(html, at, &tag);
        if (strcmp(tag.name, name) == 0) {
            depth += tag.closes ? -1 : 1;
        }
    }
    return at;
}

static bool is_void(const Tag *tag)
{
    return tag->kind == TAG_VOID || tag->kind == TAG_BREAK || tag->kind == TAG_RULE ||
           tag->kind == TAG_IMAGE || str_ends(tag->attributes, STR("/"));
}

static size_t walk_tag(Writer *writer, Str html, size_t at)
{
    if (str_starts(str_slice(html, at, html.len), STR("<!--"))) {
        return find_text(html, at + 4, "-->");
    }
    Tag tag;
    size_t next = read_tag(html, at, &tag);
    if (tag.kind == TAG_UNSEEN && !tag.closes) {
        return skip_element(html, next, tag.name);
    }
    if (tag.attributes.len > 0 && !tag.closes && !is_void(&tag) && is_hidden(&tag)) {
        return skip_element(html, next, tag.name);
    }
    handle_tag(writer, &tag);
    return next;
}

void html_to_text(Str html, Buf *out)
{
    Writer writer = {.out = out};
    for (size_t at = 0; at < html.len && !out->full;) {
        const char *next = memchr(html.ptr + at, '<', html.len - at);
        size_t to = next == NULL ? html.len : (size_t)(next - html.ptr);
        if (to > at) {
            put_text(&writer, str_slice(html, at, to));
            at = to;
        } else if (begins_tag(html, at)) {
            at = walk_tag(&writer, html, at);
        } else {
            put(&writer, STR("<"));
            at++;
        }
    }
    close_link(&writer);
    if (writer.begun) {
        buf_char(out, '\n');
    }
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
            at = find_text(html, at + 4, "-->");
            continue;
        }
        Tag tag;
        at = begins_tag(html, at) ? read_tag(html, at, &tag) : at + 1;
        if (html.ptr[at - 1] == '>' && !tag.closes && strcmp(tag.name, name) == 0) {
            return (ptrdiff_t)at;
        }
    }
    return -1;
}
