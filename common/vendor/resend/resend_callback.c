// SPDX-License-Identifier: Apache-2.0
// Resend's webhooks: Standard Webhooks under Svix' header names, HMAC-SHA256 over
// id.timestamp.body with a secret "whsec_" and base64; the body is one JSON object. Sources:
// resend.com/docs/dashboard/webhooks, standardwebhooks.com.
#include <stdio.h>
#include <string.h>

#include "common/codec/hash.h"
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"

enum { BODY_MAX = 901120, ID_MAX = 200, SIGNATURES_MAX = 16, TIME_MAX = 12 };

#define SECRET_PREFIX STR("whsec_")

// clang-format off
// By type; of a bounce by its type, or by its subtype where that is Resend's own list.
static const CallbackKind KINDS[] = {
    {"email.delivered",  NULL,                       STATUS_DELIVERED,  OUTCOME_DELIVERED, "",                  SUPPRESSION_NONE},
    {"email.opened",     NULL,                       STATUS_OPENED,     OUTCOME_OPENED,    "",                  SUPPRESSION_NONE},
    {"email.clicked",    NULL,                       STATUS_CLICKED,    OUTCOME_CLICKED,   "",                  SUPPRESSION_NONE},
    {"email.complained", NULL,                       STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",         SUPPRESSION_COMPLAINT},
    {"email.bounced",    "Suppressed",               STATUS_FAILED,     OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"email.bounced",    "OnAccountSuppressionList", STATUS_FAILED,     OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"email.bounced",    "ContentRejected",          STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"email.bounced",    "AttachmentRejected",       STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"email.bounced",    "MessageTooLarge",          STATUS_FAILED,     OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {"email.bounced",    "Permanent",                STATUS_BOUNCED,    OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_HARD_BOUNCE},
    {"email.bounced",    NULL,                       STATUS_BOUNCED,    OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {"email.suppressed", NULL,                       STATUS_FAILED,     OUTCOME_FAILED,    "vendor_suppressed", SUPPRESSION_NONE},
    {"email.failed",     NULL,                       STATUS_FAILED,     OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
};
// clang-format on

// ---- the signature ----

// Of "whsec_<base64>"; 0: it is none.
static size_t open_secret(Str secret, uint8_t out[CALLBACK_SECRET_MAX])
{
    size_t len = 0;
    bool good =
        str_starts(secret, SECRET_PREFIX) &&
        base64_decode(
            str_slice(secret, SECRET_PREFIX.len, secret.len), out, CALLBACK_SECRET_MAX, &len);
    return good ? len : 0;
}

static bool check_key(Str secret, Error *err)
{
    uint8_t bytes[CALLBACK_SECRET_MAX];
    return open_secret(secret, bytes) >= 16 ||
           error_set(
               err, ERROR_PERMANENT,
               "a key is the webhook's signing secret, whsec_ and base64 of 16 bytes at least");
}

static Str make_none(Arena *arena)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[32];
    char *text = arena_alloc(arena, SECRET_PREFIX.len + sizeof bytes + 1);
    random_bytes(bytes, sizeof bytes);
    memcpy(text, SECRET_PREFIX.ptr, SECRET_PREFIX.len);
    for (size_t i = 0; i < sizeof bytes; i++) {
        text[SECRET_PREFIX.len + i] = digits[bytes[i] % 64];
    }
    return str_of(text, SECRET_PREFIX.len + sizeof bytes);
}

// Is one of the header's signatures, "v1,<base64> v1,<base64>", this one?
static bool is_among(Str signatures, const uint8_t mac[SHA256_LEN])
{
    Str rest = signatures, one;
    bool found = false;
    for (int i = 0; i < SIGNATURES_MAX && str_split(&rest, ' ', &one); i++) {
        uint8_t given[SHA256_LEN];
        size_t len = 0;
        bool readable = str_starts(one, STR("v1,")) &&
                        base64_decode(str_slice(one, 3, one.len), given, sizeof given, &len);
        found |= readable && callback_equal(str_of(given, len), str_of(mac, SHA256_LEN));
    }
    return found;
}

static bool fits(Str secret, Str message, Str signatures)
{
    uint8_t key[CALLBACK_SECRET_MAX];
    uint8_t mac[SHA256_LEN];
    size_t len = open_secret(secret, key);
    if (len == 0) {
        return false;
    }
    hmac_sha256(str_of(key, len), message, mac);
    return is_among(signatures, mac);
}

// Under either of its names: "svix-id" or "webhook-id".
static Str find_header(const CallbackRequest *request, const char *svix, const char *standard)
{
    Str value = callback_header(request, svix);
    return value.len > 0 ? value : callback_header(request, standard);
}

static Str find_id(const CallbackRequest *request)
{
    Str id = find_header(request, "svix-id", "webhook-id");
    return id.len > ID_MAX || str_has_control(id) ? STR_EMPTY : id;
}

static bool verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    Str id = find_id(request);
    Str timestamp = find_header(request, "svix-timestamp", "webhook-timestamp");
    Str signatures = find_header(request, "svix-signature", "webhook-signature");
    *ret = CALLBACK_UNSIGNED;
    if (id.len == 0 || signatures.len == 0 || timestamp.len > TIME_MAX) {
        return false;
    }
    *ret = callback_age(request, timestamp, 0);
    if (*ret != CALLBACK_GOOD) {
        return false;
    }
    Arena *arena = arena_new(request->body.len + ID_MAX + TIME_MAX + 64);
    size_t size = id.len + timestamp.len + request->body.len + 3;
    char *message = arena_alloc(arena, size);
    size_t head =
        (size_t)snprintf(message, size, STR_FMT "." STR_FMT ".", STR_ARG(id), STR_ARG(timestamp));
    memcpy(message + head, request->body.ptr, request->body.len);
    *ret = CALLBACK_BAD;
    for (size_t i = 0; i < key_count; i++) {
        if (fits(keys[i].secret, str_of(message, head + request->body.len), signatures)) {
            *ret = CALLBACK_GOOD;
            *ret_key = i;
        }
    }
    arena_free(arena);
    return *ret == CALLBACK_GOOD;
}

static Str repeat_key(const CallbackRequest *request, Arena *arena)
{
    (void)arena;
    return find_id(request);
}

// ---- the event ----

// Tags as an object, or as they were sent: [{"name": ..., "value": ...}].
static Str find_tag(const json_t *tags, const char *name)
{
    if (json_is_object(tags)) {
        return callback_text(tags, name);
    }
    size_t i;
    const json_t *tag;
    json_array_foreach(tags, i, tag)
    {
        if (str_eq(callback_text(tag, "name"), str_from(name))) {
            return callback_text(tag, "value");
        }
    }
    return STR_EMPTY;
}

static Str find_message_id(const json_t *headers)
{
    size_t i;
    const json_t *header;
    json_array_foreach(headers, i, header)
    {
        if (str_eq_nocase(callback_text(header, "name"), STR("Message-ID"))) {
            return callback_text(header, "value");
        }
    }
    return STR_EMPTY;
}

static CallbackEvent read_event(
    const json_t *root, const json_t *data, const CallbackKind *kind, Arena *arena)
{
    const json_t *tags = json_object_get(data, "tags");
    const json_t *to = json_array_get(json_object_get(data, "to"), 0);
    const json_t *opened = json_object_get(data, "open");
    CallbackEvent event = callback_event(kind);
    int64_t attempt = 0;
    event.notification_id = callback_notification_of(find_tag(tags, "nid"));
    if (event.notification_id.len == 0) {
        event.notification_id =
            callback_notification_of(find_message_id(json_object_get(data, "headers")));
    }
    bool counted = str_to_i64(find_tag(tags, "attempt"), &attempt);
    event.attempt = counted && attempt > 0 && attempt <= INT16_MAX ? (int32_t)attempt : 0;
    event.message_id = callback_id(data, "email_id");
    if (json_array_size(json_object_get(data, "to")) == 1 && json_is_string(to)) {
        event.email = callback_email(str_of(json_string_value(to), json_string_length(to)));
    }
    Str said = callback_text(json_object_get(data, "bounce"), "message");
    said = said.len > 0 ? said : callback_text(json_object_get(data, "failed"), "reason");
    event.text = callback_words(said, arena);
    event.enhanced_code = arena_str(arena, callback_enhanced(said));
    event.at_us = callback_time(callback_text(root, "created_at"));
    event.machine =
        kind->outcome == OUTCOME_OPENED && callback_is_machine(callback_text(opened, "userAgent"));
    return event;
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    const json_t *root = callback_json(body, arena, err);
    if (root == NULL) {
        return false;
    }
    const json_t *data = json_object_get(root, "data");
    const json_t *bounce = json_object_get(data, "bounce");
    Str type = callback_text(root, "type");
    if (type.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the callback has no 'type'");
    }
    *ret = callback_batch(arena, 1);
    size_t count = sizeof KINDS / sizeof *KINDS;
    const CallbackKind *kind = callback_kind(KINDS, count, type, callback_text(bounce, "subType"));
    if (kind != NULL && kind->detail == NULL) {
        kind = callback_kind(KINDS, count, type, callback_text(bounce, "type"));
    }
    if (kind == NULL || !json_is_object(data)) {
        ret->ignored++;
        return true;
    }
    ret->events[ret->count++] = read_event(root, data, kind, arena);
    return true;
}

static const char *const READS[] = {"svix-id",    "svix-timestamp",    "svix-signature",
                                    "webhook-id", "webhook-timestamp", "webhook-signature",
                                    NULL};

const VendorCallback resend_callback = {
    .name = "resend",
    .channel = CHANNEL_EMAIL,
    .body_max = BODY_MAX,
    .reads = READS,
    .one_address = true,
    .bad_status = 401,
    .key_check = check_key,
    .key_none = make_none,
    .verify = verify,
    .repeat_key = repeat_key,
    .events = read_events,
};
