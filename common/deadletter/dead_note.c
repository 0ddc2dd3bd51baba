// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/dead_note.h"

#include <assert.h>
#include <inttypes.h>

#include "common/base/buf.h"
#include "common/base/id.h"

static const char *yes_no(bool yes)
{
    return yes ? "yes" : "no";
}

static const char *print_sequences(const DeadNote *note, Arena *arena)
{
    Buf out;
    buf_init(&out, AUDIT_TEXT_MAX);
    for (size_t i = 0; i < note->count; i++) {
        buf_printf(&out, "%s%" PRIu64, i > 0 ? " " : "", note->sequences[i]);
    }
    const char *text = arena_cstr(arena, buf_view(&out));
    buf_done(&out);
    return text;
}

void dead_note_append(AuditLog *log, const DeadNote *note, AuditDone done, void *ctx)
{
    assert(note->count > 0 && note->count <= DEAD_NOTE_MAX);
    Arena *arena = arena_new(0);
    const AuditDetail details[] = {
        {"letters", arena_printf(arena, "%zu", note->count)},
        {"sequences", print_sequences(note, arena)},
        {"may_double", yes_no(note->may_double)},
        {"ignore_expiry", yes_no(note->ignore_expiry)},
    };
    const AuditNote entry = {
        .kind = AUDIT_DEAD_LETTER,
        .tenant = note->tenant,
        .action = note->drop ? "dead_letter.dropped" : "dead_letter.resent",
        .actor = note->actor,
        .target = arena_printf(arena, "DEAD/%" PRIu64, note->sequences[0]),
        .notification_id = note->notification_id,
        .request_id = note->request_id,
        .program = note->program,
        .details = details,
        .detail_count = note->drop ? 2 : sizeof details / sizeof details[0],
        .at_us = note->at_us,
    };
    audit_log_append(log, &entry, done, ctx);
    arena_free(arena);
}

// ---- of a group ----

typedef struct TenantNote {
    ResendGroup *group;
    const char *tenant;
    bool of[RESEND_GROUP_MAX]; // its tasks
} TenantNote;

// A letter's tenant is whatever stands in its subject.
static const char *tenant_of(const ResendTask *task)
{
    Str tenant = task->letter.tenant;
    return id_is_tenant(tenant) ? arena_cstr(task->group->arena, tenant) : "platform";
}

static bool is_to_do(const ResendTask *task)
{
    return task->fate == LETTER_OPEN && (task->remove || task->out.subject != NULL);
}

static void on_noted(void *ctx, const Error *err, const AuditHead *head)
{
    TenantNote *note = ctx;
    (void)head;
    for (size_t i = 0; err != NULL && i < note->group->count; i++) {
        if (note->of[i]) {
            note->group->tasks[i].fate = LETTER_UNNOTED;
            note->group->tasks[i].err = *err;
        }
    }
    resend_group_release(note->group);
}

static void note_tenant(AuditLog *log, TenantNote *tenant, const DeadNote *how)
{
    uint64_t sequences[RESEND_GROUP_MAX];
    const char *notification = "";
    DeadNote note = *how;
    note.tenant = tenant->tenant;
    note.sequences = sequences;
    note.count = 0;
    for (size_t i = 0; i < tenant->group->count; i++) {
        const ResendTask *task = &tenant->group->tasks[i];
        if (tenant->of[i]) {
            sequences[note.count++] = task->sequence;
            notification = task->letter.notification_id;
        }
    }
    note.notification_id = note.count == 1 ? notification : "";
    dead_note_append(log, &note, on_noted, tenant);
}

void dead_note_group(
    AuditLog *log, ResendGroup *group, const DeadNote *how, void (*done)(void *ctx), void *ctx)
{
    static_assert((int)RESEND_GROUP_MAX <= (int)DEAD_NOTE_MAX, "a group is one entry");
    bool taken[RESEND_GROUP_MAX] = {false};
    resend_group_hold(group, done, ctx);
    for (size_t i = 0; i < group->count; i++) {
        if (taken[i] || !is_to_do(&group->tasks[i])) {
            continue;
        }
        TenantNote *note = arena_zalloc(group->arena, sizeof *note);
        *note = (TenantNote){.group = group, .tenant = tenant_of(&group->tasks[i])};
        for (size_t j = i; j < group->count; j++) {
            const ResendTask *task = &group->tasks[j];
            note->of[j] =
                is_to_do(task) && str_eq(str_from(tenant_of(task)), str_from(note->tenant));
            taken[j] = taken[j] || note->of[j];
        }
        group->open++;
        note_tenant(log, note, how);
    }
    resend_group_release(group);
}
