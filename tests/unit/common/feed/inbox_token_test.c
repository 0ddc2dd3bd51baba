// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/feed/inbox_token.h"

#define NOW_US INT64_C(1795000000000000)

static const char FIRST[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                            "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
static const char OTHER[] = "ee0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                            "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";

static MasterKey *parse(const char *text)
{
    MasterKey *master = master_key_parse(str_from(text), NULL);
    assert_non_null(master);
    return master;
}

static InboxToken token_of(const char *tenant)
{
    InboxToken token = {.expires_at_us = NOW_US + 900 * INT64_C(1000000)};
    (void)str_to_c(str_from(tenant), token.tenant, sizeof token.tenant);
    memset(token.recipient, 0xa7, sizeof token.recipient);
    return token;
}

static void a_token_says_whose_inbox_it_opens_until_it_ends(void **state)
{
    (void)state;
    char text[INBOX_TOKEN_SIZE];
    MasterKey *master = parse(FIRST);
    static const char *const tenants[] = {"a", "acme", "abcdefghijklmnopqrstuvwxyz012345"};
    for (size_t i = 0; i < sizeof tenants / sizeof *tenants; i++) {
        InboxToken made = token_of(tenants[i]), read;
        inbox_token_make(master, &made, text);
        assert_int_equal(inbox_token_check(master, str_from(text), NOW_US, &read), INBOX_GOOD);
        assert_string_equal(read.tenant, tenants[i]);
        assert_memory_equal(read.recipient, made.recipient, sizeof made.recipient);
        assert_int_equal(read.expires_at_us, made.expires_at_us);
        assert_int_equal(
            inbox_token_check(master, str_from(text), made.expires_at_us - 1, &read), INBOX_GOOD);
        assert_int_equal(
            inbox_token_check(master, str_from(text), made.expires_at_us, &read), INBOX_EXPIRED);
    }
    master_key_free(master);
}

static void a_token_names_the_record_whose_inbox_it_opens(void **state)
{
    (void)state;
    char text[INBOX_TOKEN_SIZE];
    static const char id[] = "rcp_01K0000000000000000000000A";
    MasterKey *master = parse(FIRST);
    InboxToken made = token_of("abcdefghijklmnopqrstuvwxyz012345"), read;
    (void)str_to_c(str_from(id), made.recipient_id, sizeof made.recipient_id);
    inbox_token_make(master, &made, text);
    assert_int_equal(inbox_token_check(master, str_from(text), NOW_US, &read), INBOX_GOOD);
    assert_string_equal(read.recipient_id, id);
    assert_memory_equal(read.recipient, made.recipient, sizeof made.recipient);
    made = token_of("acme");
    inbox_token_make(master, &made, text);
    assert_int_equal(inbox_token_check(master, str_from(text), NOW_US, &read), INBOX_GOOD);
    assert_string_equal(read.recipient_id, "");
    master_key_free(master);
}

static void no_altered_token_and_none_of_another_installation_is_good(void **state)
{
    (void)state;
    char text[INBOX_TOKEN_SIZE];
    MasterKey *master = parse(FIRST);
    MasterKey *other = parse(OTHER);
    InboxToken made = token_of("acme"), read;
    inbox_token_make(master, &made, text);
    assert_int_equal(inbox_token_check(other, str_from(text), NOW_US, &read), INBOX_BAD);
    for (size_t i = 0; i < strlen(text); i++) {
        char was = text[i];
        text[i] = was == 'x' ? 'y' : 'x';
        assert_int_equal(inbox_token_check(master, str_from(text), NOW_US, &read), INBOX_BAD);
        text[i] = was;
        assert_int_equal(
            inbox_token_check(master, str_of(text, i), NOW_US, &read), INBOX_BAD); // cut
    }
    assert_int_equal(inbox_token_check(master, STR_EMPTY, NOW_US, &read), INBOX_BAD);
    master_key_free(master);
    master_key_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_says_whose_inbox_it_opens_until_it_ends),
        cmocka_unit_test(a_token_names_the_record_whose_inbox_it_opens),
        cmocka_unit_test(no_altered_token_and_none_of_another_installation_is_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
