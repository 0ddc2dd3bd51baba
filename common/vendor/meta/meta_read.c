// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/meta/meta.h"
#include "common/vendor/vendor_read.h"

enum { PAIR_MS = 6000, DAY_MS = 24 * 60 * 60 * 1000 };

#define PAIR_LIMIT "131056"

// error.code; one that is not here is judged by the status.
// clang-format off
static const VendorRow ROWS[] = {
    {"1",      SEND_ANSWERED, REPLY_RETRY,       0},       // unknown, of their API
    {"2",      SEND_ANSWERED, REPLY_RETRY,       0},       // their API is down or overloaded
    {"131016", SEND_ANSWERED, REPLY_RETRY,       0},       // a service is overloaded
    {"131057", SEND_ANSWERED, REPLY_RETRY,       0},       // the number is being upgraded
    {"131049", SEND_ANSWERED, REPLY_RETRY,       DAY_MS},  // not now, "to maintain healthy ecosystem engagement"
    {"4",      SEND_ANSWERED, REPLY_THROTTLED,   0},       // calls of the app
    {"80007",  SEND_ANSWERED, REPLY_THROTTLED,   0},       // calls of the business account
    {"130429", SEND_ANSWERED, REPLY_THROTTLED,   0},       // messages of the number
    {"131048", SEND_ANSWERED, REPLY_THROTTLED,   0},       // the number's quality
    {PAIR_LIMIT, SEND_ANSWERED, REPLY_THROTTLED, PAIR_MS}, // messages to this recipient
    {"131026", SEND_ANSWERED, REPLY_ELSEWHERE,   0},       // not on WhatsApp, or an old version
    {"131047", SEND_ANSWERED, REPLY_ELSEWHERE,   0},       // over 24 hours since the recipient wrote
    {"130472", SEND_ANSWERED, REPLY_ELSEWHERE,   0},       // the recipient is part of an experiment
    {"131030", SEND_ANSWERED, REPLY_ELSEWHERE,   0},       // not on a test number's list
    {"132001", SEND_ANSWERED, REPLY_ELSEWHERE,   0},       // no such template in that language
    {"132005", SEND_ANSWERED, REPLY_ELSEWHERE,   0},       // its text is too long
    {"132007", SEND_ANSWERED, REPLY_ELSEWHERE,   0},       // it breaks the policy
    {"132015", SEND_ANSWERED, REPLY_ELSEWHERE,   0},       // it is paused
    {"132016", SEND_ANSWERED, REPLY_ELSEWHERE,   0},       // it is disabled
    {"100",    SEND_ANSWERED, REPLY_TERMINAL,    0},       // a parameter of the call
    {"131008", SEND_ANSWERED, REPLY_TERMINAL,    0},       // one is missing
    {"131009", SEND_ANSWERED, REPLY_TERMINAL,    0},       // one has a wrong value
    {"131021", SEND_ANSWERED, REPLY_TERMINAL,    0},       // to the sender itself
    {"131050", SEND_ANSWERED, REPLY_TERMINAL,    0},       // the recipient has stopped marketing of this business
    {"131051", SEND_ANSWERED, REPLY_TERMINAL,    0},       // type of message
    {"132000", SEND_ANSWERED, REPLY_TERMINAL,    0},       // another number of parameters
    {"132012", SEND_ANSWERED, REPLY_TERMINAL,    0},       // parameters of another format
    {"0",      SEND_ANSWERED, REPLY_CONFIG,      0},       // the app could not be authenticated
    {"3",      SEND_ANSWERED, REPLY_CONFIG,      0},       // capability or permission
    {"10",     SEND_ANSWERED, REPLY_CONFIG,      0},
    {"33",     SEND_ANSWERED, REPLY_CONFIG,      0},       // the number's id is none
    {"190",    SEND_ANSWERED, REPLY_CONFIG,      0},       // the token is expired
    {"200",    SEND_ANSWERED, REPLY_CONFIG,      0},
    {"368",    SEND_ANSWERED, REPLY_CONFIG,      0},       // the account is restricted
    {"131005", SEND_ANSWERED, REPLY_CONFIG,      0},       // access denied
    {"131031", SEND_ANSWERED, REPLY_CONFIG,      0},       // the account is locked
    {"131037", SEND_ANSWERED, REPLY_CONFIG,      0},       // the display name is not approved
    {"131042", SEND_ANSWERED, REPLY_CONFIG,      0},       // payment
    {"131045", SEND_ANSWERED, REPLY_CONFIG,      0},       // the number's certificate
    {"133010", SEND_ANSWERED, REPLY_CONFIG,      0},       // the number is not registered
};

const VendorReason meta_reasons[] = {
    {"131047", "window_closed", SUPPRESSION_NONE},
    {"131050", "opted_out", SUPPRESSION_NONE},
    {"132000", "vendor_template_refused", SUPPRESSION_NONE},
    {"132001", "unknown_vendor_template", SUPPRESSION_NONE},
    {"132005", "vendor_template_refused", SUPPRESSION_NONE},
    {"132007", "vendor_template_refused", SUPPRESSION_NONE},
    {"132012", "vendor_template_refused", SUPPRESSION_NONE},
    {"132015", "vendor_template_refused", SUPPRESSION_NONE},
    {"132016", "vendor_template_refused", SUPPRESSION_NONE},
    {NULL, NULL, SUPPRESSION_NONE},
};
// clang-format on

static void read_error(const json_t *error, Arena *arena, SendResult *ret)
{
    int64_t number = vendor_member_int(error, "code", -1);
    if (number < 0) {
        return;
    }
    Str code = str_from(arena_printf(arena, "%lld", (long long)number));
    Str details = vendor_member_text(json_object_get(error, "error_data"), "details");
    ret->text = vendor_clean_text(
        code, details.len > 0 ? details : vendor_member_text(error, "message"), arena);
    // What is uncertain by its status stays so, whatever the body says.
    if (ret->state == SEND_ANSWERED) {
        (void)vendor_read_row(ROWS, sizeof ROWS / sizeof *ROWS, code, ret);
        ret->of_recipient = str_eq(code, STR(PAIR_LIMIT));
    }
}

void meta_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    if (ret->reply != REPLY_ACCEPTED) {
        read_error(json_object_get(body, "error"), arena, ret);
        return;
    }
    const json_t *message = json_array_get(json_object_get(body, "messages"), 0);
    ret->vendor_message_id = vendor_clean_id(vendor_member_text(message, "id"), arena);
}
