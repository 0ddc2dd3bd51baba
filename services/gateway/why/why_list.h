// SPDX-License-Identifier: Apache-2.0
// Why a notification did or did not arrive: questions in the order in which it met them, each with
// an answer, what came out, and what it is known from. Pure: facts in, texts out. Law: nothing is
// guessed. What is not recorded is answered so, and what is as it is now says so.
#pragma once

#include "services/gateway/why/why_facts.h"

typedef enum WhyOutcome {
    WHY_OK,
    WHY_WAITS,
    WHY_STOPPED, // by a decision: it was not to go out
    WHY_FAILED,
    WHY_UNKNOWN, // not recorded, or nothing has come yet
    WHY_NOTE,    // beside the way
    WHY_OUTCOMES
} WhyOutcome;

enum { WHY_ITEMS_MAX = 64, WHY_EVIDENCE_MAX = 8, WHY_ATTEMPTS_MAX = 20 };

typedef struct WhyEvidence {
    const char *name;
    const char *value;
} WhyEvidence;

typedef struct WhyItem {
    const char *question, *answer;
    WhyOutcome outcome;
    WhyEvidence evidence[WHY_EVIDENCE_MAX];
    size_t evidence_count;
} WhyItem;

typedef struct WhyList {
    Arena *arena;
    const char
        *summary; // a sentence or two for a customer: what became of it, and what can be done
    WhyItem items[WHY_ITEMS_MAX];
    size_t count;
} WhyList;

void why_list_make(const WhyFacts *facts, Arena *arena, WhyList *ret);
// The same of one that does not exist: would it go out?
void why_list_ahead(const WhyFacts *facts, Arena *arena, WhyList *ret);

// ---- for those that make parts of it ----

// The item that was added; beyond WHY_ITEMS_MAX the last one is overwritten.
WhyItem *why_add(WhyList *list, const char *question, WhyOutcome outcome, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void why_text(WhyList *list, WhyItem *item, const char *name, Str value); // empty: nothing
void why_time(WhyList *list, WhyItem *item, const char *name, int64_t at_us);
const char *why_when(Arena *arena, int64_t at_us); // "2026-11-27 12:00:05 UTC"

// The gate's questions, as the trace has them. false: there is none.
bool why_gate(const WhyFacts *facts, WhyList *list);
// What is read to a customer.
const char *why_summary(const WhyFacts *facts, Arena *arena);
const char *why_summary_ahead(const WhyFacts *facts, Arena *arena);
// Was it in force at that time, for that category?
bool why_in_force(const WhySuppression *entry, Category category, int64_t at_us);

// ",\"summary\":...,\"why\":[...]"
void why_print(Buf *out, const WhyList *list);
