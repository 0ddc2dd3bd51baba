// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/accept_group.h"

#include <string.h>

#include "common/base/map.h"
#include "services/ingest/events.h"

enum { NTF_ID_LEN = 4 + ULID_LEN, ANSWER_ROOM = 96 };

static void want_key(Group *g, size_t n, const Submission *s, const Request *r, Str hash_key)
{
    address_hash(hash_key, s->tenant, r->channel, r->to, g->hashes[n]);
    char hex[2 * ADDRESS_HASH_LEN + 1];
    Str owner = r->recipient_id;
    if (owner.len == 0) {
        hex_encode(g->hashes[n], ADDRESS_HASH_LEN, hex);
        owner = str_of(hex, sizeof hex - 1);
    }
    g->wants[n] = (KeyWant){.tenant = s->tenant};
    key_subject(hash_key, s->tenant, owner, g->wants[n].subject);
}

void group_prepare(Group *g, Str hash_key)
{
    g->ids = arena_array(g->arena, g->notifications, sizeof *g->ids);
    g->hashes = arena_array(g->arena, g->notifications, sizeof *g->hashes);
    g->wants = arena_array(g->arena, g->notifications, sizeof *g->wants);
    char *ids = arena_alloc(g->arena, g->notifications * ID_SIZE);
    size_t n = 0;
    for (const Submission *s = g->first; s != NULL; s = s->next) {
        for (size_t i = 0; i < s->count; i++, n++) {
            g->ids[n] = s->requests[i].given_id;
            if (g->ids[n] == NULL) {
                id_new("ntf_", g->accepted_at_us, ids + n * ID_SIZE);
                g->ids[n] = ids + n * ID_SIZE;
            }
            want_key(g, n, s, &s->requests[i], hash_key);
        }
    }
}

// Requests of a tenant without a key share a row; each one with a key has its own. Returns the
// number of rows.
static size_t assign_rows(Group *g, size_t *counts)
{
    Map *by_tenant = map_new(NULL);
    size_t rows = 0;
    for (Submission *s = g->first; s != NULL; s = s->next) {
        size_t *shared = s->key.len > 0 ? NULL : map_get(by_tenant, s->tenant);
        if (shared == NULL && s->key.len == 0) {
            map_put(by_tenant, s->tenant, &counts[rows]);
        }
        s->row = shared == NULL ? rows++ : (size_t)(shared - counts);
        counts[s->row] += s->count;
    }
    map_free(by_tenant);
    return rows;
}

static char *add_answer(char *at, const char *id, Status status)
{
    static const char BEFORE[] = "{\"id\":\"";
    static const char BETWEEN[] = "\",\"status\":\"";
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
    *at++ = '}';
    return at;
}

// The answer is made before the commit, for it is stored with the key.
static void make_answer(Group *g, Submission *s, const char *const *ids)
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
        at = add_answer(at, ids[i], events_status(&s->requests[i]));
    }
    if (!s->single) {
        *at++ = ']';
        *at++ = '}';
    }
    s->answer = str_of(text, (size_t)(at - text));
}

static bool build_submission(Group *g, const Submission *s, size_t n, Error *err)
{
    AcceptRow *row = &g->rows[s->row];
    for (size_t i = 0; i < s->count; i++, n++) {
        if (g->wants[n].key == NULL) {
            return error_set(
                err, ERROR_TRANSIENT, "no data key for a recipient of '%.*s'", STR_ARG(s->tenant));
        }
        Acceptance acceptance = {
            .tenant = s->tenant,
            .id = g->ids[n],
            .accepted_at_us = g->accepted_at_us,
            .traceparent = s->traceparent,
            .address_hash = g->hashes[n],
            .key = g->wants[n].key,
        };
        Frame *place = &row->frames[row->frame_count];
        if (!events_build(&s->requests[i], &acceptance, g->arena, place, err)) {
            return false;
        }
        char *ids = (char *)(uintptr_t)row->ids.ptr;
        if (row->frame_count > 0) {
            ids[row->ids.len++] = ',';
        }
        memcpy(ids + row->ids.len, g->ids[n], NTF_ID_LEN);
        row->ids.len += NTF_ID_LEN;
        row->frame_count += EVENTS_PER_NOTIFICATION;
    }
    return true;
}

static void lay_out(Group *g, size_t submissions)
{
    size_t *counts = arena_array(g->arena, submissions, sizeof *counts);
    g->row_count = assign_rows(g, counts);
    g->rows = arena_array(g->arena, g->row_count, sizeof *g->rows);
    for (Submission *s = g->first; s != NULL; s = s->next) {
        AcceptRow *row = &g->rows[s->row];
        if (row->frames == NULL) {
            size_t count = counts[s->row];
            row->tenant = s->tenant;
            row->frames = arena_array(g->arena, count * EVENTS_PER_NOTIFICATION, sizeof(Frame));
            row->ids.ptr = arena_alloc(g->arena, count * (NTF_ID_LEN + 1)); // grows within it
        }
        if (s->key.len > 0) {
            row->scope = s->scope;
            row->key = s->key;
            row->hash = s->body_hash;
        }
    }
}

bool group_build(Group *g, Error *err)
{
    size_t submissions = 0;
    for (const Submission *s = g->first; s != NULL; s = s->next) {
        submissions++;
    }
    lay_out(g, submissions);
    size_t n = 0;
    for (Submission *s = g->first; s != NULL; n += s->count, s = s->next) {
        if (!build_submission(g, s, n, err)) {
            return false;
        }
        make_answer(g, s, g->ids + n);
        g->rows[s->row].answer = s->answer; // of use for a row with a key, which has one submission
    }
    for (size_t i = 0; i < g->row_count; i++) {
        AcceptRow *row = &g->rows[i];
        row->first_id = str_slice(row->ids, 0, NTF_ID_LEN);
        row->events = frames_pack(row->frames, row->frame_count, g->arena);
    }
    g->built = true;
    return true;
}
