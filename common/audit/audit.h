// SPDX-License-Identifier: Apache-2.0
// One audit under way: what was asked, where it reads, what it has read. The order in which the
// sources are read (audit.c) is what keeps motion from looking like a loss.
#pragma once

#include <libpq-fe.h>

#include "common/audit/audit_table.h"
#include "common/audit/audit_verdict.h"
#include "common/session/session.h"

typedef struct AuditOptions {
    int64_t since_us;
    int64_t until_us;
    int64_t grace_us;
    int64_t limit; // findings that are listed; 0: all
    int64_t wait_us;
    const char *tenant; // NULL: all
    bool repair;
} AuditOptions;

typedef struct Audit {
    AuditOptions options;
    AuditTable *table;
    Session *session;
    PGconn *conn;
    AuditAges ages;
    int64_t kept_us;    // of before this only what the accept log still holds is audited; 0: all
    int64_t read_at_us; // when this reading began
    uint64_t rows;      // read from all sources, over all readings
} Audit;

typedef struct AuditSummary {
    uint64_t accepted, sent, failed, suppressed, in_flight, unknown, lost, doubled;
    int64_t oldest_in_flight_us; // when it was accepted; 0: none
} AuditSummary;

// Reads every source once and leaves in each entry what is missing of it.
bool audit_read(Audit *audit, Error *err);
bool audit_misses_any(const Audit *audit); // so another reading is needed
// Counts; a record is lost only when two readings, some seconds apart, both miss it.
AuditSummary audit_sum(const Audit *audit);
AuditVerdict audit_verdict(const Audit *audit, const AuditEntry *entry);
