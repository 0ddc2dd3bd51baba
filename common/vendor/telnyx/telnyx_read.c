// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/telnyx/telnyx.h"
#include "common/vendor/vendor_read.h"

// Of the first error in an answer.
// clang-format off
static const VendorRow ROWS[] = {
    {"40012", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0},
    {"40310", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0}, // 'to' is no number
    {"10011", SEND_ANSWERED, REPLY_THROTTLED,   0},
    {"40011", SEND_ANSWERED, REPLY_THROTTLED,   0},
    {"40318", SEND_ANSWERED, REPLY_THROTTLED,   0}, // its queue is full
    {"40320", SEND_ANSWERED, REPLY_RETRY,       0}, // the sender is between two states
    {"40001", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // not routable from here
    {"40010", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // unregistered sender (10DLC)
    {"40301", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // not between these two kinds of numbers
    {"40309", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // the region is not enabled
    {"40315", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // the sender is filtered too often
    {"40319", SEND_ANSWERED, REPLY_ELSEWHERE,   0},
    {"40322", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // blocked content
    {"10009", SEND_ANSWERED, REPLY_CONFIG,      0}, // authentication
    {"10010", SEND_ANSWERED, REPLY_CONFIG,      0}, // authorization
    {"40013", SEND_ANSWERED, REPLY_CONFIG,      0}, // 'from'
    {"40100", SEND_ANSWERED, REPLY_CONFIG,      0}, // 'from' cannot send messages
    {"40305", SEND_ANSWERED, REPLY_CONFIG,      0}, // 'from' is not the profile's
    {"40306", SEND_ANSWERED, REPLY_CONFIG,      0}, // the profile has no name as a sender
    {"40307", SEND_ANSWERED, REPLY_CONFIG,      0}, // it has another one
    {"40312", SEND_ANSWERED, REPLY_CONFIG,      0}, // the profile is disabled
    {"40313", SEND_ANSWERED, REPLY_CONFIG,      0}, // the profile wants its secret
    {"40314", SEND_ANSWERED, REPLY_CONFIG,      0}, // the account has no messages
    {"40321", SEND_ANSWERED, REPLY_CONFIG,      0}, // the pool has no usable number
    {"40325", SEND_ANSWERED, REPLY_CONFIG,      0}, // the name as a sender
    {"40329", SEND_ANSWERED, REPLY_CONFIG,      0}, // toll-free, not verified
    {"40330", SEND_ANSWERED, REPLY_CONFIG,      0}, // toll-free, not provisioned
    {"40331", SEND_ANSWERED, REPLY_CONFIG,      0}, // the profile lists no region
    {"40333", SEND_ANSWERED, REPLY_CONFIG,      0}, // the profile's spend limit
    {"40300", SEND_ANSWERED, REPLY_TERMINAL,    0}, // the recipient has opted out of this sender
    {"40302", SEND_ANSWERED, REPLY_TERMINAL,    0}, // too long
    {"40316", SEND_ANSWERED, REPLY_TERMINAL,    0}, // no text
};

const VendorReason telnyx_reasons[] = {
    {"40300", "opted_out", SUPPRESSION_OPT_OUT},
    {NULL, NULL, SUPPRESSION_NONE},
};
// clang-format on

static void read_message(const json_t *message, Arena *arena, SendResult *ret)
{
    ret->vendor_message_id = vendor_clean_id(vendor_member_text(message, "id"), arena);
    int64_t parts = vendor_member_int(message, "parts", 0);
    ret->segments = parts > 0 && parts < UINT16_MAX ? (uint32_t)parts : 0;
    const json_t *price = json_object_get(message, "cost");
    vendor_read_price(
        vendor_member_text(price, "amount"), vendor_member_text(price, "currency"), arena, ret);
}

// "10002" and "10016" are about a phone number: which one, the error's source says.
static void read_number(const json_t *error, Str code, SendResult *ret)
{
    Str pointer = vendor_member_text(json_object_get(error, "source"), "pointer");
    if (!str_eq(code, STR("10002")) && !str_eq(code, STR("10016"))) {
        return;
    }
    if (str_eq(pointer, STR("/to"))) {
        vendor_read_as(SEND_ANSWERED, REPLY_BAD_ADDRESS, ret);
    } else if (str_eq(pointer, STR("/from"))) {
        vendor_read_as(SEND_ANSWERED, REPLY_CONFIG, ret);
    }
}

void telnyx_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    if (ret->reply == REPLY_ACCEPTED) {
        read_message(json_object_get(body, "data"), arena, ret);
        return;
    }
    const json_t *error = json_array_get(json_object_get(body, "errors"), 0);
    Str code = vendor_member_text(error, "code");
    Str why = vendor_member_text(error, "detail");
    why = why.len > 0 ? why : vendor_member_text(error, "title");
    ret->text = vendor_clean_text(code, why, arena);
    // What is uncertain by its status stays so, whatever the body says.
    if (ret->state == SEND_ANSWERED) {
        (void)vendor_read_row(ROWS, sizeof ROWS / sizeof *ROWS, code, ret);
        read_number(error, code, ret);
    }
}
