// SPDX-License-Identifier: Apache-2.0
// What the files of S3 share: s3_request.c says what is asked, s3_answer.c what an answer means,
// s3_call.c what happens next.
#pragma once

#include <openssl/evp.h>

#include "common/http/client/http_client.h"
#include "common/storage/internal.h"
#include "common/storage/s3_documents.h"
#include "common/storage/s3_url.h"

typedef struct S3Call S3Call;

typedef struct S3 {
    uv_loop_t *loop;
    HttpClient *http;
    S3Url url;
    char *key_id, *secret, *token; // token NULL: none
    int64_t skew_us;               // the server's clock minus ours, once it complained
    S3Call *open;
    unsigned calls; // open ones, and those whose timer is not closed yet
    bool closing;
    void (*on_closed)(void *ctx);
    void *ctx;
} S3;

typedef enum S3Verb { S3_PUT, S3_GET, S3_HEAD, S3_LIST, S3_DELETE } S3Verb;

// Of a PUT; every other verb has the first one only.
typedef enum S3Step {
    S3_ACT,
    S3_CHECK,        // a HEAD before the PUT: the server knows no condition that says it
    S3_COMPARE_HEAD, // 412 after an answer was lost: is it ours that is there?
    S3_COMPARE_GET,
} S3Step;

struct S3Call {
    S3 *s3;
    S3Call *newer, *older;
    S3Verb verb;
    S3Step step;
    Str key; // or the prefix of a LIST; relative to the URL
    const StoragePut *put;
    uint64_t offset, len, delivered;
    const char *version;
    StoragePiece on_piece;
    StorageEntry on_entry;
    StorageDone on_done;
    void *ctx;
    uv_timer_t timer; // until the next attempt
    HttpCall *http;
    unsigned attempts;
    int64_t failing_us; // monotonic: since when nothing comes of it; 0: it does
    uint64_t failed_at; // `delivered` at the last failure
    bool maybe_stored;  // a PUT without an answer may have done it
    bool skew_tried, cancelled;
    bool range_seen, range_wrong, replaced; // of this attempt's answer
    Buf body;                               // of an error, or a page
    S3Page page;
    Buf last_key; // of the LIST, so that it ascends
    StorageInfo info;
    EVP_MD_CTX *digest; // of what S3_COMPARE_GET reads
};

// ---- s3_request.c ----

const char *s3_method(const S3Call *call); // of this step
// Signs and sends this step's request.
HttpCall *s3_send(S3Call *call, HttpPiece on_piece, HttpDone on_done);

// ---- s3_answer.c ----

typedef enum S3Meaning {
    S3_FINE,    // 2xx
    S3_NOTHING, // no such object
    S3_FAILS,   // a condition does not hold
    S3_BEYOND,  // a range beyond the end
    S3_AGAIN,   // later; err says why
    S3_SKEWED,  // the clocks differ; ret_skew_us
    S3_REFUSED, // err says why, with its kind
} S3Meaning;

typedef struct S3Verdict {
    S3Meaning meaning;
    Error err;
    int64_t skew_us;
    bool maybe_stored; // the answer does not say whether it was done
} S3Verdict;

// now_us: our wall clock. body: of an error, as far as it was kept.
S3Verdict s3_judge(const S3Call *call, const HttpCall *http, int status, int64_t now_us);
// Size, time, ETag, version and owner as the headers have them.
void s3_read_info(const S3 *s3, const HttpCall *http, int status, StorageInfo *ret);
// "bytes 10-19/100"; the total is UINT64_MAX when it is "*".
bool s3_content_range(Str text, uint64_t *ret_first, uint64_t *ret_total);

// ---- s3_call.c ----

// The verb's own fields are the caller's to fill, then s3_call_attempt.
S3Call *s3_call_begin(S3 *s3, S3Verb verb, Str key, StorageDone on_done, void *ctx);
void s3_call_attempt(S3Call *call);
void s3_call_step(S3Call *call, S3Step step);
// Later, or the end when its patience is over.
void s3_call_again(S3Call *call, const Error *why);
// These say the end; the call is gone after them.
void s3_call_end(S3Call *call, StorageOutcome outcome, const StorageInfo *info, const Error *err);
void s3_call_fail(S3Call *call, const Error *err);
void s3_call_done(S3Call *call);
void s3_call_cancel(S3Call *call); // ends from the loop

// ---- s3_put.c, s3_list.c: what an answer makes of them ----

void s3_put_fine(S3Call *call);
void s3_put_nothing(S3Call *call); // no such object
void s3_put_refused(S3Call *call); // a condition does not hold
void s3_list_fine(S3Call *call);

// ---- storage_s3.c ----

void s3_close_when_idle(S3 *s3);
