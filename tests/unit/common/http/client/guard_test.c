// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "common/http/client/guard.h"

static const HttpGuard ORIGIN = {0};
static const HttpGuard TENANT = {.tenant = true};
static const HttpGuard PRIVATE = {.allow_private = true};
static const HttpGuard LOCAL = {.allow_loopback = true};

static bool allows(const HttpGuard *guard, const char *text)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    Error err = {0};
    bool is_4 = inet_pton(AF_INET, text, &in.sin_addr) == 1;
    assert_true(is_4 || inet_pton(AF_INET6, text, &in6.sin6_addr) == 1);
    bool good = is_4 ? guard_address(guard, (struct sockaddr *)&in, &err)
                     : guard_address(guard, (struct sockaddr *)&in6, &err);
    assert_int_equal(good, err.kind == ERROR_NONE);
    return good;
}

static bool takes(const HttpGuard *guard, const char *url)
{
    GuardedUrl found;
    Error err = {0};
    bool good = guard_url(guard, url, &found, &err);
    assert_int_equal(good, err.kind == ERROR_NONE);
    assert_true(good || err.kind == (guard->tenant ? ERROR_PERMANENT : ERROR_CONFIG));
    return good;
}

static void public_addresses_are_allowed(void **state)
{
    (void)state;
    const char *const allowed[] = {
        "1.1.1.1",    "93.184.216.34",   "172.32.0.1",      "100.128.0.1",     "192.0.1.1",
        "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2001:4860::8888", "2a00::1"};
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        assert_true(allows(&TENANT, allowed[i]));
        assert_true(allows(&ORIGIN, allowed[i]));
    }
}

static void what_is_not_public_is_denied_with_every_option(void **state)
{
    (void)state;
    const HttpGuard all = {.allow_private = true, .allow_loopback = true};
    const char *const denied[] = {
        "0.0.0.0",       "169.254.1.1",    "169.254.169.254",  "100.100.100.200",
        "168.63.129.16", "192.0.0.8",      "192.0.2.1",        "192.88.99.1",
        "198.18.0.1",    "198.19.255.255", "198.51.100.1",     "203.0.113.1",
        "224.0.0.1",     "240.0.0.1",      "255.255.255.255",  "::",
        "::1.2.3.4",     "::ffff:1.1.1.1", "::ffff:127.0.0.1", "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",  "100::1",         "2001::1",          "2001:db8::1",
        "2002:7f00:1::", "3fff::1",        "5f00::1",          "fd00:ec2::254",
        "fe80::1",       "fec0::1",        "ff02::1",          "4000::1",
        "8000::1"};
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
        if (allows(&all, denied[i]) || allows(&TENANT, denied[i])) {
            fail_msg("%s is allowed", denied[i]);
        }
    }
}

static void private_ranges_are_allowed_with_the_option_only(void **state)
{
    (void)state;
    const char *const inside[] = {"10.0.0.1",         "10.255.255.255",   "172.16.0.1",
                                  "172.31.255.255",   "192.168.1.1",      "100.64.0.1",
                                  "100.127.255.255",  "fc00::1",          "fd12::1",
                                  "64:ff9b::1.1.1.1", "64:ff9b::10.0.0.1"};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        assert_false(allows(&ORIGIN, inside[i]));
        assert_false(allows(&TENANT, inside[i]));
        assert_false(allows(&LOCAL, inside[i]));
        assert_true(allows(&PRIVATE, inside[i]));
    }
    assert_false(allows(&PRIVATE, "64:ff9b::127.0.0.1"));
}

static void loopback_is_allowed_with_the_option_only(void **state)
{
    (void)state;
    assert_false(allows(&ORIGIN, "127.0.0.1"));
    assert_false(allows(&PRIVATE, "127.1.2.3"));
    assert_false(allows(&PRIVATE, "::1"));
    assert_true(allows(&LOCAL, "127.0.0.1"));
    assert_true(allows(&LOCAL, "::1"));
}

static void the_operators_own_ranges_are_denied_too(void **state)
{
    (void)state;
    HttpProxies own;
    assert_true(http_proxies_parse(STR("93.184.0.0/16, 2a00:1::/32"), &own, NULL));
    HttpGuard guard = {.tenant = true, .also = &own};
    assert_false(allows(&guard, "93.184.216.34"));
    assert_false(allows(&guard, "2a00:1::5"));
    assert_true(allows(&guard, "93.185.0.1"));
}

static void an_operator_allows_ranges_by_their_names(void **state)
{
    (void)state;
    HttpGuard guard = {0};
    Error err = {0};
    assert_true(guard_allow(&guard, STR(""), &err));
    assert_false(allows(&guard, "127.0.0.1") || allows(&guard, "10.1.2.3"));
    assert_true(guard_allow(&guard, STR("private, loopback"), &err));
    assert_true(allows(&guard, "127.0.0.1") && allows(&guard, "10.1.2.3"));
    assert_false(guard_allow(&guard, STR("private,public"), &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, "'public'"));
}

static void another_family_is_denied(void **state)
{
    (void)state;
    struct sockaddr address = {.sa_family = AF_UNIX};
    assert_false(guard_address(&LOCAL, &address, NULL));
}

static void a_url_is_taken_apart(void **state)
{
    (void)state;
    GuardedUrl url;
    assert_true(guard_url(&TENANT, "https://Hooks.Example.COM:8443/a?b#c", &url, NULL));
    assert_string_equal(url.host, "hooks.example.com");
    assert_int_equal(url.port, 8443);
    assert_true(url.https && !url.is_address);
    assert_true(guard_url(&ORIGIN, "https://[2606:4700::1111]/", &url, NULL));
    assert_string_equal(url.host, "2606:4700::1111");
    assert_true(url.is_address);
    assert_int_equal(url.port, 443);
}

static void addresses_in_disguise_are_refused(void **state)
{
    (void)state;
    const char *const urls[] = {
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0x7f000001/",
        "https://017700000001/",
        "https://127.1/",
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://[::1]/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/",
        "https://127.0.0.1.:443/",
        "https://1.2.3.4.5/",
        "https://256.1.1.1/",
        "https://a.0x7f/",
        "https://[fe80::1%25eth0]/",
        "https://localhost/",
        "https://localhost./",
        "https://a.localhost/",
        "https://127\xe3\x80\x82"
        "0.0.1/"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        if (takes(&TENANT, urls[i]) ||
            takes(&PRIVATE, urls[i]) != (strstr(urls[i], "10.0.0.1") != NULL)) {
            fail_msg("%s", urls[i]);
        }
    }
}

static void what_parsers_read_differently_is_refused(void **state)
{
    (void)state;
    const char *const urls[] = {
        "",
        "https://",
        "https:///path",
        "hooks.example.com",
        "//hooks.example.com/",
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://@example.com/",
        "https://example.com\\@evil.test/",
        "https://example.com /",
        " https://example.com/",
        "https://exam\tple.com/",
        "https://example.com/\r\nX: y",
        "https://b\xc3\xbc"
        "cher.example/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:22/",
        "https://a..b/",
        "https://.a.b/",
        "https://exa%6dple.com:99999/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "http://example.com/"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        if (takes(&TENANT, urls[i])) {
            fail_msg("%s", urls[i]);
        }
    }
}

static void http_is_for_this_machine_alone_where_that_is_allowed(void **state)
{
    (void)state;
    assert_true(takes(&LOCAL, "http://127.0.0.1:8080/"));
    assert_true(takes(&LOCAL, "http://[::1]:8080/"));
    assert_true(takes(&LOCAL, "http://localhost:8080/"));
    assert_false(takes(&LOCAL, "http://127.example.com/"));
    assert_false(takes(&LOCAL, "http://example.com/"));
    assert_false(takes(&PRIVATE, "http://10.0.0.1/"));
    assert_true(takes(&PRIVATE, "https://10.0.0.1/"));
}

static void an_error_names_what_to_change(void **state)
{
    (void)state;
    GuardedUrl url;
    Error err = {0};
    assert_false(guard_url(&TENANT, "https://example.com:25/", &url, &err));
    assert_string_equal(err.text, "the URL's port 25 is not 443 and below 1024");
    error_clear(&err);
    assert_false(guard_url(&TENANT, "https://10.1.2.3/", &url, &err));
    assert_string_equal(err.text, "the address is not one to send to: private");
    error_clear(&err);
    assert_false(guard_url(&ORIGIN, "http://example.com/", &url, &err));
    assert_string_equal(err.text, "the URL must begin with https://");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_addresses_are_allowed),
        cmocka_unit_test(what_is_not_public_is_denied_with_every_option),
        cmocka_unit_test(private_ranges_are_allowed_with_the_option_only),
        cmocka_unit_test(loopback_is_allowed_with_the_option_only),
        cmocka_unit_test(the_operators_own_ranges_are_denied_too),
        cmocka_unit_test(an_operator_allows_ranges_by_their_names),
        cmocka_unit_test(another_family_is_denied),
        cmocka_unit_test(a_url_is_taken_apart),
        cmocka_unit_test(addresses_in_disguise_are_refused),
        cmocka_unit_test(what_parsers_read_differently_is_refused),
        cmocka_unit_test(http_is_for_this_machine_alone_where_that_is_allowed),
        cmocka_unit_test(an_error_names_what_to_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
