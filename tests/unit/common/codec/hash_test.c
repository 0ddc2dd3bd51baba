// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>

#include <string.h>

#include "common/codec/hash.h"

static void assert_hex(const uint8_t *bytes, size_t length, const char *expected)
{
    char text[2 * SHA256_LEN + 1];
    hex_encode(bytes, length, text);
    assert_string_equal(text, expected);
}

// FIPS 180-2, appendix B.
static void sha256_meets_its_vectors(void **state)
{
    (void)state;
    uint8_t out[SHA256_LEN];
    for (int i = 0; i < 2; i++) {
        sha256(STR_EMPTY, out);
        assert_hex(
            out, sizeof out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        sha256(STR("abc"), out);
        assert_hex(
            out, sizeof out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}

// RFC 4231, test cases 1, 2 and 6; twice and mixed, because the last key's state is kept.
static void hmac_meets_its_vectors_whatever_key_came_before(void **state)
{
    (void)state;
    uint8_t out[SHA256_LEN];
    char first[20];
    char long_key[131];
    memset(first, 0x0b, sizeof first);
    memset(long_key, 0xaa, sizeof long_key);
    for (int i = 0; i < 3; i++) {
        for (int repeat = 0; repeat < 2; repeat++) {
            hmac_sha256(str_of(first, sizeof first), STR("Hi There"), out);
            assert_hex(
                out, sizeof out,
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        }
        hmac_sha256(STR("Jefe"), STR("what do ya want for nothing?"), out);
        assert_hex(
            out, sizeof out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        for (int repeat = 0; repeat < 2; repeat++) {
            hmac_sha256(
                str_of(long_key, sizeof long_key),
                STR("Test Using Larger Than Block-Size Key - Hash Key First"), out);
            assert_hex(
                out, sizeof out,
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
        }
    }
}

// Frozen: if this changes, every repeat in flight becomes a double.
// printf '\0\0\0\0\0\0\0\006status\0\0\0\0\0\0\0\007ntf_abc\0\0\0\0\0\0\0\006sent/1' | sha256sum
static void an_event_id_is_frozen(void **state)
{
    (void)state;
    char id[EVENT_ID_SIZE];
    event_id_derive("status", STR("ntf_abc"), STR("sent/1"), id);
    assert_int_equal(strlen(id), EVENT_ID_LEN);
    assert_string_equal(id, "BYUrVWUtflF7u2rDJnanPw");
}

static void a_notification_id_is_derived_from_identity_and_time(void **state)
{
    (void)state;
    char id[ID_SIZE], again[ID_SIZE];
    int64_t ms = 0;
    notify_id_derive(STR("acme"), STR("row-1"), INT64_C(1700000000123456), '0', id);
    notify_id_derive(STR("acme"), STR("row-1"), INT64_C(1700000000123999), '0', again);
    assert_string_equal(id, again); // to the millisecond
    assert_true(id_parse(str_from(id), "ntf_", &ms));
    assert_int_equal(ms, INT64_C(1700000000123));
    notify_id_derive(STR("acme2"), STR("row-1"), INT64_C(1700000000123456), '0', again);
    assert_string_not_equal(id, again);
    notify_id_derive(STR("acme"), STR("row-2"), INT64_C(1700000000123456), '0', again);
    assert_string_not_equal(id, again);
}

static void event_ids_tell_their_parts_apart(void **state)
{
    (void)state;
    static const char *const rows[][3] = {{"a", "b", "c"}, {"a", "bc", ""}, {"ab", "", "c"},
                                          {"abc", "", ""}, {"", "abc", ""}, {"a", "c", "b"},
                                          {"", "", "abc"}, {"", "", ""}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    char ids[ROWS][EVENT_ID_SIZE];
    for (size_t i = 0; i < ROWS; i++) {
        event_id_derive(rows[i][0], str_from(rows[i][1]), str_from(rows[i][2]), ids[i]);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(ids[i], ids[k]);
        }
    }
}

// RFC 2202, 3, test case 2.
static void hmac_sha1_meets_its_vector(void **state)
{
    (void)state;
    uint8_t out[SHA1_LEN];
    char hex[2 * SHA1_LEN + 1];
    hmac_sha1(STR("Jefe"), STR("what do ya want for nothing?"), out);
    hex_encode(out, sizeof out, hex);
    assert_string_equal(hex, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
}

static void an_address_hash_is_the_hmac_of_its_text(void **state)
{
    (void)state;
    uint8_t hash[ADDRESS_HASH_LEN];
    uint8_t expected[SHA256_LEN];
    address_hash(STR("hash key"), STR("acme"), CHANNEL_EMAIL, STR("Alice@Example.COM"), hash);
    hmac_sha256(STR("hash key"), STR("acme|email|alice@example.com"), expected);
    assert_memory_equal(hash, expected, sizeof hash);
    address_hash(STR("hash key"), STR("acme"), CHANNEL_PUSH, STR("ToKeN"), hash);
    hmac_sha256(STR("hash key"), STR("acme|push|ToKeN"), expected);
    assert_memory_equal(hash, expected, sizeof hash);
}

static void a_long_address_is_hashed_whole(void **state)
{
    (void)state;
    char upper[700];
    char whole[11 + sizeof upper];
    memcpy(whole, "acme|email|", 11);
    memset(upper, 'A', sizeof upper);
    memset(whole + 11, 'a', sizeof upper);
    uint8_t hash[ADDRESS_HASH_LEN];
    uint8_t expected[SHA256_LEN];
    address_hash(STR("k"), STR("acme"), CHANNEL_EMAIL, str_of(upper, sizeof upper), hash);
    hmac_sha256(STR("k"), str_of(whole, sizeof whole), expected);
    assert_memory_equal(hash, expected, sizeof hash);
}

static void a_key_subject_is_the_front_of_its_hmac(void **state)
{
    (void)state;
    uint8_t subject[KEY_SUBJECT_LEN];
    uint8_t expected[SHA256_LEN];
    key_subject(STR("hash key"), DATA_KEY_ORDINARY, STR("acme"), STR("rcp_1"), subject);
    hmac_sha256(STR("hash key"), STR("key|acme|rcp_1"), expected);
    assert_memory_equal(subject, expected, sizeof subject);
    key_subject(STR("hash key"), DATA_KEY_RECORD, STR("acme"), STR("rcp_1"), subject);
    hmac_sha256(STR("hash key"), STR("key|acme|rcp_1|record"), expected);
    assert_memory_equal(subject, expected, sizeof subject);
}

// ---- threads ----

static void hash_both(const char *key, uint8_t out[2 * SHA256_LEN])
{
    hmac_sha256(str_from(key), STR("ada@example.com"), out);
    sha256(str_from(key), out + SHA256_LEN);
}

// ctx: the key; NULL when all hashes were the first one.
static void *hash_often(void *ctx)
{
    uint8_t first[2 * SHA256_LEN];
    uint8_t again[2 * SHA256_LEN];
    bool same = true;
    hash_both(ctx, first);
    for (int i = 0; i < 20000; i++) {
        hash_both(ctx, again);
        same = same && memcmp(first, again, sizeof first) == 0;
    }
    hash_both("between", again);
    hash_both(ctx, again);
    return same && memcmp(first, again, sizeof first) == 0 ? NULL : ctx;
}

static void threads_hash_beside_each_other(void **state)
{
    (void)state;
    char key[] = "one key";
    char other[] = "another key";
    void *wrong = other;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hash_often, other), 0);
    assert_null(hash_often(key));
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_meets_its_vectors),
        cmocka_unit_test(hmac_meets_its_vectors_whatever_key_came_before),
        cmocka_unit_test(an_event_id_is_frozen),
        cmocka_unit_test(a_notification_id_is_derived_from_identity_and_time),
        cmocka_unit_test(event_ids_tell_their_parts_apart),
        cmocka_unit_test(hmac_sha1_meets_its_vector),
        cmocka_unit_test(an_address_hash_is_the_hmac_of_its_text),
        cmocka_unit_test(a_long_address_is_hashed_whole),
        cmocka_unit_test(a_key_subject_is_the_front_of_its_hmac),
        cmocka_unit_test(threads_hash_beside_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
