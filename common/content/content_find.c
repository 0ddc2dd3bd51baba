// SPDX-License-Identifier: Apache-2.0
#include "common/content/content_find.h"

#include <string.h>

#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/content/text_search.h"

// The event is stored at once; clocks of NATS and of the renderer may differ by so much.
static const int64_t slack_us = INT64_C(600) * 1000000;

// ---- history ----

static const DbStatement row_statement = {
    .name = "content_row",
    .sql = "SELECT status, priority, rendered_at, updated_at, content_checksum "
           "FROM archiver.notifications WHERE created_at = $1::timestamptz AND id = $2::text"};

typedef struct Asked {
    SessionWait wait;
    Arena *arena;
    ContentRow *row;
} Asked;

static void read_row(Asked *asked, const PGresult *rows)
{
    Arena *arena = asked->arena;
    ContentRow *row = asked->row;
    row->found = db_rows(rows) > 0;
    if (!row->found) {
        return;
    }
    row->status = arena_cstr(arena, db_get_text(rows, 0, 0));
    (void)priority_from_name(db_get_text(rows, 0, 1), &row->priority);
    row->rendered_us = db_get_time(rows, 0, 2);
    row->updated_us = db_get_time(rows, 0, 3);
    row->checksum = arena_str(arena, db_get_text(rows, 0, 4));
}

static void on_row(void *ctx, DbTxn *txn, const Error *err)
{
    Asked *asked = ctx;
    if (err == NULL) {
        read_row(asked, db_txn_result(txn, 0));
    }
    session_wait_end(&asked->wait, err);
}

bool content_row(ContentSession *s, const char *tenant, const char *id, ContentRow *ret, Error *err)
{
    Asked asked = {.wait = {.session = &s->session}, .arena = s->arena, .row = ret};
    int64_t created_ms = 0;
    *ret = (ContentRow){.status = ""};
    (void)id_parse(str_from(id), "ntf_", &created_ms);
    DbTxn *txn = db_txn_new(s->pool);
    db_txn_tenant(txn, str_from(tenant));
    DbParams *params = db_txn_add(txn, &row_statement, NULL);
    db_time(params, created_ms * 1000);
    db_text(params, str_from(id));
    db_txn_submit(txn, on_row, &asked);
    return session_wait(&asked.wait, err);
}

// ---- the stream ----

typedef struct Search {
    ContentSession *session;
    const char *tenant, *id;
    const char *stream;
    Arena *scratch;
    ContentFound *found;
} Search;

static const Stentor__V1__Rendered *read_event(Str payload, Arena *arena)
{
    Error ignored;
    return (const void *)event_unpack(&stentor__v1__rendered__descriptor, payload, arena, &ignored);
}

static bool on_rendered(void *ctx, const BusMessage *message)
{
    Search *search = ctx;
    if (!text_search(message->payload, str_from(search->id))) {
        return true; // most: they are not read further
    }
    arena_reset(search->scratch);
    const Stentor__V1__Rendered *event = read_event(message->payload, search->scratch);
    if (event == NULL || event->meta == NULL ||
        strcmp(event->meta->notification_id, search->id) != 0 ||
        strcmp(event->meta->tenant, search->tenant) != 0) {
        return true;
    }
    Arena *arena = search->session->arena;
    *search->found = (ContentFound){
        read_event(arena_str(arena, message->payload), arena), search->stream, message->sequence,
        message->stored_at_us};
    return false;
}

static bool search_lane(Search *search, Priority lane, int64_t from_us, int64_t to_us, Error *err)
{
    char filter[SUBJECT_SIZE];
    subject_rendered(filter, lane, str_from(search->tenant));
    search->stream = topology_lane_stream("RENDERED", lane);
    ContentWalk walk = {search->stream, filter, from_us, to_us, on_rendered, search};
    return content_walk(search->session, &walk, err) || error_wrap(err, "'%s'", search->stream);
}

bool content_find(
    ContentSession *s, const char *tenant, const char *id, const ContentRow *row, ContentFound *ret,
    Error *err)
{
    int64_t created_ms = 0;
    (void)id_parse(str_from(id), "ntf_", &created_ms);
    bool known = row->rendered_us > 0;
    int64_t from_us = (known ? row->rendered_us : created_ms * 1000) - slack_us;
    int64_t to_us = known ? row->rendered_us + slack_us : 0;
    *ret = (ContentFound){.event = NULL};
    Search search = {s, tenant, id, NULL, arena_new(0), ret};
    bool ok = true;
    for (Priority lane = PRIORITY_NONE + 1; ok && ret->event == NULL && lane < PRIORITY_COUNT;
         lane++) {
        bool higher = lane < row->priority; // a tenant's flood goes on in a lower one
        ok = higher || search_lane(&search, lane, from_us > 0 ? from_us : 1, to_us, err);
    }
    arena_free(search.scratch);
    return ok;
}
