// SPDX-License-Identifier: Apache-2.0
// SendGrid's signed event webhook: ECDSA P-256 with SHA-256 over timestamp || raw body. Pure;
// nothing is parsed before. Source: twilio.com/docs/sendgrid, "Event Webhook Security Features".
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

typedef struct SendgridKey SendgridKey;

// `text`: base64 of the public key's SPKI DER. ERROR_PERMANENT when it is not a P-256 key.
SendgridKey *sendgrid_key_new(Str text, Error *err);
void sendgrid_key_free(SendgridKey *key); // NULL-safe

// `signature`: base64 of the DER signature. false for anything but a good one.
bool sendgrid_verify(const SendgridKey *key, Str timestamp, Str signature, Str body);

// Is the signed timestamp (seconds, decimal) within max_age_s of now, either way? max_age_s 0: not
// asked.
bool sendgrid_is_fresh(Str timestamp, int64_t now_us, int64_t max_age_s);
