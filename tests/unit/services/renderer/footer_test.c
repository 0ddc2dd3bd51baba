// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "services/renderer/footer.h"

#define NOTIFICATION "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define ACCEPTED_US INT64_C(1790000000000000)

static const char ADDRESS[] = "Acme <Ltd> & Co\n1 High Street";
static uint8_t HASH[ADDRESS_HASH_LEN] = {7};

typedef struct World {
    Arena *arena;
    MasterKey *master;
    OptOutLinks links;
    Request request;
    Stentor__V1__Meta meta;
    Stentor__V1__TemplateVersion version;
    Stentor__V1__LocaleVariant variant;
    Stentor__V1__LocaleVariant *variants[1];
    Draft draft;
} World;

static World w;

static char *copy(const char *text)
{
    return arena_cstr(w.arena, str_from(text));
}

static int begin(void **state)
{
    (void)state;
    char text[132];
    Error err = {0};
    w = (World){.arena = arena_new(0)};
    master_key_generate(text);
    w.master = master_key_parse(str_from(text), &err);
    assert_true(
        opt_out_links_init(&w.links, w.master, "https://notify.example.com/", w.arena, &err));
    stentor__v1__meta__init(&w.meta);
    w.meta.tenant = copy("acme");
    w.meta.notification_id = copy(NOTIFICATION);
    stentor__v1__notification_request__init(&w.request);
    w.request.meta = &w.meta;
    w.request.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    w.request.category = STENTOR__V1__CATEGORY__CATEGORY_MARKETING;
    w.request.address_hash = pb_data(str_of(HASH, sizeof HASH));
    w.request.accepted_at_us = ACCEPTED_US;
    stentor__v1__template_version__init(&w.version);
    stentor__v1__locale_variant__init(&w.variant);
    w.variant.locale = copy("en-US");
    w.variants[0] = &w.variant;
    w.version.locales = w.variants;
    w.version.n_locales = 1;
    draft_init(&w.draft);
    return 0;
}

static int end(void **state)
{
    (void)state;
    draft_done(&w.draft);
    master_key_free(w.master);
    arena_free(w.arena);
    return 0;
}

static const char *link_at(int64_t now_us)
{
    Job job = {.request = &w.request, .now_us = now_us, .arena = w.arena};
    return opt_out_link(&w.links, &job);
}

static void the_link_says_who_and_what(void **state)
{
    (void)state;
    const char *link = link_at(ACCEPTED_US + 5);
    const char before[] = "https://notify.example.com/v1/opt-out/";
    assert_memory_equal(link, before, sizeof before - 1);
    OptOut what;
    Error err = {0};
    Str token = str_from(link + sizeof before - 1);
    assert_true(opt_out_verify(&w.links.key, token, ACCEPTED_US, w.arena, &what, &err));
    assert_true(str_eq(what.tenant, STR("acme")));
    assert_true(str_eq(what.notification_id, STR(NOTIFICATION)));
    assert_int_equal(what.category, CATEGORY_MARKETING);
    assert_memory_equal(what.address_hash, HASH, sizeof HASH);
    assert_string_equal(link, link_at(ACCEPTED_US + 99999999));
}

static void a_transactional_mail_has_no_link(void **state)
{
    (void)state;
    for (int category = 1; category < CATEGORY_COUNT; category++) {
        w.request.category = (Stentor__V1__Category)category;
        bool none = category == CATEGORY_TRANSACTIONAL || category == CATEGORY_SECURITY ||
                    category == CATEGORY_COMPLIANCE;
        assert_int_equal(link_at(ACCEPTED_US)[0] == '\0', none);
    }
    w.request.category = STENTOR__V1__CATEGORY__CATEGORY_MARKETING;
    w.request.channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    assert_string_equal(link_at(ACCEPTED_US), "");
}

static void without_a_public_url_there_are_no_links(void **state)
{
    (void)state;
    Error err = {0};
    assert_true(opt_out_links_init(&w.links, w.master, "", w.arena, &err));
    assert_string_equal(link_at(ACCEPTED_US), "");
}

static void a_public_url_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"notify.example.com", "ftp://x", "https://a b", "https://a>"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Error err = {0};
        assert_false(opt_out_links_init(&w.links, w.master, bad[i], w.arena, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        assert_non_null(strstr(err.text, "STENTOR_RENDERER_PUBLIC_URL"));
    }
}

static void add_footer(const char *html, const char *text)
{
    RenderFailure failure = {.code = FAILURE_NONE};
    buf_clear(&w.draft.html);
    buf_clear(&w.draft.text);
    buf_cstr(&w.draft.html, html);
    buf_cstr(&w.draft.text, text);
    assert_true(footer_add(&w.draft, &w.version, "en-US", ADDRESS, &failure));
}

static void the_address_goes_before_the_end_of_the_body(void **state)
{
    (void)state;
    const char shown[] =
        "<p style=\"font-size:12px\">Acme &lt;Ltd&gt; &amp; Co<br>1 High Street</p>";
    add_footer("<html><body>Hi</BODY></html>", "Hi");
    assert_string_equal(
        buf_c(&w.draft.html), arena_printf(w.arena, "<html><body>Hi%s</BODY></html>", shown));
    assert_string_equal(buf_c(&w.draft.text), "Hi\n\nAcme <Ltd> & Co\n1 High Street\n");
    add_footer("<p>Hi", "");
    assert_string_equal(buf_c(&w.draft.html), arena_printf(w.arena, "<p>Hi%s", shown));
    assert_int_equal(w.draft.text.len, 0);
}

static void transactional_mail_shows_it_only_where_the_tenant_says_so(void **state)
{
    static const struct {
        int category;
        int channel;
        bool wanted, wanted_in_every;
    } rows[] = {
        {STENTOR__V1__CATEGORY__CATEGORY_MARKETING, CHANNEL_EMAIL, true, true},
        {STENTOR__V1__CATEGORY__CATEGORY_SOCIAL, CHANNEL_EMAIL, true, true},
        {STENTOR__V1__CATEGORY__CATEGORY_TRANSACTIONAL, CHANNEL_EMAIL, false, true},
        {STENTOR__V1__CATEGORY__CATEGORY_SECURITY, CHANNEL_EMAIL, false, true},
        {STENTOR__V1__CATEGORY__CATEGORY_MARKETING, CHANNEL_SMS, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w.request.category = (Stentor__V1__Category)rows[i].category;
        w.request.channel = (Stentor__V1__Channel)rows[i].channel;
        assert_int_equal(footer_is_wanted(&w.request, false), rows[i].wanted);
        assert_int_equal(footer_is_wanted(&w.request, true), rows[i].wanted_in_every);
    }
}

static void a_template_that_shows_it_gets_none(void **state)
{
    (void)state;
    w.variant.html = copy("<p>{{physical_address}}</p>");
    add_footer("<p>Acme</p>", "Acme");
    assert_string_equal(buf_c(&w.draft.html), "<p>Acme</p>");
    assert_string_equal(buf_c(&w.draft.text), "Acme");
}

static void too_long_a_mail_fails_with_the_reason(void **state)
{
    (void)state;
    RenderFailure failure = {.code = FAILURE_NONE};
    buf_clear(&w.draft.html);
    while (buf_cstr(&w.draft.html, "0123456789abcdef")) {
    }
    w.draft.html.full = false;
    assert_false(footer_add(&w.draft, &w.version, "en-US", ADDRESS, &failure));
    assert_int_equal(failure.code, FAILURE_RENDER);
}

static void variables_are_there_and_the_link_is_ours(void **state)
{
    (void)state;
    json_t *variables = json_object();
    json_object_set_new(variables, "unsubscribe_url", json_string("https://evil.example"));
    footer_variables(variables, "", "", "");
    assert_string_equal(
        json_string_value(json_object_get(variables, "unsubscribe_url")), "https://evil.example");
    assert_string_equal(json_string_value(json_object_get(variables, "physical_address")), "");
    footer_variables(
        variables, "https://ours.example", "https://ours.example/choices", "1 High Street");
    assert_string_equal(
        json_string_value(json_object_get(variables, "unsubscribe_url")), "https://ours.example");
    assert_string_equal(
        json_string_value(json_object_get(variables, "physical_address")), "1 High Street");
    json_decref(variables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_link_says_who_and_what, begin, end),
        cmocka_unit_test_setup_teardown(a_transactional_mail_has_no_link, begin, end),
        cmocka_unit_test_setup_teardown(without_a_public_url_there_are_no_links, begin, end),
        cmocka_unit_test_setup_teardown(a_public_url_that_is_none_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(the_address_goes_before_the_end_of_the_body, begin, end),
        cmocka_unit_test_setup_teardown(
            transactional_mail_shows_it_only_where_the_tenant_says_so, begin, end),
        cmocka_unit_test_setup_teardown(a_template_that_shows_it_gets_none, begin, end),
        cmocka_unit_test_setup_teardown(too_long_a_mail_fails_with_the_reason, begin, end),
        cmocka_unit_test_setup_teardown(variables_are_there_and_the_link_is_ours, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
