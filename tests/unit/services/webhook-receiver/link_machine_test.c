// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>

#include "common/base/arena.h"
#include "services/webhook-receiver/link_machine.h"

#define SAFARI                                                                                     \
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "    \
    "Gecko) Version/18.1 Mobile/15E148 Safari/604.1"
#define SOON_US INT64_C(10000000)

static LinkVisit visit(const char *agent)
{
    return (LinkVisit){
        .method = STR("GET"),
        .user_agent = str_from(agent),
        .purpose = STR_EMPTY,
        .age_us = SOON_US,
    };
}

static void a_browser_is_a_recipients(void **state)
{
    (void)state;
    static const char *const rows[] = {
        SAFARI,
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0",
        "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.4.0",
        "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; Microsoft Outlook 16.0.5134)",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LinkVisit one = visit(rows[i]);
        assert_false(link_visit_is_machine(&one, SOON_US));
    }
}

static void proxies_scanners_and_programs_are_machines(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "Mozilla/5.0", // Apple's Mail Privacy Protection
        "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
        "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html",
        "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/131.0.0.0",
        "python-requests/2.32.3",
        "curl/7.88.1",
        "Go-http-client/1.1",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LinkVisit one = visit(rows[i]);
        assert_true(link_visit_is_machine(&one, SOON_US));
    }
}

static void a_head_a_prefetch_and_what_comes_at_once_are_machines(void **state)
{
    (void)state;
    LinkVisit one = visit(SAFARI);
    one.method = STR("HEAD");
    assert_true(link_visit_is_machine(&one, SOON_US));
    one = visit(SAFARI);
    one.purpose = STR("prefetch;prerender");
    assert_true(link_visit_is_machine(&one, SOON_US));
    one = visit(SAFARI);
    one.age_us = SOON_US - 1;
    assert_true(link_visit_is_machine(&one, SOON_US));
    assert_false(link_visit_is_machine(&one, 0));
}

static void the_third_of_many_links_at_once_is_a_scanners(void **state)
{
    (void)state;
    LinkBursts *bursts = xcalloc(1, sizeof *bursts);
    Str mail = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD");
    assert_false(link_bursts_note(bursts, mail, 1, 1000000));
    assert_false(link_bursts_note(bursts, mail, 1, 1100000)); // the same one twice is one
    assert_false(link_bursts_note(bursts, mail, 2, 1200000));
    assert_false(link_bursts_note(bursts, mail, 1, 1200000));
    assert_true(link_bursts_note(bursts, mail, 3, 1300000));
    assert_true(link_bursts_note(bursts, mail, 4, 1400000));
    assert_false(link_bursts_note(bursts, mail, 5, 1000000 + LINK_BURST_US + 1));
    Str other = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFE");
    assert_false(link_bursts_note(bursts, other, 3, 1300000));
    free(bursts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_browser_is_a_recipients),
        cmocka_unit_test(proxies_scanners_and_programs_are_machines),
        cmocka_unit_test(a_head_a_prefetch_and_what_comes_at_once_are_machines),
        cmocka_unit_test(the_third_of_many_links_at_once_is_a_scanners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
