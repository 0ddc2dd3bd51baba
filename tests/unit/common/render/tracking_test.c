// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/render/tracking.h"

#define NOW_US INT64_C(1790000000000000)
#define HOST "https://links.acme.test"

static const Str UNTOUCHED[] = {
    {"https://notify.test/v1/opt-out/", 31},
    {"https://acme.test/leave?me", 26},
};

static const MailLinkKey KEY = {.bytes = {{7}}, .count = 1};

static Tracking tracking(bool clicks, bool opens)
{
    return (Tracking){
        .key = &KEY,
        .url = STR(HOST),
        .tenant = STR("acme"),
        .notification_id = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD"),
        .issued_at_us = NOW_US,
        .clicks = clicks,
        .opens = opens,
        .untouched = UNTOUCHED,
        .untouched_count = 2,
    };
}

// The html after it, with "[N:URL]" in the place of each of our addresses, so that a test reads.
static const char *rewrite(const Tracking *how, const char *html, size_t *ret_count, Arena *arena)
{
    static char shown[8192];
    Buf text;
    buf_init(&text, 1024 * 1024);
    buf_cstr(&text, html);
    *ret_count = tracking_apply(how, &text);
    Buf out;
    buf_init(&out, sizeof shown - 1);
    Str rest = str_of(buf_c(&text), text.len); // with a NUL behind it, for strcspn
    while (rest.len > 0) {
        bool click = str_starts(rest, STR(HOST "/v1/click/"));
        if (!click && !str_starts(rest, STR(HOST "/v1/open/"))) {
            buf_char(&out, rest.ptr[0]);
            rest = str_slice(rest, 1, rest.len);
            continue;
        }
        rest = str_slice(rest, strlen(click ? HOST "/v1/click/" : HOST "/v1/open/"), rest.len);
        size_t len = strcspn(rest.ptr, "\"'.> ");
        MailLink link;
        Error err = {0};
        assert_true(mail_link_open(&KEY, str_slice(rest, 0, len), NOW_US, arena, &link, &err));
        assert_int_equal(link.kind, click ? MAIL_LINK_CLICK : MAIL_LINK_OPEN);
        buf_printf(&out, "[%u:" STR_FMT "]", link.index, STR_ARG(link.url));
        rest = str_slice(rest, len, rest.len);
    }
    memcpy(shown, buf_c(&out), out.len + 1);
    buf_done(&out);
    buf_done(&text);
    return shown;
}

static void each_link_leads_through_us_and_its_url_is_what_a_browser_reads(void **state)
{
    (void)state;
    static const struct {
        const char *html, *after;
    } rows[] = {
        {"<a href=\"https://a.test/x\">x</a>", "<a href=\"[1:https://a.test/x]\">x</a>"},
        {"<A CLASS=b HREF='http://a.test'>x</A>", "<A CLASS=b HREF='[1:http://a.test]'>x</A>"},
        {"<a href=https://a.test/x>x</a>", "<a href=[1:https://a.test/x]>x</a>"},
        {"<a href=\"https://a.test/?x=1&amp;y=2&#39;\">",
         "<a href=\"[1:https://a.test/?x=1&y=2']\">"},
        {"<a href=\"https://a.test/?x=1&copy=2\">", "<a href=\"[1:https://a.test/?x=1&copy=2]\">"},
        {"<a href=\" https://a.test/ \">", "<a href=\"[1:https://a.test/]\">"},
        {"<map><area href=\"https://a.test/\"></map>",
         "<map><area href=\"[1:https://a.test/]\"></map>"},
        {"<a href=\"https://a.test\"><a href=\"https://b.test\">",
         "<a href=\"[1:https://a.test]\"><a href=\"[2:https://b.test]\">"},
    };
    Arena *arena = arena_new(0);
    Tracking how = tracking(true, false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t count = 0;
        assert_string_equal(rewrite(&how, rows[i].html, &count, arena), rows[i].after);
        assert_true(count > 0);
    }
    arena_free(arena);
}

static void what_is_no_web_link_or_is_ours_stays(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "<p>no link</p>",
        "<a name=\"top\">x</a>",
        "<a href=\"\">x</a>",
        "<a href=\"#top\">x</a>",
        "<a href=\"/relative\">x</a>",
        "<a href=\"mailto:a@example.com\">x</a>",
        "<a href=\"tel:+4930\">x</a>",
        "<a href=\"javascript:alert(1)\">x</a>",
        "<a href=\"https://notify.test/v1/opt-out/oot_x\">x</a>",
        "<a href=\"https://acme.test/leave?me\">x</a>",
        "<a clicktracking=\"off\" href=\"https://a.test/\">x</a>",
        "<!-- <a href=\"https://a.test/\">x</a> -->",
        "<!--[if mso]><a href=\"https://a.test/\">x</a><![endif]-->",
        "<style>a[href=\"<a href='https://a.test/'>\"]{}</style>",
        "<link href=\"https://a.test/style.css\">",
        "<img src=\"https://a.test/x.png\">",
        "<a href=\"https://a.test/",
    };
    Arena *arena = arena_new(0);
    Tracking how = tracking(true, false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t count = 1;
        assert_string_equal(rewrite(&how, rows[i], &count, arena), rows[i]);
        assert_int_equal(count, 0);
    }
    arena_free(arena);
}

static void the_pixel_is_the_last_in_the_body(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    size_t count = 0;
    Tracking how = tracking(false, true);
    const char *after =
        rewrite(&how, "<body><a href=\"https://a.test/\">x</a></BODY></html>", &count, arena);
    assert_int_equal(count, 1);
    assert_non_null(strstr(after, "<a href=\"https://a.test/\">x</a><img src=\"[0:].gif\""));
    assert_non_null(strstr(after, "height:1px\"></BODY></html>"));
    after = rewrite(&how, "<p>x</p>", &count, arena);
    assert_non_null(strstr(after, "<p>x</p><img src=\"[0:].gif\""));
    arena_free(arena);
}

static void what_does_not_fit_stays_as_it_is(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Buf html;
    buf_init(&html, 60); // no room for a token
    buf_cstr(&html, "<a href=\"https://a.test/\">x</a>");
    Tracking how = tracking(true, true);
    assert_int_equal(tracking_apply(&how, &html), 0);
    assert_true(str_eq(buf_view(&html), STR("<a href=\"https://a.test/\">x</a>")));
    assert_false(html.full);
    buf_done(&html);
    buf_init(&html, 4 * 1024 * 1024);
    for (int i = 0; i < 2000; i++) {
        buf_printf(&html, "<a href=\"https://a.test/%d\">x</a>", i);
    }
    size_t before = html.len;
    size_t count = tracking_apply(&how, &html);
    assert_true(count > 300 && count < TRACKING_LINKS_MAX);
    assert_true(html.len < before + TRACKING_ADDED_MAX + 1000);
    assert_true(str_ends(
        str_slice(buf_view(&html), 0, html.len), STR("height:1px\">"))); // the pixel all the same
    buf_done(&html);
    arena_free(arena);
}

static void the_same_mail_is_tracked_in_the_same_way(void **state)
{
    (void)state;
    Tracking how = tracking(true, true);
    Buf first, second;
    buf_init(&first, 64 * 1024);
    buf_init(&second, 64 * 1024);
    buf_cstr(&first, "<a href=\"https://a.test/\">x</a>");
    buf_cstr(&second, "<a href=\"https://a.test/\">x</a>");
    assert_int_equal(tracking_apply(&how, &first), 2);
    assert_int_equal(tracking_apply(&how, &second), 2);
    assert_true(str_eq(buf_view(&first), buf_view(&second)));
    buf_done(&first);
    buf_done(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_link_leads_through_us_and_its_url_is_what_a_browser_reads),
        cmocka_unit_test(what_is_no_web_link_or_is_ours_stays),
        cmocka_unit_test(the_pixel_is_the_last_in_the_body),
        cmocka_unit_test(what_does_not_fit_stays_as_it_is),
        cmocka_unit_test(the_same_mail_is_tracked_in_the_same_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
