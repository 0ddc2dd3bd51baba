// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/form.h"
#include "common/vendor/telnyx/telnyx.h"
#include "common/vendor/vendor_build.h"
#include "common/vendor/vendor_text.h"

static const char *const optional[] = {"from", "from_urgent", "messaging_profile", NULL};

const VendorApi telnyx_api = {
    .name = "telnyx",
    .channel = CHANNEL_SMS,
    .base_url = "https://api.telnyx.com",
    .settings = optional,
    .message_max = FORM_BYTES_MAX,
    .recipients_max = 1,
    .build = telnyx_build,
    .read = telnyx_read,
    .test = telnyx_test,
    .reasons = telnyx_reasons,
};

bool telnyx_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_text(&telnyx_api, mail, account, TELNYX_TEXT_MAX, err)) {
        return false;
    }
    Str from = vendor_sender(mail, account);
    Str profile = vendor_setting(account, STR("messaging_profile"));
    if (from.len == 0 && profile.len == 0) {
        return error_set(
            err, ERROR_CONFIG,
            "the credential '" STR_FMT "' of telnyx needs the setting 'from' or "
            "'messaging_profile'",
            STR_ARG(account->name));
    }
    *ret = (VendorRequest){
        .method = "POST",
        .url = vendor_url(account, str_from(telnyx_api.base_url), STR("/v2/messages"), arena)};
    vendor_add_authorization(ret, "Bearer", account->secret, arena);
    json_t *root = json_object();
    vendor_json_put_some(root, "from", from);
    vendor_json_put_some(root, "messaging_profile_id", profile);
    vendor_json_put_str(root, "to", mail->to.address);
    vendor_json_put_str(root, "text", mail->text);
    vendor_json_put_str(root, "type", STR("SMS"));
    vendor_json_put_some(root, "webhook_url", mail->callback_url);
    vendor_set_json(ret, root, arena);
    return true;
}

bool telnyx_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_account(&telnyx_api, account, err)) {
        return false;
    }
    *ret = (VendorRequest){
        .method = "GET",
        .url = vendor_url(account, str_from(telnyx_api.base_url), STR("/v2/balance"), arena),
        .body = STR_EMPTY};
    vendor_add_authorization(ret, "Bearer", account->secret, arena);
    return true;
}
