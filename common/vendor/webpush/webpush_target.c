// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "common/base/id.h"
#include "common/vendor/push/push_content.h"
#include "common/vendor/vendor_read.h"
#include "common/vendor/webpush/webpush.h"

// Of the browsers' push services; "*." stands for one label or more.
static const char *const hosts[] = {
    "fcm.googleapis.com", "updates.push.services.mozilla.com", "*.push.apple.com",
    "*.notify.windows.com"};

static bool matches(Str host, Str pattern)
{
    if (!str_starts(pattern, STR("*."))) {
        return str_eq_nocase(host, pattern);
    }
    Str end = str_slice(pattern, 1, pattern.len);
    return host.len > end.len && str_eq_nocase(str_slice(host, host.len - end.len, host.len), end);
}

// The browsers' services are at 443 alone: a recipient who names another port makes calls that
// fail, and so many of those say that the vendor is down. Those of the setting may be anywhere.
static bool is_allowed(const VendorAccount *account, Str host, Str port)
{
    bool usual = port.len == 0 || str_eq(port, STR("443"));
    Str more = vendor_setting(account, STR("hosts")), pattern;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        if (usual && matches(host, str_from(hosts[i]))) {
            return true;
        }
    }
    while (more.len > 0 && str_split(&more, ',', &pattern)) {
        if (matches(host, str_trim(pattern))) {
            return true;
        }
    }
    return false;
}

// "https://host[:port]" of a URL; empty: it is none that may be one of a push service.
static Str origin_of(Str url)
{
    size_t at = strlen("https://");
    if (!str_starts(url, STR("https://"))) {
        return STR_EMPTY;
    }
    while (at < url.len && url.ptr[at] != '/' && url.ptr[at] != '?' && url.ptr[at] != '#') {
        char c = url.ptr[at++];
        if (!ascii_is_alnum(c) && c != '.' && c != '-' && c != ':') {
            return STR_EMPTY; // a user, a backslash, an address in brackets
        }
    }
    return str_slice(url, 0, at);
}

static bool is_printable(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] >= 0x7f) {
            return false;
        }
    }
    return true;
}

static bool take_endpoint(const VendorAccount *account, WebPushTarget *ret, Error *err)
{
    ret->origin = origin_of(ret->endpoint);
    Str host = str_slice(ret->origin, strlen("https://"), ret->origin.len);
    ptrdiff_t colon = str_find(host, ':');
    Str port = colon < 0 ? STR_EMPTY : str_slice(host, (size_t)colon + 1, host.len);
    host = colon < 0 ? host : str_slice(host, 0, (size_t)colon);
    if (host.len == 0 || !is_printable(ret->endpoint)) {
        return error_set(
            err, ERROR_PERMANENT, "the push's 'to' has an 'endpoint' that is not an https URL");
    }
    return is_allowed(account, host, port) ||
           error_set(
               err, ERROR_PERMANENT,
               "the push's 'to' has an endpoint at '" STR_FMT
               "', which is no known push service: name it in the setting 'hosts'",
               STR_ARG(str_slice(host, 0, 80)));
}

static bool take_bytes(Str text, size_t len, uint8_t *ret)
{
    size_t got = 0;
    while (str_ends(text, STR("="))) {
        text.len--;
    }
    return base64url_decode(text, ret, len, &got) && got == len;
}

bool webpush_target(
    const VendorAccount *account, Str subscription, Arena *arena, WebPushTarget *ret, Error *err)
{
    VendorAnswer as_answer = {.body = subscription};
    const json_t *root = vendor_answer_object(&as_answer, arena);
    const json_t *keys = json_object_get(root, "keys");
    if (root == NULL) {
        return error_set(
            err, ERROR_PERMANENT,
            "the push's 'to' is not a subscription: {\"endpoint\", \"keys\": {\"p256dh\", "
            "\"auth\"}}");
    }
    *ret = (WebPushTarget){.endpoint = vendor_member_text(root, "endpoint")};
    if (!take_endpoint(account, ret, err)) {
        return false;
    }
    if (!take_bytes(vendor_member_text(keys, "auth"), WEBPUSH_SECRET_LEN, ret->secret)) {
        return error_set(err, ERROR_PERMANENT, "the push's 'to' has no 'keys.auth' of 16 bytes");
    }
    bool fine = take_bytes(vendor_member_text(keys, "p256dh"), P256_POINT_LEN, ret->point);
    EVP_PKEY *key = fine ? p256_public(ret->point) : NULL;
    EVP_PKEY_free(key);
    return key != NULL ||
           error_set(err, ERROR_PERMANENT, "the push's 'to' has no 'keys.p256dh' of P-256");
}

Str webpush_audience(const VendorMail *push, Arena *arena)
{
    VendorAnswer as_answer = {.body = push->to.address};
    return origin_of(vendor_member_text(vendor_answer_object(&as_answer, arena), "endpoint"));
}
