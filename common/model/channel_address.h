// SPDX-License-Identifier: Apache-2.0
// Addresses of every channel: what is one, and how it is shown to a reader who need not know it.
// Pure.
#pragma once

#include "common/base/buf.h"
#include "common/model/address.h"
#include "common/model/enums.h"

enum { PEOPLE_ADDRESS_MAX = 4096 }; // of push tokens; the others are shorter

// email: a mailbox (address.h). sms, whatsapp, voice: a phone number in E.164, "+4915112345678"
// (spaces, dots, dashes and brackets in it are dropped). push: a device's token, or a browser's
// subscription as JSON (push_address.h). inapp: an id of the application's. webhook: an http or
// https URL. *ret is normalised, in `arena`. false: `reason` says what is wrong.
bool people_address_check(
    Channel channel, Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE]);

// "ali***@example.com", "+49***78", "dGh***". Of a short one less is shown.
void people_address_mask(Channel channel, Str address, Buf *out);
void people_name_mask(Str name, Buf *out); // "A***"
