// SPDX-License-Identifier: Apache-2.0
// An entry of the audit log as a value: made, hashed, and the chain of many checked. Pure. Law: an
// entry holds the SHA-256 of the payload of the entry before it, so a changed, removed or inserted
// entry shows at the next one; and it never holds an address or a content.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/codec/hash.h"
#include "stentor/v1/audit.pb-c.h"

typedef enum AuditKind {
    AUDIT_READ, // sealed content was opened for a reader
    AUDIT_ERASURE,
    AUDIT_HOLD,
    AUDIT_RESTORE,     // archived rows are in the database again
    AUDIT_EXPIRY,      // archived rows have reached the end of their class
    AUDIT_SUPPRESSION, // an address may be written to again
    AUDIT_DEAD_LETTER, // dead letters sent again or dropped
    AUDIT_WRITE,       // a call of the API that changes something
} AuditKind;

const char *audit_kind_name(AuditKind kind);
bool audit_kind_from_name(Str name, AuditKind *ret);

// A message holds the entries that one process noted at once: of one tenant and kind, so many.
enum { AUDIT_DETAILS_MAX = 32, AUDIT_TEXT_MAX = 1024, AUDIT_TOGETHER_MAX = 16 };

typedef struct AuditDetail {
    const char *name;
    const char *value;
} AuditDetail;

// What is to be noted. Absent texts are NULL; all are borrowed. A repeat of the same request,
// action, target and time is the same entry.
typedef struct AuditNote {
    AuditKind kind;
    const char *tenant;
    const char *action; // "content.shown"
    const char *actor;
    const char *target;
    const char *notification_id;
    const char *ground;
    const char *request_id;
    const char *program;
    const AuditDetail *details;
    size_t detail_count;
    int64_t at_us;
} AuditNote;

// Where the chain stands: the last entry of the stream. sequence 0: there is none. has_hash false:
// that entry is not there any more, only its number is known.
typedef struct AuditHead {
    uint64_t sequence;
    bool has_hash;
    uint8_t hash[SHA256_LEN];
} AuditHead;

void audit_note_id(const AuditNote *note, char out[EVENT_ID_SIZE]);
// false: ERROR_PERMANENT names a field that is missing, too long, or holds an '@'.
bool audit_note_fits(const AuditNote *note, Error *err);
// The payload of one message behind `head`, in `arena`: of notes that fit and that have the first
// one's tenant and kind; 1 to AUDIT_TOGETHER_MAX.
bool audit_entries_pack(
    const AuditNote *const *notes, size_t count, const AuditHead *head, Arena *arena, Str *ret,
    Error *err);
AuditHead audit_head_of(uint64_t sequence, Str payload);

// ---- the chain, entry by entry in the order of the stream ----

typedef struct AuditChain {
    AuditHead head;
    uint64_t messages;
    uint64_t entries; // in them
    uint64_t repeats; // the same entry again after a lost answer: harmless
    char last_id[EVENT_ID_SIZE];
} AuditChain; // starts as {0}

// The next entry; ret_entry (in `arena`) is also set when only the chain is broken. false: why, as
// ERROR_PERMANENT; the chain goes on behind it. The first entry of a stream that begins later than
// 1 is taken as it is.
bool audit_chain_add(
    AuditChain *chain, uint64_t sequence, Str payload, Arena *arena,
    const Stentor__V1__AuditEntry **ret_entry, Error *err);
