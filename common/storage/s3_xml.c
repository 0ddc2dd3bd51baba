// SPDX-License-Identifier: Apache-2.0
#include "common/storage/s3_xml.h"

#include <string.h>

void s3_xml_init(S3Xml *xml, Str document)
{
    memset(xml, 0, sizeof *xml);
    xml->rest = document;
    buf_init(&xml->text, S3_XML_TEXT_MAX);
}

void s3_xml_done(S3Xml *xml)
{
    buf_done(&xml->text);
}

Str s3_xml_text(const S3Xml *xml)
{
    return xml->leaf ? buf_view(&xml->text) : STR_EMPTY;
}

static S3XmlEvent bad(S3Xml *xml, const char *why)
{
    xml->why = why;
    return S3_XML_BAD;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// Cuts what stands before `mark`, and the mark; false: there is none.
static bool cut_at(Str *rest, Str mark, Str *ret_before)
{
    for (size_t i = 0; i + mark.len <= rest->len; i++) {
        if (memcmp(rest->ptr + i, mark.ptr, mark.len) == 0) {
            *ret_before = str_slice(*rest, 0, i);
            *rest = str_slice(*rest, i + mark.len, rest->len);
            return true;
        }
    }
    return false;
}

// ---- text ----

// "#60" or "#x3c"; false when it is no character of XML.
static bool put_number(Str text, Buf *out)
{
    bool hex = str_starts(text, STR("#x"));
    uint32_t value = 0;
    text = str_slice(text, hex ? 2 : 1, text.len);
    if (text.len == 0 || text.len > 7) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool digit = hex ? (ascii_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
                         : ascii_is_digit(c);
        if (!digit) {
            return false;
        }
        uint32_t part = ascii_is_digit(c) ? (uint32_t)(c - '0') : (uint32_t)((c | 0x20) - 'a' + 10);
        value = value * (hex ? 16 : 10) + part;
    }
    if (value == 0 || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
        return false;
    }
    char bytes[STR_UTF8_MAX];
    buf_append(out, bytes, str_utf8_write(value, bytes));
    return true;
}

static bool put_reference(Str name, Buf *out)
{
    static const struct {
        Str name;
        char c;
    } known[] = {
        {{"lt", 2}, '<'},
        {{"gt", 2}, '>'},
        {{"amp", 3}, '&'},
        {{"quot", 4}, '"'},
        {{"apos", 4}, '\''}};
    if (str_starts(name, STR("#"))) {
        return put_number(name, out);
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (str_eq(name, known[i].name)) {
            return buf_char(out, known[i].c);
        }
    }
    return false;
}

// Up to the next tag. false: a reference that is none, or too much text.
static bool take_text(S3Xml *xml)
{
    while (xml->rest.len > 0 && xml->rest.ptr[0] != '<') {
        if (xml->rest.ptr[0] != '&') {
            buf_char(&xml->text, xml->rest.ptr[0]);
            xml->rest = str_slice(xml->rest, 1, xml->rest.len);
            continue;
        }
        ptrdiff_t end = str_find(xml->rest, ';');
        if (end < 0 || !put_reference(str_slice(xml->rest, 1, (size_t)end), &xml->text)) {
            return false;
        }
        xml->rest = str_slice(xml->rest, (size_t)end + 1, xml->rest.len);
    }
    return !xml->text.full;
}

// ---- tags ----

static Str without_prefix(Str name)
{
    ptrdiff_t colon = str_find(name, ':');
    return colon < 0 ? name : str_slice(name, (size_t)colon + 1, name.len);
}

static S3XmlEvent close_tag(S3Xml *xml, Str name)
{
    if (xml->depth == 0 || !str_eq(xml->open[xml->depth - 1], name)) {
        return bad(xml, "an end that was not opened");
    }
    xml->name = xml->open[--xml->depth];
    xml->closed = true;
    return S3_XML_CLOSE;
}

// The end of a tag, beyond its attributes: a '>' outside quotes. -1: there is none.
static ptrdiff_t tag_end(Str text)
{
    char quote = '\0';
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '>') {
            return (ptrdiff_t)i;
        } else if (c == '<') {
            return -1;
        }
    }
    return -1;
}

static S3XmlEvent open_tag(S3Xml *xml)
{
    ptrdiff_t end = tag_end(xml->rest);
    if (end <= 0) {
        return bad(xml, "a tag without an end");
    }
    Str tag = str_slice(xml->rest, 0, (size_t)end);
    xml->rest = str_slice(xml->rest, (size_t)end + 1, xml->rest.len);
    xml->closes = tag.ptr[tag.len - 1] == '/';
    tag = xml->closes ? str_slice(tag, 0, tag.len - 1) : tag;
    size_t len = 0;
    while (len < tag.len && !is_space(tag.ptr[len])) {
        len++;
    }
    Str name = without_prefix(str_slice(tag, 0, len));
    if (name.len == 0) {
        return bad(xml, "a tag without a name");
    }
    if (xml->depth == S3_XML_DEPTH_MAX || (xml->depth == 0 && xml->rooted)) {
        return bad(xml, xml->rooted ? "a second root" : "too deep");
    }
    xml->rooted = true;
    xml->open[xml->depth++] = name;
    xml->name = name;
    xml->leaf = true;
    buf_clear(&xml->text);
    return S3_XML_OPEN;
}

// What stands behind '<'. S3_XML_END here: nothing to tell, go on.
static S3XmlEvent take_tag(S3Xml *xml)
{
    Str skipped;
    if (str_starts(xml->rest, STR("?"))) {
        return cut_at(&xml->rest, STR("?>"), &skipped) ? S3_XML_END : bad(xml, "no ?>");
    }
    if (str_starts(xml->rest, STR("!--"))) {
        return cut_at(&xml->rest, STR("-->"), &skipped) ? S3_XML_END : bad(xml, "no -->");
    }
    if (str_starts(xml->rest, STR("!"))) {
        return bad(xml, "a DTD or CDATA");
    }
    if (!str_starts(xml->rest, STR("/"))) {
        return open_tag(xml);
    }
    Str name;
    xml->rest = str_slice(xml->rest, 1, xml->rest.len);
    if (!cut_at(&xml->rest, STR(">"), &name)) {
        return bad(xml, "a tag without an end");
    }
    return close_tag(xml, without_prefix(str_trim(name)));
}

S3XmlEvent s3_xml_next(S3Xml *xml)
{
    if (xml->closes) {
        xml->closes = false;
        return close_tag(xml, xml->name);
    }
    if (xml->closed) { // what closes next without being opened has an element in it
        xml->closed = xml->leaf = false;
        buf_clear(&xml->text);
    }
    for (;;) {
        if (!take_text(xml)) {
            return bad(xml, "a reference that is not known, or too much text");
        }
        if (xml->rest.len == 0) {
            return xml->depth == 0 && xml->rooted ? S3_XML_END : bad(xml, "it ends too early");
        }
        xml->rest = str_slice(xml->rest, 1, xml->rest.len); // '<'
        S3XmlEvent event = take_tag(xml);
        if (event != S3_XML_END) {
            return event;
        }
    }
}
