// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/fcm/fcm.h"
#include "common/vendor/vendor_read.h"

enum { QUOTA_MS = 60 * 1000, BUSY_MS = 10 * 1000 };

// `errorCode` of google.firebase.fcm.v1.FcmError, where it says more than the status.
// clang-format off
static const VendorRow codes[] = {
    {"UNREGISTERED",           SEND_ANSWERED, REPLY_BAD_ADDRESS, 0},
    {"INVALID_ARGUMENT",       SEND_ANSWERED, REPLY_TERMINAL,    0},
    {"SENDER_ID_MISMATCH",     SEND_ANSWERED, REPLY_ELSEWHERE,   0}, // a token of another project
    {"QUOTA_EXCEEDED",         SEND_ANSWERED, REPLY_THROTTLED,   QUOTA_MS},
    {"UNAVAILABLE",            SEND_ANSWERED, REPLY_RETRY,       BUSY_MS},
    {"INTERNAL",               SEND_UNKNOWN,  REPLY_RETRY,       BUSY_MS},
    {"THIRD_PARTY_AUTH_ERROR", SEND_ANSWERED, REPLY_CONFIG,      0}, // the project's key for APNs or the web
};
// clang-format on

static const json_t *error_of(const VendorAnswer *answer, Arena *arena)
{
    return json_object_get(vendor_answer_object(answer, arena), "error");
}

static Str code_of(const json_t *details)
{
    size_t i;
    json_t *detail;
    json_array_foreach(details, i, detail)
    {
        Str code = vendor_member_text(detail, "errorCode");
        if (code.len > 0) {
            return code;
        }
    }
    return STR_EMPTY;
}

// A google.rpc.BadRequest that names the token.
static bool blames_token(const json_t *details)
{
    size_t i, j;
    json_t *detail, *violation;
    json_array_foreach(details, i, detail)
    {
        json_array_foreach(json_object_get(detail, "fieldViolations"), j, violation)
        {
            if (str_eq(vendor_member_text(violation, "field"), STR("message.token"))) {
                return true;
            }
        }
    }
    return false;
}

static void read_error(const VendorAnswer *answer, const json_t *error, Str code, SendResult *ret)
{
    if (!vendor_read_row(codes, sizeof codes / sizeof *codes, code, ret)) {
        // Without a code of its own: a path that is not there is no token that is gone.
        if (ret->reply == REPLY_THROTTLED && ret->retry_after_ms == 0) {
            ret->retry_after_ms = QUOTA_MS;
        }
        return;
    }
    if (answer->status >= 500 && answer->status != 503) {
        ret->state = SEND_UNKNOWN; // whatever it says
        ret->reply = REPLY_RETRY;
    } else if (ret->reply == REPLY_TERMINAL && blames_token(json_object_get(error, "details"))) {
        ret->reply = REPLY_BAD_ADDRESS;
    }
}

void fcm_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    if (ret->reply == REPLY_ACCEPTED) {
        const json_t *body = vendor_answer_object(answer, arena);
        ret->vendor_message_id = vendor_clean_id(vendor_member_text(body, "name"), arena);
        return;
    }
    const json_t *error = error_of(answer, arena);
    Str code = code_of(json_object_get(error, "details"));
    read_error(answer, error, code, ret);
    Str shown = code.len > 0 ? code : vendor_member_text(error, "status");
    ret->text = vendor_clean_text(shown, vendor_member_text(error, "message"), arena);
}

// 401 is also the project's own fault with APNs, which no new token mends.
bool fcm_stale(const VendorAnswer *answer, Arena *arena)
{
    Str code = code_of(json_object_get(error_of(answer, arena), "details"));
    return answer->status == 401 && !str_eq(code, STR("THIRD_PARTY_AUTH_ERROR"));
}
