// SPDX-License-Identifier: Apache-2.0
// Twilio's report about a call, when it has ended: a form, signed as those about messages are.
// Source: twilio.com/docs/voice/api/call-resource, "StatusCallback", "AnsweredBy".
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_read.h"
#include "common/vendor/form.h"
#include "common/vendor/twilio/twilio.h"

// clang-format off
static const CallbackKind KINDS[] = {
    // By who answered.
    {"completed", "machine", STATUS_DELIVERED, OUTCOME_DELIVERED, "voicemail",   SUPPRESSION_NONE},
    {"completed", "fax",     STATUS_FAILED,    OUTCOME_FAILED,    "fax",         SUPPRESSION_NONE},
    {"completed", NULL,      STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {"busy",      NULL,      STATUS_FAILED,    OUTCOME_FAILED,    CALLBACK_BUSY, SUPPRESSION_NONE},
    {"no-answer", NULL,      STATUS_FAILED,    OUTCOME_FAILED,    CALLBACK_NO_ANSWER, SUPPRESSION_NONE},
    {"canceled",  NULL,      STATUS_FAILED,    OUTCOME_FAILED,    "canceled",    SUPPRESSION_NONE},
    // By the SIP code.
    {"failed",    "404",     STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
    {"failed",    "484",     STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
    {"failed",    NULL,      STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
};
// clang-format on

static Str detail_of(Str status, Str answered_by, Str sip_code)
{
    bool machine = str_starts(answered_by, STR("machine"));
    return str_eq(status, STR("failed")) ? sip_code : machine ? STR("machine") : answered_by;
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    VendorPair fields[FORM_FIELDS_MAX];
    size_t count = 0;
    if (!form_read(body, arena, fields, &count)) {
        return error_set(err, ERROR_PERMANENT, "the callback is not a form of Twilio's");
    }
    Str status = form_value(fields, count, "CallStatus");
    if (status.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the callback has no 'CallStatus'");
    }
    *ret = callback_batch(arena, 1);
    Str answered_by = callback_plain(form_value(fields, count, "AnsweredBy"), 32);
    Str sip_code = callback_plain(form_value(fields, count, "SipResponseCode"), 3);
    const CallbackKind *kind = callback_kind(
        KINDS, sizeof KINDS / sizeof *KINDS, status, detail_of(status, answered_by, sip_code));
    if (kind == NULL) {
        ret->ignored++;
        return true;
    }
    CallbackEvent event = callback_event(kind);
    event.message_id = callback_plain(form_value(fields, count, "CallSid"), 64);
    event.email = callback_address(CHANNEL_VOICE, form_value(fields, count, "To"), arena);
    event.at_us = twilio_time(form_value(fields, count, "Timestamp"), arena);
    Str why = answered_by.len > 0 ? answered_by : sip_code;
    event.text = callback_words(
        str_trim(str_from(arena_printf(arena, "%s " STR_FMT, kind->type, STR_ARG(why)))), arena);
    ret->events[ret->count++] = event;
    return true;
}

static const char *const READS[] = {"X-Twilio-Signature", NULL};

const VendorCallback twilio_voice_callback = {
    .name = "twilio_voice",
    .channel = CHANNEL_VOICE,
    .body_max = FORM_BYTES_MAX,
    .reads = READS,
    .needs_all = true,
    .answer_type = TWILIO_ANSWER_TYPE,
    .answer = TWILIO_ANSWER,
    .bad_status = 401,
    .signs_url = true,
    .key_check = twilio_key_check,
    .key_none = twilio_key_none,
    .verify = twilio_verify,
    .events = read_events,
};
