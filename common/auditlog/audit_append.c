// SPDX-License-Identifier: Apache-2.0
// Killed between the publish and its ack: the caller did nothing yet, and its repeat is dropped by
// the id (or, after the server's window of duplicates, stands twice with the same id: harmless).
#include "common/auditlog/audit_append.h"

#include <stdlib.h>
#include <string.h>

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
    AuditDone done;
    void *ctx;
} Append;

// What is stored by one message: the first that waits, and, of reads and writes, those behind it
// that have its subject. Erasures stand alone: a replay of them reads one a message. It stays as it
// is until it is answered: what was stored under its id is what it holds.
typedef struct Together {
    Append *items[AUDIT_TOGETHER_MAX];
    size_t count; // 0: none is chosen
    char id[EVENT_ID_SIZE];
    int tries;
} Together;

struct AuditLog {
    Bus *bus;
    Append *first, **last; // those that wait, without those of `together`
    size_t count;
    Together together;
    AuditHead head;
    bool head_known;
    bool in_flight; // a request of `together`
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

static void answer(AuditLog *log, Append *append, const Error *err, const AuditHead *head)
{
    log->count--;
    append->done(append->ctx, err, head);
    arena_free(append->arena);
}

// A callback may append more, or end the log.
static void answer_together(AuditLog *log, const Error *err)
{
    Together whole = log->together;
    AuditHead head = log->head;
    log->together.count = 0;
    for (size_t i = 0; i < whole.count; i++) {
        answer(log, whole.items[i], err, err == NULL ? &head : NULL);
    }
}

static Append *take_first(AuditLog *log)
{
    Append *append = log->first;
    log->first = append->next;
    log->last = log->first == NULL ? &log->first : log->last;
    return append;
}

void audit_log_free(AuditLog *log)
{
    if (log == NULL) {
        return;
    }
    Error err;
    error_set(&err, ERROR_CANCELLED, "the audit log is closing");
    log->ended = true;
    answer_together(log, &err);
    while (log->first != NULL) {
        answer(log, take_first(log), &err, NULL);
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
    answer_together(log, err);
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
    if (found && str_eq(message->event_id, str_from(log->together.id))) {
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
    const Together *together = &log->together;
    const AuditNote *notes[AUDIT_TOGETHER_MAX];
    Error err = {0};
    Arena *arena = arena_new(0);
    Str payload;
    for (size_t i = 0; i < together->count; i++) {
        notes[i] = &together->items[i]->note;
    }
    if (!audit_entries_pack(notes, together->count, &log->head, arena, &payload, &err)) {
        finish(log, &err);
    } else {
        const BusHeader behind = bus_follows(log->head.sequence, arena);
        BusOut out = {
            .subject = together->items[0]->subject,
            .event_id = str_from(together->id),
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

// Its own id where it is alone, so that a repeat of the same note is the same message.
static void name_together(Together *together)
{
    Arena *arena = arena_new(0);
    const char *ids = "";
    for (size_t i = 1; i < together->count; i++) {
        ids = arena_printf(arena, "%s/%s", ids, together->items[i]->id);
    }
    memcpy(together->id, together->items[0]->id, EVENT_ID_SIZE);
    if (together->count > 1) {
        event_id_derive("audit", str_from(together->items[0]->id), str_from(ids), together->id);
    }
    arena_free(arena);
}

static void choose_together(AuditLog *log)
{
    Together *together = &log->together;
    *together = (Together){.items = {take_first(log)}, .count = 1};
    AuditKind kind = together->items[0]->note.kind;
    bool shares = kind == AUDIT_READ || kind == AUDIT_WRITE;
    Append **at = &log->first;
    while (shares && *at != NULL && together->count < AUDIT_TOGETHER_MAX) {
        Append *append = *at;
        if (strcmp(append->subject, together->items[0]->subject) != 0) {
            at = &append->next;
            continue;
        }
        *at = append->next;
        log->last = append->next == NULL ? at : log->last;
        together->items[together->count++] = append;
    }
    name_together(together);
}

static void step(AuditLog *log)
{
    if (log->in_flight || (log->together.count == 0 && log->first == NULL)) {
        return;
    }
    if (log->together.count == 0) {
        choose_together(log);
    }
    bool late = uv_now(bus_loop(log->bus)) > log->together.items[0]->until_ms;
    if (late || log->together.tries++ >= AUDIT_TRIES_MAX) {
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
    Error err;
    if (!audit_note_fits(note, &err)) {
        done(ctx, &err, NULL);
        return;
    }
    if (log->count >= WAITING_MAX) {
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
