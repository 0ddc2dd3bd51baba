// SPDX-License-Identifier: Apache-2.0
// A recipient's choices, as they stand, and stored: by the link of a mail (preferences_public.h) or
// by an inbox token (inbox_preferences.h). Law: stored once PEOPLE and CONFIG have all that
// changes; only opt-outs are ended here, never a bounce, a complaint or what an operator
// suppressed.
#pragma once

#include "common/auditlog/audit_append.h"
#include "common/bus/jetstream/bus.h"
#include "common/db/keyring.h"
#include "common/http/server.h"
#include "common/model/suppressions.h"
#include "common/recipients/people_wait.h"
#include "services/gateway/preferences/preference_choices.h"
#include "services/gateway/recipients/recipients_write.h"

typedef struct PreferenceParts {
    Bus *bus;
    DbPool *pool;
    Keyring *keyring;
    PeopleWait *wait;
    AuditLog *audit;
    const Suppressions *known;
} PreferenceParts;

// Lives in the request's arena.
typedef struct PreferenceCall {
    const PreferenceParts *parts;
    HttpRequest *http;
    Str tenant;
    Str recipient_id;    // empty: an address without a record
    Str notification_id; // of the mail; empty: none
    const char *said_by;
    // Of e-mails; NULL: that of the record, if it has one.
    const uint8_t *address_hash;
    // What stands. The record has channels[CHANNEL_INAPP] only where it has such an address.
    PreferenceState state;
    PreferenceChoice choices[CHOICES_MAX];
    size_t count;
    // Of preference_look_up() and preference_store(); err NULL: done.
    void (*done)(struct PreferenceCall *call, const Error *err);
    PreferencePlan plan;
    RecipientsWrite write;
    size_t waiting; // stores of suppressions
    Error failed;
} PreferenceCall;

void preference_look_up(PreferenceCall *call);
// `choices`, as they are wanted.
void preference_store(PreferenceCall *call);
// Why nothing can be stored; NULL: it can.
const char *preference_store_unready(const PreferenceParts *parts);
