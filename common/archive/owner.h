// SPDX-License-Identifier: Apache-2.0
// Whose the bucket is: `_stentor/owner.json` names the installation, its epoch and a token, and
// archive.installation in Postgres has the same. Each process that begins to work takes the bucket:
// a new epoch and a new token, first in Postgres, then in the bucket by If-Match, so that another
// copy of the database (a fork, a restored backup) is recognised by its older token and changes
// nothing. So is a database whose server or timeline is another one than the last owner's: after a
// failover an operator says `stentor archive adopt`.
// A copy of the server's disk has the newest token, too. So the owner renews its token while it
// works, and a server that was started since the bucket was taken first watches whether another
// one renews it.
//
// Law: a process that does not own the bucket stands still and says why
// (archive.installation.standing_still).
#pragma once

#include "common/archive/archive.h"
#include "common/base/str.h"

#define OWNER_KEY "_stentor/owner.json"

enum {
    OWNER_DATABASE_SIZE = 64,
    OWNER_JSON_MAX = 2048,
    OWNER_DELETE_HOURS = 24,
    OWNER_SERVER_SIZE = 24,
    OWNER_RENEW_S = 20,
    OWNER_WATCH_S = 60
};

typedef struct OwnerMark {
    char installation[STORAGE_OWNER_SIZE];
    int64_t epoch;
    char token[40];
    char database[OWNER_DATABASE_SIZE]; // server, timeline and database
    char server[OWNER_SERVER_SIZE];     // when the server was started
    int64_t renewed_us;                 // when the token was made; of the bucket's
} OwnerMark;

typedef struct OwnerRow { // archive.installation
    OwnerMark mark;
    char previous_token[40]; // "": none
    bool stored;             // the catalogue names objects or segments
} OwnerRow;

typedef enum OwnerVerdict {
    OWNER_FREE, // the bucket has no owner
    OWNER_OURS,
    OWNER_GONE,    // owner.json is not there, though objects are catalogued
    OWNER_FOREIGN, // another installation's
    OWNER_FORKED,  // a newer copy of this database took it
    OWNER_MOVED,   // the token is ours, the server or its timeline is not
} OwnerVerdict;

// Pure. bucket NULL: no owner.json.
OwnerVerdict owner_judge(const OwnerRow *row, const OwnerMark *bucket);
// How long to watch whether another server renews a token that is ours: 0 when the same server took
// it, or when it was not renewed for OWNER_WATCH_S.
int64_t owner_watch_us(const OwnerRow *row, const OwnerMark *bucket, int64_t now_us);
// PERMANENT: it is no such document.
bool owner_parse(Str json, OwnerMark *ret, Error *err);

// Takes the bucket, or fails with PERMANENT and says so in standing_still: the caller stands still.
// adopt: whatever the bucket says.
bool owner_take(Archive *archive, bool adopt, Error *err);
// A new token, when the last one is OWNER_RENEW_S old; nothing within a transaction. PERMANENT: the
// bucket was taken by another, as above.
bool owner_renew(Archive *archive, Error *err);
// Whether it is still taken; before each change in the bucket. PERMANENT as above.
bool owner_check(Archive *archive, Error *err);
// Whether objects may be deleted now. On a server without conditions two owners can overlap for one
// step, so there the last change of owner must be OWNER_DELETE_HOURS ago.
bool owner_may_delete(Archive *archive, int64_t now_us, Error *err);
