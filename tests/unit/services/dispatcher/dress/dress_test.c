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
#include <uv.h>

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
    uv_loop_t loop;
    Secrets *secrets;
    SendDomains *domains;
    DressRules rules;
    Stentor__V1__Meta meta;
    Stentor__V1__Rendered rendered;
    DressWant want;
    char folder[64];
    char file[96];
} World;

static World world;

static char *text(const char *value)
{
    return arena_cstr(world.arena, str_from(value));
}

static int begin(void **state)
{
    (void)state;
    world = (World){.arena = arena_new(0)};
    assert_int_equal(uv_loop_init(&world.loop), 0);
    (void)snprintf(world.folder, sizeof world.folder, "/tmp/dress_test_XXXXXX");
    assert_non_null(mkdtemp(world.folder));
    world.secrets = secrets_new(
        &(SecretsOptions){
            .loop = &world.loop, .service = "test", .folders = world.folder, .poll_ms = 20},
        NULL);
    assert_non_null(world.secrets);
    world.domains = send_domains_new(world.secrets);
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
        .arena = world.arena,
    };
    (void)snprintf(world.file, sizeof world.file, "%s/e1.pem", world.folder);
    return 0;
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static int end(void **state)
{
    (void)state;
    bool closed = false;
    (void)remove(world.file);
    assert_int_equal(remove(world.folder), 0);
    send_domains_free(world.domains);
    secrets_close(world.secrets, on_closed, &closed);
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    assert_true(closed);
    secrets_free(world.secrets);
    assert_int_equal(uv_loop_close(&world.loop), 0);
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

// Until the keys have been read, or could not be.
static bool make(Dress *dress, Error *err)
{
    bool made = dress_make(&world.want, dress, err);
    while (!made && err->kind == ERROR_CANCELLED) { // the test's time-out bounds it
        (void)uv_run(&world.loop, UV_RUN_ONCE);
        made = dress_make(&world.want, dress, err);
    }
    return made;
}

// What /readyz says, once it says so or nothing. The test's time-out bounds it.
static void await_warning(const char *text)
{
    Buf warning;
    buf_init(&warning, 1000);
    bool seen = false;
    while (!seen) {
        (void)uv_run(&world.loop, UV_RUN_ONCE);
        buf_clear(&warning);
        send_domains_warn(world.domains, &warning);
        seen = text != NULL ? strstr(buf_c(&warning), text) != NULL : warning.len == 0;
    }
    buf_done(&warning);
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

static void a_test_of_a_template_version_says_so_and_nothing_else_can(void **state)
{
    (void)state;
    Dress dress;
    assert_true(dress_make(&world.want, &dress, NULL));
    assert_int_equal(dress.test.len, 0);
    world.meta.correlation_id = text("test-send/welcome/1.2.0-rc.1");
    assert_true(dress_make(&world.want, &dress, NULL));
    assert_true(str_eq(dress.test, STR("welcome/1.2.0-rc.1")));
    static const char *const others[] = {
        "order-7", "test-send", "test-send/a b", "test-send/a\xc3\xa9", "TEST-SEND/welcome/1.0.0"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        world.meta.correlation_id = text(others[i]);
        assert_true(dress_make(&world.want, &dress, NULL));
        assert_int_equal(dress.test.len, 0);
    }
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
    assert_true(make(&dress, &err));
    assert_true(str_eq(dress.cfbl_address, dress.return_path));
    put("acme", "bounces-acme.test", file_reference());
    assert_true(make(&dress, &err));
    assert_int_equal(dress.cfbl_address.len, 0);
    put("acme", "bounces.acme.test", ""); // without a signature it would not be believed
    assert_true(make(&dress, &err));
    assert_int_equal(dress.cfbl_address.len, 0);
}

static void a_key_that_cannot_be_read_makes_the_mail_wait(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    put("acme", "", file_reference());
    assert_false(dress_make(&world.want, &dress, &err));
    assert_int_equal(err.kind, ERROR_CANCELLED); // it is being read: no attempt is used up
    assert_false(make(&dress, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(err.text, "'e1' of acme.test"));
    await_warning("1 DKIM key cannot be read: 'e1' of acme.test");
    write_key(ED25519_PEM);
    await_warning(NULL);
    assert_true(make(&dress, &err));
    assert_int_equal(dress.signer_count, 1);
}

static void a_key_that_was_read_signs_while_its_file_is_away(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    Str whole;
    write_key(ED25519_PEM);
    put("acme", "", file_reference());
    assert_true(make(&dress, &err));
    assert_int_equal(remove(world.file), 0);
    await_warning("'e1' of acme.test");
    assert_true(make(&dress, &err));
    assert_true(
        dress_sign(&dress, STR("From: <a@acme.test>\r\n\r\nb"), NOW_US, world.arena, &whole, &err));
    assert_true(str_starts(whole, STR("DKIM-Signature: v=1; a=ed25519-sha256;")));
    assert_true(str_ends(whole, STR("\r\nFrom: <a@acme.test>\r\n\r\nb")));
}

static void a_file_that_holds_no_key_any_more_leaves_the_one_before(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    write_key("-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----\n");
    put("acme", "", file_reference());
    assert_false(make(&dress, &err));
    assert_non_null(strstr(err.text, "not a private key in PEM"));
    write_key(ED25519_PEM);
    while (!make(&dress, &err)) { // the test's time-out bounds it
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    }
    write_key("no key");
    Buf warning;
    buf_init(&warning, 1000);
    while (warning.len == 0) {
        (void)uv_run(&world.loop, UV_RUN_ONCE);
        assert_true(make(&dress, &err));
        send_domains_warn(world.domains, &warning);
    }
    assert_int_equal(dress.signer_count, 1);
    buf_done(&warning);
}

static void a_key_lies_below_the_folders_of_secrets_only(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    put("acme", "", "file:/etc/passwd");
    assert_false(make(&dress, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_non_null(strstr(err.text, "below none of the folders"));
}

static void a_key_may_be_in_the_environment(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    assert_int_equal(setenv("DRESS_TEST_KEY", ED25519_PEM, 1), 0);
    put("acme", "", "env:DRESS_TEST_KEY");
    assert_true(make(&dress, &err));
    put("acme", "", "env:DRESS_TEST_NO_KEY");
    assert_false(make(&dress, &err));
    assert_non_null(strstr(err.text, "env:DRESS_TEST_NO_KEY"));
    put("acme", "", "vault:secret/dkim");
    assert_false(make(&dress, &err));
    assert_non_null(strstr(err.text, "vault: is not read directly"));
}

static void a_key_of_a_domain_that_is_gone_is_not_read_any_more(void **state)
{
    (void)state;
    Dress dress;
    Error err = {0};
    Str text;
    const SecretName name = {STR("acme"), STR("dkim"), STR("acme.test/e1")};
    write_key(ED25519_PEM);
    put("acme", "", file_reference());
    assert_true(make(&dress, &err));
    assert_true(secrets_use(world.secrets, &name, &text, &err));
    assert_true(
        send_domains_changed(world.domains, STR("acme"), STR("acme.test"), STR_EMPTY, &err));
    assert_false(secrets_use(world.secrets, &name, &text, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_domain_without_an_entry_has_its_own_sender_and_no_signature),
        IN_WORLD(a_mail_to_many_has_a_list_id),
        IN_WORLD(a_test_of_a_template_version_says_so_and_nothing_else_can),
        IN_WORLD(the_tenants_own_entry_comes_before_the_platforms),
        IN_WORLD(the_return_path_says_whose_address_it_is),
        IN_WORLD(complaints_come_back_only_below_the_senders_domain),
        IN_WORLD(a_key_that_cannot_be_read_makes_the_mail_wait),
        IN_WORLD(a_key_that_was_read_signs_while_its_file_is_away),
        IN_WORLD(a_file_that_holds_no_key_any_more_leaves_the_one_before),
        IN_WORLD(a_key_lies_below_the_folders_of_secrets_only),
        IN_WORLD(a_key_of_a_domain_that_is_gone_is_not_read_any_more),
        IN_WORLD(a_key_may_be_in_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
