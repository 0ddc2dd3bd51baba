// SPDX-License-Identifier: Apache-2.0
// Telnyx's webhooks about messages: one JSON object, signed by Ed25519 over "timestamp|body".
// Source: developers.telnyx.com, "Receiving webhooks", "Messaging error codes"; telnyx-python
// src/telnyx/lib/webhook_verification.py.
#include <openssl/err.h>
#include <openssl/evp.h>

#include "common/base/buf.h"
#include "common/base/id.h"
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"
#include "common/vendor/telnyx/telnyx.h"
#include "common/vendor/vendor_build.h"

enum {
    BODY_MAX = 262144,
    KEY_BYTES = 32,
    SIGNATURE_BYTES = 64,
    REPLY_TEXT_MAX = 4096,
    REPLY_NAME_MAX = 64,
};

static const char *const READS[] = {"telnyx-signature-ed25519", "telnyx-timestamp", NULL};

// clang-format off
static const CallbackKind KINDS[] = {
    {"sent",                 NULL,    STATUS_SENT,      OUTCOME_ACCEPTED,  "",                  SUPPRESSION_NONE},
    {"delivered",            NULL,    STATUS_DELIVERED, OUTCOME_DELIVERED, "",                  SUPPRESSION_NONE},
    // It went to the carrier, which says nothing more.
    {"delivery_unconfirmed", NULL,    STATUS_SENT,      OUTCOME_ACCEPTED,  "",                  SUPPRESSION_NONE},
    {"expired",              NULL,    STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    // Both failures with the code that says why; those of telnyx_reasons as these say.
    {"failed",               "40012", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_INVALID_ADDRESS},
    {"failed",               "40310", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_INVALID_ADDRESS},
    {"failed",               "40001", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {"failed",               "40004", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {"failed",               "40005", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {"failed",               "40006", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {"failed",               "40008", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {"failed",               "40014", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {"failed",               "40002", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"failed",               "40003", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"failed",               "40010", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"failed",               "40015", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"failed",               "40017", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"failed",               "40322", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"failed",               NULL,    STATUS_FAILED,    OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
};
// clang-format on

// ---- the signature ----

static bool open_key(Str secret, uint8_t ret[KEY_BYTES])
{
    size_t len = 0;
    return base64_decode(secret, ret, KEY_BYTES, &len) && len == KEY_BYTES;
}

static bool check_key(Str secret, Error *err)
{
    uint8_t key[KEY_BYTES];
    return open_key(secret, key) ||
           error_set(
               err, ERROR_PERMANENT,
               "a key is the account's public key as the portal shows it: base64 of %d bytes",
               (int)KEY_BYTES);
}

static Str make_none(Arena *arena)
{
    uint8_t bytes[KEY_BYTES];
    EVP_PKEY *key = NULL;
    while (key == NULL) { // not every number is a point
        random_bytes(bytes, sizeof bytes);
        key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes, sizeof bytes);
    }
    EVP_PKEY_free(key);
    return vendor_base64(str_of(bytes, sizeof bytes), arena);
}

static bool fits(Str secret, Str signed_text, const uint8_t signature[SIGNATURE_BYTES])
{
    uint8_t bytes[KEY_BYTES];
    if (!open_key(secret, bytes)) {
        return false;
    }
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes, sizeof bytes);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = key != NULL && ctx != NULL &&
                EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestVerify(
                    ctx, signature, SIGNATURE_BYTES, (const unsigned char *)signed_text.ptr,
                    signed_text.len) == 1;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return good;
}

static CallbackVerdict judge(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, size_t *ret_key)
{
    uint8_t signature[SIGNATURE_BYTES];
    size_t len = 0;
    Str timestamp = callback_header(request, READS[1]);
    if (timestamp.len == 0 ||
        !base64_decode(callback_header(request, READS[0]), signature, sizeof signature, &len) ||
        len != sizeof signature) {
        return CALLBACK_UNSIGNED;
    }
    CallbackVerdict verdict = callback_age(request, timestamp, 0);
    if (verdict != CALLBACK_GOOD) {
        return verdict;
    }
    Buf text;
    buf_init(&text, BODY_MAX + 64);
    buf_str(&text, timestamp);
    buf_char(&text, '|');
    buf_str(&text, request->body);
    verdict = CALLBACK_BAD;
    for (size_t i = 0; i < key_count && !text.full; i++) {
        if (fits(keys[i].secret, buf_view(&text), signature)) {
            verdict = CALLBACK_GOOD;
            *ret_key = i;
        }
    }
    buf_done(&text);
    return verdict;
}

static bool verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    *ret = judge(request, keys, key_count, ret_key);
    return *ret == CALLBACK_GOOD;
}

// ---- the event ----

static Str phone_of(const json_t *party, Arena *arena)
{
    return callback_address(CHANNEL_SMS, callback_text(party, "phone_number"), arena);
}

// What a recipient wrote to a sender of ours.
static void read_reply(const json_t *message, int64_t at_us, Arena *arena, CallbackBatch *ret)
{
    const json_t *to = json_array_get(json_object_get(message, "to"), 0);
    const json_t *file = json_array_get(json_object_get(message, "media"), 0);
    Str media = callback_plain(callback_text(file, "content_type"), REPLY_NAME_MAX);
    Str text = callback_text(message, "text");
    CallbackReply *reply = arena_zalloc(arena, sizeof *reply);
    *reply = (CallbackReply){
        .word = reply_word(text),
        .to = callback_plain(callback_text(to, "phone_number"), REPLY_NAME_MAX),
        .text = callback_cut(text, REPLY_TEXT_MAX),
        .kind = media.len > 0 ? media : STR("text"),
        .answers = STR_EMPTY,
    };
    ret->events[ret->count++] = callback_reply(
        reply, phone_of(json_object_get(message, "from"), arena), callback_id(message, "id"), at_us,
        STR_EMPTY);
}

static Str status_word(Str status)
{
    bool failed = str_eq(status, STR("sending_failed")) || str_eq(status, STR("delivery_failed"));
    return failed ? STR("failed") : status;
}

static void read_report(
    const json_t *message, Str event_id, int64_t at_us, Arena *arena, CallbackBatch *ret)
{
    const json_t *to = json_array_get(json_object_get(message, "to"), 0);
    const json_t *error = json_array_get(json_object_get(message, "errors"), 0);
    Str code = callback_id(error, "code");
    const CallbackKind *kind = callback_kind(
        KINDS, sizeof KINDS / sizeof *KINDS, status_word(callback_text(to, "status")), code);
    if (kind == NULL) {
        ret->ignored++;
        return;
    }
    CallbackEvent event = callback_failure(kind, telnyx_reasons, code);
    event.id = event_id;
    event.message_id = callback_id(message, "id");
    event.email = phone_of(to, arena);
    event.at_us = at_us;
    if (code.len > 0) {
        Str title = callback_text(error, "title");
        Str said =
            str_from(arena_printf(arena, STR_FMT " " STR_FMT, STR_ARG(code), STR_ARG(title)));
        event.text = callback_words(str_trim(said), arena);
    }
    ret->events[ret->count++] = event;
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    const json_t *root = callback_json(body, arena, err);
    if (root == NULL) {
        return false;
    }
    const json_t *data = json_object_get(root, "data");
    Str type = callback_text(data, "event_type");
    if (type.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the callback has no 'data.event_type'");
    }
    const json_t *message = json_object_get(data, "payload");
    int64_t at_us = callback_time(callback_text(data, "occurred_at"));
    *ret = callback_batch(arena, 1);
    if (str_eq(type, STR("message.received"))) {
        read_reply(message, at_us, arena, ret);
    } else if (str_eq(type, STR("message.sent")) || str_eq(type, STR("message.finalized"))) {
        read_report(message, callback_id(data, "id"), at_us, arena, ret);
    } else {
        ret->ignored++;
    }
    return true;
}

const VendorCallback telnyx_callback = {
    .name = "telnyx",
    .channel = CHANNEL_SMS,
    .body_max = BODY_MAX,
    .reads = READS,
    .needs_all = true,
    .needs_capability = true,
    .bad_status = 401,
    .key_check = check_key,
    .key_none = make_none,
    .verify = verify,
    .events = read_events,
};
