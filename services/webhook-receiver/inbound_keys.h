// SPDX-License-Identifier: Apache-2.0
// The tenants' vendor keys, from CONFIG (cfg.inbound.<tenant>.<vendor>). They verify callbacks.
#pragma once

#include "services/webhook-receiver/sendgrid_verify.h"

typedef struct InboundKeys InboundKeys;

InboundKeys *inbound_keys_new(void);
void inbound_keys_free(InboundKeys *keys);
// An empty payload or a revoked key removes the entry. ERROR_PERMANENT when it cannot be read.
bool inbound_keys_changed(InboundKeys *keys, Str tenant, Str vendor, Str payload, Error *err);
const SendgridKey *inbound_keys_sendgrid(const InboundKeys *keys, Str tenant); // NULL: none
// A key that no signature matches: checked where a tenant has no key, so that both take the same
// time.
const SendgridKey *inbound_keys_none(const InboundKeys *keys);
