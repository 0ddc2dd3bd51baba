// SPDX-License-Identifier: Apache-2.0
// The vendors' callbacks, each in its own folder: for callbacks.c and tests alone. All others ask
// vendor_callback_find().
#pragma once

#include "common/vendor/vendor_callback.h"

extern const VendorCallback sendgrid_callback;
extern const VendorCallback ses_callback;
extern const VendorCallback mailgun_callback;
extern const VendorCallback postmark_callback;
extern const VendorCallback resend_callback;
extern const VendorCallback sparkpost_callback;
extern const VendorCallback twilio_callback;
extern const VendorCallback vonage_callback;
extern const VendorCallback telnyx_callback;
extern const VendorCallback meta_callback;
extern const VendorCallback twilio_voice_callback;
extern const VendorCallback vonage_voice_callback;
extern const VendorCallback twilio_whatsapp_callback;
