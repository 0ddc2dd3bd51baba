// SPDX-License-Identifier: Apache-2.0
// A mail that the vendor took and whose outcome the ledger does not take: it is never sent again.
#include "services/dispatcher/dispatcher_internal.h"
#include "tests/unit/common/base/states/states_walk.h"
#include "tests/unit/services/dispatcher/dispatcher_stage.h"

static void ledger_refuses(Stage *stage, const char *check)
{
    char sql[256];
    snprintf(
        sql, sizeof sql, "ALTER TABLE dispatcher.ledger ADD CONSTRAINT refuses CHECK (%s)", check);
    run_sql(stage, sql);
}

static void ledger_takes_all(Stage *stage)
{
    run_sql(stage, "ALTER TABLE dispatcher.ledger DROP CONSTRAINT refuses");
}

// The event comes once more, past JetStream's window of ids.
static void deliver_again(Stage *stage, const Event *event)
{
    publish(stage, event->packed, "another-id-past-dedupe");
    wait_acked(stage);
}

static void words_that_postgres_refuses_are_cleaned(void **state)
{
    Stage *stage = *state;
    static const char words[] = "Gr\xc3\xbc\xc3\x9f"
                                "e \xff\xc3 a\0b\x1b";
    stage->words = (Str){words, sizeof words - 1};
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_string_equal(ledger_state(stage), "sent/0/1");
    assert_string_equal(
        sql_value(stage, "SELECT reply FROM dispatcher.ledger"), "Gr\xc3\xbc\xc3\x9f"
                                                                 "e ?? a b ");
    deliver_again(stage, &event);
    assert_int_equal(stage->sends, 1);
}

static void words_that_are_too_many_are_cut_between_two_characters(void **state)
{
    Stage *stage = *state;
    static char words[3 * JOB_REPLY_MAX + 1];
    for (size_t i = 0; i < JOB_REPLY_MAX; i++) {
        memcpy(words + 3 * i, "\xe2\x82\xac", 3);
    }
    stage->words = str_from(words);
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_string_equal(
        sql_value(
            stage, "SELECT octet_length(reply) || ' ' || right(reply, 1) FROM dispatcher.ledger"),
        "999 \xe2\x82\xac");
}

static void an_outcome_whose_words_are_refused_is_recorded_without_them(void **state)
{
    Stage *stage = *state;
    ledger_refuses(stage, "reply IS NULL");
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    const Stentor__V1__NotificationStatus *status = status_at(stage, 0);
    assert_int_equal(status->status, STATUS_SENT);
    assert_string_equal(status->attempt->code, "250");
    assert_string_equal(status->attempt->text, "");
    assert_string_equal(ledger_state(stage), "sent/0/1");
    deliver_again(stage, &event);
    assert_int_equal(stage->sends, 1);
}

static void one_outcome_that_is_refused_does_not_hold_up_the_others(void **state)
{
    Stage *stage = *state;
    stage->holding = true;
    Event refused = {.to = "alice@example.org", .attempt = 2};
    Event fine = {.to = "alice@example.org"};
    make_and_publish(stage, &refused);
    make_and_publish(stage, &fine);
    WAIT(&stage->rig, stage->held_count == 2);
    ledger_refuses(stage, "state <> 'sent' OR attempt <> 2");
    stage->holding = false;
    assert_string_equal(status_at(stage, 0)->meta->notification_id, fine.id);
    ledger_takes_all(stage);
    assert_string_equal(status_at(stage, 1)->meta->notification_id, refused.id);
    wait_acked(stage);
    assert_int_equal(stage->sends, 2);
}

// The claim is kept, and renewed, for as long as the process lives.
static void an_outcome_that_is_refused_waits_with_its_claim(void **state)
{
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->parts.lease_ms = 1000;
    dispatcher_up(stage, "second");
    ledger_refuses(stage, "state <> 'sent'");
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->sends == 1);
    publish(stage, event.packed, "another-id-past-dedupe");
    pass_ms(&stage->rig, 2000);
    assert_string_equal(
        sql_value(stage, "SELECT state FROM dispatcher.ledger WHERE lease_until > now()"),
        "claimed");
    assert_int_equal(stage->status.count, 0);
    ledger_takes_all(stage);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    wait_acked(stage);
    assert_string_equal(ledger_state(stage), "sent/0/1");
    assert_int_equal(stage->sends, 1);
}

static void a_process_that_stops_publishes_what_the_ledger_refuses(void **state)
{
    Stage *stage = *state;
    ledger_refuses(stage, "state <> 'sent'");
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->sends == 1);
    dispatcher_down(stage);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_string_equal(ledger_state(stage), "claimed/0/1"); // which the audit names
    run_sql(stage, "UPDATE dispatcher.ledger SET lease_until = now()");
    dispatcher_up(stage, "second");
    Event next = {.to = "bob@example.org"};
    make_and_publish(stage, &next); // the one before it would have come by now
    WAIT(&stage->rig, stage->sends == 2);
    ledger_takes_all(stage);
    assert_string_equal(status_at(stage, 1)->meta->notification_id, next.id);
    wait_acked(stage);
    assert_int_equal(stage->sends, 2);
}

static void a_process_that_stops_without_postgres_publishes_what_the_vendor_took(void **state)
{
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->database_ms = 1000;
    dispatcher_up(stage, "second");
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    run_sql(stage, "ALTER ROLE stentor_dispatcher NOLOGIN");
    run_sql(
        stage, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
               "'stentor_dispatcher'");
    answer_held(stage, "250 2.0.0");
    dispatcher_down(stage);
    run_sql(stage, "ALTER ROLE stentor_dispatcher LOGIN");
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    wait_acked(stage);
    assert_int_equal(stage->sends, 1);
}

// As in a release build: the bug is logged, and the redelivery reports the ledger's outcome.
static void a_job_that_refuses_a_move_comes_again_and_is_not_sent_twice(void **state)
{
    Stage *stage = *state;
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    Job *job = stage->held[0]->ctx;
    answer_held(stage, "250 2.0.0");
    assert_int_equal(job->state, JOB_RECORDING);
    states_survive(true);
    job->state = JOB_CLAIMED; // from there nothing leads to RECORDED
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    wait_acked(stage);
    states_survive(false);
    assert_string_equal(ledger_state(stage), "sent/0/1");
    assert_int_equal(stage->sends, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(words_that_postgres_refuses_are_cleaned),
        ON_STAGE(words_that_are_too_many_are_cut_between_two_characters),
        ON_STAGE(an_outcome_whose_words_are_refused_is_recorded_without_them),
        ON_STAGE(one_outcome_that_is_refused_does_not_hold_up_the_others),
        ON_STAGE(an_outcome_that_is_refused_waits_with_its_claim),
        ON_STAGE(a_process_that_stops_publishes_what_the_ledger_refuses),
        ON_STAGE(a_process_that_stops_without_postgres_publishes_what_the_vendor_took),
        ON_STAGE(a_job_that_refuses_a_move_comes_again_and_is_not_sent_twice),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
