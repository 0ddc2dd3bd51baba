// SPDX-License-Identifier: Apache-2.0
// Letters that are handled together: fetched, what follows from each published, then deleted. The
// one engine of `stentor dlq resend`, `stentor dlq drop` and ResendErrorEmail; what is published
// its callers say (resend_task_prepare, dlq_end.h), and what they write down between two steps.
//
// Law: a letter is deleted only when JetStream has what follows from it. Killed between the two,
// the letter is still there, and its repeat publishes the same under the same id (resend_rules.h).
//
// A step goes over the tasks that are LETTER_OPEN and calls done once, from the loop, or at once
// when it has nothing to do. A task that failed takes no further part.
#pragma once

#include "common/deadletter/resend_rules.h"

enum { RESEND_GROUP_MAX = 32 }; // letters in memory at once; one may have 900 KB

typedef enum LetterFate {
    LETTER_OPEN,        // all went well so far
    LETTER_MISSING,     // DEAD does not have it
    LETTER_REFUSED,     // by the rules; err says why
    LETTER_UNREAD,      // the fetch failed
    LETTER_UNNOTED,     // the audit log does not take it, so nothing is done (dead_note.h)
    LETTER_UNPUBLISHED, // or published under an id that JetStream dropped
    LETTER_UNDELETED,   // published, and still there; err CONFLICT: another process has deleted it
} LetterFate;

typedef struct ResendTask {
    uint64_t sequence;
    Letter letter;       // by the fetch, or by the caller
    BusOut out;          // subject NULL: nothing is published
    bool own_id;         // a duplicate was not stored (Resend)
    bool remove;         // delete the letter
    uint32_t attempt;    // that will be made; 0: the event goes as it was
    size_t entry_key_at; // in the subject of a suppression
    LetterFate fate;
    Error err; // of a fate other than LETTER_OPEN and LETTER_MISSING
    struct ResendGroup *group;
} ResendTask;

typedef struct ResendGroup {
    Bus *bus;
    Arena *arena; // of the letters
    bool erase;   // overwrite what is deleted (letter_delete)
    ResendTask tasks[RESEND_GROUP_MAX];
    size_t count;
    size_t open; // answers that are still to come
    Suppressions *found;
    void (*done)(void *ctx);
    void *ctx;
} ResendGroup;

// Empty again; borrows bus and arena.
void resend_group_begin(ResendGroup *group, Bus *bus, Arena *arena, bool erase);
ResendTask *resend_group_add(ResendGroup *group, uint64_t sequence);
// What sending it again publishes, and then deletes; or LETTER_REFUSED.
void resend_task_prepare(ResendTask *task, const ResendRules *rules);

void resend_group_fetch(ResendGroup *group, void (*done)(void *ctx), void *ctx);
// Puts what CONFIG says of the letters' own addresses into the empty list *ret: for a program
// without a mirror of CONFIG. A look-up that fails leaves its letter LETTER_UNREAD.
void resend_group_look_up(
    ResendGroup *group, Suppressions *ret, void (*done)(void *ctx), void *ctx);
void resend_group_publish(ResendGroup *group, void (*done)(void *ctx), void *ctx);
void resend_group_delete(ResendGroup *group, void (*done)(void *ctx), void *ctx);

// For a step in another file: holds `done` back until it is released as often as group->open says.
void resend_group_hold(ResendGroup *group, void (*done)(void *ctx), void *ctx);
void resend_group_release(ResendGroup *group);
