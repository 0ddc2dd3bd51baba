// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/accept/accept_group.h"

#include <assert.h>
#include <string.h>

#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/events/sealed.h"
#include "common/model/retention/retention.h"
#include "services/ingest/accept/accept_internal.h"
#include "services/ingest/accept/accept_trace.h"
#include "services/ingest/accept/events.h"
#include "stentor/v1/request.pb-c.h"

enum { NTF_ID_LEN = 4 + ULID_LEN, ANSWER_ROOM = 128 };

void group_prepare(Group *g)
{
    GateRun *run = &g->gate;
    run->arena = g->arena;
    run->now_us = g->accepted_at_us;
    run->count = g->notifications;
    run->cap = 2 * g->notifications;
    run->notices = arena_array(g->arena, run->cap, sizeof *run->notices);
    char *ids = arena_alloc(g->arena, g->notifications * ID_SIZE);
    Notice *notice = run->notices;
    for (const Submission *s = g->first; s != NULL; s = s->next) {
        for (size_t i = 0; i < s->count; i++, notice++, ids += ID_SIZE) {
            notice->request = s->requests[i];
            notice->tenant = s->tenant;
            notice->traceparent = s->traceparent;
            notice->id = s->requests[i].given_id;
            if (notice->id == NULL) {
                id_new("ntf_", g->accepted_at_us, ids);
                retention_id_set_code(ids, retention_class_code(s->requests[i].retention));
                notice->id = ids;
            }
        }
    }
}

// ---- keys ----

static const Stentor__V1__Sealed *sealed_of(const Notice *notice, Arena *arena)
{
    return (const Stentor__V1__Sealed *)event_unpack(
        &stentor__v1__sealed__descriptor, notice->sealed, arena, NULL);
}

static void want_keys_of(Group *g, Notice *notice, const Keyring *keyring)
{
    if (notice->sealed.len > 0) {
        const Stentor__V1__Sealed *sealed = sealed_of(notice, g->arena);
        if (sealed_names_key(sealed)) {
            notice->address_key = &g->wants[g->want_count++];
            *notice->address_key = key_want_of(notice->tenant, sealed);
        }
    }
    const Request *request = &notice->request;
    bool record = retention_class_of_id(str_from(notice->id)) == RETENTION_RECORD;
    DataKeyKind kind = record ? DATA_KEY_RECORD : DATA_KEY_ORDINARY;
    notice->key = &g->wants[g->want_count++];
    *notice->key =
        request->recipient_id.len > 0
            ? keyring_want(keyring, kind, notice->tenant, request->recipient_id)
            : keyring_want_address(keyring, kind, notice->tenant, request->channel, request->to);
}

void group_want_keys(Group *g, const Keyring *keyring)
{
    g->wants = arena_array(g->arena, 2 * g->gate.count, sizeof *g->wants);
    g->want_count = 0;
    for (size_t i = 0; i < g->gate.count; i++) {
        Notice *notice = &g->gate.notices[i];
        if (notice->decision.verdict != GATE_SUPPRESS) {
            want_keys_of(g, notice, keyring);
        }
    }
}

static bool read_address(Notice *notice, Arena *arena, Error *err)
{
    const Stentor__V1__Sealed *sealed = sealed_of(notice, arena);
    DataKey *key = notice->address_key == NULL ? NULL : notice->address_key->key;
    Str plain = STR_EMPTY;
    if (key == NULL || !unseal(
                           key, notice->tenant, notice->request.recipient_id, "address", sealed,
                           arena, &plain, err)) {
        return false;
    }
    const Stentor__V1__Address *address = (const Stentor__V1__Address *)event_unpack(
        &stentor__v1__address__descriptor, plain, arena, err);
    if (address == NULL || address->address[0] == '\0') {
        return false;
    }
    notice->request.to = str_from(address->address);
    if (notice->request.to_name.len == 0) {
        notice->request.to_name = str_from(address->name);
    }
    return true;
}

// An erased recipient has no key any more, and so no address; a restricted one has none to seal
// under.
static bool may_be_written_to(Notice *notice, Arena *arena)
{
    return notice->key->key != NULL &&
           (notice->sealed.len == 0 || read_address(notice, arena, NULL));
}

static void open_addresses(Group *g)
{
    for (size_t i = 0; i < g->gate.count; i++) {
        Notice *notice = &g->gate.notices[i];
        if (notice->decision.verdict != GATE_SUPPRESS && !may_be_written_to(notice, g->arena)) {
            notice->decision = (GateDecision){.verdict = GATE_SUPPRESS, .reason = GATE_NO_ADDRESS};
            notice->has_address = false;
            gate_trace_erased(notice->trace);
        }
    }
}

// ---- parts ----

// A row's events are published, marked and dropped together. So what waits for its time has another
// row than what goes out now (or a year's schedule would keep all that came with it), and each lane
// has its own (or one that is full would have the others' events published again and again).
typedef struct Row {
    size_t number;
    AcceptPart *keyless; // NULL: none yet
    AcceptPart *last;
} Row;

static Row *row_of(Group *g, Map *by_tenant, const Submission *s)
{
    Row **rows = map_get(by_tenant, s->tenant);
    if (rows == NULL) {
        rows = arena_array(g->arena, PRIORITY_COUNT, sizeof *rows);
        map_put(by_tenant, s->tenant, (void *)rows);
    }
    const Request *first = &s->requests[0];
    Row **row = &rows[first->scheduled_for_us != 0 ? PRIORITY_NONE : first->priority];
    if (*row == NULL) {
        *row = arena_zalloc(g->arena, sizeof **row);
        (*row)->number = g->row_count++;
    }
    return *row;
}

static AcceptPart *part_of(Group *g, Row *row, const Submission *s)
{
    bool keyed = s->key.len > 0;
    if (!keyed && row->keyless != NULL) {
        return row->keyless;
    }
    AcceptPart *part = &g->parts[g->part_count++];
    *part = (AcceptPart){.tenant = s->tenant, .row = row->number};
    if (keyed) {
        part->scope = s->scope;
        part->key = s->key;
        part->hash = s->body_hash;
    } else {
        row->keyless = part;
    }
    if (row->last != NULL) {
        row->last->next = part;
    }
    row->last = part;
    return part;
}

// counts: notifications of each part
static void assign_parts(Group *g, size_t *counts)
{
    Map *by_tenant = map_new(NULL);
    for (Submission *s = g->first; s != NULL; s = s->next) {
        AcceptPart *part = part_of(g, row_of(g, by_tenant, s), s);
        s->part = (size_t)(part - g->parts);
        counts[s->part] += s->count;
    }
    map_free(by_tenant);
}

static char *add_answer(char *at, const char *id, Status status, bool scheduled_past)
{
    static const char BEFORE[] = "{\"id\":\"";
    static const char BETWEEN[] = "\",\"status\":\"";
    static const char PAST[] = ",\"scheduled_for_past\":true";
    const char *name = status_name(status);
    size_t name_len = strlen(name);
    memcpy(at, BEFORE, sizeof BEFORE - 1);
    at += sizeof BEFORE - 1;
    memcpy(at, id, NTF_ID_LEN);
    at += NTF_ID_LEN;
    memcpy(at, BETWEEN, sizeof BETWEEN - 1);
    at += sizeof BETWEEN - 1;
    memcpy(at, name, name_len);
    at += name_len;
    *at++ = '"';
    if (scheduled_past) {
        memcpy(at, PAST, sizeof PAST - 1);
        at += sizeof PAST - 1;
    }
    *at++ = '}';
    return at;
}

// The answer is made before the commit, for it is stored with the key.
static void make_answer(Group *g, Submission *s, const Notice *notices)
{
    static const char LIST[] = "{\"notifications\":[";
    char *text = arena_alloc(g->arena, sizeof LIST + s->count * ANSWER_ROOM);
    char *at = text;
    if (!s->single) {
        memcpy(at, LIST, sizeof LIST - 1);
        at += sizeof LIST - 1;
    }
    for (size_t i = 0; i < s->count; i++) {
        if (i > 0) {
            *at++ = ',';
        }
        at = add_answer(
            at, notices[i].id, events_status(&notices[i].decision), s->requests[i].scheduled_past);
    }
    if (!s->single) {
        *at++ = ']';
        *at++ = '}';
    }
    s->answer = str_of(text, (size_t)(at - text));
}

// Of a notification that is sent now. One that waits gets its lane from digest-flusher, at its
// time.
static Priority lane_of(Group *g, FairShare *share, const Notice *notice)
{
    Priority wanted = notice->request.priority;
    if (notice->decision.verdict != GATE_GO) {
        return wanted;
    }
    Priority lane = fair_share_lane(share, notice->tenant, wanted, g->gathered_at_us);
    g->lowered += lane != wanted;
    return lane;
}

static bool build_notice(Group *g, FairShare *share, const Notice *notice, Error *err)
{
    bool sealed = notice->decision.verdict != GATE_SUPPRESS;
    Acceptance acceptance = {
        .tenant = notice->tenant,
        .id = notice->id,
        .accepted_at_us = g->accepted_at_us,
        .traceparent = accept_traceparent(
            g->accept->options.tracer, notice->traceparent, notice->id, g->arena),
        .address_hash = notice->has_address ? notice->hash : NULL,
        .key = sealed ? notice->key->key : NULL,
        .decision = notice->decision,
        .gate_trace = notice->trace,
        .digest = notice->digest,
        .lane = lane_of(g, share, notice),
        .packed = g->accept->options.packed,
        .time_zone = notice->record == NULL ? STR_EMPTY : notice->record->time_zone,
    };
    AcceptPart *part = &g->parts[notice->part];
    part->lowered = part->lowered || acceptance.lane != notice->request.priority;
    size_t frames = 0;
    if (!events_build(
            &notice->request, &acceptance, g->arena, &part->frames[part->frame_count], &frames,
            err)) {
        return false;
    }
    part->frame_count += frames;
    char *ids = (char *)(uintptr_t)part->ids.ptr;
    if (part->ids.len > 0) {
        ids[part->ids.len++] = ',';
    }
    memcpy(ids + part->ids.len, notice->id, NTF_ID_LEN);
    part->ids.len += NTF_ID_LEN;
    return true;
}

static void lay_out(Group *g, size_t submissions)
{
    size_t *counts = arena_array(g->arena, submissions, sizeof *counts);
    g->parts = arena_array(g->arena, submissions, sizeof *g->parts);
    g->part_count = 0; // built before, when a key was not found
    g->row_count = 0;
    g->lowered = 0;
    assign_parts(g, counts);
    assert(g->part_count <= submissions);
    for (size_t i = 0; i < g->part_count; i++) {
        AcceptPart *part = &g->parts[i];
        size_t count = 2 * counts[i]; // each may have a copy for a guardian
        part->frames = arena_array(g->arena, count * EVENTS_PER_NOTIFICATION, sizeof(Frame));
        part->ids.ptr = arena_alloc(g->arena, count * (NTF_ID_LEN + 1)); // grows within it
    }
}

// Copies go with the part of their first, whose they were made a copy of before it had one.
static void place_notices(Group *g)
{
    size_t n = 0;
    for (const Submission *s = g->first; s != NULL; s = s->next) {
        for (size_t i = 0; i < s->count; i++) {
            g->gate.notices[n++].part = s->part;
        }
    }
    for (; n < g->gate.count; n++) {
        g->gate.notices[n].part = g->gate.notices[g->gate.notices[n].first].part;
    }
}

bool group_build(Group *g, FairShare *share, Error *err)
{
    size_t submissions = 0;
    for (const Submission *s = g->first; s != NULL; s = s->next) {
        submissions++;
    }
    open_addresses(g);
    lay_out(g, submissions);
    place_notices(g);
    for (size_t i = 0; i < g->gate.count; i++) {
        if (!build_notice(g, share, &g->gate.notices[i], err)) {
            return false;
        }
    }
    const Notice *notices = g->gate.notices;
    for (Submission *s = g->first; s != NULL; notices += s->count, s = s->next) {
        make_answer(g, s, notices);
        g->parts[s->part].answer = s->answer; // of use with a key: one submission is one part then
    }
    for (size_t i = 0; i < g->part_count; i++) {
        AcceptPart *part = &g->parts[i];
        assert(part->ids.len > 0);
        part->events = frames_pack(part->frames, part->frame_count, g->arena);
        if (g->accept->options.packed) {
            part->events = frames_compress(part->events, g->arena);
        }
    }
    g->built = true;
    return true;
}

PublishedRow *group_published_rows(const Group *g)
{
    PublishedRow *rows = arena_array(g->arena, g->row_count, sizeof *rows);
    Frame **frames = arena_array(g->arena, g->row_count, sizeof *frames);
    for (size_t i = 0; i < g->part_count; i++) {
        rows[g->parts[i].row].count += g->parts[i].frame_count;
    }
    for (size_t i = 0; i < g->row_count; i++) {
        frames[i] = arena_array(g->arena, rows[i].count, sizeof(Frame));
        rows[i] = (PublishedRow){.frames = frames[i]};
    }
    for (size_t i = 0; i < g->part_count; i++) {
        const AcceptPart *part = &g->parts[i];
        PublishedRow *row = &rows[part->row];
        if (part->accept_id != 0) {
            row->accept_id = part->accept_id;
            row->tenant = part->tenant;
            row->lowered = row->lowered || part->lowered;
            memcpy(&frames[part->row][row->count], part->frames, part->frame_count * sizeof(Frame));
            row->count += part->frame_count;
        }
    }
    return rows;
}
