// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/twilio/twilio.h"
#include "common/vendor/twilio/twilio_voice.h"
#include "common/vendor/vendor_read.h"

// Those of calls; the others are those of messages.
// clang-format off
static const VendorRow ROWS[] = {
    {"21214", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0}, // cannot be reached
    {"21217", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0}, // not a phone number
    {"10004", SEND_ANSWERED, REPLY_THROTTLED,   0}, // calls at once
    {"13227", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // the region is not enabled
    {"21215", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // likewise
    {"21216", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // the number is blocked there
    {"21210", SEND_ANSWERED, REPLY_CONFIG,      0}, // From is not verified
    {"21213", SEND_ANSWERED, REPLY_CONFIG,      0}, // From is missing
    {"21219", SEND_ANSWERED, REPLY_CONFIG,      0}, // a trial account calls verified numbers only
};
// clang-format on

void twilio_voice_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    if (ret->reply == REPLY_ACCEPTED) {
        ret->vendor_message_id = vendor_clean_id(vendor_member_text(body, "sid"), arena);
        return;
    }
    int64_t number = vendor_member_int(body, "code", 0);
    Str code = number > 0 ? str_from(arena_printf(arena, "%lld", (long long)number)) : STR_EMPTY;
    ret->text = vendor_clean_text(code, vendor_member_text(body, "message"), arena);
    // What is uncertain by its status stays so, whatever the body says.
    if (ret->state == SEND_ANSWERED &&
        !vendor_read_row(ROWS, sizeof ROWS / sizeof *ROWS, code, ret)) {
        (void)twilio_class(code, ret);
    }
}
