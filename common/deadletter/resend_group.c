// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/resend_group.h"

#include <assert.h>
#include <string.h>

#include "common/base/id.h"
#include "common/bus/events/suppression_event.h"
#include "common/bus/jetstream/get_message.h"
#include "common/deadletter/store.h"

void resend_group_begin(ResendGroup *group, Bus *bus, Arena *arena, bool erase)
{
    *group = (ResendGroup){.bus = bus, .arena = arena, .erase = erase};
}

ResendTask *resend_group_add(ResendGroup *group, uint64_t sequence)
{
    assert(group->count < RESEND_GROUP_MAX);
    ResendTask *task = &group->tasks[group->count++];
    *task = (ResendTask){.sequence = sequence, .group = group};
    return task;
}

void resend_task_prepare(ResendTask *task, const ResendRules *rules)
{
    Resend resend;
    if (!letter_resend(&task->letter, rules, task->group->arena, &resend, &task->err)) {
        task->fate = LETTER_REFUSED;
        return;
    }
    task->out = resend.out;
    task->own_id = resend.own_id;
    task->attempt = resend.attempt;
    task->remove = true;
}

// ---- steps ----

// One for the step itself: answers that come at once do not end it before all are asked.
void resend_group_hold(ResendGroup *group, void (*done)(void *ctx), void *ctx)
{
    group->open = 1;
    group->done = done;
    group->ctx = ctx;
}

void resend_group_release(ResendGroup *group)
{
    if (--group->open == 0) {
        group->done(group->ctx);
    }
}

static void fail(ResendTask *task, LetterFate fate, const Error *err)
{
    task->fate = fate;
    task->err = *err;
}

static void on_letter_fetched(void *ctx, Str reply, const Error *err)
{
    ResendTask *task = ctx;
    Arena *arena = task->group->arena;
    Error refusal = {0};
    BusMessage message;
    bool found = false;
    if (err == NULL && !get_message_reply(reply, "DEAD", arena, &message, &found, &refusal)) {
        err = &refusal;
    }
    if (err != NULL) {
        fail(task, LETTER_UNREAD, err);
    } else if (found) {
        letter_read(&message, arena, &task->letter);
    } else {
        task->fate = LETTER_MISSING;
    }
    resend_group_release(task->group);
}

void resend_group_fetch(ResendGroup *group, void (*done)(void *ctx), void *ctx)
{
    resend_group_hold(group, done, ctx);
    for (size_t i = 0; i < group->count; i++) {
        MessageQuery query = {.stream = "DEAD", .sequence = group->tasks[i].sequence};
        group->open++;
        get_message(group->bus, &query, on_letter_fetched, &group->tasks[i]);
    }
    resend_group_release(group);
}

// ---- suppressions ----

static void on_entry_fetched(void *ctx, Str reply, const Error *err)
{
    ResendTask *task = ctx;
    ResendGroup *group = task->group;
    Error refusal = {0};
    BusMessage entry;
    bool found = false;
    if (err == NULL &&
        !get_message_reply(reply, "CONFIG", group->arena, &entry, &found, &refusal)) {
        err = &refusal;
    }
    if (err != NULL) {
        fail(task, LETTER_UNREAD, err);
    } else if (found) {
        Str key = str_slice(entry.subject, task->entry_key_at, entry.subject.len);
        if (!suppression_apply(group->found, task->letter.tenant, key, &entry, &refusal)) {
            suppression_unreadable(group->found, task->letter.tenant, key, entry.sequence);
        }
    }
    resend_group_release(group);
}

static void look_up(ResendTask *task, const LetterAddress *to, Category category)
{
    ResendGroup *group = task->group;
    char key[SUPPRESSION_KEY_SIZE];
    suppression_key(key, to->channel, category, to->hash);
    const char *head =
        arena_printf(group->arena, "cfg.suppression." STR_FMT ".", STR_ARG(task->letter.tenant));
    task->entry_key_at = strlen(head);
    MessageQuery query = {
        .stream = "CONFIG", .last_of = arena_printf(group->arena, "%s%s", head, key)};
    group->open++;
    get_message(group->bus, &query, on_entry_fetched, task);
}

void resend_group_look_up(ResendGroup *group, Suppressions *ret, void (*done)(void *ctx), void *ctx)
{
    resend_group_hold(group, done, ctx);
    group->found = ret;
    for (size_t i = 0; i < group->count; i++) {
        ResendTask *task = &group->tasks[i];
        LetterAddress to = letter_address(&task->letter);
        bool named = id_is_tenant(task->letter.tenant) && channel_name(to.channel)[0] != '\0';
        if (task->fate == LETTER_OPEN && to.hash != NULL && named) {
            look_up(task, &to, CATEGORY_NONE);
            if (category_name(to.category)[0] != '\0') {
                look_up(task, &to, to.category);
            }
        }
    }
    resend_group_release(group);
}

// ---- publish and delete ----

static void on_event_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    ResendTask *task = ctx;
    Error again = {0};
    if (err == NULL && duplicate && task->own_id) {
        error_set(
            &again, ERROR_PERMANENT,
            "JetStream still remembers its event id and dropped the copy (HINT: try again in two "
            "minutes)");
        err = &again;
    }
    if (err != NULL) {
        fail(task, LETTER_UNPUBLISHED, err);
    }
    resend_group_release(task->group);
}

void resend_group_publish(ResendGroup *group, void (*done)(void *ctx), void *ctx)
{
    resend_group_hold(group, done, ctx);
    for (size_t i = 0; i < group->count; i++) {
        ResendTask *task = &group->tasks[i];
        if (task->fate == LETTER_OPEN && task->out.subject != NULL) {
            group->open++;
            bus_publish(group->bus, &task->out, on_event_acked, task);
        }
    }
    resend_group_release(group);
}

static void on_letter_deleted(void *ctx, Str reply, const Error *err)
{
    ResendTask *task = ctx;
    Error refusal = {0};
    if (err == NULL && !letter_deleted(reply, &refusal)) {
        err = &refusal;
    }
    if (err != NULL) {
        fail(task, LETTER_UNDELETED, err);
    }
    resend_group_release(task->group);
}

void resend_group_delete(ResendGroup *group, void (*done)(void *ctx), void *ctx)
{
    resend_group_hold(group, done, ctx);
    for (size_t i = 0; i < group->count; i++) {
        ResendTask *task = &group->tasks[i];
        if (task->fate == LETTER_OPEN && task->remove) {
            group->open++;
            letter_delete(group->bus, task->sequence, group->erase, on_letter_deleted, task);
        }
    }
    resend_group_release(group);
}
