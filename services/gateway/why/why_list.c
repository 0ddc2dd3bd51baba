// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/why/why_list.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/clock.h"

// ---- making items ----

WhyItem *why_add(WhyList *list, const char *question, WhyOutcome outcome, const char *format, ...)
{
    size_t at = list->count < WHY_ITEMS_MAX ? list->count++ : WHY_ITEMS_MAX - 1;
    WhyItem *item = &list->items[at];
    char text[2048]; // a vendor's words are at most 512 bytes, of which one may be cut here
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *item = (WhyItem){
        .question = question,
        .answer = arena_cstr(list->arena, str_from(text)),
        .outcome = outcome};
    return item;
}

void why_text(WhyList *list, WhyItem *item, const char *name, Str value)
{
    if (value.len > 0 && item->evidence_count < WHY_EVIDENCE_MAX) {
        item->evidence[item->evidence_count++] =
            (WhyEvidence){name, arena_cstr(list->arena, value)};
    }
}

void why_time(WhyList *list, WhyItem *item, const char *name, int64_t at_us)
{
    if (at_us != 0) {
        char text[CLOCK_RFC3339_SIZE];
        clock_format(at_us, text);
        why_text(list, item, name, str_from(text));
    }
}

static void add_number(WhyList *list, WhyItem *item, const char *name, int64_t number)
{
    why_text(list, item, name, str_from(arena_printf(list->arena, "%" PRId64, number)));
}

const char *why_when(Arena *arena, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text); // "2026-11-27T12:00:05.000000Z"
    return arena_printf(arena, "%.10s %.8s UTC", text, text + 11);
}

// ---- the questions ----

static bool is_end(const WhyFacts *facts)
{
    return notification_is_end(facts->row->status);
}

static bool was_sent(const WhyFacts *facts)
{
    return facts->row->at_us[FOLD_SENT] != 0 || facts->row->at_us[FOLD_DELIVERED] != 0;
}

static void ask_accepted(const WhyFacts *facts, WhyList *list)
{
    const HistoryRow *row = facts->row;
    WhyItem *item = why_add(
        list, "Was it accepted?", WHY_OK, "Yes, at %s", why_when(list->arena, row->created_at_us));
    why_text(
        list, item, "known_from",
        facts->in_history ? STR("history") : STR("the accept log; history does not have it yet"));
    why_text(list, item, "priority", row->text[FOLD_PRIORITY]);
    why_text(list, item, "category", row->text[FOLD_CATEGORY]);
    why_text(list, item, "batch_id", row->text[FOLD_BATCH]);
    why_text(list, item, "source_event_id", row->text[FOLD_SOURCE_EVENT]);
    why_text(list, item, "copy_of", row->text[FOLD_COPY_OF]);
}

static void ask_gate(const WhyFacts *facts, WhyList *list)
{
    if (!why_gate(facts, list)) {
        WhyItem *item = why_add(
            list, "What did the gate ask when it was accepted?", WHY_UNKNOWN,
            "Not recorded: it was accepted by a release that did not note it, or its first status "
            "has not reached history");
        why_text(list, item, "reason_code", facts->row->reason_code);
    }
}

static const char *wait_name(Str reason)
{
    static const char *const names[][2] = {
        {"schedule", "the time that its caller set"},
        {"quiet", "the end of quiet hours"},
        {"limit", "its turn within the limits"},
        {"digest", "its digest"},
        {"retry", "its next attempt"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq(reason, str_from(names[i][0]))) {
            return names[i][1];
        }
    }
    return "its time";
}

static void ask_wait(const WhyFacts *facts, WhyList *list)
{
    const WhyWait *wait = &facts->wait;
    if (wait->reason.len > 0) {
        WhyItem *item = why_add(
            list, "Does it wait for a time?", WHY_WAITS, "Yes, for %s, until %s",
            wait_name(wait->reason), why_when(list->arena, wait->due_us));
        why_text(list, item, "reason", wait->reason);
        why_time(list, item, "due_at", wait->due_us);
        why_text(list, item, "digest_window_id", wait->window_id);
    } else if (facts->row->status == STATUS_SCHEDULED) {
        WhyItem *item = why_add(
            list, "Does it wait for a time?", WHY_UNKNOWN,
            "It is on its way, to the scheduler or from it");
        why_time(list, item, "due_at", facts->row->at_us[FOLD_SCHEDULED_FOR]);
    }
}

// What ended it behind the gate, before an attempt: renderer, scheduler, dispatcher.
static void ask_stopped(const WhyFacts *facts, WhyList *list)
{
    const HistoryRow *row = facts->row;
    bool gate = list->count > 0 && list->items[list->count - 1].outcome == WHY_STOPPED;
    if (row->status == STATUS_SUPPRESSED && !gate) {
        WhyItem *item = why_add(
            list, "Was it stopped later?", WHY_STOPPED, "Yes: " STR_FMT,
            STR_ARG(row->reason.len > 0 ? row->reason : row->reason_code));
        why_text(list, item, "reason_code", row->reason_code);
        why_time(list, item, "at", row->at_us[FOLD_ENDED]);
    } else if (row->status == STATUS_SUPERSEDED) {
        WhyItem *item = why_add(
            list, "Did something take its place?", WHY_STOPPED, "Yes: %s",
            row->text[FOLD_DIGEST].len > 0 ? "it is in a digest" : "a newer notification");
        why_text(list, item, "reason_code", row->reason_code);
        why_text(list, item, "digest_window_id", row->text[FOLD_DIGEST]);
        why_text(list, item, "digest_notification_id", facts->digest_id);
        why_time(list, item, "at", row->at_us[FOLD_ENDED]);
    }
}

static void ask_rendered(const WhyFacts *facts, WhyList *list)
{
    const HistoryRow *row = facts->row;
    int64_t at_us = row->at_us[FOLD_RENDERED];
    bool failed = row->status == STATUS_FAILED && at_us == 0 && facts->attempt_count == 0;
    if (at_us == 0 && !failed) {
        return;
    }
    WhyItem *item = failed ? why_add(
                                 list, "Was its content made?", WHY_FAILED, "No: " STR_FMT,
                                 STR_ARG(row->reason.len > 0 ? row->reason : row->reason_code))
                           : why_add(
                                 list, "Was its content made?", WHY_OK, "Yes, at %s",
                                 why_when(list->arena, at_us));
    why_text(list, item, "template", row->text[FOLD_TEMPLATE]);
    why_text(list, item, "template_version", row->text[FOLD_TEMPLATE_VERSION]);
    why_text(list, item, "version_is_now", facts->template_state);
    why_text(list, item, "reason_code", failed ? row->reason_code : STR_EMPTY);
}

// ---- attempts ----

static WhyOutcome outcome_of_attempt(const NotificationAttempt *attempt)
{
    static const struct {
        Outcome outcome;
        WhyOutcome why;
    } others[] = {
        {OUTCOME_REJECTED_RETRYABLE, WHY_WAITS},
        {OUTCOME_TIMEOUT, WHY_UNKNOWN},
        {OUTCOME_REJECTED_TERMINAL, WHY_FAILED},
        {OUTCOME_FAILED, WHY_FAILED},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (str_eq(attempt->outcome, str_from(outcome_name(others[i].outcome)))) {
            return others[i].why;
        }
    }
    return WHY_OK;
}

static void ask_attempt(WhyList *list, const NotificationAttempt *attempt)
{
    static const char *const said[WHY_OUTCOMES] = {
        [WHY_OK] = "took it",
        [WHY_WAITS] = "did not take it yet",
        [WHY_FAILED] = "refused it",
        [WHY_UNKNOWN] = "gave no answer"};
    WhyOutcome outcome = outcome_of_attempt(attempt);
    WhyItem *item = why_add(
        list, arena_printf(list->arena, "What came of attempt %" PRId64 "?", attempt->number),
        outcome, STR_FMT " %s%s" STR_FMT, STR_ARG(attempt->vendor), said[outcome],
        attempt->reply.len > 0 ? ": " : "", STR_ARG(attempt->reply));
    why_time(list, item, "at", attempt->finished_us);
    why_text(list, item, "outcome", attempt->outcome);
    why_text(list, item, "code", attempt->code);
    why_text(list, item, "enhanced_code", attempt->enhanced_code);
    why_text(list, item, "credential", attempt->credential);
    why_text(list, item, "route", attempt->route);
    why_text(list, item, "vendor_message_id", attempt->vendor_message_id);
}

static void ask_attempts(const WhyFacts *facts, WhyList *list)
{
    size_t first =
        facts->attempt_count > WHY_ATTEMPTS_MAX ? facts->attempt_count - WHY_ATTEMPTS_MAX : 0;
    int64_t before = facts->attempts_before + (int64_t)first;
    if (before > 0) {
        why_add(
            list, "Was it tried before?", WHY_NOTE,
            "%" PRId64 " earlier attempts are listed under /attempts", before);
    }
    bool doubled = false;
    for (size_t i = first; i < facts->attempt_count; i++) {
        ask_attempt(list, &facts->attempts[i]);
        doubled = doubled || facts->attempts[i].was_unknown;
    }
    if (doubled || facts->claim.unknown > 0) {
        WhyItem *item = why_add(
            list, "Can it have been sent twice?", WHY_UNKNOWN,
            "Yes: an attempt ended without a known outcome and was made again");
        add_number(
            list, item, "unknown_outcomes", facts->claim.unknown > 0 ? facts->claim.unknown : 1);
    }
}

static void ask_claim(const WhyFacts *facts, WhyList *list)
{
    const WhyClaim *claim = &facts->claim;
    if (is_end(facts) || was_sent(facts) || claim->number == 0) {
        return;
    }
    WhyItem *item = NULL;
    if (str_eq(claim->state, STR("claimed"))) {
        item = why_add(
            list, "Is an attempt under way?", WHY_WAITS,
            claim->lease_us > facts->now_us
                ? "Yes: it is being handed over"
                : "One was begun and its outcome is not known: it is taken up again");
    } else if (str_eq(claim->state, STR("parked"))) {
        item = why_add(
            list, "Is an attempt under way?", WHY_UNKNOWN,
            "No: the last one has an unknown outcome and waits for an operator");
    } else if (str_eq(claim->state, STR("deferred")) && claim->due_us > 0) {
        item = why_add(
            list, "When is it tried again?", WHY_WAITS, "At %s",
            why_when(list->arena, claim->due_us));
        why_time(list, item, "due_at", claim->due_us);
    } else {
        return;
    }
    add_number(list, item, "attempt", claim->number);
    why_text(list, item, "vendor", claim->vendor);
    why_time(list, item, "claimed_at", claim->claimed_us);
}

static bool is_under_way(Status status)
{
    return status == STATUS_QUEUED || status == STATUS_RENDERING || status == STATUS_SENDING;
}

static void ask_vendor(const WhyFacts *facts, WhyList *list)
{
    if (facts->down != NULL && facts->down->since_us > 0 && is_under_way(facts->row->status)) {
        WhyItem *item = why_add(
            list, "Can it be handed over now?", WHY_WAITS, "No: %s cannot be reached since %s",
            facts->down->vendor, why_when(list->arena, facts->down->since_us));
        why_text(list, item, "vendor", str_from(facts->down->vendor));
        why_time(list, item, "since", facts->down->since_us);
    }
}

// ---- what came after ----

static void ask_arrival(const WhyFacts *facts, WhyList *list)
{
    const HistoryRow *row = facts->row;
    if (!was_sent(facts) && row->status != STATUS_BOUNCED && row->status != STATUS_COMPLAINED) {
        return;
    }
    int64_t at_us = row->at_us[FOLD_DELIVERED];
    const char *question = "Did it arrive?";
    WhyItem *item = NULL;
    if (row->status == STATUS_BOUNCED) {
        item = why_add(
            list, question, WHY_FAILED, "No: it came back" STR_FMT STR_FMT,
            STR_ARG(row->reason.len > 0 ? STR(": ") : STR_EMPTY), STR_ARG(row->reason));
        why_text(list, item, "reason_code", row->reason_code);
        why_time(list, item, "at", row->at_us[FOLD_ENDED]);
    } else if (row->status == STATUS_FAILED) {
        item = why_add(list, question, WHY_FAILED, "No: the vendor reported that it failed");
        why_text(list, item, "reason_code", row->reason_code);
        why_time(list, item, "at", row->at_us[FOLD_ENDED]);
    } else if (at_us != 0) {
        item = why_add(
            list, question, WHY_OK, "Yes, the vendor reported it at %s",
            why_when(list->arena, at_us));
    } else if (row->at_us[FOLD_OPENED] != 0 || row->at_us[FOLD_CLICKED] != 0) {
        item = why_add(list, question, WHY_OK, "Yes: it was opened");
    } else {
        item = why_add(
            list, question, WHY_UNKNOWN,
            "The next server took it; no report of its arrival has come");
    }
    why_time(list, item, "sent_at", row->at_us[FOLD_SENT]);
    why_time(list, item, "delivered_at", at_us);
    why_time(list, item, "opened_at", row->at_us[FOLD_OPENED]);
    why_time(list, item, "clicked_at", row->at_us[FOLD_CLICKED]);
    if (row->status == STATUS_COMPLAINED) {
        why_add(list, "Did the recipient complain?", WHY_NOTE, "Yes: it was reported as unwanted");
    }
}

static void ask_suppressed_now(const WhyFacts *facts, WhyList *list)
{
    Category category = CATEGORY_NONE;
    (void)category_from_name(facts->row->text[FOLD_CATEGORY], &category);
    for (size_t i = 0; i < facts->suppression_count; i++) {
        const WhySuppression *entry = &facts->suppressions[i];
        if (why_in_force(entry, category, facts->now_us)) {
            WhyItem *item = why_add(
                list, "Is the address suppressed now?", WHY_NOTE, "Yes: %s, since %s",
                suppression_reason_name(entry->reason), why_when(list->arena, entry->made_us));
            why_text(list, item, "suppression_id", entry->id);
            why_text(list, item, "made_by", entry->made_by);
            why_time(list, item, "expires_at", entry->expires_us);
            return;
        }
    }
}

static void ask_dead(const WhyFacts *facts, WhyList *list)
{
    const char *question = "Is there a dead letter, from which it can be sent again?";
    if (facts->dead.sequence > 0) {
        WhyItem *item = why_add(
            list, question, WHY_NOTE, "Yes: number %" PRIu64 ", of the " STR_FMT,
            facts->dead.sequence, STR_ARG(facts->dead.stage));
        add_number(list, item, "sequence", (int64_t)facts->dead.sequence);
        why_text(list, item, "stage", facts->dead.stage);
        why_text(list, item, "reason", facts->dead.reason);
        why_time(list, item, "stored_at", facts->dead.stored_us);
    } else if (facts->row->status == STATUS_FAILED) {
        why_add(
            list, question, WHY_UNKNOWN, "%s",
            facts->dead_unread ? "It was not found in the time that there is for an answer"
                               : "None: it was sent again, dropped, or is past its age");
    }
}

void why_list_make(const WhyFacts *facts, Arena *arena, WhyList *ret)
{
    *ret = (WhyList){.arena = arena};
    ask_accepted(facts, ret);
    ask_gate(facts, ret);
    ask_stopped(facts, ret);
    ask_wait(facts, ret);
    ask_rendered(facts, ret);
    ask_vendor(facts, ret);
    ask_attempts(facts, ret);
    ask_claim(facts, ret);
    ask_arrival(facts, ret);
    ask_dead(facts, ret);
    ask_suppressed_now(facts, ret);
    ret->summary = why_summary(facts, arena);
}

void why_list_ahead(const WhyFacts *facts, Arena *arena, WhyList *ret)
{
    *ret = (WhyList){.arena = arena};
    (void)why_gate(facts, ret);
    ask_vendor(facts, ret);
    ret->summary = why_summary_ahead(facts, arena);
}

// ---- as JSON ----

static const char *name_of(WhyOutcome outcome)
{
    static const char *const names[WHY_OUTCOMES] = {"ok",     "waits",   "stopped",
                                                    "failed", "unknown", "note"};
    return names[outcome];
}

static void print_item(Buf *out, const WhyItem *item)
{
    buf_cstr(out, "{\"question\":");
    buf_json(out, str_from(item->question));
    buf_cstr(out, ",\"answer\":");
    buf_json(out, str_from(item->answer));
    buf_printf(out, ",\"outcome\":\"%s\",\"evidence\":{", name_of(item->outcome));
    for (size_t i = 0; i < item->evidence_count; i++) {
        buf_printf(out, "%s\"%s\":", i == 0 ? "" : ",", item->evidence[i].name);
        buf_json(out, str_from(item->evidence[i].value));
    }
    buf_cstr(out, "}}");
}

void why_print(Buf *out, const WhyList *list)
{
    buf_cstr(out, ",\"summary\":");
    buf_json(out, str_from(list->summary));
    buf_cstr(out, ",\"why\":[");
    for (size_t i = 0; i < list->count; i++) {
        buf_cstr(out, i == 0 ? "" : ",");
        print_item(out, &list->items[i]);
    }
    buf_char(out, ']');
}
