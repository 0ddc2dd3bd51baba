// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/feed/inbox_signed.h"

// The vector of services/gateway/INBOX_TOKENS.md.
#define TOKEN                                                                                      \
    "ink_01M8DZ0000000000000000000A.1795000900.dXNlci0xNw.0WSSysPfTuGr_BLxXVqYW_DcqtGx5RzO_l-Jc1jBm5w"
#define SECRET STR("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")
#define EXPIRES_US INT64_C(1795000900000000)
#define DAY_US INT64_C(86400000000)

static InboxSigned read_token(const char *text)
{
    InboxSigned read;
    assert_true(inbox_signed_read(str_from(text), &read));
    return read;
}

static void the_documented_token_is_good(void **state)
{
    (void)state;
    InboxSigned read = read_token(TOKEN);
    assert_true(str_eq(read.key_id, STR("ink_01M8DZ0000000000000000000A")));
    assert_string_equal(read.to, "user-17");
    assert_int_equal(read.expires_at_us, EXPIRES_US);
    assert_int_equal(inbox_signed_check(&read, SECRET, EXPIRES_US - 900000000), INBOX_GOOD);
}

static void a_token_ends_and_may_not_last_longer_than_a_day(void **state)
{
    (void)state;
    InboxSigned read = read_token(TOKEN);
    assert_int_equal(inbox_signed_check(&read, SECRET, EXPIRES_US - 1), INBOX_GOOD);
    assert_int_equal(inbox_signed_check(&read, SECRET, EXPIRES_US), INBOX_EXPIRED);
    int64_t early_us = EXPIRES_US - DAY_US - INBOX_SIGNED_SKEW_S * INT64_C(1000000);
    assert_int_equal(inbox_signed_check(&read, SECRET, early_us), INBOX_GOOD);
    assert_int_equal(inbox_signed_check(&read, SECRET, early_us - 1), INBOX_TOO_LONG);
}

static void an_altered_or_cut_token_is_not_good(void **state)
{
    (void)state;
    char text[] = TOKEN;
    for (size_t i = 0; i < strlen(text); i++) {
        InboxSigned read;
        char was = text[i];
        text[i] = was == '1' ? '2' : '1';
        assert_false(
            inbox_signed_read(str_from(text), &read) &&
            inbox_signed_check(&read, SECRET, EXPIRES_US - 1) == INBOX_GOOD);
        text[i] = was;
        assert_false(inbox_signed_read(str_of(text, i), &read));
    }
    InboxSigned read = read_token(TOKEN);
    assert_int_equal(inbox_signed_check(&read, STR("another secret"), EXPIRES_US - 1), INBOX_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_token_is_good),
        cmocka_unit_test(a_token_ends_and_may_not_last_longer_than_a_day),
        cmocka_unit_test(an_altered_or_cut_token_is_not_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
