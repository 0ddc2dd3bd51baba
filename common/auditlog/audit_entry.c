// SPDX-License-Identifier: Apache-2.0
#include "common/auditlog/audit_entry.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/events/meta.h"

static const char *const kind_names[] = {"read",   "erasure",     "hold",        "restore",
                                         "expiry", "suppression", "dead_letter", "write"};
enum { KIND_COUNT = sizeof kind_names / sizeof kind_names[0] };

const char *audit_kind_name(AuditKind kind)
{
    return kind_names[kind];
}

bool audit_kind_from_name(Str name, AuditKind *ret)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (str_eq(name, str_from(kind_names[i]))) {
            *ret = (AuditKind)i;
            return true;
        }
    }
    return false;
}

void audit_note_id(const AuditNote *note, char out[EVENT_ID_SIZE])
{
    Arena *arena = arena_new(0);
    Str what = str_from(arena_printf(
        arena, "%s/%s/%s/%" PRId64, note->tenant, note->action,
        note->target != NULL ? note->target : "", note->at_us));
    event_id_derive("audit", str_from(note->request_id), what, out);
    arena_free(arena);
}

// ---- making one ----

static bool text_fits(const char *name, const char *text, bool must, Error *err)
{
    Str s = str_from(text);
    if (s.len == 0 && must) {
        return error_set(err, ERROR_PERMANENT, "an audit entry needs '%s'", name);
    }
    if (s.len > AUDIT_TEXT_MAX || !str_is_utf8(s)) {
        return error_set(
            err, ERROR_PERMANENT, "audit entry: '%s' is longer than %d bytes or is not UTF-8", name,
            (int)AUDIT_TEXT_MAX);
    }
    // Grounds are written by people: an address in one would stay for years after its erasure.
    if (str_find(s, '@') >= 0) {
        return error_set(
            err, ERROR_PERMANENT,
            "audit entry: '%s' holds an '@': an address must not stand in the audit log", name);
    }
    return true;
}

bool audit_note_fits(const AuditNote *note, Error *err)
{
    if (!id_is_tenant(str_from(note->tenant))) {
        return error_set(err, ERROR_PERMANENT, "an audit entry needs a tenant");
    }
    if (note->detail_count > AUDIT_DETAILS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "an audit entry has at most %d details", (int)AUDIT_DETAILS_MAX);
    }
    bool ok = text_fits("action", note->action, true, err) &&
              text_fits("actor", note->actor, true, err) &&
              text_fits("target", note->target, false, err) &&
              text_fits("ground", note->ground, false, err) &&
              text_fits("request_id", note->request_id, false, err);
    for (size_t i = 0; ok && i < note->detail_count; i++) {
        ok = text_fits(note->details[i].name, note->details[i].value, false, err);
    }
    return ok;
}

static void add_details(const AuditNote *note, Stentor__V1__AuditEntry *entry, Arena *arena)
{
    Stentor__V1__AuditDetail *rows = arena_array(arena, note->detail_count + 1, sizeof *rows);
    entry->details = arena_array(arena, note->detail_count + 1, sizeof *entry->details);
    entry->n_details = note->detail_count;
    for (size_t i = 0; i < note->detail_count; i++) {
        stentor__v1__audit_detail__init(&rows[i]);
        rows[i].name = pb_borrow(note->details[i].name);
        rows[i].value = pb_borrow(note->details[i].value);
        entry->details[i] = &rows[i];
    }
}

static Stentor__V1__AuditEntry *entry_of(const AuditNote *note, Arena *arena)
{
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    audit_note_id(note, id);
    Stentor__V1__Meta *meta = arena_alloc(arena, sizeof *meta);
    *meta = meta_make(&(MetaSpec){
        .event_id = id,
        .tenant = note->tenant,
        .notification_id = note->notification_id,
        .at_us = note->at_us});
    Stentor__V1__AuditEntry *entry = arena_alloc(arena, sizeof *entry);
    stentor__v1__audit_entry__init(entry);
    entry->meta = meta;
    entry->action = pb_borrow(note->action);
    entry->actor = pb_borrow(note->actor);
    entry->target = pb_borrow(note->target);
    entry->ground = pb_borrow(note->ground);
    entry->request_id = pb_borrow(note->request_id);
    entry->program = pb_borrow(note->program);
    add_details(note, entry, arena);
    return entry;
}

bool audit_entries_pack(
    const AuditNote *const *notes, size_t count, const AuditHead *head, Arena *arena, Str *ret,
    Error *err)
{
    assert(count >= 1 && count <= AUDIT_TOGETHER_MAX);
    Stentor__V1__AuditEntry *entry = entry_of(notes[0], arena);
    entry->kind = pb_borrow(audit_kind_name(notes[0]->kind));
    if (head->has_hash) {
        entry->previous = pb_data(str_of(head->hash, sizeof head->hash));
    }
    entry->previous_sequence = head->sequence;
    entry->also = arena_array(arena, count, sizeof *entry->also);
    for (size_t i = 1; i < count; i++) {
        entry->also[entry->n_also++] = entry_of(notes[i], arena);
    }
    return event_pack(&entry->base, arena, ret, err);
}

AuditHead audit_head_of(uint64_t sequence, Str payload)
{
    AuditHead head = {.sequence = sequence, .has_hash = true};
    sha256(payload, head.hash);
    return head;
}

// ---- the chain ----

// The entry behind `head` must name it; behind nothing known, anything that names no later entry.
static bool follows(
    const AuditHead *head, uint64_t sequence, const Stentor__V1__AuditEntry *entry, Error *err)
{
    if (head->sequence == 0) {
        bool ok = sequence > 1 || (entry->previous.len == 0 && entry->previous_sequence == 0);
        return ok || error_set(
                         err, ERROR_PERMANENT,
                         "entry 1 names an entry before it: the stream was replaced");
    }
    if (sequence != head->sequence + 1) {
        return error_set(
            err, ERROR_PERMANENT, "entries %" PRIu64 " to %" PRIu64 " are missing",
            head->sequence + 1, sequence - 1);
    }
    bool same = entry->previous_sequence == head->sequence &&
                str_eq(pb_bytes(entry->previous), str_of(head->hash, sizeof head->hash));
    return same || error_set(
                       err, ERROR_PERMANENT,
                       "entry %" PRIu64 " does not fit entry %" PRIu64 ": one of them was changed",
                       sequence, head->sequence);
}

bool audit_chain_add(
    AuditChain *chain, uint64_t sequence, Str payload, Arena *arena,
    const Stentor__V1__AuditEntry **ret_entry, Error *err)
{
    const Stentor__V1__AuditEntry *entry = (const Stentor__V1__AuditEntry *)event_unpack(
        &stentor__v1__audit_entry__descriptor, payload, arena, err);
    *ret_entry = entry;
    bool ok = entry != NULL && entry->meta != NULL && follows(&chain->head, sequence, entry, err);
    if (entry == NULL || entry->meta == NULL) {
        error_set(err, ERROR_PERMANENT, "entry %" PRIu64 " cannot be read", sequence);
    } else {
        Str id = str_from(entry->meta->event_id);
        chain->repeats += str_eq(id, str_from(chain->last_id)) ? 1 : 0;
        (void)str_to_c(str_slice(id, 0, EVENT_ID_LEN), chain->last_id, sizeof chain->last_id);
    }
    chain->messages++;
    chain->entries += 1 + (entry != NULL ? entry->n_also : 0);
    chain->head = audit_head_of(sequence, payload);
    return ok;
}
