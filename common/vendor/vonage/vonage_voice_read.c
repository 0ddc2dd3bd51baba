// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vendor_read.h"
#include "common/vendor/vonage/vonage_voice.h"

// Whose fault a 400 is, its first invalid parameter says: "to[0].number", "from.number".
static void read_invalid(const json_t *body, SendResult *ret)
{
    const json_t *list = json_object_get(body, "invalid_parameters");
    Str name = vendor_member_text(json_array_get(list, 0), "name");
    if (str_starts(name, STR("to"))) {
        vendor_read_as(SEND_ANSWERED, REPLY_BAD_ADDRESS, ret);
    } else if (str_starts(name, STR("from"))) {
        vendor_read_as(SEND_ANSWERED, REPLY_CONFIG, ret);
    }
}

static Str why(const json_t *body)
{
    static const char *const names[] = {"detail", "error_title", "title"};
    const json_t *first = json_array_get(json_object_get(body, "invalid_parameters"), 0);
    Str text = vendor_member_text(first, "reason");
    for (size_t i = 0; text.len == 0 && i < sizeof names / sizeof *names; i++) {
        text = vendor_member_text(body, names[i]);
    }
    return text;
}

void vonage_voice_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    if (ret->reply == REPLY_ACCEPTED) {
        ret->vendor_message_id = vendor_clean_id(vendor_member_text(body, "uuid"), arena);
        return;
    }
    ret->text = vendor_clean_text(STR_EMPTY, why(body), arena);
    // What is uncertain by its status stays so, whatever the body says.
    if (ret->state == SEND_ANSWERED && (answer->status == 400 || answer->status == 422)) {
        read_invalid(body, ret);
    }
}
