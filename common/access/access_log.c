// SPDX-License-Identifier: Apache-2.0
#include "common/access/access_log.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/erasure/erasure_segment.h"
#include "common/eventlog/log_streams.h"
#include "common/model/enums.h"
#include "common/session/stream_walk.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/request.pb-c.h"

static const char SEGMENTS[] =
    "SELECT key, bytes, encode(sha256, 'hex') FROM archive.segments"
    " WHERE deleted_at IS NULL AND stream LIKE 'REQUEST%' ORDER BY stream, window_number, class";

typedef struct Reading {
    AccessExport *x;
    AccessLog *log;
    Arena *arena;  // of one message
    bool deferred; // the stream holds Deferred, not requests
    uint64_t messages, found;
} Reading;

static bool is_of_person(Reading *r, const Stentor__V1__NotificationRequest *request)
{
    const ErasurePerson *person = r->x->person;
    if (request->meta == NULL || strcmp(request->meta->tenant, person->tenant) != 0) {
        return false;
    }
    if (request->recipient_id[0] != '\0') { // whoever else had the address before is another
        return strcmp(request->recipient_id, person->recipient_id) == 0;
    }
    return access_is_of_address(
        r->x, pb_bytes(request->address_hash), request->accepted_at_us, r->arena);
}

static json_t *variables_json(Reading *r, const Stentor__V1__NotificationRequest *request)
{
    Str plain = STR_EMPTY;
    if (request->variables == NULL) {
        return json_null();
    }
    if (!person_keys_unseal(
            r->x->keys, str_from(request->meta->tenant), str_from(request->meta->notification_id),
            "variables", request->variables, r->arena, &plain)) {
        r->x->unreadable++;
        return json_null();
    }
    json_t *variables = json_loadb(plain.ptr, plain.len, 0, NULL);
    r->x->refused += variables == NULL;
    return variables != NULL ? variables : json_null();
}

// Of a request, or of one that waits for its time.
static const Stentor__V1__NotificationRequest *request_of(Reading *r, Str payload)
{
    if (!r->deferred) {
        return (const Stentor__V1__NotificationRequest *)event_unpack(
            &stentor__v1__notification_request__descriptor, payload, r->arena, NULL);
    }
    const Stentor__V1__Deferred *deferred = (const Stentor__V1__Deferred *)event_unpack(
        &stentor__v1__deferred__descriptor, payload, r->arena, NULL);
    bool of_request =
        deferred != NULL && deferred->work_case == STENTOR__V1__DEFERRED__WORK_REQUEST;
    return of_request ? deferred->request : NULL;
}

// The same request from a segment and from its stream is one.
static void take_message(Reading *r, Str payload)
{
    arena_reset(r->arena);
    r->messages++;
    const Stentor__V1__NotificationRequest *request = request_of(r, payload);
    if (request == NULL || !is_of_person(r, request) ||
        json_object_get(r->log->requests, request->meta->notification_id) != NULL) {
        return;
    }
    char accepted[CLOCK_RFC3339_SIZE] = "";
    clock_format(request->accepted_at_us, accepted);
    char consented[CLOCK_RFC3339_SIZE] = "";
    if (request->consent_at_us != 0) {
        clock_format(request->consent_at_us, consented);
    }
    r->found++;
    int set = json_object_set_new(
        r->log->requests, request->meta->notification_id,
        json_pack(
            "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "notification_id",
            request->meta->notification_id, "accepted_at", accepted, "channel",
            channel_name((Channel)request->channel), "template", request->template_,
            "template_version", request->template_version, "source_event_id",
            request->source_event_id, "consent_source", request->consent_source, "consent_at",
            consented, "variables", variables_json(r, request)));
    r->x->refused += set != 0;
}

static void add_source(Reading *r, const char *kind, const char *name, const char *sha256)
{
    json_array_append_new(
        r->log->sources,
        json_pack(
            "{s:s, s:s, s:s, s:I, s:I}", "kind", kind, "name", name, "sha256", sha256, "read",
            (json_int_t)r->messages, "found", (json_int_t)r->found));
    r->messages = 0;
    r->found = 0;
}

static void on_message(void *ctx, const BusMessage *message)
{
    take_message(ctx, message->payload);
}

static bool read_streams(Reading *r, Error *err)
{
    size_t count = 0;
    const LogStream *streams = log_streams(&count);
    for (size_t i = 0; i < count; i++) {
        r->deferred = strcmp(streams[i].stream, "DEFERRED") == 0;
        if (!r->deferred && !str_starts(str_from(streams[i].stream), STR("REQUEST_"))) {
            continue;
        }
        if (!session_walk(r->x->session, streams[i].stream, NULL, on_message, r, err)) {
            return error_wrap(err, "stream '%s'", streams[i].stream);
        }
        add_source(r, "stream", streams[i].stream, "");
    }
    return true;
}

static void on_record(void *ctx, const SegmentRecord *record)
{
    take_message(ctx, record->payload);
}

static bool read_segments(Reading *r, Error *err)
{
    if (r->x->storage == NULL) {
        return true;
    }
    AUTO(PGresult) rows = erasure_pg_query(r->x->pg, SEGMENTS, 0, NULL, err);
    bool ok = rows != NULL;
    for (int i = 0; ok && i < PQntuples(rows); i++) {
        const char *key = PQgetvalue(rows, i, 0);
        ok = erasure_segment_each(
            r->x->storage, key, strtoull(PQgetvalue(rows, i, 1), NULL, 10), on_record, r, err);
        add_source(r, "segment", key, PQgetvalue(rows, i, 2));
    }
    return ok;
}

bool access_log_read(AccessExport *x, AccessLog *log, Error *err)
{
    Reading r = {.x = x, .log = log, .arena = arena_new(0)};
    json_array_append_new(
        log->sources, json_pack(
                          "{s:s, s:s, s:s}", "kind", "database", "name",
                          "people, archiver, archive, keys", "sha256", ""));
    bool ok = read_segments(&r, err) && read_streams(&r, err);
    arena_free(r.arena);
    json_t *list = json_array();
    const char *id = NULL;
    json_t *row = NULL;
    json_object_foreach(log->requests, id, row)
    {
        json_array_append(list, row);
    }
    json_object_set_new(x->root, "requests", list);
    access_end_section(x, "requests");
    return ok;
}
