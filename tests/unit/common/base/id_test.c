// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // syscall
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/id.h"

static void an_id_is_prefix_and_ulid_and_tells_its_time(void **state)
{
    (void)state;
    char id[ID_SIZE];
    int64_t ms = 0;
    id_new("ntf_", INT64_C(1795199136123456), id);
    assert_int_equal(strlen(id), 4 + ULID_LEN);
    assert_true(id_parse(str_from(id), "ntf_", &ms));
    assert_true(ms == INT64_C(1795199136123));
    assert_true(id_parse(str_from(id), "ntf_", NULL));
    assert_false(id_parse(str_from(id), "dat_", &ms));
}

// The example of the ULID specification has the time 1469918176385.
static void the_text_is_crockfords_base32(void **state)
{
    (void)state;
    char id[ID_SIZE];
    const uint8_t entropy[10] = {0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1};
    id_derived("", INT64_C(1469918176385000), entropy, id);
    assert_string_equal(id, "01ARYZ6S41ZZZZZZZZ00000001");
}

static void ids_of_one_millisecond_ascend(void **state)
{
    (void)state;
    char last[ID_SIZE] = "";
    char id[ID_SIZE];
    for (int i = 0; i < 5000; i++) {
        id_new("ntf_", INT64_C(1795199136123000) + i % 1000 / 100, id);
        assert_true(strcmp(id, last) > 0);
        memcpy(last, id, sizeof id);
    }
}

static void what_is_not_an_id_is_refused(void **state)
{
    (void)state;
    const char *bad[] = {
        "",
        "ntf_",
        "ntf_01ARYZ6S41ZZZZZZZZ0000000",
        "ntf_01ARYZ6S41ZZZZZZZZ000000011",
        "ntf_81ARYZ6S41ZZZZZZZZ00000001",
        "ntf_01ARYZ6S41ZZZZZZZZ0000000U",
        "ntf_01ARYZ6S41ZZZZZZZZ0000000I",
        "ntf_01aryz6s41zzzzzzzz00000001",
        "xtf_01ARYZ6S41ZZZZZZZZ00000001",
        "ntf_01ARYZ6S41ZZZZZZZZ0000000-"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(id_parse(str_from(bad[i]), "ntf_", NULL));
    }
    char with_nul[] = "ntf_01ARYZ6S41ZZZZZZZZ0000000";
    assert_false(id_parse(str_of(with_nul, sizeof with_nul), "ntf_", NULL));
}

static void tenants_and_keys_are_narrow(void **state)
{
    (void)state;
    assert_true(id_is_tenant(STR("acme-2_x")));
    assert_true(id_is_tenant(STR("12345678901234567890123456789012")));
    const char *bad[] = {
        "",
        "-a",
        "_a",
        "A",
        "a.b",
        "a b",
        "a*",
        "a>",
        "a|b",
        "\xc3\xa4",
        "123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(id_is_tenant(str_from(bad[i])));
    }
    assert_true(id_is_key(STR("-order_confirmed")));
    assert_false(id_is_key(STR_EMPTY));
    char long_key[66];
    memset(long_key, 'k', 65);
    assert_true(id_is_key(str_of(long_key, 64)));
    assert_false(id_is_key(str_of(long_key, 65)));
}

static void random_bytes_do_not_repeat(void **state)
{
    (void)state;
    enum { COUNT = 500, LEN = 12 };
    static uint8_t drawn[COUNT][LEN];
    for (size_t i = 0; i < COUNT; i++) {
        random_bytes(drawn[i], LEN);
        for (size_t k = 0; k < i; k++) {
            assert_memory_not_equal(drawn[i], drawn[k], LEN);
        }
    }
    uint8_t large[2000] = {0};
    random_bytes(large, sizeof large);
    assert_memory_not_equal(large, large + 1000, 1000);
}

// A clone without the C library's knowledge is what a restored snapshot is: the same memory twice,
// and nothing says so.
static void a_random_fraction_is_below_one(void **state)
{
    (void)state;
    double sum = 0;
    for (int i = 0; i < 1000; i++) {
        double one = random_fraction();
        assert_true(one >= 0 && one < 1);
        sum += one;
    }
    assert_true(sum > 400 && sum < 600); // beyond: not once in 10^20 runs
}

static void finding_16_two_copies_of_one_memory_draw_other_bytes(void **state)
{
    (void)state;
    uint8_t warm[8];
    random_bytes(warm, sizeof warm);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    assert_true(child >= 0);
    uint8_t own[16];
    random_bytes(own, sizeof own);
    if (child == 0) {
        ssize_t written = write(ends[1], own, sizeof own);
        _exit(written == sizeof own ? 0 : 1);
    }
    uint8_t theirs[16];
    assert_int_equal(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_memory_not_equal(own, theirs, sizeof own);
    close(ends[0]);
    close(ends[1]);
}

static void base64url_has_no_padding(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},           {"f", "Zg"}, {"fo", "Zm8"}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"},
        {"\xfb\xff", "-_8"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[16];
        base64url_encode(rows[i][0], strlen(rows[i][0]), out);
        assert_string_equal(out, rows[i][1]);
        uint8_t again[16];
        size_t length = 0;
        assert_true(base64url_decode(str_from(out), again, sizeof again, &length));
        assert_int_equal(length, strlen(rows[i][0]));
        assert_memory_equal(again, rows[i][0], length);
    }
}

static void base64url_has_one_spelling(void **state)
{
    (void)state;
    static const char *const bad[] = {"Z", "Zh", "Zm9=", "Zg==", "+/8", "Zm 9v", "Zm9vY"};
    uint8_t out[16];
    size_t length = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(base64url_decode(str_from(bad[i]), out, sizeof out, &length));
    }
    assert_true(base64url_decode(STR("Zm9v"), out, 3, &length));
    assert_false(base64url_decode(STR("Zm9v"), out, 2, &length));
}

static void base64_is_strict(void **state)
{
    (void)state;
    uint8_t out[6];
    size_t length = 9;
    static const char *const good[][2] = {
        {"", ""},        {"Zg==", "f"},          {"Zm8=", "fo"},
        {"Zm9v", "foo"}, {"Zm9vYmFy", "foobar"}, {"+/8=", "\xfb\xff"}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(base64_decode(str_from(good[i][0]), out, sizeof out, &length));
        assert_int_equal(length, strlen(good[i][1]));
        assert_memory_equal(out, good[i][1], length);
    }
    const char *bad[] = {"Z",    "Zg",   "Zg=",    "=",    "====",     "Z===",        "Zh==",
                         "Zm9=", "Zm 9", "Zm9v\n", "-_8=", "Zg==Zg==", "Zm9vYmFyZg=="};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(base64_decode(str_from(bad[i]), out, sizeof out, &length));
    }
}

static void hex_goes_both_ways(void **state)
{
    (void)state;
    char text[9];
    uint8_t back[4];
    size_t length = 0;
    hex_encode("\x00\x7f\xab\xff", 4, text);
    assert_string_equal(text, "007fabff");
    assert_true(hex_decode(STR("007FabfF"), back, sizeof back, &length));
    assert_int_equal(length, 4);
    assert_memory_equal(back, "\x00\x7f\xab\xff", 4);
    assert_false(hex_decode(STR("007"), back, sizeof back, &length));
    assert_false(hex_decode(STR("0g"), back, sizeof back, &length));
    assert_false(hex_decode(STR("0000000000"), back, sizeof back, &length));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_prefix_and_ulid_and_tells_its_time),
        cmocka_unit_test(the_text_is_crockfords_base32),
        cmocka_unit_test(ids_of_one_millisecond_ascend),
        cmocka_unit_test(what_is_not_an_id_is_refused),
        cmocka_unit_test(tenants_and_keys_are_narrow),
        cmocka_unit_test(random_bytes_do_not_repeat),
        cmocka_unit_test(a_random_fraction_is_below_one),
        cmocka_unit_test(finding_16_two_copies_of_one_memory_draw_other_bytes),
        cmocka_unit_test(base64url_has_no_padding),
        cmocka_unit_test(base64url_has_one_spelling),
        cmocka_unit_test(base64_is_strict),
        cmocka_unit_test(hex_goes_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
