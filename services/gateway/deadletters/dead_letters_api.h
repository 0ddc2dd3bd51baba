// SPDX-License-Identifier: Apache-2.0
// /v1/dead-letters, and POST /v1/notifications/{id}/resend: a tenant's dead letters listed,
// grouped, sent again and dropped, as `stentor dlq` does for the operator.
//
// Law: the gateway publishes no mail. Sending a letter again is an event, ResendErrorEmail, that
// names the letter; ingest does it (services/ingest/resend), which also decides what becomes of two
// that ask at once. What cannot be sent again is refused here, before that event, by the same rules
// (common/deadletter/resend_rules.h). A drop is done here: the notification's end, then the letter.
//
// Law: each is in the audit log before it is done. Killed after the entry, or after the event or
// the end (crash points gateway.letters_noted, gateway.end_stored): the letter is still there, and
// a repeat publishes the same.
#pragma once

#include "common/api/api.h"
#include "common/auditlog/audit_append.h"
#include "common/db/db.h"
#include "common/domain/event_seal.h"
#include "common/model/suppressions.h"
#include "services/gateway/deadletters/letter_scan.h"

typedef struct DeadLettersApi {
    Bus *bus;
    DbPool *pool;
    AuditLog *audit;
    MasterKey *master;
    const Suppressions *suppressions;
    EventKeys *keys; // made by dead_letters_api_add
    LetterScans scans;
} DeadLettersApi;

void dead_letters_api_add(Api *api, DeadLettersApi *letters); // borrows it
void dead_letters_api_tick(DeadLettersApi *letters);
void dead_letters_api_done(DeadLettersApi *letters);
