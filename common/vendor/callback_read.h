// SPDX-License-Identifier: Apache-2.0
// What the vendors' `events` have in common: JSON of a stranger's making as slices of bounded,
// printable text. Everything lives in the arena.
#pragma once

#include <jansson.h>

#include "common/vendor/vendor_callback.h"

// NULL and ERROR_PERMANENT: not JSON, or more of it than a callback may hold.
const json_t *callback_json(Str body, Arena *arena, Error *err);

// Empty when it is not there or no text. object may be NULL or no object.
Str callback_text(const json_t *object, const char *name);
// A vendor's id: of at most 200 printable bytes, else empty.
Str callback_id(const json_t *object, const char *name);
Str callback_email(Str text);             // empty: no address
Str callback_plain(Str text, size_t max); // empty: longer, not UTF-8, or with control characters
Str callback_phone(
    Str digits, Arena *arena); // "+4915..." of the same with or without '+'; empty: none
// Whom a callback of the channel is about, as addresses of it are written; empty: none.
Str callback_address(Channel channel, Str text, Arena *arena);
Str callback_words(Str text, Arena *arena); // addresses masked, cut at CALLBACK_TEXT_MAX
Str callback_cut(Str text, size_t max);     // where a character begins
// Of the first of the names that is one of ours: the id itself, or our Message-ID (in <> or not).
Str callback_notification(const json_t *object, const char *const *names);
Str callback_notification_of(Str text);
// "<notification id>-<attempt>", as vendor_attempt_ref() wrote it; else the event is left as it is.
void callback_attempt_ref(Str text, CallbackEvent *event);
int32_t callback_attempt(const json_t *object, const char *name); // a number, or its text; 0: none
int64_t callback_unix(const json_t *value); // seconds as a number or as text; 0: none
int64_t callback_time(Str text);            // RFC 3339; 0: none
// "5.1.1" out of a reply such as "550 5.1.1 unknown"; empty: it has none.
Str callback_enhanced(Str text);
// What a vendor says that the message costs, as text; what is no amount or no currency is left out.
void callback_price(CallbackEvent *event, Str amount, Str currency, Arena *arena);
uint32_t callback_segments(Str text); // 0: none
// Opened or followed by a program: the proxies of Apple, Google and Yahoo, and known scanners.
bool callback_is_machine(Str user_agent);

// A kind of event that changes something.
typedef struct CallbackKind {
    const char *type;
    const char *detail; // NULL: any
    Status status;
    Outcome outcome;
    const char *reason_code;
    SuppressionReason suppress;
} CallbackKind;
// The first that fits; NULL: none does.
const CallbackKind *callback_kind(const CallbackKind *kinds, size_t count, Str type, Str detail);
CallbackEvent callback_event(const CallbackKind *kind);
// The same of a failure with a code: what the vendor's reasons say of the code in an answer they
// say of it in a report.
CallbackEvent callback_failure(const CallbackKind *kind, const VendorReason *reasons, Str code);
// What `from` wrote (empty: not known); STOP is an opt-out.
CallbackEvent callback_reply(
    const CallbackReply *reply, Str from, Str message_id, int64_t at_us, Str account);
// A batch of at most `count` events, to be filled.
CallbackBatch callback_batch(Arena *arena, size_t count);
// The array of events that the body is, and a batch of its size. NULL: ERROR_PERMANENT.
const json_t *callback_list(Str body, Arena *arena, CallbackBatch *ret, Error *err);
