// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/base/id.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/outbox-relay/feedback/feedback.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define ID_A "ntf_01KAGTQ5M00000000000000000"

typedef struct Stage {
    Arena *arena;
    Feedback *feedback;
} Stage;

static int set_up(void **state)
{
    static Stage stage;
    stage = (Stage){.arena = arena_new(0), .feedback = feedback_new()};
    *state = &stage;
    return 0;
}

static int tear_down(void **state)
{
    Stage *stage = *state;
    feedback_free(stage->feedback);
    arena_free(stage->arena);
    return 0;
}

typedef struct Say {
    char *id;
    Status status;
    uint32_t attempt; // 0: none
    bool callback;    // with an attempt of number 0
    uint32_t resends;
    char *code;
    char *reason;
    int64_t at_us;
} Say;

static void say(const Stage *stage, const Say *said)
{
    Stentor__V1__NotificationStatus event;
    Stentor__V1__Meta meta;
    Stentor__V1__Attempt attempt;
    stentor__v1__notification_status__init(&event);
    stentor__v1__meta__init(&meta);
    stentor__v1__attempt__init(&attempt);
    meta.notification_id = said->id;
    meta.occurred_at_us = said->at_us != 0 ? said->at_us : 1000;
    attempt.number = said->attempt;
    event.meta = &meta;
    event.status = (Stentor__V1__Status)said->status;
    event.attempt = said->attempt > 0 || said->callback ? &attempt : NULL;
    event.resends = said->resends;
    event.reason_code = said->code != NULL ? said->code : event.reason_code;
    event.reason = said->reason != NULL ? said->reason : event.reason;
    BusMessage message = {.stream = "STATUS", .stored_at_us = 2000};
    assert_true(event_pack(&event.base, stage->arena, &message.payload, NULL));
    feedback_fold(stage->feedback, &message, stage->arena);
}

static const FeedbackEntry *only_word(const Stage *stage)
{
    size_t count = 0;
    const FeedbackEntry *words = feedback_entries(stage->feedback, &count);
    assert_int_equal(count, 1);
    return words;
}

static size_t word_count(const Stage *stage)
{
    size_t count = 0;
    (void)feedback_entries(stage->feedback, &count);
    return count;
}

static void assert_str(Str text, const char *expected)
{
    assert_true(str_eq(text, str_from(expected)));
}

// ---- what each status is to a row ----

static void each_status_is_one_moment_or_none(void **state)
{
    const Stage *stage = *state;
    const struct {
        Status status;
        uint32_t attempt;
        int moment; // -1: none
        int attempts;
    } rows[] = {
        {STATUS_QUEUED, 0, -1, 0},
        {STATUS_SCHEDULED, 0, -1, 0},
        {STATUS_RENDERING, 0, -1, 0},
        {STATUS_SENDING, 0, -1, 0},
        {STATUS_SENDING, 2, FEEDBACK_RETRYING, 2},
        {STATUS_SENT, 1, FEEDBACK_SENT, 0},
        {STATUS_SENT, 3, FEEDBACK_SENT, 2},
        {STATUS_DELIVERED, 0, FEEDBACK_SENT, 0},
        {STATUS_OPENED, 0, FEEDBACK_SENT, 0},
        {STATUS_CLICKED, 0, FEEDBACK_SENT, 0},
        {STATUS_COMPLAINED, 0, FEEDBACK_SENT, 0},
        {STATUS_SUPERSEDED, 0, FEEDBACK_SENT, 0},
        {STATUS_SUPPRESSED, 0, FEEDBACK_FAILED, 0},
        {STATUS_FAILED, 4, FEEDBACK_FAILED, 4},
        {STATUS_BOUNCED, 0, FEEDBACK_FAILED, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        feedback_clear(stage->feedback);
        say(stage, &(Say){.id = ID_A, .status = rows[i].status, .attempt = rows[i].attempt});
        if (rows[i].moment < 0) {
            assert_int_equal(word_count(stage), 0);
            continue;
        }
        const FeedbackEntry *word = only_word(stage);
        assert_int_equal(word->moment, rows[i].moment);
        assert_int_equal(word->attempts, rows[i].attempts);
        assert_true(word->rank > 0);
        assert_int_equal(word->at_us, 1000);
    }
}

static void a_reason_has_its_code_and_its_words(void **state)
{
    const Stage *stage = *state;
    say(stage, &(Say){.id = ID_A, .status = STATUS_FAILED, .code = "rejected", .reason = "550 no"});
    assert_str(only_word(stage)->reason, "rejected: 550 no");
    feedback_clear(stage->feedback);
    say(stage, &(Say){.id = ID_A, .status = STATUS_SUPPRESSED, .code = "opt_out"});
    assert_str(only_word(stage)->reason, "suppressed: opt_out");
    feedback_clear(stage->feedback);
    say(stage, &(Say){.id = ID_A, .status = STATUS_SENT, .attempt = 2, .reason = "250 ok"});
    assert_str(only_word(stage)->reason, "");
}

static void a_long_reason_is_cut_between_two_characters(void **state)
{
    const Stage *stage = *state;
    char text[3000];
    for (size_t i = 0; i + 2 < sizeof text; i += 2) {
        memcpy(text + i, "\xc3\xa4", 2); // two bytes each, and an odd limit
    }
    text[0] = text[1] = 'x';
    text[1] = 'y';
    text[sizeof text - 2] = '\0';
    say(stage, &(Say){.id = ID_A, .status = STATUS_FAILED, .reason = text});
    Str reason = only_word(stage)->reason;
    assert_true(reason.len > 900 && reason.len <= 1000);
    assert_true(str_is_utf8(reason));
}

// ---- order and repetition ----

static int32_t rank_of(const Stage *stage, Say said)
{
    feedback_clear(stage->feedback);
    said.id = ID_A;
    say(stage, &said);
    return only_word(stage)->rank;
}

static void later_news_of_a_mail_ranks_above_earlier(void **state)
{
    const Stage *stage = *state;
    const Say ascending[] = {
        {.status = STATUS_SENDING, .attempt = 1},
        {.status = STATUS_SENDING, .attempt = 2},
        {.status = STATUS_SENT, .attempt = 3},
        {.status = STATUS_FAILED, .attempt = 3},
        {.status = STATUS_SENDING, .attempt = 4, .resends = 1},
        {.status = STATUS_SENT, .attempt = 5, .resends = 1},
        {.status = STATUS_FAILED, .attempt = 5, .resends = 1},
        {.status = STATUS_SENT, .attempt = 6, .resends = 299},
        {.status = STATUS_DELIVERED},
        {.status = STATUS_BOUNCED},
    };
    int32_t last = 1; // of a command that ingest refused
    for (size_t i = 0; i < sizeof ascending / sizeof *ascending; i++) {
        int32_t rank = rank_of(stage, ascending[i]);
        assert_true(rank > last);
        last = rank;
    }
    const Say failed_there = {.status = STATUS_FAILED, .callback = true};
    assert_int_equal(rank_of(stage, failed_there), last);
}

static void the_highest_stays_in_whatever_order_they_come(void **state)
{
    const Stage *stage = *state;
    for (int turn = 0; turn < 2; turn++) {
        feedback_clear(stage->feedback);
        Say sent = {.id = ID_A, .status = STATUS_SENT, .attempt = 2, .at_us = 20};
        Say retry = {.id = ID_A, .status = STATUS_SENDING, .attempt = 1, .at_us = 10};
        say(stage, turn == 0 ? &sent : &retry);
        say(stage, turn == 0 ? &retry : &sent);
        say(stage, &sent);
        assert_int_equal(only_word(stage)->moment, FEEDBACK_SENT);
        assert_int_equal(only_word(stage)->at_us, 20);
    }
}

static void many_mails_are_kept_apart(void **state)
{
    const Stage *stage = *state;
    for (int i = 0; i < 3000; i++) {
        char id[64];
        snprintf(id, sizeof id, "ntf_01KAGTQ5M0%016d", i % 1000);
        say(stage,
            &(Say){.id = id, .status = i < 2000 ? STATUS_SENDING : STATUS_SENT, .attempt = 1});
    }
    size_t count = 0;
    const FeedbackEntry *words = feedback_entries(stage->feedback, &count);
    assert_int_equal(count, 1000);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(words[i].moment, FEEDBACK_SENT);
    }
    feedback_clear(stage->feedback);
    assert_int_equal(word_count(stage), 0);
}

// ---- what is no event of ours ----

static void what_cannot_be_read_is_passed_over(void **state)
{
    const Stage *stage = *state;
    BusMessage message = {.stream = "STATUS", .payload = STR("\xff\xff\xff")};
    feedback_fold(stage->feedback, &message, stage->arena);
    message.stream = "DEAD";
    feedback_fold(stage->feedback, &message, stage->arena);
    say(stage, &(Say){.id = "nothing", .status = STATUS_SENT});
    assert_int_equal(word_count(stage), 0);
}

static void an_impossible_time_is_when_it_was_stored(void **state)
{
    const Stage *stage = *state;
    say(stage, &(Say){.id = ID_A, .status = STATUS_SENT, .at_us = INT64_MAX});
    assert_int_equal(only_word(stage)->at_us, 2000);
}

// ---- commands that ingest refuses ----

static void bury(const Stage *stage, char *letter_stage, char *subject, int64_t produced_at_us)
{
    Stentor__V1__NotifyCommand command;
    Stentor__V1__DeadLetter letter;
    Stentor__V1__Meta meta;
    stentor__v1__notify_command__init(&command);
    stentor__v1__dead_letter__init(&letter);
    stentor__v1__meta__init(&meta);
    command.to = "no-at-sign";
    command.produced_at_us = produced_at_us;
    Str payload;
    assert_true(event_pack(&command.base, stage->arena, &payload, NULL));
    meta.tenant = "acme";
    meta.causation_id = "the-message-id";
    letter.meta = &meta;
    letter.stage = letter_stage;
    letter.stream = "EVENTS";
    letter.subject = subject;
    letter.reason = "field 'to': not an address";
    letter.payload = pb_data(payload);
    BusMessage message = {.stream = "DEAD", .stored_at_us = 3000};
    assert_true(event_pack(&letter.base, stage->arena, &message.payload, NULL));
    feedback_fold(stage->feedback, &message, stage->arena);
}

static void a_refused_command_failed_under_the_id_that_it_would_have_had(void **state)
{
    const Stage *stage = *state;
    bury(stage, "ingest", "evt.acme.notify", 1700000000000000);
    const FeedbackEntry *word = only_word(stage);
    char id[ID_SIZE];
    notify_id_derive(STR("acme"), STR("the-message-id"), 1700000000000000, '0', id);
    assert_str(word->notification_id, id);
    assert_int_equal(word->moment, FEEDBACK_FAILED);
    assert_int_equal(word->rank, 1); // whatever comes after all is newer
    assert_int_equal(word->at_us, 3000);
    assert_str(word->reason, "field 'to': not an address");
}

// Sealed for ingest, the command does not say its time: the letter does.
static void a_refused_command_that_is_sealed_is_found_by_what_its_letter_says(void **state)
{
    const Stage *stage = *state;
    Stentor__V1__DeadLetter letter;
    Stentor__V1__Meta meta;
    stentor__v1__dead_letter__init(&letter);
    stentor__v1__meta__init(&meta);
    meta.tenant = "acme";
    meta.causation_id = "acme/notify/the-message-id";
    letter.meta = &meta;
    letter.stage = "ingest";
    letter.stream = "EVENTS";
    letter.subject = "evt.acme.notify";
    letter.reason = "field 'to': not an address";
    letter.payload = pb_data(STR("\xff"
                                 "SE1..."));
    letter.produced_at_us = 1700000000000000;
    BusMessage message = {.stream = "DEAD", .stored_at_us = 3000};
    assert_true(event_pack(&letter.base, stage->arena, &message.payload, NULL));
    feedback_fold(stage->feedback, &message, stage->arena);
    char id[ID_SIZE];
    notify_id_derive(STR("acme"), STR("the-message-id"), 1700000000000000, '0', id);
    assert_str(only_word(stage)->notification_id, id);
}

// Ingest decides the class after the relay has noted the id.
static void a_status_finds_its_request_whatever_class_its_id_has(void **state)
{
    const Stage *stage = *state;
    static const char classes[] = "RSB0Z";
    for (size_t i = 0; i < sizeof classes - 1; i++) {
        char id[] = ID_A;
        id[14] = classes[i];
        feedback_clear(stage->feedback);
        say(stage, &(Say){.id = id, .status = STATUS_SENT, .attempt = 1});
        assert_str(only_word(stage)->notification_id, ID_A);
        assert_int_equal(id[14], classes[i]); // the event is as it was
    }
}

static void other_letters_say_nothing(void **state)
{
    const Stage *stage = *state;
    bury(stage, "renderer", "evt.acme.notify", 1700000000000000);
    bury(stage, "ingest", "evt.acme.OrderPlaced", 1700000000000000);
    bury(stage, "ingest", "evt.acme.notify", 0); // whose time was not known beforehand
    assert_int_equal(word_count(stage), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_status_is_one_moment_or_none),
        TEST(a_reason_has_its_code_and_its_words),
        TEST(a_long_reason_is_cut_between_two_characters),
        TEST(later_news_of_a_mail_ranks_above_earlier),
        TEST(the_highest_stays_in_whatever_order_they_come),
        TEST(many_mails_are_kept_apart),
        TEST(what_cannot_be_read_is_passed_over),
        TEST(an_impossible_time_is_when_it_was_stored),
        TEST(a_refused_command_failed_under_the_id_that_it_would_have_had),
        TEST(a_refused_command_that_is_sealed_is_found_by_what_its_letter_says),
        TEST(a_status_finds_its_request_whatever_class_its_id_has),
        TEST(other_letters_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
