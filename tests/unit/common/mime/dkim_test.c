// SPDX-License-Identifier: Apache-2.0
// Vectors: RFC 8463, appendix A (keys, mail and both signatures); RFC 6376, 3.4.5 (canonical
// forms).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/mime/dkim.h"
#include "common/mime/mime.h"
#include "common/mime/mime_encode.h"

static const char RSA_PEM[] = "-----BEGIN RSA PRIVATE KEY-----\n"
                              "MIICXQIBAAKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQi\n"
                              "Y/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqM\n"
                              "KrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB\n"
                              "AoGAH0cxOhFZDgzXWhDhnAJDw5s4roOXN4OhjiXa8W7Y3rhX3FJqmJSPuC8N9vQm\n"
                              "6SVbaLAE4SG5mLMueHlh4KXffEpuLEiNp9Ss3O4YfLiQpbRqE7Tm5SxKjvvQoZZe\n"
                              "zHorimOaChRL2it47iuWxzxSiRMv4c+j70GiWdxXnxe4UoECQQDzJB/0U58W7RZy\n"
                              "6enGVj2kWF732CoWFZWzi1FicudrBFoy63QwcowpoCazKtvZGMNlPWnC7x/6o8Gc\n"
                              "uSe0ga2xAkEA8C7PipPm1/1fTRQvj1o/dDmZp243044ZNyxjg+/OPN0oWCbXIGxy\n"
                              "WvmZbXriOWoSALJTjExEgraHEgnXssuk7QJBALl5ICsYMu6hMxO73gnfNayNgPxd\n"
                              "WFV6Z7ULnKyV7HSVYF0hgYOHjeYe9gaMtiJYoo0zGN+L3AAtNP9huqkWlzECQE1a\n"
                              "licIeVlo1e+qJ6Mgqr0Q7Aa7falZ448ccbSFYEPD6oFxiOl9Y9se9iYHZKKfIcst\n"
                              "o7DUw1/hz2Ck4N5JrgUCQQCyKveNvjzkkd8HjYs0SwM0fPjK16//5qDZ2UiDGnOe\n"
                              "uEzxBDAr518Z8VFbR41in3W4Y3yCDgQlLlcETrS+zYcL\n"
                              "-----END RSA PRIVATE KEY-----\n";
static const char ED25519_PEM[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";

static const char RFC_HEADERS[] =
    "From: Joe SixPack <joe@football.example.com>\r\n"
    "To: Suzie Q <suzie@shopping.example.net>\r\n"
    "Subject: Is dinner ready?\r\n"
    "Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n"
    "Message-ID: <20030712040037.46341.5F8J@football.example.com>\r\n";
static const char RFC_BODY[] =
    "Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n\r\n";
static const char RFC_NAMES[] =
    "from : to :\r\n subject : date : message-id : from : subject : date";
static const char RFC_RSA_NAMES[] =
    "from : to : subject :\r\n date : message-id : from : subject : date";

static DkimKey *key_of(DkimAlgorithm algorithm, const char *pem)
{
    Error err = {0};
    DkimKey *key = dkim_key_read(algorithm, str_from(pem), &err);
    assert_non_null(key);
    return key;
}

static void expect_signature(
    DkimAlgorithm algorithm, const char *pem, const char *names, const char *header,
    const char *expected)
{
    DkimKey *key = key_of(algorithm, pem);
    uint8_t hash[SHA256_LEN];
    Error err = {0};
    Buf out;
    buf_init(&out, 4096);
    dkim_header_hash(str_from(RFC_HEADERS), str_from(names), str_from(header), hash);
    assert_true(dkim_sign_hash(key, hash, &out, &err));
    assert_string_equal(buf_c(&out), expected);
    buf_done(&out);
    dkim_key_free(key);
}

static void the_body_of_rfc_8463_has_its_hash(void **state)
{
    (void)state;
    uint8_t hash[SHA256_LEN];
    Buf text;
    buf_init(&text, 256);
    dkim_body_hash(str_from(RFC_BODY), hash);
    mime_base64(str_of(hash, sizeof hash), &text);
    assert_string_equal(buf_c(&text), "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=");
    buf_done(&text);
}

static void both_signatures_of_rfc_8463_come_out(void **state)
{
    (void)state;
    expect_signature(
        DKIM_ED25519_SHA256, ED25519_PEM, RFC_NAMES,
        "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n"
        " d=football.example.com; i=@football.example.com;\r\n"
        " q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n"
        " subject : date : message-id : from : subject : date;\r\n"
        " bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n b=",
        "/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw"
        "==");
    expect_signature(
        DKIM_RSA_SHA256, RSA_PEM, RFC_RSA_NAMES,
        "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n"
        " d=football.example.com; i=@football.example.com;\r\n"
        " q=dns/txt; s=test; t=1528637909; h=from : to : subject :\r\n"
        " date : message-id : from : subject : date;\r\n"
        " bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n b=",
        "F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1"
        "tFOeS9mPYQTnGdaSGsgeefOsk2JzdA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=");
}

static void expect_body(const char *body, const char *canonical)
{
    uint8_t hash[SHA256_LEN];
    uint8_t expected[SHA256_LEN];
    dkim_body_hash(str_from(body), hash);
    sha256(str_from(canonical), expected);
    assert_memory_equal(hash, expected, sizeof hash);
}

static void a_body_is_relaxed_as_rfc_6376_says(void **state)
{
    (void)state;
    expect_body(" C \r\nD \t E\r\n\r\n\r\n", " C\r\nD E\r\n"); // its example
    expect_body("", "");
    expect_body("\r\n\r\n", "");
    expect_body(" \t\r\n", "");
    expect_body("no end", "no end\r\n");
    expect_body("a\r\n\r\n\r\nb\r\n", "a\r\n\r\n\r\nb\r\n");
    char longer[9000];
    memset(longer, 'x', sizeof longer - 3);
    memcpy(longer + sizeof longer - 3, "\r\n", 3);
    expect_body(longer, longer);
}

static void headers_are_relaxed_as_rfc_6376_says(void **state)
{
    (void)state;
    uint8_t hash[SHA256_LEN];
    uint8_t expected[SHA256_LEN];
    dkim_header_hash(STR("A: X\r\nB : Y\t\r\n\tZ  \r\n"), STR("A:B:b:nothing"), STR("S: b="), hash);
    sha256(STR("a:X\r\nb:Y Z\r\ns:b="), expected); // its example, and a signature
    assert_memory_equal(hash, expected, sizeof hash);
    dkim_header_hash(STR("A: 1\r\nB: 2\r\na: 3\r\n"), STR("a:a:a:b"), STR("S: b="), hash);
    sha256(STR("a:3\r\na:1\r\nb:2\r\ns:b="), expected); // the last one first (5.4.2)
    assert_memory_equal(hash, expected, sizeof hash);
}

static void a_mail_gets_a_signature_of_each_key(void **state)
{
    (void)state;
    Error err = {0};
    MimeMail mail = {
        .from = STR("shop@example.com"),
        .to = STR("alice@example.org"),
        .subject = STR("Hello"),
        .text = STR("Hello"),
        .id = STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .id_domain = STR("mail.example.com"),
        .unsubscribe_url = STR("https://links.example.com/u/oot_1"),
    };
    Buf message;
    Buf out;
    buf_init(&message, MIME_BYTES_MAX);
    buf_init(&out, 16384);
    assert_true(mime_compose(&mail, &message, &err));
    DkimKey *rsa = key_of(DKIM_RSA_SHA256, RSA_PEM);
    DkimKey *ed = key_of(DKIM_ED25519_SHA256, ED25519_PEM);
    DkimSigner signers[] = {
        {STR("example.com"), STR("s1"), rsa, false}, {STR("example.com"), STR("s2"), ed, false}};
    assert_true(dkim_sign(buf_view(&message), signers, 2, 1795199136123456, &out, &err));
    const char *text = buf_c(&out);
    assert_non_null(strstr(text, "a=rsa-sha256; c=relaxed/relaxed;\r\n d=example.com;\r\n s=s1;"));
    assert_non_null(
        strstr(text, "a=ed25519-sha256; c=relaxed/relaxed;\r\n d=example.com;\r\n s=s2"));
    assert_non_null(strstr(text, "t=1795199136;"));
    // Each once more than it stands there: another From, Cc or Reply-To breaks the signature.
    assert_non_null(strstr(
        text, " h=From:From:To:To:Cc:Subject:Subject:Date:Date:Message-ID:Message-ID:\r\n"
              " Reply-To:MIME-Version:MIME-Version:Content-Type:Content-Type:\r\n"
              " Content-Transfer-Encoding:List-Unsubscribe:List-Unsubscribe:\r\n"
              " List-Unsubscribe-Post:List-Unsubscribe-Post:Auto-Submitted;\r\n"));
    assert_null(strstr(text, "\n\r\n"));
    assert_true(str_ends(buf_view(&out), STR("\r\n")));
    signers[1].rewritten = true;
    Buf other;
    buf_init(&other, 16384);
    assert_true(dkim_sign(buf_view(&message), signers, 2, 1795199136123456, &other, &err));
    const char *second = strstr(buf_c(&other) + 1, "DKIM-Signature: ");
    assert_non_null(strstr(second, " h=From:From:To:To:Cc:Subject:Subject:Reply-To:MIME-Version:"));
    assert_null(strstr(second, "Date"));
    size_t first = (size_t)(strstr(text + 1, "DKIM-Signature: ") - text);
    assert_memory_equal(buf_c(&other), text, first);
    buf_done(&other);
    Str line;
    for (Str rest = buf_view(&out); str_split(&rest, '\n', &line);) {
        assert_true(line.len <= MIME_LINE_MAX + 1);
    }
    dkim_key_free(rsa);
    dkim_key_free(ed);
    buf_done(&message);
    buf_done(&out);
}

static void what_is_no_mail_is_refused(void **state)
{
    (void)state;
    Error err = {0};
    Buf out;
    buf_init(&out, 4096);
    assert_false(dkim_sign(STR("From: <a@b.example>\r\n"), NULL, 0, 0, &out, &err));
    assert_non_null(strstr(err.text, "without an end"));
    assert_false(dkim_sign(STR("To: <a@b.example>\r\n\r\nHi"), NULL, 0, 0, &out, &err));
    assert_non_null(strstr(err.text, "without From"));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    buf_done(&out);
}

static void expect_no_key(DkimAlgorithm algorithm, Str pem, const char *part)
{
    Error err = {0};
    assert_null(dkim_key_read(algorithm, pem, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, part));
}

static void a_wrong_key_is_refused(void **state)
{
    (void)state;
    expect_no_key(DKIM_RSA_SHA256, STR(""), "not a private key in PEM");
    expect_no_key(DKIM_RSA_SHA256, STR("-----BEGIN PRIVATE KEY-----\nAAAA\n"), "not a private key");
    expect_no_key(DKIM_RSA_SHA256, str_from(ED25519_PEM), "not an RSA key");
    expect_no_key(DKIM_ED25519_SHA256, str_from(RSA_PEM), "not an Ed25519 key");
    // Asks for a passphrase.
    expect_no_key(
        DKIM_ED25519_SHA256,
        STR("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIBrzBJBgkqhkiG9w0BBQ0wPDAb\n"
            "-----END ENCRYPTED PRIVATE KEY-----\n"),
        "without a passphrase");
}

static void the_record_is_what_dns_must_hold(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, DKIM_RECORD_MAX);
    DkimKey *ed = key_of(DKIM_ED25519_SHA256, ED25519_PEM);
    assert_true(dkim_key_record(ed, &out));
    assert_string_equal(
        buf_c(&out), "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
    buf_clear(&out);
    DkimKey *rsa = key_of(DKIM_RSA_SHA256, RSA_PEM);
    assert_true(dkim_key_record(rsa, &out));
    assert_string_equal(
        buf_c(&out),
        "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5q"
        "hdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hs"
        "tT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB");
    dkim_key_free(ed);
    dkim_key_free(rsa);
    buf_done(&out);
}

static void a_selector_is_labels(void **state)
{
    (void)state;
    assert_true(dkim_is_selector(STR("s1")));
    assert_true(dkim_is_selector(STR("mail.2026-11")));
    assert_false(dkim_is_selector(STR("")));
    assert_false(dkim_is_selector(STR(".a")));
    assert_false(dkim_is_selector(STR("a.")));
    assert_false(dkim_is_selector(STR("a..b")));
    assert_false(dkim_is_selector(STR("-a")));
    assert_false(dkim_is_selector(STR("a-.b")));
    assert_false(dkim_is_selector(STR("A")));
    assert_false(dkim_is_selector(STR("a;b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_body_of_rfc_8463_has_its_hash),
        cmocka_unit_test(both_signatures_of_rfc_8463_come_out),
        cmocka_unit_test(a_body_is_relaxed_as_rfc_6376_says),
        cmocka_unit_test(headers_are_relaxed_as_rfc_6376_says),
        cmocka_unit_test(a_mail_gets_a_signature_of_each_key),
        cmocka_unit_test(what_is_no_mail_is_refused),
        cmocka_unit_test(a_wrong_key_is_refused),
        cmocka_unit_test(the_record_is_what_dns_must_hold),
        cmocka_unit_test(a_selector_is_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
