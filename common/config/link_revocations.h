// SPDX-License-Identifier: Apache-2.0
// Links in mails that are valid no more: cfg.revocation.<tenant>.<key>, made by an operator or an
// erasure. A link (unsubscribe, preferences, tracked) is revoked when an entry about its tenant,
// its notification, its recipient or its address is newer than it. The keys: "all", "ntf.<id>",
// "rcp.<id>", "adr.<hex of the address hash>". Pure but for its memory.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "stentor/v1/config.pb-c.h"

#define LINK_REVOCATION_KIND "revocation"

enum { LINK_REVOCATION_KEY_SIZE = 80, LINK_WHO_LEN = 8 };

typedef struct LinkRevocations LinkRevocations;

// Whose link it is. What a link does not say is empty.
typedef struct LinkOwner {
    Str tenant;
    Str notification_id;
    Str recipient_id;
    Str who; // the first LINK_WHO_LEN bytes of the address hash, or all of it
    int64_t issued_at_us; // of a token: in whole seconds, so one of the same second is revoked too
} LinkOwner;

LinkRevocations *link_revocations_new(void);
void link_revocations_free(LinkRevocations *revocations); // NULL-safe
// tenant and key are the subject's; an empty payload takes the entry back. ERROR_PERMANENT when it
// is no revocation or another subject's.
bool link_revocations_put(
    LinkRevocations *revocations, Str tenant, Str key, Str payload, Error *err);
bool link_is_revoked(const LinkRevocations *revocations, const LinkOwner *owner);

// "ntf.ntf_...": the subject's tokens after the tenant. false: the entry names more than one, or
// what it names is none.
bool link_revocation_key(
    char out[LINK_REVOCATION_KEY_SIZE], const Stentor__V1__LinkRevocation *entry);
// The message that stores the entry; its id is derived from what it says, so that a repeat is one.
// Everything lives in `arena`. ERROR_PERMANENT names the field.
bool link_revocation_event(
    const Stentor__V1__LinkRevocation *entry, Arena *arena, BusOut *ret, Error *err);
