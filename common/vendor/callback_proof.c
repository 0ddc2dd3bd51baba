// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/callback_proof.h"

#include <openssl/crypto.h>

#include "common/base/id.h"

enum { SECONDS_DIGITS_MAX = 12, HEADER_MAX = 1024 };

const char *const callback_basic_reads[] = {"Authorization", NULL};

Str callback_header(const CallbackRequest *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (str_eq_nocase(request->headers[i].name, str_from(name))) {
            return request->headers[i].value;
        }
    }
    return STR_EMPTY;
}

bool callback_equal(Str a, Str b)
{
    return a.len == b.len && CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0;
}

CallbackVerdict callback_age(const CallbackRequest *request, Str digits, int64_t repeats_s)
{
    int64_t at_s = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (!ascii_is_digit(digits.ptr[i])) {
            return CALLBACK_UNSIGNED;
        }
    }
    if (digits.len > SECONDS_DIGITS_MAX || !str_to_i64(digits, &at_s)) {
        return CALLBACK_UNSIGNED;
    }
    int64_t now_s = request->received_at_us / 1000000;
    int64_t past_s = request->max_age_s > repeats_s ? request->max_age_s : repeats_s;
    bool fresh = at_s >= now_s - past_s && at_s <= now_s + request->max_age_s;
    return request->max_age_s == 0 || fresh ? CALLBACK_GOOD : CALLBACK_STALE;
}

bool callback_text_key_check(Str secret, size_t min, const char *what, Error *err)
{
    bool good = secret.len >= min && secret.len <= CALLBACK_SECRET_MAX && !str_has_control(secret);
    return good || error_set(err, ERROR_PERMANENT, "%s", what);
}

Str callback_hex_none(size_t bytes, Arena *arena)
{
    uint8_t *random = arena_alloc(arena, bytes);
    char *text = arena_alloc(arena, 2 * bytes + 1);
    random_bytes(random, bytes);
    hex_encode(random, bytes, text);
    return str_from(text);
}

// ---- Authorization ----

bool callback_basic_key_check(Str secret, Error *err)
{
    bool good = secret.len >= 16 && secret.len <= CALLBACK_SECRET_MAX && !str_has_control(secret);
    return good || error_set(
                       err, ERROR_PERMANENT,
                       "a key is user:password or a token, of 16 to %d characters in all",
                       CALLBACK_SECRET_MAX);
}

Str callback_basic_none(Arena *arena)
{
    uint8_t bytes[24];
    char *text = arena_alloc(arena, 64);
    random_bytes(bytes, sizeof bytes);
    text[0] = 'n';
    text[1] = ':';
    base64url_encode(bytes, sizeof bytes, text + 2);
    return str_from(text);
}

static bool after_word(Str header, Str word, Str *ret)
{
    if (header.len <= word.len || !str_eq_nocase(str_slice(header, 0, word.len), word)) {
        return false;
    }
    *ret = str_trim(str_slice(header, word.len, header.len));
    return true;
}

bool callback_basic_verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    Str header = callback_header(request, "Authorization");
    Str given = STR_EMPTY;
    uint8_t decoded[HEADER_MAX];
    size_t len = 0;
    bool basic = after_word(header, STR("Basic "), &given) &&
                 base64_decode(given, decoded, sizeof decoded, &len);
    bool bearer = !basic && after_word(header, STR("Bearer "), &given);
    *ret = basic || bearer ? CALLBACK_BAD : CALLBACK_UNSIGNED;
    given = basic ? str_of(decoded, len) : given;
    for (size_t i = 0; i < key_count; i++) {
        bool pair = str_find(keys[i].secret, ':') >= 0;
        if (callback_equal(given, keys[i].secret) && (basic || bearer) && pair == basic) {
            *ret = CALLBACK_GOOD;
            *ret_key = i;
        }
    }
    return *ret == CALLBACK_GOOD;
}
