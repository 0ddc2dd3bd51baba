// SPDX-License-Identifier: Apache-2.0
// Twilio's callbacks about messages: a form, signed in X-Twilio-Signature by HMAC-SHA1 under the
// auth token over the URL that it was given and each field's name and value, sorted. No time is
// signed, so a repeat is recognised by its bytes. Source: twilio.com/docs/usage/security
// ("Validating Signatures"), twilio-node src/webhooks, spec/validation.spec.js.
#include <stdlib.h>

#include "common/codec/hash.h"
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"
#include "common/vendor/form.h"
#include "common/vendor/twilio/twilio.h"
#include "common/vendor/vendor_build.h"

enum {
    BODY_MAX = FORM_BYTES_MAX,
    SIGNED_MAX = 2 * FORM_BYTES_MAX,
    TOKEN_BYTES = 16,
    REPLY_TEXT_MAX = 4096,
    REPLY_NAME_MAX = 64,
};

static const char *const READS[] = {"X-Twilio-Signature", NULL};

// clang-format off
static const CallbackKind KINDS[] = {
    {"sent",        NULL,    STATUS_SENT,      OUTCOME_ACCEPTED,  "",            SUPPRESSION_NONE},
    {"delivered",   NULL,    STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {"read",        NULL,    STATUS_OPENED,    OUTCOME_OPENED,    "",            SUPPRESSION_NONE},
    {"canceled",    NULL,    STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
    // Both with the code that says why; those of twilio_reasons as these say.
    {"failed",      "21211", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
    {"failed",      "21614", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_INVALID_ADDRESS},
    {"failed",      "30005", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_HARD_BOUNCE},
    {"failed",      "30006", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    {"failed",      "30003", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    {"failed",      "30004", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"failed",      "30007", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"failed",      "30034", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"failed",      "63024", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    {"failed",      "63032", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"failed",      NULL,    STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
};
// clang-format on

// ---- the signature ----

bool twilio_key_check(Str secret, Error *err)
{
    return callback_text_key_check(
        secret, 16, "a key is the primary auth token of the account, 16 characters at least", err);
}

Str twilio_key_none(Arena *arena)
{
    return callback_hex_none(TOKEN_BYTES, arena);
}

static int by_name(const void *a, const void *b)
{
    const VendorPair *left = a;
    const VendorPair *right = b;
    int order = str_cmp(left->name, right->name);
    return order != 0 ? order : str_cmp(left->value, right->value);
}

// Name and value of each field, sorted; a field that comes twice with one value counts once.
static void join_fields(VendorPair *fields, size_t count, Buf *out)
{
    qsort(fields, count, sizeof *fields, by_name);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || by_name(&fields[i - 1], &fields[i]) != 0) {
            buf_str(out, fields[i].name);
            buf_str(out, fields[i].value);
        }
    }
}

// The URL with the port of its scheme in it, when it has none, and the other way round: Twilio does
// either.
static Str other_form(Str url, Arena *arena)
{
    bool secure = str_starts(url, STR("https://"));
    size_t start = secure ? 8 : 7;
    const char *port = secure ? ":443" : ":80";
    Str rest = str_slice(url, start, url.len);
    ptrdiff_t slash = str_find(rest, '/');
    Str host = slash >= 0 ? str_slice(rest, 0, (size_t)slash) : rest;
    Str path = slash >= 0 ? str_slice(rest, (size_t)slash, rest.len) : STR_EMPTY;
    const char *added = port;
    if (str_ends(host, str_from(port))) {
        host.len -= str_from(port).len;
        added = "";
    } else if (str_find(host, ':') >= 0) {
        return url;
    }
    return str_from(arena_printf(
        arena, "%s" STR_FMT "%s" STR_FMT, secure ? "https://" : "http://", STR_ARG(host), added,
        STR_ARG(path)));
}

static bool fits(Str key, Str url, const Buf *fields, Str signature, Arena *arena)
{
    uint8_t mac[SHA1_LEN];
    Buf all;
    buf_init(&all, SIGNED_MAX);
    buf_str(&all, url);
    buf_str(&all, buf_view(fields));
    bool whole = !all.full && !fields->full && url.len > 0 && key.len > 0;
    if (whole) {
        hmac_sha1(key, buf_view(&all), mac);
    }
    buf_done(&all);
    return whole && callback_equal(vendor_base64(str_of(mac, sizeof mac), arena), signature);
}

static CallbackVerdict judge(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, size_t *ret_key,
    Arena *arena)
{
    VendorPair fields[FORM_FIELDS_MAX];
    size_t count = 0;
    Str signature = callback_header(request, READS[0]);
    if (signature.len == 0 || !form_read(request->body, arena, fields, &count)) {
        return CALLBACK_UNSIGNED;
    }
    const Str urls[] = {request->url, other_form(request->url, arena)};
    CallbackVerdict verdict = CALLBACK_BAD;
    Buf joined;
    buf_init(&joined, BODY_MAX);
    join_fields(fields, count, &joined);
    for (size_t i = 0; i < key_count; i++) {
        for (size_t j = 0; j < sizeof urls / sizeof *urls; j++) {
            if (fits(keys[i].secret, urls[j], &joined, signature, arena)) {
                verdict = CALLBACK_GOOD;
                *ret_key = i;
            }
        }
    }
    buf_done(&joined);
    return verdict;
}

bool twilio_verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    Arena *arena = arena_new(0);
    *ret = judge(request, keys, key_count, ret_key, arena);
    arena_free(arena);
    return *ret == CALLBACK_GOOD;
}

// The signature is of the URL and the fields: other bytes that say the same are the same.
static Str repeat_key(const CallbackRequest *request, Arena *arena)
{
    (void)arena;
    return callback_header(request, READS[0]);
}

// ---- the event ----

// "whatsapp:+4915..." of that channel, else the number itself; empty: it is of another one.
static Str number_of(
    const VendorPair *fields, size_t count, const char *name, Channel channel, Arena *arena)
{
    static const Str PREFIX = {"whatsapp:", 9};
    Str text = form_value(fields, count, name);
    bool whatsapp = str_starts(text, PREFIX);
    if (whatsapp != (channel == CHANNEL_WHATSAPP)) {
        return STR_EMPTY;
    }
    return callback_phone(whatsapp ? str_slice(text, PREFIX.len, text.len) : text, arena);
}

// What a recipient wrote to a sender of ours. OptOutType is Twilio's own reading of it.
static void read_reply(
    const VendorPair *fields, size_t count, Channel channel, Arena *arena, CallbackBatch *ret)
{
    Str read = form_value(fields, count, "OptOutType");
    Str text = form_value(fields, count, "Body");
    Str media = form_value(fields, count, "MediaContentType0");
    CallbackReply *reply = arena_zalloc(arena, sizeof *reply);
    *reply = (CallbackReply){
        .word = reply_word(read.len > 0 ? read : text),
        .to = callback_plain(form_value(fields, count, "To"), REPLY_NAME_MAX),
        .text = str_is_utf8(text) ? callback_cut(text, REPLY_TEXT_MAX) : STR_EMPTY,
        .kind = media.len > 0 ? callback_plain(media, REPLY_NAME_MAX) : STR("text"),
        .answers = callback_plain(form_value(fields, count, "OriginalRepliedMessageSid"), 64),
    };
    ret->events[ret->count++] = callback_reply(
        reply, number_of(fields, count, "From", channel, arena),
        callback_plain(form_value(fields, count, "MessageSid"), 64), 0, STR_EMPTY);
}

static bool read_as(Channel channel, Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    VendorPair fields[FORM_FIELDS_MAX];
    size_t count = 0;
    if (!form_read(body, arena, fields, &count)) {
        return error_set(err, ERROR_PERMANENT, "the callback is not a form of Twilio's");
    }
    Str status = form_value(fields, count, "MessageStatus");
    bool reply = status.len == 0 && form_value(fields, count, "From").len > 0;
    if (status.len == 0 && !reply) {
        return error_set(
            err, ERROR_PERMANENT, "the callback has neither 'MessageStatus' nor 'From'");
    }
    *ret = callback_batch(arena, 1);
    if (reply) {
        read_reply(fields, count, channel, arena, ret);
        return true;
    }
    Str code = callback_plain(form_value(fields, count, "ErrorCode"), 8);
    bool undelivered = str_eq(status, STR("undelivered"));
    const CallbackKind *kind = callback_kind(
        KINDS, sizeof KINDS / sizeof *KINDS, undelivered ? STR("failed") : status, code);
    if (kind == NULL) {
        ret->ignored++;
        return true;
    }
    CallbackEvent event = callback_failure(kind, twilio_reasons, code);
    event.message_id = callback_plain(form_value(fields, count, "MessageSid"), 64);
    event.email = number_of(fields, count, "To", channel, arena);
    callback_price(
        &event, form_value(fields, count, "Price"), form_value(fields, count, "PriceUnit"), arena);
    event.segments = callback_segments(form_value(fields, count, "NumSegments"));
    if (code.len > 0) {
        Str said = str_from(
            arena_printf(arena, STR_FMT " " STR_FMT, STR_ARG(code), STR_ARG(str_from(kind->type))));
        event.text = callback_words(said, arena);
    }
    ret->events[ret->count++] = event;
    return true;
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    return read_as(CHANNEL_SMS, body, arena, ret, err);
}

static bool read_whatsapp(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    return read_as(CHANNEL_WHATSAPP, body, arena, ret, err);
}

const VendorCallback twilio_callback = {
    .name = "twilio",
    .channel = CHANNEL_SMS,
    .body_max = BODY_MAX,
    .reads = READS,
    .needs_all = true,
    .answer_type = TWILIO_ANSWER_TYPE,
    .answer = TWILIO_ANSWER,
    .bad_status = 401,
    .signs_url = true,
    .key_check = twilio_key_check,
    .key_none = twilio_key_none,
    .verify = twilio_verify,
    .repeat_key = repeat_key,
    .events = read_events,
};

const VendorCallback twilio_whatsapp_callback = {
    .name = "twilio_whatsapp",
    .channel = CHANNEL_WHATSAPP,
    .body_max = BODY_MAX,
    .reads = READS,
    .needs_all = true,
    .answer_type = TWILIO_ANSWER_TYPE,
    .answer = TWILIO_ANSWER,
    .bad_status = 401,
    .signs_url = true,
    .key_check = twilio_key_check,
    .key_none = twilio_key_none,
    .verify = twilio_verify,
    .repeat_key = repeat_key,
    .events = read_whatsapp,
};
