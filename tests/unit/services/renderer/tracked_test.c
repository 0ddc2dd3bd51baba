// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/event.h"
#include "services/renderer/tracked.h"
#include "stentor/v1/config.pb-c.h"

static char HTML[] = "<a href=\"https://shop.test/\">x</a>";
static char LINKS[] = "https://links.acme.test/";

typedef struct World {
    Arena *arena;
    Tracked tracked;
    Request request;
    Stentor__V1__Meta meta;
    char tenant[8], id[40], address[32];
    Sender sender;
    Stentor__V1__MailDomain entry;
} World;

static World w;

static void put(const char *tenant, const char *domain, bool opens, bool clicks)
{
    Str payload;
    Error err = {0};
    stentor__v1__mail_domain__init(&w.entry);
    w.entry.tenant = arena_cstr(w.arena, str_from(tenant));
    w.entry.domain = arena_cstr(w.arena, str_from(domain));
    w.entry.tracking_url = LINKS;
    w.entry.track_opens = opens;
    w.entry.track_clicks = clicks;
    assert_true(event_pack(&w.entry.base, w.arena, &payload, &err));
    assert_true(
        mail_domains_put(w.tracked.domains, str_from(tenant), str_from(domain), payload, &err));
}

static int begin(void **state)
{
    (void)state;
    w = (World){.arena = arena_new(0), .tenant = "acme", .address = "hello@Acme.test"};
    memcpy(w.id, "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV", 31);
    w.tracked = (Tracked){
        .key = {.bytes = {{7}}, .count = 1},
        .domains = mail_domains_new(),
        .public_url = STR("https://notify.test"),
    };
    w.sender = (Sender){.address = w.address};
    stentor__v1__meta__init(&w.meta);
    w.meta.tenant = w.tenant;
    w.meta.notification_id = w.id;
    stentor__v1__notification_request__init(&w.request);
    w.request.meta = &w.meta;
    w.request.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    w.request.category = STENTOR__V1__CATEGORY__CATEGORY_MARKETING;
    w.request.accepted_at_us = INT64_C(1790000000000000);
    return 0;
}

static int end(void **state)
{
    (void)state;
    mail_domains_free(w.tracked.domains);
    arena_free(w.arena);
    return 0;
}

static size_t apply(const char *unsubscribe_url, Buf *html)
{
    Job job = {.request = &w.request, .arena = w.arena};
    json_t *variables = json_object();
    (void)json_object_set_new(variables, "unsubscribe_url", json_string(unsubscribe_url));
    buf_clear(html);
    buf_cstr(html, HTML);
    size_t count = tracked_apply(&w.tracked, &job, &w.sender, variables, html);
    json_decref(variables);
    return count;
}

static void it_is_off_until_the_domain_of_the_sender_has_it(void **state)
{
    (void)state;
    Buf html;
    buf_init(&html, 8192);
    assert_int_equal(apply("", &html), 0);
    put("acme", "other.test", true, true);
    put("other", "acme.test", true, true);
    assert_int_equal(apply("", &html), 0);
    put("acme", "acme.test", false, true);
    assert_int_equal(apply("", &html), 1);
    assert_non_null(strstr(buf_c(&html), "<a href=\"https://links.acme.test/v1/click/lnk_"));
    put("acme", "acme.test", false, false);
    assert_int_equal(apply("", &html), 0);
    assert_true(str_eq(buf_view(&html), str_from(HTML)));
    buf_done(&html);
}

static void the_platforms_entry_serves_a_domain_that_the_tenant_has_not(void **state)
{
    (void)state;
    Buf html;
    buf_init(&html, 8192);
    put("platform", "acme.test", true, false);
    assert_int_equal(apply("", &html), 1);
    put("acme", "acme.test", false, false);
    assert_int_equal(apply("", &html), 0);
    Error err = {0};
    assert_true(
        mail_domains_put(w.tracked.domains, STR("acme"), STR("acme.test"), STR_EMPTY, &err));
    assert_int_equal(apply("", &html), 1); // removed: the platform's again
    buf_done(&html);
}

static void security_and_unsubscribe_links_and_unknown_senders_are_not_tracked(void **state)
{
    (void)state;
    Buf html;
    buf_init(&html, 8192);
    put("acme", "acme.test", false, true);
    assert_int_equal(apply("https://shop.test/", &html), 0);
    w.request.category = STENTOR__V1__CATEGORY__CATEGORY_SECURITY;
    assert_int_equal(apply("", &html), 0);
    w.request.category = STENTOR__V1__CATEGORY__CATEGORY_TRANSACTIONAL;
    assert_int_equal(apply("", &html), 1);
    w.sender.address[0] = '\0';
    assert_int_equal(apply("", &html), 0);
    buf_done(&html);
}

static void an_entry_with_a_wrong_url_or_tenant_is_refused(void **state)
{
    (void)state;
    Str payload;
    Error err = {0};
    put("acme", "acme.test", true, true);
    w.entry.tracking_url = w.tenant; // "acme"
    assert_true(event_pack(&w.entry.base, w.arena, &payload, &err));
    assert_false(mail_domains_put(w.tracked.domains, STR("acme"), STR("acme.test"), payload, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "'tracking_url'"));
    assert_false(mail_domains_put(w.tracked.domains, STR("beta"), STR("acme.test"), payload, &err));
    assert_non_null(mail_domains_of(w.tracked.domains, STR("acme"), STR("a@acme.test")));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(it_is_off_until_the_domain_of_the_sender_has_it),
        TEST(the_platforms_entry_serves_a_domain_that_the_tenant_has_not),
        TEST(security_and_unsubscribe_links_and_unknown_senders_are_not_tracked),
        TEST(an_entry_with_a_wrong_url_or_tenant_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
