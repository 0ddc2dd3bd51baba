// SPDX-License-Identifier: Apache-2.0
// The tenants' vendor keys, from CONFIG (cfg.inbound.<tenant>.<vendor>). They verify callbacks.
// What is kept elsewhere is read and read again by common/credential, so that a key is replaced
// without a restart; one that cannot be read any more stays in force.
#pragma once

#include "common/base/buf.h"
#include "common/credential/secrets.h"
#include "common/vendor/vendor_callback.h"

enum { INBOUND_KEYS_MAX = 8, INBOUND_LISTED_MAX = 32 };

typedef struct InboundKeys InboundKeys;
typedef struct InboundEntry InboundEntry;

InboundKeys *inbound_keys_new(Secrets *secrets); // borrowed
void inbound_keys_free(InboundKeys *keys);
// An empty payload or a revoked key removes the entry. ERROR_PERMANENT when it cannot be read.
bool inbound_keys_changed(InboundKeys *keys, Str tenant, Str vendor, Str payload, Error *err);

// A secret was read: one that cannot be a key of its vendor's is logged, with what one looks like,
// and until another one is read it is in inbound_keys_warn().
void inbound_keys_read(InboundKeys *keys, const SecretName *name, Str text);
// What an operator should know of the keys; nothing when all are good.
void inbound_keys_warn(const InboundKeys *keys, Buf *warning);

// NULL: the tenant has none of this vendor. Valid until the loop turns.
const InboundEntry *inbound_keys_find(const InboundKeys *keys, Str tenant, Str vendor);
typedef struct InboundForce {
    CallbackKey keys[INBOUND_KEYS_MAX];
    size_t count;
    size_t missing; // in force, and not read yet or not readable: a callback may be good under them
} InboundForce;
// Those in force at now_us; slices are valid until the loop turns.
void inbound_keys_in_force(
    const InboundKeys *keys, const InboundEntry *entry, int64_t now_us, InboundForce *ret);
// Is it one of the topics of SNS, or of the tenant's own numbers (account_setting)?
bool inbound_keys_lists(const InboundEntry *entry, Str value);
// A key that fits nothing: checked where a tenant has no key, so that both take the same time.
CallbackKey inbound_keys_none(const InboundKeys *keys, const VendorCallback *vendor);
