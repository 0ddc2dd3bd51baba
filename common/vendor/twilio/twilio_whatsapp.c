// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/form.h"
#include "common/vendor/twilio/twilio.h"
#include "common/vendor/vendor_build.h"
#include "common/vendor/vendor_text.h"

enum { CONTENT_SID_LEN = 34 };

static const char *const needs[] = {"from", NULL};
static const char *const optional[] = {"account", "from_urgent", NULL};

static bool build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);

static bool test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    return vendor_check_account(&twilio_whatsapp_api, account, err) &&
           twilio_begin(account, "GET", ".json", arena, ret, err);
}

const VendorApi twilio_whatsapp_api = {
    .name = "twilio_whatsapp",
    .channel = CHANNEL_WHATSAPP,
    .base_url = "https://api.twilio.com",
    .needs = needs,
    .settings = optional,
    .needs_id = true,
    .message_max = FORM_BYTES_MAX,
    .recipients_max = 1,
    .build = build,
    .read = twilio_read,
    .test = test,
    .reasons = twilio_reasons,
};

static bool is_content_sid(Str text)
{
    bool good = text.len == CONTENT_SID_LEN && str_starts(text, STR("HX"));
    for (size_t i = 2; good && i < text.len; i++) {
        good = ascii_is_alnum(text.ptr[i]);
    }
    return good;
}

static bool check(const VendorMail *mail, const VendorAccount *account, Error *err)
{
    if (mail->reference.len == 0) {
        return vendor_check_text(&twilio_whatsapp_api, mail, account, TWILIO_TEXT_MAX, err);
    }
    if (!vendor_check_account(&twilio_whatsapp_api, account, err) ||
        !vendor_check_phone(mail, err)) {
        return false;
    }
    for (size_t i = 0; i < mail->parameter_count; i++) {
        if (!str_is_utf8(mail->parameters[i])) {
            return error_set(err, ERROR_PERMANENT, "'parameters[%zu]' is not UTF-8", i);
        }
    }
    return is_content_sid(mail->reference) ||
           error_set(
               err, ERROR_PERMANENT,
               "the template's 'reference' is not the SID of a template of Twilio's (HX and 32 "
               "digits): '" STR_FMT "'",
               STR_ARG(str_slice(mail->reference, 0, 60)));
}

static void put_number(Buf *form, const char *name, Str number, Arena *arena)
{
    form_put(form, name, str_from(arena_printf(arena, "whatsapp:" STR_FMT, STR_ARG(number))));
}

// {"1": .., "2": ..}
static void put_template(Buf *form, const VendorMail *mail, Arena *arena)
{
    form_put(form, "ContentSid", mail->reference);
    if (mail->parameter_count == 0) {
        return;
    }
    VendorRequest holder = {0};
    json_t *values = json_object();
    for (size_t i = 0; i < mail->parameter_count; i++) {
        vendor_json_put_str(values, arena_printf(arena, "%zu", i + 1), mail->parameters[i]);
    }
    vendor_set_json(&holder, values, arena);
    form_put(form, "ContentVariables", holder.body);
}

static bool build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    if (!check(mail, account, err) ||
        !twilio_begin(account, "POST", "/Messages.json", arena, ret, err)) {
        return false;
    }
    Buf form;
    buf_init(&form, FORM_BYTES_MAX);
    put_number(&form, "To", mail->to.address, arena);
    put_number(&form, "From", vendor_sender(mail, account), arena);
    if (mail->reference.len > 0) {
        put_template(&form, mail, arena);
    } else {
        form_put(&form, "Body", mail->text);
    }
    if (mail->callback_url.len > 0) {
        form_put(&form, "StatusCallback", mail->callback_url);
    }
    twilio_put_validity(&form, mail, now_us, arena);
    bool whole = !form.full;
    form_set(ret, &form, arena);
    buf_done(&form);
    return whole || error_set(
                        err, ERROR_PERMANENT, "the message's 'parameters' have more than %d bytes",
                        FORM_BYTES_MAX);
}
