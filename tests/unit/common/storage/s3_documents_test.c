// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/storage/s3_documents.h"

#define ENTRY(key, size)                                                                           \
    "<Contents><Key>" key "</Key><LastModified>2026-11-23T10:00:00.000Z</LastModified>"            \
    "<ETag>&quot;abc&quot;</ETag><Size>" size "</Size><Owner><ID>Key</ID></Owner></Contents>"
#define LIST(text)                                                                                 \
    "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"u\">" text "</ListBucketResult>"

static void on_entry(void *ctx, const S3Entry *entry)
{
    Buf *out = ctx;
    buf_printf(
        out, "[" STR_FMT " " STR_FMT " %llu %lld]", STR_ARG(entry->key), STR_ARG(entry->etag),
        (unsigned long long)entry->bytes, (long long)entry->modified_us);
}

static bool read_list(const char *text, Buf *out, S3Page *page, Error *err)
{
    buf_init(out, 4096);
    s3_page_init(page);
    return s3_page_read(page, str_from(text), on_entry, out, err);
}

static void a_page_gives_its_entries_and_the_token_of_the_next(void **state)
{
    (void)state;
    Buf out;
    S3Page page;
    Error err = {0};
    assert_true(read_list(
        LIST("<Name>b</Name><IsTruncated>true</IsTruncated>" ENTRY("a/b=1&amp;&#x3c;&#233;", "7")
                 ENTRY(
                     "a/c", "5000000000") "<NextContinuationToken>t&#43;1</NextContinuationToken>"),
        &out, &page, &err));
    assert_string_equal(
        buf_c(&out),
        "[a/b=1&<\xc3\xa9 abc 7 1795428000000000][a/c abc 5000000000 1795428000000000]");
    assert_true(page.truncated);
    assert_string_equal(buf_c(&page.token), "t+1");
    s3_page_done(&page);
    buf_done(&out);
}

static void an_empty_list_is_one(void **state)
{
    (void)state;
    Buf out;
    S3Page page;
    Error err = {0};
    assert_true(read_list("<ListBucketResult/>", &out, &page, &err));
    assert_false(page.truncated);
    assert_int_equal(out.len, 0);
    s3_page_done(&page);
    buf_done(&out);
}

static void what_is_no_page_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "hello",
        "<Error><Code>x</Code></Error>",
        "<ListBucketResult>",
        LIST("<IsTruncated>true</IsTruncated>"),
        LIST(ENTRY("", "1")),
        LIST(ENTRY("a", "-1")),
        LIST(ENTRY("a", "99999999999999999999")),
        LIST("<Contents><Key>a</Key></Contents>"),
        LIST("<Contents><Key>a</Key><Size>1</Size>"),
        LIST("<Name>&unknown;</Name>"),
        LIST("<Name>&#xD800;</Name>"),
        LIST("<Name><![CDATA[x]]></Name>"),
        "<!DOCTYPE a><ListBucketResult/>",
        "<ListBucketResult></Other>",
        "<ListBucketResult/><ListBucketResult/>",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Buf out;
        S3Page page;
        Error err = {0};
        if (read_list(texts[i], &out, &page, &err)) {
            fail_msg("'%s' was read", texts[i]);
        }
        assert_int_equal(err.kind, ERROR_TRANSIENT);
        s3_page_done(&page);
        buf_done(&out);
    }
}

static void an_error_has_a_code_and_a_text_fit_for_a_log(void **state)
{
    (void)state;
    char code[S3_CODE_SIZE], text[S3_TEXT_SIZE];
    s3_error_read(
        STR("<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>a\nb</Message>"
            "<Detail><Code>Other</Code></Detail></Error>"),
        code, text);
    assert_string_equal(code, "SlowDown");
    assert_string_equal(text, "a?b");
    s3_error_read(STR("<html><Code>x</Code></html>"), code, text);
    assert_string_equal(code, "");
    s3_error_read(STR("Bad Gateway"), code, text);
    assert_string_equal(code, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_gives_its_entries_and_the_token_of_the_next),
        cmocka_unit_test(an_empty_list_is_one),
        cmocka_unit_test(what_is_no_page_is_refused),
        cmocka_unit_test(an_error_has_a_code_and_a_text_fit_for_a_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
