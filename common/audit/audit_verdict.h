// SPDX-License-Identifier: Apache-2.0
// What the evidence about one notification means: pure, from the bits of an AuditEntry to a
// verdict. Law: a record is missing only when another source says that it must be there, its
// stream's age has not taken it, and nothing about the notification moves or waits any more.
#pragma once

#include "common/audit/audit_table.h"
#include "common/model/retention/retention.h"

// Each notification stands in one of these.
typedef enum AuditState {
    AUDIT_NONE, // not a notification of ours: only a vendor's callback speaks of it
    AUDIT_SENT, // a vendor took it, whatever became of it then
    AUDIT_FAILED,
    AUDIT_SUPPRESSED,
    AUDIT_IN_FLIGHT,
    AUDIT_OPEN, // its last attempt has an unknown outcome, and no process works on it
    AUDIT_STUCK // no end, and nothing will bring one: a record that it needs is missing
} AuditState;

// Sources that lack a record they must have.
typedef enum AuditMissing {
    MISSING_ACCEPT = 1,
    MISSING_REQUEST = 2,
    MISSING_DEFERRED = 4,
    MISSING_DUE = 8,
    MISSING_RENDERED = 16,
    MISSING_LEDGER = 32,
    MISSING_STATUS = 64,
    MISSING_HISTORY = 128,
    MISSING_FEED = 256,
} AuditMissing;
enum { MISSING_KINDS = 9 };

// What --repair can do about it.
typedef enum AuditRemedy {
    REMEDY_NONE,     // nothing: there is no accept row, or nothing is missing
    REMEDY_DRIVE,    // publish it again from the accept log: something is missing, or an unknown
                     // outcome that no delivery will meet (the channel's policy then decides)
    REMEDY_REBUILD,  // stentor rebuild history
    REMEDY_OPERATOR, // it was sent or tried, and the ledger does not know: driven again it would be
                     // sent again
} AuditRemedy;

// Notifications created before these times may have left the stream by its age.
typedef struct AuditAges {
    int64_t request_us;
    int64_t deferred_us;
    int64_t rendered_us;
    int64_t status_us;
    int64_t feed_us;
    // The same of rows of Postgres that retention drops; of history by class.
    int64_t accept_us;
    int64_t ledger_us;
    int64_t history_us[RETENTION_CLASS_COUNT];
} AuditAges;

typedef struct AuditVerdict {
    AuditState state;
    uint16_t missing; // AuditMissing
    bool unknown;     // an attempt has or had an unknown outcome: the only way to a double
    bool doubled;     // two acceptances that no unknown explains
} AuditVerdict;

// settled_us: what moved later than this may still be on its way, and is in flight.
AuditVerdict audit_classify(const AuditEntry *entry, const AuditAges *ages, int64_t settled_us);
AuditRemedy audit_remedy(const AuditEntry *entry, uint16_t missing);

const char *audit_missing_name(AuditMissing one); // "accept_log", "REQUEST" ...
