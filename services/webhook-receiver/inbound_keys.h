// SPDX-License-Identifier: Apache-2.0
// The tenants' vendor keys, from CONFIG (cfg.inbound.<tenant>.<vendor>). They verify callbacks.
// What is kept elsewhere (a file, the environment) is read when it is needed, and again every 30 s,
// so that a key is replaced without a restart; one that cannot be read any more stays in force.
#pragma once

#include "common/vendor/vendor_callback.h"

enum { INBOUND_KEYS_MAX = 8, INBOUND_TOPICS_MAX = 32 };

typedef struct InboundKeys InboundKeys;
typedef struct InboundEntry InboundEntry;

InboundKeys *inbound_keys_new(void);
void inbound_keys_free(InboundKeys *keys);
// An empty payload or a revoked key removes the entry. ERROR_PERMANENT when it cannot be read.
bool inbound_keys_changed(InboundKeys *keys, Str tenant, Str vendor, Str payload, Error *err);

// NULL: the tenant has none of this vendor. Valid until the loop turns.
InboundEntry *inbound_keys_find(const InboundKeys *keys, Str tenant, const VendorCallback *vendor);
// Those in force at now_us; the slices are the entry's. How many.
size_t inbound_keys_in_force(
    InboundEntry *entry, int64_t now_us, CallbackKey ret[INBOUND_KEYS_MAX]);
bool inbound_keys_has_topic(const InboundEntry *entry, Str topic);
// A key that fits nothing: checked where a tenant has no key, so that both take the same time.
CallbackKey inbound_keys_none(const InboundKeys *keys, const VendorCallback *vendor);
