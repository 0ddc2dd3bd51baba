// SPDX-License-Identifier: Apache-2.0
// links: stentor_storage
// Any bytes as a page of a LIST, as an error and as a Content-Range: refused, or read to the end;
// what is shown of them is within bounds.
#include <stdlib.h>
#include <string.h>

#include "common/storage/s3_internal.h"
#include "common/storage/s3_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void on_entry(void *ctx, const S3Entry *entry)
{
    ++*(size_t *)ctx;
    require(entry->key.len > 0 && entry->bytes <= INT64_MAX);
}

static void walk(Str document)
{
    S3Xml xml;
    S3XmlEvent event;
    size_t opened = 0, closed = 0;
    s3_xml_init(&xml, document);
    while ((event = s3_xml_next(&xml)) == S3_XML_OPEN || event == S3_XML_CLOSE) {
        opened += event == S3_XML_OPEN;
        closed += event == S3_XML_CLOSE;
        require(xml.depth <= S3_XML_DEPTH_MAX && opened - closed == xml.depth);
        require(xml.name.len > 0 && s3_xml_text(&xml).len <= S3_XML_TEXT_MAX);
    }
    require(event == S3_XML_END ? opened == closed && opened > 0 : xml.why != NULL);
    s3_xml_done(&xml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size == 0 ? 1 : size); // of its own, so that a read beyond the end is seen
    memcpy(bytes, data, size);
    Str document = str_of(bytes, size);
    size_t entries = 0;
    S3Page page;
    Error err = {0};
    char code[S3_CODE_SIZE], text[S3_TEXT_SIZE];
    walk(document);
    s3_page_init(&page);
    bool read = s3_page_read(&page, document, on_entry, &entries, &err);
    require(read ? !page.truncated || page.token.len > 0 : err.kind == ERROR_TRANSIENT);
    s3_page_done(&page);
    s3_error_read(document, code, text);
    require(strlen(code) < sizeof code && strlen(text) < sizeof text);
    uint64_t first, total;
    if (s3_content_range(document, &first, &total)) {
        require(first <= INT64_MAX && (total <= INT64_MAX || total == UINT64_MAX));
    }
    free(bytes);
    return 0;
}
