// SPDX-License-Identifier: Apache-2.0
#include "common/storage/s3_url.h"

#include <stdio.h>
#include <string.h>

enum { PATIENCE_S = 60, TIMEOUT_S = 30, SECONDS_MAX = 3600, PORT_MAX = 65535 };

static bool refuse(Error *err, const char *what, Str value)
{
    return error_set(
        err, ERROR_CONFIG,
        "the storage's %s '" STR_FMT "' cannot be (HINT: "
        "s3://bucket/prefix?region=eu-west-1&endpoint=https://host:port)",
        what, STR_ARG(str_slice(value, 0, 100)));
}

// ---- parts ----

// 3 to 63 of a-z 0-9 - . (AWS, "Bucket naming rules"; underscores and capitals are of old ones).
static bool parse_bucket(Str text, S3Url *url, Error *err)
{
    bool fine = text.len >= 3 && str_to_c(text, url->bucket, sizeof url->bucket) &&
                ascii_is_alnum(text.ptr[0]);
    for (size_t i = 0; fine && i < text.len; i++) {
        char c = text.ptr[i];
        fine = ascii_is_alnum(c) || c == '-' || c == '_' || (c == '.' && text.ptr[i - 1] != '.');
    }
    return fine || refuse(err, "bucket", text);
}

static bool parse_prefix(Str text, S3Url *url, Error *err)
{
    while (str_ends(text, STR("/"))) {
        text = str_slice(text, 0, text.len - 1);
    }
    Str rest = text, part;
    while (text.len > 0 && str_split(&rest, '/', &part)) {
        bool fine = part.len > 0 && part.ptr[0] != '.';
        for (size_t i = 0; fine && i < part.len; i++) {
            char c = part.ptr[i];
            fine = ascii_is_alnum(c) || c == '-' || c == '_' || c == '.' || c == '=';
        }
        if (!fine) {
            return refuse(err, "prefix", text);
        }
    }
    if (text.len + 2 > sizeof url->prefix) {
        return refuse(err, "prefix", text);
    }
    snprintf(url->prefix, sizeof url->prefix, STR_FMT "%s", STR_ARG(text), text.len > 0 ? "/" : "");
    return true;
}

// A name or an address (IPv6 in brackets), and a port.
static bool is_host(Str host)
{
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool fine = ascii_is_alnum(c) || c == '-' || c == '.' || c == ':' || c == '[' || c == ']';
        if (!fine) {
            return false;
        }
    }
    return host.len > 0 && host.ptr[0] != ':';
}

static bool parse_endpoint(Str text, S3Url *url, Error *err)
{
    bool tls = str_starts(text, STR("https://"));
    if (!tls && !str_starts(text, STR("http://"))) {
        return refuse(err, "endpoint", text);
    }
    Str host = str_slice(text, tls ? 8 : 7, text.len);
    host = str_ends(host, STR("/")) ? str_slice(host, 0, host.len - 1) : host;
    Str usual = tls ? STR(":443") : STR(":80");
    host = str_ends(host, usual) ? str_slice(host, 0, host.len - usual.len) : host;
    if (!is_host(host) || !str_to_c(host, url->host, sizeof url->host)) {
        return refuse(err, "endpoint", text);
    }
    snprintf(url->origin, sizeof url->origin, "%s://%s", tls ? "https" : "http", url->host);
    return true;
}

static bool parse_condition(Str text, S3Url *url, Error *err)
{
    static const char *const names[] = {"etag", "generation", "none"};
    for (int i = 0; i < 3; i++) {
        if (str_eq(text, str_from(names[i]))) {
            url->condition = (S3Condition)i;
            return true;
        }
    }
    return refuse(err, "condition", text);
}

static bool parse_region(Str text, S3Url *url, Error *err)
{
    bool fine = text.len > 0 && str_to_c(text, url->region, sizeof url->region);
    for (size_t i = 0; fine && i < text.len; i++) {
        fine = ascii_is_alnum(text.ptr[i]) || text.ptr[i] == '-' || text.ptr[i] == '_';
    }
    return fine || refuse(err, "region", text);
}

static bool parse_seconds(Str text, const char *what, int64_t *ret_ms, Error *err)
{
    int64_t seconds;
    if (!str_to_i64(text, &seconds) || seconds < 1 || seconds > SECONDS_MAX) {
        return refuse(err, what, text);
    }
    *ret_ms = seconds * 1000;
    return true;
}

static bool parse_parameter(Str name, Str value, S3Url *url, Error *err)
{
    if (str_eq(name, STR("endpoint"))) {
        return parse_endpoint(value, url, err);
    }
    if (str_eq(name, STR("region"))) {
        return parse_region(value, url, err);
    }
    if (str_eq(name, STR("condition"))) {
        return parse_condition(value, url, err);
    }
    if (str_eq(name, STR("patience_s"))) {
        return parse_seconds(value, "patience_s", &url->patience_ms, err);
    }
    if (str_eq(name, STR("timeout_s"))) {
        return parse_seconds(value, "timeout_s", &url->timeout_ms, err);
    }
    if (str_eq(name, STR("ca_file"))) {
        return str_to_c(value, url->ca_file, sizeof url->ca_file) || refuse(err, "ca_file", value);
    }
    return refuse(err, "parameter", name);
}

// ---- the whole ----

static bool begin_vendor(const char *vendor, S3Url *url, Error *err)
{
    Str name = str_from(vendor);
    *url = (S3Url){
        .words = &sigv4_aws, .patience_ms = PATIENCE_S * 1000, .timeout_ms = TIMEOUT_S * 1000};
    if (str_eq(name, STR("gcs"))) {
        url->words = &sigv4_goog;
        url->condition = S3_BY_GENERATION;
        parse_region(STR("auto"), url, err);
        return parse_endpoint(STR("https://storage.googleapis.com"), url, err);
    }
    return name.len == 0 || str_eq(name, STR("aws")) || str_eq(name, STR("ceph")) ||
           error_set(
               err, ERROR_CONFIG,
               "the storage's vendor '" STR_FMT "' is not known (HINT: aws, gcs or ceph)",
               STR_ARG(str_slice(name, 0, 40)));
}

static bool complete(const char *vendor, S3Url *url, Error *err)
{
    if (url->host[0] != '\0') {
        if (url->region[0] == '\0') {
            snprintf(url->region, sizeof url->region, "us-east-1");
        }
        return true;
    }
    if (str_eq(str_from(vendor), STR("ceph"))) {
        return error_set(
            err, ERROR_CONFIG,
            "the storage's URL names no endpoint (HINT: ?endpoint=https://host)");
    }
    if (url->region[0] == '\0') {
        return error_set(
            err, ERROR_CONFIG,
            "the storage's URL names neither region nor endpoint (HINT: ?region=eu-west-1)");
    }
    char origin[S3_HOST_SIZE];
    snprintf(origin, sizeof origin, "https://s3.%s.amazonaws.com", url->region);
    return parse_endpoint(str_from(origin), url, err);
}

static Str filled(Str text)
{
    return text.ptr == NULL ? STR_EMPTY : text;
}

static bool parse_parameters(Str rest, S3Url *url, Error *err)
{
    Str pair, name;
    while (rest.len > 0 && str_split(&rest, '&', &pair)) {
        (void)str_split(&pair, '=', &name);
        if (!parse_parameter(name, filled(pair), url, err)) {
            return false;
        }
    }
    return true;
}

bool s3_url_parse(const char *text, const char *vendor, S3Url *ret, Error *err)
{
    S3Url url;
    Str rest = str_from(text), place, bucket;
    if (!str_starts(rest, STR("s3://"))) {
        return refuse(err, "URL", str_slice(rest, 0, 5));
    }
    rest = str_slice(rest, 5, rest.len);
    (void)str_split(&rest, '?', &place);
    (void)str_split(&place, '/', &bucket);
    bool fine = begin_vendor(vendor, &url, err) && parse_bucket(bucket, &url, err) &&
                parse_prefix(filled(place), &url, err) &&
                parse_parameters(filled(rest), &url, err) && complete(vendor, &url, err);
    if (fine) {
        *ret = url;
    }
    return fine;
}
