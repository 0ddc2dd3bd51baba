// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "services/gateway/preferences/preference_page.h"

static PreferenceChoice choices[] = {
    {CATEGORY_MARKETING, CHANNEL_EMAIL, true},
    {CATEGORY_MARKETING, CHANNEL_SMS, false},
    {CATEGORY_SOCIAL, CHANNEL_EMAIL, true},
};
enum { COUNT = sizeof choices / sizeof *choices };

static void set(bool a, bool b, bool c)
{
    choices[0].on = a;
    choices[1].on = b;
    choices[2].on = c;
}

static void assert_choices(bool a, bool b, bool c)
{
    assert_int_equal(choices[0].on, a);
    assert_int_equal(choices[1].on, b);
    assert_int_equal(choices[2].on, c);
}

static void a_form_says_what_is_on(void **state)
{
    (void)state;
    set(true, false, true);
    assert_true(
        preference_form_read(STR("on=marketing.sms&on=social.email&do=save"), choices, COUNT));
    assert_choices(false, true, true);
    assert_true(preference_form_read(STR("on=social.email&do=none"), choices, COUNT));
    assert_choices(false, false, false);
    assert_true(preference_form_read(STR("do=all"), choices, COUNT));
    assert_choices(true, true, true);
    assert_true(preference_form_read(STR("on=marketing.push&do=save"), choices, COUNT));
    assert_choices(false, false, false); // one that is not shown is passed over
}

static void what_is_no_form_of_the_page_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",    "x=y",         "on=marketing.email",         "on=marketing&do=save",
        "do=", "do=save&x=1", "List-Unsubscribe=One-Click",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_false(preference_form_read(str_from(rows[i]), choices, COUNT));
    }
}

static bool read_json(const char *text, Arena *arena)
{
    ApiBody body = {0};
    bool ok =
        api_body_parse(&body, str_from(text), arena) && preference_json_read(&body, choices, COUNT);
    assert_int_equal(ok, body.problem.status == 0);
    api_body_free(&body);
    return ok;
}

static void json_changes_what_it_names(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    set(true, false, true);
    assert_true(read_json(
        "{\"preferences\":[{\"category\":\"social\",\"channel\":\"email\",\"on\":false}]}", arena));
    assert_choices(true, false, false);
    assert_true(read_json("{\"preferences\":[]}", arena));
    assert_choices(true, false, false);
    static const char *const rows[] = {
        "{}",
        "[]",
        "{\"preferences\":1}",
        "{\"preferences\":[1]}",
        "{\"preferences\":[{\"category\":\"security\",\"channel\":\"email\",\"on\":false}]}",
        "{\"preferences\":[{\"category\":\"social\",\"channel\":\"email\",\"on\":\"no\"}]}",
        "{\"preferences\":[],\"x\":1}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_false(read_json(rows[i], arena));
    }
    arena_free(arena);
}

static void the_page_shows_the_choices_and_runs_no_script(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 64 * 1024);
    set(true, false, true);
    preference_page_html(&out, choices, COUNT, false);
    const char *page = buf_c(&out);
    assert_non_null(strstr(page, "value=\"marketing.email\" checked> Offers and news (email)"));
    assert_non_null(strstr(page, "value=\"marketing.sms\"> Offers and news (sms)"));
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "are stored"));
    buf_clear(&out);
    preference_page_json(&out, choices, 1);
    assert_string_equal(
        buf_c(&out),
        "{\"preferences\":[{\"category\":\"marketing\",\"channel\":\"email\",\"on\":true}]}");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_form_says_what_is_on),
        cmocka_unit_test(what_is_no_form_of_the_page_is_refused),
        cmocka_unit_test(json_changes_what_it_names),
        cmocka_unit_test(the_page_shows_the_choices_and_runs_no_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
