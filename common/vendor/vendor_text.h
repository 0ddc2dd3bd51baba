// SPDX-License-Identifier: Apache-2.0
// What the builders of short messages share: SMS and what else goes to a phone number. Pure.
#pragma once

#include "common/vendor/vendor_api.h"

enum { VENDOR_SENDERS_MAX = 50 };

// vendor_check_account(), and ERROR_PERMANENT when the number is none, or the text is empty, no
// UTF-8, or longer than units_max UTF-16 units. (Segments are limited where it is rendered.)
bool vendor_check_text(
    const VendorApi *api, const VendorMail *mail, const VendorAccount *account, uint32_t units_max,
    Error *err);
// ERROR_PERMANENT when `to` is not a phone number.
bool vendor_check_phone(const VendorMail *mail, Error *err);
// "<notification id>-<attempt>": names the attempt where a vendor repeats what it was given.
Str vendor_attempt_ref(const VendorMail *mail, Arena *arena);
uint32_t vendor_text_units(Str text); // of UTF-16: an emoji counts two
// One of the setting `from` (of `from_urgent`, where it is set, for urgent ones): several stand
// there with ',' between, and a recipient always gets the same. Empty: it is not set.
Str vendor_sender(const VendorMail *mail, const VendorAccount *account);
// "-0.00750" as 7500 millionths, whatever its sign; 0: none.
int64_t vendor_money(Str text);
