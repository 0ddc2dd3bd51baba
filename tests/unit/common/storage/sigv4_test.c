// SPDX-License-Identifier: Apache-2.0
// The requests of AWS's own suite for Signature Version 4 (those that no client may normalise: S3
// takes a path as it is), and the examples of Amazon's page for S3.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/storage/sigv4.h"

#define UNRESERVED "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// clang-format off
#define LIT(text) {(text), sizeof(text) - 1} // STR has a cast, which no table may
#define NONE {{{NULL, 0}, {NULL, 0}}}
// clang-format on

enum { EACH_MAX = 5, OUT_MAX = 8192 };

typedef struct Vector {
    const char *name;
    Str method, path;
    SigV4Pair query[EACH_MAX];
    size_t query_count;
    SigV4Pair headers[EACH_MAX];
    size_t header_count;
    const char *body;
    const char *signature;
} Vector;

// clang-format off
static const Vector vectors[] = {
    {"get-header-key-duplicate", LIT("GET"), LIT("/"), NONE, 0, {{LIT("my-header1"), LIT("value2")}, {LIT("my-header1"), LIT("value2")}, {LIT("my-header1"), LIT("value1")}}, 3, "", "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
    {"get-header-value-multiline", LIT("GET"), LIT("/"), NONE, 0, {{LIT("my-header1"), LIT("value1   value2      value3")}}, 1, "", "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd"},
    {"get-header-value-order", LIT("GET"), LIT("/"), NONE, 0, {{LIT("my-header1"), LIT("value4")}, {LIT("my-header1"), LIT("value1")}, {LIT("my-header1"), LIT("value3")}, {LIT("my-header1"), LIT("value2")}}, 4, "", "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
    {"get-header-value-trim", LIT("GET"), LIT("/"), NONE, 0, {{LIT("my-header1"), LIT(" value1")}, {LIT("my-header2"), LIT(" \"a   b   c\"")}}, 2, "", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"get-relative-relative-unnormalized", LIT("GET"), LIT("/example1/example2/../.."), NONE, 0, NONE, 0, "", "dc33e0856fd4baca4d7aa2146c38958283844764f38c74252a333df5e613003b"},
    {"get-relative-unnormalized", LIT("GET"), LIT("/example/.."), NONE, 0, NONE, 0, "", "eca7ead57bb5aa5c8e28007acd4ff04e1ff9a0ff3b237ec1554a184887ff9282"},
    {"get-slash-dot-slash-unnormalized", LIT("GET"), LIT("/./"), NONE, 0, NONE, 0, "", "68714168e6557f8f2de0ef956fc24dc2593a4bd2961f8df51898d8a134695145"},
    {"get-slash-pointless-dot-unnormalized", LIT("GET"), LIT("/./example"), NONE, 0, NONE, 0, "", "beb03f223f7deae4146464f06e29eebbee9c8afbe15c290cf07aa8b119e14cff"},
    {"get-slash-unnormalized", LIT("GET"), LIT("//"), NONE, 0, NONE, 0, "", "c88bcd3d312d75078c0cd961d6deae3f4c754924b01669efcfcb439fd5e5b76e"},
    {"get-slashes-unnormalized", LIT("GET"), LIT("//example//"), NONE, 0, NONE, 0, "", "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5"},
    {"get-space-unnormalized", LIT("GET"), LIT("/example space/"), NONE, 0, NONE, 0, "", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
    {"get-unreserved", LIT("GET"), LIT("/" UNRESERVED), NONE, 0, NONE, 0, "", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
    {"get-utf8", LIT("GET"), LIT("/ሴ"), NONE, 0, NONE, 0, "", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"get-vanilla", LIT("GET"), LIT("/"), NONE, 0, NONE, 0, "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-empty-query-key", LIT("GET"), LIT("/"), {{LIT("Param1"), LIT("value1")}}, 1, NONE, 0, "", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
    {"get-vanilla-query-order-encoded", LIT("GET"), LIT("/"), {{LIT("Param-3"), LIT("Value3")}, {LIT("Param"), LIT("Value2")}, {LIT("ሴ"), LIT("Value1")}}, 3, NONE, 0, "", "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"},
    {"get-vanilla-query-order-key-case", LIT("GET"), LIT("/"), {{LIT("Param2"), LIT("value2")}, {LIT("Param1"), LIT("value1")}}, 2, NONE, 0, "", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-query-unreserved", LIT("GET"), LIT("/"), {{LIT(UNRESERVED), LIT(UNRESERVED)}}, 1, NONE, 0, "", "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
    {"get-vanilla-utf8-query", LIT("GET"), LIT("/"), {{LIT("ሴ"), LIT("bar")}}, 1, NONE, 0, "", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
    {"get-vanilla-with-session-token", LIT("GET"), LIT("/"), NONE, 0, {{LIT("x-amz-security-token"), LIT("6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267")}}, 1, "", "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"},
    {"post-vanilla", LIT("POST"), LIT("/"), NONE, 0, NONE, 0, "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-header-key-sort", LIT("POST"), LIT("/"), NONE, 0, {{LIT("my-header1"), LIT("value1")}}, 1, "", "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
    {"post-header-value-case", LIT("POST"), LIT("/"), NONE, 0, {{LIT("my-header1"), LIT("VALUE1")}}, 1, "", "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
    {"post-vanilla-query", LIT("POST"), LIT("/"), {{LIT("Param1"), LIT("value1")}}, 1, NONE, 0, "", "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
    {"post-x-www-form-urlencoded", LIT("POST"), LIT("/"), NONE, 0, {{LIT("content-type"), LIT("application/x-www-form-urlencoded")}, {LIT("content-length"), LIT("13")}}, 2, "Param1=value1", "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"},
    {"post-x-www-form-urlencoded-parameters", LIT("POST"), LIT("/"), NONE, 0, {{LIT("content-type"), LIT("application/x-www-form-urlencoded; charset=utf-8")}, {LIT("content-length"), LIT("13")}}, 2, "Param1=value1", "328d1b9eaadca9f5818ef05e8392801e091653bafec24fcab71e7344e7f51422"},
};
// clang-format on

static void hash_of(const char *body, char out[2 * SHA256_LEN + 1])
{
    uint8_t digest[SHA256_LEN];
    sha256(str_from(body), digest);
    hex_encode(digest, sizeof digest, out);
}

// The part behind "Signature=".
static void sign(const SigV4Key *key, const SigV4Request *request, char out[2 * SHA256_LEN + 1])
{
    Buf text;
    buf_init(&text, OUT_MAX);
    sigv4_authorization(key, request, &text);
    const char *found = strstr(buf_c(&text), "Signature=");
    assert_non_null(found);
    assert_true(str_to_c(str_from(found + 10), out, 2 * SHA256_LEN + 1));
    buf_done(&text);
}

static const SigV4Key suite_key = {
    .words = &sigv4_aws,
    .id = {"AKIDEXAMPLE", 11},
    .secret = {"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 40},
    .region = {"us-east-1", 9},
    .service = {"service", 7}};

static void the_vectors_of_the_suite_are_signed_alike(void **state)
{
    (void)state;
    int64_t at_us;
    assert_true(clock_parse(STR("2015-08-30T12:36:00Z"), &at_us));
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const Vector *vector = &vectors[i];
        char payload[2 * SHA256_LEN + 1], signature[2 * SHA256_LEN + 1];
        hash_of(vector->body, payload);
        SigV4Pair headers[EACH_MAX + 3];
        size_t count = 0;
        headers[count++] = (SigV4Pair){STR("x-amz-date"), STR("20150830T123600Z")};
        for (size_t j = 0; j < vector->header_count; j++) {
            headers[count++] = vector->headers[j];
        }
        headers[count++] = (SigV4Pair){STR("host"), STR("example.amazonaws.com")};
        if (vector->body[0] != '\0') {
            headers[count++] = (SigV4Pair){STR("x-amz-content-sha256"), str_from(payload)};
        }
        SigV4Request request = {
            .method = vector->method,
            .path = vector->path,
            .query = vector->query,
            .query_count = vector->query_count,
            .headers = headers,
            .header_count = count,
            .payload = str_from(payload),
            .at_us = at_us};
        sign(&suite_key, &request, signature);
        if (strcmp(signature, vector->signature) != 0) {
            fail_msg("%s: %s", vector->name, signature);
        }
    }
}

typedef struct Example {
    Str method, path;
    SigV4Pair query[2];
    size_t query_count;
    SigV4Pair headers[3];
    size_t header_count;
    const char *body, *signature;
} Example;

// clang-format off
static const Example examples[] = {
    {LIT("GET"), LIT("/test.txt"), NONE, 0, {{LIT("range"), LIT("bytes=0-9")}}, 1, "",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {LIT("PUT"), LIT("/test$file.text"), NONE, 0,
        {{LIT("date"), LIT("Fri, 24 May 2013 00:00:00 GMT")}, {LIT("x-amz-storage-class"), LIT("REDUCED_REDUNDANCY")}}, 2,
        "Welcome to Amazon S3.", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
    {LIT("GET"), LIT("/"), {{LIT("lifecycle"), LIT("")}}, 1, NONE, 0, "",
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {LIT("GET"), LIT("/"), {{LIT("prefix"), LIT("J")}, {LIT("max-keys"), LIT("2")}}, 2, NONE, 0, "",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};
// clang-format on

static void the_examples_of_the_s3_page_are_signed_alike(void **state)
{
    (void)state;
    SigV4Key key = suite_key;
    key.id = STR("AKIAIOSFODNN7EXAMPLE");
    key.secret = STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    key.service = STR("s3");
    int64_t at_us;
    assert_true(clock_parse(STR("2013-05-24T00:00:00Z"), &at_us));
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const Example *example = &examples[i];
        char payload[2 * SHA256_LEN + 1], signature[2 * SHA256_LEN + 1];
        hash_of(example->body, payload);
        SigV4Pair headers[6] = {
            {STR("x-amz-content-sha256"), str_from(payload)},
            {STR("x-amz-date"), STR("20130524T000000Z")},
            {STR("host"), STR("examplebucket.s3.amazonaws.com")}};
        for (size_t j = 0; j < example->header_count; j++) {
            headers[3 + j] = example->headers[j];
        }
        SigV4Request request = {
            .method = example->method,
            .path = example->path,
            .query = example->query,
            .query_count = example->query_count,
            .headers = headers,
            .header_count = 3 + example->header_count,
            .payload = str_from(payload),
            .at_us = at_us};
        sign(&key, &request, signature);
        assert_string_equal(signature, example->signature);
    }
}

static void a_hive_path_and_a_query_are_encoded_once_and_sorted(void **state)
{
    (void)state;
    const SigV4Pair query[] = {{STR("versionId"), STR("a+b/c=")}, {STR("a b"), STR("")}};
    const SigV4Pair headers[] = {
        {STR("x-amz-meta-sum-two"), STR("2")}, {STR("x-amz-meta-sum"), STR("a \t b")}};
    SigV4Request request = {
        .method = STR("GET"),
        .path = STR("/b/month=2026-10/a+b%2F~"),
        .query = query,
        .query_count = 2,
        .headers = headers,
        .header_count = 2,
        .payload = STR("hash")};
    Buf text;
    buf_init(&text, OUT_MAX);
    sigv4_canonical(&request, &text);
    assert_string_equal(
        buf_c(&text),
        "GET\n/b/month%3D2026-10/a%2Bb%252F~\na%20b=&versionId=a%2Bb%2Fc%3D\n"
        "x-amz-meta-sum:a b\nx-amz-meta-sum-two:2\n\nx-amz-meta-sum;x-amz-meta-sum-two\nhash");
    buf_done(&text);
}

static void googles_words_are_in_algorithm_scope_and_key(void **state)
{
    (void)state;
    const SigV4Pair headers[] = {{STR("host"), STR("storage.googleapis.com")}};
    SigV4Request request = {
        .method = STR("GET"),
        .path = STR("/b"),
        .headers = headers,
        .header_count = 1,
        .payload = STR("p")};
    SigV4Key key = suite_key;
    char ours[2 * SHA256_LEN + 1], theirs[2 * SHA256_LEN + 1];
    sign(&key, &request, ours);
    key.words = &sigv4_goog;
    sign(&key, &request, theirs);
    assert_string_not_equal(ours, theirs);
    Buf text;
    buf_init(&text, OUT_MAX);
    sigv4_authorization(&key, &request, &text);
    assert_true(str_starts(
        buf_view(&text), STR("GOOG4-HMAC-SHA256 Credential=AKIDEXAMPLE/19700101/us-east-1/service/"
                             "goog4_request, SignedHeaders=host, Signature=")));
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_suite_are_signed_alike),
        cmocka_unit_test(the_examples_of_the_s3_page_are_signed_alike),
        cmocka_unit_test(a_hive_path_and_a_query_are_encoded_once_and_sorted),
        cmocka_unit_test(googles_words_are_in_algorithm_scope_and_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
