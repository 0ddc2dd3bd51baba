// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/resend/resend.h"
#include "common/vendor/vendor_read.h"

enum { CONCURRENT_MS = 1000, QUOTA_MS = 60 * 60 * 1000 };

// `name` of an error, where it says more than the status.
// clang-format off
static const VendorRow names[] = {
    {"invalid_idempotent_request",     SEND_ANSWERED, REPLY_TERMINAL,  0}, // the key, and another body: ours
    {"concurrent_idempotent_requests", SEND_ANSWERED, REPLY_RETRY,     CONCURRENT_MS},
    {"invalid_idempotency_key",        SEND_ANSWERED, REPLY_TERMINAL,  0},
    {"missing_api_key",                SEND_ANSWERED, REPLY_CONFIG,    0},
    {"invalid_api_key",                SEND_ANSWERED, REPLY_CONFIG,    0},
    {"restricted_api_key",             SEND_ANSWERED, REPLY_CONFIG,    0},
    {"rate_limit_exceeded",            SEND_ANSWERED, REPLY_THROTTLED, 0},
    {"daily_quota_exceeded",           SEND_ANSWERED, REPLY_THROTTLED, QUOTA_MS},
    {"monthly_quota_exceeded",         SEND_ANSWERED, REPLY_THROTTLED, QUOTA_MS},
};
// clang-format on

static void read_error(const VendorAnswer *answer, Str name, Str message, SendResult *ret)
{
    if (answer->status >= 500) {
        vendor_read_as(SEND_UNKNOWN, REPLY_RETRY, ret); // 503 too: the key makes a repeat exact
        return;
    }
    if (ret->retry_after_ms == 0 && answer->status == 429 &&
        str_eq(name, STR("rate_limit_exceeded"))) {
        ret->retry_after_ms = vendor_reset_ms(answer, STR("ratelimit-reset"));
    }
    vendor_read_row(names, sizeof names / sizeof *names, name, ret);
    if (answer->status == 400 && vendor_text_has(message, "api key is invalid")) {
        ret->reply = REPLY_CONFIG;
    } else if (ret->reply == REPLY_TERMINAL && vendor_text_has(message, "invalid `to` field")) {
        ret->reply = REPLY_BAD_ADDRESS;
    }
}

void resend_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    if (ret->reply == REPLY_ACCEPTED) {
        ret->vendor_message_id = vendor_clean_id(vendor_member_text(body, "id"), arena);
        return;
    }
    Str name = vendor_member_text(body, "name");
    Str message = vendor_member_text(body, "message");
    read_error(answer, name, message, ret);
    ret->text = vendor_clean_text(name, message, arena);
}
