// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/resend_group.h"

#include <assert.h>

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
static void begin(ResendGroup *group, void (*done)(void *ctx), void *ctx)
{
    group->open = 1;
    group->done = done;
    group->ctx = ctx;
}

static void release(ResendGroup *group)
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
    release(task->group);
}

void resend_group_fetch(ResendGroup *group, void (*done)(void *ctx), void *ctx)
{
    begin(group, done, ctx);
    for (size_t i = 0; i < group->count; i++) {
        MessageQuery query = {.stream = "DEAD", .sequence = group->tasks[i].sequence};
        group->open++;
        get_message(group->bus, &query, on_letter_fetched, &group->tasks[i]);
    }
    release(group);
}

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
    release(task->group);
}

void resend_group_publish(ResendGroup *group, void (*done)(void *ctx), void *ctx)
{
    begin(group, done, ctx);
    for (size_t i = 0; i < group->count; i++) {
        ResendTask *task = &group->tasks[i];
        if (task->fate == LETTER_OPEN && task->out.subject != NULL) {
            group->open++;
            bus_publish(group->bus, &task->out, on_event_acked, task);
        }
    }
    bus_flush(group->bus);
    release(group);
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
    release(task->group);
}

void resend_group_delete(ResendGroup *group, void (*done)(void *ctx), void *ctx)
{
    begin(group, done, ctx);
    for (size_t i = 0; i < group->count; i++) {
        ResendTask *task = &group->tasks[i];
        if (task->fate == LETTER_OPEN && task->remove) {
            group->open++;
            letter_delete(group->bus, task->sequence, group->erase, on_letter_deleted, task);
        }
    }
    release(group);
}
