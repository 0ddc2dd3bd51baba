// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/file.h"
#include "services/webhook-receiver/mail/mail_fields.h"
#include "services/webhook-receiver/mail/mail_parse.h"
#include "services/webhook-receiver/mail/mail_report.h"

#define SAMPLES STENTOR_SOURCE_DIR "/tests/unit/services/webhook-receiver/mail/samples/"

static Arena *arena;

static int begin(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static MailReport read_text(Str mail)
{
    Buf json;
    MailReport report = {0};
    Error err = {0};
    buf_init(&json, MAIL_REPORT_MAX);
    assert_true(mail_parse(mail, &json));
    assert_true(mail_report_read(buf_view(&json), arena, &report, &err));
    buf_done(&json);
    return report;
}

static Str sample(const char *name)
{
    Str mail = STR_EMPTY;
    Error err = {0};
    assert_true(
        file_read(arena_printf(arena, SAMPLES "%s.eml", name), MAIL_BYTES_MAX, arena, &mail, &err));
    return mail;
}

static MailReport read_sample(const char *name)
{
    return read_text(sample(name));
}

#define assert_text(text, expected) assert_string_equal(arena_cstr(arena, (text)), (expected))

// The samples are as the servers write them; what differs from mail to mail is @...@ in them.
static void a_bounce_of_each_server_gives_its_recipient(void **state)
{
    (void)state;
    static const struct {
        const char *sample, *status;
    } ROWS[] = {
        {"postfix_failed", "5.1.1"}, {"exchange_failed", "5.1.10"}, {"gmail_failed", "5.1.1"},
        {"exim_failed", "5.0.0"},    {"wrong_charset", "5.1.1"},    {"policy_failed", "5.7.1"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        MailReport report = read_sample(ROWS[i].sample);
        assert_true(report.is_delivery && !report.is_feedback);
        assert_int_equal(report.recipient_count, 1);
        assert_text(str_trim(str_slice(report.recipients[0].final, 7, 99)), "@RECIPIENT@");
        assert_text(report.recipients[0].action, "failed");
        assert_text(report.recipients[0].status, ROWS[i].status);
        assert_true(str_find(report.recipients[0].diagnostic, '5') >= 0);
        assert_text(report.message_id, "<@NOTIFICATION@@acme.test>");
        assert_text(report.list_unsubscribe, "<https://mail.acme.test/v1/opt-out/@OPT_OUT@>");
    }
}

static void the_standards_example_has_three_recipients(void **state)
{
    (void)state;
    MailReport report = read_sample("rfc3464_appendix_e");
    assert_int_equal(report.recipient_count, 3);
    assert_text(report.recipients[0].status, "5.0.0 (permanent failure)");
    assert_text(
        report.recipients[0].diagnostic,
        "smtp;  550 'arathib@vnet.IBM.COM' is not a registered gateway user");
    assert_text(report.recipients[1].action, "delayed");
    assert_text(report.recipients[2].final, "rfc822;wsnell@sdcc13.ucsd.edu");
}

static void recipients_are_split_without_blank_lines_and_in_any_order(void **state)
{
    (void)state;
    MailReport report = read_sample("no_blank_lines");
    assert_int_equal(report.recipient_count, 2);
    assert_text(report.recipients[0].status, "4.2.2");
    assert_text(report.recipients[1].final, "RFC822; <@RECIPIENT@>");
    assert_text(report.recipients[1].status, "5.1.1 (bad mailbox)");
}

static void the_standards_complaint_is_read_behind_its_byte_order_mark(void **state)
{
    (void)state;
    MailReport report = read_sample("rfc5965_b2_feedback_report");
    assert_true(report.is_feedback && !report.is_delivery);
    assert_text(report.feedback_type, "abuse");
    assert_text(report.feedback_from, "<somespammer@example.net>");
    assert_int_equal(report.feedback_recipient_count, 2);
    assert_text(report.feedback_recipients[0], "<user@example.com>");
    assert_text(report.message_id, "8787KJKJ3K4J3K4J3K4J3.mail@example.net");
}

static void a_mail_without_a_machine_readable_part_has_none(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"vacation", "qmail_failed"};
    for (size_t i = 0; i < 2; i++) {
        MailReport report = read_sample(NAMES[i]);
        assert_false(report.is_delivery || report.is_feedback);
    }
    MailReport report = read_text(STR_EMPTY);
    assert_false(report.is_delivery || report.is_feedback);
}

static void a_mail_that_was_cut_behind_its_report_is_whole_enough(void **state)
{
    (void)state;
    Str whole = sample("exchange_failed");
    MailReport report = read_text(str_slice(whole, 0, whole.len - 500));
    assert_int_equal(report.recipient_count, 1);
    assert_text(report.recipients[0].status, "5.1.10");
}

// What a stranger may send: nothing of it takes more than its bounds.
static void depth_and_number_are_bounded(void **state)
{
    (void)state;
    Buf mail;
    buf_init(&mail, MAIL_BYTES_MAX);
    for (int i = 0; i < 10000; i++) {
        buf_printf(&mail, "Content-Type: multipart/mixed; boundary=\"b%d\"\r\n\r\n--b%d\r\n", i, i);
    }
    buf_cstr(&mail, "Content-Type: message/delivery-status\r\n\r\nFinal-Recipient: rfc822;a@b\r\n");
    MailReport report = read_text(buf_view(&mail));
    assert_int_equal(report.recipient_count, 0);
    buf_clear(&mail);
    buf_cstr(&mail, "Content-Type: message/delivery-status\r\n\r\n");
    for (int i = 0; i < 5000; i++) {
        buf_printf(&mail, "Final-Recipient: rfc822;a%d@b\r\nAction: failed\r\n\r\n", i);
    }
    report = read_text(buf_view(&mail));
    assert_int_equal(report.recipient_count, MAIL_RECIPIENTS_MAX);
    buf_clear(&mail);
    buf_cstr(&mail, "Content-Type: message/feedback-report\r\n\r\nFeedback-Type: ");
    for (int i = 0; i < 5000; i++) {
        buf_cstr(&mail, "abuse\r\n ");
    }
    buf_cstr(&mail, "\r\n");
    for (int i = 0; i < 500; i++) {
        buf_cstr(&mail, "Original-Rcpt-To: a@b\r\n");
    }
    report = read_text(buf_view(&mail));
    assert_int_equal(report.feedback_type.len, MAIL_VALUE_MAX);
    assert_int_equal(report.feedback_recipient_count, MAIL_ADDRESSES_MAX);
    buf_done(&mail);
}

static void fields_are_read_folded_bare_and_broken(void **state)
{
    (void)state;
    Str rest = STR("\n\nA: 1\n folded\r\n\tagain\r\nno field\r\n: none\r\nB :2\r\n\r\nC:\r\n x");
    MailField field;
    assert_true(mail_field_next(&rest, arena, &field));
    assert_true(field.first);
    assert_text(field.name, "A");
    assert_text(field.value, "1 folded again");
    assert_true(mail_field_next(&rest, arena, &field));
    assert_false(field.first);
    assert_text(field.name, "B");
    assert_text(field.value, "2");
    assert_true(mail_field_next(&rest, arena, &field));
    assert_true(field.first);
    assert_text(field.value, "x");
    assert_false(mail_field_next(&rest, arena, &field));
}

static void a_report_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"", "[]", "{", "\"x\"", "{\"delivery\":{}} {}"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        MailReport report;
        Error err = {0};
        assert_false(mail_report_read(str_from(BAD[i]), arena, &report, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
    }
}

static void members_of_the_wrong_type_are_left_out(void **state)
{
    (void)state;
    MailReport report;
    Error err = {0};
    assert_true(mail_report_read(
        STR("{\"delivery\":{\"recipients\":[1,{\"final\":2}]},\"feedback\":[],\"returned\":7}"),
        arena, &report, &err));
    assert_true(report.is_delivery && !report.is_feedback);
    assert_int_equal(report.recipient_count, 2);
    assert_int_equal(report.recipients[1].final.len, 0);
    assert_int_equal(report.message_id.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bounce_of_each_server_gives_its_recipient),
        cmocka_unit_test(the_standards_example_has_three_recipients),
        cmocka_unit_test(recipients_are_split_without_blank_lines_and_in_any_order),
        cmocka_unit_test(the_standards_complaint_is_read_behind_its_byte_order_mark),
        cmocka_unit_test(a_mail_without_a_machine_readable_part_has_none),
        cmocka_unit_test(a_mail_that_was_cut_behind_its_report_is_whole_enough),
        cmocka_unit_test(depth_and_number_are_bounded),
        cmocka_unit_test(fields_are_read_folded_bare_and_broken),
        cmocka_unit_test(a_report_that_is_none_is_refused),
        cmocka_unit_test(members_of_the_wrong_type_are_left_out),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
