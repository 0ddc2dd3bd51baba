// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/id.h"
#include "common/deadletter/resend_rules.h"
#include "common/deadletter/store.h"
#include "tests/unit/common/deadletter/dead_letters.h"

static int set_up(void **state)
{
    *state = arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

static const ResendRules plain = {.now_us = NOW_US};

static Resend resend_ok(Arena *arena, const Letter *letter, const ResendRules *rules)
{
    Resend resend;
    Error err = {0};
    if (!letter_resend(letter, rules, arena, &resend, &err)) {
        fail_msg("%s", err.text);
    }
    return resend;
}

static void refuses(Arena *arena, Letter letter, const char *because)
{
    Resend resend;
    Error err = {0};
    assert_false(letter_resend(&letter, &plain, arena, &resend, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    if (strstr(err.text, because) == NULL) {
        fail_msg("'%s' does not say '%s'", err.text, because);
    }
}

static const Rendered *mail_of(Arena *arena, const Resend *resend)
{
    Error err = {0};
    const Rendered *mail = (const Rendered *)(const void *)event_unpack(
        &stentor__v1__rendered__descriptor, resend->out.payload, arena, &err);
    assert_non_null(mail);
    return mail;
}

// ---- mails ----

static void a_mail_gets_a_next_attempt_with_a_fresh_ladder(void **state)
{
    Arena *arena = *state;
    Rendered *event = rendered_new(arena);
    event->resends = 2;
    event->expires_at_us = NOW_US + 1;
    Letter letter = mail_letter(arena, event);
    assert_string_equal(letter.notification_id, NTF_ID);
    Resend resend = resend_ok(arena, &letter, &plain);
    const Rendered *mail = mail_of(arena, &resend);
    assert_int_equal(resend.attempt, 7);
    assert_int_equal(mail->attempt, 7);
    assert_int_equal(mail->rung, 0);
    assert_int_equal(mail->resends, 3);
    assert_int_equal(mail->expires_at_us, NOW_US + 1);
    assert_string_equal(mail->meta->causation_id, "letter-event-id-000022");
    assert_string_equal(mail->meta->notification_id, NTF_ID);
    assert_string_equal(mail->meta->correlation_id, "corr-1");
    assert_true(str_eq(str_from(mail->meta->event_id), resend.out.event_id));
    assert_int_equal(resend.out.event_id.len, EVENT_ID_LEN);
    assert_string_equal(resend.out.subject, "ntf.rendered.normal.demo");
    assert_true(str_eq(resend.out.traceparent, STR("trace")));
    assert_true(str_eq(pb_bytes(mail->content->ciphertext), STR("ciphertext")));
}

static void the_same_letter_gives_the_same_id_whenever_it_is_sent_again(void **state)
{
    Arena *arena = *state;
    Letter letter = mail_letter(arena, rendered_new(arena));
    ResendRules later = {.now_us = NOW_US + 1000000};
    Str first = resend_ok(arena, &letter, &plain).out.event_id;
    assert_true(str_eq(first, resend_ok(arena, &letter, &later).out.event_id));
    DeadLetter *other = letter_new(arena, "ntf.rendered.normal.demo", STR("\xff"));
    other->stream_sequence = 18;
    Letter second = read_letter(arena, other);
    assert_false(str_eq(first, resend_ok(arena, &second, &plain).out.event_id));
}

static void the_attempts_are_carried_over_without_repeats_and_at_most_twenty(void **state)
{
    Arena *arena = *state;
    static const struct {
        uint32_t mail_first, mail_count, letter_first, letter_count, first, count;
    } rows[] = {
        {0, 0, 1, 6, 1, 6},    // only the letter knows
        {1, 5, 1, 6, 1, 6},    // the letter has all
        {1, 5, 6, 1, 1, 6},    // the letter has the last
        {1, 6, 0, 0, 1, 6},    // a letter from before letters had them
        {1, 20, 1, 25, 6, 20}, // the last twenty
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Rendered *event = rendered_new(arena);
        event->attempts = attempts_new(arena, rows[i].mail_first, rows[i].mail_count);
        event->n_attempts = rows[i].mail_count;
        DeadLetter *body =
            letter_new(arena, "ntf.rendered.normal.demo", packed(arena, &event->base));
        body->attempts = attempts_new(arena, rows[i].letter_first, rows[i].letter_count);
        body->n_attempts = rows[i].letter_count;
        Letter letter = read_letter(arena, body);
        Resend resend = resend_ok(arena, &letter, &plain);
        const Rendered *mail = mail_of(arena, &resend);
        assert_int_equal(mail->n_attempts, rows[i].count);
        for (uint32_t n = 0; n < rows[i].count; n++) {
            assert_int_equal(mail->attempts[n]->number, rows[i].first + n);
        }
        uint32_t last = rows[i].letter_count > 6 ? 25 : 6;
        assert_int_equal(mail->attempt, last + 1);
    }
}

static void what_may_double_needs_the_word(void **state)
{
    Arena *arena = *state;
    DeadLetter *body =
        letter_new(arena, "ntf.rendered.normal.demo", packed(arena, &rendered_new(arena)->base));
    body->reason = text_of("unknown_outcome: a process ended");
    refuses(arena, read_letter(arena, body), "--may-double");
    Letter letter = read_letter(arena, body);
    ResendRules rules = {.now_us = NOW_US, .may_double = true};
    assert_int_equal(resend_ok(arena, &letter, &rules).attempt, 7);
}

static void an_expired_mail_needs_the_word_and_loses_its_expiry(void **state)
{
    Arena *arena = *state;
    Rendered *event = rendered_new(arena);
    event->expires_at_us = NOW_US;
    Letter letter = mail_letter(arena, event);
    refuses(arena, letter, "--ignore-expiry");
    refuses(arena, letter, "2025-11-20T");
    ResendRules rules = {.now_us = NOW_US, .ignore_expiry = true};
    Resend resend = resend_ok(arena, &letter, &rules);
    assert_int_equal(mail_of(arena, &resend)->expires_at_us, 0);
}

static void attempts_and_resends_have_their_limits(void **state)
{
    Arena *arena = *state;
    Rendered *event = rendered_new(arena);
    event->attempt = 999;
    event->resends = 298;
    Letter last = mail_letter(arena, event);
    assert_int_equal(resend_ok(arena, &last, &plain).attempt, 1000);
    event->attempt = 1000;
    refuses(arena, mail_letter(arena, event), "1000 attempts");
    event->attempt = UINT32_MAX;
    refuses(arena, mail_letter(arena, event), "1000 attempts");
    event->attempt = 6;
    event->resends = 299;
    refuses(arena, mail_letter(arena, event), "299 times");
}

// ---- other events ----

static void other_events_go_as_they_were(void **state)
{
    Arena *arena = *state;
    static const char *const subjects[] = {"ntf.request.low.demo",    "ntf.rendered.normal.demo",
                                           "ntf.deferred.retry.demo", "ntf.inbound.sendgrid",
                                           "ntf.settle.demo",         "evt.demo.notify"};
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        DeadLetter *body = letter_new(arena, subjects[i], STR("\xff\xff"));
        body->meta->causation_id = text_of("");
        Letter letter = read_letter(arena, body);
        Resend resend = resend_ok(arena, &letter, &plain);
        assert_int_equal(resend.attempt, 0);
        assert_false(resend.own_id);
        assert_string_equal(resend.out.subject, subjects[i]);
        assert_true(str_eq(resend.out.payload, STR("\xff\xff")));
        assert_int_equal(resend.out.event_id.len, EVENT_ID_LEN);
    }
}

static void a_command_keeps_the_id_that_its_service_gave_it(void **state)
{
    Arena *arena = *state;
    DeadLetter *body = letter_new(arena, "evt.demo.notify", STR("\xff"));
    body->meta->causation_id = text_of("order-17");
    Letter letter = read_letter(arena, body);
    Resend resend = resend_ok(arena, &letter, &plain);
    assert_true(resend.own_id);
    assert_true(str_eq(resend.out.event_id, STR("order-17")));
}

static void what_no_stage_reads_is_refused(void **state)
{
    Arena *arena = *state;
    static const char *const rows[][3] = {
        {"archiver", "ntf.request.low.demo", "stentor rebuild history"},
        {"ingest", "ntf.status.demo.email.sent", "stentor rebuild history"},
        {"webhook", "ntf.hook.demo", "its tenant replays it"},
        {"webhook", "ntf.status.demo.email.sent", "its tenant replays it"},
        {"renderer", "cfg.template.demo.welcome", "no stage reads"},
        {"renderer", "ntf.dead.renderer.demo", "no stage reads"},
        {"renderer", "", "no stage reads"},
        {"renderer", "ntf.request.*", "no stage reads"},
        {"renderer", "ntf.request.low.>", "no stage reads"},
        {"renderer", "ntf.request.low demo", "no stage reads"},
        {"renderer", "ntf.request.low\r\nPUB x", "no stage reads"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        DeadLetter *body = letter_new(arena, rows[i][1], STR("\xff"));
        body->stage = text_of(rows[i][0]);
        refuses(arena, read_letter(arena, body), rows[i][2]);
    }
}

static Letter poison_letter(Arena *arena, const char *subject, Str payload, const char *ntf)
{
    DeadLetter *body = letter_new(arena, subject, payload);
    body->reason = text_of("poison message: 5 processes in a row died or hung");
    body->meta->notification_id = text_of(ntf);
    return read_letter(arena, body);
}

static const ProtobufCMessage *resent(
    Arena *arena, const Letter *letter, const ProtobufCMessageDescriptor *type)
{
    return event_unpack(type, resend_ok(arena, letter, &plain).out.payload, arena, NULL);
}

static void finding_13_work_whose_end_was_reported_goes_on_in_a_resend_generation(void **state)
{
    Arena *arena = *state;
    Stentor__V1__NotificationRequest request;
    Stentor__V1__Deferred deferred;
    stentor__v1__notification_request__init(&request);
    request.meta = meta_new(arena, "request");
    request.resends = 4;
    Str bytes = packed(arena, &request.base);
    Letter letter = poison_letter(arena, "ntf.request.low.demo", bytes, NTF_ID);
    assert_true(letter_end_reported(&letter));
    const Stentor__V1__NotificationRequest *again =
        (const void *)resent(arena, &letter, &stentor__v1__notification_request__descriptor);
    assert_int_equal(again->resends, 5);
    assert_string_equal(again->meta->notification_id, NTF_ID);
    Letter unreported = poison_letter(arena, "ntf.request.low.demo", bytes, "unknown");
    assert_false(letter_end_reported(&unreported));
    assert_true(str_eq(resend_ok(arena, &unreported, &plain).out.payload, bytes));

    stentor__v1__deferred__init(&deferred);
    deferred.meta = meta_new(arena, "deferred");
    deferred.work_case = STENTOR__V1__DEFERRED__WORK_REQUEST;
    deferred.request = &request;
    letter =
        poison_letter(arena, "ntf.deferred.schedule.demo", packed(arena, &deferred.base), NTF_ID);
    const Stentor__V1__Deferred *later =
        (const void *)resent(arena, &letter, &stentor__v1__deferred__descriptor);
    assert_int_equal(later->request->resends, 5);
    deferred.work_case = STENTOR__V1__DEFERRED__WORK_RENDERED;
    deferred.rendered = rendered_new(arena);
    letter = poison_letter(arena, "ntf.deferred.retry.demo", packed(arena, &deferred.base), NTF_ID);
    later = (const void *)resent(arena, &letter, &stentor__v1__deferred__descriptor);
    assert_int_equal(later->rendered->resends, 1);
    assert_int_equal(later->rendered->attempt, 6); // the waiting one itself
}

static void an_expired_request_is_refused(void **state)
{
    Arena *arena = *state;
    Stentor__V1__NotificationRequest request;
    stentor__v1__notification_request__init(&request);
    request.meta = meta_new(arena, "request");
    request.expires_at_us = NOW_US - 1;
    DeadLetter *body = letter_new(arena, "ntf.request.low.demo", packed(arena, &request.base));
    body->reason = text_of("the store was away"); // it has no end yet
    refuses(arena, read_letter(arena, body), "send a new notification");
}

static Letter unrendered_letter(
    Arena *arena, Stentor__V1__NotificationRequest *request, const char *code)
{
    stentor__v1__notification_request__init(request);
    request->meta = meta_new(arena, "request");
    request->channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    request->category = STENTOR__V1__CATEGORY__CATEGORY_TRANSACTIONAL;
    request->template_version = text_of("1.0.0");
    request->expires_at_us = NOW_US - 1;
    request->address_hash = pb_data(STR("0123456789abcdef0123456789abcdef"));
    DeadLetter *body = letter_new(arena, "ntf.request.low.demo", packed(arena, &request->base));
    body->stage = text_of("renderer");
    body->reason = text_of("missing_variable: 'total'");
    body->reason_code = text_of(code);
    return read_letter(arena, body);
}

static void a_request_that_failed_to_render_takes_the_version_of_then(void **state)
{
    Arena *arena = *state;
    Stentor__V1__NotificationRequest request;
    Letter letter = unrendered_letter(arena, &request, "missing_variable");
    assert_true(letter_end_reported(&letter));
    refuses(arena, letter, "--ignore-expiry");
    const ResendRules rules = {.now_us = NOW_US, .ignore_expiry = true};
    const Stentor__V1__NotificationRequest *again = (const void *)event_unpack(
        &stentor__v1__notification_request__descriptor,
        resend_ok(arena, &letter, &rules).out.payload, arena, NULL);
    assert_string_equal(again->template_version, "");
    assert_int_equal(again->resends, 1);
    assert_int_equal(again->expires_at_us, 0);

    letter = unrendered_letter(arena, &request, "poison_message"); // its version is not at fault
    again = (const void *)event_unpack(
        &stentor__v1__notification_request__descriptor,
        resend_ok(arena, &letter, &rules).out.payload, arena, NULL);
    assert_string_equal(again->template_version, "1.0.0");
}

static void refuses_suppressed(Arena *arena, const Letter *letter, const ResendRules *rules)
{
    Resend resend;
    Error err = {0};
    assert_false(letter_resend(letter, rules, arena, &resend, &err));
    assert_non_null(strstr(err.text, "its address is suppressed (hard_bounce)"));
}

static void what_would_be_suppressed_is_refused_until_its_release(void **state)
{
    Arena *arena = *state;
    Rendered *mail = rendered_new(arena);
    mail->category = STENTOR__V1__CATEGORY__CATEGORY_TRANSACTIONAL;
    mail->address_hash = pb_data(STR("0123456789abcdef0123456789abcdef"));
    Stentor__V1__NotificationRequest request;
    Letter letters[] = {
        mail_letter(arena, mail), unrendered_letter(arena, &request, "missing_variable")};
    Suppressions *known = suppressions_new();
    const ResendRules rules = {.now_us = NOW_US, .ignore_expiry = true, .suppressions = known};
    for (size_t i = 0; i < 2; i++) {
        (void)resend_ok(arena, &letters[i], &rules);
    }
    suppressions_put(
        known, STR("demo"), CHANNEL_EMAIL, CATEGORY_NONE, mail->address_hash.data,
        SUPPRESSION_HARD_BOUNCE, 0);
    for (size_t i = 0; i < 2; i++) {
        refuses_suppressed(arena, &letters[i], &rules);
    }
    mail->address_hash = pb_data(STR("short"));
    Letter other = mail_letter(arena, mail);
    (void)resend_ok(arena, &other, &rules);
    suppressions_free(known);
}

static void an_event_that_may_have_lost_its_end_is_refused(void **state)
{
    Arena *arena = *state;
    size_t len = EVENT_BYTES_MAX - 64 * 1024;
    char *bytes = arena_zalloc(arena, len + 1);
    Letter whole = read_letter(arena, letter_new(arena, "evt.demo.notify", str_of(bytes, len)));
    assert_int_equal(resend_ok(arena, &whole, &plain).out.payload.len, len);
    refuses(
        arena, read_letter(arena, letter_new(arena, "evt.demo.notify", str_of(bytes, len + 1))),
        "lack the end");
}

static void bytes_that_are_no_letter_are_reported(void **state)
{
    Arena *arena = *state;
    static const Str payloads[] = {{"\xff\xff", 2}, {"", 0}};
    for (size_t i = 0; i < 2; i++) {
        BusMessage message = {.subject = STR("ntf.dead.renderer.demo"), .payload = payloads[i]};
        Letter letter;
        letter_read(&message, arena, &letter);
        assert_null(letter.body);
        assert_true(str_eq(letter.stage, STR("renderer")));
        assert_true(str_eq(letter.tenant, STR("demo")));
        refuses(arena, letter, "not a dead letter");
    }
}

// ---- JetStream's answers ----

static void an_answer_to_a_delete_is_done_or_says_why_not(void **state)
{
    (void)state;
    Error err = {0};
    assert_true(letter_deleted(STR("{\"success\":true}"), &err));
    assert_false(letter_deleted(
        STR("{\"error\":{\"code\":400,\"description\":\"no message found\"}}"), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_string_equal(err.text, "no message found");
    assert_false(letter_deleted(STR("no JSON"), &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    // As nats-server 2.9 and 2.10 say it.
    static const char *const gone[] = {
        "{\"error\":{\"code\":400,\"err_code\":10043,\"description\":\"sequence 7 not found\"}}",
        "{\"error\":{\"code\":500,\"err_code\":10057,\"description\":\"no message found\"}}",
        "{\"error\":{\"code\":500,\"err_code\":10057,\"description\":\"stream store EOF\"}}",
        "{\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no message found\"}}",
    };
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        assert_false(letter_deleted(str_from(gone[i]), &err));
        assert_int_equal(err.kind, ERROR_CONFLICT);
    }
    assert_false(letter_deleted(
        STR("{\"error\":{\"code\":500,\"err_code\":10057,\"description\":\"disk is full\"}}"),
        &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
}

static void only_what_brings_a_notification_on_is_work(void **state)
{
    Arena *arena = *state;
    static const struct {
        const char *subject, *stage;
        bool work;
    } rows[] = {
        {"ntf.request.low.demo", "renderer", true},
        {"ntf.rendered.normal.demo", "dispatcher", true},
        {"ntf.deferred.retry.demo", "digest-flusher", true},
        {"ntf.request.low.demo", "archiver", false},
        {"ntf.status.demo.email.sent", "archiver", false},
        {"ntf.inbound.sendgrid", "webhook-receiver", false},
        {"ntf.settle.demo", "dispatcher", false},
        {"evt.demo.notify", "ingest", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        DeadLetter *body = letter_new(arena, rows[i].subject, STR("\xff"));
        body->stage = text_of(rows[i].stage);
        Letter letter = read_letter(arena, body);
        assert_int_equal(letter_holds_work(&letter), rows[i].work);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_mail_gets_a_next_attempt_with_a_fresh_ladder),
        TEST(the_same_letter_gives_the_same_id_whenever_it_is_sent_again),
        TEST(the_attempts_are_carried_over_without_repeats_and_at_most_twenty),
        TEST(what_may_double_needs_the_word),
        TEST(an_expired_mail_needs_the_word_and_loses_its_expiry),
        TEST(attempts_and_resends_have_their_limits),
        TEST(other_events_go_as_they_were),
        TEST(a_command_keeps_the_id_that_its_service_gave_it),
        TEST(what_no_stage_reads_is_refused),
        TEST(finding_13_work_whose_end_was_reported_goes_on_in_a_resend_generation),
        TEST(an_expired_request_is_refused),
        TEST(a_request_that_failed_to_render_takes_the_version_of_then),
        TEST(what_would_be_suppressed_is_refused_until_its_release),
        TEST(an_event_that_may_have_lost_its_end_is_refused),
        TEST(bytes_that_are_no_letter_are_reported),
        TEST(an_answer_to_a_delete_is_done_or_says_why_not),
        TEST(only_what_brings_a_notification_on_is_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
