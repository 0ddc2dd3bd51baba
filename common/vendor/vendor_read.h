// SPDX-License-Identifier: Apache-2.0
// What the vendors' readers share: what a status means by itself, the answer's JSON, a vendor's
// text made fit for the ledger. Law: an answer is foreign; whatever it holds there is a result, and
// nothing that is too big, too deep or of the wrong type is read.
#pragma once

#include <jansson.h>

#include "common/vendor/vendor_api.h"

enum { VENDOR_TEXT_MAX = 512, VENDOR_MESSAGE_ID_MAX = 200 };

// By the status alone: 2xx accepted; 408 and 5xx but 503 unknown; 503, 421, 425 retry; 429
// throttled; 3xx, 401 to 405 but 403's like config; other 4xx terminal. Sets every field, the code
// to the status, retry_after_ms to Retry-After.
void vendor_read_status(const VendorAnswer *answer, Arena *arena, SendResult *ret);
// What the vendor's own documents say of one of its codes.
typedef struct VendorRow {
    const char *code;
    SendState state; // SEND_ANSWERED or SEND_UNKNOWN
    ReplyClass reply;
    uint32_t retry_after_ms; // unless the answer says one itself
} VendorRow;
// The row with this code takes the place of what the status says; false: there is none.
bool vendor_read_row(const VendorRow *rows, size_t count, Str code, SendResult *ret);
void vendor_read_as(SendState state, ReplyClass reply, SendResult *ret);

// The body as an object; NULL: it is none, is not JSON, is cut, has over 100,000 values or is
// nested too deep. Lives in the arena.
json_t *vendor_answer_object(const VendorAnswer *answer, Arena *arena);
// NULL-safe; empty unless it is a string.
Str vendor_member_text(const json_t *object, const char *name);
int64_t vendor_member_int(const json_t *object, const char *name, int64_t otherwise);

// What a vendor gave back of the values that build() had put into the mail: 1 this attempt's, 0
// another one's, -1 it does not say.
int vendor_is_attempt(const json_t *values, const VendorMail *mail, Arena *arena);

// "<code> <text>" in one line of UTF-8 with masked addresses, at most VENDOR_TEXT_MAX bytes.
Str vendor_clean_text(Str code, Str text, Arena *arena);
// Without <>; empty when it is too long or not printable.
Str vendor_clean_id(Str id, Arena *arena);
bool vendor_text_has(Str text, const char *needle); // of ASCII, without case
// The price of the message; what is no amount or no currency is left out.
void vendor_read_price(Str amount, Str currency, Arena *arena, SendResult *ret);
// Of a header that says when the limit is over: a time in seconds since 1970, or seconds from now.
// At most a day; 0: none.
uint32_t vendor_reset_ms(const VendorAnswer *answer, Str name);
