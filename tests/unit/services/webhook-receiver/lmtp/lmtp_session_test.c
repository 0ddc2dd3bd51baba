// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "services/webhook-receiver/lmtp/lmtp_session.h"

static const LmtpLimits LIMITS = {.mail_max = 1000, .kept_max = 200};

// A client that says all at once; whoever has "good" in it is a recipient here.
typedef struct Talk {
    LmtpSession session;
    char mail[4096]; // the last one
    size_t mail_len;
    int mails;
    LmtpStep end;
} Talk;

static void decide(Talk *talk, LmtpStep step)
{
    LmtpSession *s = &talk->session;
    if (step == LMTP_RECIPIENT) {
        bool good = strstr(arena_cstr(s->arena, s->address), "good") != NULL;
        lmtp_recipient(s, good ? NULL : "550 5.1.1 no such recipient", NULL);
        return;
    }
    talk->mails++;
    talk->mail_len = s->mail.len;
    memcpy(talk->mail, s->mail.len > 0 ? s->mail.ptr : "", s->mail.len);
    for (size_t n = s->recipient_count; n > 0; n--) {
        lmtp_reply(s, "250 2.0.0 stored");
    }
}

// In pieces of `piece` bytes. The replies, to be freed; each line without its text.
static char *say(Talk *talk, Str text, size_t piece)
{
    Buf all;
    buf_init(&all, 1 << 20);
    while (text.len > 0) {
        Str part = str_slice(text, 0, piece);
        text = str_slice(text, part.len, text.len);
        do {
            talk->end = lmtp_feed(&talk->session, &part);
            if (talk->end == LMTP_RECIPIENT || talk->end == LMTP_MAIL) {
                decide(talk, talk->end);
            }
            assert_false(talk->session.out.full);
            buf_str(&all, buf_view(&talk->session.out));
            buf_clear(&talk->session.out);
        } while (part.len > 0 && talk->end != LMTP_END);
    }
    char *codes = xcalloc(1, all.len + 1);
    size_t len = 0;
    Str rest = buf_view(&all);
    Str line = STR_EMPTY;
    while (str_split(&rest, '\n', &line)) {
        if (line.len > 3 && line.ptr[3] == ' ') {
            memcpy(codes + len, line.ptr, 4);
            len += 4;
        }
    }
    codes[len > 0 ? len - 1 : 0] = '\0';
    buf_done(&all);
    return codes;
}

static void expect(const char *text, const char *codes, Talk *talk)
{
    static const size_t PIECES[] = {1, 2, 7, 100000};
    for (size_t i = 0; i < sizeof PIECES / sizeof PIECES[0]; i++) {
        memset(talk, 0, sizeof *talk);
        lmtp_init(&talk->session, "mx.test", &LIMITS);
        char *got = say(talk, str_from(text), PIECES[i]);
        assert_string_equal(got, codes);
        free(got);
        lmtp_done(&talk->session);
    }
}

#define ENVELOPE "LHLO me\r\nMAIL FROM:<>\r\nRCPT TO:<good@x.test>\r\n"

static void a_mail_gets_one_reply_for_each_recipient(void **state)
{
    (void)state;
    Talk talk;
    expect(
        "LHLO me\r\nMAIL FROM:<> SIZE=10\r\nRCPT TO:<good1@x>\r\nRCPT TO:<bad@x>\r\n"
        "RCPT TO:<good2@x>\r\nDATA\r\nhello\r\n.\r\nQUIT\r\n",
        "220 250 250 250 550 250 354 250 250 221", &talk);
    assert_int_equal(talk.mails, 1);
    assert_int_equal(talk.end, LMTP_END);
    assert_string_equal(talk.mail, "hello\r\n");
}

static void dots_are_undone_and_only_crlf_dot_crlf_ends(void **state)
{
    (void)state;
    Talk talk;
    expect(
        ENVELOPE "DATA\r\n..a\r\n\n.\n\r.\r\n.b\r\n.\rc\r\n...\r\n\r\n.\r\nNOOP\r\n",
        "220 250 250 250 354 250 250", &talk);
    assert_string_equal(talk.mail, ".a\r\n\n.\n\r.\r\nb\r\n\rc\r\n..\r\n\r\n");
}

static void an_empty_mail_is_one(void **state)
{
    (void)state;
    Talk talk;
    expect(ENVELOPE "DATA\r\n.\r\n", "220 250 250 250 354 250", &talk);
    assert_int_equal(talk.mails, 1);
    assert_int_equal(talk.mail_len, 0);
}

static char *long_text(size_t len)
{
    char *text = xcalloc(1, len + 1);
    memset(text, 'x', len);
    return text;
}

static void a_large_mail_is_kept_from_its_beginning_and_a_too_large_one_not_at_all(void **state)
{
    (void)state;
    Talk talk;
    Arena *arena = arena_new(0);
    char *text = long_text(998);
    expect(
        arena_printf(arena, ENVELOPE "DATA\r\n%s\r\n.\r\n", text), "220 250 250 250 354 250",
        &talk);
    assert_int_equal(talk.mail_len, LIMITS.kept_max);
    free(text);
    text = long_text(999);
    expect(
        arena_printf(arena, ENVELOPE "RCPT TO:<good2@x>\r\nDATA\r\n%s\r\n.\r\nNOOP\r\n", text),
        "220 250 250 250 250 354 552 552 250", &talk);
    assert_int_equal(talk.mails, 0);
    expect("LHLO me\r\nMAIL FROM:<> SIZE=52428800\r\n", "220 250 552", &talk);
    free(text);
    arena_free(arena);
}

static void commands_out_of_order_are_refused(void **state)
{
    (void)state;
    Talk talk;
    expect(
        "MAIL FROM:<>\r\nEHLO me\r\nHELO me\r\nLHLO\r\nLHLO me\r\nRCPT TO:<good@x>\r\nDATA\r\n"
        "MAIL FROM:<>\r\nMAIL FROM:<>\r\nDATA\r\nRCPT TO:<bad@x>\r\nDATA\r\nRSET\r\nDATA\r\n",
        "220 503 500 500 501 250 503 503 250 503 503 550 503 250 503", &talk);
}

static void bad_paths_and_parameters_are_refused(void **state)
{
    (void)state;
    Talk talk;
    expect(
        "LHLO me\r\nMAIL FROM:a@b\r\nMAIL FROM:<a\r\nMAIL FROM:<> SIZE=x\r\n"
        "MAIL FROM:<> RET=HDRS\r\nMAIL FROM:<>x\r\nmail from: <\"a>b\"@c> body=8bitmime "
        "smtputf8\r\n"
        "RCPT TO:<>\r\nRCPT TO:<good@x> NOTIFY=NEVER\r\nRCPT TO:<@relay:good@x>\r\n",
        "220 250 501 501 501 555 501 250 501 555 250", &talk);
    expect("LHLO me\r\nMAIL FROM:<\xff>\r\nMAIL FROM:<\x01>\r\n\r\n", "220 250 500 501 500", &talk);
}

static void a_line_above_the_limit_is_refused_and_the_next_one_read(void **state)
{
    (void)state;
    Talk talk;
    Arena *arena = arena_new(0);
    char *text = long_text(LMTP_LINE_MAX - 1);
    expect(arena_printf(arena, "LHLO %s\r\nLHLO me\r\n", text), "220 500 250", &talk);
    text[LMTP_LINE_MAX - 7] = '\0'; // "LHLO " and CR LF fill the limit
    expect(arena_printf(arena, "LHLO %s\r\nNOOP\r\n", text), "220 250 250", &talk);
    free(text);
    arena_free(arena);
}

static void there_are_at_most_fifty_recipients(void **state)
{
    (void)state;
    Talk talk;
    Buf text;
    Buf codes;
    buf_init(&text, 1 << 16);
    buf_init(&codes, 1 << 16);
    buf_cstr(&text, "LHLO me\r\nMAIL FROM:<>\r\n");
    buf_cstr(&codes, "220 250 250");
    for (int i = 0; i < LMTP_RECIPIENTS_MAX + 2; i++) {
        buf_printf(&text, "RCPT TO:<good%d@x>\r\n", i);
        buf_cstr(&codes, i < LMTP_RECIPIENTS_MAX ? " 250" : " 452");
    }
    buf_cstr(&text, "DATA\r\n.\r\n");
    buf_cstr(&codes, " 354");
    for (int i = 0; i < LMTP_RECIPIENTS_MAX; i++) {
        buf_cstr(&codes, " 250");
    }
    expect(buf_c(&text), buf_c(&codes), &talk);
    buf_done(&text);
    buf_done(&codes);
}

static void a_client_that_only_errs_is_sent_away(void **state)
{
    (void)state;
    Talk talk;
    Buf text;
    buf_init(&text, 1 << 16);
    for (int i = 0; i < LMTP_ERRORS_MAX + 5; i++) {
        buf_cstr(&text, "GET / HTTP/1.1\r\n");
    }
    memset(&talk, 0, sizeof talk);
    lmtp_init(&talk.session, "mx.test", &LIMITS);
    char *got = say(&talk, buf_view(&text), 1000);
    assert_int_equal(talk.end, LMTP_END);
    assert_string_equal(got + strlen(got) - 7, "500 421");
    free(got);
    lmtp_done(&talk.session);
    buf_done(&text);
}

static void many_commands_at_once_lose_no_reply(void **state)
{
    (void)state;
    Talk talk;
    Buf text;
    buf_init(&text, 1 << 20);
    enum { COMMANDS = 9000 };
    for (int i = 0; i < COMMANDS; i++) {
        buf_cstr(&text, "NOOP\r\n");
    }
    memset(&talk, 0, sizeof talk);
    lmtp_init(&talk.session, "mx.test", &LIMITS);
    char *got = say(&talk, buf_view(&text), text.len);
    assert_int_equal(strlen(got), 4 * (COMMANDS + 1) - 1);
    free(got);
    lmtp_done(&talk.session);
    buf_done(&text);
}

static void several_mails_on_one_connection(void **state)
{
    (void)state;
    Talk talk;
    expect(
        ENVELOPE "DATA\r\none\r\n.\r\nMAIL FROM:<a@b>\r\nRCPT TO:<good@x>\r\nDATA\r\ntwo\r\n.\r\n",
        "220 250 250 250 354 250 250 250 354 250", &talk);
    assert_int_equal(talk.mails, 2);
    assert_string_equal(talk.mail, "two\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mail_gets_one_reply_for_each_recipient),
        cmocka_unit_test(dots_are_undone_and_only_crlf_dot_crlf_ends),
        cmocka_unit_test(an_empty_mail_is_one),
        cmocka_unit_test(a_large_mail_is_kept_from_its_beginning_and_a_too_large_one_not_at_all),
        cmocka_unit_test(commands_out_of_order_are_refused),
        cmocka_unit_test(bad_paths_and_parameters_are_refused),
        cmocka_unit_test(a_line_above_the_limit_is_refused_and_the_next_one_read),
        cmocka_unit_test(there_are_at_most_fifty_recipients),
        cmocka_unit_test(a_client_that_only_errs_is_sent_away),
        cmocka_unit_test(many_commands_at_once_lose_no_reply),
        cmocka_unit_test(several_mails_on_one_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
