// SPDX-License-Identifier: Apache-2.0
// What each constellation of records means, as a table.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/audit/audit_verdict.h"
#include "common/base/id.h"

static const int64_t NOW_US = 1795000000000000;
static const int64_t HOUR_US = INT64_C(3600) * 1000000;

static AuditEntry entry_of_hours(int64_t hours)
{
    AuditEntry entry = {.moved_us = NOW_US - hours * HOUR_US};
    int64_t ms = entry.moved_us / 1000;
    for (int i = 5; i >= 0; i--, ms >>= 8) {
        entry.ulid[i] = (uint8_t)(ms & 0xff);
    }
    return entry;
}

static AuditVerdict judge(const AuditEntry *entry)
{
    AuditAges ages = {
        .request_us = NOW_US - 720 * HOUR_US,
        .deferred_us = NOW_US - 720 * HOUR_US,
        .rendered_us = NOW_US - 72 * HOUR_US,
        .status_us = NOW_US - 720 * HOUR_US,
        .feed_us = NOW_US - 9600 * HOUR_US,
    };
    return audit_classify(entry, &ages, NOW_US - HOUR_US / 60);
}

// ---- what is whole ----

enum { A1 = 2, A2 = 4, A3 = 8 }; // attempts as bits

#define QUEUED (SEEN_ACCEPTED | SEEN_REQUEST | SEEN_S_QUEUED | SEEN_H_ROW | SEEN_H_QUEUED)
#define SCHEDULED (SEEN_ACCEPTED | SEEN_S_SCHEDULED | SEEN_H_ROW | SEEN_H_SCHEDULED)
#define SENT (SEEN_LEDGER_SENT | SEEN_S_SENT | SEEN_H_SENT)
#define H_ENDED (SEEN_H_ENDED | SEEN_H_FAILED)
#define FAILED_EARLY (SEEN_S_FAILED_EARLY | SEEN_S_ENDED | H_ENDED)
#define FAILED_LATE (SEEN_S_FAILED_LATE | SEEN_S_ENDED | SEEN_LEDGER_FAILED | H_ENDED)
#define REFUSED (SEEN_S_SUPPRESSED | SEEN_S_ENDED | SEEN_H_ENDED | SEEN_H_SUPPRESSED)
#define BY_VENDOR(mask)                                                                            \
    .rendered = (mask), .ledger = (mask), .ledger_reported = (mask), .reported = (mask),           \
    .attempts = (mask)

typedef struct Case {
    const char *name;
    AuditEntry entry;
    AuditState state;
    unsigned missing;
    bool unknown, doubled;
} Case;

static void check(const Case *c, int64_t hours)
{
    AuditEntry entry = c->entry;
    AuditEntry aged = entry_of_hours(hours);
    memcpy(entry.ulid, aged.ulid, sizeof entry.ulid);
    entry.moved_us = aged.moved_us;
    AuditVerdict verdict = judge(&entry);
    if (verdict.state != c->state || verdict.missing != c->missing ||
        verdict.unknown != c->unknown || verdict.doubled != c->doubled) {
        fail_msg(
            "%s: state %d, missing %u, unknown %d, doubled %d", c->name, verdict.state,
            verdict.missing, verdict.unknown, verdict.doubled);
    }
}

// clang-format off
static const Case whole[] = {
    {"a callback's failure is none of ours", {.seen = SEEN_S_ENDED | SEEN_H_ROW | SEEN_H_ENDED | SEEN_H_FAILED}, AUDIT_NONE, 0, false, false},
    {"nothing of ours", {.seen = SEEN_S_DELIVERED | SEEN_H_ROW | SEEN_S_DELIVERED << 8}, AUDIT_NONE, 0, false, false},
    {"sent", {.seen = QUEUED | SENT, BY_VENDOR(A1)}, AUDIT_SENT, 0, false, false},
    {"a call that was answered, whose next one ended without a trace",
     {.seen = QUEUED | SENT | SEEN_CALL, .rendered = A1 | A2, .deferred = A2, .ledger = A1, .ledger_reported = A1, .reported = A1, .attempts = A1},
     AUDIT_SENT, 0, false, false},
    {"a call that was not answered, and the next one",
     {.seen = QUEUED | SENT | SEEN_CALL | SEEN_S_TWICE, BY_VENDOR(A1 | A2), .deferred = A2, .ledger_put_off = A1, .ledger_sent = 1}, AUDIT_SENT, 0, false, false},
    {"a call that was answered, and another", {.seen = QUEUED | SENT | SEEN_CALL, BY_VENDOR(A1 | A2), .deferred = A2, .ledger_sent = 2}, AUDIT_SENT, 0, false, true},
    {"sent to an inbox", {.seen = QUEUED | SENT | SEEN_LEDGER_INAPP | SEEN_ITEM, BY_VENDOR(A1)}, AUDIT_SENT, 0, false, false},
    {"an item that FEED has, and whose outcome is not committed yet",
     {.seen = QUEUED | SEEN_RENDERED_WAITING | SEEN_HELD | SEEN_ITEM, .rendered = A1, .ledger = A1}, AUDIT_IN_FLIGHT, 0, false, false},
    {"sent, and clicked", {.seen = QUEUED | SENT | SEEN_S_CLICKED | SEEN_S_CLICKED << 8, BY_VENDOR(A1)}, AUDIT_SENT, 0, false, false},
    {"sent at the second attempt",
     {.seen = QUEUED | SENT, BY_VENDOR(A1 | A2), .ledger_put_off = A1, .deferred = A2}, AUDIT_SENT, 0, false, false},
    {"scheduled, and sent", {.seen = SCHEDULED | SEEN_REQUEST | SENT, .deferred = 1, BY_VENDOR(A1)}, AUDIT_SENT, 0, false, false},
    {"waits for its schedule", {.seen = SCHEDULED | SEEN_DUE, .deferred = 1}, AUDIT_IN_FLIGHT, 0, false, false},
    {"its deferral is on its way to the clock", {.seen = SCHEDULED | SEEN_DEFERRED_WAITING, .deferred = 1}, AUDIT_IN_FLIGHT, 0, false, false},
    {"waits for its retry",
     {.seen = QUEUED | SEEN_DUE, BY_VENDOR(A1), .ledger_put_off = A1, .deferred = A2}, AUDIT_IN_FLIGHT, 0, false, false},
    {"waits in a digest's window, and is taken up", {.seen = SCHEDULED | REFUSED, .deferred = 1}, AUDIT_SUPPRESSED, 0, false, false},
    {"refused by the gate", {.seen = SEEN_ACCEPTED | REFUSED | SEEN_H_ROW}, AUDIT_SUPPRESSED, 0, false, false},
    {"a digest, made and on its way", {.seen = SEEN_DIGEST | SEEN_DUE}, AUDIT_IN_FLIGHT, 0, false, false},
    {"a digest, sent", {.seen = (QUEUED & ~SEEN_ACCEPTED) | SEEN_DIGEST | SENT, BY_VENDOR(A1)}, AUDIT_SENT, 0, false, false},
    {"not published yet", {.seen = SEEN_ACCEPTED | SEEN_UNPUBLISHED}, AUDIT_IN_FLIGHT, 0, false, false},
    {"before the renderer", {.seen = QUEUED | SEEN_REQUEST_WAITING}, AUDIT_IN_FLIGHT, 0, false, false},
    {"before the dispatcher", {.seen = QUEUED | SEEN_RENDERED_WAITING, .rendered = A1}, AUDIT_IN_FLIGHT, 0, false, false},
    {"at the vendor", {.seen = QUEUED | SEEN_RENDERED_WAITING | SEEN_HELD, .rendered = A1, .ledger = A1}, AUDIT_IN_FLIGHT, 0, false, false},
    {"its outcome is committed and not reported yet",
     {.seen = QUEUED | SEEN_RENDERED_WAITING | SEEN_LEDGER_SENT, .rendered = A1, .ledger = A1, .ledger_reported = A1},
     AUDIT_SENT, 0, false, false},
    {"history has not folded it yet",
     {.seen = SEEN_ACCEPTED | SEEN_REQUEST | SEEN_S_QUEUED | SEEN_S_SENT | SEEN_LEDGER_SENT | SEEN_HISTORY_WAITING,
      .rendered = A1, .ledger = A1, .ledger_reported = A1, .reported = A1}, AUDIT_SENT, 0, false, false},
    {"failed in the renderer", {.seen = QUEUED | FAILED_EARLY}, AUDIT_FAILED, 0, false, false},
    {"buried by the renderer", {.seen = QUEUED | SEEN_DEAD_EARLY}, AUDIT_FAILED, 0, false, false},
    {"refused by the vendor", {.seen = QUEUED | FAILED_LATE, BY_VENDOR(A1)}, AUDIT_FAILED, 0, false, false},
    {"expired in the dispatcher",
     {.seen = QUEUED | FAILED_LATE | SEEN_DECIDED, .rendered = A1, .ledger = A1}, AUDIT_FAILED, 0, false, false},
    {"unreadable for the dispatcher", {.seen = QUEUED | SEEN_DEAD_RENDERED, .rendered = A1}, AUDIT_FAILED, 0, false, false},
    {"failed, and sent again by an operator",
     {.seen = QUEUED | FAILED_LATE | SEEN_RENDERED_WAITING, .rendered = A1 | A2, .ledger = A1, .ledger_reported = A1, .reported = A1,
      .attempts = A1, .resends = 1}, AUDIT_IN_FLIGHT, 0, false, false},
    {"buried unread, and sent again by an operator",
     {.seen = QUEUED | SENT, .rendered = A1 | A2, .ledger = A2, .ledger_reported = A2, .reported = A2, .attempts = A2, .resends = 1},
     AUDIT_SENT, 0, false, false},
    {"suppressed", {.seen = QUEUED | REFUSED}, AUDIT_SUPPRESSED, 0, false, false},
    {"an unknown outcome, then sent", {.seen = QUEUED | SENT | SEEN_RESENT, BY_VENDOR(A1)}, AUDIT_SENT, 0, true, false},
    {"a claim of a dead process, to be taken over",
     {.seen = QUEUED | SEEN_STALE | SEEN_RENDERED_WAITING, .rendered = A1, .ledger = A1}, AUDIT_IN_FLIGHT, 0, true, false},
    {"a claim of a dead process, without another", {.seen = QUEUED | SEEN_STALE, .rendered = A1, .ledger = A1}, AUDIT_OPEN, 0, true, false},
    {"parked", {.seen = QUEUED | SEEN_PARKED | SEEN_DEAD_UNKNOWN, .rendered = A1, .ledger = A1}, AUDIT_OPEN, 0, true, false},
    {"two acceptances, explained by an unknown",
     {.seen = QUEUED | SENT | SEEN_RESENT | SEEN_S_TWICE, BY_VENDOR(A1 | A2), .ledger_sent = 2}, AUDIT_SENT, 0, true, false},
    {"two acceptances of two resends", {.seen = QUEUED | SENT, BY_VENDOR(A1 | A2), .ledger_sent = 2, .resends = 1}, AUDIT_SENT, 0, false, false},
    {"doubled, by the ledger", {.seen = QUEUED | SENT, BY_VENDOR(A1 | A2), .ledger_sent = 2}, AUDIT_SENT, 0, false, true},
    {"doubled, by the status log", {.seen = QUEUED | SENT | SEEN_S_TWICE, BY_VENDOR(A1 | A2), .ledger_sent = 1}, AUDIT_SENT, 0, false, true},
};

// The same with a record taken away.
static const Case broken[] = {
    {"accept row", {.seen = (QUEUED | SENT) & ~SEEN_ACCEPTED, BY_VENDOR(A1)}, AUDIT_SENT, MISSING_ACCEPT, false, false},
    {"request", {.seen = (QUEUED | SENT) & ~SEEN_REQUEST, BY_VENDOR(A1)}, AUDIT_SENT, MISSING_REQUEST, false, false},
    {"request of a scheduled one", {.seen = SCHEDULED | SENT, .deferred = 1, BY_VENDOR(A1)}, AUDIT_SENT, MISSING_REQUEST, false, false},
    {"all but the accept row", {.seen = SEEN_ACCEPTED}, AUDIT_STUCK, MISSING_REQUEST | MISSING_STATUS, false, false},
    {"request and its status, folded before",
     {.seen = SEEN_ACCEPTED | SEEN_H_ROW | SEEN_H_QUEUED}, AUDIT_STUCK, MISSING_REQUEST | MISSING_STATUS, false, false},
    {"deferral that waits", {.seen = SCHEDULED | SEEN_DUE}, AUDIT_IN_FLIGHT, MISSING_DEFERRED, false, false},
    {"deferral and row of the clock", {.seen = SCHEDULED}, AUDIT_STUCK, MISSING_DEFERRED, false, false},
    {"row of the clock", {.seen = SCHEDULED, .deferred = 1}, AUDIT_STUCK, MISSING_DUE, false, false},
    {"row of the clock, of a retry",
     {.seen = QUEUED, BY_VENDOR(A1), .ledger_put_off = A1, .deferred = A2}, AUDIT_STUCK, MISSING_DUE, false, false},
    {"deferral of a retry that was made",
     {.seen = QUEUED | SENT, BY_VENDOR(A1 | A2), .ledger_put_off = A1}, AUDIT_SENT, MISSING_DEFERRED, false, false},
    {"rendered, before it was claimed", {.seen = QUEUED}, AUDIT_STUCK, MISSING_RENDERED, false, false},
    {"rendered, after it was sent",
     {.seen = QUEUED | SENT, .ledger = A1, .ledger_reported = A1, .reported = A1, .attempts = A1}, AUDIT_SENT, MISSING_RENDERED, false, false},
    {"ledger row", {.seen = (QUEUED | SENT) & ~SEEN_LEDGER_SENT, .rendered = A1, .reported = A1, .attempts = A1}, AUDIT_SENT, MISSING_LEDGER, false, false},
    {"ledger row of the first of two attempts",
     {.seen = QUEUED | SENT, .rendered = A1 | A2, .ledger = A2, .ledger_reported = A2, .reported = A1 | A2, .attempts = A1 | A2, .deferred = A2},
     AUDIT_SENT, MISSING_LEDGER, false, false},
    {"ledger row of a call", {.seen = QUEUED | SEEN_CALL, .rendered = A1 | A2, .deferred = A2}, AUDIT_STUCK, MISSING_LEDGER, false, false},
    {"ledger row, never tried", {.seen = QUEUED, .rendered = A1}, AUDIT_STUCK, MISSING_LEDGER, false, false},
    {"ledger row of the dispatcher's decision",
     {.seen = (QUEUED | FAILED_LATE) & ~SEEN_LEDGER_FAILED, .rendered = A1}, AUDIT_FAILED, MISSING_LEDGER, false, false},
    {"ledger row of a parked one", {.seen = QUEUED | SEEN_DEAD_UNKNOWN, .rendered = A1}, AUDIT_OPEN, MISSING_LEDGER, true, false},
    {"status queued", {.seen = (QUEUED | SENT) & ~SEEN_S_QUEUED, BY_VENDOR(A1)}, AUDIT_SENT, MISSING_STATUS, false, false},
    {"status sent", {.seen = (QUEUED | SENT) & ~SEEN_S_SENT, .rendered = A1, .ledger = A1, .ledger_reported = A1, .attempts = A1},
     AUDIT_SENT, MISSING_STATUS, false, false},
    {"status sent, and history never had it",
     {.seen = QUEUED | SEEN_LEDGER_SENT, .rendered = A1, .ledger = A1, .ledger_reported = A1}, AUDIT_SENT, MISSING_STATUS, false, false},
    {"status failed of the renderer", {.seen = QUEUED | H_ENDED}, AUDIT_FAILED, MISSING_STATUS, false, false},
    {"status failed of the dispatcher's decision",
     {.seen = QUEUED | SEEN_LEDGER_FAILED | SEEN_DECIDED, .rendered = A1, .ledger = A1}, AUDIT_FAILED, MISSING_STATUS, false, false},
    {"status delivered", {.seen = QUEUED | SENT | SEEN_S_DELIVERED << 8, BY_VENDOR(A1)}, AUDIT_SENT, MISSING_STATUS, false, false},
    {"item of an inbox", {.seen = QUEUED | SENT | SEEN_LEDGER_INAPP, BY_VENDOR(A1)}, AUDIT_SENT, MISSING_FEED, false, false},
    {"history row",
     {.seen = (QUEUED | SENT) & ~(SEEN_H_ROW | SEEN_H_QUEUED | SEEN_H_SENT), BY_VENDOR(A1)}, AUDIT_SENT, MISSING_HISTORY, false, false},
    {"history's attempt", {.seen = QUEUED | SENT, .rendered = A1, .ledger = A1, .ledger_reported = A1, .reported = A1}, AUDIT_SENT, MISSING_HISTORY, false, false},
};
// clang-format on

static void each_way_that_is_whole_has_its_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        check(&whole[i], 2);
    }
}

static void a_record_that_is_gone_is_missed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        check(&broken[i], 2);
    }
}

static void what_moved_within_the_grace_is_in_flight_and_not_missed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        Case moving = broken[i];
        moving.missing = 0;
        moving.state = AUDIT_IN_FLIGHT;
        check(&moving, 0);
    }
}

static void age_takes_the_rendered_after_three_days_and_the_rest_after_thirty(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        Case aged = broken[i];
        aged.missing &= ~(unsigned)MISSING_RENDERED;
        if (aged.missing != broken[i].missing) {
            aged.state = aged.state == AUDIT_STUCK ? AUDIT_IN_FLIGHT : aged.state;
            check(&aged, 73);
        }
    }
    Case old = {
        "only ledger and history are left",
        {.seen = SEEN_ACCEPTED | SEEN_LEDGER_SENT | SEEN_H_ROW | SEEN_H_QUEUED | SEEN_H_SENT,
         .ledger = A1,
         .ledger_reported = A1,
         .attempts = A1},
        AUDIT_SENT,
        0,
        false,
        false};
    check(&old, 721);
    old.entry.seen &= ~(SEEN_H_ROW | SEEN_H_QUEUED | SEEN_H_SENT);
    old.entry.attempts = 0;
    old.missing = MISSING_HISTORY;
    check(&old, 721);
    old.entry.seen |= SEEN_LEDGER_INAPP;
    old.missing = MISSING_HISTORY | MISSING_FEED;
    check(&old, 721);
    old.missing = MISSING_HISTORY;
    check(&old, 9601);
}

// ---- what can be done ----

static AuditRemedy remedy(AuditEntry entry)
{
    AuditEntry aged = entry_of_hours(2);
    memcpy(entry.ulid, aged.ulid, sizeof entry.ulid);
    entry.moved_us = aged.moved_us;
    return audit_remedy(&entry, judge(&entry).missing);
}

static void what_was_tried_without_a_ledger_row_is_never_driven_again(void **state)
{
    (void)state;
    const uint64_t others = QUEUED & ~SEEN_REQUEST; // something else is missing, too
    const AuditEntry entries[] = {
        {.seen = others | SEEN_S_SENT | SEEN_H_SENT,
         .rendered = A1,
         .reported = A1,
         .attempts = A1},
        {.seen = others | SEEN_S_SENT, .reported = A1},
        {.seen = others | SEEN_H_SENT, .attempts = A1},
        {.seen = others, .reported = A1}, // "sending": an attempt that was put off
        {.seen = others, .attempts = A1}, // only history has it
        {.seen = others | SEEN_S_DELIVERED},
        {.seen = others | SEEN_S_DELIVERED << 8},
        {.seen = others | SEEN_DEAD_UNKNOWN, .rendered = A1},
        {.seen = others | SEEN_S_FAILED_LATE | SEEN_S_ENDED},
        {.seen = others, .reported = A1 | A2, .ledger = A1, .ledger_reported = A1},
        {.seen = others | SEEN_S_SENT, .reported = A1, .ledger = A1},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        assert_int_equal(remedy(entries[i]), REMEDY_OPERATOR);
    }
}

static void known_outcomes_and_untried_attempts_are_driven_again(void **state)
{
    (void)state;
    const AuditEntry entries[] = {
        {.seen = SEEN_ACCEPTED},
        {.seen = QUEUED},
        {.seen = QUEUED, .rendered = A1},
        {.seen = SEEN_ACCEPTED | SEEN_LEDGER_SENT, .ledger = A1, .ledger_reported = A1},
        {.seen = SEEN_ACCEPTED | SEEN_LEDGER_SENT | SEEN_H_ROW | SEEN_H_SENT | SEEN_H_QUEUED,
         .ledger = A1,
         .ledger_reported = A1,
         .attempts = A1},
        {.seen = SCHEDULED},
        {.seen = SCHEDULED, .deferred = 1},
        {.seen = QUEUED, BY_VENDOR(A1), .ledger_put_off = A1, .deferred = A2},
        {.seen = QUEUED | SEEN_STALE, .ledger = A1},
        {.seen = QUEUED | SENT | SEEN_LEDGER_INAPP, BY_VENDOR(A1)},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        assert_int_equal(remedy(entries[i]), REMEDY_DRIVE);
    }
}

static void an_unknown_outcome_that_no_delivery_meets_is_driven_to_its_policy(void **state)
{
    (void)state;
    const uint64_t stale = QUEUED | SEEN_STALE | SEEN_H_ROW | SEEN_H_QUEUED;
    const AuditEntry abandoned = {.seen = stale, .rendered = A1, .ledger = A1};
    assert_int_equal(remedy(abandoned), REMEDY_DRIVE);
    static const uint64_t others[] = {
        SEEN_RENDERED_WAITING, SEEN_DUE, SEEN_PARKED, SEEN_DEAD_UNKNOWN, SEEN_S_DELIVERED};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        AuditEntry entry = abandoned;
        entry.seen |= others[i];
        assert_int_equal(audit_remedy(&entry, 0), REMEDY_NONE);
    }
    AuditEntry unproved = abandoned;
    unproved.seen &= ~(uint64_t)SEEN_ACCEPTED;
    assert_int_equal(audit_remedy(&unproved, 0), REMEDY_NONE);
}

static void without_an_accept_row_nothing_can_be_driven_and_history_is_rebuilt(void **state)
{
    (void)state;
    assert_int_equal(remedy((AuditEntry){.seen = SEEN_S_QUEUED}), REMEDY_NONE);
    assert_int_equal(
        remedy((AuditEntry){.seen = (QUEUED | SENT) & ~SEEN_ACCEPTED, BY_VENDOR(A1)}), REMEDY_NONE);
    assert_int_equal(
        remedy((AuditEntry){
            .seen = (QUEUED | SENT) & ~(SEEN_H_ROW | SEEN_H_QUEUED | SEEN_H_SENT), BY_VENDOR(A1)}),
        REMEDY_REBUILD);
    assert_int_equal(remedy((AuditEntry){.seen = QUEUED | SENT, BY_VENDOR(A1)}), REMEDY_NONE);
}

// Of what retention may have dropped only what is there can be judged.
static void what_retention_drops_is_not_missed(void **state)
{
    (void)state;
    AuditEntry sent = entry_of_hours(900 * 24);
    AuditEntry unknown = sent;
    sent.seen = SEEN_H_ROW | SEEN_H_QUEUED | SEEN_H_SENT;
    sent.attempts = A1;
    unknown.seen = SEEN_ACCEPTED;
    int64_t since_us = NOW_US - 720 * HOUR_US;
    AuditAges ages = {
        .request_us = since_us,
        .deferred_us = since_us,
        .rendered_us = since_us,
        .status_us = since_us,
    };
    assert_int_equal(audit_classify(&sent, &ages, NOW_US).missing, MISSING_ACCEPT | MISSING_LEDGER);
    assert_int_equal(audit_classify(&unknown, &ages, NOW_US).missing, MISSING_HISTORY);
    ages.accept_us = since_us;
    ages.ledger_us = since_us;
    assert_int_equal(audit_classify(&sent, &ages, NOW_US).missing, 0);
    assert_int_equal(audit_classify(&sent, &ages, NOW_US).state, AUDIT_SENT);
    ages.history_us[RETENTION_BRIEF] = since_us; // the id's class is another
    assert_int_equal(audit_classify(&unknown, &ages, NOW_US).missing, MISSING_HISTORY);
    ages.history_us[RETENTION_RECORD] = since_us;
    assert_int_equal(audit_classify(&unknown, &ages, NOW_US).missing, 0);
}

static void every_source_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MISSING_KINDS; i++) {
        assert_string_not_equal(audit_missing_name((AuditMissing)(1u << i)), "");
        for (unsigned j = 0; j < i; j++) {
            assert_string_not_equal(
                audit_missing_name((AuditMissing)(1u << i)),
                audit_missing_name((AuditMissing)(1u << j)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_that_is_whole_has_its_state),
        cmocka_unit_test(a_record_that_is_gone_is_missed),
        cmocka_unit_test(what_moved_within_the_grace_is_in_flight_and_not_missed),
        cmocka_unit_test(age_takes_the_rendered_after_three_days_and_the_rest_after_thirty),
        cmocka_unit_test(what_was_tried_without_a_ledger_row_is_never_driven_again),
        cmocka_unit_test(known_outcomes_and_untried_attempts_are_driven_again),
        cmocka_unit_test(an_unknown_outcome_that_no_delivery_meets_is_driven_to_its_policy),
        cmocka_unit_test(without_an_accept_row_nothing_can_be_driven_and_history_is_rebuilt),
        cmocka_unit_test(what_retention_drops_is_not_missed),
        cmocka_unit_test(every_source_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
