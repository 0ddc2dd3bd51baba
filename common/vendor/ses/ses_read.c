// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/ses/ses.h"
#include "common/vendor/vendor_read.h"

enum { RATE_MS = 1000, QUOTA_MS = 60 * 60 * 1000 };

// The type decides and never the status: what is throttled comes as 400 and as 429.
// clang-format off
static const VendorRow types[] = {
    {"ServiceUnavailable",                 SEND_ANSWERED, REPLY_RETRY,     0},
    {"ServiceUnavailableException",        SEND_ANSWERED, REPLY_RETRY,     0},
    {"InternalFailure",                    SEND_UNKNOWN,  REPLY_RETRY,     0},
    {"InternalServiceError",               SEND_UNKNOWN,  REPLY_RETRY,     0},
    {"InternalServiceErrorException",      SEND_UNKNOWN,  REPLY_RETRY,     0},
    {"InternalServerError",                SEND_UNKNOWN,  REPLY_RETRY,     0},
    {"RequestTimeout",                     SEND_UNKNOWN,  REPLY_RETRY,     0},
    {"RequestTimeoutException",            SEND_UNKNOWN,  REPLY_RETRY,     0},
    {"Throttling",                         SEND_ANSWERED, REPLY_THROTTLED, RATE_MS},
    {"ThrottlingException",                SEND_ANSWERED, REPLY_THROTTLED, RATE_MS},
    {"TooManyRequestsException",           SEND_ANSWERED, REPLY_THROTTLED, RATE_MS},
    {"LimitExceededException",             SEND_ANSWERED, REPLY_THROTTLED, RATE_MS},
    {"BadRequestException",                SEND_ANSWERED, REPLY_TERMINAL,  0}, // see is_about_address()
    {"MessageRejected",                    SEND_ANSWERED, REPLY_ELSEWHERE, 0},
    {"AccountSuspendedException",          SEND_ANSWERED, REPLY_CONFIG,    0},
    {"SendingPausedException",             SEND_ANSWERED, REPLY_CONFIG,    0},
    {"MailFromDomainNotVerifiedException", SEND_ANSWERED, REPLY_CONFIG,    0},
    {"NotFoundException",                  SEND_ANSWERED, REPLY_CONFIG,    0}, // the configuration set
    {"RequestExpired",                     SEND_ANSWERED, REPLY_CONFIG,    0}, // the clock
    {"InvalidSignatureException",          SEND_ANSWERED, REPLY_CONFIG,    0}, // the clock, or the key
    {"SignatureDoesNotMatch",              SEND_ANSWERED, REPLY_CONFIG,    0},
    {"UnrecognizedClientException",        SEND_ANSWERED, REPLY_CONFIG,    0},
    {"InvalidClientTokenId",               SEND_ANSWERED, REPLY_CONFIG,    0},
    {"ExpiredTokenException",              SEND_ANSWERED, REPLY_CONFIG,    0},
    {"AccessDeniedException",              SEND_ANSWERED, REPLY_CONFIG,    0},
    {"ValidationError",                    SEND_ANSWERED, REPLY_TERMINAL,  0},
    {"ValidationException",                SEND_ANSWERED, REPLY_TERMINAL,  0},
};
// clang-format on

// "ThrottlingException:http://..." in the header, "com.amazonaws.ses.v2#ThrottlingException" in the
// body.
static Str type_of(const VendorAnswer *answer, const json_t *body)
{
    Str type = vendor_answer_header(answer, STR("x-amzn-ErrorType"));
    type = type.len > 0 ? type : vendor_member_text(body, "__type");
    ptrdiff_t hash = str_find(type, '#');
    type = hash >= 0 ? str_slice(type, (size_t)hash + 1, type.len) : type;
    ptrdiff_t colon = str_find(type, ':');
    return str_trim(colon >= 0 ? str_slice(type, 0, (size_t)colon) : type);
}

// Our From is that of a verified sender, so that an address which is none is the recipient's.
static bool is_about_address(Str message)
{
    static const char *const words[] = {
        "illegal address", "missing final '@domain'", "local address contains",
        "domain contains", "invalid email address",   "domain starts with dot",
        "missing '@'",     "invalid domain name"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (vendor_text_has(message, words[i])) {
            return true;
        }
    }
    return false;
}

static void read_type(Str type, Str message, SendResult *ret)
{
    bool daily = vendor_text_has(message, "daily message quota");
    uint32_t asked_for = ret->retry_after_ms;
    vendor_read_row(types, sizeof types / sizeof *types, type, ret);
    if (ret->reply == REPLY_THROTTLED && daily && asked_for == 0) {
        ret->retry_after_ms = QUOTA_MS;
    } else if (str_eq(type, STR("BadRequestException")) && is_about_address(message)) {
        ret->reply = REPLY_BAD_ADDRESS;
    } else if (str_eq(type, STR("MessageRejected")) && vendor_text_has(message, "not verified")) {
        ret->reply = REPLY_CONFIG;
    }
}

void ses_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    const json_t *body = vendor_answer_object(answer, arena);
    if (ret->reply == REPLY_ACCEPTED) {
        ret->vendor_message_id = vendor_clean_id(vendor_member_text(body, "MessageId"), arena);
        return;
    }
    Str type = type_of(answer, body);
    Str message = vendor_member_text(body, "message");
    message = message.len > 0 ? message : vendor_member_text(body, "Message");
    read_type(type, message, ret);
    ret->text = vendor_clean_text(type, message, arena);
}

// ---- the quota ----

static double number_of(const json_t *object, const char *name)
{
    double value = json_number_value(json_object_get(object, name));
    return value > 0 ? value : 0;
}

bool ses_quota(const VendorAnswer *answer, Arena *arena, VendorQuota *ret)
{
    if (answer->status != 200 || answer->cut) {
        return false;
    }
    const json_t *quota = json_object_get(vendor_answer_object(answer, arena), "SendQuota");
    if (!json_is_number(json_object_get(quota, "MaxSendRate"))) {
        return false;
    }
    *ret = (VendorQuota){
        .per_s = number_of(quota, "MaxSendRate"),
        .per_day = number_of(quota, "Max24HourSend"),
        .used_of_day = number_of(quota, "SentLast24Hours"),
    };
    return true;
}
