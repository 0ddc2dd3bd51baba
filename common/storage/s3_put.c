// SPDX-License-Identifier: Apache-2.0
// The steps of a PUT: a look before it where the server knows no condition that says it, and a
// comparison after it when one's own answer may have been lost.
#include <string.h>

#include "common/base/clock.h"
#include "common/storage/s3_internal.h"

static bool same_etag(const S3Call *call)
{
    Str wanted = str_from(call->put->etag);
    if (wanted.len >= 2 && wanted.ptr[0] == '"') {
        wanted = str_slice(wanted, 1, wanted.len - 1);
    }
    return str_eq(wanted, str_from(call->info.etag));
}

// The server has no condition that says it, so it is looked at first. Between the two another may
// write: with condition=none only content-addressed keys are safe.
static void put_checked(S3Call *call, bool there)
{
    bool holds = call->put->condition == STORAGE_IF_ABSENT ? !there : there && same_etag(call);
    if (holds) {
        s3_call_step(call, S3_ACT);
    } else {
        s3_call_end(call, STORAGE_PRECONDITION, NULL, NULL);
    }
}

// It is there, or was replaced: by this very call, when an answer of it was lost.
void s3_put_refused(S3Call *call)
{
    if (call->maybe_stored) {
        s3_call_step(call, S3_COMPARE_HEAD);
    } else {
        s3_call_end(call, STORAGE_PRECONDITION, NULL, NULL);
    }
}

static void put_stored(S3Call *call)
{
    call->info.bytes = call->put->len;
    call->info.modified_us = clock_now_us() + call->s3->skew_us;
    if (call->put->installation != NULL) {
        (void)str_to_c(
            str_from(call->put->installation), call->info.installation,
            sizeof call->info.installation);
    }
    s3_call_done(call);
}

static void compare_begin(S3Call *call)
{
    if (call->info.bytes != call->put->len) {
        s3_call_end(call, STORAGE_PRECONDITION, NULL, NULL);
        return;
    }
    s3_call_step(call, S3_COMPARE_GET);
}

static void compare_end(S3Call *call)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    bool same = EVP_DigestFinal_ex(call->digest, digest, NULL) == 1 &&
                memcmp(digest, call->put->sha256, SHA256_LEN) == 0;
    s3_call_end(call, same ? STORAGE_DONE : STORAGE_PRECONDITION, same ? &call->info : NULL, NULL);
}

void s3_put_fine(S3Call *call)
{
    switch (call->step) {
    case S3_ACT:
        put_stored(call);
        break;
    case S3_CHECK:
        put_checked(call, true);
        break;
    case S3_COMPARE_HEAD:
        compare_begin(call);
        break;
    case S3_COMPARE_GET:
        compare_end(call);
        break;
    }
}

void s3_put_nothing(S3Call *call)
{
    switch (call->step) {
    case S3_ACT: // IF_ETAG of what is not there
        s3_call_end(call, STORAGE_PRECONDITION, NULL, NULL);
        break;
    case S3_CHECK:
        put_checked(call, false);
        break;
    case S3_COMPARE_HEAD:
    case S3_COMPARE_GET: // deleted meanwhile
        s3_call_step(call, S3_ACT);
        break;
    }
}
