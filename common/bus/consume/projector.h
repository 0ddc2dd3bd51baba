// SPDX-License-Identifier: Apache-2.0
// Projector: the other way to read. Streams folded into Postgres rows, with the sequences stored in
// the same transaction. One active per projection by advisory lock; stand-bys take over. The
// transaction moves the stored sequence from where this process last saw it and fails when another
// process moved it: a late twin cannot write. A log that lost its tail is read again from the time
// of the last message that was folded, so folds must bear repetition (reader.c says why by time).
// Needs a table <schema>.positions (projection text, stream text, sequence bigint,
// stream_created_at timestamptz, stored_at timestamptz NULL).
#pragma once

#include "common/bus/consume/reader.h"
#include "common/bus/jetstream/bus.h"
#include "common/db/db.h"

typedef struct Projector Projector;

typedef struct ProjectorOptions {
    const char *name;           // of the projection: "history"
    const char *stage;          // in its dead letters: the program; NULL: name
    const char *lock_name;      // NULL: name
    const char *schema;         // where positions is
    const char *const *streams; // NULL-terminated, at most 16; "STATUS", or with a filter of its
                                // subjects "STATUS ntf.status.acme.>": its position is its own
    const char *database_url;   // for the lock's own connection
    DbPool *pool;
    // A transaction is written when this many events are folded (0: 2000), or events of this many
    // bytes (0: any), or after this time (0: 20). What is read at once is folded whole, so it holds
    // less than twice of both, and one event more.
    size_t flush_max;
    size_t flush_bytes;
    int flush_ms;
    // Where a stream begins of which nothing was folded yet: at what was stored since; 0: at its
    // beginning.
    int64_t begin_at_us;
    const char *remedy;        // as ReaderOptions'
    const ReaderKind *readers; // NULL: of the streams
    void *readers_ctx;
} ProjectorOptions;

// A place in a stream: behind this message. 0: where the stored position is.
typedef struct ProjectorPlace {
    uint64_t sequence;
    int64_t stored_at_us;
} ProjectorPlace;

typedef struct ProjectorHandlers {
    // Fold one event into memory. The arena lives until its flush is committed. An event that
    // cannot be read: PERMANENT: it is logged, counted and moved to the dead letters
    // (ntf.dead.<stage>.<tenant>), and the projection goes on.
    bool (*fold)(void *ctx, const BusMessage *message, Arena *arena, Error *err);
    // Add statements for everything folded since the last successful flush (with `begin`: until
    // it); called again with a new transaction when the first could not be committed.
    void (*write)(void *ctx, DbTxn *txn);
    // Before each `write`: adds a part of its statements to a transaction of its own, which another
    // connection does at the same time; `write` adds the rest. The positions follow when both are
    // committed, so after a failure either may be there, and is written once more: only for tables
    // that have no reader until all is in them. false, or NULL: `write` adds all.
    bool (*write_beside)(void *ctx, DbTxn *txn);
    // A flush begins: events folded from now on are the next one's, and `write` adds what was
    // folded until now, whenever it is called. So the fold goes on while the flush is under way,
    // until the next one is full too: memory is that of two. NULL: nothing is folded meanwhile.
    void (*begin)(void *ctx);
    // The flush is committed: forget what it wrote. txn is NULL when what was folded was dropped
    // without being written (the lock was lost, another one moved the sequence): forget it just the
    // same, it is read and folded again.
    void (*committed)(void *ctx, DbTxn *txn);
    // Postgres refuses what `write` has added (PERMANENT), or lacks a table or a right (CONFIG;
    // also when the positions are read). true: the same again after a pause that grows; `write` may
    // do it otherwise. false, or NULL: the projection stops.
    bool (*refused)(void *ctx, const Error *err);
    // Both or neither, by a fold that holds events back from `write`. NULL: it never does.
    // How long from now until `write` has something to write, in ms: 0: there is something; -1:
    // there is nothing, and nothing is held.
    int (*wait_ms)(void *ctx);
    // The place before the oldest held event of a stream: the stored position goes no further.
    // false: none of this stream is held.
    bool (*held)(void *ctx, const char *stream, ProjectorPlace *ret_before);
    // This stream is ahead of the others: it is read on when they have followed. NULL: none ever
    // is.
    bool (*ahead)(void *ctx, const char *stream);
} ProjectorHandlers;

// Borrows bus, pool and the options' strings until projector_free. Begins at once to compete for
// the lock; never fails for an absent server. All handlers are called on the loop.
Projector *projector_new(
    Bus *bus, const ProjectorOptions *options, const ProjectorHandlers *handlers, void *ctx);
void projector_stop(
    Projector *projector, void (*on_stopped)(void *ctx), void *ctx); // flushes what is folded first
void projector_free(Projector *projector);                           // only after on_stopped
// Another one has changed the stored positions: what is folded is dropped, and they are read again.
void projector_reload(Projector *projector);
bool projector_active(const Projector *projector); // holds the lock and folds; false: stands by
const char *projector_failure(
    const Projector *projector); // NULL, or why it has stopped (stream recreated ...)
// Events that are in the streams and not yet in the tables; 0 for a stand-by.
uint64_t projector_lag(const Projector *projector);
uint64_t projector_unread(const Projector *projector); // of these, what was not read yet
// Everything that was in the streams when the readers began has been folded, if not yet written.
bool projector_caught_up(const Projector *projector);
// The same of one stream.
bool projector_has_read(const Projector *projector, const char *stream);
uint64_t projector_position(
    const Projector *projector, const char *stream);       // committed; 0: nothing yet
uint64_t projector_tails_lost(const Projector *projector); // logs that had lost what was folded
