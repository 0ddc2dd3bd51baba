// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vendor_read.h"
#include "common/vendor/webpush/webpush.h"

enum { BUSY_MS = 10 * 1000, THROTTLED_MS = 60 * 1000, AT_ONCE = 202 };

// The status decides: only Mozilla's service adds a number (`errno`), and the others have no body.
static void read_status(const VendorAnswer *answer, int64_t number, SendResult *ret)
{
    switch (answer->status) {
    case 404:
    case 410:
        ret->reply = REPLY_BAD_ADDRESS; // the subscription is gone
        break;
    case 429:
        ret->retry_after_ms = ret->retry_after_ms > 0 ? ret->retry_after_ms : THROTTLED_MS;
        break;
    case 503:
        if (ret->retry_after_ms == 0 && number != AT_ONCE) {
            ret->retry_after_ms = BUSY_MS;
        }
        break;
    default:
        break;
    }
}

void webpush_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    if (ret->reply == REPLY_ACCEPTED) {
        ret->vendor_message_id =
            vendor_clean_id(vendor_answer_header(answer, STR("location")), arena);
        return;
    }
    const json_t *body = vendor_answer_object(answer, arena);
    int64_t number = vendor_member_int(body, "errno", 0);
    read_status(answer, number, ret);
    Str shown = number > 0 ? str_from(arena_printf(arena, "%lld", (long long)number)) : STR_EMPTY;
    ret->text = vendor_clean_text(shown, vendor_member_text(body, "message"), arena);
}
