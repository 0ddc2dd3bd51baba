// SPDX-License-Identifier: Apache-2.0
// Signatures of Standard Webhooks 1.0.0, version v1: HMAC-SHA256 over "<id>.<timestamp>.<body>",
// in standard base64. Pure. Source: github.com/standard-webhooks, spec/standard-webhooks.md.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

enum {
    WEBHOOK_KEY_MIN = 24,
    WEBHOOK_KEY_MAX = 64,
    WEBHOOK_SIGNATURE_SIZE = 4 + 44, // "v1,", base64 and a space or NUL
};

typedef struct WebhookKey {
    uint8_t bytes[WEBHOOK_KEY_MAX];
    size_t len;
} WebhookKey;

// "whsec_<base64>" of 24 to 64 bytes. ERROR_PERMANENT says what is expected, and nothing of the
// secret.
bool webhook_key_parse(Str secret, WebhookKey *ret, Error *err);
// Appends "v1,<base64>", behind a space when `out` has a signature already: a receiver that knows
// one of several secrets accepts it.
void webhook_sign(const WebhookKey *key, Str id, int64_t timestamp_s, Str body, Buf *out);
