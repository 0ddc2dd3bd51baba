// SPDX-License-Identifier: Apache-2.0
// Twilio's Messages for SMS: a form, answered by a message's JSON. The credential's id is the
// account's SID with the auth token as the secret, or an API key's SID with the setting `account`.
// Settings: from (a number or name, several with ',': vendor_text.h) or messaging_service.
// No idempotency keys; an unknown outcome is asked for by recipient and text, since the list of
// messages shows nothing of ours. Its callbacks name the attempt by the URL that they go to.
// Source: twilio.com/docs/messaging/api/message-resource, .../usage/security, .../api/errors.
#pragma once

#include "common/base/buf.h"
#include "common/vendor/vendor_api.h"
#include "common/vendor/vendor_callback.h"

enum {
    TWILIO_TEXT_MAX = 1600, // UTF-16 units
    TWILIO_ASK_MAX = 20,    // messages in the answer to twilio_ask
    TWILIO_VALIDITY_MAX_S = 36000,
};

extern const VendorApi twilio_api;
extern const VendorReason twilio_reasons[];

// WhatsApp of the same company: the same call with `whatsapp:` before both numbers, a template of
// Twilio's Content API by its SID (`reference`) with its parameters as {"1": ..}, or free text
// within the window of 24 hours (63016: it is closed). It cannot be asked: a template's text is
// Twilio's.
extern const VendorApi twilio_whatsapp_api;

// A request to the account's own part of the API; leaf: "/Messages.json". For calls too.
bool twilio_begin(
    const VendorAccount *account, const char *method, const char *leaf, Arena *arena,
    VendorRequest *ret, Error *err);
// How long Twilio may hold it in its queue; beyond it the recipient has no use for it.
void twilio_put_validity(Buf *form, const VendorMail *mail, int64_t now_us, Arena *arena);

bool twilio_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
bool twilio_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
bool twilio_ask(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
void twilio_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
int twilio_asked(const VendorAnswer *answer, const VendorMail *mail, Arena *arena, SendResult *ret);
// "Fri, 27 Nov 2026 00:10:00 +0000"; 0: none.
int64_t twilio_time(Str text, Arena *arena);
// The code in an answer or a callback, 30005, as what follows from it. false: it is not listed.
bool twilio_class(Str code, SendResult *ret);

// To each callback: an instruction of TwiML that says nothing. Twilio takes the answer to a message
// that came in for one, and notes error 12300 or 12200 for any other content.
#define TWILIO_ANSWER_TYPE "text/xml"
#define TWILIO_ANSWER "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response></Response>"

// As VendorCallback has them: callbacks about messages and calls are signed alike.
bool twilio_key_check(Str secret, Error *err);
Str twilio_key_none(Arena *arena);
bool twilio_verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key);
