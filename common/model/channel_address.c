// SPDX-License-Identifier: Apache-2.0
#include "common/model/channel_address.h"

#include <stdio.h>
#include <string.h>

#include "common/model/addresses/push_address.h"

enum {
    PHONE_MIN = 7, // digits of E.164
    PHONE_MAX = 15,
    URL_MAX = 2048,
    INAPP_MAX = 254,
};

static bool refuse(char reason[ADDRESS_REASON_SIZE], const char *why)
{
    (void)snprintf(reason, ADDRESS_REASON_SIZE, "%s", why);
    return false;
}

static bool check_phone(Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    char digits[PHONE_MAX + 2] = "+";
    size_t len = 1;
    if (text.len == 0 || text.ptr[0] != '+') {
        return refuse(reason, "not a phone number in E.164: '+', country code, number");
    }
    for (size_t i = 1; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == ' ' || c == '-' || c == '.' || c == '(' || c == ')') {
            continue;
        }
        if (c < '0' || c > '9') {
            return refuse(reason, "a phone number has a character that is not a digit");
        }
        if (len == PHONE_MAX + 1) {
            return refuse(reason, "a phone number has at most 15 digits");
        }
        digits[len++] = c;
    }
    if (len <= PHONE_MIN || digits[1] == '0') {
        return refuse(reason, "a phone number has at least 7 digits and no country code with 0");
    }
    *ret = arena_str(arena, str_of(digits, len));
    return true;
}

static bool check_plain(
    Str text, size_t max, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    if (text.len == 0 || text.len > max) {
        (void)snprintf(reason, ADDRESS_REASON_SIZE, "1 to %zu bytes", max);
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] <= 0x20 || text.ptr[i] == 0x7f) {
            return refuse(reason, "has a space or a control character");
        }
    }
    *ret = arena_str(arena, text);
    return true;
}

static bool check_url(Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    bool https = str_starts(text, STR("https://")) && text.len > sizeof "https://" - 1;
    bool http = str_starts(text, STR("http://")) && text.len > sizeof "http://" - 1;
    if (!https && !http) {
        return refuse(reason, "not a URL that begins with https:// or http://");
    }
    return check_plain(text, URL_MAX, arena, ret, reason);
}

static bool has_mask(Str text)
{
    for (size_t i = 0; i + 3 <= text.len; i++) {
        if (memcmp(text.ptr + i, "***", 3) == 0) {
            return true;
        }
    }
    return false;
}

bool people_address_check(
    Channel channel, Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    // '*' may stand in a mailbox, but this is what a GET without reveal shows.
    if (has_mask(text)) {
        return refuse(reason, "is masked; read it with '?reveal=true' before writing it back");
    }
    switch (channel) {
    case CHANNEL_EMAIL:
        return address_parse(text, arena, ret, reason);
    case CHANNEL_SMS:
    case CHANNEL_WHATSAPP:
    case CHANNEL_VOICE:
        return check_phone(text, arena, ret, reason);
    case CHANNEL_PUSH:
        return push_address_check(text, arena, ret, reason);
    case CHANNEL_INAPP:
        return check_plain(text, INAPP_MAX, arena, ret, reason);
    case CHANNEL_WEBHOOK:
        return check_url(text, arena, ret, reason);
    case CHANNEL_NONE:
    case CHANNEL_COUNT:
        break;
    }
    return refuse(reason, "of an unknown channel");
}

// ---- masks ----

// The first characters, never half a character of UTF-8.
static Str first_chars(Str text, size_t count)
{
    size_t at = 0;
    while (count-- > 0 && at < text.len) {
        size_t step = str_utf8_step(str_slice(text, at, text.len));
        at += step == 0 ? 1 : step;
    }
    return str_slice(text, 0, at);
}

static void mask_some(Str text, Buf *out)
{
    buf_str(out, first_chars(text, text.len > 3 ? 3 : 1));
    buf_cstr(out, "***");
}

void people_address_mask(Channel channel, Str address, Buf *out)
{
    ptrdiff_t at = str_find(address, '@');
    if (channel == CHANNEL_EMAIL && at >= 0) {
        mask_some(str_slice(address, 0, (size_t)at), out);
        buf_str(out, str_slice(address, (size_t)at, address.len));
        return;
    }
    mask_some(address, out);
    if (channel == CHANNEL_SMS || channel == CHANNEL_WHATSAPP || channel == CHANNEL_VOICE) {
        buf_str(out, str_slice(address, address.len > 2 ? address.len - 2 : 0, address.len));
    }
}

void people_name_mask(Str name, Buf *out)
{
    buf_str(out, first_chars(name, 1));
    buf_cstr(out, "***");
}
