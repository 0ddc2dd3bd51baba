// SPDX-License-Identifier: Apache-2.0
// A page of a LIST becomes entries, in order, without the URL's prefix.
#include "common/storage/s3_internal.h"

typedef struct Listing {
    S3Call *call;
    bool in_order;
} Listing;

static void on_list_entry(void *ctx, const S3Entry *entry)
{
    Listing *listing = ctx;
    S3Call *call = listing->call;
    Str prefix = str_from(call->s3->url.prefix), last = buf_view(&call->last_key);
    if (!listing->in_order || (last.len > 0 && str_cmp(last, entry->key) >= 0)) {
        listing->in_order = false;
        return;
    }
    buf_clear(&call->last_key);
    buf_str(&call->last_key, entry->key);
    if (!str_starts(entry->key, prefix)) {
        return;
    }
    StorageInfo info = {.bytes = entry->bytes, .modified_us = entry->modified_us};
    (void)str_to_c(entry->etag, info.etag, sizeof info.etag);
    call->on_entry(call->ctx, str_slice(entry->key, prefix.len, entry->key.len), &info);
}

static void on_any_entry(void *ctx, const S3Entry *entry)
{
    (void)ctx;
    (void)entry;
}

void s3_list_fine(S3Call *call)
{
    S3Page page; // read twice, so that of a page that was cut nothing is shown
    Error err = {0};
    s3_page_init(&page);
    bool whole = s3_page_read(&page, buf_view(&call->body), on_any_entry, NULL, &err);
    s3_page_done(&page);
    if (!whole) {
        s3_call_again(call, &err);
        return;
    }
    Listing listing = {call, true};
    (void)s3_page_read(&call->page, buf_view(&call->body), on_list_entry, &listing, &err);
    if (!listing.in_order) {
        error_set(&err, ERROR_PERMANENT, "the server lists keys that do not ascend");
        s3_call_fail(call, &err);
    } else if (call->page.truncated) {
        call->failing_us = 0; // patience is for each page
        s3_call_attempt(call);
    } else {
        s3_call_done(call);
    }
}
