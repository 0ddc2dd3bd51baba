// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/sendgrid/sendgrid.h"
#include "common/vendor/vendor_read.h"

// "personalizations.0.to.0.email": the mail has one personalization, and its `to` is ours.
static bool is_about_to(const json_t *error)
{
    Str field = vendor_member_text(error, "field");
    return str_starts(field, STR("personalizations.")) && vendor_text_has(field, ".to.") &&
           str_ends(field, STR(".email"));
}

// {"errors": [{"message": "..", "field": "..", "help": ".."}]}: the first one's text, and whether
// any is about the recipient's address.
static void read_errors(const json_t *body, Arena *arena, SendResult *ret)
{
    const json_t *errors = json_object_get(body, "errors");
    const json_t *shown = json_array_get(errors, 0);
    for (size_t i = 0; i < json_array_size(errors); i++) {
        const json_t *error = json_array_get(errors, i);
        if (ret->reply == REPLY_TERMINAL && is_about_to(error)) {
            ret->reply = REPLY_BAD_ADDRESS;
            shown = error;
        }
    }
    ret->text = vendor_clean_text(
        vendor_member_text(shown, "field"), vendor_member_text(shown, "message"), arena);
}

void sendgrid_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    if (ret->reply == REPLY_ACCEPTED) {
        Str id = vendor_answer_header(answer, STR("X-Message-Id"));
        ret->vendor_message_id = vendor_clean_id(id, arena);
        return;
    }
    read_errors(vendor_answer_object(answer, arena), arena, ret);
    if (ret->reply == REPLY_THROTTLED && ret->retry_after_ms == 0) {
        ret->retry_after_ms = vendor_reset_ms(answer, STR("X-RateLimit-Reset"));
    }
}
