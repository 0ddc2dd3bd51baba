// SPDX-License-Identifier: Apache-2.0
// What the sources say about each notification, as bits: one entry of 72 bytes a notification,
// found by id and tenant. A million of them is about 80 MB, and nothing else of an audit grows with
// the span.
#pragma once

#include "common/base/str.h"

// What was seen. S_: in STATUS, H_: in history.
// clang-format off
#define SEEN_ACCEPTED         (UINT64_C(1) << 0)  // a row of the accept log
#define SEEN_UNPUBLISHED      (UINT64_C(1) << 1)  // ... that the sweep has still to publish
#define SEEN_REQUEST          (UINT64_C(1) << 2)
#define SEEN_REQUEST_WAITING  (UINT64_C(1) << 3)  // beyond what the renderer has acknowledged
#define SEEN_DEFERRED_WAITING (UINT64_C(1) << 4)  // beyond what the clock has acknowledged
#define SEEN_DUE              (UINT64_C(1) << 5)  // a row of the clock
#define SEEN_RENDERED_WAITING (UINT64_C(1) << 6)  // beyond what the dispatcher has acknowledged
#define SEEN_HELD             (UINT64_C(1) << 7)  // ledger: claimed, and its lease runs or it was released
#define SEEN_STALE            (UINT64_C(1) << 8)  // ledger: claimed, no outcome, and its lease has ended
#define SEEN_PARKED           (UINT64_C(1) << 9)
#define SEEN_RESENT           (UINT64_C(1) << 10) // ledger: an earlier claim of an attempt has an unknown outcome
#define SEEN_LEDGER_SENT      (UINT64_C(1) << 11)
#define SEEN_LEDGER_FAILED    (UINT64_C(1) << 12)
#define SEEN_DECIDED          (UINT64_C(1) << 13) // ... by the dispatcher itself, without a vendor
#define SEEN_S_QUEUED         (UINT64_C(1) << 14)
#define SEEN_S_SCHEDULED      (UINT64_C(1) << 15)
#define SEEN_S_FAILED_EARLY   (UINT64_C(1) << 16) // before it was rendered
#define SEEN_S_FAILED_LATE    (UINT64_C(1) << 17)
#define SEEN_S_SUPPRESSED     (UINT64_C(1) << 18) // or superseded
#define SEEN_H_ROW            (UINT64_C(1) << 19)
#define SEEN_H_QUEUED         (UINT64_C(1) << 20)
#define SEEN_H_SCHEDULED      (UINT64_C(1) << 21)
#define SEEN_H_FAILED         (UINT64_C(1) << 22)
#define SEEN_H_SUPPRESSED     (UINT64_C(1) << 23)
#define SEEN_HISTORY_WAITING  (UINT64_C(1) << 24) // an event beyond what history has folded
#define SEEN_DEAD_EARLY       (UINT64_C(1) << 25) // a dead letter about its request or its deferral
#define SEEN_DEAD_RENDERED    (UINT64_C(1) << 26) // ... about its mail
#define SEEN_DEAD_UNKNOWN     (UINT64_C(1) << 27) // ... of an unknown outcome
#define SEEN_DEAD_HISTORY     (UINT64_C(1) << 28) // ... that history could not fold
#define SEEN_S_TWICE          (UINT64_C(1) << 29) // STATUS: sent by two attempts of one resend generation
#define SEEN_REPAIRED         (UINT64_C(1) << 30) // not seen but done: published again by --repair
#define SEEN_DIGEST           (UINT64_C(1) << 31) // the clock made it of others: no accept row, no deferral
// sent, delivered, opened, clicked, ended; in history the same, eight bits up
#define SEEN_S_SENT           (UINT64_C(1) << 32)
#define SEEN_S_DELIVERED      (UINT64_C(1) << 33)
#define SEEN_S_OPENED         (UINT64_C(1) << 34)
#define SEEN_S_CLICKED        (UINT64_C(1) << 35)
#define SEEN_S_ENDED          (UINT64_C(1) << 36)
#define SEEN_H_SENT           (SEEN_S_SENT << 8)
#define SEEN_H_ENDED          (SEEN_S_ENDED << 8)
#define SEEN_S_REACHED        (UINT64_C(0x1f) << 32)
#define SEEN_H_REACHED        (SEEN_S_REACHED << 8)
#define SEEN_LEDGER_INAPP     (UINT64_C(1) << 45) // ledger: sent by the vendor `inapp`, so FEED stored its item
#define SEEN_ITEM             (UINT64_C(1) << 46) // FEED: the item
#define SEEN_CALL             (UINT64_C(1) << 47) // of channel voice: a next call may end without a trace
// clang-format on

// Attempts are masks: bit n is attempt n, bit 31 stands for the 31st and all later ones.
enum { AUDIT_ATTEMPT_LAST = 31 };

typedef struct AuditEntry {
    uint8_t ulid[16];
    uint64_t seen;
    int64_t moved_us;         // the latest time that any source has of it
    uint32_t tenant;          // audit_tenant()
    uint32_t deferred;        // DEFERRED: attempts it was put off for; bit 0: its schedule
    uint32_t rendered;        // RENDERED
    uint32_t ledger;          // rows
    uint32_t ledger_reported; // rows whose outcome came from a vendor: STATUS must have them
    uint32_t ledger_put_off;  // rows that say when the next attempt is due
    uint32_t reported;        // STATUS: attempts of sending, sent, failed
    uint32_t attempts;        // history
    uint16_t missing;         // of this reading: AuditMissing
    uint16_t before;          // of the earlier one
    uint8_t sent_attempt;     // of the last `sent` in STATUS
    uint8_t sent_resends;
    uint8_t ledger_sent; // rows in state sent
    uint8_t resends;     // times an operator had it resent
} AuditEntry;

typedef struct AuditTable AuditTable;

AuditTable *audit_table_new(void);
void audit_table_free(AuditTable *table);

// The entry of a notification, made when it is not there. NULL: not an id, not a tenant, or the
// time in the id is outside of since_us <= t < until_us, and so not this audit's.
AuditEntry *audit_entry(AuditTable *table, Str id, Str tenant);
void audit_table_span(AuditTable *table, int64_t since_us, int64_t until_us);
// Of notifications of before kept_us only what audit_accepted() has named is this audit's: the
// records of the others are past their retention, not lost.
void audit_table_kept(AuditTable *table, int64_t kept_us);
// As audit_entry(), for what a row of the accept log says.
AuditEntry *audit_accepted(AuditTable *table, Str id, Str tenant);
// Only this tenant; empty: all.
void audit_table_only(AuditTable *table, Str tenant);
// The same, and NULL when it is not there.
AuditEntry *audit_find(AuditTable *table, Str id, Str tenant);

size_t audit_table_count(const AuditTable *table);
AuditEntry *audit_table_at(AuditTable *table, size_t index); // in the order of their first sight
const char *audit_tenant(const AuditTable *table, uint32_t tenant);
// Forgets what was seen; `missing` becomes `before`. What --repair did stays.
void audit_table_reread(AuditTable *table);

enum { AUDIT_ID_SIZE = 31 };
void audit_entry_id(const AuditEntry *entry, char out[AUDIT_ID_SIZE]);
int64_t audit_entry_created_us(const AuditEntry *entry);
uint32_t audit_attempt_bit(int64_t attempt); // 0 for attempt 0 and below
