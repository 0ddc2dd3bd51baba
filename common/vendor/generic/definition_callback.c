// SPDX-License-Identifier: Apache-2.0
// The callbacks of a vendor by definition: HMAC over the raw body in a header, then JSON.
#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"
#include "common/vendor/generic/definition_parts.h"
#include "common/vendor/vendor_build.h"

enum { BODY_BYTES_MAX = 256 * 1024, NONE_BYTES = 32 };

// ---- out of the document ----

// clang-format off
static const CallbackKind WORDS[] = {
    {"sent",        NULL, STATUS_SENT,       OUTCOME_ACCEPTED,  "",            SUPPRESSION_NONE},
    {"delivered",   NULL, STATUS_DELIVERED,  OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {"opened",      NULL, STATUS_OPENED,     OUTCOME_OPENED,    "",            SUPPRESSION_NONE},
    {"clicked",     NULL, STATUS_CLICKED,    OUTCOME_CLICKED,   "",            SUPPRESSION_NONE},
    {"failed",      NULL, STATUS_FAILED,     OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
    {"blocked",     NULL, STATUS_FAILED,     OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"soft_bounce", NULL, STATUS_BOUNCED,    OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    {"hard_bounce", NULL, STATUS_BOUNCED,    OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_HARD_BOUNCE},
    {"complaint",   NULL, STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",   SUPPRESSION_COMPLAINT},
    {"opt_out",     NULL, STATUS_NONE,       OUTCOME_NONE,      "",            SUPPRESSION_OPT_OUT},
};
// clang-format on

static bool take_words(VendorDefinition *definition, const json_t *callback, Error *err)
{
    CallbackPart *part = &definition->callback;
    json_t *table = json_object_get(callback, "statuses");
    const char *word = NULL;
    json_t *value = NULL;
    if (!json_is_object(table) || json_object_size(table) == 0 ||
        json_object_size(table) > DEFINITION_ROWS_MAX) {
        return definition_fault(
            err, "callback.statuses", "required: an object of 1 to %d words", DEFINITION_ROWS_MAX);
    }
    json_object_foreach(table, word, value)
    {
        Str ours = str_from(json_string_value(value));
        const CallbackKind *kind =
            callback_kind(WORDS, sizeof WORDS / sizeof *WORDS, ours, STR_EMPTY);
        if (kind == NULL) {
            return definition_fault(
                err, arena_printf(definition->arena, "callback.statuses.%.40s", word),
                "is none of sent, delivered, opened, clicked, failed, blocked, soft_bounce, "
                "hard_bounce, complaint, opt_out");
        }
        part->kinds[part->kind_count] = *kind;
        part->kinds[part->kind_count++].type = word;
    }
    return true;
}

static bool take_signature(VendorDefinition *definition, const json_t *callback, Error *err)
{
    CallbackPart *part = &definition->callback;
    const char *at = "callback.signature";
    const char *algorithm = "hmac-sha256";
    const char *encoding = "hex";
    const json_t *signature = json_object_get(callback, "signature");
    if (!json_is_object(signature)) {
        return definition_fault(
            err, at,
            "required: {\"header\": \"X-Acme-Signature\", \"algorithm\", \"encoding\", "
            "\"prefix\"}");
    }
    part->prefix = "";
    if (!definition_check_members(signature, at, "header algorithm encoding prefix", err) ||
        !definition_take_text(definition, signature, at, "header", &part->header, err) ||
        !definition_take_text(definition, signature, at, "prefix", &part->prefix, err) ||
        !definition_take_text(definition, signature, at, "algorithm", &algorithm, err) ||
        !definition_take_text(definition, signature, at, "encoding", &encoding, err)) {
        return false;
    }
    part->sha1 = strcmp(algorithm, "hmac-sha1") == 0;
    part->base64 = strcmp(encoding, "base64") == 0;
    if (part->header == NULL) {
        return definition_fault(err, "callback.signature.header", "required");
    }
    if (!part->sha1 && strcmp(algorithm, "hmac-sha256") != 0) {
        return definition_fault(err, "callback.signature.algorithm", "is hmac-sha256 or hmac-sha1");
    }
    return part->base64 || strcmp(encoding, "hex") == 0 ||
           definition_fault(err, "callback.signature.encoding", "is hex or base64");
}

bool definition_read_callback(VendorDefinition *definition, const json_t *callback, Error *err)
{
    CallbackPart *part = &definition->callback;
    const struct {
        const char *name;
        Pointer *ret;
    } pointers[] = {
        {"list", &part->list},
        {"id", &part->id},
        {"notification", &part->notification},
        {"attempt", &part->attempt},
        {"time", &part->time},
        {"status", &part->status},
        {"text", &part->text},
        {"address", &part->address},
    };
    if (callback == NULL) {
        return true;
    }
    if (!json_is_object(callback)) {
        return definition_fault(err, "callback", "must be an object");
    }
    if (!definition_check_members(
            callback, "callback",
            "signature statuses list id notification attempt status time text address", err)) {
        return false;
    }
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        if (!definition_take_pointer(
                definition, callback, "callback", pointers[i].name, pointers[i].ret, err)) {
            return false;
        }
    }
    if (part->status == NULL) {
        return definition_fault(err, "callback.status", "required: where the word stands");
    }
    part->there = true;
    return take_signature(definition, callback, err) && take_words(definition, callback, err);
}

// ---- the signature ----

const char *definition_signature_header(const VendorDefinition *definition)
{
    return definition->callback.header;
}

static Str sign(const CallbackPart *part, Str secret, Str body, Arena *arena)
{
    uint8_t mac[SHA256_LEN];
    size_t len = part->sha1 ? SHA1_LEN : SHA256_LEN;
    if (part->sha1) {
        hmac_sha1(secret, body, mac);
    } else {
        hmac_sha256(secret, body, mac);
    }
    if (part->base64) {
        return vendor_base64(str_of(mac, len), arena);
    }
    char *hex = arena_alloc(arena, 2 * SHA256_LEN + 1);
    hex_encode(mac, len, hex);
    return str_from(hex);
}

static Str lowered(Str text, Arena *arena)
{
    char *copy = arena_cstr(arena, text);
    for (size_t i = 0; i < text.len; i++) {
        copy[i] = (char)(copy[i] >= 'A' && copy[i] <= 'Z' ? copy[i] + ('a' - 'A') : copy[i]);
    }
    return (Str){copy, text.len};
}

static bool fits_any(
    const CallbackPart *part, Str given, Str body, const CallbackKey *keys, size_t key_count,
    size_t *ret_key)
{
    Arena *arena = arena_new(0);
    Str plain = part->base64 ? given : lowered(given, arena);
    bool any = false;
    for (size_t i = 0; i < key_count; i++) {
        bool fits = keys[i].secret.len > 0 &&
                    callback_equal(plain, sign(part, keys[i].secret, body, arena));
        *ret_key = fits ? i : *ret_key;
        any = any || fits;
    }
    arena_free(arena);
    return any;
}

bool definition_verify(
    const VendorDefinition *definition, const CallbackRequest *request, const CallbackKey *keys,
    size_t key_count, CallbackVerdict *ret, size_t *ret_key)
{
    const CallbackPart *part = &definition->callback;
    Str given = part->there ? callback_header(request, part->header) : STR_EMPTY;
    Str prefix = str_from(part->prefix);
    if (given.len == 0 || !str_starts(given, prefix)) {
        *ret = CALLBACK_UNSIGNED;
        return false;
    }
    given = str_slice(given, prefix.len, given.len);
    *ret = fits_any(part, given, request->body, keys, key_count, ret_key) ? CALLBACK_GOOD
                                                                          : CALLBACK_BAD;
    return *ret == CALLBACK_GOOD;
}

// ---- the events ----

// RFC 3339, or seconds since 1970.
static int64_t time_of(const json_t *value)
{
    int64_t at_us = json_is_string(value)
                        ? callback_time((Str){json_string_value(value), json_string_length(value)})
                        : 0;
    return at_us > 0 ? at_us : callback_unix(value);
}

static void read_one(
    const VendorDefinition *definition, const json_t *item, Arena *arena, CallbackBatch *ret)
{
    const CallbackPart *part = &definition->callback;
    Str word = pointer_text(item, part->status, arena);
    int64_t attempt = 0;
    if (word.len == 0) {
        ret->unreadable++;
        return;
    }
    const CallbackKind *kind = callback_kind(part->kinds, part->kind_count, word, STR_EMPTY);
    if (kind == NULL) {
        ret->ignored++;
        return;
    }
    CallbackEvent event = callback_event(kind);
    event.message_id = callback_plain(pointer_text(item, part->id, arena), 200);
    event.notification_id = callback_notification_of(pointer_text(item, part->notification, arena));
    bool said = str_to_i64(pointer_text(item, part->attempt, arena), &attempt) && attempt > 0 &&
                attempt <= INT16_MAX;
    event.attempt = said ? (int32_t)attempt : 0;
    event.at_us = time_of(pointer_get(item, part->time));
    event.email =
        callback_address(definition->channel, pointer_text(item, part->address, arena), arena);
    if (kind->reason_code[0] != '\0') {
        event.text = callback_words(pointer_text(item, part->text, arena), arena);
    }
    ret->events[ret->count++] = event;
}

bool definition_events(
    const VendorDefinition *definition, Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    const CallbackPart *part = &definition->callback;
    const json_t *root = definition_json(body, arena);
    const json_t *list = part->list != NULL ? pointer_get(root, part->list) : root;
    size_t count = json_is_array(list) ? json_array_size(list) : 1;
    if (list == NULL || count > CALLBACK_EVENTS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "the callback is not JSON as the vendor's definition has it");
    }
    *ret = callback_batch(arena, count);
    for (size_t i = 0; i < count; i++) {
        read_one(definition, json_is_array(list) ? json_array_get(list, i) : list, arena, ret);
    }
    return true;
}

// ---- the interface ----

static bool check_key(Str secret, Error *err)
{
    return callback_text_key_check(
        secret, 16, "a key is the signing secret, 16 characters at least", err);
}

static Str make_none(Arena *arena)
{
    return callback_hex_none(NONE_BYTES, arena);
}

#define BY_DEFINITION(of)                                                                          \
    [of] = {                                                                                       \
        .name = "definition",                                                                      \
        .channel = of,                                                                             \
        .body_max = BODY_BYTES_MAX,                                                                \
        .needs_capability = true,                                                                  \
        .bad_status = 401,                                                                         \
        .key_check = check_key,                                                                    \
        .key_none = make_none,                                                                     \
        .by_definition = true,                                                                     \
    }

static const VendorCallback callbacks[CHANNEL_COUNT] = {
    BY_DEFINITION(CHANNEL_EMAIL),   BY_DEFINITION(CHANNEL_SMS),   BY_DEFINITION(CHANNEL_WHATSAPP),
    BY_DEFINITION(CHANNEL_PUSH),    BY_DEFINITION(CHANNEL_INAPP), BY_DEFINITION(CHANNEL_VOICE),
    BY_DEFINITION(CHANNEL_WEBHOOK),
};

const VendorCallback *definition_callback(Channel channel)
{
    return channel > CHANNEL_NONE && channel < CHANNEL_COUNT ? &callbacks[channel] : NULL;
}
