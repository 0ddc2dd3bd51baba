// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/bus/topology/topology.h"
#include "common/config/link_revocations.h"
#include "common/erasure/erasure_replies.h"
#include "common/events/meta.h"
#include "common/feed/feed_event.h"
#include "common/session/config_put.h"
#include "stentor/v1/people.pb-c.h"

// clang-format off
static const char ASK[] =
    "SELECT request FROM erasure.ask($1, $2, nullif($3, ''), $4::bytea[], $5::bytea[], $6, $7, $8, $9::bytea[], $10::boolean)";
static const char READ[] =
    "SELECT q.id, q.tenant, coalesce(q.recipient_id, ''), encode(q.subjects[1], 'hex'), q.ground, q.requested_by,"
    " (extract(epoch FROM q.requested_at) * 1000000)::bigint, q.state, coalesce((extract(epoch FROM q.erased_at) * 1000000)::bigint, 0),"
    " q.cleared::text, coalesce(CASE WHEN q.state = 'restricted' THEN (SELECT h.id || ': ' || h.ground FROM archive.holds h"
    " WHERE h.id = q.hold) END, ''), (SELECT count(*) FROM erasure.destroyed_keys d WHERE d.request = q.id), q.announced_at IS NOT NULL, k.count, coalesce(k.duty, ''),"
    " coalesce((extract(epoch FROM k.until) * 1000000)::bigint, 0) FROM erasure.requests q, (SELECT count(*), max(duty) AS duty, max(until) AS until"
    " FROM erasure.kept_keys WHERE request = $1 AND ended_at IS NULL) AS k WHERE q.id = $1";
// As many of the keys in a row as an entry's detail takes.
#define KEYS_OF(table, where) \
    "SELECT string_agg(key, ',') FROM (SELECT encode(subject, 'hex') || ':' || generation AS key," \
    " (row_number() OVER (ORDER BY subject, generation) - 1) / 24 AS part FROM " table " WHERE " where ") AS k GROUP BY part ORDER BY part"
// clang-format on

static const char DESTROYED[] = KEYS_OF(
    "erasure.destroyed_keys x", "request = $1 AND NOT EXISTS (SELECT FROM erasure.kept_keys k"
                                " WHERE k.subject = x.subject AND k.generation = x.generation)");
static const char KEPT[] = KEYS_OF("erasure.kept_keys", "request = $1");
static const char ENDED[] = KEYS_OF("erasure.kept_keys", "ended_by = $1 AND announced_at IS NULL");
static const char HASHES[] =
    "SELECT h FROM erasure.requests r, unnest(r.address_hashes) h WHERE r.id = $1";
static const char SUBJECTS[] =
    "SELECT s FROM erasure.requests r, unnest(r.subjects) s WHERE r.id = $1";
static const char END[] = "SELECT (extract(epoch FROM erasure.end_records($1)) * 1000000)::bigint";
static const char ANNOUNCED_END[] = "SELECT erasure.announced_end($1)";
static const char EXECUTE[] = "SELECT erasure.execute($1, $2, $3::interval, $4)";
static const char ANNOUNCED[] = "SELECT erasure.announced($1)";
static const char LIST[] =
    "SELECT id FROM erasure.requests WHERE $1 IN ('', tenant) ORDER BY requested_at DESC, id LIMIT "
    "$2::bigint";
static const char OPEN[] = "SELECT id FROM erasure.open_requests()";

bool erasure_ask(PGconn *pg, const ErasureAsk *ask, Arena *arena, const char **ret_id, Error *err)
{
    const ErasurePerson *person = ask->person;
    const char *params[] = {
        ask->id,
        person->tenant,
        person->recipient_id,
        erasure_pg_bytes(person->subjects, person->subject_count, arena),
        erasure_pg_bytes(person->hashes, person->hash_count, arena),
        ask->ground,
        ask->requested_by,
        ask->source_event,
        erasure_pg_bytes(
            person->subjects + person->subject_count - person->record_count, person->record_count,
            arena),
        ask->final ? "true" : "false"};
    AUTO(PGresult) row = erasure_pg_query(pg, ASK, 10, params, err);
    if (row == NULL) {
        return false;
    }
    CRASH_POINT("erasure.asked");
    *ret_id = PQntuples(row) == 1 ? arena_cstr(arena, str_from(PQgetvalue(row, 0, 0))) : NULL;
    return true;
}

bool erasure_read(PGconn *pg, const char *id, Arena *arena, ErasureRequest *ret, Error *err)
{
    AUTO(PGresult) row = erasure_pg_query(pg, READ, 1, &id, err);
    if (row == NULL) {
        return false;
    }
    if (PQntuples(row) == 0) {
        return error_set(err, ERROR_PERMANENT, "there is no erasure '%.40s'", id);
    }
    const char *text[16];
    for (int i = 0; i < 16; i++) {
        text[i] = arena_cstr(arena, str_from(PQgetvalue(row, 0, i)));
    }
    *ret = (ErasureRequest){
        .id = text[0],
        .tenant = text[1],
        .recipient_id = text[2],
        .subject = text[3],
        .ground = text[4],
        .requested_by = text[5],
        .requested_us = strtoll(text[6], NULL, 10),
        .state = text[7],
        .erased_us = strtoll(text[8], NULL, 10),
        .cleared = text[9],
        .hold = text[10],
        .keys = strtoll(text[11], NULL, 10),
        .announced = text[12][0] == 't',
        .kept = strtoll(text[13], NULL, 10),
        .duty = text[14],
        .kept_until_us = strtoll(text[15], NULL, 10)};
    return true;
}

// ---- what is published ----

typedef struct Details {
    AuditDetail list[AUDIT_DETAILS_MAX + 1]; // with the one too many the entry is refused
    size_t count;
} Details;

static void add(Details *details, const char *name, const char *value)
{
    if (details->count <= AUDIT_DETAILS_MAX) {
        details->list[details->count++] = (AuditDetail){name, value};
    }
}

// "<subject>:<generation>" of each key, as many in a detail as its text takes: with them the
// erasure is done again in a database that was restored from before it.
static bool add_keys(
    PGconn *pg, const char *sql, const char *name, const char *id, Arena *arena, Details *details,
    Error *err)
{
    AUTO(PGresult) rows = erasure_pg_query(pg, sql, 1, &id, err);
    for (int i = 0; rows != NULL && i < PQntuples(rows); i++) {
        add(details, arena_printf(arena, "%s_%d", name, i + 1),
            arena_cstr(arena, str_from(PQgetvalue(rows, i, 0))));
    }
    return rows != NULL;
}

static const char *time_text(int64_t at_us, Arena *arena)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text);
    return arena_cstr(arena, str_from(text));
}

static bool put_entry(
    Session *session, const ErasureRequest *request, const char *action, int64_t at_us,
    const Details *details, Error *err)
{
    AuditNote entry = {
        .kind = AUDIT_ERASURE,
        .tenant = request->tenant,
        .action = action,
        .actor = request->requested_by,
        .target = request->recipient_id[0] != '\0' ? request->recipient_id : request->subject,
        .ground = request->ground,
        .request_id = request->id,
        .program = "stentor",
        .details = details->list,
        .detail_count = details->count,
        .at_us = at_us};
    return session_audit(session, &entry, NULL, err);
}

// The time is the row's, so that a repeat is the same entry.
static bool note(
    PGconn *pg, Session *session, const ErasureRequest *request, const char *action, int64_t at_us,
    Arena *arena, Error *err)
{
    Details details = {.count = 0};
    add(&details, "key_subject", request->subject);
    add(&details, "state", request->state);
    add(&details, "keys_destroyed", arena_printf(arena, "%lld", (long long)request->keys));
    if (request->kept > 0) {
        add(&details, "duty", request->duty);
        add(&details, "duty_ends", time_text(request->kept_until_us, arena));
    }
    return add_keys(pg, KEPT, "kept", request->id, arena, &details, err) &&
           add_keys(pg, DESTROYED, "destroyed", request->id, arena, &details, err) &&
           put_entry(session, request, action, at_us, &details, err);
}

static bool revoke(
    Session *session, const ErasureRequest *request, Str hash, Arena *arena, Error *err)
{
    static char by[] = "erasure";
    Stentor__V1__LinkRevocation entry = STENTOR__V1__LINK_REVOCATION__INIT;
    entry.tenant = pb_borrow(request->tenant);
    entry.recipient_id = hash.len == 0 ? pb_borrow(request->recipient_id) : entry.recipient_id;
    entry.address_hash = pb_data(hash);
    entry.before_us = entry.revoked_at_us = request->erased_us;
    entry.revoked_by = by;
    BusOut out;
    return link_revocation_event(&entry, arena, &out, err) &&
           config_replace(session, arena, &out, 0, err);
}

// A link in an old mail must neither store a preference of who is no more nor say whose it was.
static bool revoke_links(
    PGconn *pg, Session *session, const ErasureRequest *request, Arena *arena, Error *err)
{
    AUTO(PGresult) rows = erasure_pg_query(pg, HASHES, 1, &request->id, err);
    if (rows == NULL) {
        return false;
    }
    if (request->recipient_id[0] != '\0' && !revoke(session, request, STR_EMPTY, arena, err)) {
        return false;
    }
    for (int i = 0; i < PQntuples(rows); i++) {
        if (!revoke(session, request, erasure_pg_get_bytes(rows, i, 0, arena), arena, err)) {
            return false;
        }
    }
    return true;
}

// A rebuild of people.*, and the services that fold PEOPLE, must not find the record again.
static bool publish_removal(
    Session *session, const ErasureRequest *request, Arena *arena, Error *err)
{
    static char reason[] = "erased";
    char id[EVENT_ID_SIZE];
    char subject[SUBJECT_SIZE];
    event_id_derive("erasure", str_from(request->id), STR("removal"), id);
    Stentor__V1__Meta meta = meta_make(
        &(MetaSpec){.event_id = id, .tenant = request->tenant, .at_us = request->erased_us});
    Stentor__V1__Removal removal = STENTOR__V1__REMOVAL__INIT;
    removal.reason = reason;
    Stentor__V1__PersonEvent event = STENTOR__V1__PERSON_EVENT__INIT;
    event.meta = &meta;
    event.recipient_id = pb_borrow(request->recipient_id);
    event.part_case = STENTOR__V1__PERSON_EVENT__PART_REMOVAL;
    event.removal = &removal;
    event.said_by = pb_borrow(request->id);
    subject_people(subject, str_from(request->tenant));
    BusOut out = {.subject = subject, .event_id = str_from(id)};
    return event_pack(&event.base, arena, &out.payload, err) &&
           session_publish(session, &out, NULL, err);
}

// What lies in an inbox goes too, and its counts with it.
static bool publish_feed_removal(
    PGconn *pg, Session *session, const ErasureRequest *request, Arena *arena, Error *err)
{
    static char reason[] = "erased";
    char id[EVENT_ID_SIZE];
    BusOut out;
    AUTO(PGresult) rows = erasure_pg_query(pg, SUBJECTS, 1, &request->id, err);
    if (rows == NULL) {
        return false;
    }
    size_t count = (size_t)PQntuples(rows);
    Stentor__V1__FeedRemoval removal = STENTOR__V1__FEED_REMOVAL__INIT;
    removal.reason = reason;
    removal.key_subjects = arena_array(arena, count + 1, sizeof *removal.key_subjects);
    for (size_t i = 0; i < count; i++) {
        removal.key_subjects[i] = pb_data(erasure_pg_get_bytes(rows, (int)i, 0, arena));
    }
    removal.n_key_subjects = count;
    event_id_derive("erasure", str_from(request->id), STR("feed"), id);
    return feed_removal_event(
               str_from(request->tenant), id, request->erased_us, &removal, arena, &out, err) &&
           session_publish(session, &out, NULL, err);
}

static bool announce(
    PGconn *pg, Session *session, MasterKey *master, const ErasureRequest *request, Arena *arena,
    Error *err)
{
    if (!revoke_links(pg, session, request, arena, err)) {
        return false;
    }
    CRASH_POINT("erasure.revoked");
    if (request->recipient_id[0] != '\0' && !publish_removal(session, request, arena, err)) {
        return false;
    }
    CRASH_POINT("erasure.removed");
    if (!publish_feed_removal(pg, session, request, arena, err)) {
        return false;
    }
    CRASH_POINT("erasure.inbox_emptied");
    if (!erasure_delete_replies(pg, session, master, request, arena, err)) {
        return false;
    }
    CRASH_POINT("erasure.replies_deleted");
    if (!note(pg, session, request, "erasure.done", request->erased_us, arena, err)) {
        return false;
    }
    CRASH_POINT("erasure.noted_done");
    AUTO(PGresult) marked = erasure_pg_query(pg, ANNOUNCED, 1, &request->id, err);
    return marked != NULL;
}

// ---- one step after the other ----

static bool execute(PGconn *pg, const char *id, const ErasureDuty *duty, Error *err)
{
    const char *params[] = {id, duty->text, duty->interval, duty->period};
    AUTO(PGresult) done = erasure_pg_query(pg, EXECUTE, 4, params, err);
    return done != NULL;
}

// What was kept, once its duty has ended.
static bool end_records(
    PGconn *pg, Session *session, const char *id, Arena *arena, ErasureRequest *ret, Error *err)
{
    Details details = {.count = 0};
    AUTO(PGresult) ended = erasure_pg_query(pg, END, 1, &id, err);
    if (ended == NULL || PQgetisnull(ended, 0, 0)) {
        return ended != NULL;
    }
    CRASH_POINT("erasure.records_ended");
    int64_t at_us = strtoll(PQgetvalue(ended, 0, 0), NULL, 10);
    if (!erasure_read(pg, id, arena, ret, err) ||
        !add_keys(pg, ENDED, "destroyed", id, arena, &details, err) ||
        !put_entry(session, ret, "erasure.records_ended", at_us, &details, err)) {
        return false;
    }
    AUTO(PGresult) marked = erasure_pg_query(pg, ANNOUNCED_END, 1, &id, err);
    return marked != NULL;
}

bool erasure_run(
    PGconn *pg, Session *session, MasterKey *master, const char *id, const ErasureDuty *duty,
    Arena *arena, ErasureRequest *ret, Error *err)
{
    if (!erasure_read(pg, id, arena, ret, err)) {
        return false;
    }
    if (strcmp(ret->state, "erased") != 0) {
        if (!note(pg, session, ret, "erasure.requested", ret->requested_us, arena, err)) {
            return false;
        }
        CRASH_POINT("erasure.noted");
        if (!execute(pg, id, duty, err)) {
            return false;
        }
        CRASH_POINT("erasure.executed");
        if (!erasure_read(pg, id, arena, ret, err)) {
            return false;
        }
    }
    if (strcmp(ret->state, "erased") != 0) {
        return true;
    }
    ret->announced = ret->announced || announce(pg, session, master, ret, arena, err);
    return ret->announced && end_records(pg, session, id, arena, ret, err);
}

static bool read_ids(
    PGconn *pg, const char *sql, int count_of, const char *const *params, Arena *arena,
    const char *const **ret, size_t *ret_count, Error *err)
{
    AUTO(PGresult) rows = erasure_pg_query(pg, sql, count_of, params, err);
    if (rows == NULL) {
        return false;
    }
    size_t count = (size_t)PQntuples(rows);
    const char **ids = arena_array(arena, count + 1, sizeof *ids);
    for (size_t i = 0; i < count; i++) {
        ids[i] = arena_cstr(arena, str_from(PQgetvalue(rows, (int)i, 0)));
    }
    *ret = ids;
    *ret_count = count;
    return true;
}

bool erasure_open(PGconn *pg, Arena *arena, const char *const **ret, size_t *ret_count, Error *err)
{
    return read_ids(pg, OPEN, 0, NULL, arena, ret, ret_count, err);
}

bool erasure_list(
    PGconn *pg, const char *tenant, int64_t limit, Arena *arena, const char *const **ret,
    size_t *ret_count, Error *err)
{
    const char *params[] = {tenant, arena_printf(arena, "%" PRId64, limit)};
    return read_ids(pg, LIST, 2, params, arena, ret, ret_count, err);
}
