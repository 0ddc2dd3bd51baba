// SPDX-License-Identifier: Apache-2.0
#include "common/model/sms.h"
#include "common/vendor/form.h"
#include "common/vendor/vendor_build.h"
#include "common/vendor/vendor_text.h"
#include "common/vendor/vonage/vonage.h"

static const char *const needs[] = {"from", NULL};
static const char *const optional[] = {"from_urgent", NULL};

const VendorApi vonage_api = {
    .name = "vonage",
    .channel = CHANNEL_SMS,
    .base_url = "https://rest.nexmo.com",
    .needs = needs,
    .settings = optional,
    .needs_id = true,
    .message_max = FORM_BYTES_MAX,
    .recipients_max = 1,
    .build = vonage_build,
    .read = vonage_read,
    .test = vonage_test,
};

// How long Vonage tries; beyond it the recipient has no use for it.
static void put_ttl(Buf *form, const VendorMail *mail, int64_t now_us, Arena *arena)
{
    int64_t left_ms = (mail->expires_at_us - now_us) / 1000;
    if (mail->expires_at_us > 0) {
        left_ms = left_ms < VONAGE_TTL_MIN_MS   ? VONAGE_TTL_MIN_MS
                  : left_ms > VONAGE_TTL_MAX_MS ? VONAGE_TTL_MAX_MS
                                                : left_ms;
        form_put(form, "ttl", str_from(arena_printf(arena, "%lld", (long long)left_ms)));
    }
}

bool vonage_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    if (!vendor_check_text(&vonage_api, mail, account, VONAGE_TEXT_MAX, err)) {
        return false;
    }
    *ret = (VendorRequest){
        .method = "POST",
        .url = vendor_url(account, str_from(vonage_api.base_url), STR("/sms/json"), arena)};
    Str from = vendor_sender(mail, account);
    Buf form;
    buf_init(&form, FORM_BYTES_MAX);
    form_put(&form, "api_key", account->id);
    form_put(&form, "api_secret", account->secret);
    form_put(&form, "from", str_starts(from, STR("+")) ? str_slice(from, 1, from.len) : from);
    form_put(&form, "to", str_slice(mail->to.address, 1, mail->to.address.len));
    form_put(&form, "type", sms_measure(mail->text).ucs2 ? STR("unicode") : STR("text"));
    form_put(&form, "text", mail->text);
    form_put(&form, "client-ref", vendor_attempt_ref(mail, arena));
    if (mail->callback_url.len > 0) {
        // Without its argument: client-ref names the attempt, and the report's fields are signed.
        ptrdiff_t at = str_find(mail->callback_url, '?');
        form_put(
            &form, "callback",
            at < 0 ? mail->callback_url : str_slice(mail->callback_url, 0, (size_t)at));
    }
    put_ttl(&form, mail, now_us, arena);
    form_set(ret, &form, arena);
    buf_done(&form);
    return true;
}

bool vonage_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_account(&vonage_api, account, err)) {
        return false;
    }
    Str user = str_from(
        arena_printf(arena, STR_FMT ":" STR_FMT, STR_ARG(account->id), STR_ARG(account->secret)));
    *ret = (VendorRequest){
        .method = "GET",
        .url =
            vendor_url(account, str_from(vonage_api.base_url), STR("/account/get-balance"), arena),
        .body = STR_EMPTY};
    vendor_add_authorization(ret, "Basic", vendor_base64(user, arena), arena);
    return true;
}
