// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vendor_text.h"

#include "common/vendor/vendor_build.h"

enum { PHONE_DIGITS_MIN = 4, PHONE_DIGITS_MAX = 15, MICROS_DIGITS = 6, UNITS_DIGITS_MAX = 9 };

// E.164: '+' and digits.
static bool is_phone(Str text)
{
    bool good = text.len > PHONE_DIGITS_MIN && text.len <= PHONE_DIGITS_MAX + 1 &&
                text.ptr[0] == '+' && text.ptr[1] != '0';
    for (size_t i = 1; good && i < text.len; i++) {
        good = ascii_is_digit(text.ptr[i]);
    }
    return good;
}

uint32_t vendor_text_units(Str text)
{
    uint32_t units = 0;
    for (size_t step; text.len > 0; text = str_slice(text, step, text.len)) {
        step = str_utf8_step(text);
        units += step == 4 ? 2 : 1;
        step = step > 0 ? step : 1;
    }
    return units;
}

bool vendor_check_phone(const VendorMail *mail, Error *err)
{
    return is_phone(mail->to.address) ||
           error_set(
               err, ERROR_PERMANENT,
               "the message's 'to' is not a phone number such as +4915112345678");
}

Str vendor_attempt_ref(const VendorMail *mail, Arena *arena)
{
    return str_from(
        arena_printf(arena, STR_FMT "-%d", STR_ARG(mail->notification_id), (int)mail->attempt));
}

bool vendor_check_text(
    const VendorApi *api, const VendorMail *mail, const VendorAccount *account, uint32_t units_max,
    Error *err)
{
    if (!vendor_check_account(api, account, err) || !vendor_check_phone(mail, err)) {
        return false;
    }
    if (mail->text.len == 0 || !str_is_utf8(mail->text)) {
        return error_set(
            err, ERROR_PERMANENT, "the message's 'text' is %s",
            mail->text.len == 0 ? "empty" : "not UTF-8");
    }
    uint32_t units = vendor_text_units(mail->text);
    return units <= units_max || error_set(
                                     err, ERROR_PERMANENT,
                                     "the message's 'text' has %u characters (an emoji counts "
                                     "two), and %s takes at most %u",
                                     units, api->name, units_max);
}

// The n-th of a list with ',' between.
static Str sender_at(Str list, size_t n)
{
    Str sender = STR_EMPTY;
    for (size_t i = 0; i <= n && str_split(&list, ',', &sender); i++) {
    }
    return str_trim(sender);
}

Str vendor_sender(const VendorMail *mail, const VendorAccount *account)
{
    Str urgent = mail->urgent ? vendor_setting(account, STR("from_urgent")) : STR_EMPTY;
    Str list = urgent.len > 0 ? urgent : vendor_setting(account, STR("from"));
    Str rest = list, one;
    size_t count = 0;
    while (list.len > 0 && count < VENDOR_SENDERS_MAX && str_split(&rest, ',', &one)) {
        count++;
    }
    return count > 0 ? sender_at(list, str_hash(mail->to.address) % count) : STR_EMPTY;
}

int64_t vendor_money(Str text)
{
    bool signed_text = str_starts(text, STR("-"));
    Str digits = signed_text ? str_slice(text, 1, text.len) : text;
    int64_t micros = 0;
    ptrdiff_t dot = str_find(digits, '.');
    size_t whole = dot >= 0 ? (size_t)dot : digits.len;
    if (whole > UNITS_DIGITS_MAX || digits.len == 0) {
        return 0;
    }
    for (size_t i = 0; i < digits.len; i++) {
        bool counts = i < whole + 1 + MICROS_DIGITS;
        if (i != whole && !ascii_is_digit(digits.ptr[i])) {
            return 0;
        }
        micros = i != whole && counts ? micros * 10 + (digits.ptr[i] - '0') : micros;
    }
    size_t places = dot >= 0 ? digits.len - whole - 1 : 0;
    for (size_t i = places; i < MICROS_DIGITS; i++) {
        micros *= 10;
    }
    return micros;
}
