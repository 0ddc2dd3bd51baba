// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/storage/s3_url.h"

static S3Url parsed(const char *url, const char *vendor)
{
    S3Url ret;
    Error err = {0};
    if (!s3_url_parse(url, vendor, &ret, &err)) {
        fail_msg("%s: %s", url, err.text);
    }
    return ret;
}

static void a_bucket_of_aws_is_in_its_region(void **state)
{
    (void)state;
    S3Url url = parsed("s3://my.bucket-1?region=eu-west-1", NULL);
    assert_string_equal(url.bucket, "my.bucket-1");
    assert_string_equal(url.prefix, "");
    assert_string_equal(url.origin, "https://s3.eu-west-1.amazonaws.com");
    assert_string_equal(url.host, "s3.eu-west-1.amazonaws.com");
    assert_int_equal(url.condition, S3_BY_ETAG);
    assert_ptr_equal(url.words, &sigv4_aws);
    assert_int_equal(url.patience_ms, 60000);
}

static void an_endpoint_a_prefix_and_patience_are_parameters(void **state)
{
    (void)state;
    S3Url url = parsed(
        "s3://abc/a/b=1/?endpoint=http://127.0.0.1:9000/&patience_s=5&timeout_s=2&condition=none"
        "&ca_file=/etc/ca.pem",
        "ceph");
    assert_string_equal(url.prefix, "a/b=1/");
    assert_string_equal(url.origin, "http://127.0.0.1:9000");
    assert_string_equal(url.host, "127.0.0.1:9000");
    assert_string_equal(url.region, "us-east-1");
    assert_string_equal(url.ca_file, "/etc/ca.pem");
    assert_int_equal(url.condition, S3_NO_CONDITION);
    assert_int_equal(url.patience_ms, 5000);
    assert_int_equal(url.timeout_ms, 2000);
}

static void the_usual_port_is_not_in_the_host(void **state)
{
    (void)state;
    assert_string_equal(parsed("s3://abc?endpoint=https://h:443", "").host, "h");
    assert_string_equal(parsed("s3://abc?endpoint=http://h:80", "").host, "h");
    assert_string_equal(parsed("s3://abc?endpoint=http://h:443", "").host, "h:443");
    assert_string_equal(parsed("s3://abc?endpoint=http://[::1]:80", "").host, "[::1]");
}

static void google_has_its_own_words_and_condition(void **state)
{
    (void)state;
    S3Url url = parsed("s3://abc/x", "gcs");
    assert_string_equal(url.origin, "https://storage.googleapis.com");
    assert_string_equal(url.region, "auto");
    assert_int_equal(url.condition, S3_BY_GENERATION);
    assert_ptr_equal(url.words, &sigv4_goog);
}

static void what_cannot_be_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *url, *vendor, *says;
    } cases[] = {
        {"s3://", NULL, "bucket"},
        {"s3://ab?region=r", NULL, "bucket"},
        {"s3://a_b/../c?region=r", NULL, "prefix"},
        {"s3://abc//c?region=r", NULL, "prefix"},
        {"s3://abc/c d?region=r", NULL, "prefix"},
        {"s3://a..c?region=r", NULL, "bucket"},
        {"s3://abc", NULL, "region"},
        {"s3://abc", "ceph", "endpoint"},
        {"s3://abc?region=", NULL, "region"},
        {"s3://abc?endpoint=ftp://x", NULL, "endpoint"},
        {"s3://abc?endpoint=http://x/y", NULL, "endpoint"},
        {"s3://abc?endpoint=http://u:p@x", NULL, "endpoint"},
        {"s3://abc?region=r&condition=maybe", NULL, "condition"},
        {"s3://abc?region=r&patience_s=0", NULL, "patience_s"},
        {"s3://abc?region=r&patience_s", NULL, "patience_s"},
        {"s3://abc?region=r&colour=red", NULL, "colour"},
        {"s3://abc?region=r", "azure", "azure"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        S3Url ret;
        Error err = {0};
        assert_false(s3_url_parse(cases[i].url, cases[i].vendor, &ret, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        if (strstr(err.text, cases[i].says) == NULL) {
            fail_msg("%s: %s", cases[i].url, err.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_of_aws_is_in_its_region),
        cmocka_unit_test(an_endpoint_a_prefix_and_patience_are_parameters),
        cmocka_unit_test(the_usual_port_is_not_in_the_host),
        cmocka_unit_test(google_has_its_own_words_and_condition),
        cmocka_unit_test(what_cannot_be_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
