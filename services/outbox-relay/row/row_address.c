// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/row/row_address.h"

#include <stdio.h>
#include <string.h>

enum { LOCAL_MAX = 64, EMAIL_MAX = 254 };

static bool wrong(char reason[ROW_ADDRESS_REASON_SIZE], const char *text)
{
    snprintf(reason, ROW_ADDRESS_REASON_SIZE, "%s", text);
    return false;
}

// No empty part between dots.
static bool is_dotted(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool edge = i == 0 || i + 1 == text.len || text.ptr[i - 1] == '.';
        if (text.ptr[i] == '.' && edge) {
            return false;
        }
    }
    return text.len > 0;
}

static bool has_any(Str text, const char *chars)
{
    for (size_t i = 0; i < text.len; i++) {
        if (strchr(chars, text.ptr[i]) !=
            NULL) { // it has no NUL: str_has_control was checked before
            return true;
        }
    }
    return false;
}

static bool is_email(Str address, char reason[ROW_ADDRESS_REASON_SIZE])
{
    ptrdiff_t at = str_find(address, '@');
    if (at < 0) {
        return wrong(reason, "is not an e-mail address: it has no '@'");
    }
    Str local = str_slice(address, 0, (size_t)at);
    Str domain = str_slice(address, (size_t)at + 1, address.len);
    if (str_find(domain, '@') >= 0) {
        return wrong(reason, "is not an e-mail address: it has more than one '@'");
    }
    if (address.len > EMAIL_MAX || local.len > LOCAL_MAX) {
        return wrong(reason, "is too long for an e-mail address");
    }
    if (has_any(address, " \"(),:;<>[\\]")) {
        return wrong(reason, "has characters that no e-mail address has (give the address alone)");
    }
    return (is_dotted(local) && is_dotted(domain)) ||
           wrong(reason, "is not an e-mail address: local@domain");
}

bool row_address_fits(Channel channel, Str address, char reason[ROW_ADDRESS_REASON_SIZE])
{
    if (str_has_control(address) || address.len == 0) {
        return wrong(reason, "is empty or has a control character");
    }
    return channel != CHANNEL_EMAIL || is_email(address, reason);
}
