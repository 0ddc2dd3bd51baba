// SPDX-License-Identifier: Apache-2.0
// Vonage's delivery receipts and inbound messages: a form, signed in its field `sig` by HMAC-SHA256
// over "&name=value" of the other fields, sorted, with '&' and '=' of values as '_'. One for each
// part of a long text. Source: developer.vonage.com, "Signing messages"; vonage-ruby-sdk,
// vonage-python-sdk.
#include <stdlib.h>

#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"
#include "common/vendor/form.h"

enum {
    SIGNED_MAX = 2 * FORM_BYTES_MAX,
    TOKEN_BYTES = 16,
    REPLY_TEXT_MAX = 4096,
    REPLY_NAME_MAX = 64,
};

#define SECONDS_MAX INT64_C(4102444800) // of the year 2100

// clang-format off
static const CallbackKind KINDS[] = {
    {"accepted",  NULL, STATUS_SENT,      OUTCOME_ACCEPTED,  "",            SUPPRESSION_NONE},
    {"buffered",  NULL, STATUS_SENT,      OUTCOME_ACCEPTED,  "",            SUPPRESSION_NONE},
    {"delivered", NULL, STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {"expired",   NULL, STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    // Both with the code that says why.
    {"failed",    "3",  STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_HARD_BOUNCE},
    {"failed",    "12", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_HARD_BOUNCE},
    {"failed",    "2",  STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    {"failed",    "7",  STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    {"failed",    "8",  STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    {"failed",    "4",  STATUS_FAILED,    OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"failed",    "9",  STATUS_FAILED,    OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"failed",    NULL, STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
};
// clang-format on

// ---- the signature ----

static bool check_key(Str secret, Error *err)
{
    return callback_text_key_check(
        secret, 10,
        "a key is the signature secret of the account, 10 characters at least, with 'SHA-256 HMAC' "
        "as its method",
        err);
}

static Str make_none(Arena *arena)
{
    return callback_hex_none(TOKEN_BYTES, arena);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const VendorPair *)a)->name, ((const VendorPair *)b)->name);
}

static void put_value(Buf *out, Str value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        buf_char(out, (char)(c == '&' || c == '=' ? '_' : c));
    }
}

static void join_fields(VendorPair *fields, size_t count, Buf *out)
{
    qsort(fields, count, sizeof *fields, by_name);
    for (size_t i = 0; i < count; i++) {
        if (!str_eq(fields[i].name, STR("sig"))) {
            buf_char(out, '&');
            buf_str(out, fields[i].name);
            buf_char(out, '=');
            put_value(out, fields[i].value);
        }
    }
}

static bool fits(Str key, const Buf *joined, Str signature)
{
    uint8_t mac[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    if (key.len == 0 || joined->full || signature.len != 2 * SHA256_LEN) {
        return false;
    }
    hmac_sha256(key, buf_view(joined), mac);
    hex_encode(mac, sizeof mac, hex);
    uint8_t differs = 0; // in either case, and in constant time
    for (size_t i = 0; i < signature.len; i++) {
        char c = signature.ptr[i];
        c = (char)(c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c);
        differs |= (uint8_t)(c ^ hex[i]);
    }
    return differs == 0;
}

static CallbackVerdict judge(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, size_t *ret_key,
    Arena *arena)
{
    VendorPair fields[FORM_FIELDS_MAX];
    size_t count = 0;
    if (!form_read(request->body, arena, fields, &count)) {
        return CALLBACK_UNSIGNED;
    }
    Str signature = form_value(fields, count, "sig");
    Str timestamp = form_value(fields, count, "timestamp");
    if (signature.len == 0 || timestamp.len == 0) {
        return CALLBACK_UNSIGNED;
    }
    CallbackVerdict verdict = CALLBACK_BAD;
    Buf joined;
    buf_init(&joined, SIGNED_MAX);
    join_fields(fields, count, &joined);
    for (size_t i = 0; i < key_count; i++) {
        if (fits(keys[i].secret, &joined, signature)) {
            verdict = callback_age(request, timestamp, 0);
            *ret_key = i;
        }
    }
    buf_done(&joined);
    return verdict;
}

static bool verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    Arena *arena = arena_new(0);
    *ret = judge(request, keys, key_count, ret_key, arena);
    arena_free(arena);
    return *ret == CALLBACK_GOOD;
}

// The signature is of the fields: other bytes that say the same are the same.
static Str repeat_key(const CallbackRequest *request, Arena *arena)
{
    VendorPair fields[FORM_FIELDS_MAX];
    size_t count = 0;
    return form_read(request->body, arena, fields, &count) ? form_value(fields, count, "sig")
                                                           : STR_EMPTY;
}

// ---- the event ----

// What a recipient wrote to a sender of ours: "inbound messages" of the SMS API.
static void read_reply(const VendorPair *fields, size_t count, Arena *arena, CallbackBatch *ret)
{
    int64_t at_s = 0;
    Str text = form_value(fields, count, "text");
    Str kind = callback_plain(form_value(fields, count, "type"), REPLY_NAME_MAX);
    CallbackReply *reply = arena_zalloc(arena, sizeof *reply);
    *reply = (CallbackReply){
        .word = reply_word(text),
        .to = callback_plain(form_value(fields, count, "to"), REPLY_NAME_MAX),
        .text = str_is_utf8(text) ? callback_cut(text, REPLY_TEXT_MAX) : STR_EMPTY,
        .kind = kind.len == 0 || str_eq(kind, STR("unicode")) ? STR("text") : kind,
        .answers = STR_EMPTY,
    };
    bool known = str_to_i64(form_value(fields, count, "timestamp"), &at_s) && at_s > 0 &&
                 at_s <= SECONDS_MAX;
    ret->events[ret->count++] = callback_reply(
        reply, callback_phone(form_value(fields, count, "msisdn"), arena),
        callback_plain(form_value(fields, count, "messageId"), 64), known ? at_s * 1000000 : 0,
        STR_EMPTY);
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    VendorPair fields[FORM_FIELDS_MAX];
    size_t count = 0;
    if (!form_read(body, arena, fields, &count)) {
        return error_set(err, ERROR_PERMANENT, "the callback is not a form of Vonage's");
    }
    Str status = form_value(fields, count, "status");
    bool reply = status.len == 0 && form_value(fields, count, "msisdn").len > 0;
    if (status.len == 0 && !reply) {
        return error_set(err, ERROR_PERMANENT, "the callback has neither 'status' nor 'msisdn'");
    }
    *ret = callback_batch(arena, 1);
    if (reply) {
        read_reply(fields, count, arena, ret);
        return true;
    }
    Str code = callback_plain(form_value(fields, count, "err-code"), 8);
    bool rejected = str_eq(status, STR("rejected"));
    const CallbackKind *kind =
        callback_kind(KINDS, sizeof KINDS / sizeof *KINDS, rejected ? STR("failed") : status, code);
    if (kind == NULL) {
        ret->ignored++;
        return true;
    }
    CallbackEvent event = callback_event(kind);
    event.message_id = callback_plain(form_value(fields, count, "messageId"), 64);
    callback_attempt_ref(form_value(fields, count, "client-ref"), &event);
    event.email = callback_phone(form_value(fields, count, "msisdn"), arena);
    callback_price(&event, form_value(fields, count, "price"), STR("EUR"), arena);
    if (kind->reason_code[0] != '\0') {
        Str said = str_from(arena_printf(arena, STR_FMT " %s", STR_ARG(code), kind->type));
        event.text = callback_words(str_trim(said), arena);
    }
    ret->events[ret->count++] = event;
    return true;
}

const VendorCallback vonage_callback = {
    .name = "vonage",
    .channel = CHANNEL_SMS,
    .body_max = FORM_BYTES_MAX,
    .needs_capability = true,
    .one_address = true,
    .bad_status = 401,
    .key_check = check_key,
    .key_none = make_none,
    .verify = verify,
    .repeat_key = repeat_key,
    .events = read_events,
};
