// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vendor_read.h"
#include "common/vendor/vendor_text.h"
#include "common/vendor/vonage/vonage.h"

enum { PARTS_MAX = 100 };

// Of a part; 0 is taken.
// clang-format off
static const VendorRow ROWS[] = {
    {"1",  SEND_ANSWERED, REPLY_THROTTLED,   0},
    {"5",  SEND_UNKNOWN,  REPLY_RETRY,       0}, // internal: it may have been handled
    {"10", SEND_ANSWERED, REPLY_THROTTLED,   0}, // too many connections
    {"7",  SEND_ANSWERED, REPLY_BAD_ADDRESS, 0}, // barred
    {"33", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0}, // deactivated
    {"4",  SEND_ANSWERED, REPLY_CONFIG,      0}, // credential
    {"8",  SEND_ANSWERED, REPLY_CONFIG,      0}, // account barred
    {"9",  SEND_ANSWERED, REPLY_CONFIG,      0}, // out of credit
    {"11", SEND_ANSWERED, REPLY_CONFIG,      0}, // REST not enabled
    {"14", SEND_ANSWERED, REPLY_CONFIG,      0}, // signature
    {"29", SEND_ANSWERED, REPLY_CONFIG,      0}, // not on the test list
    {"32", SEND_ANSWERED, REPLY_CONFIG,      0}, // signature
    {"15", SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // the sender is not allowed there
};
// clang-format on

static void read_parts(const json_t *parts, Arena *arena, SendResult *ret)
{
    const json_t *first = json_array_get(parts, 0);
    size_t count = json_array_size(parts);
    ret->vendor_message_id = vendor_clean_id(vendor_member_text(first, "message-id"), arena);
    for (size_t i = 0; i < count; i++) {
        ret->cost_micros +=
            vendor_money(vendor_member_text(json_array_get(parts, i), "message-price"));
    }
    ret->segments = (uint32_t)count;
    ret->currency = ret->cost_micros > 0 ? STR("EUR") : STR_EMPTY;
}

// Were all parts taken, or none? What went out in part must not be sent again as if it had not.
static bool parts_agree(const json_t *parts)
{
    bool first = str_eq(vendor_member_text(json_array_get(parts, 0), "status"), STR("0"));
    for (size_t i = 1; i < json_array_size(parts); i++) {
        Str status = vendor_member_text(json_array_get(parts, i), "status");
        if (str_eq(status, STR("0")) != first) {
            return false;
        }
    }
    return true;
}

// Every answer that says something is a 200; the first part's status is the reason of all.
void vonage_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    if (ret->reply != REPLY_ACCEPTED) {
        return;
    }
    const json_t *body = vendor_answer_object(answer, arena);
    const json_t *parts = json_object_get(body, "messages");
    Str status = vendor_member_text(json_array_get(parts, 0), "status");
    if (status.len == 0 || json_array_size(parts) > PARTS_MAX) {
        vendor_read_as(SEND_UNKNOWN, REPLY_RETRY, ret);
        ret->text = STR("the answer does not say whether the message was taken");
    } else if (!parts_agree(parts)) {
        vendor_read_as(SEND_UNKNOWN, REPLY_RETRY, ret);
        ret->text = STR("some parts of the message were taken, others refused");
    } else if (str_eq(status, STR("0"))) {
        read_parts(parts, arena, ret);
    } else {
        Str why = vendor_member_text(json_array_get(parts, 0), "error-text");
        vendor_read_as(SEND_ANSWERED, REPLY_TERMINAL, ret);
        (void)vendor_read_row(ROWS, sizeof ROWS / sizeof *ROWS, status, ret);
        ret->text = vendor_clean_text(status, why, arena);
    }
}
