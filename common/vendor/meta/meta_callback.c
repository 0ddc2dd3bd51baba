// SPDX-License-Identifier: Apache-2.0
// Meta's webhooks about WhatsApp: JSON with statuses of messages and messages of recipients, many
// in one, signed in X-Hub-Signature-256 by HMAC-SHA256 of the raw bytes under the app's secret. No
// time is signed. `delivered` may be left out where `read` follows. Recipients may be named by an
// id in place of a number.
// Source: developers.facebook.com, "WhatsApp webhooks" (messages, statuses), "Verify payloads",
// "Pricing updates on the WhatsApp Business Platform".
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/vendor/callback_list.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"
#include "common/vendor/meta/meta.h"
#include "common/vendor/meta/meta_split.h"

enum { BODY_MAX = 4 * 1024 * 1024, SECRET_BYTES = 16, REPLY_TEXT_MAX = 4096, CATEGORY_MAX = 64 };

static const char *const READS[] = {"X-Hub-Signature-256", NULL};

// clang-format off
static const CallbackKind KINDS[] = {
    {"sent",      NULL,     STATUS_SENT,      OUTCOME_ACCEPTED,  "",            SUPPRESSION_NONE},
    {"delivered", NULL,     STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {"read",      NULL,     STATUS_OPENED,    OUTCOME_OPENED,    "",            SUPPRESSION_NONE},
    // With the code that says why; those of meta_reasons as these say.
    {"failed",    "131026", STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    {"failed",    "131048", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"failed",    "131049", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"failed",    "130472", STATUS_FAILED,    OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {"failed",    NULL,     STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
};
// clang-format on

// ---- the signature ----

static bool check_key(Str secret, Error *err)
{
    return callback_text_key_check(
        secret, 16, "a key is the app's secret, 16 characters at least, usually 32", err);
}

static Str make_none(Arena *arena)
{
    return callback_hex_none(SECRET_BYTES, arena);
}

static bool verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    static const Str PREFIX = {"sha256=", 7};
    Str header = callback_header(request, READS[0]);
    Str given = str_slice(header, PREFIX.len, header.len);
    bool shaped = str_starts(header, PREFIX) && given.len == 2 * SHA256_LEN;
    *ret = shaped ? CALLBACK_BAD : CALLBACK_UNSIGNED;
    for (size_t i = 0; shaped && i < key_count; i++) {
        uint8_t mac[SHA256_LEN];
        char hex[2 * SHA256_LEN + 1];
        hmac_sha256(keys[i].secret, request->body, mac);
        hex_encode(mac, sizeof mac, hex);
        if (keys[i].secret.len > 0 && callback_equal(str_from(hex), given)) {
            *ret = CALLBACK_GOOD;
            *ret_key = i;
        }
    }
    return *ret == CALLBACK_GOOD;
}

// ---- the events ----

static Str code_of(const json_t *error, Arena *arena)
{
    const json_t *code = json_object_get(error, "code");
    return json_is_integer(code)
               ? str_from(arena_printf(arena, "%lld", (long long)json_integer_value(code)))
               : STR_EMPTY;
}

static Str words_of(const json_t *error, Str code, Arena *arena)
{
    Str details = callback_text(json_object_get(error, "error_data"), "details");
    Str said = details.len > 0 ? details : callback_text(error, "title");
    Str words = str_from(arena_printf(
        arena, STR_FMT " " STR_FMT, STR_ARG(code), STR_ARG(str_slice(said, 0, CALLBACK_TEXT_MAX))));
    return callback_words(str_trim(words), arena);
}

// As what it is billed; `type` is to replace `billable`, and begins so where nothing is.
static Str price_category(const json_t *pricing)
{
    bool free = json_is_false(json_object_get(pricing, "billable")) ||
                str_starts(callback_text(pricing, "type"), STR("free_"));
    return free ? STR("free") : callback_plain(callback_text(pricing, "category"), CATEGORY_MAX);
}

static void read_status(const json_t *status, Str account, Arena *arena, CallbackBatch *ret)
{
    Str type = callback_text(status, "status");
    const json_t *error = json_array_get(json_object_get(status, "errors"), 0);
    Str code = code_of(error, arena);
    const CallbackKind *kind = callback_kind(KINDS, sizeof KINDS / sizeof *KINDS, type, code);
    if (kind == NULL) {
        ret->ignored += type.len > 0 ? 1 : 0;
        ret->unreadable += type.len > 0 ? 0 : 1;
        return;
    }
    CallbackEvent event = callback_failure(kind, meta_reasons, code);
    event.message_id = callback_id(status, "id");
    callback_attempt_ref(callback_text(status, "biz_opaque_callback_data"), &event);
    event.email = callback_phone(callback_text(status, "recipient_id"), arena);
    event.at_us = callback_unix(json_object_get(status, "timestamp"));
    event.account = account;
    event.price_category = price_category(json_object_get(status, "pricing"));
    event.text = kind->reason_code[0] != '\0' ? words_of(error, code, arena) : STR_EMPTY;
    ret->events[ret->count++] = event;
}

// Of a text, of a button of a template, of a choice.
static Str reply_text(const json_t *message, Str kind)
{
    const json_t *choice = json_object_get(message, "interactive");
    Str texts[] = {
        callback_text(json_object_get(message, "text"), "body"),
        callback_text(json_object_get(message, "button"), "text"),
        callback_text(json_object_get(choice, "button_reply"), "title"),
        callback_text(json_object_get(choice, "list_reply"), "title"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].len > 0) {
            return texts[i];
        }
    }
    char name[33]; // "image", "document" ... with a caption
    return str_to_c(kind, name, sizeof name)
               ? callback_text(json_object_get(message, name), "caption")
               : STR_EMPTY;
}

static void read_message(const json_t *message, Str account, Arena *arena, CallbackBatch *ret)
{
    Str kind = callback_plain(callback_text(message, "type"), 32);
    Str id = callback_id(message, "id");
    if (kind.len == 0 || id.len == 0) {
        ret->unreadable++;
        return;
    }
    CallbackReply *reply = arena_zalloc(arena, sizeof *reply);
    Str text = reply_text(message, kind);
    *reply = (CallbackReply){
        .word = reply_word(text),
        .to = account,
        .text = callback_cut(text, REPLY_TEXT_MAX),
        .kind = kind,
        .answers = callback_id(json_object_get(message, "context"), "id"),
    };
    ret->events[ret->count++] = callback_reply(
        reply, callback_phone(callback_text(message, "from"), arena), id,
        callback_unix(json_object_get(message, "timestamp")), account);
}

typedef void (*Reader)(const json_t *item, Str account, Arena *arena, CallbackBatch *ret);

// `read` NULL: counts them.
static size_t each_item(const json_t *root, Reader read_one[2], Arena *arena, CallbackBatch *ret)
{
    static const char *const NAMES[2] = {"statuses", "messages"};
    size_t i, j, k, count = 0;
    const json_t *entry, *change, *item;
    json_array_foreach(json_object_get(root, "entry"), i, entry)
    {
        json_array_foreach(json_object_get(entry, "changes"), j, change)
        {
            const json_t *value = json_object_get(change, "value");
            Str account = callback_id(json_object_get(value, "metadata"), "phone_number_id");
            for (int which = 0; which < 2; which++) {
                json_array_foreach(json_object_get(value, NAMES[which]), k, item)
                {
                    count++;
                    if (read_one != NULL) {
                        read_one[which](item, account, arena, ret);
                    }
                }
            }
        }
    }
    return count;
}

static bool read_events(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    static Reader READERS[2] = {read_status, read_message};
    const json_t *root = callback_json(body, arena, err);
    if (root == NULL) {
        return false;
    }
    if (!str_eq(callback_text(root, "object"), STR("whatsapp_business_account"))) {
        return error_set(
            err, ERROR_PERMANENT, "the callback's 'object' is not 'whatsapp_business_account'");
    }
    size_t count = each_item(root, NULL, arena, NULL);
    if (count > CALLBACK_EVENTS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "the callback has more than %d events", CALLBACK_EVENTS_MAX);
    }
    *ret = callback_batch(arena, count);
    (void)each_item(root, READERS, arena, ret);
    return true;
}

const VendorCallback meta_callback = {
    .name = "meta",
    .channel = CHANNEL_WHATSAPP,
    .body_max = BODY_MAX,
    .reads = READS,
    .needs_all = true,
    .needs_capability = true,
    .one_address = true,
    .bad_status = 401,
    .challenges = true,
    .account_setting = "phone_number_id",
    .key_check = check_key,
    .key_none = make_none,
    .verify = verify,
    .split = meta_split,
    .events = read_events,
};
