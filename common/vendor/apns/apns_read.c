// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/apns/apns.h"
#include "common/vendor/vendor_read.h"

enum { TOKEN_HELD_MS = 60 * 1000, BUSY_MS = 10 * 1000 };

// `reason` of the answer.
// clang-format off
static const VendorRow reasons[] = {
    {"BadDeviceToken",              SEND_ANSWERED, REPLY_BAD_ADDRESS, 0},
    {"Unregistered",                SEND_ANSWERED, REPLY_BAD_ADDRESS, 0},
    {"ExpiredToken",                SEND_ANSWERED, REPLY_BAD_ADDRESS, 0},
    {"DeviceTokenNotForTopic",      SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // of another app: the topic may be wrong
    {"BadCollapseId",               SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"BadExpirationDate",           SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"BadMessageId",                SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"BadPriority",                 SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"DuplicateHeaders",            SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"InvalidPushType",             SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"MissingDeviceToken",          SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"PayloadEmpty",                SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"PayloadTooLarge",             SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"BadPath",                     SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"MethodNotAllowed",            SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"IdleTimeout",                 SEND_ANSWERED, REPLY_RETRY,       BUSY_MS},
    {"BadTopic",                    SEND_ANSWERED, REPLY_CONFIG,      0},
    {"MissingTopic",                SEND_ANSWERED, REPLY_CONFIG,      0},
    {"TopicDisallowed",             SEND_ANSWERED, REPLY_CONFIG,      0},
    {"BadCertificate",              SEND_ANSWERED, REPLY_CONFIG,      0},
    {"BadCertificateEnvironment",   SEND_ANSWERED, REPLY_CONFIG,      0},
    {"BadEnvironmentKeyIdInToken",  SEND_ANSWERED, REPLY_CONFIG,      0},
    {"UnrelatedKeyIdInToken",       SEND_ANSWERED, REPLY_CONFIG,      0},
    {"Forbidden",                   SEND_ANSWERED, REPLY_CONFIG,      0},
    {"InvalidProviderToken",        SEND_ANSWERED, REPLY_CONFIG,      0},
    {"MissingProviderToken",        SEND_ANSWERED, REPLY_CONFIG,      0},
    {"ExpiredProviderToken",        SEND_ANSWERED, REPLY_RETRY,       0}, // with a new one it goes
    {"TooManyProviderTokenUpdates", SEND_ANSWERED, REPLY_RETRY,       TOKEN_HELD_MS},
    {"TooManyRequests",             SEND_ANSWERED, REPLY_THROTTLED,   TOKEN_HELD_MS}, // of this device only
    {"InternalServerError",         SEND_UNKNOWN,  REPLY_RETRY,       BUSY_MS},
    {"ServiceUnavailable",          SEND_ANSWERED, REPLY_RETRY,       BUSY_MS},
    {"Shutdown",                    SEND_ANSWERED, REPLY_RETRY,       0},
};
// clang-format on

void apns_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    if (ret->reply == REPLY_ACCEPTED) {
        ret->vendor_message_id =
            vendor_clean_id(vendor_answer_header(answer, STR("apns-id")), arena);
        return;
    }
    Str reason = vendor_member_text(vendor_answer_object(answer, arena), "reason");
    bool known = vendor_read_row(reasons, sizeof reasons / sizeof *reasons, reason, ret);
    if (answer->status >= 500 && answer->status != 503) {
        vendor_read_as(SEND_UNKNOWN, REPLY_RETRY, ret); // whatever it says
    } else if (!known && answer->status == 410) {
        ret->reply = REPLY_BAD_ADDRESS;
    } else if (!known && answer->status == 429) {
        ret->retry_after_ms = ret->retry_after_ms > 0 ? ret->retry_after_ms : TOKEN_HELD_MS;
    }
    ret->of_recipient = ret->state == SEND_ANSWERED && ret->reply == REPLY_THROTTLED;
    ret->text = vendor_clean_text(reason, STR_EMPTY, arena);
}

bool apns_stale(const VendorAnswer *answer, Arena *arena)
{
    Str reason = vendor_member_text(vendor_answer_object(answer, arena), "reason");
    return answer->status == 403 && str_eq(reason, STR("ExpiredProviderToken"));
}
