// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_replies.h"

#include <inttypes.h>

#include "common/codec/event.h"
#include "common/events/reply_content.h"
#include "common/session/stream_walk.h"

#define STREAM "REPLIES"

static const char HASHES[] =
    "SELECT h FROM erasure.requests r, unnest(r.address_hashes) h WHERE r.id = $1";

typedef struct Found {
    struct Found *next;
    uint64_t sequence;
} Found;

// Kept until the stream was walked.
typedef struct Looking {
    MasterKey *master;
    const PGresult *hashes;
    Arena *arena;
    Arena *scratch; // of one message
    Found *first;
} Looking;

static bool is_theirs(const Looking *looking, const Stentor__V1__InboundReply *reply)
{
    ReplyHashes own;
    reply_hashes(looking->master, reply, looking->scratch, &own);
    for (int i = 0; i < PQntuples(looking->hashes); i++) {
        Str hash = erasure_pg_get_bytes(looking->hashes, i, 0, looking->scratch);
        for (size_t k = 0; k < own.count; k++) {
            if (str_eq(hash, str_of(own.hashes[k], ADDRESS_HASH_LEN))) {
                return true;
            }
        }
    }
    return false;
}

static void on_reply(void *ctx, const BusMessage *message)
{
    Looking *looking = ctx;
    arena_reset(looking->scratch);
    const Stentor__V1__InboundReply *reply = (const Stentor__V1__InboundReply *)event_unpack(
        &stentor__v1__inbound_reply__descriptor, message->payload, looking->scratch, NULL);
    if (reply == NULL || reply->meta == NULL || reply->address_hash.len != ADDRESS_HASH_LEN ||
        !is_theirs(looking, reply)) {
        return;
    }
    Found *found = arena_alloc(looking->arena, sizeof *found);
    *found = (Found){.next = looking->first, .sequence = message->sequence};
    looking->first = found;
}

// What is no longer there was deleted, too: by age, or by another run.
static bool delete_one(Session *session, uint64_t sequence, Arena *arena, Error *err)
{
    BusMessage left;
    Str answer = STR_EMPTY;
    bool there = false;
    Str query = str_from(arena_printf(arena, "{\"seq\":%" PRIu64 "}", sequence)); // written over
    MessageQuery same = {.stream = STREAM, .sequence = sequence};
    return session_request(
               session, "$JS.API.STREAM.MSG.DELETE." STREAM, query, arena, &answer, err) &&
           session_get_message(session, &same, arena, &left, &there, err) &&
           (!there ||
            error_set(
                err, ERROR_TRANSIENT, "message %" PRIu64 " of " STREAM " was not deleted: %.200s",
                sequence, arena_cstr(arena, answer)));
}

bool erasure_delete_replies(
    PGconn *pg, Session *session, MasterKey *master, const ErasureRequest *request, Arena *arena,
    Error *err)
{
    AUTO(PGresult) hashes = erasure_pg_query(pg, HASHES, 1, &request->id, err);
    if (hashes == NULL || PQntuples(hashes) == 0) {
        return hashes != NULL;
    }
    Looking looking = {.master = master, .hashes = hashes, .arena = arena, .scratch = arena_new(0)};
    const char *filter = arena_printf(arena, "ntf.reply.%s.>", request->tenant);
    bool ok = session_walk(session, STREAM, filter, on_reply, &looking, err);
    for (const Found *found = looking.first; ok && found != NULL; found = found->next) {
        arena_reset(looking.scratch);
        ok = delete_one(session, found->sequence, looking.scratch, err);
    }
    arena_free(looking.scratch);
    return ok;
}
