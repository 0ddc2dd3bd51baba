// SPDX-License-Identifier: Apache-2.0
// Killed between the publish and its ack: the caller did nothing yet, and its repeat is dropped by
// the id (or, after the server's window of duplicates, stands twice with the same id: harmless).
#include "common/auditlog/audit_append.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/bus/jetstream/get_message.h"
#include "common/bus/topology/topology.h"

enum { WAITING_MAX = 1024 };

typedef struct Append {
    struct Append *next;
    Arena *arena; // owns this
    AuditNote note;
    char id[EVENT_ID_SIZE];
    char subject[SUBJECT_SIZE];
    uint64_t until_ms;
    int tries;
    AuditDone done;
    void *ctx;
} Append;

struct AuditLog {
    Bus *bus;
    Append *first, **last;
    size_t count;
    AuditHead head;
    bool head_known;
    bool in_flight; // a request of the first one
    bool ended;     // freed by its owner; goes with its last answer
};

static void step(AuditLog *log);

AuditLog *audit_log_new(Bus *bus)
{
    AuditLog *log = xcalloc(1, sizeof *log);
    log->bus = bus;
    log->last = &log->first;
    return log;
}

static void answer_first(AuditLog *log, const Error *err)
{
    Append *append = log->first;
    log->first = append->next;
    log->last = log->first == NULL ? &log->first : log->last;
    log->count--;
    append->done(append->ctx, err, err == NULL ? &log->head : NULL);
    arena_free(append->arena);
}

void audit_log_free(AuditLog *log)
{
    if (log == NULL) {
        return;
    }
    Error err;
    error_set(&err, ERROR_CANCELLED, "the audit log is closing");
    log->ended = true;
    while (log->first != NULL) {
        answer_first(log, &err);
    }
    if (!log->in_flight) {
        free(log);
    }
}

// What was in flight is over. false: it is too late for everything.
static bool landed(AuditLog *log)
{
    log->in_flight = false;
    if (log->ended) {
        free(log);
        return false;
    }
    return true;
}

// The callback may append more, or end the log.
static void finish(AuditLog *log, const Error *err)
{
    log->in_flight = true;
    answer_first(log, err);
    if (landed(log)) {
        step(log);
    }
}

// ---- the head ----

static void take_head(AuditLog *log, const BusMessage *message, bool found, uint64_t asked)
{
    log->head =
        found ? audit_head_of(message->sequence, message->payload) : (AuditHead){.sequence = asked};
    log->head_known = true;
    // Stored by a try whose answer was lost.
    if (found && str_eq(message->event_id, str_from(log->first->id))) {
        finish(log, NULL);
    } else {
        step(log);
    }
}

static void on_request_head(void *ctx, Str reply, const Error *err)
{
    AuditLog *log = ctx;
    if (!landed(log)) {
        return;
    }
    Arena *arena = arena_new(0);
    BusMessage message;
    Error problem = {0};
    bool found = false;
    if (err != NULL) {
        finish(log, err);
    } else if (!get_message_reply(reply, "AUDIT", arena, &message, &found, &problem)) {
        finish(log, &problem);
    } else {
        take_head(log, &message, found, log->head.sequence);
    }
    arena_free(arena);
}

// The last entry; or the one of the number that the server named.
static void ask_head(AuditLog *log)
{
    MessageQuery query = {.stream = "AUDIT", .sequence = log->head.sequence};
    if (log->head.sequence == 0) {
        query.last_of = "aud.>";
    }
    log->in_flight = true;
    get_message(log->bus, &query, on_request_head, log);
}

// ---- the entry ----

static void on_publish_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    AuditLog *log = ctx;
    if (!landed(log)) {
        return;
    }
    if (err != NULL && err->kind == ERROR_CONFLICT) {
        log->head = (AuditHead){.sequence = sequence};
        log->head_known = false;
        step(log);
        return;
    }
    if (err != NULL || duplicate) {
        log->head = (AuditHead){0};
        log->head_known = false;
    }
    if (duplicate) {
        log->head.sequence = sequence; // where it stands; the chain may have gone on
    }
    finish(log, err);
}

static void publish(AuditLog *log)
{
    Append *append = log->first;
    Error err = {0};
    Arena *arena = arena_new(0);
    Str payload;
    if (!audit_entry_pack(&append->note, &log->head, arena, &payload, &err)) {
        finish(log, &err);
    } else {
        const BusHeader behind = bus_follows(log->head.sequence, arena);
        BusOut out = {
            .subject = append->subject,
            .event_id = str_from(append->id),
            .payload = payload,
            .headers = &behind,
            .header_count = 1};
        log->in_flight = true;
        // What it becomes the head of, once it is stored.
        log->head = audit_head_of(log->head.sequence + 1, payload);
        bus_publish(log->bus, &out, on_publish_acked, log);
    }
    arena_free(arena);
}

static void step(AuditLog *log)
{
    if (log->first == NULL || log->in_flight) {
        return;
    }
    bool late = uv_now(bus_loop(log->bus)) > log->first->until_ms;
    if (late || log->first->tries++ >= AUDIT_TRIES_MAX) {
        Error err;
        error_set(
            &err, ERROR_TRANSIENT,
            "the audit log took no entry: other writers came first for 10 s (HINT: repeat it)");
        finish(log, &err);
    } else if (log->head_known) {
        publish(log);
    } else {
        ask_head(log);
    }
}

// ---- appending ----

static const char *copy(Arena *arena, const char *text)
{
    return text != NULL ? arena_cstr(arena, str_from(text)) : NULL;
}

static AuditNote copy_note(Arena *arena, const AuditNote *note)
{
    AuditDetail *details = arena_array(arena, note->detail_count + 1, sizeof *details);
    for (size_t i = 0; i < note->detail_count; i++) {
        details[i].name = copy(arena, note->details[i].name);
        details[i].value = copy(arena, note->details[i].value);
    }
    return (AuditNote){
        .kind = note->kind,
        .tenant = copy(arena, note->tenant),
        .action = copy(arena, note->action),
        .actor = copy(arena, note->actor),
        .target = copy(arena, note->target),
        .notification_id = copy(arena, note->notification_id),
        .ground = copy(arena, note->ground),
        .request_id = copy(arena, note->request_id),
        .program = copy(arena, note->program),
        .details = details,
        .detail_count = note->detail_count,
        .at_us = note->at_us,
    };
}

void audit_log_append(AuditLog *log, const AuditNote *note, AuditDone done, void *ctx)
{
    if (log->count >= WAITING_MAX) {
        Error err;
        error_set(&err, ERROR_TRANSIENT, "%d entries wait for the audit log", (int)WAITING_MAX);
        done(ctx, &err, NULL);
        return;
    }
    Arena *arena = arena_new(0);
    Append *append = arena_zalloc(arena, sizeof *append);
    *append = (Append){.arena = arena, .note = copy_note(arena, note), .done = done, .ctx = ctx};
    append->until_ms = uv_now(bus_loop(log->bus)) + AUDIT_DEADLINE_MS;
    audit_note_id(&append->note, append->id);
    subject_audit(append->subject, str_from(note->tenant), str_from(audit_kind_name(note->kind)));
    *log->last = append;
    log->last = &append->next;
    log->count++;
    step(log);
}
