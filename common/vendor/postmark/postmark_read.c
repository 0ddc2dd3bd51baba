// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/postmark/postmark.h"
#include "common/vendor/vendor_read.h"

// The first step of its 1, 2, 4 .. 60 s: it gives no Retry-After.
enum { THROTTLED_MS = 1000 };

// ErrorCode, whose numbers look like statuses and are none.
// clang-format off
static const VendorRow codes[] = {
    {"10",  SEND_ANSWERED, REPLY_CONFIG,    0}, // bad or missing token
    {"100", SEND_ANSWERED, REPLY_RETRY,     0}, // maintenance
    {"300", SEND_ANSWERED, REPLY_TERMINAL,  0}, // invalid request, see is_about_to()
    {"400", SEND_ANSWERED, REPLY_CONFIG,    0}, // sender signature not found
    {"401", SEND_ANSWERED, REPLY_CONFIG,    0}, // sender signature not confirmed
    {"402", SEND_ANSWERED, REPLY_TERMINAL,  0}, // not JSON
    {"403", SEND_ANSWERED, REPLY_TERMINAL,  0}, // JSON of another kind
    {"405", SEND_ANSWERED, REPLY_CONFIG,    0}, // no credits
    {"406", SEND_ANSWERED, REPLY_ELSEWHERE, 0}, // its own memory of a bounce or a complaint
    {"409", SEND_ANSWERED, REPLY_TERMINAL,  0}, // JSON required
    {"410", SEND_ANSWERED, REPLY_TERMINAL,  0}, // too many in a batch
    {"411", SEND_ANSWERED, REPLY_ELSEWHERE, 0}, // type of an attachment
    {"412", SEND_ANSWERED, REPLY_CONFIG,    0}, // account is pending
    {"413", SEND_ANSWERED, REPLY_CONFIG,    0}, // account may not send
    {"429", SEND_ANSWERED, REPLY_THROTTLED, THROTTLED_MS},
};
// clang-format on

static bool is_about_to(Str message)
{
    return vendor_text_has(message, "invalid 'to' address") ||
           vendor_text_has(message, "error parsing 'to'");
}

static void read_code(int64_t number, Str message, Arena *arena, SendResult *ret)
{
    Str code = str_from(arena_printf(arena, "%lld", (long long)number));
    vendor_read_row(codes, sizeof codes / sizeof *codes, code, ret);
    if (number == 300 && is_about_to(message)) {
        ret->reply = REPLY_BAD_ADDRESS;
    }
    ret->text = vendor_clean_text(code, message, arena);
}

void postmark_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    int64_t code = vendor_member_int(body, "ErrorCode", 0);
    Str message = vendor_member_text(body, "Message");
    ret->text = vendor_clean_text(STR_EMPTY, message, arena);
    bool says_by_code = answer->status == 422 || ret->reply == REPLY_ACCEPTED;
    if (code != 0 && says_by_code) {
        read_code(code, message, arena, ret);
    } else if (code != 0) {
        Str number = str_from(arena_printf(arena, "%lld", (long long)code));
        ret->text = vendor_clean_text(number, message, arena);
    } else if (answer->status == 403 && body == NULL) {
        ret->reply = REPLY_RETRY; // the firewall in front of the API, which knows no credential
    }
    if (ret->reply == REPLY_ACCEPTED) {
        ret->vendor_message_id = vendor_clean_id(vendor_member_text(body, "MessageID"), arena);
    } else if (ret->reply == REPLY_THROTTLED && ret->retry_after_ms == 0) {
        ret->retry_after_ms = THROTTLED_MS;
    }
}

int postmark_asked(
    const VendorAnswer *answer, const VendorMail *mail, Arena *arena, SendResult *ret)
{
    const json_t *body = vendor_answer_object(answer, arena);
    const json_t *messages = json_object_get(body, "Messages");
    size_t count = json_array_size(messages);
    if (answer->status != 200 || !json_is_array(messages)) {
        return -1;
    }
    int found = vendor_member_int(body, "TotalCount", -1) == (int64_t)count ? 0 : -1;
    for (size_t i = 0; i < count; i++) {
        const json_t *message = json_array_get(messages, i);
        int is = vendor_is_attempt(json_object_get(message, "Metadata"), mail, arena);
        if (is == 1) {
            vendor_read_status(answer, arena, ret);
            Str id = vendor_member_text(message, "MessageID");
            ret->vendor_message_id = vendor_clean_id(id, arena);
            return 1;
        }
        found = is < 0 ? -1 : found;
    }
    return found;
}
