// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/form.h"
#include "common/vendor/twilio/twilio.h"
#include "common/vendor/twilio/twilio_voice.h"
#include "common/vendor/vendor_build.h"
#include "common/vendor/vendor_text.h"
#include "common/vendor/vendor_voice.h"

static const char *const needs[] = {"from", NULL};
static const char *const optional[] = {"account", "from_urgent", NULL};

const VendorApi twilio_voice_api = {
    .name = "twilio_voice",
    .channel = CHANNEL_VOICE,
    .base_url = "https://api.twilio.com",
    .needs = needs,
    .settings = optional,
    .needs_id = true,
    .message_max = FORM_BYTES_MAX,
    .recipients_max = 1,
    .build = twilio_voice_build,
    .read = twilio_voice_read,
    .test = twilio_voice_test,
};

static Str make_twiml(const VendorMail *mail, Arena *arena)
{
    Str script = vendor_voice_escape(mail->text, arena);
    Str language = vendor_voice_language(mail->locale, arena);
    const char *attribute =
        language.len == 0 ? ""
                          : arena_printf(arena, " language=\"" STR_FMT "\"", STR_ARG(language));
    return str_from(arena_printf(
        arena, "<Response><Say%s>" STR_FMT "</Say></Response>", attribute, STR_ARG(script)));
}

bool twilio_voice_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (!vendor_check_text(&twilio_voice_api, mail, account, TWILIO_TWIML_MAX, err)) {
        return false;
    }
    Str twiml = make_twiml(mail, arena);
    uint32_t units = vendor_text_units(twiml);
    if (units > TWILIO_TWIML_MAX) {
        return error_set(
            err, ERROR_PERMANENT,
            "the message's 'text' makes %u characters of TwiML ('<', '>' and '&' count 4 and 5), "
            "and twilio_voice takes at most %d",
            units, (int)TWILIO_TWIML_MAX);
    }
    if (!twilio_begin(account, "POST", "/Calls.json", arena, ret, err)) {
        return false;
    }
    Buf form;
    buf_init(&form, FORM_BYTES_MAX);
    form_put(&form, "To", mail->to.address);
    form_put(&form, "From", vendor_sender(mail, account));
    form_put(&form, "Twiml", twiml);
    form_put(&form, "MachineDetection", STR("Enable"));
    form_put(&form, "Timeout", STR("30"));
    if (mail->callback_url.len > 0) {
        form_put(&form, "StatusCallback", mail->callback_url);
        form_put(&form, "StatusCallbackEvent", STR("completed"));
    }
    form_set(ret, &form, arena);
    buf_done(&form);
    return true;
}

bool twilio_voice_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    return vendor_check_account(&twilio_voice_api, account, err) &&
           twilio_begin(account, "GET", ".json", arena, ret, err);
}
