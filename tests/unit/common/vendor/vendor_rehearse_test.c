// SPDX-License-Identifier: Apache-2.0
// The ways of vendors to try a mail without sending it: sandbox_mode of twilio.com/docs/sendgrid,
// "Sandbox Mode"; o:testmode of documentation.mailgun.com, "Sending in Test Mode";
// POSTMARK_API_TEST of postmarkapp.com/developer, "API overview".
#include "common/vendor/vendor_api.h"
#include "tests/unit/common/vendor/vendor_case.h"

typedef struct Way {
    const char *vendor;
    const char *mark; // in the request that sends nothing, and in no other
    bool own_secret;  // it has the account's secret
} Way;

static const Way ways[] = {
    {"sendgrid", "\"mail_settings\":{\"sandbox_mode\":{\"enable\":true}}", true},
    {"mailgun", "name=\"o:testmode\"\r\n\r\nyes\r\n", true},
    {"postmark", "X-Postmark-Server-Token: POSTMARK_API_TEST\n", false},
};
static const VendorPair settings[] = {{{"domain", 6}, {"mg.example.com", 14}}};

static VendorAccount account_of(const char *vendor)
{
    bool domain = strcmp(vendor, "mailgun") == 0;
    return (VendorAccount){
        .name = STR("main"),
        .secret = STR("the-secret"),
        .settings = settings,
        .setting_count = domain ? 1 : 0};
}

static const char *made(
    bool (*make)(
        const VendorMail *, const VendorAccount *, int64_t, Arena *, VendorRequest *, Error *),
    const char *vendor, Arena *arena)
{
    VendorMail mail = case_mail();
    VendorAccount account = account_of(vendor);
    VendorRequest request = {0};
    Error err = {0};
    if (!make(&mail, &account, 0, arena, &request, &err)) {
        fail_msg("%s", err.text);
    }
    return arena_printf(arena, "%s" STR_FMT, case_headers(&request, arena), STR_ARG(request.body));
}

static void a_rehearsal_says_that_nothing_is_to_be_sent(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const VendorApi *api = vendor_find(str_from(ways[i].vendor));
        const char *real = made(api->build, ways[i].vendor, arena);
        const char *tried = made(api->rehearse, ways[i].vendor, arena);
        assert_null(strstr(real, ways[i].mark));
        assert_non_null(strstr(tried, ways[i].mark));
        assert_non_null(strstr(tried, "bob@example.org"));
        if (!ways[i].own_secret) {
            assert_null(strstr(tried, "the-secret"));
        }
    }
    arena_free(arena);
}

static void no_other_vendor_has_a_way(void **state)
{
    (void)state;
    size_t count = 0;
    for (size_t n = 0; vendor_at(n) != NULL; n++) {
        count += vendor_at(n)->rehearse != NULL;
    }
    assert_int_equal(count, sizeof ways / sizeof *ways);
}

static void what_cannot_be_built_cannot_be_rehearsed(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const VendorApi *api = vendor_find(str_from(ways[i].vendor));
        VendorMail mail = case_mail();
        VendorAccount account = account_of(ways[i].vendor);
        VendorRequest request = {0};
        Error built = {0};
        Error rehearsed = {0};
        mail.to.address = STR_EMPTY;
        mail.message = STR_EMPTY;
        assert_false(api->build(&mail, &account, 0, arena, &request, &built));
        assert_false(api->rehearse(&mail, &account, 0, arena, &request, &rehearsed));
        assert_string_equal(rehearsed.text, built.text);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rehearsal_says_that_nothing_is_to_be_sent),
        cmocka_unit_test(no_other_vendor_has_a_way),
        cmocka_unit_test(what_cannot_be_built_cannot_be_rehearsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
