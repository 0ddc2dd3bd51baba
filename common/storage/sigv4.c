// SPDX-License-Identifier: Apache-2.0
#include "common/storage/sigv4.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/arena.h"

enum { TEXT_MAX = 64 * 1024, DAY_LEN = 8, HEX_SIZE = 2 * SHA256_LEN + 1 };

const SigV4Words sigv4_aws = {
    .algorithm = "AWS4-HMAC-SHA256", .key = "AWS4", .end = "aws4_request", .prefix = "x-amz-"};
const SigV4Words sigv4_goog = {
    .algorithm = "GOOG4-HMAC-SHA256", .key = "GOOG4", .end = "goog4_request", .prefix = "x-goog-"};

void sigv4_stamp(int64_t at_us, char out[SIGV4_STAMP_SIZE])
{
    time_t seconds = (time_t)(at_us / 1000000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(out, SIGV4_STAMP_SIZE, "%Y%m%dT%H%M%SZ", &parts);
}

void sigv4_encode(Str text, bool keep_slash, Buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool plain = ascii_is_alnum(c) || c == '-' || c == '_' || c == '.' || c == '~';
        if (plain || (keep_slash && c == '/')) {
            buf_char(out, c);
        } else {
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
        }
    }
}

// ---- query ----

// "name=value" of each pair, encoded; sorted by name, then by value.
typedef struct Encoded {
    Buf name, value;
} Encoded;

static int compare_encoded(const void *a, const void *b)
{
    const Encoded *one = a, *other = b;
    int order = str_cmp(buf_view(&one->name), buf_view(&other->name));
    return order != 0 ? order : str_cmp(buf_view(&one->value), buf_view(&other->value));
}

void sigv4_query(const SigV4Request *request, Buf *out)
{
    Encoded pairs[SIGV4_QUERY_MAX];
    assert(request->query_count <= SIGV4_QUERY_MAX);
    for (size_t i = 0; i < request->query_count; i++) {
        buf_init(&pairs[i].name, TEXT_MAX);
        buf_init(&pairs[i].value, TEXT_MAX);
        sigv4_encode(request->query[i].name, false, &pairs[i].name);
        sigv4_encode(request->query[i].value, false, &pairs[i].value);
    }
    qsort(pairs, request->query_count, sizeof *pairs, compare_encoded);
    for (size_t i = 0; i < request->query_count; i++) {
        buf_cstr(out, i > 0 ? "&" : "");
        buf_str(out, buf_view(&pairs[i].name));
        buf_char(out, '=');
        buf_str(out, buf_view(&pairs[i].value));
        buf_done(&pairs[i].name);
        buf_done(&pairs[i].value);
    }
}

// ---- headers ----

// In the order of their names; those of one name stay in theirs.
static void sort_headers(const SigV4Request *request, const SigV4Pair **out)
{
    assert(request->header_count <= SIGV4_HEADERS_MAX);
    for (size_t i = 0; i < request->header_count; i++) {
        size_t at = i;
        while (at > 0 && str_cmp(request->headers[i].name, out[at - 1]->name) < 0) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = &request->headers[i];
    }
}

static bool same_name(const SigV4Pair *const *sorted, size_t i)
{
    return i > 0 && str_eq(sorted[i]->name, sorted[i - 1]->name);
}

// Trimmed, and each run of blanks inside is one.
static void put_value(Str value, Buf *out)
{
    value = str_trim(value);
    for (size_t i = 0; i < value.len; i++) {
        bool blank = value.ptr[i] == ' ' || value.ptr[i] == '\t';
        if (!blank) {
            buf_char(out, value.ptr[i]);
        } else if (value.ptr[i - 1] != ' ' && value.ptr[i - 1] != '\t') {
            buf_char(out, ' ');
        }
    }
}

static void put_header_lines(const SigV4Request *request, Buf *out)
{
    const SigV4Pair *sorted[SIGV4_HEADERS_MAX];
    sort_headers(request, sorted);
    for (size_t i = 0; i < request->header_count; i++) {
        if (same_name(sorted, i)) {
            buf_char(out, ',');
        } else {
            buf_cstr(out, i > 0 ? "\n" : "");
            buf_str(out, sorted[i]->name);
            buf_char(out, ':');
        }
        put_value(sorted[i]->value, out);
    }
    buf_char(out, '\n');
}

static void put_header_names(const SigV4Request *request, Buf *out)
{
    const SigV4Pair *sorted[SIGV4_HEADERS_MAX];
    sort_headers(request, sorted);
    for (size_t i = 0; i < request->header_count; i++) {
        if (!same_name(sorted, i)) {
            buf_cstr(out, i > 0 ? ";" : "");
            buf_str(out, sorted[i]->name);
        }
    }
}

// ---- signature ----

void sigv4_canonical(const SigV4Request *request, Buf *out)
{
    buf_str(out, request->method);
    buf_char(out, '\n');
    sigv4_encode(request->path, true, out);
    buf_char(out, '\n');
    sigv4_query(request, out);
    buf_char(out, '\n');
    put_header_lines(request, out);
    buf_char(out, '\n');
    put_header_names(request, out);
    buf_char(out, '\n');
    buf_str(out, request->payload);
}

static void put_scope(const SigV4Key *key, const char *stamp, Buf *out)
{
    buf_append(out, stamp, DAY_LEN);
    buf_printf(
        out, "/" STR_FMT "/" STR_FMT "/%s", STR_ARG(key->region), STR_ARG(key->service),
        key->words->end);
}

static void put_string_to_sign(
    const SigV4Key *key, const SigV4Request *request, const char *stamp, Buf *out)
{
    Buf canonical;
    buf_init(&canonical, TEXT_MAX);
    sigv4_canonical(request, &canonical);
    uint8_t digest[SHA256_LEN];
    char hex[HEX_SIZE];
    sha256(buf_view(&canonical), digest);
    hex_encode(digest, sizeof digest, hex);
    buf_done(&canonical);
    buf_printf(out, "%s\n%s\n", key->words->algorithm, stamp);
    put_scope(key, stamp, out);
    buf_printf(out, "\n%s", hex);
}

static void sign_day(const SigV4Key *key, const char *stamp, uint8_t out[SHA256_LEN])
{
    Buf secret;
    buf_init(&secret, TEXT_MAX);
    buf_cstr(&secret, key->words->key);
    buf_str(&secret, key->secret);
    const Str parts[] = {
        str_of(stamp, DAY_LEN), key->region, key->service, str_from(key->words->end)};
    Str by = buf_view(&secret);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint8_t made[SHA256_LEN];
        hmac_sha256(by, parts[i], made);
        memcpy(out, made, SHA256_LEN);
        by = str_of(out, SHA256_LEN);
    }
    buf_done(&secret);
}

void sigv4_authorization(const SigV4Key *key, const SigV4Request *request, Buf *out)
{
    char stamp[SIGV4_STAMP_SIZE], hex[HEX_SIZE];
    uint8_t by[SHA256_LEN], signature[SHA256_LEN];
    Buf text;
    sigv4_stamp(request->at_us, stamp);
    buf_init(&text, TEXT_MAX);
    put_string_to_sign(key, request, stamp, &text);
    sign_day(key, stamp, by);
    hmac_sha256(str_of(by, sizeof by), buf_view(&text), signature);
    hex_encode(signature, sizeof signature, hex);
    buf_done(&text);
    buf_printf(out, "%s Credential=" STR_FMT "/", key->words->algorithm, STR_ARG(key->id));
    put_scope(key, stamp, out);
    buf_cstr(out, ", SignedHeaders=");
    put_header_names(request, out);
    buf_printf(out, ", Signature=%s", hex);
}
