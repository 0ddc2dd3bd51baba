// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>

#include "services/webhook-receiver/sns_link.h"

typedef struct Asked {
    SnsLink *link;
    bool answered;
    char why[240];
} Asked;

static void on_answered(void *ctx, Str body, const Error *err)
{
    (void)body;
    Asked *asked = ctx;
    asked->answered = true;
    (void)str_to_c(str_from(err == NULL ? "" : err->text), asked->why, sizeof asked->why);
}

static void on_freed(void *ctx)
{
    ((Asked *)ctx)->link = NULL;
}

// What the asking ends with; "": well.
static void ask(const char *origin, const char *url, bool confirms, char why[240])
{
    uv_loop_t loop;
    Asked asked = {0};
    Error err = {0};
    assert_int_equal(uv_loop_init(&loop), 0);
    asked.link = sns_link_new(&loop, origin, &err);
    assert_non_null(asked.link);
    if (confirms) {
        sns_confirm(asked.link, str_from(url), on_answered, &asked);
    } else {
        sns_certificate(asked.link, str_from(url), on_answered, &asked);
    }
    while (!asked.answered) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    sns_link_free(asked.link, on_freed, &asked);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_null(asked.link);
    assert_int_equal(uv_loop_close(&loop), 0);
    memcpy(why, asked.why, sizeof asked.why);
}

static void neither_a_certificate_nor_a_confirmation_is_fetched_inside_the_network(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "https://127.0.0.1:9/x.pem", "https://10.0.0.1/x.pem", "https://169.254.169.254/latest"};
    char why[240];
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        for (int confirms = 0; confirms < 2; confirms++) {
            ask("", urls[i], confirms == 1, why);
            if (strstr(why, "the address is not one to send to") == NULL) {
                fail_msg("%s: '%s'", urls[i], why);
            }
        }
    }
}

static void nothing_is_fetched_in_clear(void **state)
{
    (void)state;
    char why[240];
    ask("", "http://sns.eu-west-1.amazonaws.com/x.pem", false, why);
    assert_non_null(strstr(why, "must begin with https://"));
}

static void an_origin_of_the_operator_may_be_inside_the_network(void **state)
{
    (void)state;
    char why[240];
    ask("http://127.0.0.1:9", "https://sns.eu-west-1.amazonaws.com/x.pem", false, why);
    assert_null(strstr(why, "not one to send to"));
    assert_null(strstr(why, "must begin with"));
    assert_non_null(strstr(why, "SNS was asked")); // it was tried: nothing listens there
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neither_a_certificate_nor_a_confirmation_is_fetched_inside_the_network),
        cmocka_unit_test(nothing_is_fetched_in_clear),
        cmocka_unit_test(an_origin_of_the_operator_may_be_inside_the_network),
    };
    (void)signal(SIGPIPE, SIG_IGN); // as in every service
    return cmocka_run_group_tests(tests, NULL, NULL);
}
