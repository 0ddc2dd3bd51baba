// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "services/dispatcher/vendor/smtp/smtp_options.h"
#include "services/dispatcher/vendor/smtp/smtp_reply.h"

static void expect_text(const SmtpReply *reply, const char *text)
{
    assert_true(str_eq(smtp_reply_text(reply), str_from(text)));
}

static void a_reply_is_the_same_in_one_piece_and_byte_by_byte(void **state)
{
    (void)state;
    Str all = STR("250-mail.example.com\r\n250-SIZE 1000\r\n250 HELP\r\n");
    SmtpReplyParser parser;
    smtp_reply_init(&parser);
    Str input = all;
    assert_int_equal(smtp_reply_feed(&parser, &input, NULL), SMTP_FEED_REPLY);
    assert_int_equal(input.len, 0);
    assert_int_equal(parser.reply.code, 250);
    expect_text(&parser.reply, "mail.example.com\nSIZE 1000\nHELP");
    for (size_t i = 0; i < all.len; i++) {
        Str one = str_slice(all, i, i + 1);
        SmtpFeed expected = i + 1 == all.len ? SMTP_FEED_REPLY : SMTP_FEED_MORE;
        assert_int_equal(smtp_reply_feed(&parser, &one, NULL), expected);
    }
    expect_text(&parser.reply, "mail.example.com\nSIZE 1000\nHELP");
}

static void replies_of_a_pipeline_come_one_by_one(void **state)
{
    (void)state;
    SmtpReplyParser parser;
    smtp_reply_init(&parser);
    Str input = STR("250 2.1.0 Ok\r\n550 5.1.1 <x@example.com>: unknown\r\n354 go\r\n2");
    assert_int_equal(smtp_reply_feed(&parser, &input, NULL), SMTP_FEED_REPLY);
    assert_string_equal(parser.reply.enhanced, "2.1.0");
    assert_int_equal(smtp_reply_feed(&parser, &input, NULL), SMTP_FEED_REPLY);
    assert_int_equal(parser.reply.code, 550);
    assert_string_equal(parser.reply.enhanced, "5.1.1");
    expect_text(&parser.reply, "<x@example.com>: unknown");
    assert_int_equal(smtp_reply_feed(&parser, &input, NULL), SMTP_FEED_REPLY);
    assert_string_equal(parser.reply.enhanced, "");
    assert_int_equal(smtp_reply_feed(&parser, &input, NULL), SMTP_FEED_MORE);
}

static void bytes_that_are_not_smtp_are_refused(void **state)
{
    (void)state;
    // clang-format off
    static const struct { const char *bytes; const char *why; } rows[] = {
        {"HTTP/1.1 400 Bad Request\r\n", "the server's line is not an smtp reply"},
        {"\r\n", "the server's line is not an smtp reply"},
        {"25\r\n", "the server's line is not an smtp reply"},
        {"150 x\r\n", "the server's line is not an smtp reply"},
        {"2500\r\n", "the server's line is not an smtp reply"},
        {"250-a\r\n251 b\r\n", "the server's reply changes from 250 to 251"},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SmtpReplyParser parser;
        smtp_reply_init(&parser);
        Str input = str_from(rows[i].bytes);
        Error err = {0};
        assert_int_equal(smtp_reply_feed(&parser, &input, &err), SMTP_FEED_BAD);
        assert_string_equal(err.text, rows[i].why);
        assert_int_equal(err.kind, ERROR_TRANSIENT);
    }
}

static void lines_and_replies_have_a_maximum(void **state)
{
    (void)state;
    char line[SMTP_LINE_MAX + 1];
    memset(line, 'x', sizeof line);
    SmtpReplyParser parser;
    smtp_reply_init(&parser);
    Error err = {0};
    Str input = {line, sizeof line};
    assert_int_equal(smtp_reply_feed(&parser, &input, &err), SMTP_FEED_BAD);
    assert_string_equal(err.text, "the server's line is longer than 2048 bytes");
    smtp_reply_init(&parser);
    SmtpFeed fed = SMTP_FEED_MORE;
    int fed_lines = 0;
    for (; fed == SMTP_FEED_MORE && fed_lines < 1000; fed_lines++) {
        Str more = STR("250-more\r\n");
        fed = smtp_reply_feed(&parser, &more, &err);
    }
    assert_int_equal(fed, SMTP_FEED_BAD);
    assert_int_equal(fed_lines, SMTP_LINES_MAX + 1);
}

static void text_for_events_is_one_masked_line_of_utf8(void **state)
{
    (void)state;
    SmtpReplyParser parser;
    smtp_reply_init(&parser);
    Str input = STR("550-5.1.1 no alice.smith@example.com here\r\n550 5.1.1 caf\xe9\tbar\r\n");
    assert_int_equal(smtp_reply_feed(&parser, &input, NULL), SMTP_FEED_REPLY);
    char text[512];
    smtp_reply_clean(&parser.reply, text, sizeof text);
    assert_string_equal(text, "no ali***@example.com here caf? bar");
    char few[8];
    smtp_reply_clean(&parser.reply, few, sizeof few);
    assert_true(str_is_utf8(str_from(few)));
}

static void enhanced_codes_are_read_strictly(void **state)
{
    (void)state;
    // clang-format off
    static const struct { const char *bytes; const char *enhanced; } rows[] = {
        {"250 2.0.0 Ok\r\n", "2.0.0"}, {"550 5.7.509 no\r\n", "5.7.509"}, {"250 2.0.0\r\n", "2.0.0"},
        {"250 3.0.0 x\r\n", ""}, {"250 2.0 x\r\n", ""}, {"250 2.0.0000 x\r\n", ""}, {"250 2.0.0x\r\n", ""},
        {"250 192.168.0.1\r\n", ""}, {"220 5.example\r\n", ""}, {"250\r\n", ""},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SmtpReplyParser parser;
        smtp_reply_init(&parser);
        Str input = str_from(rows[i].bytes);
        assert_int_equal(smtp_reply_feed(&parser, &input, NULL), SMTP_FEED_REPLY);
        assert_string_equal(parser.reply.enhanced, rows[i].enhanced);
    }
}

static void capabilities_are_read_from_ehlo(void **state)
{
    (void)state;
    SmtpReplyParser parser;
    smtp_reply_init(&parser);
    Str input = STR("250-PIPELINING.example.com greets you\r\n250-SIZE "
                    "35882577\r\n250-8bitmime\r\n250-AUTH LOGIN PLAIN XOAUTH2\r\n"
                    "250-StartTLS\r\n250 SMTPUTF8\r\n");
    assert_int_equal(smtp_reply_feed(&parser, &input, NULL), SMTP_FEED_REPLY);
    SmtpCaps caps = smtp_caps_parse(&parser.reply);
    assert_false(caps.pipelining); // a host's name is no capability
    assert_true(
        caps.starttls && caps.smtputf8 && caps.eightbitmime && caps.auth_plain && caps.auth_login);
    assert_int_equal(caps.size_max, 35882577);
}

static void what_is_said_of_the_session_is_not_the_mails_fault(void **state)
{
    (void)state;
    assert_int_equal(smtp_classify(503, STR("5.5.1")), REPLY_RETRY);
    assert_int_equal(smtp_classify(530, STR("5.7.0")), REPLY_RETRY);
    assert_int_equal(smtp_classify(553, STR("5.6.7")), REPLY_BAD_ADDRESS);
    assert_int_equal(smtp_classify(550, STR("5.1.1")), REPLY_BAD_ADDRESS);
    assert_int_equal(smtp_classify(550, STR("5.7.1")), REPLY_TERMINAL);
    assert_int_equal(smtp_classify(250, STR("2.0.0")), REPLY_ACCEPTED);
    assert_int_equal(smtp_classify(451, STR("")), REPLY_RETRY);
}

static void urls_say_where_and_who(void **state)
{
    (void)state;
    SmtpOptions options = {0};
    assert_true(smtp_url_parse(
        STR("smtps://me%40example.com:p%3Aw@relay.example.com:2465/"), &options, NULL));
    assert_string_equal(options.host, "relay.example.com");
    assert_string_equal(options.port, "2465");
    assert_string_equal(options.user, "me@example.com");
    assert_string_equal(options.password, "p:w");
    assert_true(options.implicit_tls);
    assert_true(smtp_url_parse(STR("smtp://[::1]:2525"), &options, NULL));
    assert_string_equal(options.host, "::1");
    assert_string_equal(options.user, "");
    assert_true(smtp_url_parse(STR("smtp://relay"), &options, NULL));
    assert_string_equal(options.port, "25");
}

static void bad_urls_say_what_is_wrong(void **state)
{
    (void)state;
    // clang-format off
    static const struct { const char *url; const char *why; } rows[] = {
        {"http://x", "STENTOR_SMTP_URL: expected smtp://host:port or smtps://host:port"},
        {"smtp://", "STENTOR_SMTP_URL: the host is missing or malformed"},
        {"smtp://a b", "STENTOR_SMTP_URL: the host is missing or malformed"},
        {"smtp://[::1", "STENTOR_SMTP_URL: the port is not a number from 1 to 65535"},
        {"smtp://x:0", "STENTOR_SMTP_URL: the port is not a number from 1 to 65535"},
        {"smtp://x:99999", "STENTOR_SMTP_URL: the port is not a number from 1 to 65535"},
        {"smtp://u%0a:p@x", "STENTOR_SMTP_URL: user and password must be percent-encoded and at most 255 bytes"},
        {"smtp://u:%zz@x", "STENTOR_SMTP_URL: user and password must be percent-encoded and at most 255 bytes"},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SmtpOptions options = {0};
        Error err = {0};
        assert_false(smtp_url_parse(str_from(rows[i].url), &options, &err));
        assert_string_equal(err.text, rows[i].why);
        assert_int_equal(err.kind, ERROR_CONFIG);
    }
}

static void smtps_is_always_verified(void **state)
{
    (void)state;
    SmtpOptions options = {.implicit_tls = true};
    assert_true(smtp_tls_mode_parse(STR("opportunistic"), &options, NULL));
    assert_int_equal(options.tls, SMTP_TLS_REQUIRED);
    assert_false(smtp_tls_mode_parse(STR("off"), &options, NULL));
    assert_false(smtp_tls_mode_parse(STR("insecure-plaintext"), &options, NULL));
    assert_false(smtp_tls_mode_parse(STR("maybe"), &options, NULL));
}

static void finding_10_a_user_is_never_unprotected_unless_it_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *url, *word;
        int mode; // -1: refused
    } rows[] = {
        {"smtp://me:pw@h", "auto", SMTP_TLS_REQUIRED},
        {"smtp://me:pw@h", "required", SMTP_TLS_REQUIRED},
        {"smtp://me:pw@h", "opportunistic", -1},
        {"smtp://me:pw@h", "off", -1},
        {"smtp://me:pw@h", "insecure-unverified", SMTP_TLS_UNVERIFIED},
        {"smtp://me:pw@h", "insecure-plaintext", SMTP_TLS_PLAINTEXT},
        {"smtp://h", "auto", SMTP_TLS_OPPORTUNISTIC},
        {"smtp://h", "opportunistic", SMTP_TLS_OPPORTUNISTIC},
        {"smtp://h", "off", SMTP_TLS_OFF},
        {"smtps://me:pw@h", "auto", SMTP_TLS_REQUIRED},
        {"smtps://me:pw@h", "opportunistic", SMTP_TLS_REQUIRED},
        {"smtps://h", "auto", SMTP_TLS_REQUIRED},
        {"smtps://me:pw@h", "insecure-unverified", SMTP_TLS_UNVERIFIED},
        {"smtps://me:pw@h", "insecure-plaintext", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SmtpOptions options = {0};
        Error err = {0};
        assert_true(smtp_url_parse(str_from(rows[i].url), &options, NULL));
        bool ok = smtp_tls_mode_parse(str_from(rows[i].word), &options, &err);
        assert_int_equal(ok ? (int)options.tls : -1, rows[i].mode);
        assert_true(ok || (err.kind == ERROR_CONFIG && strstr(err.text, "pw") == NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_is_the_same_in_one_piece_and_byte_by_byte),
        cmocka_unit_test(replies_of_a_pipeline_come_one_by_one),
        cmocka_unit_test(bytes_that_are_not_smtp_are_refused),
        cmocka_unit_test(lines_and_replies_have_a_maximum),
        cmocka_unit_test(text_for_events_is_one_masked_line_of_utf8),
        cmocka_unit_test(enhanced_codes_are_read_strictly),
        cmocka_unit_test(capabilities_are_read_from_ehlo),
        cmocka_unit_test(what_is_said_of_the_session_is_not_the_mails_fault),
        cmocka_unit_test(urls_say_where_and_who),
        cmocka_unit_test(bad_urls_say_what_is_wrong),
        cmocka_unit_test(smtps_is_always_verified),
        cmocka_unit_test(finding_10_a_user_is_never_unprotected_unless_it_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
