// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/mime/mime.h"
#include "common/mime/mime_encode.h"

static MimeMail plain_mail(void)
{
    return (MimeMail){
        .from_name = STR("Demo Shop"),
        .from = STR("shop@example.com"),
        .to = STR("alice@example.org"),
        .subject = STR("Hello Alice"),
        .text = STR("Hello\nAlice"),
        .id = STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .id_domain = STR("mail.example.com"),
        .date_us = 1795199136123456,
    };
}

static void expect_mail(const MimeMail *mail, const char *expected)
{
    Buf out;
    Error err = {0};
    buf_init(&out, MIME_BYTES_MAX);
    assert_true(mime_compose(mail, &out, &err));
    assert_string_equal(buf_c(&out), expected);
    assert_true(mime_check(mail, &out, &err));
    buf_done(&out);
}

static void expect_refused(const MimeMail *mail, const char *text)
{
    Buf out;
    Error err = {0};
    buf_init(&out, MIME_BYTES_MAX);
    assert_false(mime_compose(mail, &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_string_equal(err.text, text);
    err = (Error){0};
    assert_false(mime_check(mail, &out, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_string_equal(err.text, text);
    buf_done(&out);
}

static void a_plain_text_is_one_part_in_7bit(void **state)
{
    (void)state;
    MimeMail mail = plain_mail();
    expect_mail(
        &mail, "Date: Fri, 20 Nov 2026 18:25:36 +0000\r\n"
               "From: \"Demo Shop\" <shop@example.com>\r\n"
               "To: <alice@example.org>\r\n"
               "Subject: Hello Alice\r\n"
               "Message-ID: <ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV@mail.example.com>\r\n"
               "Auto-Submitted: auto-generated\r\n"
               "MIME-Version: 1.0\r\n"
               "Content-Type: text/plain; charset=utf-8\r\n"
               "Content-Transfer-Encoding: 7bit\r\n"
               "\r\n"
               "Hello\r\nAlice\r\n");
}

static void text_and_html_are_alternatives_with_a_fixed_boundary(void **state)
{
    (void)state;
    MimeMail mail = plain_mail();
    mail.text = STR("Gr\xc3\xbc\xc3\x9f dich, lieber Mensch\n");
    mail.html = STR("<p class=\"x\">Hi</p>\xe2\x82\xac is a currency sign");
    mail.reply_to = STR("help@example.com");
    mail.to_name = STR("J\xc3\xbcrgen");
    expect_mail(
        &mail, "Date: Fri, 20 Nov 2026 18:25:36 +0000\r\n"
               "From: \"Demo Shop\" <shop@example.com>\r\n"
               "To: =?UTF-8?B?SsO8cmdlbg==?= <alice@example.org>\r\n"
               "Reply-To: <help@example.com>\r\n"
               "Subject: Hello Alice\r\n"
               "Message-ID: <ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV@mail.example.com>\r\n"
               "Auto-Submitted: auto-generated\r\n"
               "MIME-Version: 1.0\r\n"
               "Content-Type: multipart/alternative;\r\n"
               " boundary=\"=_stentor_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\"\r\n"
               "\r\n"
               "--=_stentor_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n"
               "Content-Type: text/plain; charset=utf-8\r\n"
               "Content-Transfer-Encoding: quoted-printable\r\n"
               "\r\n"
               "Gr=C3=BC=C3=9F dich, lieber Mensch\r\n"
               "--=_stentor_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n"
               "Content-Type: text/html; charset=utf-8\r\n"
               "Content-Transfer-Encoding: quoted-printable\r\n"
               "\r\n"
               "<p class=3D\"x\">Hi</p>=E2=82=AC is a currency sign\r\n"
               "--=_stentor_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV--\r\n");
}

static void the_same_mail_gives_the_same_bytes(void **state)
{
    (void)state;
    MimeMail mail = plain_mail();
    Buf a;
    Buf b;
    buf_init(&a, MIME_BYTES_MAX);
    buf_init(&b, MIME_BYTES_MAX);
    assert_true(mime_compose(&mail, &a, NULL));
    assert_true(mime_compose(&mail, &b, NULL));
    assert_true(str_eq(buf_view(&a), buf_view(&b)));
    buf_done(&a);
    buf_done(&b);
}

static void a_line_break_in_a_header_is_refused(void **state)
{
    (void)state;
    MimeMail mail = plain_mail();
    mail.subject = STR("Hi\r\nBcc: all@example.com");
    expect_refused(&mail, "header 'Subject' has a line break");
    mail = plain_mail();
    mail.from_name = STR("Shop\nX: y");
    expect_refused(&mail, "header 'From' has a line break");
    mail = plain_mail();
    mail.subject = STR("Hi\x01there");
    expect_refused(&mail, "header 'Subject' has a control character");
    mail = plain_mail();
    mail.subject = STR("Hi\xff");
    expect_refused(&mail, "header 'Subject' is not UTF-8");
}

static void an_address_that_is_none_is_refused(void **state)
{
    (void)state;
    // clang-format off
    static const struct { const char *address; const char *why; } rows[] = {
        {"", "its part before the '@' is malformed"},
        {"alice", "its part before the '@' is malformed"},
        {"@example.com", "its part before the '@' is malformed"},
        {".a@example.com", "its part before the '@' is malformed"},
        {"a..b@example.com", "its part before the '@' is malformed"},
        {"a b@example.com", "its part before the '@' is malformed"},
        {"a>\r\nRCPT TO:<x@example.com", "its part before the '@' is malformed"},
        {"a@example.com>\r\nDATA", "its domain is malformed"},
        {"a@", "its domain is malformed"},
        {"a@-example.com", "its domain is malformed"},
        {"a@exa mple.com", "its domain is malformed"},
        {"a@b@example.com", "its domain is malformed"},
        {"a\xff@example.com", "it is not UTF-8"},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Error err = {0};
        assert_false(mail_address_check("to", str_from(rows[i].address), NULL, &err));
        char expected[128];
        snprintf(expected, sizeof expected, "'to' is not an e-mail address: %s", rows[i].why);
        assert_string_equal(err.text, expected);
    }
}

static void an_address_tells_whether_it_is_ascii(void **state)
{
    (void)state;
    bool utf8 = true;
    assert_true(mail_address_check("to", STR("o'neil+tag.x@sub.example-1.com"), &utf8, NULL));
    assert_false(utf8);
    assert_true(mail_address_check("to", STR("j\xc3\xb6rg@example.com"), &utf8, NULL));
    assert_true(utf8);
}

static void expect_header(const char *value, const char *expected)
{
    Buf out;
    buf_init(&out, 65536);
    assert_true(mime_header_text("Subject", str_from(value), &out, NULL));
    assert_string_equal(buf_c(&out), expected);
    buf_done(&out);
}

static void long_headers_are_folded_at_spaces(void **state)
{
    (void)state;
    expect_header(
        "aaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb ccccccccccccccccccccccccc ddd",
        "Subject: aaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n"
        " ccccccccccccccccccccccccc ddd\r\n");
}

static void ascii_is_never_encoded_for_its_length_or_its_spaces(void **state)
{
    (void)state;
    expect_header("  Hello  ", "Subject: Hello\r\n");
    expect_header("   ", "Subject: \r\n");
    expect_header("a  Bcc: b@example.com", "Subject: a  Bcc: b@example.com\r\n");
    char value[220];
    char expected[240];
    memset(value, 'a', 200);
    memcpy(value + 200, "   b", 5);
    snprintf(expected, sizeof expected, "Subject: %.200s\r\n   b\r\n", value);
    expect_header(value, expected);
}

static void a_word_that_no_line_holds_is_encoded(void **state)
{
    (void)state;
    char text[1200];
    memset(text, 'a', sizeof text);
    Buf out;
    buf_init(&out, 65536);
    assert_true(mime_header_text("Subject", str_of(text, 900), &out, NULL));
    assert_null(strstr(buf_c(&out), "=?"));
    buf_clear(&out);
    assert_true(mime_header_text("Subject", str_of(text, 901), &out, NULL));
    assert_true(str_starts(buf_view(&out), STR("Subject: =?UTF-8?B?")));
    memset(text + 2, ' ', 950);
    buf_clear(&out);
    assert_true(mime_header_text("Subject", str_of(text, 960), &out, NULL));
    assert_true(str_starts(buf_view(&out), STR("Subject: =?UTF-8?B?")));
    buf_done(&out);
}

// Any mix of words, spaces and bytes: no line is too long, empty or all spaces, and without its
// line ends the value is what was given.
static void a_folded_subject_reads_as_it_was_given(void **state)
{
    (void)state;
    uint32_t seed = 11;
    for (int round = 0; round < 300; round++) {
        char text[600];
        for (size_t i = 0; i < sizeof text; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] = (seed >> 24) < 60 ? ' ' : (char)('a' + (seed >> 24) % 26);
        }
        Str given = str_trim(str_of(text, sizeof text));
        Buf out;
        buf_init(&out, 65536);
        assert_true(mime_header_text("Subject", str_of(text, sizeof text), &out, NULL));
        char read[700];
        size_t len = 0;
        Str rest = buf_view(&out);
        for (Str line; rest.len > 0;) {
            assert_true(str_split(&rest, '\n', &line));
            assert_true(line.len > 1 && line.len <= 999 && line.ptr[line.len - 1] == '\r');
            assert_true(str_trim(line).len > 0);
            memcpy(read + len, line.ptr, line.len - 1);
            len += line.len - 1;
        }
        assert_true(str_eq(str_slice(str_of(read, len), strlen("Subject: "), len), given));
        buf_done(&out);
    }
}

static void headers_that_are_not_ascii_become_encoded_words(void **state)
{
    (void)state;
    expect_header(
        "Gr\xc3\xbc\xc3\x9f"
        "e",
        "Subject: =?UTF-8?B?R3LDvMOfZQ==?=\r\n");
    // A value that reads as an encoded word would otherwise be decoded by the reader.
    expect_header("=?UTF-8?B?SGk=?=", "Subject: =?UTF-8?B?PT9VVEYtOD9CP1NHaz0/PQ==?=\r\n");
    // 50 two-byte characters do not fit one word, and no character is cut.
    char text[101];
    for (int i = 0; i < 100; i += 2) {
        memcpy(text + i, "\xc3\xa9", 2);
    }
    text[100] = '\0';
    expect_header(
        text, "Subject: =?UTF-8?B?w6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6k=?=\r\n"
              " =?UTF-8?B?w6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6k=?=\r\n"
              " =?UTF-8?B?w6nDqcOpw6nDqcOpw6nDqcOp?=\r\n");
}

static void names_are_quoted_and_long_ones_stand_alone(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 4096);
    assert_true(mime_header_mailbox("From", STR("A \"B\" \\C, D"), STR("a@b.de"), &out, NULL));
    assert_string_equal(buf_c(&out), "From: \"A \\\"B\\\" \\\\C, D\" <a@b.de>\r\n");
    buf_clear(&out);
    assert_true(mime_header_mailbox(
        "From", STR("The Department of Very Long Department Names in the North"),
        STR("department@example.com"), &out, NULL));
    assert_string_equal(
        buf_c(&out), "From: \"The Department of Very Long Department Names in the North\"\r\n "
                     "<department@example.com>\r\n");
    buf_done(&out);
}

// Names that came in before they were checked for it.
static void finding_16_a_name_in_a_header_turns_no_direction(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 4096);
    assert_true(
        mime_header_mailbox("To", STR("An\xe2\x80\xaena\xd8\x9c"), STR("a@b.de"), &out, NULL));
    assert_string_equal(buf_c(&out), "To: \"Anna\" <a@b.de>\r\n");
    buf_done(&out);
    Error err = {0};
    assert_false(mail_address_check("to", STR("a\xe2\x80\xae@b.de"), NULL, &err));
    assert_non_null(strstr(err.text, "changes the direction of writing"));
}

static void expect_encoded(MimeEncoding encoding, Str text, const char *expected)
{
    Buf out;
    buf_init(&out, MIME_BYTES_MAX);
    assert_true(mime_encode(encoding, text, &out));
    assert_string_equal(buf_c(&out), expected);
    buf_done(&out);
}

static void quoted_printable_breaks_lines_and_guards_their_ends(void **state)
{
    (void)state;
    expect_encoded(MIME_QUOTED_PRINTABLE, STR("a=b \nc\t\r\nd"), "a=3Db=20\r\nc=09\r\nd");
    expect_encoded(MIME_QUOTED_PRINTABLE, STR("x\ry"), "x=0Dy");
    char line[161];
    memset(line, 'x', 160);
    line[160] = '\0';
    char expected[200];
    snprintf(expected, sizeof expected, "%.75s=\r\n%.75s=\r\n%.10s", line, line, line);
    expect_encoded(MIME_QUOTED_PRINTABLE, str_from(line), expected);
    // An escape is never cut: 74 characters and one of three do not fit a line.
    snprintf(
        line, sizeof line, "%.74s=",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    snprintf(expected, sizeof expected, "%.74s=\r\n=3D", line);
    expect_encoded(MIME_QUOTED_PRINTABLE, str_from(line), expected);
}

static void no_encoded_line_is_longer_than_76(void **state)
{
    (void)state;
    uint32_t seed = 7;
    for (int round = 0; round < 300; round++) {
        char text[700];
        size_t len = 0;
        for (; len < sizeof text; len++) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t pick = seed >> 24;
            text[len] = pick < 4 ? '\n' : pick < 30 ? ' ' : pick < 60 ? '=' : (char)(pick);
        }
        Buf out;
        buf_init(&out, MIME_BYTES_MAX);
        assert_true(mime_encode(
            round % 2 == 0 ? MIME_QUOTED_PRINTABLE : MIME_BASE64, (Str){text, len}, &out));
        size_t column = 0;
        for (size_t i = 0; i < out.len; i++) {
            column = out.ptr[i] == '\n' ? 0 : column + 1;
            assert_true(column <= MIME_LINE_MAX + 1); // and the CR
            assert_true((uint8_t)out.ptr[i] < 127);
        }
        buf_done(&out);
    }
}

static void base64_carries_crlf(void **state)
{
    (void)state;
    expect_encoded(MIME_BASE64, STR("a\nb\r\nc"), "YQ0KYg0KYw==\r\n");
}

static void the_encoding_fits_the_text(void **state)
{
    (void)state;
    assert_int_equal(mime_choose(STR("plain\ntext\n")), MIME_7BIT);
    assert_int_equal(
        mime_choose(STR("caf\xc3\xa9 and a lot of other words")), MIME_QUOTED_PRINTABLE);
    assert_int_equal(
        mime_choose(STR("\xd8\xb3\xd9\x84\xd8\xa7\xd9\x85 \xd8\xaf\xd9\x86\xdb\x8c\xd8\xa7")),
        MIME_BASE64);
    assert_int_equal(mime_choose(STR("bell\x07")), MIME_QUOTED_PRINTABLE);
    assert_int_equal(
        mime_choose(STR("--=_stentor_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV")), MIME_QUOTED_PRINTABLE);
    char line[80];
    memset(line, 'x', 79);
    assert_int_equal(mime_choose((Str){line, 78}), MIME_7BIT);
    assert_int_equal(mime_choose((Str){line, 79}), MIME_QUOTED_PRINTABLE);
}

static void a_mail_without_a_body_is_refused(void **state)
{
    (void)state;
    MimeMail mail = plain_mail();
    mail.text = STR_EMPTY;
    expect_refused(&mail, "the e-mail has neither 'html' nor 'text'");
}

static void an_unsubscribe_url_stands_alone_in_its_line(void **state)
{
    (void)state;
    MimeMail mail = plain_mail();
    mail.unsubscribe_url = STR("https://notify.example.com/v1/opt-out/oot_abc-_");
    expect_mail(
        &mail, "Date: Fri, 20 Nov 2026 18:25:36 +0000\r\n"
               "From: \"Demo Shop\" <shop@example.com>\r\n"
               "To: <alice@example.org>\r\n"
               "Subject: Hello Alice\r\n"
               "List-Unsubscribe:\r\n <https://notify.example.com/v1/opt-out/oot_abc-_>\r\n"
               "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
               "Message-ID: <ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV@mail.example.com>\r\n"
               "Auto-Submitted: auto-generated\r\n"
               "MIME-Version: 1.0\r\n"
               "Content-Type: text/plain; charset=utf-8\r\n"
               "Content-Transfer-Encoding: 7bit\r\n"
               "\r\n"
               "Hello\r\nAlice\r\n");
}

static bool offers_one_click(const char *url)
{
    MimeMail mail = plain_mail();
    mail.unsubscribe_url = str_from(url);
    Buf out;
    Error err = {0};
    buf_init(&out, MIME_BYTES_MAX);
    assert_true(mime_compose(&mail, &out, &err));
    assert_non_null(strstr(buf_c(&out), "List-Unsubscribe:"));
    bool offers = strstr(buf_c(&out), "List-Unsubscribe-Post") != NULL;
    buf_done(&out);
    return offers;
}

static void one_click_is_offered_over_https_and_on_this_machine_only(void **state)
{
    (void)state;
    assert_true(offers_one_click("https://notify.example.com/v1/opt-out/oot_abc"));
    assert_true(offers_one_click("http://127.0.0.1:8080/v1/opt-out/oot_abc"));
    assert_true(offers_one_click("http://localhost:8090/v1/opt-out/oot_abc"));
    assert_false(offers_one_click("http://notify.example.com/v1/opt-out/oot_abc"));
    assert_false(offers_one_click("http://127.0.0.1.example.com/v1/opt-out/oot_abc"));
    assert_false(offers_one_click("http://localhost.example.com:80/v1/opt-out/oot_abc"));
}

static const MimeFile FILES[] = {
    {{"invoice.pdf", sizeof "invoice.pdf" - 1},
     {"application/pdf", sizeof "application/pdf" - 1},
     {"", 0},
     {"%PDF-1.7", sizeof "%PDF-1.7" - 1}},
    {{"logo.png", sizeof "logo.png" - 1},
     {"image/png", sizeof "image/png" - 1},
     {"logo", sizeof "logo" - 1},
     {"\x89PNG", sizeof "\x89PNG" - 1}},
};

static void files_stand_around_the_texts(void **state)
{
    (void)state;
    MimeMail mail = plain_mail();
    mail.html = STR("<img src=\"cid:logo\">");
    mail.files = FILES;
    mail.file_count = 2;
    expect_mail(
        &mail,
        "Date: Fri, 20 Nov 2026 18:25:36 +0000\r\n"
        "From: \"Demo Shop\" <shop@example.com>\r\n"
        "To: <alice@example.org>\r\n"
        "Subject: Hello Alice\r\n"
        "Message-ID: <ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV@mail.example.com>\r\n"
        "Auto-Submitted: auto-generated\r\n"
        "MIME-Version: 1.0\r\n"
        "Content-Type: multipart/mixed;\r\n "
        "boundary=\"=_stentor_m_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\"\r\n\r\n"
        "--=_stentor_m_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n"
        "Content-Type: multipart/related;\r\n "
        "boundary=\"=_stentor_r_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\"\r\n\r\n"
        "--=_stentor_r_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n"
        "Content-Type: multipart/alternative;\r\n "
        "boundary=\"=_stentor_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\"\r\n\r\n"
        "--=_stentor_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n"
        "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: "
        "7bit\r\n\r\nHello\r\nAlice\r\n"
        "--=_stentor_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n"
        "Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n<img "
        "src=\"cid:logo\">\r\n"
        "--=_stentor_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV--\r\n"
        "--=_stentor_r_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n"
        "Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n"
        "Content-Disposition: inline;\r\n filename=\"logo.png\"\r\nContent-ID: "
        "<logo>\r\n\r\niVBORw==\r\n"
        "--=_stentor_r_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV--\r\n"
        "--=_stentor_m_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n"
        "Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n"
        "Content-Disposition: attachment;\r\n filename=\"invoice.pdf\"\r\n\r\nJVBERi0xLjc=\r\n"
        "--=_stentor_m_ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV--\r\n");
}

static void a_files_name_beyond_ascii_is_coded(void **state)
{
    (void)state;
    Buf out;
    Error err = {0};
    char bytes[57 * 2 + 1];
    memset(bytes, 'x', sizeof bytes);
    MimeFile file = {
        STR("R\xc3\xa9sum\xc3\xa9 \"1\".pdf"), STR("application/pdf"), STR_EMPTY,
        str_of(bytes, sizeof bytes)};
    MimeMail mail = plain_mail();
    mail.files = &file;
    mail.file_count = 1;
    buf_init(&out, MIME_BYTES_MAX);
    assert_true(mime_compose(&mail, &out, &err));
    assert_non_null(strstr(buf_c(&out), "filename*=UTF-8''R%C3%A9sum%C3%A9%20%221%22.pdf\r\n\r\n"));
    Str line;
    for (Str rest = buf_view(&out); str_split(&rest, '\n', &line);) {
        assert_true(line.len <= 77);
    }
    buf_done(&out);
}

static void a_file_that_no_header_can_hold_is_refused(void **state)
{
    (void)state;
    static const MimeFile bad[] = {
        {{"a\r\nX: y", sizeof "a\r\nX: y" - 1},
         {"text/csv", sizeof "text/csv" - 1},
         {"", 0},
         {"1", sizeof "1" - 1}},
        {{"../a", sizeof "../a" - 1},
         {"text/csv", sizeof "text/csv" - 1},
         {"", 0},
         {"1", sizeof "1" - 1}},
        {{"a", sizeof "a" - 1},
         {"text/csv; x=y", sizeof "text/csv; x=y" - 1},
         {"", 0},
         {"1", sizeof "1" - 1}},
        {{"a", sizeof "a" - 1}, {"text", sizeof "text" - 1}, {"", 0}, {"1", sizeof "1" - 1}},
        {{"a", sizeof "a" - 1},
         {"multipart/mixed", sizeof "multipart/mixed" - 1},
         {"", 0},
         {"1", sizeof "1" - 1}},
        {{"a", sizeof "a" - 1},
         {"text/csv", sizeof "text/csv" - 1},
         {"x>\r\nX: y", sizeof "x>\r\nX: y" - 1},
         {"1", sizeof "1" - 1}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        MimeMail mail = plain_mail();
        mail.files = &bad[i];
        mail.file_count = 1;
        expect_refused(&mail, "file 1 has a name, a type or a content id that no header can hold");
    }
}

static void extras_stand_each_in_a_line_that_they_cannot_leave(void **state)
{
    (void)state;
    Buf out;
    Error err = {0};
    MimeMail mail = plain_mail();
    mail.list_id = STR("welcome.example.com");
    mail.feedback_id = STR("dbt_1:marketing:acme:stentor");
    mail.cfbl_address = STR("b+1@bounces.example.com");
    buf_init(&out, MIME_BYTES_MAX);
    assert_true(mime_compose(&mail, &out, &err));
    assert_non_null(strstr(
        buf_c(&out), "\r\nList-Id: <welcome.example.com>\r\n"
                     "Feedback-ID: dbt_1:marketing:acme:stentor\r\n"
                     "CFBL-Address: b+1@bounces.example.com; report=arf\r\n"));
    buf_done(&out);
    mail.list_id = STR("x>\r\nBcc: eve@example.com");
    expect_refused(&mail, "header 'List-Id' has a control character or is too long");
}

static void an_unsubscribe_url_cannot_begin_a_header(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "https://x.example/a\r\nBcc: eve@example.com",
        "https://x.example/a\nb",
        "https://x.example/>, <mailto:eve@example.com",
        "https://x.example/a b",
        "https://x.example/\xc3\xa9",
        "javascript:alert(1)",
        "mailto:x@example.com",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        MimeMail mail = plain_mail();
        mail.unsubscribe_url = str_from(bad[i]);
        expect_refused(&mail, "'unsubscribe_url' is not a URL fit for a header");
    }
    char text[MIME_URL_MAX + 2];
    memset(text, 'a', sizeof text);
    memcpy(text, "https://", 8);
    MimeMail mail = plain_mail();
    mail.unsubscribe_url = str_of(text, MIME_URL_MAX + 1);
    expect_refused(&mail, "'unsubscribe_url' is not a URL fit for a header");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_16_a_name_in_a_header_turns_no_direction),
        cmocka_unit_test(a_plain_text_is_one_part_in_7bit),
        cmocka_unit_test(text_and_html_are_alternatives_with_a_fixed_boundary),
        cmocka_unit_test(the_same_mail_gives_the_same_bytes),
        cmocka_unit_test(a_line_break_in_a_header_is_refused),
        cmocka_unit_test(an_address_that_is_none_is_refused),
        cmocka_unit_test(an_address_tells_whether_it_is_ascii),
        cmocka_unit_test(long_headers_are_folded_at_spaces),
        cmocka_unit_test(ascii_is_never_encoded_for_its_length_or_its_spaces),
        cmocka_unit_test(a_word_that_no_line_holds_is_encoded),
        cmocka_unit_test(a_folded_subject_reads_as_it_was_given),
        cmocka_unit_test(headers_that_are_not_ascii_become_encoded_words),
        cmocka_unit_test(names_are_quoted_and_long_ones_stand_alone),
        cmocka_unit_test(quoted_printable_breaks_lines_and_guards_their_ends),
        cmocka_unit_test(no_encoded_line_is_longer_than_76),
        cmocka_unit_test(base64_carries_crlf),
        cmocka_unit_test(the_encoding_fits_the_text),
        cmocka_unit_test(a_mail_without_a_body_is_refused),
        cmocka_unit_test(an_unsubscribe_url_stands_alone_in_its_line),
        cmocka_unit_test(one_click_is_offered_over_https_and_on_this_machine_only),
        cmocka_unit_test(files_stand_around_the_texts),
        cmocka_unit_test(a_files_name_beyond_ascii_is_coded),
        cmocka_unit_test(a_file_that_no_header_can_hold_is_refused),
        cmocka_unit_test(extras_stand_each_in_a_line_that_they_cannot_leave),
        cmocka_unit_test(an_unsubscribe_url_cannot_begin_a_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
