// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vendor_api.h"

#include "common/http/client/http_client.h"
#include "common/vendor/apns/apns.h"
#include "common/vendor/chat/chat.h"
#include "common/vendor/fcm/fcm.h"
#include "common/vendor/generic/definition.h"
#include "common/vendor/mailgun/mailgun.h"
#include "common/vendor/meta/meta.h"
#include "common/vendor/postmark/postmark.h"
#include "common/vendor/resend/resend.h"
#include "common/vendor/sendgrid/sendgrid.h"
#include "common/vendor/ses/ses.h"
#include "common/vendor/sparkpost/sparkpost.h"
#include "common/vendor/telnyx/telnyx.h"
#include "common/vendor/twilio/twilio.h"
#include "common/vendor/twilio/twilio_voice.h"
#include "common/vendor/vonage/vonage.h"
#include "common/vendor/vonage/vonage_voice.h"
#include "common/vendor/webpush/webpush.h"

// The only list of vendors with an HTTP API.
// clang-format off
static const VendorApi *const vendors[] = {
    &ses_api, &sendgrid_api, &mailgun_api, &postmark_api, &resend_api, &sparkpost_api,
    &twilio_api,
    &vonage_api,
    &fcm_api,
    &apns_api,
    &webpush_api,
    &telnyx_api,
    &meta_api,
    &slack_api,
    &discord_api,
    &teams_api,
    &twilio_voice_api,
    &vonage_voice_api,
    &twilio_whatsapp_api,
};
// clang-format on

const VendorApi *vendor_at(size_t n)
{
    return n < sizeof vendors / sizeof *vendors ? vendors[n] : NULL;
}

const VendorApi *vendor_find(Str name)
{
    for (size_t n = 0; vendor_at(n) != NULL; n++) {
        if (str_eq(name, str_from(vendors[n]->name))) {
            return vendors[n];
        }
    }
    return definition_api(definition_channel(name));
}

const VendorReason *vendor_reason(const VendorApi *api, Str text)
{
    Str code = STR_EMPTY;
    (void)str_split(&text, ' ', &code);
    for (const VendorReason *row = api->reasons; row != NULL && row->code != NULL; row++) {
        if (str_eq(code, str_from(row->code))) {
            return row;
        }
    }
    return NULL;
}

static Str find(const VendorPair *pairs, size_t count, Str name, bool (*eq)(Str a, Str b))
{
    for (size_t i = 0; i < count; i++) {
        if (eq(pairs[i].name, name)) {
            return pairs[i].value;
        }
    }
    return STR_EMPTY;
}

Str vendor_setting(const VendorAccount *account, Str name)
{
    return find(account->settings, account->setting_count, name, str_eq);
}

Str vendor_answer_header(const VendorAnswer *answer, Str name)
{
    return find(answer->headers, answer->header_count, name, str_eq_nocase);
}

uint32_t vendor_retry_after_ms(const VendorAnswer *answer)
{
    return http_retry_after_ms(vendor_answer_header(answer, STR("retry-after")), answer->read_us);
}
