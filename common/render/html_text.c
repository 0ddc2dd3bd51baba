// SPDX-License-Identifier: Apache-2.0
#include "common/render/html_text.h"

#include <string.h>

#include "common/render/html_tag.h"

enum { LISTS_MAX = 8, QUOTES_MAX = 8, BLANK_LINES_MAX = 2 };

typedef struct List {
    bool ordered;
    unsigned number;
} List;

typedef struct Writer {
    Buf *out;
    size_t breaks;     // line breaks owed before the next text
    bool space;        // a space owed
    bool started;      // some text is there
    bool line_started; // this line has text
    bool cell;         // a cell of this row was written
    int pre;
    int quotes;
    List lists[LISTS_MAX];
    int list_count;
    bool item;      // the next text begins an item
    Str link;       // of the <a> that is open; empty: none
    size_t link_at; // where its text begins in `out`
} Writer;

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
    writer->line_started = true;
    writer->space = false;
}

// Pays what is owed before some text.
static void pay(Writer *writer)
{
    if (writer->started) {
        for (size_t i = 0; i < writer->breaks && i < BLANK_LINES_MAX; i++) {
            buf_char(writer->out, '\n');
            writer->line_started = false;
        }
    }
    writer->breaks = 0;
    writer->started = true;
    if (!writer->line_started) {
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
    if (writer->breaks > 0 || !writer->line_started) {
        owe_breaks(writer, writer->breaks < BLANK_LINES_MAX ? writer->breaks + 1 : writer->breaks);
        return;
    }
    owe_breaks(writer, 1);
}

static void put_character(Writer *writer, uint32_t c)
{
    char bytes[STR_UTF8_MAX];
    size_t len = str_utf8_write(c, bytes);
    put(writer, str_of(bytes, len));
}

// ---- text ----

// The length of the run that is copied as it is: words with one blank between them.
static size_t plain_run(Str text, bool pre)
{
    size_t at = 0;
    for (; at < text.len && text.ptr[at] != '&'; at++) {
        char c = text.ptr[at];
        if (pre ? c == '\n' || c == '\r' : html_is_blank(c)) {
            bool single = !pre && c == ' ' && at > 0 && at + 1 < text.len &&
                          text.ptr[at + 1] != '&' && !html_is_blank(text.ptr[at + 1]);
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
    uint32_t c = html_entity(text, &len);
    if (len == 0) {
        put(writer, str_slice(text, 0, 1));
        return 1;
    }
    if (c == ' ') {
        writer->space = writer->line_started && writer->breaks == 0;
    } else if (c != 0xad && c != 0x34f && c != 0x200b && c != 0xfeff) {
        put_character(writer, c); // and no soft hyphen, grapheme joiner, zero width space or mark
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
                writer->space = writer->line_started && writer->breaks == 0;
            }
        }
        text = str_slice(text, used, text.len);
    }
}

// ---- tags ----

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
        uint32_t c =
            address.ptr[i] == '&' ? html_entity(str_slice(address, i, address.len), &len) : 0;
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

static void handle_link(Writer *writer, const Tag *tag)
{
    close_link(writer);
    if (tag->closes) {
        return;
    }
    Str href = STR_EMPTY;
    (void)html_attribute(tag, "href", &href);
    href = str_trim(href);
    bool shown = str_starts(href, STR("http://")) || str_starts(href, STR("https://")) ||
                 str_starts(href, STR("mailto:")) || str_starts(href, STR("tel:"));
    writer->link = shown ? href : STR_EMPTY;
    writer->link_at = writer->out->len;
}

static void handle_list(Writer *writer, const Tag *tag)
{
    if (!tag->closes) {
        owe_breaks(writer, writer->list_count > 0 ? 1 : 2);
        if (writer->list_count < LISTS_MAX) {
            writer->lists[writer->list_count++] = (List){.ordered = tag->kind == TAG_NUMBERS};
        }
        return;
    }
    writer->item = false;
    writer->list_count -= writer->list_count > 0 ? 1 : 0;
    owe_breaks(writer, writer->list_count > 0 ? 1 : 2);
}

static void handle_cell(Writer *writer, bool closes)
{
    if (closes) {
        writer->cell = writer->line_started && writer->breaks == 0;
    } else if (writer->cell) {
        put(writer, STR(" |"));
        writer->space = true;
        writer->cell = false;
    }
}

static void count_open(int *count, bool closes)
{
    *count += !closes ? 1 : *count > 0 ? -1 : 0;
}

static void handle_tag(Writer *writer, const Tag *tag)
{
    Str alt;
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
        owe_breaks(writer, 1);
        writer->item = !tag->closes;
        if (!tag->closes && writer->list_count > 0) {
            writer->lists[writer->list_count - 1].number++;
        }
        break;
    case TAG_LINK:
        handle_link(writer, tag);
        break;
    case TAG_IMAGE:
        if (html_attribute(tag, "alt", &alt)) {
            put_text(writer, alt);
        }
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

static size_t walk_tag(Writer *writer, Str html, size_t at)
{
    if (str_starts(str_slice(html, at, html.len), STR("<!--"))) {
        return html_find(html, at + 4, "-->");
    }
    Tag tag;
    size_t next = html_read_tag(html, at, &tag);
    if (tag.kind == TAG_UNSEEN && !tag.closes) {
        return html_skip_element(html, next, tag.name);
    }
    if (tag.attributes.len > 0 && !tag.closes && !html_is_void(&tag) && html_is_hidden(&tag)) {
        return html_skip_element(html, next, tag.name);
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
        } else if (html_begins_tag(html, at)) {
            at = walk_tag(&writer, html, at);
        } else {
            put(&writer, STR("<"));
            at++;
        }
    }
    close_link(&writer);
    if (writer.started) {
        buf_char(out, '\n');
    }
}
