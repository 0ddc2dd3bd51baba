// SPDX-License-Identifier: Apache-2.0
// What an answer means. The words are those of docs.aws.amazon.com, "Error responses", and of Ceph
// and Google where they have their own.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/storage/s3_internal.h"

enum { SKEW_MIN_US = 5 * 60 * 1000000 };

typedef struct Word {
    const char *code;
    S3Meaning meaning;
    ErrorKind kind;
    const char *hint; // or what it means
} Word;

// clang-format off
static const Word words[] = {
    {"NoSuchKey",                    S3_NOTHING, ERROR_NONE,      ""},
    {"NoSuchVersion",                S3_NOTHING, ERROR_NONE,      ""},
    {"PreconditionFailed",           S3_FAILS,   ERROR_NONE,      ""},
    {"InvalidRange",                 S3_BEYOND,  ERROR_NONE,      ""},
    {"RequestTimeTooSkewed",         S3_SKEWED,  ERROR_CONFIG,    "set the clock of this machine or of the server"},
    {"ConditionalRequestConflict",   S3_AGAIN,   ERROR_TRANSIENT, ""},
    {"OperationAborted",             S3_AGAIN,   ERROR_TRANSIENT, ""},
    {"RequestTimeout",               S3_AGAIN,   ERROR_TRANSIENT, ""},
    {"QuotaExceeded",                S3_REFUSED, ERROR_TRANSIENT, "the bucket is full: raise its quota"},
    {"AccessDenied",                 S3_REFUSED, ERROR_CONFIG,    "the key lacks a right: deploy/PRODUCTION.md lists them"},
    {"AllAccessDisabled",            S3_REFUSED, ERROR_CONFIG,    "the account or the bucket is disabled"},
    {"InvalidAccessKeyId",           S3_REFUSED, ERROR_CONFIG,    "STENTOR_STORAGE_KEY_ID is not known there"},
    {"SignatureDoesNotMatch",        S3_REFUSED, ERROR_CONFIG,    "STENTOR_STORAGE_SECRET is not that key's"},
    {"InvalidToken",                 S3_REFUSED, ERROR_CONFIG,    "STENTOR_STORAGE_SESSION_TOKEN is not that key's"},
    {"ExpiredToken",                 S3_REFUSED, ERROR_CONFIG,    "STENTOR_STORAGE_SESSION_TOKEN has ended"},
    {"NoSuchBucket",                 S3_REFUSED, ERROR_CONFIG,    "make it, or correct STENTOR_STORAGE_URL"},
    {"AuthorizationHeaderMalformed", S3_REFUSED, ERROR_CONFIG,    "the URL's region is another than the bucket's"},
    {"PermanentRedirect",            S3_REFUSED, ERROR_CONFIG,    "the bucket is at another endpoint or in another region"},
    {"InvalidStorageClass",          S3_REFUSED, ERROR_CONFIG,    "the server knows no such storage class"},
    {"NotImplemented",               S3_REFUSED, ERROR_CONFIG,    "the server knows no conditions: condition=none in the URL"},
    {"XAmzContentSHA256Mismatch",    S3_REFUSED, ERROR_PERMANENT, "other bytes came than were announced"},
    {"BadDigest",                    S3_REFUSED, ERROR_PERMANENT, "other bytes came than were announced"},
    {"EntityTooLarge",               S3_REFUSED, ERROR_PERMANENT, ""},
};
// clang-format on

// Of an answer without a word that is known: a HEAD has none.
static Word by_status(int status)
{
    switch (status) {
    case 404:
        return (Word){"", S3_NOTHING, ERROR_NONE, ""};
    case 412:
        return (Word){"", S3_FAILS, ERROR_NONE, ""};
    case 416:
        return (Word){"", S3_BEYOND, ERROR_NONE, ""};
    case 401:
    case 403:
        return (Word){"", S3_REFUSED, ERROR_CONFIG, "key, secret or a right is missing"};
    case 408:
    case 409:
    case 429:
        return (Word){"", S3_AGAIN, ERROR_TRANSIENT, ""};
    case 501:
        return (Word){"", S3_REFUSED, ERROR_CONFIG, "no S3 server, or one without conditions"};
    case 507:
        return (Word){"", S3_REFUSED, ERROR_TRANSIENT, "the bucket is full"};
    default:
        break;
    }
    if (status >= 500) {
        return (Word){"", S3_AGAIN, ERROR_TRANSIENT, ""};
    }
    return status >= 400 ? (Word){"", S3_REFUSED, ERROR_PERMANENT, ""}
                         : (Word){"", S3_REFUSED, ERROR_CONFIG, "the endpoint answers as no S3"};
}

static Word word_of(const char *code, int status)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].code, code) == 0) {
            return words[i];
        }
    }
    return by_status(status);
}

static void describe(
    const S3Call *call, int status, const Word *word, const char *code, const char *text,
    Error *err)
{
    error_set(
        err, word->kind, "%s of '%s%s" STR_FMT "': %d%s%s%s%.100s%s%s%s", s3_method(call),
        call->s3->url.bucket, call->verb == S3_LIST ? "" : "/",
        STR_ARG(str_slice(call->key, 0, 60)), status, code[0] == '\0' ? "" : " ", code,
        word->hint[0] == '\0' && text[0] != '\0' ? ": " : "", word->hint[0] == '\0' ? text : "",
        word->hint[0] == '\0' ? "" : " (HINT: ", word->hint, word->hint[0] == '\0' ? "" : ")");
}

// The server's clock minus ours; 0: it does not say.
static int64_t skew(const HttpCall *http, int64_t now_us)
{
    int64_t at_us;
    return http_date_parse(http_call_header(http, "date"), &at_us) ? at_us - now_us : 0;
}

S3Verdict s3_judge(const S3Call *call, const HttpCall *http, int status, int64_t now_us)
{
    S3Verdict verdict = {.meaning = S3_FINE};
    if (status >= 200 && status < 300) {
        return verdict;
    }
    char code[S3_CODE_SIZE], text[S3_TEXT_SIZE];
    s3_error_read(buf_view(&call->body), code, text);
    Word word = word_of(code, status);
    verdict.meaning = word.meaning;
    verdict.maybe_stored = status >= 500 && status != 503;
    verdict.skew_us = skew(http, now_us);
    bool far = verdict.skew_us > SKEW_MIN_US || verdict.skew_us < -SKEW_MIN_US;
    if (status == 403 && code[0] == '\0' && far) { // a HEAD says no word
        verdict.meaning = S3_SKEWED;
        word.hint = "set the clock of this machine or of the server";
    }
    describe(call, status, &word, code, text, &verdict.err);
    return verdict;
}

// ---- headers ----

static void copy_header(Str value, char *out, size_t size)
{
    if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"') {
        value = str_slice(value, 1, value.len - 1);
    }
    (void)str_to_c(value, out, size); // a longer one is none
}

static bool parse_number(Str text, uint64_t *ret)
{
    int64_t value;
    if (!str_to_i64(text, &value) || value < 0) {
        return false;
    }
    *ret = (uint64_t)value;
    return true;
}

bool s3_content_range(Str text, uint64_t *ret_first, uint64_t *ret_total)
{
    Str range, first;
    if (!str_starts(text, STR("bytes "))) {
        return false;
    }
    text = str_slice(text, 6, text.len);
    if (!str_split(&text, '/', &range) || text.ptr == NULL || !str_split(&range, '-', &first)) {
        return false;
    }
    *ret_total = UINT64_MAX;
    return parse_number(first, ret_first) &&
           (str_eq(text, STR("*")) || parse_number(text, ret_total));
}

void s3_read_info(const S3 *s3, const HttpCall *http, int status, StorageInfo *ret)
{
    char name[64];
    bool goog = s3->url.words == &sigv4_goog;
    memset(ret, 0, sizeof *ret);
    uint64_t first;
    if (status == 206) {
        (void)s3_content_range(http_call_header(http, "content-range"), &first, &ret->bytes);
    } else {
        (void)parse_number(http_call_header(http, "content-length"), &ret->bytes);
    }
    (void)http_date_parse(http_call_header(http, "last-modified"), &ret->modified_us);
    copy_header(http_call_header(http, "etag"), ret->etag, sizeof ret->etag);
    snprintf(name, sizeof name, "%s%s", s3->url.words->prefix, goog ? "generation" : "version-id");
    copy_header(http_call_header(http, name), ret->version, sizeof ret->version);
    snprintf(name, sizeof name, "%smeta-installation", s3->url.words->prefix);
    copy_header(http_call_header(http, name), ret->installation, sizeof ret->installation);
}
