// SPDX-License-Identifier: Apache-2.0
#include "common/model/address.h"

#include <idn2.h>
#include <stdio.h>
#include <string.h>

enum { DOMAIN_MAX = 253, LABEL_MAX = 63 };

#define BIDI "has a character that changes the writing direction (such as U+202E)"

static bool refuse(char reason[ADDRESS_REASON_SIZE], const char *why)
{
    (void)snprintf(reason, ADDRESS_REASON_SIZE, "%s", why);
    return false;
}

// atext of RFC 5322, and any byte of a UTF-8 sequence.
static bool is_local_byte(unsigned char c)
{
    return ascii_is_alnum((char)c) || c >= 0x80 ||
           (c != 0 && strchr("!#$%&'*+-/=?^_`{|}~", c) != NULL);
}

static bool check_local(Str local, char reason[ADDRESS_REASON_SIZE])
{
    if (local.len == 0) {
        return refuse(reason, "the part before the '@' is missing");
    }
    if (local.len > ADDRESS_LOCAL_MAX) {
        return refuse(reason, "the part before the '@' is longer than 64 bytes");
    }
    if (str_has_bidi(local)) {
        return refuse(reason, BIDI);
    }
    bool after_dot = true; // a dot may neither begin nor follow another
    for (size_t i = 0; i < local.len; i++) {
        unsigned char c = (unsigned char)local.ptr[i];
        if (c == '.' ? after_dot : !is_local_byte(c)) {
            return refuse(
                reason, c == '.' ? "a dot is out of place before the '@'"
                                 : "a character before the '@' is not allowed in an address");
        }
        after_dot = c == '.';
    }
    return after_dot ? refuse(reason, "a dot stands just before the '@'") : true;
}

static bool check_label(Str label, char reason[ADDRESS_REASON_SIZE])
{
    if (label.len == 0) {
        return refuse(reason, "the domain has an empty label");
    }
    if (label.len > LABEL_MAX) {
        return refuse(reason, "a label of the domain is longer than 63 bytes");
    }
    if (label.ptr[0] == '-' || label.ptr[label.len - 1] == '-') {
        return refuse(reason, "a label of the domain begins or ends with '-'");
    }
    for (size_t i = 0; i < label.len; i++) {
        if (!ascii_is_alnum(label.ptr[i]) && label.ptr[i] != '-') {
            return refuse(reason, "the domain has a character that is not allowed");
        }
    }
    return true;
}

static bool check_domain(Str domain, char reason[ADDRESS_REASON_SIZE])
{
    if (domain.len == 0) {
        return refuse(reason, "the domain after the '@' is missing");
    }
    if (domain.len > DOMAIN_MAX) {
        return refuse(reason, "the domain is longer than 253 bytes");
    }
    size_t begin = 0;
    for (size_t i = 0; i <= domain.len; i++) {
        if (i == domain.len || domain.ptr[i] == '.') {
            if (!check_label(str_slice(domain, begin, i), reason)) {
                return false;
            }
            begin = i + 1;
        }
    }
    return true;
}

// Plain ASCII without an A-label needs no IDNA: it maps to its own lower case.
static bool needs_idna(Str domain)
{
    for (size_t i = 0; i < domain.len; i++) {
        if ((unsigned char)domain.ptr[i] >= 0x80) {
            return true;
        }
        if (i + 4 <= domain.len && str_eq_nocase(str_slice(domain, i, i + 4), STR("xn--"))) {
            return true;
        }
    }
    return false;
}

static bool map_domain(Str domain, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE])
{
    if (!needs_idna(domain)) {
        char *lower = arena_cstr(arena, domain);
        for (size_t i = 0; i < domain.len; i++) {
            if (lower[i] >= 'A' && lower[i] <= 'Z') {
                lower[i] = (char)(lower[i] + ('a' - 'A'));
            }
        }
        *ret = str_of(lower, domain.len);
        return true;
    }
    char *ascii = NULL;
    int code =
        idn2_to_ascii_8z(arena_cstr(arena, domain), &ascii, IDN2_NONTRANSITIONAL | IDN2_NFC_INPUT);
    if (code != IDN2_OK) {
        (void)snprintf(
            reason, ADDRESS_REASON_SIZE, "the domain is not an internationalised name: %s",
            idn2_strerror(code));
        return false;
    }
    *ret = arena_str(arena, str_from(ascii));
    idn2_free(ascii);
    return true;
}

bool address_parse(Str text, Arena *arena, Str *ret_address, char reason[ADDRESS_REASON_SIZE])
{
    // Longer than any valid one even before its domain is mapped: nothing further looks at it.
    if (text.len > 4 * ADDRESS_MAX) {
        return refuse(reason, "the address is longer than 254 bytes");
    }
    if (!str_is_utf8(text)) {
        return refuse(reason, "the address is not valid UTF-8");
    }
    ptrdiff_t at = str_find(text, '@');
    if (at < 0) {
        return refuse(reason, "the address has no '@'");
    }
    Str local = str_slice(text, 0, (size_t)at);
    Str domain = STR_EMPTY;
    if (!check_local(local, reason) ||
        !map_domain(str_slice(text, (size_t)at + 1, text.len), arena, &domain, reason) ||
        !check_domain(domain, reason)) {
        return false;
    }
    if (local.len + 1 + domain.len > ADDRESS_MAX) {
        return refuse(reason, "the address is longer than 254 bytes");
    }
    char *whole = arena_printf(arena, STR_FMT "@" STR_FMT, STR_ARG(local), STR_ARG(domain));
    *ret_address = str_of(whole, local.len + 1 + domain.len);
    return true;
}

bool address_name_check(Str name, char reason[ADDRESS_REASON_SIZE])
{
    if (str_has_control(name)) {
        return refuse(reason, "has a line break or another control character");
    }
    return !str_has_bidi(name) || refuse(reason, BIDI);
}
