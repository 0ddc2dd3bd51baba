// SPDX-License-Identifier: Apache-2.0
#include "common/http/client/http_client.h"
#include "common/vendor/twilio/twilio.h"
#include "common/vendor/vendor_read.h"

enum { TIME_TEXT_MAX = 40 };

// Clocks differ by so much.
static const int64_t ASK_SLACK_US = INT64_C(30) * 1000000;

// Of an answer (2xxxx) and of a callback (3xxxx, 6xxxx).
// clang-format off
static const VendorRow ROWS[] = {
    {"21211", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0}, // not a phone number
    {"21614", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0}, // no mobile one
    {"30005", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0}, // unknown, or no more
    {"21408", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // the region is not enabled
    {"21612", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // not reachable from this sender
    {"30004", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // blocked
    {"30006", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // a landline, or a carrier out of reach
    {"30007", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // filtered by the carrier
    {"30034", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // unregistered sender (A2P 10DLC)
    {"63016", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // WhatsApp: over 24 hours since the recipient wrote
    {"63024", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // WhatsApp: not there
    {"63032", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // WhatsApp: the recipient is part of an experiment
    {"63017", SEND_ANSWERED, REPLY_THROTTLED,   0}, // messages of the account
    {"63018", SEND_ANSWERED, REPLY_THROTTLED,   0}, // messages of the sender
    {"20429", SEND_ANSWERED, REPLY_THROTTLED,   0},
    {"30001", SEND_ANSWERED, REPLY_THROTTLED,   0}, // the sender's queue is full
    {"30003", SEND_ANSWERED, REPLY_RETRY,       0}, // the handset is off
    {"30008", SEND_ANSWERED, REPLY_RETRY,       0},
    {"30017", SEND_ANSWERED, REPLY_RETRY,       0}, // the carrier is congested
    {"10001", SEND_ANSWERED, REPLY_CONFIG,      0}, // the account is not active
    {"20003", SEND_ANSWERED, REPLY_CONFIG,      0}, // authentication
    {"21212", SEND_ANSWERED, REPLY_CONFIG,      0}, // From is none
    {"21603", SEND_ANSWERED, REPLY_CONFIG,      0}, // From is missing
    {"21606", SEND_ANSWERED, REPLY_CONFIG,      0}, // From cannot send SMS
    {"21659", SEND_ANSWERED, REPLY_CONFIG,      0}, // From is not the account's
    {"30002", SEND_ANSWERED, REPLY_CONFIG,      0}, // the account is suspended
    {"21602", SEND_ANSWERED, REPLY_TERMINAL,    0}, // no body
    {"21610", SEND_ANSWERED, REPLY_TERMINAL,    0}, // the recipient has opted out of this sender
    {"21617", SEND_ANSWERED, REPLY_TERMINAL,    0}, // too long
    {"21619", SEND_ANSWERED, REPLY_TERMINAL,    0}, // no body
};

const VendorReason twilio_reasons[] = {
    {"21610", "opted_out", SUPPRESSION_OPT_OUT},
    {"63016", "window_closed", SUPPRESSION_NONE},
    {NULL, NULL, SUPPRESSION_NONE},
};
// clang-format on

bool twilio_class(Str code, SendResult *ret)
{
    return vendor_read_row(ROWS, sizeof ROWS / sizeof *ROWS, code, ret);
}

static Str code_of(const json_t *body, Arena *arena)
{
    int64_t code = vendor_member_int(body, "code", 0);
    return code > 0 ? str_from(arena_printf(arena, "%lld", (long long)code)) : STR_EMPTY;
}

static void read_message(const json_t *message, Arena *arena, SendResult *ret)
{
    int64_t segments = 0;
    ret->vendor_message_id = vendor_clean_id(vendor_member_text(message, "sid"), arena);
    if (str_to_i64(vendor_member_text(message, "num_segments"), &segments) && segments > 0 &&
        segments < UINT16_MAX) {
        ret->segments = (uint32_t)segments;
    }
    vendor_read_price(
        vendor_member_text(message, "price"), vendor_member_text(message, "price_unit"), arena,
        ret);
}

void twilio_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    if (ret->reply == REPLY_ACCEPTED) {
        read_message(body, arena, ret);
        return;
    }
    Str code = code_of(body, arena);
    ret->text = vendor_clean_text(code, vendor_member_text(body, "message"), arena);
    // What is uncertain by its status stays so, whatever the body says.
    if (ret->state == SEND_ANSWERED) {
        (void)twilio_class(code, ret);
    }
}

int64_t twilio_time(Str text, Arena *arena)
{
    int64_t at_us = 0;
    if (text.len > TIME_TEXT_MAX || !str_ends(text, STR("+0000"))) {
        return 0;
    }
    Str gmt =
        str_from(arena_printf(arena, STR_FMT "GMT", STR_ARG(str_slice(text, 0, text.len - 5))));
    return http_date_parse(gmt, &at_us) ? at_us : 0;
}

// The list is newest first. Two of the same text to the same number in that time: it does not say
// which of them is this one.
int twilio_asked(const VendorAnswer *answer, const VendorMail *mail, Arena *arena, SendResult *ret)
{
    const json_t *messages = json_object_get(vendor_answer_object(answer, arena), "messages");
    size_t count = json_array_size(messages);
    if (answer->status != 200 || !json_is_array(messages) || mail->since_us == 0) {
        return -1;
    }
    int64_t since_us = mail->since_us - ASK_SLACK_US;
    const json_t *found = NULL;
    bool reached = count < TWILIO_ASK_MAX;
    for (size_t i = 0; i < count; i++) {
        const json_t *message = json_array_get(messages, i);
        int64_t at_us = twilio_time(vendor_member_text(message, "date_created"), arena);
        reached = reached || (at_us > 0 && at_us < since_us);
        if (!str_eq(vendor_member_text(message, "body"), mail->text) ||
            (at_us > 0 && at_us < since_us)) {
            continue;
        }
        if (found != NULL || at_us == 0) {
            return -1;
        }
        found = message;
    }
    if (found == NULL) {
        return reached ? 0 : -1;
    }
    vendor_read_status(answer, arena, ret);
    read_message(found, arena, ret);
    return 1;
}
