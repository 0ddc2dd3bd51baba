// SPDX-License-Identifier: Apache-2.0
// Mailgun's webhooks: {"signature": {timestamp, token, signature}, "event-data": {...}}, signed by
// HMAC-SHA256 over timestamp || token under the webhook signing key. The signature does not cover
// the event, so the URL carries a capability as well, and a token counts once. Source:
// documentation.mailgun.com, "Webhooks"; mailgun-go webhooks.go.
#include <string.h>

#include "common/codec/hash.h"
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"

enum { BODY_MAX = 901120, TOKEN_MAX = 100, TIME_MAX = 12 };

// clang-format off
static const CallbackKind KINDS[] = {
    {"delivered",    NULL,                   STATUS_DELIVERED,  OUTCOME_DELIVERED, "",                  SUPPRESSION_NONE},
    {"opened",       NULL,                   STATUS_OPENED,     OUTCOME_OPENED,    "",                  SUPPRESSION_NONE},
    {"clicked",      NULL,                   STATUS_CLICKED,    OUTCOME_CLICKED,   "",                  SUPPRESSION_NONE},
    {"complained",   NULL,                   STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",         SUPPRESSION_COMPLAINT},
    {"unsubscribed", NULL,                   STATUS_NONE,       OUTCOME_NONE,      "",                  SUPPRESSION_OPT_OUT},
    {"rejected",     NULL,                   STATUS_FAILED,     OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
    // Permanent ones; the detail is `reason`. suppress-*: Mailgun's own list, which is not ours.
    {"failed",       "suppress-bounce",      STATUS_FAILED,     OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"failed",       "suppress-complaint",   STATUS_FAILED,     OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"failed",       "suppress-unsubscribe", STATUS_FAILED,     OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"failed",       "bounce",               STATUS_BOUNCED,    OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_HARD_BOUNCE},
    {"failed",       NULL,                   STATUS_BOUNCED,    OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
};
// clang-format on

// ---- the signature ----

static bool check_key(Str secret, Error *err)
{
    return callback_text_key_check(
        secret, 16, "a key is the HTTP webhook signing key of the account, 16 characters at least",
        err);
}

static Str make_none(Arena *arena)
{
    return callback_hex_none(SHA256_LEN, arena);
}

static bool fits(Str secret, Str timestamp, Str token, Str signature)
{
    char signed_text[TIME_MAX + TOKEN_MAX];
    char hex[2 * SHA256_LEN + 1];
    uint8_t mac[SHA256_LEN];
    if (secret.len == 0) {
        return false;
    }
    memcpy(signed_text, timestamp.ptr, timestamp.len);
    memcpy(signed_text + timestamp.len, token.ptr, token.len);
    hmac_sha256(secret, str_of(signed_text, timestamp.len + token.len), mac);
    hex_encode(mac, sizeof mac, hex);
    return callback_equal(str_from(hex), signature);
}

static CallbackVerdict judge(
    const CallbackRequest *request, const json_t *root, const CallbackKey *keys, size_t key_count,
    size_t *ret_key)
{
    const json_t *proof = json_object_get(root, "signature");
    Str timestamp = callback_text(proof, "timestamp");
    Str token = callback_text(proof, "token");
    Str signature = callback_text(proof, "signature");
    if (timestamp.len == 0 || timestamp.len > TIME_MAX || token.len == 0 || token.len > TOKEN_MAX ||
        signature.len == 0) {
        return CALLBACK_UNSIGNED;
    }
    CallbackVerdict verdict = CALLBACK_BAD;
    for (size_t i = 0; i < key_count; i++) {
        if (fits(keys[i].secret, timestamp, token, signature)) {
            verdict = callback_age(request, timestamp, 0);
            *ret_key = i;
        }
    }
    return verdict;
}

static bool verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    Arena *arena = arena_new(0);
    const json_t *root = callback_json(request->body, arena, NULL);
    *ret = judge(request, root, keys, key_count, ret_key);
    arena_free(arena);
    return *ret == CALLBACK_GOOD;
}

static Str repeat_key(const CallbackRequest *request, Arena *arena)
{
    const json_t *root = callback_json(request->body, arena, NULL);
    return callback_text(json_object_get(root, "signature"), "token");
}

// ---- the event ----

// A mailbox that is full or closed to us is no bad address.
static bool is_bad_address(Str enhanced)
{
    return enhanced.len == 0 || str_starts(enhanced, STR("5.1.")) ||
           str_starts(enhanced, STR("5.0."));
}

static bool is_robot(const json_t *client)
{
    return callback_text(client, "bot").len > 0 ||
           str_eq(callback_text(client, "client-type"), STR("robot")) ||
           callback_is_machine(callback_text(client, "user-agent"));
}

static CallbackEvent read_event(const json_t *data, const CallbackKind *kind, Arena *arena)
{
    static const char *const names[] = {"nid", "notification_id", NULL};
    static const char *const ours[] = {"message-id", NULL};
    const json_t *variables = json_object_get(data, "user-variables");
    const json_t *headers = json_object_get(json_object_get(data, "message"), "headers");
    const json_t *delivery = json_object_get(data, "delivery-status");
    CallbackEvent event = callback_event(kind);
    event.id = callback_id(data, "id");
    event.notification_id = callback_notification(variables, names);
    if (event.notification_id.len == 0) {
        event.notification_id = callback_notification(headers, ours);
    }
    event.attempt = callback_attempt(variables, "attempt");
    event.message_id = callback_id(headers, "message-id");
    event.email = callback_email(callback_text(data, "recipient"));
    Str said = callback_text(delivery, "message");
    said = said.len > 0 ? said : callback_text(delivery, "description");
    event.text = callback_words(said.len > 0 ? said : callback_text(data, "reason"), arena);
    event.enhanced_code = callback_id(delivery, "enhanced-code");
    if (event.enhanced_code.len == 0) {
        event.enhanced_code = arena_str(arena, callback_enhanced(said));
    }
    event.at_us = callback_unix(json_object_get(data, "timestamp"));
    event.machine =
        kind->outcome == OUTCOME_OPENED && is_robot(json_object_get(data, "client-info"));
    if (event.suppress == SUPPRESSION_HARD_BOUNCE && !is_bad_address(event.enhanced_code)) {
        event.suppress = SUPPRESSION_NONE;
    }
    return event;
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    const json_t *root = callback_json(body, arena, err);
    const json_t *data = json_object_get(root, "event-data");
    Str type = callback_text(data, "event");
    if (root == NULL) {
        return false;
    }
    if (type.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the callback has no 'event-data.event'");
    }
    *ret = callback_batch(arena, 1);
    bool retried =
        str_eq(type, STR("failed")) && !str_eq(callback_text(data, "severity"), STR("permanent"));
    const CallbackKind *kind =
        callback_kind(KINDS, sizeof KINDS / sizeof *KINDS, type, callback_text(data, "reason"));
    if (kind == NULL || retried) {
        ret->ignored++;
        return true;
    }
    ret->events[ret->count++] = read_event(data, kind, arena);
    return true;
}

const VendorCallback mailgun_callback = {
    .name = "mailgun",
    .channel = CHANNEL_EMAIL,
    .body_max = BODY_MAX,
    .needs_capability = true,
    .one_address = true,
    .bad_status = 406, // any other answer is repeated for eight hours
    .key_check = check_key,
    .key_none = make_none,
    .verify = verify,
    .repeat_key = repeat_key,
    .events = read_events,
};
