// SPDX-License-Identifier: Apache-2.0
#include "common/storage/s3_documents.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/storage/s3_xml.h"

enum { KEY_MAX = 4096, ETAG_MAX = 1024, TOKEN_MAX = 8192 };

// ---- a page of a LIST ----

typedef struct PageReader {
    S3Page *page;
    S3OnEntry on_entry;
    void *ctx;
    Buf key, etag;
    int64_t bytes; // -1: not said
    int64_t modified_us;
} PageReader;

void s3_page_init(S3Page *page)
{
    page->truncated = false;
    buf_init(&page->token, TOKEN_MAX);
}

void s3_page_done(S3Page *page)
{
    buf_done(&page->token);
}

static void begin_entry(PageReader *reader)
{
    buf_clear(&reader->key);
    buf_clear(&reader->etag);
    reader->bytes = -1;
    reader->modified_us = 0;
}

static bool is(Str name, const char *wanted)
{
    return str_eq(name, str_from(wanted));
}

static Str without_quotes(Str text)
{
    bool quoted = text.len >= 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"';
    return quoted ? str_slice(text, 1, text.len - 1) : text;
}

static bool read_field(PageReader *reader, Str name, Str text)
{
    if (is(name, "Key")) {
        return buf_str(&reader->key, text);
    }
    if (is(name, "ETag")) {
        return buf_str(&reader->etag, without_quotes(text));
    }
    if (is(name, "Size")) {
        return str_to_i64(text, &reader->bytes) && reader->bytes >= 0;
    }
    return !is(name, "LastModified") || clock_parse(text, &reader->modified_us);
}

static bool end_entry(PageReader *reader)
{
    if (reader->key.len == 0 || reader->bytes < 0) {
        return false;
    }
    S3Entry entry = {
        .key = buf_view(&reader->key),
        .etag = buf_view(&reader->etag),
        .bytes = (uint64_t)reader->bytes,
        .modified_us = reader->modified_us};
    reader->on_entry(reader->ctx, &entry);
    return true;
}

static bool read_close(PageReader *reader, const S3Xml *xml)
{
    bool in_entry = xml->depth == 2 && is(xml->open[1], "Contents");
    if (in_entry) {
        return read_field(reader, xml->name, s3_xml_text(xml));
    }
    if (xml->depth != 1) {
        return true;
    }
    if (is(xml->name, "Contents")) {
        return end_entry(reader);
    }
    if (is(xml->name, "IsTruncated")) {
        reader->page->truncated = is(s3_xml_text(xml), "true");
    } else if (is(xml->name, "NextContinuationToken")) {
        buf_clear(&reader->page->token);
        return buf_str(&reader->page->token, s3_xml_text(xml));
    }
    return true;
}

// NULL: it was read to its end; else what is wrong.
static const char *read_page(PageReader *reader, S3Xml *xml)
{
    for (;;) {
        switch (s3_xml_next(xml)) {
        case S3_XML_OPEN:
            if (xml->depth == 1 && !is(xml->name, "ListBucketResult")) {
                return "it is no ListBucketResult";
            }
            if (xml->depth == 2) {
                begin_entry(reader);
            }
            break;
        case S3_XML_CLOSE:
            if (!read_close(reader, xml)) {
                return "a value cannot be";
            }
            break;
        case S3_XML_END:
            return reader->page->truncated && reader->page->token.len == 0
                       ? "it goes on without a token"
                       : NULL;
        case S3_XML_BAD:
            return xml->why;
        }
    }
}

bool s3_page_read(S3Page *page, Str document, S3OnEntry on_entry, void *ctx, Error *err)
{
    PageReader reader = {.page = page, .on_entry = on_entry, .ctx = ctx};
    buf_init(&reader.key, KEY_MAX);
    buf_init(&reader.etag, ETAG_MAX);
    page->truncated = false;
    buf_clear(&page->token);
    S3Xml xml;
    s3_xml_init(&xml, document);
    const char *why = read_page(&reader, &xml);
    s3_xml_done(&xml);
    buf_done(&reader.key);
    buf_done(&reader.etag);
    return why == NULL || error_set(err, ERROR_TRANSIENT, "the list cannot be read: %s", why);
}

// ---- an error ----

// A message is foreign text that goes into a log: no control characters.
static void copy_cut(Str text, char *out, size_t size)
{
    size_t len = text.len < size - 1 ? text.len : size - 1;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        out[i] = c < 0x20 || c >= 0x7f ? '?' : text.ptr[i];
    }
    out[len] = '\0';
}

void s3_error_read(Str document, char ret_code[S3_CODE_SIZE], char ret_text[S3_TEXT_SIZE])
{
    S3Xml xml;
    S3XmlEvent event;
    ret_code[0] = ret_text[0] = '\0';
    s3_xml_init(&xml, document);
    while ((event = s3_xml_next(&xml)) == S3_XML_OPEN || event == S3_XML_CLOSE) {
        if (event == S3_XML_OPEN || xml.depth != 1 || !is(xml.open[0], "Error")) {
            continue;
        }
        if (is(xml.name, "Code")) {
            copy_cut(s3_xml_text(&xml), ret_code, S3_CODE_SIZE);
        } else if (is(xml.name, "Message")) {
            copy_cut(s3_xml_text(&xml), ret_text, S3_TEXT_SIZE);
        }
    }
    s3_xml_done(&xml);
}
