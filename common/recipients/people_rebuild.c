// SPDX-License-Identifier: Apache-2.0
#include "common/recipients/people_rebuild.h"

#include <stdlib.h>

#include "common/bus/consume/projector.h"
#include "common/feed/feed_sql.h"
#include "common/recipients/digest_people.h"
#include "common/recipients/people_fold.h"
#include "common/recipients/people_sql.h"

enum { FLUSH_MS = 20 };

// One set of limits for all kinds.
_Static_assert(
    (int)PEOPLE_FLUSH_MAX <= (int)FEED_FLUSH_MAX &&
        (int)PEOPLE_FLUSH_BYTES <= (int)FEED_FLUSH_BYTES,
    "a flush of FEED fits too");

static const char *const people_streams[] = {"PEOPLE", NULL};
static const char *const feed_streams[] = {"FEED", NULL};

struct PeopleRebuild {
    PeopleRebuildOptions options;
    Projector *projector;
    DbSchemaCopy *copy;
    PeopleFold *records;
    DigestPeople *digests;
    FeedFold *feed;
    uint64_t events, unreadable;
    uint64_t next;
    int64_t missing_before_us;
    int lowered; // flushes before which rows give way to lower sequences
};

// ---- folding ----

static bool is_behind(const PeopleRebuildOptions *options, const BusMessage *message)
{
    return options->bounded && message->sequence > options->until &&
           (options->until_at_us == 0 || message->stored_at_us > options->until_at_us);
}

// Sequences that come again are of a stream that was recreated, or had lost its tail. What was
// folded in the same flush before them gives way with the next one.
static void note_sequence(PeopleRebuild *rebuild, const BusMessage *message)
{
    uint64_t first = rebuild->options.first;
    uint64_t next = rebuild->next > first ? rebuild->next : first;
    if (message->sequence > next && message->stored_at_us > rebuild->missing_before_us) {
        rebuild->missing_before_us = message->stored_at_us;
    }
    if (message->sequence < rebuild->next) {
        rebuild->lowered = 2;
    }
    rebuild->next = message->sequence + 1;
}

static const char *const *streams_of(PeopleKind kind)
{
    return kind == PEOPLE_FEED ? feed_streams : people_streams;
}

static bool fold(PeopleRebuild *rebuild, const BusMessage *message, Arena *arena)
{
    Error unreadable;
    switch (rebuild->options.kind) {
    case PEOPLE_RECORDS:
        return people_fold_event(rebuild->records, message, arena, &unreadable);
    case PEOPLE_DIGESTS:
        return digest_people_fold(rebuild->digests, message, arena, &unreadable);
    case PEOPLE_FEED:
        break;
    }
    return feed_fold_event(rebuild->feed, message, arena, &unreadable);
}

static bool on_projector_fold(void *ctx, const BusMessage *message, Arena *arena, Error *err)
{
    PeopleRebuild *rebuild = ctx;
    (void)err;
    if (is_behind(&rebuild->options, message)) {
        return true;
    }
    note_sequence(rebuild, message);
    bool folded = fold(rebuild, message, arena);
    rebuild->events += folded ? 1 : 0;
    rebuild->unreadable += folded ? 0 : 1;
    return true;
}

// As the live schemas' forget_lost_tail, which are functions of theirs alone.
static const DbStatement lower_sequences = {
    .name = "people_lower",
    .sql = "WITH p AS (UPDATE people.preferences SET sequence = $1::int8 - 1 WHERE sequence >= $1),"
           " c AS (UPDATE people.consents SET sequence = $1 - 1 WHERE sequence >= $1)"
           " UPDATE people.recipients SET sequence = least(sequence, $1 - 1),"
           " unsubscribed_sequence = least(unsubscribed_sequence, $1 - 1)"
           " WHERE sequence >= $1 OR unsubscribed_sequence >= $1"};

static const DbStatement lower_items = {
    .name = "people_lower_items",
    .sql = "UPDATE feed.items SET stored_sequence = $1::int8 - 1 WHERE stored_sequence >= $1"};

static void write_records(PeopleRebuild *rebuild, DbTxn *txn)
{
    uint64_t first = people_fold_first(rebuild->records);
    if (rebuild->lowered > 0 && first > 0) {
        db_i64(db_txn_add(txn, &lower_sequences, NULL), (int64_t)first);
    }
    people_sql_write(rebuild->records, false, txn);
}

static void write_feed(PeopleRebuild *rebuild, DbTxn *txn)
{
    uint64_t first = feed_fold_first(rebuild->feed);
    if (rebuild->lowered > 0 && first > 0) {
        db_i64(db_txn_add(txn, &lower_items, NULL), (int64_t)first);
    }
    feed_sql_write(rebuild->feed, false, txn);
}

static void on_projector_write(void *ctx, DbTxn *txn)
{
    PeopleRebuild *rebuild = ctx;
    db_txn_schema(txn, rebuild->copy);
    switch (rebuild->options.kind) {
    case PEOPLE_RECORDS:
        write_records(rebuild, txn);
        break;
    case PEOPLE_DIGESTS:
        digest_people_write(rebuild->digests, txn);
        break;
    case PEOPLE_FEED:
        write_feed(rebuild, txn);
        break;
    }
    db_txn_schema(txn, NULL);
}

static void on_projector_committed(void *ctx, DbTxn *txn)
{
    PeopleRebuild *rebuild = ctx;
    rebuild->lowered -= txn != NULL && rebuild->lowered > 0 ? 1 : 0;
    people_fold_clear(rebuild->records);
    digest_people_clear(rebuild->digests);
    feed_fold_clear(rebuild->feed);
}

// ---- start and stop ----

PeopleRebuild *people_rebuild_new(Bus *bus, const PeopleRebuildOptions *options)
{
    static const ProjectorHandlers handlers = {
        .fold = on_projector_fold,
        .write = on_projector_write,
        .committed = on_projector_committed};
    PeopleRebuild *rebuild = xcalloc(1, sizeof *rebuild);
    rebuild->options = *options;
    rebuild->copy = db_schema_copy_new(options->schema, options->copy);
    rebuild->records = people_fold_new();
    rebuild->digests = digest_people_new();
    rebuild->feed = feed_fold_new();
    rebuild->next = 1;
    ProjectorOptions projector = {
        .name = options->projection,
        .lock_name = options->copy,
        .schema = options->copy,
        .streams = streams_of(options->kind),
        .database_url = options->database_url,
        .pool = options->pool,
        .flush_max = PEOPLE_FLUSH_MAX,
        .flush_bytes = PEOPLE_FLUSH_BYTES,
        .flush_ms = FLUSH_MS,
        .readers = options->readers,
        .readers_ctx = options->readers_ctx,
    };
    rebuild->projector = projector_new(bus, &projector, &handlers, rebuild);
    return rebuild;
}

const char *people_rebuild_failure(const PeopleRebuild *rebuild)
{
    return projector_failure(rebuild->projector);
}

bool people_rebuild_caught_up(const PeopleRebuild *rebuild)
{
    return projector_caught_up(rebuild->projector);
}

uint64_t people_rebuild_position(const PeopleRebuild *rebuild)
{
    return projector_position(rebuild->projector, streams_of(rebuild->options.kind)[0]);
}

uint64_t people_rebuild_events(const PeopleRebuild *rebuild)
{
    return rebuild->events;
}

uint64_t people_rebuild_unreadable(const PeopleRebuild *rebuild)
{
    return rebuild->unreadable;
}

int64_t people_rebuild_missing_before_us(const PeopleRebuild *rebuild)
{
    return rebuild->missing_before_us;
}

void people_rebuild_stop(PeopleRebuild *rebuild, void (*on_stopped)(void *ctx), void *ctx)
{
    projector_stop(rebuild->projector, on_stopped, ctx);
}

void people_rebuild_free(PeopleRebuild *rebuild)
{
    projector_free(rebuild->projector);
    people_fold_free(rebuild->records);
    digest_people_free(rebuild->digests);
    feed_fold_free(rebuild->feed);
    db_schema_copy_free(rebuild->copy);
    free(rebuild);
}
