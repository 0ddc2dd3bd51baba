// SPDX-License-Identifier: Apache-2.0
// SendGrid's signed event webhook: ECDSA P-256 with SHA-256 over timestamp || raw body. Pure; it
// runs before anything is parsed. Source: twilio.com/docs/sendgrid, "Event Webhook Security
// Features".
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

typedef struct SendgridKey SendgridKey;

// `text`: base64 of the public key's SPKI DER. ERROR_PERMANENT when it is not a P-256 key.
SendgridKey *sendgrid_key_new(Str text, Error *err);
// A random key without its private half: checked where there is no key, so that both take the same
// time.
SendgridKey *sendgrid_key_random(void);
void sendgrid_key_free(SendgridKey *key); // NULL-safe

// `signature`: base64 of the DER signature. false unless it is valid and the timestamp is
// well-formed.
bool sendgrid_verify(const SendgridKey *key, Str timestamp, Str signature, Str body);

// Ten digits: seconds from 2001 to 2286. The signature is over timestamp || body without a border,
// so only a fixed length keeps bytes from being moved between the two.
bool sendgrid_is_timestamp(Str timestamp);
// Is it within max_age_s of now, either way? max_age_s 0: not checked.
bool sendgrid_is_fresh(Str timestamp, int64_t now_us, int64_t max_age_s);
