// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "services/gateway/why/why_list.h"

#define ALICE "ntf_01M83AVY1NCDCG3Y6T3Y82BH3P"
#define SECOND INT64_C(1000000)
#define DAY_US (86400 * SECOND)

typedef struct Fixture {
    Arena *arena;
    HistoryRow row;
    WhyFacts facts;
    WhyList list;
} Fixture;

static int set_up(void **state)
{
    static Fixture f;
    memset(&f, 0, sizeof f);
    f.arena = arena_new(0);
    f.row = (HistoryRow){.id = STR(ALICE), .created_at_us = 10 * DAY_US, .status = STATUS_SENT};
    f.row.text[FOLD_CHANNEL] = STR("email");
    f.row.text[FOLD_CATEGORY] = STR("marketing");
    f.facts = (WhyFacts){
        .now_us = 11 * DAY_US, .row = &f.row, .in_history = true, .gate_trace = STR("T+S+A+")};
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    arena_free(f->arena);
    return 0;
}

static void make(Fixture *f)
{
    why_list_make(&f->facts, f->arena, &f->list);
}

static const WhyItem *item_of(const Fixture *f, const char *question)
{
    for (size_t i = 0; i < f->list.count; i++) {
        if (strncmp(f->list.items[i].question, question, strlen(question)) == 0) {
            return &f->list.items[i];
        }
    }
    return NULL;
}

static void expect(const Fixture *f, const char *question, WhyOutcome outcome, const char *answer)
{
    const WhyItem *item = item_of(f, question);
    if (item == NULL) {
        fail_msg("'%s' was not asked", question);
    }
    assert_string_equal(item->answer, answer);
    assert_int_equal(item->outcome, outcome);
}

static const char *evidence_of(const Fixture *f, const char *question, const char *name)
{
    const WhyItem *item = item_of(f, question);
    assert_non_null(item);
    for (size_t i = 0; i < item->evidence_count; i++) {
        if (strcmp(item->evidence[i].name, name) == 0) {
            return item->evidence[i].value;
        }
    }
    return "";
}

static void a_suppressed_one_names_the_entry_that_was_in_force_then(void **state)
{
    Fixture *f = *state;
    const WhySuppression entries[] = {
        {.id = STR("sup_old"),
         .reason = SUPPRESSION_OPT_OUT,
         .made_us = DAY_US,
         .released_us = 2 * DAY_US},
        {.id = STR("sup_other"),
         .category = CATEGORY_SOCIAL,
         .reason = SUPPRESSION_MANUAL,
         .made_us = DAY_US},
        {.id = STR("sup_then"),
         .reason = SUPPRESSION_HARD_BOUNCE,
         .made_us = 9 * DAY_US,
         .made_by = STR("vendor"),
         .released_us = 10 * DAY_US + 5},
    };
    f->facts.suppressions = entries;
    f->facts.suppression_count = 3;
    f->facts.gate_trace = STR("T+P+S-(tenant)");
    f->row.status = STATUS_SUPPRESSED;
    f->row.reason_code = STR("hard_bounce");
    f->row.at_us[FOLD_ENDED] = 10 * DAY_US;
    make(f);
    expect(f, "Is the address suppressed?", WHY_STOPPED, "Yes");
    assert_string_equal(evidence_of(f, "Is the address suppressed?", "suppression_id"), "sup_then");
    assert_string_equal(evidence_of(f, "Is the address suppressed?", "made_by"), "vendor");
    assert_string_equal(
        evidence_of(f, "Is the address suppressed?", "since"), "1970-01-10T00:00:00.000000Z");
    assert_null(item_of(f, "Is the address suppressed now?")); // it was released
    assert_null(item_of(f, "Was it stopped later?"));
    assert_string_equal(
        f->list.summary, "It was not sent, because earlier mail to this address came back. Check "
                         "the address; a correct one can be released from the suppression list.");
}

static void consents_are_named_with_what_they_are_now(void **state)
{
    Fixture *f = *state;
    const WhyConsent consent = {
        CATEGORY_MARKETING, CHANNEL_NONE, true, STR("signup form"), 3 * DAY_US};
    f->facts.person = (WhyPerson){.known = true, .consents = &consent, .consent_count = 1};
    f->facts.gate_trace = STR("T+S+U+C-(5/0)");
    f->row.status = STATUS_SUPPRESSED;
    f->row.reason_code = STR("no_consent");
    make(f);
    expect(f, "Is there the recipient's consent?", WHY_STOPPED, "No: it was refused");
    const char *question = "Is there the recipient's consent?";
    assert_string_equal(evidence_of(f, question, "category"), "marketing");
    assert_string_equal(evidence_of(f, question, "channel"), "any");
    assert_string_equal(evidence_of(f, question, "now"), "granted");
    assert_string_equal(evidence_of(f, question, "source"), "signup form");
    f->facts.gate_trace = STR("T+S+U+C-");
    make(f);
    expect(f, question, WHY_STOPPED, "No: marketing needs one that was granted, and there is none");
}

static void what_waits_says_for_what_and_until_when(void **state)
{
    Fixture *f = *state;
    f->facts.gate_trace = STR("T+S+U+A+L+Q>(r2200-0730)");
    f->facts.wait = (WhyWait){.reason = STR("quiet"), .due_us = 10 * DAY_US + 7 * 3600 * SECOND};
    f->row.status = STATUS_SCHEDULED;
    f->row.reason_code = STR("quiet_hours");
    make(f);
    expect(f, "Do quiet hours hold it up?", WHY_WAITS, "Yes: it waits for their end");
    assert_string_equal(evidence_of(f, "Do quiet hours", "hours"), "22:00 to 07:30");
    assert_string_equal(evidence_of(f, "Do quiet hours", "of"), "the recipient");
    expect(
        f, "Does it wait for a time?", WHY_WAITS,
        "Yes, for the end of quiet hours, until 1970-01-11 07:00:00 UTC");
    assert_string_equal(
        f->list.summary, "It has not been sent yet, because it is night for the recipient; it goes "
                         "out at 1970-01-11 07:00:00 UTC. Nothing needs to be done.");
    f->facts.wait = (WhyWait){.reason = STR_EMPTY};
    make(f);
    expect(
        f, "Does it wait for a time?", WHY_UNKNOWN,
        "It is on its way, to the scheduler or from it");
}

static NotificationAttempt attempt(int64_t number, const char *outcome, const char *reply)
{
    return (NotificationAttempt){
        .number = number,
        .vendor = STR("smtp"),
        .outcome = str_from(outcome),
        .code = STR("550"),
        .reply = str_from(reply),
        .finished_us = 10 * DAY_US + number * SECOND};
}

static void a_failed_one_has_the_vendors_words_and_its_dead_letter(void **state)
{
    Fixture *f = *state;
    const NotificationAttempt attempts[] = {
        attempt(1, "timeout", ""), attempt(2, "rejected_terminal", "5.1.1 no such user")};
    f->facts.attempts = attempts;
    f->facts.attempt_count = 2;
    f->facts.claim = (WhyClaim){.number = 2, .state = STR("failed"), .unknown = 1};
    f->facts.dead = (WhyDead){17, STR("dispatcher"), STR("refused"), 10 * DAY_US};
    f->row.status = STATUS_FAILED;
    f->row.reason_code = STR("invalid_address");
    f->row.at_us[FOLD_RENDERED] = 10 * DAY_US;
    f->row.at_us[FOLD_ENDED] = 10 * DAY_US + 2 * SECOND;
    make(f);
    expect(f, "What came of attempt 1?", WHY_UNKNOWN, "smtp gave no answer");
    expect(f, "What came of attempt 2?", WHY_FAILED, "smtp refused it: 5.1.1 no such user");
    expect(
        f, "Can it have been sent twice?", WHY_UNKNOWN,
        "Yes: an attempt ended without a known outcome and was made again");
    expect(f, "Is there a dead letter", WHY_NOTE, "Yes: number 17, of the dispatcher");
    assert_string_equal(evidence_of(f, "Is there a dead letter", "sequence"), "17");
    assert_string_equal(
        f->list.summary,
        "It did not arrive, because the mail server says that the address does not exist. Check "
        "the address and send it again to the right one. The last answer was: 550 5.1.1 no such "
        "user (An operator sends it again with: stentor dlq resend 17.)");
    f->facts.dead.sequence = 0;
    f->facts.dead_unread = true;
    make(f);
    expect(
        f, "Is there a dead letter", WHY_UNKNOWN,
        "It was not found in the time that there is for an answer");
}

static void what_was_taken_says_what_is_known_of_its_arrival(void **state)
{
    Fixture *f = *state;
    f->row.at_us[FOLD_SENT] = 10 * DAY_US + SECOND;
    make(f);
    expect(
        f, "Did it arrive?", WHY_UNKNOWN,
        "The next server took it; no report of its arrival has come");
    f->row.status = STATUS_DELIVERED;
    f->row.at_us[FOLD_DELIVERED] = 10 * DAY_US + 2 * SECOND;
    make(f);
    expect(f, "Did it arrive?", WHY_OK, "Yes, the vendor reported it at 1970-01-11 00:00:02 UTC");
    assert_string_equal(
        f->list.summary, "It arrived at 1970-01-11 00:00:02 UTC. If it is not seen, look into the "
                         "spam folder and filters.");
    f->row.status = STATUS_BOUNCED;
    f->row.reason_code = STR("hard_bounce");
    make(f);
    assert_int_equal(item_of(f, "Did it arrive?")->outcome, WHY_FAILED);
}

static void what_is_not_recorded_is_not_guessed(void **state)
{
    Fixture *f = *state;
    f->facts.gate_trace = STR_EMPTY;
    f->facts.in_history = false;
    f->row.status = STATUS_QUEUED;
    make(f);
    const WhyItem *gate = item_of(f, "What did the gate ask");
    assert_non_null(gate);
    assert_int_equal(gate->outcome, WHY_UNKNOWN);
    assert_non_null(strstr(gate->answer, "Not recorded"));
    assert_non_null(strstr(evidence_of(f, "Was it accepted?", "known_from"), "accept log"));
    assert_string_equal(f->list.summary, "It was accepted a moment ago and is on its way.");
}

static void a_vendor_that_is_away_and_a_claim_are_seen(void **state)
{
    Fixture *f = *state;
    const NotificationWait away = {"smtp", 9 * DAY_US};
    f->facts.down = &away;
    f->facts.claim = (WhyClaim){.number = 3, .state = STR("deferred"), .due_us = 12 * DAY_US};
    f->row.status = STATUS_SENDING;
    make(f);
    expect(
        f, "Can it be handed over now?", WHY_WAITS,
        "No: smtp cannot be reached since 1970-01-10 00:00:00 UTC");
    expect(f, "When is it tried again?", WHY_WAITS, "At 1970-01-13 00:00:00 UTC");
    f->facts.claim.state = STR("parked");
    make(f);
    assert_int_equal(item_of(f, "Is an attempt under way?")->outcome, WHY_UNKNOWN);
}

static void every_status_has_a_summary_and_every_list_has_room(void **state)
{
    Fixture *f = *state;
    static NotificationAttempt attempts[NOTIFICATION_ATTEMPTS_MAX];
    static const char *const codes[] = {"", "hard_bounce", "of_tomorrow"};
    for (int64_t i = 0; i < NOTIFICATION_ATTEMPTS_MAX; i++) {
        attempts[i] = attempt(i + 1, "timeout", "x");
    }
    f->facts.attempts = attempts;
    f->facts.attempts_before = 950;
    f->facts.gate_trace = STR("G+T+P+E+S+U+C+F+A+L+W>Q>(r2200-0700)D!");
    for (Status status = STATUS_NONE + 1; status < STATUS_COUNT; status++) {
        for (size_t code = 0; code < 3; code++) {
            f->facts.attempt_count = code == 0 ? 0 : NOTIFICATION_ATTEMPTS_MAX;
            f->row.status = status;
            f->row.reason_code = str_from(codes[code]);
            make(f);
            assert_in_range(strlen(f->list.summary), 10, 1500);
            assert_in_range(f->list.count, 3, WHY_ITEMS_MAX);
        }
    }
    expect(f, "Was it tried before?", WHY_NOTE, "980 earlier attempts are listed under /attempts");
}

static void what_does_not_exist_yet_is_said_ahead(void **state)
{
    Fixture *f = *state;
    const NotificationWait away = {"smtp", 9 * DAY_US};
    f->row.status = STATUS_QUEUED;
    why_list_ahead(&f->facts, f->arena, &f->list);
    assert_string_equal(f->list.summary, "It would be sent at once.");
    assert_null(item_of(f, "Was it accepted?"));
    f->facts.down = &away;
    why_list_ahead(&f->facts, f->arena, &f->list);
    assert_string_equal(f->list.summary, "It would be sent as soon as smtp can be reached again.");
    assert_int_equal(item_of(f, "Can it be handed over now?")->outcome, WHY_WAITS);
    f->row.status = STATUS_SCHEDULED;
    f->row.reason_code = STR("rate_limit");
    f->row.at_us[FOLD_SCHEDULED_FOR] = 12 * DAY_US;
    why_list_ahead(&f->facts, f->arena, &f->list);
    assert_string_equal(
        f->list.summary, "It would wait, because others are before it within the limits, and go "
                         "out at 1970-01-13 00:00:00 UTC.");
    f->row.status = STATUS_SUPPRESSED;
    f->row.reason_code = STR("no_address");
    why_list_ahead(&f->facts, f->arena, &f->list);
    assert_string_equal(
        f->list.summary, "It would not be sent, because the recipient has no active address for "
                         "it. Add an address to the recipient and send it again.");
}

static void it_is_printed_as_json(void **state)
{
    Fixture *f = *state;
    Buf out;
    f->list = (WhyList){.arena = f->arena, .summary = "It \"was\"."};
    WhyItem *item = why_add(&f->list, "Was it?", WHY_OK, "%s", "Yes");
    why_text(&f->list, item, "a", STR("b"));
    why_text(&f->list, item, "none", STR_EMPTY);
    why_time(&f->list, item, "at", SECOND);
    buf_init(&out, 4096);
    why_print(&out, &f->list);
    assert_string_equal(
        buf_c(&out), ",\"summary\":\"It \\\"was\\\".\",\"why\":[{\"question\":\"Was it?\","
                     "\"answer\":\"Yes\",\"outcome\":\"ok\",\"evidence\":{\"a\":\"b\","
                     "\"at\":\"1970-01-01T00:00:01.000000Z\"}}]");
    buf_done(&out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_suppressed_one_names_the_entry_that_was_in_force_then),
        TEST(consents_are_named_with_what_they_are_now),
        TEST(what_waits_says_for_what_and_until_when),
        TEST(a_failed_one_has_the_vendors_words_and_its_dead_letter),
        TEST(what_was_taken_says_what_is_known_of_its_arrival),
        TEST(what_is_not_recorded_is_not_guessed),
        TEST(a_vendor_that_is_away_and_a_claim_are_seen),
        TEST(every_status_has_a_summary_and_every_list_has_room),
        TEST(what_does_not_exist_yet_is_said_ahead),
        TEST(it_is_printed_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
