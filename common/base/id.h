// SPDX-License-Identifier: Apache-2.0
// Ids: a prefix of domain.md and a ULID (48 bits of milliseconds, 80 random bits, Crockford base32,
// 26 characters). Within one process ids of the same millisecond ascend. Event ids are derived, not
// random: common/codec/hash.h.
#pragma once

#include "common/base/str.h"

enum { ID_SIZE = 32, ULID_LEN = 26, EVENT_ID_LEN = 22, EVENT_ID_SIZE = 23 };

// prefix such as "ntf_"; out gets prefix + ULID + NUL.
void id_new(const char *prefix, int64_t now_us, char out[ID_SIZE]);
// The same from given 10 bytes instead of random ones: a deterministic id for a known cause.
void id_derived(const char *prefix, int64_t at_us, const uint8_t entropy[10], char out[ID_SIZE]);
// true when `id` is prefix + a valid ULID; *ret_ms (may be NULL) is its time.
bool id_parse(Str id, const char *prefix, int64_t *ret_ms);
// [a-z0-9_-]{1,32}, not beginning with '-' or '_': fit for a subject token, a row and an object
// key.
bool id_is_tenant(Str text);
// [a-z0-9_-]{1,64}
bool id_is_key(Str text);
// getrandom each time, nothing is kept; ends the process when the system has none.
void random_bytes(void *out, size_t len);
double random_fraction(void); // in [0, 1)
// base64url without padding; out needs 4 * ((len + 2) / 3) + 1 bytes.
void base64url_encode(const void *data, size_t len, char *out);
// Without padding; the bits that are left over must be zero, so that bytes have one spelling.
bool base64url_decode(Str text, uint8_t *out, size_t out_size, size_t *ret_len);
// Standard base64 with padding. false when it is not, or longer than out_size.
bool base64_decode(Str text, uint8_t *out, size_t out_size, size_t *ret_len);
int hex_value(char c);                                    // 0..15; -1: no hexadecimal digit
void hex_encode(const void *data, size_t len, char *out); // out: 2 * len + 1
bool hex_decode(Str text, uint8_t *out, size_t out_size, size_t *ret_len);
