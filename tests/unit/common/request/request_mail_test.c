// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/request/request_mail.h"

static Arena *arena;
static MailAddress cc[MAIL_RECIPIENTS_MAX];
static MailAddress bcc[2];
static RequestMail mail;

static int begin(void **state)
{
    (void)state;
    arena = arena_new(0);
    memset(cc, 0, sizeof cc);
    cc[0] = (MailAddress){STR("Cleo@Example.com"), STR("Cleo")};
    bcc[0] = (MailAddress){STR("dora@m\xc3\xbcnchen.example"), STR_EMPTY};
    mail = (RequestMail){
        .cc = cc,
        .bcc = bcc,
        .cc_count = 1,
        .bcc_count = 1,
        .reply_to = STR("help@example.com"),
        .list_id = STR("news.example.com"),
    };
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static void expect_fault(Channel channel, const char *field, const char *part)
{
    FieldError err = {.field = ""};
    assert_false(request_mail_check(&mail, channel, STR("ada@example.com"), arena, &err));
    assert_string_equal(err.field, field);
    assert_non_null(strstr(err.text, part));
}

static void good_values_are_taken_and_domains_become_labels(void **state)
{
    (void)state;
    FieldError err = {.field = ""};
    assert_true(request_mail_check(&mail, CHANNEL_EMAIL, STR("ada@example.com"), arena, &err));
    assert_true(str_eq(bcc[0].address, STR("dora@xn--mnchen-3ya.example")));
}

static void another_channel_has_no_copies(void **state)
{
    (void)state;
    expect_fault(CHANNEL_SMS, "cc", "only an e-mail");
    mail.cc_count = mail.bcc_count = 0;
    expect_fault(CHANNEL_SMS, "reply_to", "only an e-mail");
}

static void a_wrong_address_is_named_by_its_place(void **state)
{
    (void)state;
    cc[1] = (MailAddress){STR("no address"), STR_EMPTY};
    mail.cc_count = 2;
    expect_fault(CHANNEL_EMAIL, "cc[1]", "");
    mail.cc_count = 1;
    bcc[0].name = STR("a\nBcc: x");
    expect_fault(CHANNEL_EMAIL, "bcc[0]", "");
    bcc[0].name = STR_EMPTY;
    mail.reply_to = STR("nowhere");
    expect_fault(CHANNEL_EMAIL, "reply_to", "");
}

static void a_mailbox_gets_the_mail_once(void **state)
{
    (void)state;
    bcc[0].address = STR("cleo@example.com");
    expect_fault(CHANNEL_EMAIL, "bcc[0]", "gets the mail already");
    bcc[0].address = STR("ADA@example.com"); // `to`
    expect_fault(CHANNEL_EMAIL, "bcc[0]", "gets the mail already");
}

static void fifty_get_a_mail_at_most(void **state)
{
    (void)state;
    FieldError err = {.field = ""};
    for (size_t i = 1; i < 49; i++) {
        cc[i].address = str_from(arena_printf(arena, "p%zu@example.com", i));
        cc[i].name = STR_EMPTY;
    }
    mail.cc_count = 48;
    assert_true(request_mail_check(&mail, CHANNEL_EMAIL, STR("ada@example.com"), arena, &err));
    mail.cc_count = 49;
    expect_fault(CHANNEL_EMAIL, "cc", "51 recipients");
}

static void a_list_id_is_a_dotted_name(void **state)
{
    (void)state;
    static const char *const bad[] = {"news",  ".news.x", "news.x.",    "a..b",
                                      "a b.c", "<a.b>",   "a.b\r\nX: y"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mail.list_id = str_from(bad[i]);
        expect_fault(CHANNEL_EMAIL, "list_id", "RFC 2919");
    }
}

static void an_inline_image_has_a_content_id(void **state)
{
    (void)state;
    FieldError err = {.field = ""};
    MailAttachment file = {.id = STR("att_1"), .content_id = STR_EMPTY};
    mail.attachments = &file;
    mail.attachment_count = 1;
    assert_true(request_mail_check(&mail, CHANNEL_EMAIL, STR("ada@example.com"), arena, &err));
    file.shown = true;
    expect_fault(CHANNEL_EMAIL, "attachments[0].content_id", "cid:");
    file.content_id = STR("logo>");
    expect_fault(CHANNEL_EMAIL, "attachments[0].content_id", "cid:");
    file.content_id = STR("logo");
    assert_true(request_mail_check(&mail, CHANNEL_EMAIL, STR("ada@example.com"), arena, &err));
    file.shown = false; // then nothing shows it
    expect_fault(CHANNEL_EMAIL, "attachments[0].content_id", "cid:");
}

static void what_may_be_opted_out_of_is_not_copied(void **state)
{
    (void)state;
    FieldError err = {.field = ""};
    assert_true(request_mail_may_copy(NULL, CATEGORY_MARKETING, &err));
    assert_true(request_mail_may_copy(&mail, CATEGORY_TRANSACTIONAL, &err));
    assert_false(request_mail_may_copy(&mail, CATEGORY_MARKETING, &err));
    assert_string_equal(err.field, "cc");
    mail.cc_count = mail.bcc_count = 0;
    assert_true(request_mail_may_copy(&mail, CATEGORY_MARKETING, &err)); // Reply-To alone
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(good_values_are_taken_and_domains_become_labels),
        FRESH(another_channel_has_no_copies),
        FRESH(a_wrong_address_is_named_by_its_place),
        FRESH(a_mailbox_gets_the_mail_once),
        FRESH(fifty_get_a_mail_at_most),
        FRESH(a_list_id_is_a_dotted_name),
        FRESH(an_inline_image_has_a_content_id),
        FRESH(what_may_be_opted_out_of_is_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
