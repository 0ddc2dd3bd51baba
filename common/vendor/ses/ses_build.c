// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/ses/ses.h"

#include <assert.h>

#include "common/storage/sigv4.h"
#include "common/vendor/ses/ses_key.h"
#include "common/vendor/vendor_build.h"

enum { SIGNED_MAX = 4, AUTHORIZATION_MAX = 4096 };

static const char *const needs[] = {"region", NULL};
static const char *const optional[] = {"configuration_set", "bounce_domain", NULL};

const VendorApi ses_api = {
    .name = "ses",
    .channel = CHANNEL_EMAIL,
    .base_url = "https://email.{region}.amazonaws.com",
    .needs = needs,
    .settings = optional,
    .needs_id = true,
    .whole = true,
    .rewrites = true,
    .message_max = 40 * 1024 * 1024,
    .recipients_max = 50,
    .build = ses_build,
    .read = ses_read,
    .test = ses_test,
    .quota = ses_quota,
};

static void put_addresses(
    json_t *object, const char *name, const VendorAddress *addresses, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        vendor_json_add(list, vendor_json_str(addresses[i].address));
    }
    vendor_json_put_list(object, name, list);
}

// The envelope; names stand in the mail's own headers.
static json_t *destination_of(const VendorMail *mail)
{
    json_t *object = json_object();
    put_addresses(object, "ToAddresses", &mail->to, 1);
    put_addresses(object, "CcAddresses", mail->cc, mail->cc_count);
    put_addresses(object, "BccAddresses", mail->bcc, mail->bcc_count);
    return object;
}

static json_t *content_of(const VendorMail *mail, Arena *arena)
{
    json_t *raw = json_object(), *content = json_object();
    vendor_json_put_str(raw, "Data", vendor_base64(mail->message, arena));
    vendor_json_put(content, "Raw", raw);
    return content;
}

static json_t *tags_of(const VendorMail *mail, Arena *arena)
{
    json_t *list =
        vendor_json_list(vendor_json_pair("Name", STR("nid"), "Value", mail->notification_id));
    vendor_json_add(
        list, vendor_json_pair("Name", STR("attempt"), "Value", vendor_attempt(mail, arena)));
    return list;
}

// "https://host:443/x" -> host "host", path "/x": what the client sends as Host and path.
static void split_url(Str url, Str *ret_host, Str *ret_path)
{
    bool tls = str_starts(url, STR("https://"));
    Str rest = str_slice(url, tls ? 8 : 7, url.len);
    ptrdiff_t slash = str_find(rest, '/');
    assert(slash >= 0); // each of our paths begins with one
    Str host = str_slice(rest, 0, (size_t)slash);
    Str usual = tls ? STR(":443") : STR(":80");
    *ret_host = str_ends(host, usual) ? str_slice(host, 0, host.len - usual.len) : host;
    *ret_path = str_slice(rest, (size_t)slash, rest.len);
}

static Str hex_hash(Str body, Arena *arena)
{
    uint8_t digest[SHA256_LEN];
    char *hex = arena_alloc(arena, 2 * SHA256_LEN + 1);
    sha256(body, digest);
    hex_encode(digest, sizeof digest, hex);
    return str_of(hex, 2 * SHA256_LEN);
}

// Puts the date, the session's token and the signature behind the request's own headers.
static void sign(
    VendorRequest *request, const SesKey *ses, Str region, int64_t now_us, Arena *arena)
{
    char *stamp = arena_alloc(arena, SIGV4_STAMP_SIZE);
    sigv4_stamp(now_us, stamp);
    Str token = ses->token;
    Str host, path;
    split_url(request->url, &host, &path);
    SigV4Pair headers[SIGNED_MAX] = {{STR("host"), host}, {STR("x-amz-date"), str_from(stamp)}};
    size_t count = 2;
    if (request->header_count > 0) {
        headers[count++] = (SigV4Pair){STR("content-type"), request->headers[0].value};
    }
    if (token.len > 0) {
        headers[count++] = (SigV4Pair){STR("x-amz-security-token"), token};
        vendor_add_header(request, STR("X-Amz-Security-Token"), arena_str(arena, token));
    }
    const SigV4Request canonical = {
        .method = str_from(request->method),
        .path = path,
        .headers = headers,
        .header_count = count,
        .payload = hex_hash(request->body, arena),
        .at_us = now_us};
    const SigV4Key key = {&sigv4_aws, ses->account.id, ses->account.secret, region, STR("ses")};
    Buf value;
    buf_init(&value, AUTHORIZATION_MAX);
    sigv4_authorization(&key, &canonical, &value);
    vendor_add_header(request, STR("X-Amz-Date"), str_from(stamp));
    vendor_add_header(request, STR("Authorization"), arena_str(arena, buf_view(&value)));
    buf_done(&value);
}

static bool begin(
    const VendorAccount *account, const char *method, const char *path, Arena *arena,
    VendorRequest *ret, Str *ret_region, Error *err)
{
    if (!vendor_setting_host(account, STR("region"), ret_region, err)) {
        return false;
    }
    const char *base =
        arena_printf(arena, "https://email." STR_FMT ".amazonaws.com", STR_ARG(*ret_region));
    *ret = (VendorRequest){
        .method = method,
        .url = vendor_url(account, str_from(base), str_from(path), arena),
        .body = STR_EMPTY};
    return true;
}

bool ses_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    Str region;
    SesKey ses;
    if (!ses_key_read(account, arena, &ses, err) ||
        !vendor_check_mail(&ses_api, mail, &ses.account, err) ||
        !begin(account, "POST", "/v2/email/outbound-emails", arena, ret, &region, err)) {
        return false;
    }
    json_t *root = json_object();
    vendor_json_put_str(root, "FromEmailAddress", mail->from.address);
    vendor_json_put(root, "Destination", destination_of(mail));
    vendor_json_put_some(root, "FeedbackForwardingEmailAddress", vendor_return_path(mail, account));
    vendor_json_put(root, "Content", content_of(mail, arena));
    vendor_json_put(root, "EmailTags", tags_of(mail, arena));
    vendor_json_put_some(
        root, "ConfigurationSetName", vendor_setting(account, STR("configuration_set")));
    vendor_set_json(ret, root, arena);
    sign(ret, &ses, region, now_us, arena);
    return true;
}

bool ses_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    Str region;
    SesKey ses;
    if (!ses_key_read(account, arena, &ses, err) ||
        !vendor_check_account(&ses_api, &ses.account, err) ||
        !begin(account, "GET", "/v2/email/account", arena, ret, &region, err)) {
        return false;
    }
    sign(ret, &ses, region, now_us, arena);
    return true;
}
