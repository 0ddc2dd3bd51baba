// SPDX-License-Identifier: Apache-2.0
// A bucket behind storage.h: the five verbs, opening and closing. What happens to a call is in
// s3_call.c.
#include <assert.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/storage/s3_internal.h"

// ---- the kind ----

static void s3_put(void *kind, const StoragePut *put, StorageDone on_done, void *ctx)
{
    S3 *s3 = kind;
    S3Call *call = s3_call_begin(s3, S3_PUT, put->key, on_done, ctx);
    call->put = put;
    bool by_number = s3->url.condition == S3_BY_GENERATION && put->condition == STORAGE_IF_ETAG;
    bool by_none = s3->url.condition == S3_NO_CONDITION && put->condition != STORAGE_ALWAYS;
    call->step = by_number || by_none ? S3_CHECK : S3_ACT;
    s3_call_attempt(call);
}

static void s3_get(
    void *kind, Str key, uint64_t offset, uint64_t len, StoragePiece on_piece, StorageDone on_done,
    void *ctx)
{
    S3Call *call = s3_call_begin(kind, S3_GET, key, on_done, ctx);
    call->offset = offset;
    call->len = len;
    call->on_piece = on_piece;
    s3_call_attempt(call);
}

static void s3_head(void *kind, Str key, StorageDone on_done, void *ctx)
{
    s3_call_attempt(s3_call_begin(kind, S3_HEAD, key, on_done, ctx));
}

static void s3_list(void *kind, Str prefix, StorageEntry on_entry, StorageDone on_done, void *ctx)
{
    S3Call *call = s3_call_begin(kind, S3_LIST, prefix, on_done, ctx);
    call->on_entry = on_entry;
    s3_call_attempt(call);
}

static void s3_delete(void *kind, Str key, const char *version, StorageDone on_done, void *ctx)
{
    S3Call *call = s3_call_begin(kind, S3_DELETE, key, on_done, ctx);
    call->version = version;
    s3_call_attempt(call);
}

// ---- life ----

static void *s3_open(uv_loop_t *loop, const StorageOptions *options, Error *err)
{
    S3Url url;
    if (!s3_url_parse(options->url, options->vendor, &url, err)) {
        return NULL;
    }
    if (str_from(options->key_id).len == 0 || str_from(options->secret).len == 0) {
        error_set(
            err, ERROR_CONFIG,
            "storage in a bucket needs STENTOR_STORAGE_KEY_ID and STENTOR_STORAGE_SECRET");
        return NULL;
    }
    HttpClientOptions http = {.ca_file = url.ca_file[0] == '\0' ? NULL : url.ca_file};
    HttpClient *client = http_client_new(loop, &http, err);
    if (client == NULL) {
        return NULL;
    }
    S3 *s3 = xcalloc(1, sizeof *s3);
    s3->loop = loop;
    s3->http = client;
    s3->url = url;
    s3->key_id = xstrdup(options->key_id);
    s3->secret = xstrdup(options->secret);
    bool has_token = str_from(options->session_token).len > 0;
    s3->token = has_token ? xstrdup(options->session_token) : NULL;
    return s3;
}

static void on_http_freed(void *ctx)
{
    S3 *s3 = ctx;
    void (*on_closed)(void *ctx) = s3->on_closed;
    void *closed_ctx = s3->ctx;
    free(s3->key_id);
    free(s3->secret);
    free(s3->token);
    free(s3);
    on_closed(closed_ctx);
}

void s3_close_when_idle(S3 *s3)
{
    if (s3->closing && s3->calls == 0) {
        http_client_free(s3->http, on_http_freed, s3);
    }
}

static void s3_close(void *kind, void (*on_closed)(void *ctx), void *ctx)
{
    S3 *s3 = kind;
    s3->closing = true;
    s3->on_closed = on_closed;
    s3->ctx = ctx;
    for (S3Call *call = s3->open; call != NULL; call = call->older) {
        s3_call_cancel(call);
    }
    s3_close_when_idle(s3);
}

const StorageKind storage_s3 = {
    .scheme = "s3://",
    .open = s3_open,
    .put = s3_put,
    .get = s3_get,
    .head = s3_head,
    .list = s3_list,
    .delete = s3_delete,
    .close = s3_close,
};
