// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vendor_read.h"

#include <string.h>

#include "common/base/json_scan.h"
#include "common/base/log.h"
#include "common/vendor/vendor_text.h"

enum { DAY_S = 86400 };

#define YEAR_2001_S INT64_C(1000000000)

// ---- what a status means ----

static bool is_uncertain(int status)
{
    return status < 200 || status == 408 || (status >= 500 && status != 503);
}

static ReplyClass status_class(int status)
{
    switch (status) {
    case 401:
    case 402:
    case 403:
    case 404:
    case 405:
        return REPLY_CONFIG;
    case 421:
    case 425:
    case 503:
        return REPLY_RETRY;
    case 429:
        return REPLY_THROTTLED;
    default:
        break;
    }
    if (is_uncertain(status)) {
        return REPLY_RETRY;
    }
    // A redirect is not followed: the base_url is another's.
    return status < 300 ? REPLY_ACCEPTED : status < 400 ? REPLY_CONFIG : REPLY_TERMINAL;
}

void vendor_read_status(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    *ret = (SendResult){
        .state = is_uncertain(answer->status) ? SEND_UNKNOWN : SEND_ANSWERED,
        .reply = status_class(answer->status),
        .retry_after_ms = vendor_retry_after_ms(answer),
        .code = str_from(arena_printf(arena, "%d", answer->status)),
        .enhanced = STR_EMPTY,
        .text = STR_EMPTY,
        .vendor_message_id = STR_EMPTY,
        .currency = STR_EMPTY,
    };
}

void vendor_read_as(SendState state, ReplyClass reply, SendResult *ret)
{
    ret->state = state;
    ret->reply = reply;
}

bool vendor_read_row(const VendorRow *rows, size_t count, Str code, SendResult *ret)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(code, str_from(rows[i].code))) {
            vendor_read_as(rows[i].state, rows[i].reply, ret);
            if (ret->retry_after_ms == 0) {
                ret->retry_after_ms = rows[i].retry_after_ms;
            }
            return true;
        }
    }
    return false;
}

// ---- the answer's JSON ----

static void free_json(void *thing)
{
    json_decref(thing);
}

json_t *vendor_answer_object(const VendorAnswer *answer, Arena *arena)
{
    JsonExcess excess;
    if (answer->cut || answer->body.len > VENDOR_ANSWER_MAX ||
        !json_is_modest(answer->body, &excess)) {
        return NULL;
    }
    json_t *root = json_loadb(answer->body.ptr, answer->body.len, 0, NULL);
    if (root != NULL) {
        arena_own(arena, free_json, root);
    }
    return json_is_object(root) ? root : NULL;
}

Str vendor_member_text(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? str_of(json_string_value(value), json_string_length(value))
                                 : STR_EMPTY;
}

int64_t vendor_member_int(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}

int vendor_is_attempt(const json_t *values, const VendorMail *mail, Arena *arena)
{
    Str nid = vendor_member_text(values, "nid");
    Str attempt = vendor_member_text(values, "attempt");
    Str wanted = str_from(arena_printf(arena, "%d", mail->attempt));
    if (nid.len == 0 || attempt.len == 0) {
        return -1;
    }
    return str_eq(nid, mail->notification_id) && str_eq(attempt, wanted);
}

// ---- texts and ids ----

// Cut at the start of a character, so that the rest is still UTF-8.
static Str cut_text(Str text, size_t max)
{
    if (text.len <= max) {
        return text;
    }
    while (max > 0 && ((unsigned char)text.ptr[max] & 0xc0) == 0x80) {
        max--;
    }
    return str_slice(text, 0, max);
}

// In one line, at most twice as long: masking may lengthen it.
static Str masked_line(Str text, Arena *arena)
{
    char *line = arena_cstr(arena, text);
    for (size_t i = 0; i < text.len; i++) {
        bool control = (unsigned char)line[i] < 0x20 || line[i] == 0x7f;
        line[i] = control ? ' ' : line[i];
    }
    size_t room = 2 * text.len + 1;
    char *masked = arena_alloc(arena, room);
    mask_addresses(str_of(line, text.len), masked, room);
    return str_from(masked);
}

Str vendor_clean_text(Str code, Str text, Arena *arena)
{
    // Each by itself: a code and the digits that a text begins with are no number.
    Str shown = masked_line(str_slice(code, 0, 64), arena);
    Str said = masked_line(cut_text(text, VENDOR_TEXT_MAX), arena);
    const char *all = arena_printf(
        arena, STR_FMT "%s" STR_FMT, STR_ARG(shown), shown.len > 0 && said.len > 0 ? " " : "",
        STR_ARG(said));
    Str clean = cut_text(str_from(all), VENDOR_TEXT_MAX);
    return str_is_utf8(clean) ? str_trim(clean) : STR("(not UTF-8)");
}

Str vendor_clean_id(Str id, Arena *arena)
{
    if (str_starts(id, STR("<")) && str_ends(id, STR(">"))) {
        id = str_slice(id, 1, id.len - 1);
    }
    bool good = id.len <= VENDOR_MESSAGE_ID_MAX && str_is_utf8(id) && !str_has_control(id);
    return good ? arena_str(arena, id) : STR_EMPTY;
}

bool vendor_text_has(Str text, const char *needle)
{
    Str part = str_from(needle);
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (str_eq_nocase(str_slice(text, i, i + part.len), part)) {
            return true;
        }
    }
    return false;
}

void vendor_read_price(Str amount, Str currency, Arena *arena, SendResult *ret)
{
    int64_t micros = vendor_money(amount);
    if (micros > 0 && currency.len == 3 && str_is_utf8(currency) && !str_has_control(currency)) {
        ret->cost_micros = micros;
        ret->currency = arena_str(arena, currency);
    }
}

uint32_t vendor_reset_ms(const VendorAnswer *answer, Str name)
{
    int64_t value = 0;
    if (!str_to_i64(str_trim(vendor_answer_header(answer, name)), &value) || value <= 0) {
        return 0;
    }
    int64_t seconds = value;
    if (value >= YEAR_2001_S) {
        seconds = value - answer->read_us / 1000000;
    }
    seconds = seconds < DAY_S ? seconds : DAY_S;
    return seconds > 0 ? (uint32_t)seconds * 1000 : 0;
}
