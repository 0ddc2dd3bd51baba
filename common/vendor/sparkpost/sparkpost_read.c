// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/sparkpost/sparkpost.h"
#include "common/vendor/vendor_read.h"

enum {
    CONCURRENT_MS = 1000,
    MINUTE_MS = 60 * 1000,
    HOURLY_MS = 600 * 1000,
    DAILY_MS = 3600 * 1000
};

// "<status>/<code>": the same code means other things with another status.
// clang-format off
static const VendorRow codes[] = {
    {"409/1600", SEND_ANSWERED, REPLY_TERMINAL,    0}, // the key, and another payload: ours
    {"409/1601", SEND_ANSWERED, REPLY_RETRY,       CONCURRENT_MS}, // the same call is in progress
    {"400/1602", SEND_ANSWERED, REPLY_TERMINAL,    0}, // not a key
    {"409/1602", SEND_ANSWERED, REPLY_RETRY,       CONCURRENT_MS}, // resource in use
    {"400/1502", SEND_ANSWERED, REPLY_RETRY,       0}, // server resources unavailable
    {"400/2009", SEND_ANSWERED, REPLY_CONFIG,      0}, // tracking domain: not set up, not verified,
    {"400/2010", SEND_ANSWERED, REPLY_CONFIG,      0},
    {"400/2011", SEND_ANSWERED, REPLY_CONFIG,      0},
    {"400/2012", SEND_ANSWERED, REPLY_CONFIG,      0}, // blocked
    {"420/2101", SEND_ANSWERED, REPLY_THROTTLED,   HOURLY_MS},
    {"420/2102", SEND_ANSWERED, REPLY_THROTTLED,   DAILY_MS},
    {"420/2103", SEND_ANSWERED, REPLY_CONFIG,      0}, // the sandbox domain is used up
    {"400/5002", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0}, // no recipient is valid
    {"400/7000", SEND_ANSWERED, REPLY_CONFIG,      0}, // sending domain: blocked,
    {"400/7001", SEND_ANSWERED, REPLY_CONFIG,      0}, // not verified
};
// clang-format on

// {"errors": [{"message": "..", "description": "..", "code": "1902"}]}: the first one.
static void read_error(
    const VendorAnswer *answer, const json_t *body, Arena *arena, SendResult *ret)
{
    const json_t *error = json_array_get(json_object_get(body, "errors"), 0);
    Str code = vendor_member_text(error, "code");
    Str message = vendor_member_text(error, "message");
    Str description = vendor_member_text(error, "description");
    const char *row =
        arena_printf(arena, "%d/" STR_FMT, answer->status, STR_ARG(str_slice(code, 0, 16)));
    if (answer->status == 420) {
        ret->reply = REPLY_THROTTLED;
    }
    vendor_read_row(codes, sizeof codes / sizeof *codes, str_from(row), ret);
    if (str_eq(code, STR("1902")) && vendor_text_has(description, "suppressed")) {
        ret->reply = REPLY_ELSEWHERE; // its own list
    }
    if (answer->status == 420 && ret->retry_after_ms == 0) {
        ret->retry_after_ms = MINUTE_MS;
    }
    const char *text = arena_printf(
        arena, STR_FMT "%s" STR_FMT, STR_ARG(str_slice(message, 0, VENDOR_TEXT_MAX)),
        description.len > 0 ? ": " : "", STR_ARG(str_slice(description, 0, VENDOR_TEXT_MAX)));
    ret->text = vendor_clean_text(code, str_from(text), arena);
}

void sparkpost_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    if (ret->reply != REPLY_ACCEPTED) {
        read_error(answer, body, arena, ret);
        return;
    }
    const json_t *results = json_object_get(body, "results");
    int64_t accepted = vendor_member_int(results, "total_accepted_recipients", -1);
    int64_t rejected = vendor_member_int(results, "total_rejected_recipients", 0);
    if (accepted == 0 && rejected > 0) {
        ret->reply = REPLY_ELSEWHERE; // its own list has each of them
        ret->text = STR("every recipient was rejected");
        return;
    }
    ret->vendor_message_id = vendor_clean_id(vendor_member_text(results, "id"), arena);
}
