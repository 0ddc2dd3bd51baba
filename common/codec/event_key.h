// SPDX-License-Identifier: Apache-2.0
// The key of a tenant's events (stream EVENTS, their dead letters): derived (HKDF) from an epoch
// key, so it needs no table, no round trip and no row in a backup, and it is gone with the epoch
// key, at the latest two weeks after the event. In an installation without epoch keys it is derived
// from the master key, and the events end by age. Pure.
#pragma once

#include "common/codec/epoch_keys.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"

// What an event says of its key: Sealed.key_subject (event.proto).
typedef struct EventKeyName {
    uint8_t bytes[KEY_SUBJECT_LEN];
} EventKeyName;

// The one that seals now.
EventKeyName event_key_current(const MasterKey *master, Str tenant);
// The one that a sealed event names. false: it is no key of this tenant's events.
bool event_key_named(Str key_subject, Str tenant, EventKeyName *ret);
// ERROR_PERMANENT: the epoch key is not in the folder (destroyed, or lost), or the master key not
// in the file; its id is named.
DataKey *event_key_derive(
    const MasterKey *master, Str tenant, const EventKeyName *name, Error *err);
// It is derived from an epoch key that is not held.
bool event_key_is_missing(const MasterKey *master, const EventKeyName *name);
