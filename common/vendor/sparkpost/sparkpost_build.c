// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/sparkpost/sparkpost.h"
#include "common/vendor/vendor_build.h"

static const char *const optional[] = {"bounce_domain", "subaccount", NULL};

const VendorApi sparkpost_api = {
    .name = "sparkpost",
    .channel = CHANNEL_EMAIL,
    .base_url = "https://api.sparkpost.com",
    .settings = optional,
    .whole = true,
    .message_max = 20 * 1024 * 1024,
    .recipients_max = 1000,
    .key_known_s = 24 * 60 * 60,
    .build = sparkpost_build,
    .read = sparkpost_read,
    .test = sparkpost_test,
};

static bool has_substitution(Str text)
{
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.ptr[i] == '{' && text.ptr[i + 1] == '{') {
            return true;
        }
    }
    return false;
}

// It reads headers and texts after decoding them, so the mail's own parts are looked at.
static bool check_substitutions(const VendorMail *mail, Error *err)
{
    const char *field = has_substitution(mail->subject) ? "subject"
                        : has_substitution(mail->html)  ? "html"
                        : has_substitution(mail->text)  ? "text"
                                                        : NULL;
    for (size_t i = 0; field == NULL && i < mail->header_count; i++) {
        field = has_substitution(mail->headers[i].value) ? "headers" : NULL;
    }
    return field == NULL || error_set(
                                err, ERROR_PERMANENT,
                                "the mail's '%s' has '{{', which sparkpost would replace", field);
}

static json_t *recipient_of(Str address, const VendorMail *mail, Arena *arena)
{
    json_t *recipient = json_object(), *object = json_object();
    vendor_json_put_str(object, "email", address);
    vendor_json_put(recipient, "address", object);
    vendor_json_put(
        recipient, "metadata",
        vendor_json_pair("nid", mail->notification_id, "attempt", vendor_attempt(mail, arena)));
    return recipient;
}

// The envelope, each with what comes back as rcpt_meta; the mail has its own To and Cc.
static json_t *recipients_of(const VendorMail *mail, Arena *arena)
{
    json_t *list = vendor_json_list(recipient_of(mail->to.address, mail, arena));
    for (size_t i = 0; i < mail->cc_count; i++) {
        vendor_json_add(list, recipient_of(mail->cc[i].address, mail, arena));
    }
    for (size_t i = 0; i < mail->bcc_count; i++) {
        vendor_json_add(list, recipient_of(mail->bcc[i].address, mail, arena));
    }
    return list;
}

static json_t *options_of(const VendorMail *mail)
{
    json_t *options = json_object();
    vendor_json_put(options, "open_tracking", json_false());
    vendor_json_put(options, "click_tracking", json_false());
    bool marketing = str_eq(mail->category, STR("marketing"));
    vendor_json_put(options, "transactional", json_boolean(!marketing));
    return options;
}

static void begin(const VendorAccount *account, Arena *arena, VendorRequest *ret)
{
    *ret = (VendorRequest){
        .method = "POST",
        .url = vendor_url(
            account, str_from(sparkpost_api.base_url), STR("/api/v1/transmissions"), arena)};
    vendor_add_header(ret, STR("Authorization"), arena_str(arena, account->secret));
    Str subaccount = vendor_setting(account, STR("subaccount"));
    if (subaccount.len > 0) {
        vendor_add_header(ret, STR("X-MSYS-SUBACCOUNT"), arena_str(arena, subaccount));
    }
}

bool sparkpost_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_mail(&sparkpost_api, mail, account, err) ||
        !vendor_check_key(&sparkpost_api, mail, err) || !check_substitutions(mail, err)) {
        return false;
    }
    if (!str_is_utf8(mail->message)) {
        return error_set(err, ERROR_PERMANENT, "the mail's 'message' is not UTF-8");
    }
    json_t *root = json_object(), *content = json_object();
    vendor_json_put(root, "options", options_of(mail));
    vendor_json_put(root, "recipients", recipients_of(mail, arena));
    vendor_json_put_some(root, "return_path", vendor_return_path(mail, account));
    vendor_json_put_str(content, "email_rfc822", mail->message);
    vendor_json_put(root, "content", content);
    begin(account, arena, ret);
    vendor_add_header(ret, STR("Idempotency-Key"), arena_str(arena, mail->key));
    vendor_set_json(ret, root, arena);
    return true;
}

bool sparkpost_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_account(&sparkpost_api, account, err)) {
        return false;
    }
    json_t *root = json_object();
    vendor_json_put(root, "recipients", json_array());
    begin(account, arena, ret);
    vendor_set_json(ret, root, arena);
    return true;
}
