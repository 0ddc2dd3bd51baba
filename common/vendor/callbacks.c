// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/callback_list.h"
#include "common/vendor/generic/definition.h"

// The only list of vendors that call back.
static const VendorCallback *const callbacks[] = {
    // clang-format off
    &sendgrid_callback, &ses_callback, &mailgun_callback, &postmark_callback, &resend_callback,
    &sparkpost_callback,
    &twilio_callback,
    &vonage_callback,
    &telnyx_callback,
    &meta_callback,
    &twilio_voice_callback,
    &vonage_voice_callback,
    &twilio_whatsapp_callback,
    // clang-format on
};

bool callback_is_unanswered(Channel channel, const char *reason_code)
{
    Str reason = str_from(reason_code);
    return channel == CHANNEL_VOICE &&
           (str_eq(reason, STR(CALLBACK_BUSY)) || str_eq(reason, STR(CALLBACK_NO_ANSWER)));
}

const VendorCallback *vendor_callback_at(size_t n)
{
    return n < sizeof callbacks / sizeof *callbacks ? callbacks[n] : NULL;
}

const VendorCallback *vendor_callback_find(Str name)
{
    for (size_t n = 0; vendor_callback_at(n) != NULL; n++) {
        if (str_eq(name, str_from(callbacks[n]->name))) {
            return callbacks[n];
        }
    }
    return definition_callback(definition_channel(name));
}
