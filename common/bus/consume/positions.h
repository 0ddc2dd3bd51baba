// SPDX-License-Identifier: Apache-2.0
// How far each stream of a projection was folded: the rows of <schema>.positions and the statements
// that move them. Moving is the fence: a transaction in which another process moved a position
// meanwhile is refused by Postgres. A position is a sequence and the time at which its message was
// stored: a log that lost its tail gives the same sequence to another message.
#pragma once

#include "common/db/db.h"

enum { POSITIONS_MAX = 16 };

typedef struct Position {
    const char *stream;
    uint64_t stored;      // committed; 0: nothing yet
    int64_t stored_at_us; // when that message was stored; 0: not known
    uint64_t folded; // all up to here is written with the next flush
    int64_t folded_at_us;
    uint64_t read; // the projector's: behind `folded` where events are held back
    int64_t read_at_us;
    int64_t created_us;        // of the stream that the sequence belongs to
    int64_t stored_created_us; // as the row says
    bool known;                // has a row
} Position;

typedef struct Positions {
    const char *projection;
    Position at[POSITIONS_MAX];
    size_t count;
    char names[3][96];
    char sql[3][768];
    DbStatement load, insert, update;
    size_t updates; // rows that the last positions_add_moves must update
    int update_index;
} Positions;

// streams is NULL-terminated; all strings must live as long as *out.
void positions_init(
    Positions *out, const char *schema, const char *projection, const char *const *streams);
void positions_add_load(Positions *p, DbTxn *txn);       // the transaction's first statement
void positions_read(Positions *p, const PGresult *rows); // its result: stored, known ...
bool positions_pending(const Positions *p);              // positions_add_moves would write
bool positions_moved(
    const Positions *p, const PGresult *rows);      // another process moved one, as its result says
void positions_add_moves(Positions *p, DbTxn *txn); // stored -> folded where they differ
bool positions_all_moved(const Positions *p, const DbTxn *txn); // false: a row is gone
void positions_commit(Positions *p);                            // stored = folded
