// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"
#include "services/gateway/access/oidc/oidc_login.h"

static const int64_t NOW_US = INT64_C(1790000000) * 1000000;

static OidcLoginKeys keys;

static bool opens(const OidcLogin *login, int64_t now_us)
{
    OidcLogin found;
    return oidc_login_open(&keys, str_from(login->cookie), str_from(login->state), now_us, &found);
}

static void a_login_is_opened_by_its_cookie_and_its_state(void **state)
{
    (void)state;
    OidcLogin login, found, other;
    oidc_login_new(&keys, NOW_US, &login);
    oidc_login_new(&keys, NOW_US, &other);
    assert_true(oidc_login_open(
        &keys, str_from(login.cookie), str_from(login.state), NOW_US + 1000000, &found));
    assert_string_equal(found.nonce, login.nonce);
    assert_string_equal(found.verifier, login.verifier);
    assert_int_equal(strlen(login.verifier), 43); // RFC 7636: at least
    assert_string_not_equal(login.nonce, login.state);
    assert_string_not_equal(login.nonce, login.verifier);
    assert_string_not_equal(login.state, other.state);
    assert_false(
        oidc_login_open(&keys, str_from(other.cookie), str_from(login.state), NOW_US, &found));
    assert_false(oidc_login_open(&keys, STR_EMPTY, str_from(login.state), NOW_US, &found));
    assert_false(oidc_login_open(&keys, str_from(login.cookie), STR_EMPTY, NOW_US, &found));
}

static void a_cookie_that_was_altered_opens_nothing(void **state)
{
    (void)state;
    OidcLogin login;
    oidc_login_new(&keys, NOW_US, &login);
    for (size_t i = 0; i < sizeof login.cookie - 1; i++) {
        OidcLogin altered = login;
        altered.cookie[i] = login.cookie[i] == '0' ? '1' : '0';
        assert_false(opens(&altered, NOW_US));
    }
}

static void its_time_is_ten_minutes(void **state)
{
    (void)state;
    OidcLogin login;
    oidc_login_new(&keys, NOW_US, &login);
    assert_true(opens(&login, NOW_US + INT64_C(599) * 1000000));
    assert_false(opens(&login, NOW_US + INT64_C(600) * 1000000));
    assert_true(opens(&login, NOW_US - INT64_C(60) * 1000000)); // of a replica that is ahead
    assert_false(opens(&login, NOW_US - INT64_C(3600) * 1000000));
}

static void a_login_outlives_a_rotation_of_the_master_key_and_no_change_of_it(void **state)
{
    (void)state;
    OidcLogin login, found;
    oidc_login_new(&keys, NOW_US, &login);
    OidcLoginKeys rotated = {.count = 2}, others = {.count = 1};
    memset(rotated.bytes[0], 9, MASTER_KEY_LEN);
    memcpy(rotated.bytes[1], keys.bytes[0], MASTER_KEY_LEN);
    assert_true(
        oidc_login_open(&rotated, str_from(login.cookie), str_from(login.state), NOW_US, &found));
    assert_string_equal(found.verifier, login.verifier);
    memset(others.bytes[0], 9, MASTER_KEY_LEN);
    assert_false(
        oidc_login_open(&others, str_from(login.cookie), str_from(login.state), NOW_US, &found));
}

// RFC 7636, appendix B.
static void the_challenge_is_the_sha_256_of_the_verifier(void **state)
{
    (void)state;
    OidcLogin login = {.verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"};
    char challenge[OIDC_TEXT_SIZE];
    oidc_login_challenge(&login, challenge);
    assert_string_equal(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

int main(void)
{
    keys.count = 1;
    random_bytes(keys.bytes[0], MASTER_KEY_LEN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_login_is_opened_by_its_cookie_and_its_state),
        cmocka_unit_test(a_cookie_that_was_altered_opens_nothing),
        cmocka_unit_test(its_time_is_ten_minutes),
        cmocka_unit_test(a_login_outlives_a_rotation_of_the_master_key_and_no_change_of_it),
        cmocka_unit_test(the_challenge_is_the_sha_256_of_the_verifier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
