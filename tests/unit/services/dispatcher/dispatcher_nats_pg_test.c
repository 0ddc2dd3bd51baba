// SPDX-License-Identifier: Apache-2.0
// The whole flow between a real JetStream and a real Postgres, with a vendor that does what each
// test says.
#include "tests/unit/services/dispatcher/dispatcher_stage.h"
#include "common/bus/jetstream/get_message.h"

static void a_mail_is_sent_recorded_published_and_acked(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    Stentor__V1__NotificationStatus *status = status_at(stage, 0);
    assert_int_equal(status->status, STATUS_SENT);
    assert_string_equal(status->meta->notification_id, event.id);
    assert_string_equal(status->meta->correlation_id, "order-7");
    assert_string_equal(status->attempt->vendor, "smtp");
    assert_string_equal(status->attempt->code, "250");
    assert_int_equal(status->attempt->outcome, OUTCOME_ACCEPTED);
    assert_int_equal(status->attempt->number, 1);
    assert_false(status->attempt->was_unknown);
    assert_string_equal(ledger_state(stage), "sent/0/1");
    assert_int_equal(stage->sends, 1);
    assert_non_null(strstr(
        stage->last_message,
        "From: <shop@example.com>\r\nTo: \"Alice\" <alice@example.org>\r\nSubject: Hello\r\n"));
    assert_non_null(strstr(stage->last_message, "@mail.example.com>\r\n"));
    wait_acked(stage);
}

static void a_repeat_is_not_sent_and_publishes_the_same(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    status_at(stage, 0);
    wait_acked(stage);
    publish(stage, event.packed, "another-id-past-dedupe");
    wait_acked(stage);
    assert_int_equal(stage->sends, 1);
    pass_ms(&stage->rig, 100);
    assert_int_equal(stage->status.count, 1); // the same id: JetStream dropped it
}

static void a_transient_refusal_is_deferred_up_the_ladder(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "451 4.3.0";
    Event event = {.to = "alice@example.org"};
    int64_t before = clock_now_us();
    make_and_publish(stage, &event);
    Stentor__V1__Deferred *deferred = deferred_at(stage, 0);
    assert_string_equal(deferred->reason, "retry");
    assert_int_equal(deferred->rendered->attempt, 2);
    assert_int_equal(deferred->rendered->rung, 1);
    assert_string_equal(deferred->rendered->meta->notification_id, event.id);
    assert_non_null(deferred->rendered->content);
    assert_true(
        deferred->due_at_us >= before + 60 * 1000000LL &&
        deferred->due_at_us <= clock_now_us() + 67 * 1000000LL);
    Stentor__V1__NotificationStatus *status = status_at(stage, 0);
    assert_int_equal(status->status, STATUS_SENDING);
    assert_int_equal(status->attempt->outcome, OUTCOME_REJECTED_RETRYABLE);
    assert_string_equal(ledger_state(stage), "deferred/0/1");
    wait_acked(stage);
}

static void a_throttled_mail_uses_no_rung(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "421 4.7.0";
    Event event = {.to = "alice@example.org", .attempt = 3, .rung = 2};
    make_and_publish(stage, &event);
    assert_int_equal(deferred_at(stage, 0)->rendered->attempt, 4);
    assert_int_equal(deferred_at(stage, 0)->rendered->rung, 2);
}

static void a_mail_throttled_for_a_day_goes_up_the_ladder(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "421 4.7.0";
    Event event = {.to = "a@example.org", .attempt = 9, .rung = 1, .rendered_ago_s = 25 * 3600};
    make_and_publish(stage, &event);
    const Stentor__V1__Rendered *next = deferred_at(stage, 0)->rendered;
    assert_int_equal(next->rung, 2);
    assert_true(next->rendered_at_us <= clock_now_us() - 25 * 3600 * INT64_C(1000000)); // as it was
}

static void a_mail_throttled_for_ever_fails(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "450 4.2.1";
    Event event = {.to = "a@example.org", .attempt = 9, .rung = 2, .rendered_ago_s = 25 * 3600};
    make_and_publish(stage, &event);
    assert_string_equal(status_at(stage, 0)->reason_code, "retries_exhausted");
    assert_int_equal(stage->deferred.count, 0);
}

static void a_used_up_ladder_fails_and_is_buried(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "451 4.3.0";
    Event event = {.to = "alice@example.org", .attempt = 3, .rung = 2};
    make_and_publish(stage, &event);
    Stentor__V1__NotificationStatus *status = status_at(stage, 0);
    assert_int_equal(status->status, STATUS_FAILED);
    assert_string_equal(status->reason_code, "retries_exhausted");
    assert_string_equal(dead_at(stage, 0)->reason, "retries_exhausted: words of the vendor");
    assert_int_equal(stage->deferred.count, 0);
    wait_acked(stage);
}

// E: five attempts, whatever the installation's ladder says (60 s, 120 s here).
static void a_mail_with_retries_of_its_own_counts_every_attempt(void **state)
{
    Stage *stage = *state;
    uint32_t waits[] = {3600};
    Stentor__V1__Retries retries;
    stentor__v1__retries__init(&retries);
    retries.wait_s = waits;
    retries.n_wait_s = 1;
    retries.max_attempts = 5;
    stage->answers[0] = "421 4.7.0"; // throttled, and yet it uses a rung
    stage->answers[1] = "451 4.3.0";
    Event event = {.to = "a@example.org", .attempt = 4, .rung = 3, .retries = &retries};
    int64_t before = clock_now_us();
    make_and_publish(stage, &event);
    const Stentor__V1__Deferred *deferred = deferred_at(stage, 0);
    assert_int_equal(deferred->rendered->rung, 4);
    assert_int_equal(deferred->rendered->retries->max_attempts, 5);
    assert_int_equal(deferred->rendered->retries->wait_s[0], 3600);
    assert_true(deferred->due_at_us >= before + 3600 * INT64_C(1000000)); // the last wait again
    Event last = {.to = "b@example.org", .attempt = 5, .rung = 4, .retries = &retries};
    make_and_publish(stage, &last);
    assert_string_equal(status_at(stage, 1)->reason_code, "retries_exhausted");
    assert_int_equal(status_at(stage, 1)->attempt->number, 5);
}

static void a_deferred_mail_carries_its_attempts(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "451 4.3.0";
    Event event = {.to = "alice@example.org", .attempt = 24, .rung = 1, .attempts = 23};
    make_and_publish(stage, &event);
    const Stentor__V1__Rendered *next = deferred_at(stage, 0)->rendered;
    assert_int_equal(next->n_attempts, 20);
    assert_int_equal(next->attempts[0]->number, 5); // the oldest gave way
    const Stentor__V1__Attempt *last = next->attempts[19];
    assert_int_equal(last->number, 24);
    assert_string_equal(last->code, "451");
    assert_string_equal(last->text, "words of the vendor");
    assert_string_equal(last->attempt_id, status_at(stage, 0)->attempt->attempt_id);
}

static void a_mail_near_the_size_limit_leaves_its_oldest_attempts_behind(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "451 4.3.0";
    Event event = {.to = "alice@example.org", .attempt = 20, .attempts = 19};
    make_event(stage, &event);
    event.padding = EVENT_BYTES_MAX - 200 - event.packed.len; // less than a deferral adds
    make_and_publish(stage, &event);
    const Stentor__V1__Rendered *next = deferred_at(stage, 0)->rendered;
    assert_in_range(next->n_attempts, 2, 19);
    assert_int_equal(next->attempts[next->n_attempts - 1]->number, 20);
    assert_int_equal(next->address_hash.len, event.padding);
    wait_acked(stage);
}

static void the_dead_letter_of_a_used_up_ladder_tells_every_attempt(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "451 4.3.0";
    Event event = {.to = "alice@example.org", .attempt = 3, .rung = 2, .attempts = 2, .resends = 4};
    make_and_publish(stage, &event);
    const Stentor__V1__DeadLetter *letter = dead_at(stage, 0);
    assert_string_equal(letter->meta->notification_id, event.id);
    assert_int_equal(letter->n_attempts, 3);
    assert_int_equal(letter->attempts[0]->number, 1);
    assert_int_equal(letter->attempts[2]->number, 3);
    assert_string_equal(letter->attempts[2]->code, "451");
    assert_int_equal(status_at(stage, 0)->resends, 4);
}

static void a_bad_address_fails_at_once(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "550 5.1.1";
    Event event = {.to = "unknown@example.org"};
    make_and_publish(stage, &event);
    Stentor__V1__NotificationStatus *status = status_at(stage, 0);
    assert_int_equal(status->status, STATUS_FAILED);
    assert_string_equal(status->reason_code, "invalid_address");
    assert_int_equal(status->attempt->outcome, OUTCOME_REJECTED_TERMINAL);
    assert_string_equal(status->attempt->enhanced_code, "5.1.1");
    const Stentor__V1__DeadLetter *letter = dead_at(stage, 0);
    assert_string_equal(letter->reason_code, "invalid_address");
    assert_int_equal(letter->attempts[0]->outcome, OUTCOME_REJECTED_TERMINAL);
    wait_acked(stage);
    assert_int_equal(stage->dead.count, 1);
}

static void a_refused_address_gets_nothing_more_and_what_was_sent_stays_sent(void **state)
{
    Stage *stage = *state;
    Event sent = {.to = "gone@example.org", .padding = SUPPRESSION_HASH_LEN};
    make_and_publish(stage, &sent);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    stage->answers[0] = "550 5.1.1";
    Event refused = {.to = "gone@example.org", .padding = SUPPRESSION_HASH_LEN};
    make_and_publish(stage, &refused);
    assert_int_equal(status_at(stage, 1)->status, STATUS_FAILED);
    wait_acked(stage);
    pass_ms(&stage->rig, 200); // CONFIG reaches the dispatcher's copy
    Event next = {.to = "gone@example.org", .padding = SUPPRESSION_HASH_LEN};
    make_and_publish(stage, &next);
    assert_int_equal(status_at(stage, 2)->status, STATUS_SUPPRESSED);
    assert_string_equal(status_at(stage, 2)->reason_code, "hard_bounce");
    publish(stage, sent.packed, "another-id-past-dedupe");
    wait_acked(stage);
    assert_int_equal(stage->sends, 2);
    assert_int_equal(stage->status.count, 3);
}

static void an_unsendable_mail_fails_without_a_try(void **state)
{
    Stage *stage = *state;
    Event expired = {.to = "alice@example.org", .expires_at_us = 1};
    make_and_publish(stage, &expired);
    assert_string_equal(status_at(stage, 0)->reason_code, "expired");
    assert_null(status_at(stage, 0)->attempt);
    Event broken = {.to = "alice@example.org", .wrong_checksum = true};
    make_and_publish(stage, &broken);
    assert_string_equal(status_at(stage, 1)->reason_code, "unreadable_content");
    assert_string_equal(
        dead_at(stage, 0)->reason,
        "unreadable_content: 'content' does not match 'content_checksum'");
    Event bad = {.to = "not an address"};
    make_and_publish(stage, &bad);
    assert_string_equal(status_at(stage, 2)->reason_code, "invalid_address");
    wait_acked(stage);
    assert_int_equal(stage->sends, 0);
    assert_string_equal(
        sql_value(
            stage,
            "SELECT count(*) FROM dispatcher.ledger WHERE state = 'failed' AND vendor IS NULL"),
        "3");
}

static void an_erased_recipient_gets_nothing(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    run_sql(stage, "UPDATE keys.data_keys SET wrapped = NULL, destroyed_at = now()");
    publish(stage, event.packed, event.id);
    assert_string_equal(status_at(stage, 0)->reason_code, "recipient_erased");
    assert_int_equal(stage->sends, 0);
}

static void a_channel_without_a_vendor_fails_and_says_so(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org", .channel = STENTOR__V1__CHANNEL__CHANNEL_SMS};
    make_and_publish(stage, &event);
    assert_int_equal(status_at(stage, 0)->status, STATUS_FAILED);
    assert_string_equal(status_at(stage, 0)->reason_code, "no_vendor");
    assert_string_equal(dead_at(stage, 0)->reason, "no_vendor: no vendor for channel sms");
    assert_int_equal(stage->sends, 0);
    wait_acked(stage);
}

static void a_poison_event_is_buried_and_the_others_go_on(void **state)
{
    Stage *stage = *state;
    publish(stage, STR("\xff\xffnot protobuf"), "poison-1");
    publish(stage, STR(""), "poison-2");
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_string_equal(dead_at(stage, 1)->reason, "'meta.tenant' is not a tenant's id");
    wait_acked(stage);
}

static void an_unknown_template_version_is_waited_for(void **state)
{
    Stage *stage = *state;
    Stentor__V1__LocaleVariant locale;
    stentor__v1__locale_variant__init(&locale);
    locale.locale = (char *)(uintptr_t) "en-US";
    locale.text = (char *)(uintptr_t) "Hello there and a lot of other words of the template";
    Stentor__V1__LocaleVariant *locales[] = {&locale};
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    version.tenant = (char *)(uintptr_t) "acme";
    version.key = (char *)(uintptr_t) "welcome";
    version.version = (char *)(uintptr_t) "1.0.0";
    version.n_locales = 1;
    version.locales = locales;
    BodyPrefix *prefix = body_prefix_new(&version);
    Event event = {.to = "alice@example.org", .prefix = prefix};
    make_and_publish(stage, &event);
    pass_ms(&stage->rig, 400);
    assert_int_equal(stage->sends, 0);
    Str packed;
    assert_true(event_pack(&version.base, stage->arena, &packed, NULL));
    BusOut out = {
        .subject = "cfg.template.acme.welcome.1_0_0",
        .event_id = STR("template-1"),
        .payload = packed};
    Acks acks = {0};
    bus_publish(stage->rig.bus, &out, on_acks, &acks);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    body_prefix_free(prefix);
}

static void a_dead_claim_is_sent_again_and_says_so(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "-1 second");
    publish(stage, event.packed, event.id);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_true(status_at(stage, 0)->attempt->was_unknown);
    assert_string_equal(ledger_state(stage), "sent/1/1");
}

static void a_living_claim_is_waited_for(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "1 second");
    publish(stage, event.packed, event.id);
    pass_ms(&stage->rig, 500);
    assert_int_equal(stage->sends, 0);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_int_equal(stage->sends, 1);
}

static void a_dead_claim_is_parked_when_the_policy_says_so(void **state)
{
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->parts.unknown.of[CHANNEL_EMAIL] = UNKNOWN_PARK;
    dispatcher_up(stage, "second");
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "-1 second");
    publish(stage, event.packed, event.id);
    const Stentor__V1__DeadLetter *letter = dead_at(stage, 0);
    assert_true(str_starts(str_from(letter->reason), STR("unknown_outcome")));
    assert_string_equal(letter->meta->notification_id, event.id);
    assert_int_equal(letter->n_attempts, 1);
    assert_int_equal(letter->attempts[0]->outcome, OUTCOME_TIMEOUT);
    assert_true(letter->attempts[0]->was_unknown && letter->attempts[0]->started_at_us > 0);
    assert_string_equal(ledger_state(stage), "parked/1/1");
    wait_acked(stage);
    assert_int_equal(stage->sends, 0);
    assert_int_equal(stage->status.count, 0);
}

static void an_unanswered_mail_is_sent_once_more(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "unknown";
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_true(status_at(stage, 0)->attempt->was_unknown);
    assert_string_equal(ledger_state(stage), "sent/1/1");
}

static void a_mail_unanswered_twice_is_deferred(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "unknown";
    stage->answers[1] = "unknown";
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    assert_int_equal(deferred_at(stage, 0)->rendered->attempt, 2);
    assert_int_equal(status_at(stage, 0)->attempt->outcome, OUTCOME_TIMEOUT);
    assert_string_equal(ledger_state(stage), "deferred/2/1");
}

static void an_unreachable_vendor_defers(void **state)
{
    Stage *stage = *state;
    stage->answers[0] = "unsent";
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    assert_int_equal(deferred_at(stage, 0)->rendered->rung, 1);
    assert_int_equal(status_at(stage, 0)->attempt->outcome, OUTCOME_TIMEOUT);
    assert_string_equal(ledger_state(stage), "deferred/0/1");
}

// What CONFIG says; NULL: nothing.
static const Stentor__V1__ChannelHealth *channel_health(Stage *stage)
{
    Error err = {0};
    BusMessage message = {0};
    bool found = false;
    const char *reply = rig_ask(
        &stage->rig, "$JS.API.STREAM.MSG.GET.CONFIG",
        "{\"last_by_subj\":\"cfg.channel_health.platform.email_smtp\"}");
    assert_true(
        get_message_reply(str_from(reply), "CONFIG", stage->arena, &message, &found, &err));
    return !found ? NULL
                  : (const Stentor__V1__ChannelHealth *)event_unpack(
                        &stentor__v1__channel_health__descriptor, message.payload, stage->arena,
                        NULL);
}

// Killed while the entry says down, the next process finds out without a mail; the entry says up
// when it has reached the vendor, and nothing is stored in between.
static void config_says_while_the_vendor_is_away(void **state)
{
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->parts.lease_ms = 1000;
    int64_t now_us = clock_now_us();
    stage->health = (VendorHealth){
        .down_since_us = now_us - 60 * INT64_C(1000000), .reason = "connection refused"};
    dispatcher_up(stage, "second");
    WAIT(&stage->rig, channel_health(stage) != NULL);
    assert_int_equal(channel_health(stage)->down_since_us, stage->health.down_since_us);
    assert_string_equal(channel_health(stage)->reason, "connection refused");
    assert_string_equal(channel_health(stage)->noted_by, "second");
    assert_int_equal(stage->probes, 0);
    Buf warning;
    buf_init(&warning, 512);
    assert_true(dispatcher_ready(stage->dispatcher, &warning));
    dispatcher_warn(stage->dispatcher, &warning);
    assert_non_null(strstr(buf_c(&warning), "connection refused"));
    buf_done(&warning);
    dispatcher_down(stage);
    stage->health = (VendorHealth){0};
    dispatcher_up(stage, "third");
    WAIT(&stage->rig, stage->probes == 1);
    assert_string_equal(channel_health(stage)->noted_by, "second");
    stage->health.reached_at_us = clock_now_us();
    WAIT(&stage->rig, channel_health(stage)->down_since_us == 0);
    assert_string_equal(channel_health(stage)->noted_by, "third");
}

static void draining_releases_and_the_next_process_sends(void **state)
{
    Stage *stage = *state;
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    dispatcher_down(stage);
    assert_string_equal(
        sql_value(stage, "SELECT state || owner || lease_until FROM dispatcher.ledger"),
        "claimed-infinity");
    stage->holding = false;
    dispatcher_up(stage, "second");
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_false(status_at(stage, 0)->attempt->was_unknown);
    assert_int_equal(stage->sends, 1);
}

static void outcomes_survive_a_database_that_goes_away(void **state)
{
    Stage *stage = *state;
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    run_sql(stage, "ALTER ROLE stentor_dispatcher NOLOGIN");
    run_sql(
        stage, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
               "'stentor_dispatcher'");
    answer_held(stage, "250 2.0.0");
    pass_ms(&stage->rig, 500);
    run_sql(stage, "ALTER ROLE stentor_dispatcher LOGIN");
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_int_equal(stage->sends, 1);
    assert_string_equal(ledger_state(stage), "sent/0/1");
    wait_acked(stage);
}

static void a_slow_mail_keeps_its_claim(void **state)
{
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->parts.lease_ms = 1000;
    dispatcher_up(stage, "second");
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    pass_ms(&stage->rig, 2500);
    assert_string_equal(sql_value(stage, "SELECT lease_until > now() FROM dispatcher.ledger"), "t");
    answer_held(stage, "250 2.0.0");
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_string_equal(ledger_state(stage), "sent/0/1");
}

static void no_more_is_claimed_than_the_vendor_can_take(void **state)
{
    enum { MAILS = 20, CLAIMS = 4, WITH_A_BATCH = 2 * CLAIMS - 1 };
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->claims_max = CLAIMS;
    dispatcher_up(stage, "second");
    stage->holding = true;
    for (int i = 0; i < MAILS; i++) {
        make_and_publish(stage, &(Event){.to = "alice@example.org"});
    }
    WAIT(&stage->rig, stage->held_count >= CLAIMS);
    pass_ms(&stage->rig, 300);
    assert_true(stage->held_count <= WITH_A_BATCH);
    assert_string_equal(
        sql_value(stage, "SELECT count(*) BETWEEN 4 AND 7 FROM dispatcher.ledger"), "t");
    stage->holding = false;
    status_at(stage, MAILS - 1);
    assert_int_equal(stage->sends, MAILS);
    wait_acked(stage);
}

static void hold_mails(Stage *stage, int mails, const char *claimed_at_most)
{
    stage->holding = true;
    for (int i = 0; i < mails; i++) {
        make_and_publish(stage, &(Event){.to = "alice@example.org"});
    }
    WAIT(&stage->rig, stage->held_count > 0);
    pass_ms(&stage->rig, 800); // long enough for a lane to be slow
    assert_string_equal(sql_value(stage, claimed_at_most), "t");
}

static void what_a_slow_lane_holds_back_is_unclaimed_and_goes_on(void **state)
{
    enum { MAILS = 20, CLAIMS = 4 };
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->claims_max = CLAIMS;
    dispatcher_up(stage, "second");
    make_and_publish(stage, &(Event){.to = "alice@example.org"});
    make_and_publish(stage, &(Event){.to = "bob@example.org", .tenant = "other"}); // company
    WAIT(&stage->rig, stage->status.count == 2);
    hold_mails(stage, MAILS, "SELECT count(*) <= 9 FROM dispatcher.ledger");
    stage->holding = false;
    status_at(stage, MAILS + 1);
    assert_int_equal(stage->sends, MAILS + 1);
    wait_acked(stage);
    hold_mails(stage, MAILS, "SELECT count(*) <= 29 FROM dispatcher.ledger");
    dispatcher_down(stage); // with held ones, which are given back as they came
    assert_string_equal(
        sql_value(stage, "SELECT count(*) <= 29 AND sum(unknown_count) = 0 FROM dispatcher.ledger"),
        "t");
}

static void of_a_tenant_that_sends_alone_nothing_is_postponed(void **state)
{
    enum { MAILS = 40, CLAIMS = 4 };
    Stage *stage = *state;
    dispatcher_down(stage);
    stage->claims_max = CLAIMS;
    stage->in_flight_max = 2 * CLAIMS;
    dispatcher_up(stage, "second");
    hold_mails(stage, MAILS, "SELECT count(*) <= 7 FROM dispatcher.ledger");
    stage->holding = false;
    status_at(stage, MAILS - 1);
    assert_int_equal(stage->sends, MAILS);
    assert_int_equal(stage->deferred.count, 0);
    wait_acked(stage);
}

static void a_claim_taken_away_is_not_recorded(void **state)
{
    Stage *stage = *state;
    stage->holding = true;
    Event event = {.to = "alice@example.org"};
    make_and_publish(stage, &event);
    WAIT(&stage->rig, stage->held_count == 1);
    run_sql(
        stage, "UPDATE dispatcher.ledger SET owner = 'other', state = 'sent', finished_at = now(), "
               "vendor = 'smtp',"
               " code = '250', claimed_at = now(), unknown_count = 1");
    answer_held(stage, "451 4.3.0");
    // Its redelivery tells what the other recorded, not what came back here.
    assert_int_equal(status_at(stage, 0)->status, STATUS_SENT);
    assert_true(status_at(stage, 0)->attempt->was_unknown);
    assert_int_equal(stage->deferred.count, 0);
}

static void another_tenants_row_is_not_asked_for_for_ever(void **state)
{
    Stage *stage = *state;
    Event event = {.to = "alice@example.org"};
    make_event(stage, &event);
    leave_claim(stage, &event, "-1 second");
    run_sql(stage, "UPDATE dispatcher.ledger SET tenant_id = 'zeta'");
    publish(stage, event.packed, event.id);
    assert_string_equal(
        dead_at(stage, 0)->reason,
        "the ledger has this notification for another tenant than 'acme'");
    assert_int_equal(stage->sends, 0);
    wait_acked(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_mail_is_sent_recorded_published_and_acked),
        ON_STAGE(a_repeat_is_not_sent_and_publishes_the_same),
        ON_STAGE(a_transient_refusal_is_deferred_up_the_ladder),
        ON_STAGE(a_throttled_mail_uses_no_rung),
        ON_STAGE(a_mail_throttled_for_a_day_goes_up_the_ladder),
        ON_STAGE(a_mail_throttled_for_ever_fails),
        ON_STAGE(a_used_up_ladder_fails_and_is_buried),
        ON_STAGE(a_mail_with_retries_of_its_own_counts_every_attempt),
        ON_STAGE(a_deferred_mail_carries_its_attempts),
        ON_STAGE(a_mail_near_the_size_limit_leaves_its_oldest_attempts_behind),
        ON_STAGE(the_dead_letter_of_a_used_up_ladder_tells_every_attempt),
        ON_STAGE(a_bad_address_fails_at_once),
        ON_STAGE(a_refused_address_gets_nothing_more_and_what_was_sent_stays_sent),
        ON_STAGE(an_unsendable_mail_fails_without_a_try),
        ON_STAGE(an_erased_recipient_gets_nothing),
        ON_STAGE(a_channel_without_a_vendor_fails_and_says_so),
        ON_STAGE(a_poison_event_is_buried_and_the_others_go_on),
        ON_STAGE(an_unknown_template_version_is_waited_for),
        ON_STAGE(a_dead_claim_is_sent_again_and_says_so),
        ON_STAGE(a_living_claim_is_waited_for),
        ON_STAGE(a_dead_claim_is_parked_when_the_policy_says_so),
        ON_STAGE(an_unanswered_mail_is_sent_once_more),
        ON_STAGE(a_mail_unanswered_twice_is_deferred),
        ON_STAGE(an_unreachable_vendor_defers),
        ON_STAGE(config_says_while_the_vendor_is_away),
        ON_STAGE(draining_releases_and_the_next_process_sends),
        ON_STAGE(outcomes_survive_a_database_that_goes_away),
        ON_STAGE(a_slow_mail_keeps_its_claim),
        ON_STAGE(no_more_is_claimed_than_the_vendor_can_take),
        ON_STAGE(what_a_slow_lane_holds_back_is_unclaimed_and_goes_on),
        ON_STAGE(of_a_tenant_that_sends_alone_nothing_is_postponed),
        ON_STAGE(a_claim_taken_away_is_not_recorded),
        ON_STAGE(another_tenants_row_is_not_asked_for_for_ever),
    };
    return cmocka_run_group_tests(tests, migrate_once, NULL);
}
