// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/form.h"
#include "common/vendor/twilio/twilio.h"
#include "common/vendor/vendor_build.h"
#include "common/vendor/vendor_text.h"

static const char *const optional[] = {"account", "from", "from_urgent", "messaging_service", NULL};

const VendorApi twilio_api = {
    .name = "twilio",
    .channel = CHANNEL_SMS,
    .base_url = "https://api.twilio.com",
    .settings = optional,
    .needs_id = true,
    .message_max = FORM_BYTES_MAX,
    .recipients_max = 1,
    .build = twilio_build,
    .read = twilio_read,
    .test = twilio_test,
    .ask = twilio_ask,
    .asked = twilio_asked,
    .reasons = twilio_reasons,
};

static bool is_sid(Str text)
{
    bool good = text.len > 2 && text.len <= 64;
    for (size_t i = 0; good && i < text.len; i++) {
        good = ascii_is_alnum(text.ptr[i]);
    }
    return good;
}

bool twilio_begin(
    const VendorAccount *account, const char *method, const char *leaf, Arena *arena,
    VendorRequest *ret, Error *err)
{
    Str sid = vendor_setting(account, STR("account"));
    sid = sid.len > 0 ? sid : account->id;
    if (!is_sid(sid)) {
        return error_set(
            err, ERROR_CONFIG,
            "the setting 'account' of the credential '" STR_FMT
            "', or without it its id, is not an account's SID such as AC0123",
            STR_ARG(account->name));
    }
    Str path =
        str_from(arena_printf(arena, "/2010-04-01/Accounts/" STR_FMT "%s", STR_ARG(sid), leaf));
    Str user = str_from(
        arena_printf(arena, STR_FMT ":" STR_FMT, STR_ARG(account->id), STR_ARG(account->secret)));
    *ret = (VendorRequest){
        .method = method,
        .url = vendor_url(account, str_from(twilio_api.base_url), path, arena),
        .body = STR_EMPTY};
    vendor_add_authorization(ret, "Basic", vendor_base64(user, arena), arena);
    return true;
}

static bool put_sender(Buf *form, const VendorMail *mail, const VendorAccount *account, Error *err)
{
    Str service = vendor_setting(account, STR("messaging_service"));
    Str from = vendor_sender(mail, account);
    if (from.len > 0) {
        form_put(form, "From", from);
    } else if (service.len > 0) {
        form_put(form, "MessagingServiceSid", service);
    } else {
        return error_set(
            err, ERROR_CONFIG,
            "the credential '" STR_FMT "' of twilio needs the setting 'from' or "
            "'messaging_service'",
            STR_ARG(account->name));
    }
    return true;
}

void twilio_put_validity(Buf *form, const VendorMail *mail, int64_t now_us, Arena *arena)
{
    int64_t left_s = (mail->expires_at_us - now_us) / 1000000;
    if (mail->expires_at_us > 0) {
        left_s = left_s < 1 ? 1 : left_s > TWILIO_VALIDITY_MAX_S ? TWILIO_VALIDITY_MAX_S : left_s;
        form_put(form, "ValidityPeriod", str_from(arena_printf(arena, "%lld", (long long)left_s)));
    }
}

bool twilio_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    if (!vendor_check_text(&twilio_api, mail, account, TWILIO_TEXT_MAX, err) ||
        !twilio_begin(account, "POST", "/Messages.json", arena, ret, err)) {
        return false;
    }
    Buf form;
    buf_init(&form, FORM_BYTES_MAX);
    form_put(&form, "To", mail->to.address);
    bool good = put_sender(&form, mail, account, err);
    form_put(&form, "Body", mail->text);
    if (mail->callback_url.len > 0) {
        form_put(&form, "StatusCallback", mail->callback_url);
    }
    twilio_put_validity(&form, mail, now_us, arena);
    form_set(ret, &form, arena);
    buf_done(&form);
    return good;
}

bool twilio_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    return vendor_check_account(&twilio_api, account, err) &&
           twilio_begin(account, "GET", ".json", arena, ret, err);
}

bool twilio_ask(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_account(&twilio_api, account, err)) {
        return false;
    }
    Str to = vendor_encode(mail->to.address, arena);
    const char *leaf =
        arena_printf(arena, "/Messages.json?PageSize=%d&To=" STR_FMT, TWILIO_ASK_MAX, STR_ARG(to));
    return twilio_begin(account, "GET", leaf, arena, ret, err);
}
