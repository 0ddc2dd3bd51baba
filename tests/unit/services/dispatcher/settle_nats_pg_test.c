// SPDX-License-Identifier: Apache-2.0
// What a vendor's callback proves about a mail whose outcome is unknown, between a real JetStream
// and a real Postgres.
#include "tests/unit/services/dispatcher/dispatcher_stage.h"

// A callback's status, as webhook-receiver publishes it on SETTLE; `publish_id` is its Nats-Msg-Id.
static void prove(
    Stage *stage, const char *notification, Status status, const char *event_id,
    const char *publish_id)
{
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.event_id = (char *)(uintptr_t)event_id;
    meta.tenant = (char *)(uintptr_t) "acme";
    meta.notification_id = (char *)(uintptr_t)notification;
    meta.occurred_at_us = clock_now_us();
    Stentor__V1__NotificationStatus event;
    stentor__v1__notification_status__init(&event);
    event.meta = &meta;
    event.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    event.status = (Stentor__V1__Status)status;
    Str payload;
    assert_true(event_pack(&event.base, stage->arena, &payload, NULL));
    BusOut out = {
        .subject = "ntf.settle.acme", .event_id = str_from(publish_id), .payload = payload};
    Acks acks = {0};
    bus_publish(stage->rig.bus, &out, on_acks, &acks);
    WAIT(&stage->rig, acks.stored == 1);
}

static void expect_reported_as_sent(
    Stage *stage, size_t place, const char *notification, uint32_t attempt)
{
    const Stentor__V1__NotificationStatus *status = status_at(stage, place);
    char expected[EVENT_ID_SIZE];
    char discriminator[32];
    snprintf(discriminator, sizeof discriminator, "sent/%u", attempt);
    event_id_derive("status", str_from(notification), str_from(discriminator), expected);
    assert_int_equal(status->status, STATUS_SENT);
    assert_string_equal(status->meta->event_id, expected);
    assert_string_equal(status->meta->notification_id, notification);
    assert_non_null(status->attempt);
    assert_int_equal(status->attempt->number, attempt);
    assert_string_equal(status->attempt->vendor, "smtp");
    assert_true(status->attempt->was_unknown);
    assert_true(status->meta->occurred_at_us > 0);
}

static void park_one(Stage *stage, Event *event)
{
    dispatcher_down(stage);
    stage->parts.unknown.of[CHANNEL_EMAIL] = UNKNOWN_PARK;
    dispatcher_up(stage, "second");
    make_event(stage, event);
    leave_claim(stage, event, "-1 second");
    publish(stage, event->packed, event->id);
    dead_at(stage, 0);
    wait_acked(stage);
    assert_string_equal(ledger_state(stage), "parked/1/1");
}

static void a_parked_mail_is_settled_and_reported_as_sent(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    park_one(stage, &event);
    prove(stage, event.id, STATUS_DELIVERED, "proof-1", "p1");
    expect_reported_as_sent(stage, 0, event.id, 1);
    assert_string_equal(ledger_state(stage), "sent/1/1");
    assert_string_equal(
        sql_value(
            stage,
            "SELECT settled_by || (settled_at IS NOT NULL)::text || vendor_message_id = "
            "'proof-1true' || notification_id || '@mail.example.com' FROM dispatcher.ledger"),
        "t");
    assert_int_equal(stage->sends, 0);
    wait_acked_on(stage, "SETTLE");
}

static void what_left_us_and_came_back_is_settled_too(void **state)
{
    static const Status proofs[] = {
        STATUS_OPENED, STATUS_CLICKED, STATUS_BOUNCED, STATUS_COMPLAINED, STATUS_FAILED};
    Stage *stage = *state;
    for (size_t i = 0; i < sizeof proofs / sizeof proofs[0]; i++) {
        Event event = {.to = "alice@example.org"};
        id_new("ntf_", clock_now_us(), event.id);
        leave_claim(stage, &event, "-1 second");
        prove(stage, event.id, proofs[i], status_name(proofs[i]), event.id);
        expect_reported_as_sent(stage, i, event.id, 1);
    }
}

// The first delivery was killed between the ledger's commit and the publish of "sent".
static void a_repeat_of_the_proof_tells_it_again(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    park_one(stage, &event);
    run_sql(
        stage, "UPDATE dispatcher.ledger SET state = 'sent', settled_at = now(), settled_by = "
               "'proof-1', vendor = 'smtp'");
    prove(stage, event.id, STATUS_OPENED, "proof-2", "p2"); // another one has nothing to tell
    wait_acked_on(stage, "SETTLE");
    assert_int_equal(stage->status.count, 0);
    prove(stage, event.id, STATUS_DELIVERED, "proof-1", "p1");
    expect_reported_as_sent(stage, 0, event.id, 1);
}

static void an_ordinary_callback_changes_nothing(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    status_at(stage, 0);
    wait_acked(stage);
    prove(stage, event.id, STATUS_DELIVERED, "proof-1", "p1");
    prove(stage, "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV", STATUS_DELIVERED, "proof-2", "p2");
    wait_acked_on(stage, "SETTLE");
    pass_ms(&stage->rig, 100);
    assert_int_equal(stage->status.count, 1);
    assert_int_equal(stage->dead.count, 0);
    assert_string_equal(
        sql_value(
            stage, "SELECT state || unknown_count || (settled_at IS NULL) FROM dispatcher.ledger"),
        "sent0true");
}

// Before the take-over, and before the lease has ended: it is noted, and the take-over sends
// nothing.
static void a_proof_before_the_take_over_stops_it(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "2 seconds");
    prove(stage, event.id, STATUS_DELIVERED, "proof-1", "p1");
    wait_acked_on(stage, "SETTLE");
    assert_string_equal(ledger_state(stage), "claimed/0/1");
    publish(stage, event.packed, event.id);
    expect_reported_as_sent(stage, 0, event.id, 1);
    assert_string_equal(ledger_state(stage), "sent/1/1");
    assert_int_equal(stage->sends, 0);
    wait_acked(stage);
}

static void a_proof_before_parking_stops_it(void **state)
{
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->parts.unknown.of[CHANNEL_EMAIL] = UNKNOWN_PARK;
    dispatcher_up(stage, "second");
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "2 seconds");
    prove(stage, event.id, STATUS_BOUNCED, "proof-1", "p1");
    wait_acked_on(stage, "SETTLE");
    publish(stage, event.packed, event.id);
    expect_reported_as_sent(stage, 0, event.id, 1);
    assert_string_equal(ledger_state(stage), "sent/1/1");
    assert_int_equal(stage->dead.count, 0);
}

static void a_dead_claim_settled_first_is_found_sent_by_its_redelivery(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "-1 second");
    prove(stage, event.id, STATUS_DELIVERED, "proof-1", "p1");
    expect_reported_as_sent(stage, 0, event.id, 1);
    publish(stage, event.packed, event.id);
    wait_acked(stage);
    pass_ms(&stage->rig, 100);
    assert_int_equal(stage->sends, 0);
    assert_int_equal(stage->status.count, 1); // under the same id
    assert_string_equal(ledger_state(stage), "sent/1/1");
}

static void the_next_attempt_of_a_settled_one_is_not_sent(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "unknown";
    stage->answers[1] = "unknown";
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    deferred_at(stage, 0);
    wait_acked(stage);
    prove(stage, event.id, STATUS_DELIVERED, "proof-1", "p1");
    expect_reported_as_sent(stage, 1, event.id, 1); // after "sending"
    assert_string_equal(ledger_state(stage), "sent/2/1");
    event.attempt = 2;
    make_event(stage, &event);
    publish(stage, event.packed, "the-second-attempt");
    wait_acked(stage);
    pass_ms(&stage->rig, 100);
    assert_int_equal(stage->sends, 0);
    assert_int_equal(stage->status.count, 2);
    assert_int_equal(stage->deferred.count, 1);
    assert_string_equal(sql_value(stage, "SELECT count(*) FROM dispatcher.ledger"), "1");
}

static void what_a_person_has_sent_again_is_sent(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    park_one(stage, &event);
    prove(stage, event.id, STATUS_BOUNCED, "proof-1", "p1");
    expect_reported_as_sent(stage, 0, event.id, 1);
    event.attempt = 2;
    event.resends = 1;
    make_event(stage, &event);
    publish(stage, event.packed, "sent again by hand");
    assert_int_equal(status_at(stage, 1)->attempt->number, 2);
    assert_int_equal(stage->sends, 1);
}

// The proof came while the mail was being tried again; the second try was refused.
static void a_proof_wins_over_the_outcome_of_a_living_claim(void **state)
{
    Stage *stage = *state;
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    prove(stage, event.id, STATUS_DELIVERED, "proof-1", "p1");
    wait_acked_on(stage, "SETTLE");
    answer_held(stage, "451 4.3.0");
    expect_reported_as_sent(stage, 0, event.id, 1);
    wait_acked(stage);
    assert_int_equal(stage->deferred.count, 0);
    assert_string_equal(ledger_state(stage), "sent/1/1");
    assert_int_equal(stage->sends, 1);
}

static void a_callback_faster_than_the_outcome_changes_nothing(void **state)
{
    Stage *stage = *state;
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    prove(stage, event.id, STATUS_DELIVERED, "proof-1", "p1");
    wait_acked_on(stage, "SETTLE");
    answer_held(stage, "250 2.0.0");
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_false(status_at(stage, 0)->attempt->was_unknown);
    assert_string_equal(ledger_state(stage), "sent/0/1");
}

static void another_tenants_callback_settles_nothing(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    park_one(stage, &event);
    run_sql(stage, "UPDATE dispatcher.ledger SET tenant_id = 'zeta'");
    prove(stage, event.id, STATUS_DELIVERED, "proof-1", "p1");
    wait_acked_on(stage, "SETTLE");
    assert_string_equal(ledger_state(stage), "parked/1/1");
    assert_int_equal(stage->status.count, 0);
}

static void what_proves_nothing_is_buried(void **state)
{
    Stage *stage = *state;
    prove(stage, "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV", STATUS_SENDING, "proof-1", "p1");
    assert_string_equal(
        dead_at(stage, 0)->reason, "'status' 4 is no proof that the vendor had the mail");
    assert_string_equal(dead_at(stage, 0)->meta->notification_id, "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    prove(stage, "no notification", STATUS_DELIVERED, "proof-2", "p2");
    assert_string_equal(
        dead_at(stage, 1)->reason, "'meta.notification_id' is not a notification's id");
    prove(stage, "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV", STATUS_DELIVERED, "", "p3");
    assert_string_equal(dead_at(stage, 2)->reason, "'meta.event_id' is not an event's id");
    wait_acked_on(stage, "SETTLE");
}

static bool metrics_say(Stage *stage, const char *line)
{
    Buf text;
    buf_init(&text, METRICS_TEXT_MAX);
    assert_true(metrics_print(stage->metrics, &text));
    buf_str(&text, str_of("", 1));
    bool found = strstr(buf_view(&text).ptr, line) != NULL;
    buf_done(&text);
    return found;
}

static void open_unknowns_are_a_metric(void **state)
{
    Stage *stage = *state;
    dispatcher_down(stage);
    Event dead = {.to = "a@example.org"};
    Event living = {.to = "b@example.org"};
    id_new("ntf_", clock_now_us(), dead.id);
    id_new("ntf_", clock_now_us(), living.id);
    leave_claim(stage, &dead, "-1 second");
    leave_claim(stage, &living, "1 hour");
    stage->parts.lease_ms = 1000;
    dispatcher_up(stage, "second");
    WAIT(&stage->rig, metrics_say(stage, "stentor_dispatcher_unknown_open{state=\"claimed\"} 1\n"));
    assert_true(metrics_say(stage, "stentor_dispatcher_unknown_open{state=\"parked\"} 0\n"));
    prove(stage, dead.id, STATUS_DELIVERED, "proof-1", "p1");
    WAIT(&stage->rig, metrics_say(stage, "stentor_dispatcher_settled_total 1\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_parked_mail_is_settled_and_reported_as_sent),
        ON_STAGE(what_left_us_and_came_back_is_settled_too),
        ON_STAGE(a_repeat_of_the_proof_tells_it_again),
        ON_STAGE(an_ordinary_callback_changes_nothing),
        ON_STAGE(a_proof_before_the_take_over_stops_it),
        ON_STAGE(a_proof_before_parking_stops_it),
        ON_STAGE(a_dead_claim_settled_first_is_found_sent_by_its_redelivery),
        ON_STAGE(the_next_attempt_of_a_settled_one_is_not_sent),
        ON_STAGE(what_a_person_has_sent_again_is_sent),
        ON_STAGE(a_proof_wins_over_the_outcome_of_a_living_claim),
        ON_STAGE(a_callback_faster_than_the_outcome_changes_nothing),
        ON_STAGE(another_tenants_callback_settles_nothing),
        ON_STAGE(what_proves_nothing_is_buried),
        ON_STAGE(open_unknowns_are_a_metric),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
