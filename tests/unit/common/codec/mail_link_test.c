// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/mail_link.h"

static const char KEY_TEXT[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                               "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
#define NOW_US INT64_C(1790000000000000)
#define DAY_US INT64_C(86400000000)
#define URL "https://shop.example.com/cart?mail=alice%40example.com&x=1#top"

typedef struct World {
    Arena *arena;
    MailLinkKey key;
    MailLink link;
    char token[MAIL_LINK_TOKEN_SIZE];
} World;

static World world;

static bool seal(const MailLink *link, char out[MAIL_LINK_TOKEN_SIZE], Error *err)
{
    MailLinkSealer sealer;
    if (!mail_link_sealer_init(&sealer, &world.key, link->tenant, err)) {
        return false;
    }
    bool ok = mail_link_seal(&sealer, link, out, err);
    mail_link_sealer_done(&sealer);
    return ok;
}

static int begin(void **state)
{
    (void)state;
    Error err = {0};
    MasterKey *master = master_key_parse(str_from(KEY_TEXT), &err);
    assert_non_null(master);
    world = (World){
        .arena = arena_new(0),
        .link =
            {
                .kind = MAIL_LINK_CLICK,
                .tenant = STR("acme"),
                .notification_id = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD"),
                .index = 3,
                .issued_at_us = NOW_US,
                .who = {1, 2, 3, 4, 5, 6, 7, 255},
                .url = STR(URL),
            },
    };
    mail_link_key(master, &world.key);
    master_key_free(master);
    assert_true(seal(&world.link, world.token, &err));
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(world.arena);
    return 0;
}

static bool try_open(Str token, int64_t now_us, MailLink *ret)
{
    Error err = {0};
    bool ok = mail_link_open(&world.key, token, now_us, world.arena, ret, &err);
    assert_int_equal(err.kind, ok ? ERROR_NONE : ERROR_PERMANENT);
    return ok;
}

static void what_is_sealed_comes_back(void **state)
{
    (void)state;
    MailLink got;
    assert_true(try_open(str_from(world.token), NOW_US, &got));
    assert_int_equal(got.kind, MAIL_LINK_CLICK);
    assert_true(str_eq(got.tenant, STR("acme")));
    assert_true(str_eq(got.notification_id, world.link.notification_id));
    assert_int_equal(got.index, 3);
    assert_true(got.issued_at_us == NOW_US);
    assert_memory_equal(got.who, world.link.who, MAIL_LINK_WHO_LEN);
    assert_true(str_eq(got.url, STR(URL)));
}

static void the_same_link_has_the_same_token_and_another_has_another(void **state)
{
    (void)state;
    Error err = {0};
    char again[MAIL_LINK_TOKEN_SIZE];
    assert_true(seal(&world.link, again, &err));
    assert_string_equal(again, world.token);
    MailLink other = world.link;
    other.index = 4;
    assert_true(seal(&other, again, &err));
    assert_string_not_equal(again, world.token);
}

static void one_sealer_makes_the_tokens_of_all_links_of_its_tenant(void **state)
{
    (void)state;
    Error err = {0};
    MailLinkSealer sealer;
    char token[MAIL_LINK_TOKEN_SIZE];
    char alone[MAIL_LINK_TOKEN_SIZE];
    assert_true(mail_link_sealer_init(&sealer, &world.key, STR("acme"), &err));
    for (uint32_t i = 1; i <= 3; i++) {
        MailLink link = world.link;
        link.index = i;
        assert_true(mail_link_seal(&sealer, &link, token, &err));
        assert_true(seal(&link, alone, &err));
        assert_string_equal(token, alone);
    }
    MailLink other = world.link;
    other.tenant = STR("globex");
    assert_false(mail_link_seal(&sealer, &other, token, &err));
    assert_non_null(strstr(err.text, "'tenant'"));
    mail_link_sealer_done(&sealer);
    assert_false(mail_link_sealer_init(&sealer, &world.key, STR("No Tenant"), &err));
}

static void where_it_leads_cannot_be_read_from_it(void **state)
{
    (void)state;
    uint8_t raw[MAIL_LINK_TOKEN_SIZE];
    size_t len = 0;
    assert_true(base64url_decode(str_from(world.token + 4), raw, sizeof raw, &len));
    for (size_t i = 0; i + 4 <= len; i++) {
        assert_memory_not_equal(raw + i, "shop", 4);
    }
}

static void one_altered_byte_is_none_of_ours(void **state)
{
    (void)state;
    MailLink got;
    size_t len = strlen(world.token);
    for (size_t i = 0; i < len; i++) {
        char altered[MAIL_LINK_TOKEN_SIZE];
        memcpy(altered, world.token, len + 1);
        altered[i] = altered[i] == 'A' ? 'B' : 'A';
        // The last character has bits that base64url does not use.
        assert_false(i + 1 < len && try_open(str_from(altered), NOW_US, &got));
    }
    assert_false(try_open(STR_EMPTY, NOW_US, &got));
    assert_false(try_open(STR("lnk_"), NOW_US, &got));
    assert_false(try_open(STR("lnk_AQ"), NOW_US, &got));
    assert_false(try_open(str_from(world.token + 4), NOW_US, &got));
}

static void one_tenants_token_is_not_anothers(void **state)
{
    (void)state;
    uint8_t raw[MAIL_LINK_TOKEN_SIZE];
    size_t len = 0;
    MailLink got;
    char token[MAIL_LINK_TOKEN_SIZE] = "lnk_";
    assert_true(base64url_decode(str_from(world.token + 4), raw, sizeof raw, &len));
    assert_memory_equal(raw + 2, "acme", 4);
    memcpy(raw + 2, "zeta", 4);
    base64url_encode(raw, len, token + 4);
    assert_false(try_open(str_from(token), NOW_US, &got));
}

static void an_old_or_a_future_link_ends(void **state)
{
    (void)state;
    MailLink got;
    assert_true(try_open(str_from(world.token), NOW_US + MAIL_LINK_DAYS * DAY_US, &got));
    assert_false(try_open(str_from(world.token), NOW_US + MAIL_LINK_DAYS * DAY_US + 1000000, &got));
    assert_false(try_open(str_from(world.token), NOW_US - 2 * DAY_US, &got));
}

static void an_older_master_key_opens(void **state)
{
    (void)state;
    MailLink got;
    MailLinkKey rotated = {.count = 2};
    memset(rotated.bytes[0], 9, SHA256_LEN);
    memcpy(rotated.bytes[1], world.key.bytes[0], SHA256_LEN);
    Error err = {0};
    assert_true(mail_link_open(&rotated, str_from(world.token), NOW_US, world.arena, &got, &err));
    rotated.count = 1;
    assert_false(mail_link_open(&rotated, str_from(world.token), NOW_US, world.arena, &got, &err));
}

static void only_http_and_https_lead_anywhere(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool good;
    } rows[] = {
        {"https://a.example/", true},
        {"http://a.example", true},
        {"HTTPS://a.example/x", true},
        {"https://", false},
        {"javascript:alert(1)", false},
        {"data:text/html,x", false},
        {"//a.example/", false},
        {"ftp://a.example", false},
        {"https://a.example/a b", false},
        {"https://a.example/\r\nX: y", false},
        {"https://a.example/\xff", false},
        {"mailto:a@example.com", false},
        {"https://a.example/\xc3\xa4", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(mail_link_is_url(str_from(rows[i].url)), rows[i].good);
    }
    char text[MAIL_LINK_URL_MAX + 2];
    memset(text, 'a', sizeof text);
    memcpy(text, "https://", 8);
    assert_true(mail_link_is_url(str_of(text, MAIL_LINK_URL_MAX)));
    assert_false(mail_link_is_url(str_of(text, MAIL_LINK_URL_MAX + 1)));
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    Error err = {0};
    char token[MAIL_LINK_TOKEN_SIZE];
    MailLink bad = world.link;
    bad.url = STR("javascript:alert(1)");
    assert_false(seal(&bad, token, &err));
    assert_non_null(strstr(err.text, "'url'"));
    bad = world.link;
    bad.kind = MAIL_LINK_OPEN; // a pixel leads nowhere
    assert_false(seal(&bad, token, &err));
    bad = world.link;
    bad.notification_id = STR("ntf_x");
    assert_false(seal(&bad, token, &err));
    assert_non_null(strstr(err.text, "'notification_id'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_sealed_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(
            the_same_link_has_the_same_token_and_another_has_another, begin, end),
        cmocka_unit_test_setup_teardown(
            one_sealer_makes_the_tokens_of_all_links_of_its_tenant, begin, end),
        cmocka_unit_test_setup_teardown(where_it_leads_cannot_be_read_from_it, begin, end),
        cmocka_unit_test_setup_teardown(one_altered_byte_is_none_of_ours, begin, end),
        cmocka_unit_test_setup_teardown(one_tenants_token_is_not_anothers, begin, end),
        cmocka_unit_test_setup_teardown(an_old_or_a_future_link_ends, begin, end),
        cmocka_unit_test_setup_teardown(an_older_master_key_opens, begin, end),
        cmocka_unit_test(only_http_and_https_lead_anywhere),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_named, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
