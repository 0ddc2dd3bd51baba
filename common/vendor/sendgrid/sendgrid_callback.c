// SPDX-License-Identifier: Apache-2.0
// SendGrid's signed event webhook: ECDSA P-256 with SHA-256 over timestamp || raw body, which is a
// JSON array of flat objects. Source: twilio.com/docs/sendgrid, "Event Webhook Security Features".
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"

enum {
    KEY_DER_MAX = 256,
    SIGNATURE_DER_MAX = 128,
    TIMESTAMP_DIGITS = 10,
    CURVE_NAME_SIZE = 32,
    BODY_MAX = 901120, // it posts at most 768 KB
};

#define SIGNATURE_HEADER "X-Twilio-Email-Event-Webhook-Signature"
#define TIMESTAMP_HEADER "X-Twilio-Email-Event-Webhook-Timestamp"

// clang-format off
static const CallbackKind KINDS[] = {
    {"delivered",   NULL,      STATUS_DELIVERED,  OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {"open",        NULL,      STATUS_OPENED,     OUTCOME_OPENED,    "",            SUPPRESSION_NONE},
    {"click",       NULL,      STATUS_CLICKED,    OUTCOME_CLICKED,   "",            SUPPRESSION_NONE},
    {"bounce",      "blocked", STATUS_FAILED,     OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"bounce",      NULL,      STATUS_BOUNCED,    OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_HARD_BOUNCE},
    {"dropped",     NULL,      STATUS_FAILED,     OUTCOME_FAILED,    "dropped",     SUPPRESSION_NONE},
    {"spamreport",  NULL,      STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",   SUPPRESSION_COMPLAINT},
    {"unsubscribe", NULL,      STATUS_NONE,       OUTCOME_NONE,      "",            SUPPRESSION_OPT_OUT},
};
// clang-format on

// ---- the signature ----

static bool is_p256(const EVP_PKEY *key)
{
    char curve[CURVE_NAME_SIZE] = "";
    return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
           EVP_PKEY_get_utf8_string_param(
               key, OSSL_PKEY_PARAM_GROUP_NAME, curve, sizeof curve, NULL) == 1 &&
           strcmp(curve, "prime256v1") == 0;
}

static EVP_PKEY *open_key(Str text, Error *err)
{
    uint8_t der[KEY_DER_MAX];
    size_t len = 0;
    if (!base64_decode(text, der, sizeof der, &len)) {
        (void)error_set(err, ERROR_PERMANENT, "the public key is not base64");
        return NULL;
    }
    const unsigned char *at = der;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)len);
    if (key == NULL || at != der + len || !is_p256(key)) {
        EVP_PKEY_free(key);
        (void)error_set(
            err, ERROR_PERMANENT, "the public key is not an SPKI of an EC key on P-256");
        return NULL;
    }
    return key;
}

static bool check_key(Str secret, Error *err)
{
    EVP_PKEY *key = open_key(secret, err);
    EVP_PKEY_free(key);
    return key != NULL;
}

static Str make_none(Arena *arena)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    unsigned char *der = NULL;
    int len = key != NULL ? i2d_PUBKEY(key, &der) : 0;
    if (len <= 0) {
        abort(); // no memory or no random bytes, as elsewhere
    }
    unsigned char *text = arena_alloc(arena, 2 * (size_t)len + 4);
    int size = EVP_EncodeBlock(text, der, len);
    OPENSSL_free(der);
    EVP_PKEY_free(key);
    return str_of(text, (size_t)size);
}

static bool fits(Str secret, Str timestamp, Str signature, Str body)
{
    EVP_PKEY *key = open_key(secret, NULL);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good =
        key != NULL && ctx != NULL &&
        EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestVerifyUpdate(ctx, timestamp.ptr, timestamp.len) == 1 &&
        EVP_DigestVerifyUpdate(ctx, body.ptr, body.len) == 1 &&
        EVP_DigestVerifyFinal(ctx, (const unsigned char *)signature.ptr, signature.len) == 1;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return good;
}

// Ten digits: seconds from 2001 to 2286. The signature is over timestamp || body without a border,
// so only a fixed length keeps bytes from being moved between the two.
static bool verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    uint8_t der[SIGNATURE_DER_MAX];
    size_t len = 0;
    Str timestamp = callback_header(request, TIMESTAMP_HEADER);
    if (timestamp.len != TIMESTAMP_DIGITS ||
        !base64_decode(callback_header(request, SIGNATURE_HEADER), der, sizeof der, &len)) {
        *ret = CALLBACK_UNSIGNED;
        return false;
    }
    *ret = callback_age(request, timestamp, 0);
    if (*ret != CALLBACK_GOOD) {
        return false;
    }
    *ret = CALLBACK_BAD;
    for (size_t i = 0; i < key_count && *ret == CALLBACK_BAD; i++) {
        if (fits(keys[i].secret, timestamp, str_of(der, len), request->body)) {
            *ret = CALLBACK_GOOD;
            *ret_key = i;
        }
    }
    return *ret == CALLBACK_GOOD;
}

// ---- the events ----

static CallbackEvent read_event(const json_t *object, const CallbackKind *kind, Arena *arena)
{
    static const char *const names[] = {"notification_id", "smtp-id", NULL};
    Str text = callback_text(object, "reason");
    CallbackEvent event = callback_event(kind);
    event.id = callback_id(object, "sg_event_id");
    event.notification_id = callback_notification(object, names);
    event.attempt = callback_attempt(object, "attempt");
    // "<X-Message-Id of the call's answer>.filter..."
    Str whole = callback_id(object, "sg_message_id");
    ptrdiff_t dot = str_find(whole, '.');
    event.message_id = dot < 0 ? whole : str_slice(whole, 0, (size_t)dot);
    event.email = callback_email(callback_text(object, "email"));
    event.enhanced_code = callback_id(object, "status");
    event.text = callback_words(text.len > 0 ? text : callback_text(object, "response"), arena);
    event.at_us = json_is_integer(json_object_get(object, "timestamp"))
                      ? callback_unix(json_object_get(object, "timestamp"))
                      : 0;
    event.machine = kind->outcome == OUTCOME_OPENED &&
                    (json_is_true(json_object_get(object, "sg_machine_open")) ||
                     callback_is_machine(callback_text(object, "useragent")));
    return event;
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    const json_t *root = callback_list(body, arena, ret, err);
    for (size_t i = 0; i < json_array_size(root); i++) {
        const json_t *item = json_array_get(root, i);
        Str type = callback_text(item, "event"); // empty when the item is not an object
        const CallbackKind *kind =
            callback_kind(KINDS, sizeof KINDS / sizeof *KINDS, type, callback_text(item, "type"));
        if (kind != NULL) {
            ret->events[ret->count++] = read_event(item, kind, arena);
        } else if (type.len == 0) {
            ret->unreadable++;
        } else {
            ret->ignored++;
        }
    }
    return root != NULL;
}

static const char *const READS[] = {SIGNATURE_HEADER, TIMESTAMP_HEADER, NULL};

const VendorCallback sendgrid_callback = {
    .name = "sendgrid",
    .channel = CHANNEL_EMAIL,
    .body_max = BODY_MAX,
    .reads = READS,
    .needs_all = true,
    .one_address = true,
    .bad_status = 401,
    .key_check = check_key,
    .key_none = make_none,
    .verify = verify,
    .events = read_events,
};
