// SPDX-License-Identifier: Apache-2.0
#include "common/http/client/guard.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <string.h>

typedef enum Reach {
    REACH_NEVER,
    REACH_PRIVATE,  // with allow_private
    REACH_LOOPBACK, // with allow_loopback
    REACH_NAT64,    // as the IPv4 address in its last four bytes, with allow_private
} Reach;

typedef struct Range {
    uint8_t bytes[16]; // of IPv4 the first four
    unsigned bits;
    Reach reach;
    const char *what;
} Range;

// The IANA special-purpose registries and what clouds put at fixed addresses; the first row that
// fits decides.
// clang-format off
static const Range RANGES_4[] = {
    {{169, 254, 169, 254}, 32, REACH_NEVER, "a cloud's metadata"},
    {{100, 100, 100, 200}, 32, REACH_NEVER, "a cloud's metadata"}, // Alibaba
    {{168, 63, 129, 16}, 32, REACH_NEVER, "a cloud's metadata"},   // Azure
    {{127}, 8, REACH_LOOPBACK, "loopback"},
    {{10}, 8, REACH_PRIVATE, "private"},
    {{172, 16}, 12, REACH_PRIVATE, "private"},
    {{192, 168}, 16, REACH_PRIVATE, "private"},
    {{100, 64}, 10, REACH_PRIVATE, "shared (CGNAT)"},
    {{0}, 8, REACH_NEVER, "this network"},
    {{169, 254}, 16, REACH_NEVER, "link-local"},
    {{192, 0, 0}, 24, REACH_NEVER, "reserved"},
    {{192, 0, 2}, 24, REACH_NEVER, "for documents"},
    {{192, 88, 99}, 24, REACH_NEVER, "reserved"},
    {{198, 18}, 15, REACH_NEVER, "for benchmarks"},
    {{198, 51, 100}, 24, REACH_NEVER, "for documents"},
    {{203, 0, 113}, 24, REACH_NEVER, "for documents"},
    {{224}, 4, REACH_NEVER, "multicast"},
    {{240}, 4, REACH_NEVER, "reserved"},
};
static const Range RANGES_6[] = {
    {{0xfd, 0x00, 0x0e, 0xc2}, 32, REACH_NEVER, "a cloud's metadata"},
    {{[15] = 1}, 128, REACH_LOOPBACK, "loopback"},
    {{0x00, 0x64, 0xff, 0x9b}, 96, REACH_NAT64, "NAT64"},
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, REACH_NEVER, "NAT64"},
    {{[10] = 0xff, [11] = 0xff}, 96, REACH_NEVER, "IPv4 in IPv6"},
    {{0}, 96, REACH_NEVER, "IPv4 in IPv6"}, // :: too
    {{0x01}, 64, REACH_NEVER, "reserved"},
    {{0x20, 0x01}, 23, REACH_NEVER, "reserved (Teredo too)"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, REACH_NEVER, "for documents"},
    {{0x20, 0x02}, 16, REACH_NEVER, "IPv4 in IPv6 (6to4)"},
    {{0x3f, 0xff}, 20, REACH_NEVER, "for documents"},
    {{0x5f, 0x00}, 16, REACH_NEVER, "reserved"},
    {{0xfc}, 7, REACH_PRIVATE, "private"},
    {{0xfe, 0x80}, 10, REACH_NEVER, "link-local"},
    {{0xfe, 0xc0}, 10, REACH_NEVER, "site-local"},
    {{0xff}, 8, REACH_NEVER, "multicast"},
    {{0x20}, 3, REACH_PRIVATE, NULL}, // 2000::/3, what is left of it: public
    {{0}, 0, REACH_NEVER, "not public"},
};
// clang-format on

static bool covers(const Range *range, const uint8_t *bytes)
{
    unsigned whole = range->bits / 8;
    unsigned rest = range->bits % 8;
    if (memcmp(range->bytes, bytes, whole) != 0) {
        return false;
    }
    unsigned mask = rest == 0 ? 0 : (0xffU << (8 - rest)) & 0xffU;
    return mask == 0 || ((range->bytes[whole] ^ bytes[whole]) & mask) == 0;
}

static const Range *find_range(const Range *ranges, size_t count, const uint8_t *bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (covers(&ranges[i], bytes)) {
            return &ranges[i];
        }
    }
    return NULL;
}

static const Range *range_of_4(const uint8_t *bytes)
{
    return find_range(RANGES_4, sizeof RANGES_4 / sizeof RANGES_4[0], bytes);
}

// NULL: it is allowed.
static const char *denied_4(const HttpGuard *guard, const uint8_t *bytes)
{
    const Range *range = range_of_4(bytes);
    if (range == NULL || (range->reach == REACH_PRIVATE && guard->allow_private) ||
        (range->reach == REACH_LOOPBACK && guard->allow_loopback)) {
        return NULL;
    }
    return range->what;
}

static const char *denied_6(const HttpGuard *guard, const uint8_t *bytes)
{
    const Range *range = find_range(RANGES_6, sizeof RANGES_6 / sizeof RANGES_6[0], bytes);
    if (range->what == NULL || (range->reach == REACH_PRIVATE && guard->allow_private) ||
        (range->reach == REACH_LOOPBACK && guard->allow_loopback)) {
        return NULL;
    }
    bool inside = range->reach == REACH_NAT64 && guard->allow_private;
    return inside ? denied_4(guard, bytes + 12) : range->what;
}

static const char *denied(const HttpGuard *guard, const struct sockaddr *address)
{
    HttpAddress whole = {.bytes = {[10] = 0xff, [11] = 0xff}};
    const char *what = "neither IPv4 nor IPv6";
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        memcpy(whole.bytes + 12, &in.sin_addr, 4);
        what = denied_4(guard, whole.bytes + 12);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, address, sizeof in);
        memcpy(whole.bytes, &in.sin6_addr, sizeof whole.bytes);
        what = denied_6(guard, whole.bytes);
    }
    if (what == NULL && guard->also != NULL && http_proxies_has(guard->also, &whole)) {
        what = "the operator's own";
    }
    return what;
}

bool guard_allow(HttpGuard *guard, Str list, Error *err)
{
    Str word;
    while (list.len > 0 && str_split(&list, ',', &word)) {
        word = str_trim(word);
        guard->allow_private |= str_eq(word, STR("private"));
        guard->allow_loopback |= str_eq(word, STR("loopback"));
        if (!str_eq(word, STR("private")) && !str_eq(word, STR("loopback"))) {
            return error_set(
                err, ERROR_CONFIG, "'" STR_FMT "' is neither private nor loopback",
                STR_ARG(str_slice(word, 0, 40)));
        }
    }
    return true;
}

static ErrorKind kind_of(const HttpGuard *guard)
{
    return guard->tenant ? ERROR_PERMANENT : ERROR_CONFIG;
}

bool guard_address(const HttpGuard *guard, const struct sockaddr *address, Error *err)
{
    const char *what = denied(guard, address);
    if (what == NULL) {
        return true;
    }
    return error_set(err, kind_of(guard), "the address is not one to send to: %s", what);
}

// ---- URLs ----

// What parsers read in different ways never gets to one: white space, control characters, a
// backslash, letters beyond ASCII (a host of those is written as its A-label), a third slash.
static bool is_plain(const char *url)
{
    const char *slashes = strstr(url, "://");
    if (slashes != NULL && slashes[3] == '/') {
        return false;
    }
    for (const char *at = url; *at != '\0'; at++) {
        if (*at <= ' ' || *at >= 0x7f || *at == '\\') {
            return false;
        }
    }
    return true;
}

// A host whose last label looks like a number is an address in some notation (the URL standard).
static bool ends_in_number(const char *host)
{
    const char *label = strrchr(host, '.');
    label = label == NULL ? host : label + 1;
    bool hex = label[0] == '0' && (label[1] == 'x' || label[1] == 'X');
    const char *allowed = hex ? "0123456789abcdefABCDEF" : "0123456789";
    const char *digits = hex ? label + 2 : label;
    return strspn(digits, allowed) == strlen(digits);
}

static bool is_name(const char *host)
{
    size_t len = strlen(host);
    if (len == 0 || host[0] == '.' || host[len - 1] == '.' || strstr(host, "..") != NULL) {
        return false;
    }
    for (const char *at = host; *at != '\0'; at++) {
        if (!ascii_is_alnum(*at) && *at != '-' && *at != '.' && *at != '_') {
            return false;
        }
    }
    return !ends_in_number(host);
}

static bool address_of(const char *host, struct sockaddr_storage *ret)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
        memcpy(ret, &in, sizeof in);
    } else if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1) {
        memcpy(ret, &in6, sizeof in6);
    } else {
        return false;
    }
    return true;
}

// The host as libcurl reads it, without brackets, in lower case.
static bool take_host(const char *host, GuardedUrl *ret)
{
    Str text = str_from(host);
    if (str_starts(text, STR("[")) && str_ends(text, STR("]"))) {
        text = str_slice(text, 1, text.len - 1);
    }
    if (!str_to_c(text, ret->host, sizeof ret->host)) {
        return false;
    }
    for (char *at = ret->host; *at != '\0'; at++) {
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    }
    return true;
}

static bool check_host(const HttpGuard *guard, const char *host, GuardedUrl *ret, Error *err)
{
    ErrorKind kind = kind_of(guard);
    struct sockaddr_storage address;
    if (!take_host(host, ret)) {
        return error_set(err, kind, "the URL's host is longer than %d", (int)GUARD_HOST_MAX);
    }
    ret->is_address = address_of(ret->host, &address);
    if (ret->is_address) {
        return guard_address(guard, (const struct sockaddr *)&address, err);
    }
    if (!is_name(ret->host)) {
        return error_set(
            err, kind, "the URL's host '%.60s' is not a name: no dot at its end, no number",
            ret->host);
    }
    Str name = str_from(ret->host);
    bool local = str_eq(name, STR("localhost")) || str_ends(name, STR(".localhost"));
    if (local && !guard->allow_loopback) {
        return error_set(err, kind, "the URL's host is this machine");
    }
    return true;
}

// Without TLS only to this machine, where that is allowed at all.
static bool is_local(const HttpGuard *guard, const GuardedUrl *url)
{
    Str host = str_from(url->host);
    return guard->allow_loopback && (str_eq(host, STR("localhost")) || str_eq(host, STR("::1")) ||
                                     (url->is_address && str_starts(host, STR("127."))));
}

static bool check_scheme(const HttpGuard *guard, const char *scheme, GuardedUrl *ret, Error *err)
{
    ret->https = str_eq_nocase(str_from(scheme), STR("https"));
    bool http = str_eq_nocase(str_from(scheme), STR("http"));
    if (!ret->https && !(http && is_local(guard, ret))) {
        return error_set(err, kind_of(guard), "the URL must begin with https://");
    }
    return true;
}

static bool check_port(const HttpGuard *guard, const char *port, GuardedUrl *ret, Error *err)
{
    int64_t number = 0;
    if (!str_to_i64(str_from(port), &number) || number < 1 || number > UINT16_MAX) {
        return error_set(err, kind_of(guard), "the URL's port is not one");
    }
    ret->port = (uint16_t)number;
    if (guard->tenant && number != 443 && number < 1024) {
        return error_set(
            err, kind_of(guard), "the URL's port %d is not 443 and below 1024", (int)number);
    }
    return true;
}

enum { SCHEME, HOST, PORT, USER, PASSWORD, ZONE, PARTS };

static const CURLUPart PART_OF[PARTS] = {
    [SCHEME] = CURLUPART_SCHEME, [HOST] = CURLUPART_HOST,         [PORT] = CURLUPART_PORT,
    [USER] = CURLUPART_USER,     [PASSWORD] = CURLUPART_PASSWORD, [ZONE] = CURLUPART_ZONEID,
};

// false: it is no URL. Parts that it does not have stay NULL; the caller frees the others.
static bool split(const char *url, char *parts[PARTS])
{
    CURLU *parser = curl_url();
    bool good = parser != NULL && curl_url_set(parser, CURLUPART_URL, url, 0) == CURLUE_OK;
    for (int i = 0; good && i < PARTS; i++) {
        curl_url_get(parser, PART_OF[i], &parts[i], CURLU_DEFAULT_PORT);
    }
    curl_url_cleanup(parser);
    return good && parts[SCHEME] != NULL && parts[HOST] != NULL && parts[PORT] != NULL;
}

static bool check_parts(const HttpGuard *guard, char *parts[PARTS], GuardedUrl *ret, Error *err)
{
    if (parts[USER] != NULL || parts[PASSWORD] != NULL) {
        return error_set(err, kind_of(guard), "the URL must not have a user or a password");
    }
    if (parts[ZONE] != NULL) {
        return error_set(err, kind_of(guard), "the URL's host must not have a zone");
    }
    return check_host(guard, parts[HOST], ret, err) &&
           check_scheme(guard, parts[SCHEME], ret, err) && check_port(guard, parts[PORT], ret, err);
}

bool guard_url(const HttpGuard *guard, const char *url, GuardedUrl *ret, Error *err)
{
    if (!is_plain(url)) {
        return error_set(
            err, kind_of(guard),
            "the URL has white space, a backslash, letters beyond ASCII or no host: encode them, "
            "and "
            "write the host as xn--...");
    }
    char *parts[PARTS] = {NULL};
    GuardedUrl found = {0};
    bool good = split(url, parts)
                    ? check_parts(guard, parts, &found, err)
                    : error_set(err, kind_of(guard), "not a URL such as https://host/path");
    for (int i = 0; i < PARTS; i++) {
        curl_free(parts[i]);
    }
    if (good) {
        *ret = found;
    }
    return good;
}
