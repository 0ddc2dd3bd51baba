// SPDX-License-Identifier: Apache-2.0
// The two documents of S3 that are read: a page of LIST v2 and an error. Pure.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

enum { S3_CODE_SIZE = 64, S3_TEXT_SIZE = 160, S3_PAGE_MAX = 8 * 1024 * 1024 };

typedef struct S3Entry {
    Str key;
    Str etag; // without quotes
    uint64_t bytes;
    int64_t modified_us; // 0: not said
} S3Entry;

typedef struct S3Page {
    bool truncated;
    Buf token; // of the next page; empty when there is none
} S3Page;

// The entry is valid until it returns.
typedef void (*S3OnEntry)(void *ctx, const S3Entry *entry);

void s3_page_init(S3Page *page);
void s3_page_done(S3Page *page);
// ListBucketResult. TRANSIENT when it is none or ends early; entries before the fault were shown.
bool s3_page_read(S3Page *page, Str document, S3OnEntry on_entry, void *ctx, Error *err);
// Code and Message of an Error document, cut to their room; "" when it is none.
void s3_error_read(Str document, char ret_code[S3_CODE_SIZE], char ret_text[S3_TEXT_SIZE]);
