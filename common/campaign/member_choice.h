// SPDX-License-Identifier: Apache-2.0
// The statements by which a batch's members are chosen among the tenant's recipients, a page at a
// time, in the order of their ids. A page looks at so many recipients, by look-ups alone, and so
// takes as long among ten million as among a thousand: at those with one of the labels where each
// alternative of the query wants one, else at the tenant's one after the other.
#pragma once

#include "common/db/db.h"
#include "common/model/enums.h"

enum { MEMBER_PAGE = 1000 }; // recipients that a page looks at: its matches fit one chunk

typedef struct MemberQuery {
    Str tenant;
    Str query; // [{"labels": [...], "locales": [...], "identity_types": [...], "consent": true},
               // ...]
    Category category; // of the batch, for "consent"
    Channel channel;
    Str default_locale; // of recipients without one
} MemberQuery;

// Adds two statements. after: the last recipient that was looked at; empty: none.
void member_page_add(DbTxn *txn, const MemberQuery *query, Str after, int32_t look_at);

typedef struct MemberPage {
    Str *ids; // of those that match
    size_t count;
    Str after;  // the last one that was looked at; empty: there was none
    bool ended; // there are none behind it
} MemberPage;
void member_page_read(const DbTxn *txn, int32_t look_at, Arena *arena, MemberPage *ret);

// Stores a page: its members as the next chunk, and how far the choice has come, in one statement.
// No row: the batch is not `holder`'s, not running, or was chosen further. Else status, paused,
// total, chunks.
typedef struct MemberStore {
    Str batch_id;
    Str holder;
    Str after;      // as it was read; empty: none
    Str next_after; // as it will be
    bool ended;
    int64_t chunks; // as they were read
    int64_t members;
    Str blob; // common/campaign/batch_chunk.h; empty: no member
    int64_t lease_ms;
} MemberStore;
void member_store_add(DbTxn *txn, const MemberStore *store);
