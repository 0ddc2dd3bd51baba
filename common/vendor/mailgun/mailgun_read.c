// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/mailgun/mailgun.h"
#include "common/vendor/vendor_read.h"

static bool is_about_to(Str message)
{
    return vendor_text_has(message, "'to' parameter is not a valid address") ||
           vendor_text_has(message, "to parameter is not a valid address");
}

void mailgun_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    Str message = vendor_member_text(body, "message");
    ret->text = vendor_clean_text(STR_EMPTY, message, arena);
    if (ret->reply == REPLY_ACCEPTED) {
        ret->vendor_message_id = vendor_clean_id(vendor_member_text(body, "id"), arena);
    } else if (answer->status >= 500) {
        vendor_read_as(SEND_UNKNOWN, REPLY_RETRY, ret); // 503 too
    } else if (answer->status == 404 && body == NULL) {
        ret->reply = REPLY_RETRY; // "can be temporal" when it does not come from the API
    } else if (answer->status == 400 && is_about_to(message)) {
        ret->reply = REPLY_BAD_ADDRESS;
    } else if (answer->status == 400 && vendor_text_has(message, "suppress-bounce")) {
        ret->reply = REPLY_ELSEWHERE;
    }
}

int mailgun_asked(const VendorAnswer *answer, const VendorMail *mail, Arena *arena, SendResult *ret)
{
    const json_t *body = vendor_answer_object(answer, arena);
    const json_t *items = json_object_get(body, "items");
    size_t count = json_array_size(items);
    if (answer->status != 200 || !json_is_array(items)) {
        return -1;
    }
    int found = count < MAILGUN_ASK_MAX ? 0 : -1; // a full page: another may have it
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(items, i);
        int is = vendor_is_attempt(json_object_get(item, "user-variables"), mail, arena);
        if (is == 1) {
            vendor_read_status(answer, arena, ret);
            const json_t *message = json_object_get(item, "message");
            const json_t *headers = json_object_get(message, "headers");
            ret->vendor_message_id =
                vendor_clean_id(vendor_member_text(headers, "message-id"), arena);
            return 1;
        }
        found = is < 0 ? -1 : found;
    }
    return found;
}
