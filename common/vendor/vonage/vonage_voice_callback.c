// SPDX-License-Identifier: Apache-2.0
// Vonage's events about a call: one JSON object, signed by a token in Authorization, HS256 under
// the account's signature secret, whose claim payload_hash is the body's SHA-256. A call has
// several: started, ringing, answered, human or machine, and its end.
// Source: developer.vonage.com, "Signed webhooks", "Voice API webhook reference";
// vonage-ruby-sdk test/vonage/test.rb.
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"

enum { BODY_MAX = 65536, TOKEN_MAX = 4096, PART_MAX = 3072 };

static const char *const READS[] = {"Authorization", NULL};

// clang-format off
static const CallbackKind KINDS[] = {
    {"started",    NULL,  STATUS_SENT,      OUTCOME_ACCEPTED,  "",            SUPPRESSION_NONE},
    {"human",      NULL,  STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {"machine",    NULL,  STATUS_DELIVERED, OUTCOME_DELIVERED, "voicemail",   SUPPRESSION_NONE},
    {"completed",  NULL,  STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {"busy",       NULL,  STATUS_FAILED,    OUTCOME_FAILED,    CALLBACK_BUSY, SUPPRESSION_NONE},
    {"timeout",    NULL,  STATUS_FAILED,    OUTCOME_FAILED,    CALLBACK_NO_ANSWER, SUPPRESSION_NONE},
    {"unanswered", NULL,  STATUS_FAILED,    OUTCOME_FAILED,    CALLBACK_NO_ANSWER, SUPPRESSION_NONE},
    {"cancelled",  NULL,  STATUS_FAILED,    OUTCOME_FAILED,    "canceled",    SUPPRESSION_NONE},
    {"rejected",   NULL,  STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
    // By the SIP code.
    {"failed",     "404", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
    {"failed",     "484", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
    {"failed",     NULL,  STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
};
// clang-format on

// ---- the signature ----

static bool check_key(Str secret, Error *err)
{
    return vonage_callback.key_check(secret, err);
}

static Str make_none(Arena *arena)
{
    return vonage_callback.key_none(arena);
}

// "header.claims" and what is signed of it, out of "Bearer header.claims.signature".
typedef struct Token {
    Str header, claims, signed_text;
    uint8_t signature[SHA256_LEN];
} Token;

static bool decode(Str part, Arena *arena, Str *ret)
{
    size_t len = 0;
    uint8_t *bytes = arena_alloc(arena, PART_MAX);
    bool good = base64url_decode(part, bytes, PART_MAX, &len);
    *ret = str_of(bytes, good ? len : 0);
    return good;
}

static bool read_token(Str header, Arena *arena, Token *ret)
{
    Str first, second, rest, signature;
    size_t len = 0;
    if (header.len > TOKEN_MAX || header.len < 8 ||
        !str_eq_nocase(str_slice(header, 0, 7), STR("Bearer "))) {
        return false;
    }
    Str text = rest = str_slice(header, 7, header.len);
    bool parted = str_split(&rest, '.', &first) && str_split(&rest, '.', &second) &&
                  str_split(&rest, '.', &signature) && rest.len == 0;
    if (!parted || !decode(first, arena, &ret->header) || !decode(second, arena, &ret->claims) ||
        !base64url_decode(signature, ret->signature, sizeof ret->signature, &len) ||
        len != sizeof ret->signature) {
        return false;
    }
    ret->signed_text = str_slice(text, 0, first.len + 1 + second.len);
    return true;
}

static bool is_of_body(Str hash, Str body)
{
    uint8_t bytes[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    sha256(body, bytes);
    hex_encode(bytes, sizeof bytes, hex);
    return callback_equal(hash, str_from(hex));
}

static CallbackVerdict judge_claims(const CallbackRequest *request, const json_t *claims)
{
    const json_t *at = json_object_get(claims, "iat");
    if (!json_is_integer(at) || callback_unix(at) == 0) {
        return CALLBACK_UNSIGNED;
    }
    int64_t age_s = request->received_at_us / 1000000 - json_integer_value(at);
    bool fresh = age_s <= request->max_age_s && age_s >= -request->max_age_s;
    if (request->max_age_s > 0 && !fresh) {
        return CALLBACK_STALE;
    }
    return is_of_body(callback_text(claims, "payload_hash"), request->body) ? CALLBACK_GOOD
                                                                            : CALLBACK_BAD;
}

static CallbackVerdict judge(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, size_t *ret_key,
    Arena *arena)
{
    Token token;
    if (!read_token(callback_header(request, READS[0]), arena, &token)) {
        return CALLBACK_UNSIGNED;
    }
    bool fits = false;
    for (size_t i = 0; i < key_count; i++) {
        uint8_t mac[SHA256_LEN];
        hmac_sha256(keys[i].secret, token.signed_text, mac);
        if (keys[i].secret.len > 0 &&
            callback_equal(str_of(mac, sizeof mac), str_of(token.signature, sizeof mac))) {
            fits = true;
            *ret_key = i;
        }
    }
    // What it says is read only when a key fits.
    const json_t *header = fits ? callback_json(token.header, arena, NULL) : NULL;
    if (!fits || !str_eq(callback_text(header, "alg"), STR("HS256"))) {
        return CALLBACK_BAD;
    }
    return judge_claims(request, callback_json(token.claims, arena, NULL));
}

static bool verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    Arena *arena = arena_new(0);
    size_t which = 0;
    *ret = judge(request, keys, key_count, &which, arena);
    arena_free(arena);
    if (*ret == CALLBACK_GOOD) {
        *ret_key = which;
    }
    return *ret == CALLBACK_GOOD;
}

// ---- the event ----

// A number or a text.
static Str sip_code_of(const json_t *root, Arena *arena)
{
    int64_t code = json_integer_value(json_object_get(root, "sip_code"));
    return code >= 100 && code <= 699 ? str_from(arena_printf(arena, "%d", (int)code))
                                      : callback_plain(callback_text(root, "sip_code"), 3);
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    const json_t *root = callback_json(body, arena, err);
    if (root == NULL) {
        return false;
    }
    Str status = callback_text(root, "status");
    if (status.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the callback has no 'status'");
    }
    *ret = callback_batch(arena, 1);
    Str code = sip_code_of(root, arena);
    const CallbackKind *kind = callback_kind(KINDS, sizeof KINDS / sizeof *KINDS, status, code);
    if (kind == NULL) {
        ret->ignored++;
        return true;
    }
    CallbackEvent event = callback_event(kind);
    event.message_id = callback_id(root, "uuid");
    event.at_us = callback_time(callback_text(root, "timestamp"));
    event.email = callback_address(CHANNEL_VOICE, callback_text(root, "to"), arena);
    Str detail = callback_text(root, "detail");
    Str why = detail.len > 0 ? detail : code;
    event.text = callback_words(
        str_trim(str_from(arena_printf(arena, "%s " STR_FMT, kind->type, STR_ARG(why)))), arena);
    ret->events[ret->count++] = event;
    return true;
}

const VendorCallback vonage_voice_callback = {
    .name = "vonage_voice",
    .channel = CHANNEL_VOICE,
    .body_max = BODY_MAX,
    .reads = READS,
    .needs_all = true,
    .needs_capability = true,
    .bad_status = 401,
    .unsigned_status = 503,
    .key_check = check_key,
    .key_none = make_none,
    .verify = verify,
    .events = read_events,
};
