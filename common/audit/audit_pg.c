// SPDX-License-Identifier: Apache-2.0
#include "common/audit/audit_pg.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/db/db.h"
#include "common/model/status.h"

enum { PAGE_ROWS = 20000, ACCEPT_PAGE_ROWS = 500, PARAMS_MAX = 8, CURSOR_SIZE = 64 };
#define PAGE_TEXT "20000"
#define ACCEPT_PAGE_TEXT "500"

static const int64_t MINUTE_US = 60 * INT64_C(1000000);
// A command may wait on EVENTS, for at most its 7 days, between the time in its id and its accept.
static const int64_t ACCEPT_DELAY_US = 7 * 86400 * INT64_C(1000000);

PGconn *audit_pg_open(const char *url, Error *err)
{
    PGconn *conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK) {
        error_set(err, ERROR_TRANSIENT, "cannot connect to postgres: %s", PQerrorMessage(conn));
        PQfinish(conn);
        return NULL;
    }
    return conn;
}

bool audit_read_kept(PGconn *conn, AuditKept *ret, Error *err)
{
    PGresult *res = PQexecParams(
        conn,
        "SELECT nullif(greatest(i, d), '-infinity'), nullif(d, '-infinity'), h.record, h.standard, "
        "h.brief "
        "FROM ingest.audit_since() i, dispatcher.audit_since() d, stentor.history_audit_since() h",
        0, NULL, NULL, NULL, NULL, 1);
    bool ok = PQresultStatus(res) == PGRES_TUPLES_OK;
    if (ok) {
        *ret = (AuditKept){
            .since_us = db_get_time(res, 0, 0),
            .ledger_us = db_get_time(res, 0, 1),
        };
        for (int i = 0; i < RETENTION_CLASS_COUNT; i++) {
            ret->history_us[i] = db_get_time(res, 0, 2 + i);
        }
    } else {
        error_set(err, ERROR_TRANSIENT, "postgres: %s", PQerrorMessage(conn));
    }
    PQclear(res);
    return ok;
}

// Text parameters, binary answer. NULL: failed.
static PGresult *query(
    Audit *audit, const char *sql, int count, const char *const *params, Error *err)
{
    PGresult *res = PQexecParams(audit->conn, sql, count, NULL, params, NULL, NULL, 1);
    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        error_set(err, ERROR_TRANSIENT, "postgres: %s", PQerrorMessage(audit->conn));
        PQclear(res);
        return NULL;
    }
    audit->rows += (uint64_t)PQntuples(res);
    return res;
}

static void note_moved(AuditEntry *entry, int64_t at_us)
{
    entry->moved_us = at_us > entry->moved_us ? at_us : entry->moved_us;
}

// ---- pages by key ----

// Where the next page begins: the key of the last row, as text.
typedef struct Cursor {
    char time[CLOCK_RFC3339_SIZE];
    char id[CURSOR_SIZE];
    char number[24];
    char tenant[CURSOR_SIZE];
} Cursor;

typedef struct DefinerQuery {
    const char *sql;
    int params[PARAMS_MAX]; // of a page, by Param
    int param_count;
    bool times; // of a key: since, until are times; else they are ids
    void (*see)(Audit *audit, const PGresult *res, int row);
    void (*keep)(Cursor *cursor, const PGresult *res, int row);
} DefinerQuery;

typedef enum Param { P_SINCE, P_UNTIL, P_TENANT, P_TIME, P_ID, P_NUMBER, P_KEY_TENANT } Param;

static void keep_text(char *out, size_t size, const PGresult *res, int row, int column)
{
    (void)str_to_c(db_get_text(res, row, column), out, size);
}

static bool read_pages(Audit *audit, const DefinerQuery *of, Error *err)
{
    Cursor cursor = {.time = "-infinity", .number = "0"};
    char since[CLOCK_RFC3339_SIZE];
    char until[CLOCK_RFC3339_SIZE];
    clock_format(audit->options.since_us, since);
    clock_format(audit->options.until_us, until);
    char from_id[ID_SIZE];
    char until_id[ID_SIZE];
    static const uint8_t zeros[10];
    id_derived("ntf_", audit->options.since_us, zeros, from_id);
    id_derived("ntf_", audit->options.until_us, zeros, until_id);
    const char *values[] = {
        [P_SINCE] = of->times ? since : from_id,
        [P_UNTIL] = of->times ? until : until_id,
        [P_TENANT] = audit->options.tenant,
        [P_TIME] = cursor.time,
        [P_ID] = cursor.id,
        [P_NUMBER] = cursor.number,
        [P_KEY_TENANT] = cursor.tenant,
    };
    int rows = PAGE_ROWS;
    while (rows == PAGE_ROWS) {
        const char *params[PARAMS_MAX];
        for (int i = 0; i < of->param_count; i++) {
            params[i] = values[of->params[i]];
        }
        PGresult *res = query(audit, of->sql, of->param_count, params, err);
        if (res == NULL) {
            return false;
        }
        rows = PQntuples(res);
        for (int row = 0; row < rows; row++) {
            of->see(audit, res, row);
        }
        if (rows > 0) {
            of->keep(&cursor, res, rows - 1);
        }
        PQclear(res);
    }
    return true;
}

// ---- the clock ----

static void see_due(Audit *audit, const PGresult *res, int row)
{
    AuditEntry *entry =
        audit_entry(audit->table, db_get_text(res, row, 1), db_get_text(res, row, 2));
    if (entry != NULL) {
        entry->seen |= SEEN_DUE;
    }
}

static void keep_due(Cursor *cursor, const PGresult *res, int row)
{
    keep_text(cursor->id, sizeof cursor->id, res, row, 0);
}

bool audit_read_due(Audit *audit, Error *err)
{
    static const DefinerQuery pages = {
        "SELECT * FROM digest_flusher.audit_due($1, $2, $3, $4, " PAGE_TEXT ")",
        {P_SINCE, P_UNTIL, P_TENANT, P_ID},
        4,
        false,
        see_due,
        keep_due};
    return read_pages(audit, &pages, err);
}

static void see_digest(Audit *audit, const PGresult *res, int row)
{
    AuditEntry *entry =
        audit_entry(audit->table, db_get_text(res, row, 0), db_get_text(res, row, 1));
    if (entry != NULL) {
        entry->seen |= SEEN_DIGEST;
    }
}

bool audit_read_digests(Audit *audit, Error *err)
{
    static const DefinerQuery pages = {
        "SELECT * FROM digest_flusher.audit_digests($1, $2, $3, $4, " PAGE_TEXT ")",
        {P_SINCE, P_UNTIL, P_TENANT, P_ID},
        4,
        false,
        see_digest,
        keep_due};
    return read_pages(audit, &pages, err);
}

// ---- the ledger ----

static void see_outcome(AuditEntry *entry, Str state, uint32_t bit, bool by_vendor, bool by_inapp)
{
    entry->ledger_reported |= by_vendor ? bit : 0;
    if (str_eq(state, STR("sent"))) {
        entry->seen |= SEEN_LEDGER_SENT | (by_inapp ? SEEN_LEDGER_INAPP : 0);
        entry->ledger_sent = (uint8_t)(entry->ledger_sent + (entry->ledger_sent < UINT8_MAX));
    } else if (str_eq(state, STR("failed"))) {
        entry->seen |= SEEN_LEDGER_FAILED | (by_vendor ? 0 : SEEN_DECIDED);
    } else {
        entry->ledger_put_off |= bit;
    }
}

static void see_ledger(Audit *audit, const PGresult *res, int row)
{
    AuditEntry *entry =
        audit_entry(audit->table, db_get_text(res, row, 1), db_get_text(res, row, 3));
    if (entry == NULL) {
        return;
    }
    uint32_t bit = audit_attempt_bit(db_get_int(res, row, 2));
    Str state = db_get_text(res, row, 4);
    entry->ledger |= bit;
    entry->seen |= db_get_int(res, row, 6) > 0 ? SEEN_RESENT : 0;
    note_moved(entry, db_get_time(res, row, 8));
    if (str_eq(state, STR("claimed"))) {
        entry->seen |= db_get_int(res, row, 5) != 0 ? SEEN_HELD : SEEN_STALE;
    } else if (str_eq(state, STR("parked"))) {
        entry->seen |= SEEN_PARKED;
    } else {
        see_outcome(entry, state, bit, db_get_int(res, row, 7) != 0, db_get_int(res, row, 9) != 0);
    }
}

static void keep_numbered(Cursor *cursor, const PGresult *res, int row)
{
    clock_format(db_get_time(res, row, 0), cursor->time);
    keep_text(cursor->id, sizeof cursor->id, res, row, 1);
    snprintf(cursor->number, sizeof cursor->number, "%" PRId64, db_get_int(res, row, 2));
    keep_text(cursor->tenant, sizeof cursor->tenant, res, row, 3);
}

bool audit_read_ledger(Audit *audit, Error *err)
{
    static const DefinerQuery pages = {
        "SELECT * FROM dispatcher.audit_ledger($1, $2, $3, $4, $5, $6, " PAGE_TEXT ")",
        {P_SINCE, P_UNTIL, P_TENANT, P_TIME, P_ID, P_NUMBER},
        6,
        true,
        see_ledger,
        keep_numbered};
    return read_pages(audit, &pages, err);
}

// ---- history ----

static void see_history(Audit *audit, const PGresult *res, int row)
{
    enum { QUEUED = 1, SCHEDULED = 2, SENT_SHIFT = 2 };
    AuditEntry *entry =
        audit_entry(audit->table, db_get_text(res, row, 1), db_get_text(res, row, 2));
    if (entry == NULL) {
        return;
    }
    uint64_t reached = (uint64_t)db_get_int(res, row, 4);
    Status status = STATUS_NONE;
    (void)status_from_name(db_get_text(res, row, 3), &status);
    entry->seen |= SEEN_H_ROW | (reached & QUEUED ? SEEN_H_QUEUED : 0) |
                   (reached & SCHEDULED ? SEEN_H_SCHEDULED : 0) |
                   ((reached >> SENT_SHIFT) * SEEN_H_SENT & SEEN_H_REACHED);
    entry->seen |= status == STATUS_FAILED ? SEEN_H_FAILED : 0;
    bool suppressed = status == STATUS_SUPPRESSED || status == STATUS_SUPERSEDED;
    entry->seen |= suppressed ? SEEN_H_SUPPRESSED : 0;
}

static void keep_history(Cursor *cursor, const PGresult *res, int row)
{
    clock_format(db_get_time(res, row, 0), cursor->time);
    keep_text(cursor->id, sizeof cursor->id, res, row, 1);
    keep_text(cursor->tenant, sizeof cursor->tenant, res, row, 2);
}

bool audit_read_history(Audit *audit, Error *err)
{
    static const DefinerQuery pages = {
        "SELECT * FROM stentor.audit_history($1, $2, $3, $4, $5, $6, " PAGE_TEXT ")",
        {P_SINCE, P_UNTIL, P_TENANT, P_TIME, P_ID, P_KEY_TENANT},
        6,
        true,
        see_history,
        keep_history};
    return read_pages(audit, &pages, err);
}

static void see_attempt(Audit *audit, const PGresult *res, int row)
{
    AuditEntry *entry =
        audit_entry(audit->table, db_get_text(res, row, 1), db_get_text(res, row, 3));
    if (entry != NULL) {
        entry->attempts |= audit_attempt_bit(db_get_int(res, row, 2));
    }
}

bool audit_read_attempts(Audit *audit, Error *err)
{
    static const DefinerQuery pages = {
        "SELECT * FROM stentor.audit_attempts($1, $2, $3, $4, $5, $6, $7, " PAGE_TEXT ")",
        {P_SINCE, P_UNTIL, P_TENANT, P_TIME, P_ID, P_NUMBER, P_KEY_TENANT},
        7,
        true,
        see_attempt,
        keep_numbered};
    return read_pages(audit, &pages, err);
}

bool audit_read_positions(Audit *audit, AuditPositions *ret, Error *err)
{
    PGresult *res =
        query(audit, "SELECT stream, sequence FROM stentor.history_positions()", 0, NULL, err);
    if (res == NULL) {
        return false;
    }
    ret->count = 0;
    for (int row = 0; row < PQntuples(res) && ret->count < AUDIT_POSITIONS_MAX; row++) {
        keep_text(ret->rows[ret->count].stream, sizeof ret->rows->stream, res, row, 0);
        ret->rows[ret->count++].sequence = (uint64_t)db_get_int(res, row, 1);
    }
    PQclear(res);
    return true;
}

// ---- the accept log ----

int64_t accept_page_id(const AcceptPage *page, int row)
{
    return db_get_int(page->res, row, 0);
}

Str accept_page_tenant(const AcceptPage *page, int row)
{
    return db_get_text(page->res, row, 1);
}

int64_t accept_page_bytes(const AcceptPage *page, int row)
{
    return db_get_int(page->res, row, 5);
}

static bool take_i32(Str array, size_t *at, int32_t *ret)
{
    if (array.len < 4 || *at > array.len - 4) {
        return false;
    }
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        bits = bits << 8 | (unsigned char)array.ptr[*at + i];
    }
    *at += 4;
    *ret = (int32_t)bits;
    return true;
}

// A binary text[] of one dimension: a head of 20 bytes, then length and bytes of each.
bool accept_page_next(const AcceptPage *page, int row, size_t *at, Str *ret_id)
{
    enum { ARRAY_HEAD = 20 };
    Str array = db_get_text(page->res, row, 2);
    int32_t len = 0;
    *at = *at == 0 ? ARRAY_HEAD : *at;
    if (!take_i32(array, at, &len) || len < 0 || (size_t)len > array.len - *at) {
        return false;
    }
    *ret_id = str_slice(array, *at, *at + (size_t)len);
    *at += (size_t)len;
    return true;
}

bool audit_accept_page(Audit *audit, int64_t after, AcceptPage *ret, Error *err)
{
    char since[CLOCK_RFC3339_SIZE];
    char until[CLOCK_RFC3339_SIZE];
    char last[24];
    clock_format(audit->options.since_us - MINUTE_US, since);
    clock_format(audit->options.until_us + ACCEPT_DELAY_US, until);
    snprintf(last, sizeof last, "%" PRId64, after);
    const char *params[] = {since, until, audit->options.tenant, after < 0 ? NULL : last};
    ret->res = query(
        audit, "SELECT * FROM ingest.audit_accepts($1, $2, $3, $4, " ACCEPT_PAGE_TEXT ")", 4,
        params, err);
    ret->rows = ret->res != NULL ? PQntuples(ret->res) : 0;
    return ret->res != NULL;
}

static void see_accept(Audit *audit, const AcceptPage *page, int row)
{
    Str id;
    bool unpublished = db_is_null(page->res, row, 4);
    for (size_t at = 0; accept_page_next(page, row, &at, &id);) {
        AuditEntry *entry = audit_accepted(audit->table, id, accept_page_tenant(page, row));
        if (entry != NULL) {
            entry->seen |= SEEN_ACCEPTED | (unpublished ? SEEN_UNPUBLISHED : 0);
            note_moved(entry, db_get_time(page->res, row, 3));
            note_moved(entry, db_get_time(page->res, row, 4));
        }
    }
}

bool audit_read_accepts(Audit *audit, Error *err)
{
    int64_t after = -1;
    AcceptPage page = {.rows = ACCEPT_PAGE_ROWS};
    while (page.rows == ACCEPT_PAGE_ROWS) {
        if (!audit_accept_page(audit, after, &page, err)) {
            return false;
        }
        for (int row = 0; row < page.rows; row++) {
            see_accept(audit, &page, row);
        }
        after = page.rows > 0 ? accept_page_id(&page, page.rows - 1) : after;
        PQclear(page.res);
    }
    return true;
}

PGresult *audit_accept_events(Audit *audit, const char *accept_ids, Error *err)
{
    return query(audit, "SELECT * FROM ingest.audit_events($1::bigint[])", 1, &accept_ids, err);
}
