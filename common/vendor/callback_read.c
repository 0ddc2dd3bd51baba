// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/callback_read.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/json_scan.h"
#include "common/base/log.h"
#include "common/vendor/vendor_text.h"

enum {
    ID_TEXT_MAX = 200,
    ADDRESS_MAX = 254,
    ENHANCED_MAX = 9,
    NID_LEN = 30,
    PHONE_DIGITS_MIN = 5,
    PHONE_DIGITS_MAX = 15,
};

#define YEAR_2100_S INT64_C(4102444800)

static void free_json(void *thing)
{
    json_decref(thing);
}

const json_t *callback_json(Str body, Arena *arena, Error *err)
{
    json_error_t where;
    JsonExcess excess;
    if (!json_is_modest(body, &excess)) {
        (void)error_set(err, ERROR_PERMANENT, "the callback has %s", excess.what);
        return NULL;
    }
    json_t *root = json_loadb(body.ptr, body.len, 0, &where);
    if (root == NULL) {
        (void)error_set(
            err, ERROR_PERMANENT, "the callback is not JSON: line %d, column %d", where.line,
            where.column);
        return NULL;
    }
    arena_own(arena, free_json, root);
    return root;
}

const json_t *callback_list(Str body, Arena *arena, CallbackBatch *ret, Error *err)
{
    const json_t *root = callback_json(body, arena, err);
    if (root == NULL) {
        return NULL;
    }
    if (!json_is_array(root) || json_array_size(root) > CALLBACK_EVENTS_MAX) {
        error_set(
            err, ERROR_PERMANENT, "the callback is not an array of at most %d events",
            CALLBACK_EVENTS_MAX);
        return NULL;
    }
    *ret = callback_batch(arena, json_array_size(root));
    return root;
}

// ---- texts ----

Str callback_text(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? str_of(json_string_value(value), json_string_length(value))
                                 : STR_EMPTY;
}

Str callback_id(const json_t *object, const char *name)
{
    Str text = callback_text(object, name);
    return text.len > ID_TEXT_MAX || str_has_control(text) ? STR_EMPTY : text;
}

Str callback_plain(Str text, size_t max)
{
    return text.len <= max && str_is_utf8(text) && !str_has_control(text) ? text : STR_EMPTY;
}

Str callback_email(Str text)
{
    ptrdiff_t at = str_find(text, '@');
    bool good = text.len <= ADDRESS_MAX && at > 0 && (size_t)at + 1 < text.len &&
                !str_has_control(text) && str_find(text, ' ') < 0;
    return good ? text : STR_EMPTY;
}

Str callback_phone(Str digits, Arena *arena)
{
    Str rest = str_starts(digits, STR("+")) ? str_slice(digits, 1, digits.len) : digits;
    bool good = rest.len >= PHONE_DIGITS_MIN && rest.len <= PHONE_DIGITS_MAX;
    for (size_t i = 0; good && i < rest.len; i++) {
        good = ascii_is_digit(rest.ptr[i]);
    }
    return good ? str_from(arena_printf(arena, "+" STR_FMT, STR_ARG(rest))) : STR_EMPTY;
}

Str callback_address(Channel channel, Str text, Arena *arena)
{
    switch (channel) {
    case CHANNEL_EMAIL:
        return callback_email(text);
    case CHANNEL_SMS:
    case CHANNEL_WHATSAPP:
    case CHANNEL_VOICE:
        return callback_phone(text, arena);
    case CHANNEL_PUSH:
    case CHANNEL_INAPP:
    case CHANNEL_WEBHOOK:
    case CHANNEL_NONE:
    case CHANNEL_COUNT:
        break;
    }
    return callback_plain(text, ADDRESS_MAX);
}

// So that the rest is still UTF-8.
Str callback_cut(Str text, size_t max)
{
    if (text.len <= max) {
        return text;
    }
    while (max > 0 && ((unsigned char)text.ptr[max] & 0xc0) == 0x80) {
        max--;
    }
    return str_slice(text, 0, max);
}

Str callback_words(Str text, Arena *arena)
{
    // Masking may lengthen the text: cut before and after.
    char *masked = arena_alloc(arena, 2 * CALLBACK_TEXT_MAX + 1);
    mask_addresses(callback_cut(text, CALLBACK_TEXT_MAX), masked, 2 * CALLBACK_TEXT_MAX + 1);
    return callback_cut(str_from(masked), CALLBACK_TEXT_MAX);
}

static bool is_part(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_digit(text.ptr[i])) {
            return false;
        }
    }
    return text.len >= 1 && text.len <= 3;
}

static bool is_enhanced(Str text)
{
    Str rest = text, part;
    int parts = 0;
    bool good = text.len <= ENHANCED_MAX && text.len >= 5 && text.ptr[1] == '.' &&
                (text.ptr[0] == '2' || text.ptr[0] == '4' || text.ptr[0] == '5');
    while (good && str_split(&rest, '.', &part)) {
        good = is_part(part);
        parts++;
    }
    return good && parts == 3;
}

Str callback_enhanced(Str text)
{
    Str rest = str_slice(text, 0, CALLBACK_TEXT_MAX), word;
    while (str_split(&rest, ' ', &word)) {
        if (is_enhanced(word)) {
            return word;
        }
    }
    return STR_EMPTY;
}

// ---- ours ----

Str callback_notification_of(Str text)
{
    // "<ntf_...@mail.example.com>": the Message-ID that we gave it.
    bool angled = str_starts(text, STR("<"));
    text = angled ? str_slice(text, 1, text.len) : text;
    ptrdiff_t at = str_find(text, '@');
    if (at < 0 && angled) {
        return STR_EMPTY;
    }
    text = at < 0 ? text : str_slice(text, 0, (size_t)at);
    return id_parse(text, "ntf_", NULL) ? text : STR_EMPTY;
}

Str callback_notification(const json_t *object, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        Str found = callback_notification_of(callback_text(object, names[i]));
        if (found.len > 0) {
            return found;
        }
    }
    return STR_EMPTY;
}

void callback_attempt_ref(Str text, CallbackEvent *event)
{
    int64_t attempt = 0;
    Str id = callback_notification_of(str_slice(text, 0, NID_LEN));
    if (id.len == NID_LEN && text.len > NID_LEN + 1 && text.ptr[NID_LEN] == '-' &&
        str_to_i64(str_slice(text, NID_LEN + 1, text.len), &attempt) && attempt > 0 &&
        attempt <= INT16_MAX) {
        event->notification_id = id;
        event->attempt = (int32_t)attempt;
    }
}

int32_t callback_attempt(const json_t *object, const char *name)
{
    int64_t number = json_integer_value(json_object_get(object, name));
    if (number == 0 && !str_to_i64(callback_text(object, name), &number)) {
        return 0;
    }
    return number > 0 && number <= INT16_MAX ? (int32_t)number : 0;
}

int64_t callback_unix(const json_t *value)
{
    double at_s = json_number_value(value);
    if (json_is_integer(value)) {
        json_int_t whole = json_integer_value(value);
        return whole > 0 && whole < YEAR_2100_S ? (int64_t)whole * 1000000 : 0;
    }
    if (json_is_string(value)) {
        int64_t whole = 0;
        Str text = str_of(json_string_value(value), json_string_length(value));
        return str_to_i64(text, &whole) && whole > 0 && whole < YEAR_2100_S ? whole * 1000000 : 0;
    }
    return at_s > 0 && at_s < (double)YEAR_2100_S ? (int64_t)(at_s * 1e6) : 0;
}

int64_t callback_time(Str text)
{
    int64_t at_us = 0;
    return clock_parse(text, &at_us) && at_us < YEAR_2100_S * 1000000 ? at_us : 0;
}

void callback_price(CallbackEvent *event, Str amount, Str currency, Arena *arena)
{
    int64_t micros = vendor_money(amount);
    bool good = micros > 0 && currency.len == 3;
    for (size_t i = 0; good && i < currency.len; i++) {
        good = currency.ptr[i] >= 'A' && currency.ptr[i] <= 'Z';
    }
    if (good) {
        event->cost_micros = micros;
        event->currency = arena_str(arena, currency);
    }
}

uint32_t callback_segments(Str text)
{
    int64_t count = 0;
    return str_to_i64(text, &count) && count > 0 && count < UINT16_MAX ? (uint32_t)count : 0;
}

static bool has_word(Str text, Str word)
{
    for (size_t i = 0; i + word.len <= text.len; i++) {
        if (str_eq_nocase(str_slice(text, i, i + word.len), word)) {
            return true;
        }
    }
    return false;
}

bool callback_is_machine(Str user_agent)
{
    static const char *const words[] = {"GoogleImageProxy", "YahooMailProxy", "Barracuda",
                                        "Mimecast",         "Proofpoint",     "bot",
                                        "python-",          "curl/"};
    Str agent = str_slice(str_trim(user_agent), 0, CALLBACK_TEXT_MAX);
    if (str_eq(agent, STR("Mozilla/5.0"))) { // Apple's Mail Privacy Protection
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (has_word(agent, str_from(words[i]))) {
            return true;
        }
    }
    return false;
}

// ---- kinds ----

const CallbackKind *callback_kind(const CallbackKind *kinds, size_t count, Str type, Str detail)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(type, str_from(kinds[i].type)) &&
            (kinds[i].detail == NULL || str_eq(detail, str_from(kinds[i].detail)))) {
            return &kinds[i];
        }
    }
    return NULL;
}

CallbackEvent callback_event(const CallbackKind *kind)
{
    return (CallbackEvent){
        .status = kind->status,
        .outcome = kind->outcome,
        .reason_code = kind->reason_code,
        .suppress = kind->suppress,
    };
}

CallbackEvent callback_failure(const CallbackKind *kind, const VendorReason *reasons, Str code)
{
    CallbackEvent event = callback_event(kind);
    for (; event.status == STATUS_FAILED && reasons->code != NULL; reasons++) {
        if (str_eq(code, str_from(reasons->code))) {
            event.reason_code = reasons->reason_code;
            event.suppress = reasons->suppress;
        }
    }
    return event;
}

CallbackEvent callback_reply(
    const CallbackReply *reply, Str from, Str message_id, int64_t at_us, Str account)
{
    bool stops = reply->word == REPLY_WORD_STOP && from.len > 0;
    return (CallbackEvent){
        .message_id = message_id,
        .suppress = stops ? SUPPRESSION_OPT_OUT : SUPPRESSION_NONE,
        .email = from,
        .reason_code = "",
        .text = stops ? STR("the recipient replied STOP") : STR_EMPTY,
        .at_us = at_us,
        .account = account,
        .reply = reply,
    };
}

CallbackBatch callback_batch(Arena *arena, size_t count)
{
    return (CallbackBatch){.events = arena_array(arena, count, sizeof(CallbackEvent))};
}
