// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codec/event.h"
#include "services/dispatcher/dress/dress.h"
#include "stentor/v1/config.pb-c.h"

// RFC 8463, A.1.
static const char ED25519_PEM[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
#define NOW_US INT64_C(1790000000000000)

typedef struct World {
    Arena *arena;
    SendDomains *domains;
    DressRules rules;
    Stentor__V1__Meta meta;
    Stentor__V1__Rendered rendered;
    DressWant want;
    char file[64];
} World;

static World world;

static char *text(const char *value)
{
    return arena_cstr(world.arena, str_from(value));
}

static int begin(void **state)
{
    (void)state;
    world = (World){.arena = arena_new(0), .domains = send_domains_new()};
    world.rules =
        (DressRules){.bounce_key = {.bytes = {{7}}, .count = 1}, .feedback_sender = STR("stentor")};
    stentor__v1__meta__init(&world.meta);
    world.meta.tenant = text("acme");
    world.meta.notification_id = text("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD");
    stentor__v1__rendered__init(&world.rendered);
    world.rendered.meta = &world.meta;
    world.rendered.template_ = text("welcome");
    world.rendered.category = STENTOR__V1__CATEGORY__CATEGORY_TRANSACTIONAL;
    world.rendered.attempt = 2;
    world.want = (DressWant){
        .rules = &world.rules,
        .domains = world.domains,
        .rendered = &world.rendered,
        .from = STR("hello@Acme.test"),
        .list_id = STR_EMPTY,
        .now_us = NOW_US,
        .arena = world.arena,
    };
    (void)snprintf(world.file, sizeof world.file, "/tmp/dress_test_%d.pem", (int)getpid());
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)remove(world.file);
    send_domains_free(world.domains);
    arena_free(world.arena);
    return 0;
}

static void write_key(const char *pem)
{
    FILE *file = fopen(world.file, "w");
    assert_non_null(file);
    assert_true(fputs(pem, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put(const char *tenant, const char *bounces, const char *reference)
{
    Stentor__V1__MailDomain entry;
    Stentor__V1__DkimKey key;
    Stentor__V1__DkimKey *keys[] = {&key};
    Error err = {0};
    Str packed;
    stentor__v1__mail_domain__init(&entry);
    stentor__v1__dkim_key__init(&key);
    entry.tenant = text(tenant);
    entry.domain = text("acme.test");
    entry.bounce_domain = text(bounces);
    key.selector = text("e1");
    key.algorithm = text("ed25519-sha256");
    key.reference = text(reference);
    entry.dkim = keys;
    entry.n_dkim = reference[0] != '\0' ? 1 : 0;
    assert_true(event_pack(&entry.base, world.arena, &packed, &err));
    assert_true(
        send_domains_changed(world.domains, str_from(tenant), STR("acme.test"), packed, &err));
}

static const char *file_reference(void)
{
    return arena_printf(world.arena, "file:%s", world.file);
}

static void a_domain_without_an_entry_has_its_own_sender_and_no_signature(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    assert_true(dress_make(&world.want, &dress, &err));
    assert_int_equal(dress.return_path.len, 0);
    assert_int_equal(dress.signer_count, 0);
    assert_int_equal(dress.token.len, BOUNCE_TOKEN_LEN);
    assert_true(str_eq(dress.feedback_id, STR("welcome:transactional:acme:stentor")));
    assert_int_equal(dress.list_id.len, 0);
    Str whole;
    assert_true(dress_sign(&dress, STR("From: a\r\n\r\nb"), NOW_US, world.arena, &whole, &err));
    assert_true(str_eq(whole, STR("From: a\r\n\r\nb")));
}

static void a_mail_to_many_has_a_list_id(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    world.rendered.batch_id = text("dbt_01M2V3W4X5Y6Z7A8B9CADBECFD");
    assert_true(dress_make(&world.want, &dress, &err));
    assert_true(str_eq(dress.list_id, STR("welcome.Acme.test")));
    assert_true(str_eq(
        dress.feedback_id, STR("dbt_01M2V3W4X5Y6Z7A8B9CADBECFD:transactional:acme:stentor")));
    world.want.list_id = STR("news.acme.test");
    assert_true(dress_make(&world.want, &dress, &err));
    assert_true(str_eq(dress.list_id, STR("news.acme.test")));
}

static void the_tenants_own_entry_comes_before_the_platforms(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    BounceToken token;
    Str domain;
    put("platform", "bounces.platform.test", "");
    assert_true(dress_make(&world.want, &dress, &err));
    assert_true(bounce_address_read(dress.return_path, &token, &domain));
    assert_true(str_eq(domain, STR("bounces.platform.test")));
    assert_int_equal(token.attempt, 2);
    put("acme", "bounces.acme.test", "");
    assert_true(dress_make(&world.want, &dress, &err));
    assert_true(bounce_address_read(dress.return_path, &token, &domain));
    assert_true(str_eq(domain, STR("bounces.acme.test")));
    assert_true(
        send_domains_changed(world.domains, STR("acme"), STR("acme.test"), STR_EMPTY, &err));
    assert_true(dress_make(&world.want, &dress, &err));
    assert_true(str_ends(dress.return_path, STR("@bounces.platform.test")));
}

static void the_return_path_says_whose_address_it_is(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    BounceToken token;
    uint8_t hash[ADDRESS_HASH_LEN] = {1, 2, 3, 4, 5, 6};
    put("acme", "bounces.acme.test", "");
    assert_true(dress_make(&world.want, &dress, &err));
    assert_true(bounce_address_read(dress.return_path, &token, NULL));
    assert_false(token.has_owner); // an address whose hash is not known
    world.rendered.address_hash = (ProtobufCBinaryData){sizeof hash, hash};
    assert_true(dress_make(&world.want, &dress, &err));
    assert_true(bounce_address_read(dress.return_path, &token, NULL));
    assert_true(bounce_token_is_owner(&token, hash));
    hash[4] ^= 1;
    assert_false(bounce_token_is_owner(&token, hash));
}

static void complaints_come_back_only_below_the_senders_domain(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    write_key(ED25519_PEM);
    put("acme", "bounces.acme.test", file_reference());
    assert_true(dress_make(&world.want, &dress, &err));
    assert_true(str_eq(dress.cfbl_address, dress.return_path));
    put("acme", "bounces-acme.test", file_reference());
    assert_true(dress_make(&world.want, &dress, &err));
    assert_int_equal(dress.cfbl_address.len, 0);
    put("acme", "bounces.acme.test", ""); // without a signature it would not be believed
    assert_true(dress_make(&world.want, &dress, &err));
    assert_int_equal(dress.cfbl_address.len, 0);
}

static void a_key_that_cannot_be_read_makes_the_mail_wait(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    Buf warning;
    buf_init(&warning, 1000);
    put("acme", "", file_reference());
    assert_false(dress_make(&world.want, &dress, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(err.text, "'e1' of acme.test"));
    send_domains_warn(world.domains, &warning);
    assert_non_null(strstr(buf_c(&warning), "1 DKIM key cannot be read: 'e1' of acme.test"));
    write_key(ED25519_PEM);
    assert_false(dress_make(&world.want, &dress, &err)); // not asked for again at once
    world.want.now_us += 3 * 1000000;
    assert_true(dress_make(&world.want, &dress, &err));
    assert_int_equal(dress.signer_count, 1);
    buf_clear(&warning);
    send_domains_warn(world.domains, &warning);
    assert_int_equal(warning.len, 0);
    buf_done(&warning);
}

static void a_key_that_was_read_signs_while_its_file_is_away(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    Buf warning;
    Str whole;
    buf_init(&warning, 1000);
    write_key(ED25519_PEM);
    put("acme", "", file_reference());
    assert_true(dress_make(&world.want, &dress, &err));
    assert_int_equal(remove(world.file), 0);
    world.want.now_us += 61 * 1000000LL;
    assert_true(dress_make(&world.want, &dress, &err));
    send_domains_warn(world.domains, &warning);
    assert_true(warning.len > 0);
    assert_true(
        dress_sign(&dress, STR("From: <a@acme.test>\r\n\r\nb"), NOW_US, world.arena, &whole, &err));
    assert_true(str_starts(whole, STR("DKIM-Signature: v=1; a=ed25519-sha256;")));
    assert_true(str_ends(whole, STR("\r\nFrom: <a@acme.test>\r\n\r\nb")));
    buf_done(&warning);
}

static void a_key_may_be_in_the_environment(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    assert_int_equal(setenv("DRESS_TEST_KEY", ED25519_PEM, 1), 0);
    put("acme", "", "env:DRESS_TEST_KEY");
    assert_true(dress_make(&world.want, &dress, &err));
    put("acme", "", "env:DRESS_TEST_NO_KEY");
    assert_false(dress_make(&world.want, &dress, &err));
    assert_non_null(strstr(err.text, "not in the environment"));
    put("acme", "", "vault:secret/dkim");
    assert_false(dress_make(&world.want, &dress, &err));
    assert_non_null(strstr(err.text, "neither file: nor env:"));
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_domain_without_an_entry_has_its_own_sender_and_no_signature),
        IN_WORLD(a_mail_to_many_has_a_list_id),
        IN_WORLD(the_tenants_own_entry_comes_before_the_platforms),
        IN_WORLD(the_return_path_says_whose_address_it_is),
        IN_WORLD(complaints_come_back_only_below_the_senders_domain),
        IN_WORLD(a_key_that_cannot_be_read_makes_the_mail_wait),
        IN_WORLD(a_key_that_was_read_signs_while_its_file_is_away),
        IN_WORLD(a_key_may_be_in_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
