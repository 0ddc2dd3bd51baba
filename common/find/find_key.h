// SPDX-License-Identifier: Apache-2.0
// What notifications are found by, as keys: the first 8 bytes of a keyed hash over kind, tenant and
// value, so that a row names no address and no caller's id, and two tenants' values never meet. The
// hash is made with the oldest hash key in use, as derived ids are, so a rotation changes no key;
// an address's is the beginning of its address_hash, of which there is one for each hash key.
#pragma once

#include "common/codec/hash.h"
#include "common/codec/master_key.h"

// Frozen: they are in the hashes and in the rows.
typedef enum FindKind {
    FIND_RECIPIENT = 1,
    FIND_ADDRESS,        // value: an address_hash
    FIND_CORRELATION,    //
    FIND_SOURCE_EVENT,   //
    FIND_BATCH,          //
    FIND_TEMPLATE,       // the template's key
    FIND_END,            // "failed", "bounced", "suppressed", "complained", "unknown"
    FIND_VENDOR_MESSAGE, // a vendor's own id of a message
} FindKind;

#define FIND_END_UNKNOWN "unknown" // an attempt of which it is unknown whether it was a sending

int64_t find_key(const MasterKey *master, FindKind kind, Str tenant, Str value);
// Whether a status is an end that has entries of its own.
bool find_is_end(Status status);
// The vendor's id of an SMTP mail is its Message-ID, which begins with the notification's id.
bool find_is_own_message_id(Str vendor_message_id, Str notification_id);
