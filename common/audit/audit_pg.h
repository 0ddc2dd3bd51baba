// SPDX-License-Identifier: Apache-2.0
// The audit's reading of Postgres: page by page through definer functions (migrations:
// *_audit.sql), so that neither side holds more than a page, whatever the span.
#pragma once

#include "common/audit/audit.h"

PGconn *audit_pg_open(const char *url, Error *err);
// Before each of these something may have been dropped past its retention; 0: nothing was.
typedef struct AuditKept {
    int64_t since_us;                          // rows of the accept log, or of the ledger
    int64_t ledger_us;                         // of the ledger
    int64_t history_us[RETENTION_CLASS_COUNT]; // of history
} AuditKept;
bool audit_read_kept(PGconn *conn, AuditKept *ret, Error *err);

bool audit_read_accepts(Audit *audit, Error *err);
bool audit_read_due(Audit *audit, Error *err);
bool audit_read_digests(Audit *audit, Error *err);
bool audit_read_ledger(Audit *audit, Error *err);
bool audit_read_history(Audit *audit, Error *err);
bool audit_read_attempts(Audit *audit, Error *err);

// How far history has folded each stream; "stream" -> sequence.
enum { AUDIT_POSITIONS_MAX = 64 };
typedef struct AuditPositions {
    size_t count;
    struct {
        char stream[32];
        uint64_t sequence;
    } rows[AUDIT_POSITIONS_MAX];
} AuditPositions;
bool audit_read_positions(Audit *audit, AuditPositions *ret, Error *err);

// ---- for the repair: accept rows, and their events ----

typedef struct AcceptPage {
    PGresult *res; // of ingest.audit_accepts; PQclear it
    int rows;
} AcceptPage;

// after: the last page's last accept_id; -1 for the first page. An empty page ends it.
bool audit_accept_page(Audit *audit, int64_t after, AcceptPage *ret, Error *err);
int64_t accept_page_id(const AcceptPage *page, int row);
Str accept_page_tenant(const AcceptPage *page, int row);
int64_t accept_page_bytes(const AcceptPage *page, int row);
// Walks the row's notification ids: for (size_t at = 0; accept_page_next(&page, row, &at, &id);).
bool accept_page_next(const AcceptPage *page, int row, size_t *at, Str *ret_id);
// accept_id and events of the rows, which are "{1,2,3}".
PGresult *audit_accept_events(Audit *audit, const char *accept_ids, Error *err);
