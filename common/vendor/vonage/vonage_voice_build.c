// SPDX-License-Identifier: Apache-2.0
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/vendor/form.h"
#include "common/vendor/jwt.h"
#include "common/vendor/vendor_build.h"
#include "common/vendor/vendor_text.h"
#include "common/vendor/vendor_voice.h"
#include "common/vendor/vonage/vonage_voice.h"

enum { ID_MAX = 64 };

static const char *const needs[] = {"from", NULL};
static const char *const optional[] = {"from_urgent", NULL};

const VendorApi vonage_voice_api = {
    .name = "vonage_voice",
    .channel = CHANNEL_VOICE,
    .base_url = "https://api.nexmo.com",
    .needs = needs,
    .settings = optional,
    .needs_id = true,
    .document = true,
    .message_max = FORM_BYTES_MAX,
    .recipients_max = 1,
    .build = vonage_voice_build,
    .read = vonage_voice_read,
    .test = vonage_voice_test,
};

// ---- the token ----

static bool is_id(Str text)
{
    bool good = text.len > 0 && text.len <= ID_MAX;
    for (size_t i = 0; good && i < text.len; i++) {
        good = ascii_is_alnum(text.ptr[i]) || text.ptr[i] == '-';
    }
    return good;
}

// In the form of a UUID of version 4; another for each request.
static const char *token_id(Str cause, int64_t now_us, Arena *arena)
{
    uint8_t hash[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    sha256(
        str_from(
            arena_printf(arena, "vonage jti " STR_FMT " %lld", STR_ARG(cause), (long long)now_us)),
        hash);
    hash[6] = (uint8_t)((hash[6] & 0x0fU) | 0x40U);
    hash[8] = (uint8_t)((hash[8] & 0x3fU) | 0x80U);
    hex_encode(hash, sizeof hash, hex);
    return arena_printf(
        arena, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

static bool authorize(
    const VendorAccount *account, Str cause, int64_t now_us, Arena *arena, VendorRequest *request,
    Error *err)
{
    if (!is_id(account->id)) {
        return error_set(
            err, ERROR_CONFIG,
            "the id of the credential '" STR_FMT "' of vonage_voice is not an application's id",
            STR_ARG(account->name));
    }
    EVP_PKEY *key = jwt_key(JWT_RS256, account->secret, err);
    if (key == NULL) {
        return false;
    }
    long long now_s = now_us / 1000000;
    const char *claims = arena_printf(
        arena, "{\"application_id\":\"" STR_FMT "\",\"iat\":%lld,\"exp\":%lld,\"jti\":\"%s\"}",
        STR_ARG(account->id), now_s, now_s + VONAGE_TOKEN_S, token_id(cause, now_us, arena));
    Str token = STR_EMPTY;
    bool good = jwt_sign(
        JWT_RS256, key, STR("{\"alg\":\"RS256\",\"typ\":\"JWT\"}"), str_from(claims), arena, &token,
        err);
    EVP_PKEY_free(key);
    if (good) {
        vendor_add_authorization(request, "Bearer", token, arena);
    }
    return good;
}

// ---- the call ----

static Str without_plus(Str number)
{
    return str_starts(number, STR("+")) ? str_slice(number, 1, number.len) : number;
}

static json_t *make_phone(Str number)
{
    return vendor_json_pair("type", STR("phone"), "number", without_plus(number));
}

// As SSML whatever it holds: in a plain text it is left to the vendor what a '<' means.
static json_t *make_talk(const VendorMail *mail, Arena *arena)
{
    Str script = vendor_voice_escape(mail->text, arena);
    json_t *talk = json_object();
    vendor_json_put_str(talk, "action", STR("talk"));
    vendor_json_put_str(
        talk, "text", str_from(arena_printf(arena, "<speak>" STR_FMT "</speak>", STR_ARG(script))));
    vendor_json_put_some(talk, "language", vendor_voice_language(mail->locale, arena));
    return talk;
}

bool vonage_voice_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    if (!vendor_check_text(&vonage_voice_api, mail, account, VONAGE_SCRIPT_MAX, err)) {
        return false;
    }
    *ret = (VendorRequest){
        .method = "POST",
        .url = vendor_url(account, str_from(vonage_voice_api.base_url), STR("/v1/calls"), arena)};
    if (!authorize(account, mail->key, now_us, arena, ret, err)) {
        return false;
    }
    json_t *root = json_object();
    vendor_json_put(root, "to", vendor_json_list(make_phone(mail->to.address)));
    vendor_json_put(root, "from", make_phone(vendor_sender(mail, account)));
    vendor_json_put(root, "ncco", vendor_json_list(make_talk(mail, arena)));
    if (mail->callback_url.len > 0) {
        vendor_json_put(root, "event_url", vendor_json_list(vendor_json_str(mail->callback_url)));
    }
    vendor_json_put_str(root, "machine_detection", STR("continue"));
    vendor_json_put(root, "ringing_timer", json_integer(30));
    vendor_set_json(ret, root, arena);
    return true;
}

bool vonage_voice_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    if (!vendor_check_account(&vonage_voice_api, account, err)) {
        return false;
    }
    *ret = (VendorRequest){
        .method = "GET",
        .url = vendor_url(
            account, str_from(vonage_voice_api.base_url), STR("/v1/calls?page_size=1"), arena),
        .body = STR_EMPTY};
    return authorize(account, STR("test"), now_us, arena, ret, err);
}
