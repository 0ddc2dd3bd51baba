// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/audit/audit_events.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/feed.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"
#include "tests/unit/common/history/history_events.h"

typedef struct Fixture {
    Arena *arena;
    AuditTable *table;
    AuditMarks marks;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new(0);
    f->table = audit_table_new();
    f->marks = (AuditMarks){.floor = 10, .position = 10, .now_us = AT(100)};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    audit_table_free(f->table);
    arena_free(f->arena);
    free(f);
    return 0;
}

static const AuditEntry *entry(Fixture *f)
{
    return audit_find(f->table, STR(NTF_ID), STR("demo"));
}

static Str pack(Fixture *f, const ProtobufCMessage *message)
{
    Str bytes;
    assert_true(event_pack(message, f->arena, &bytes, NULL));
    return bytes;
}

static void see_bytes(Fixture *f, const char *stream, Str payload, uint64_t sequence)
{
    BusMessage message = {
        .stream = stream, .payload = payload, .sequence = sequence, .stored_at_us = AT(5)};
    Arena *scratch = arena_new(0);
    audit_event(f->table, &message, &f->marks, scratch);
    arena_free(scratch);
}

static void see(Fixture *f, const char *stream, const ProtobufCMessage *message, uint64_t sequence)
{
    see_bytes(f, stream, pack(f, message), sequence);
}

static void see_status(Fixture *f, Stentor__V1__Status status, uint32_t attempt, uint32_t resends)
{
    StatusEvent *event = status_new(f->arena, NTF_ID, status, AT(4));
    event->resends = resends;
    if (attempt > 0) {
        event->attempt =
            attempt_new(f->arena, event, attempt, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
    }
    see(f, "STATUS", &event->base, 1);
}

static Stentor__V1__Rendered *rendered_new(Fixture *f, uint32_t attempt)
{
    Stentor__V1__Rendered *event = arena_alloc(f->arena, sizeof *event);
    stentor__v1__rendered__init(event);
    event->meta = event_meta(f->arena, NTF_ID, AT(0));
    event->attempt = attempt;
    return event;
}

static void a_request_waits_beyond_the_floor_and_beyond_historys_position(void **state)
{
    Fixture *f = *state;
    see(f, "REQUEST_HIGH", &request_new(f->arena, NTF_ID)->base, 10);
    assert_int_equal(entry(f)->seen, SEEN_REQUEST);
    assert_int_equal(entry(f)->moved_us, AT(5));
    see(f, "REQUEST_HIGH", &request_new(f->arena, NTF_ID)->base, 11);
    assert_int_equal(entry(f)->seen, SEEN_REQUEST | SEEN_REQUEST_WAITING | SEEN_HISTORY_WAITING);
}

static void a_rendered_mail_tells_its_attempt_and_its_life(void **state)
{
    Fixture *f = *state;
    Stentor__V1__Rendered *event = rendered_new(f, 3);
    event->resends = 2;
    see(f, "RENDERED_LOW", &event->base, 10);
    assert_int_equal(entry(f)->rendered, 1 << 3);
    assert_int_equal(entry(f)->resends, 2);
    assert_int_equal(entry(f)->seen, 0);
    see(f, "RENDERED_LOW", &event->base, 11);
    assert_int_equal(entry(f)->seen, SEEN_RENDERED_WAITING);
    event->channel = STENTOR__V1__CHANNEL__CHANNEL_VOICE;
    see(f, "RENDERED_LOW", &event->base, 10);
    assert_int_equal(entry(f)->seen, SEEN_RENDERED_WAITING | SEEN_CALL);
}

static void a_deferral_moves_when_it_is_due_and_not_before(void **state)
{
    Fixture *f = *state;
    Stentor__V1__Deferred event;
    stentor__v1__deferred__init(&event);
    event.meta = event_meta(f->arena, NTF_ID, AT(0));
    event.work_case = STENTOR__V1__DEFERRED__WORK_REQUEST;
    event.request = request_new(f->arena, NTF_ID);
    event.due_at_us = AT(101);
    see(f, "DEFERRED", &event.base, 1);
    assert_int_equal(entry(f)->deferred, 1);
    assert_int_equal(entry(f)->moved_us, AT(5));
    event.work_case = STENTOR__V1__DEFERRED__WORK_RENDERED;
    event.rendered = rendered_new(f, 2);
    event.due_at_us = AT(99);
    see(f, "DEFERRED", &event.base, 1);
    assert_int_equal(entry(f)->deferred, 1 | 1 << 2);
    assert_int_equal(entry(f)->moved_us, AT(99));
}

static void a_failure_is_early_or_late_by_whether_it_was_rendered(void **state)
{
    Fixture *f = *state;
    StatusEvent *event = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_FAILED, AT(4));
    see(f, "STATUS", &event->base, 1);
    assert_int_equal(entry(f)->seen, SEEN_S_ENDED | SEEN_S_FAILED_EARLY);
    event->rendered_at_us = AT(3);
    see(f, "STATUS", &event->base, 1);
    assert_int_equal(entry(f)->seen, SEEN_S_ENDED | SEEN_S_FAILED_EARLY | SEEN_S_FAILED_LATE);
}

static void a_callbacks_failure_is_an_end_and_says_nothing_of_how_far_it_came(void **state)
{
    Fixture *f = *state;
    StatusEvent *event = status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_FAILED, AT(4));
    event->attempt = attempt_new(f->arena, event, 0, STENTOR__V1__OUTCOME__OUTCOME_FAILED);
    see(f, "STATUS", &event->base, 1);
    assert_int_equal(entry(f)->seen, SEEN_S_ENDED);
    assert_int_equal(entry(f)->reported, 0);
}

static void only_two_attempts_of_one_life_are_sent_twice(void **state)
{
    Fixture *f = *state;
    see_status(f, STENTOR__V1__STATUS__STATUS_SENT, 1, 0);
    see_status(f, STENTOR__V1__STATUS__STATUS_SENT, 1, 0); // a repeat
    see_status(f, STENTOR__V1__STATUS__STATUS_SENT, 2, 1); // an operator had it sent again
    see_status(f, STENTOR__V1__STATUS__STATUS_SENDING, 3, 1);
    see_status(f, STENTOR__V1__STATUS__STATUS_DELIVERED, 0, 1); // a callback
    assert_false(entry(f)->seen & SEEN_S_TWICE);
    assert_int_equal(entry(f)->reported, 1 << 1 | 1 << 2 | 1 << 3);
    assert_int_equal(entry(f)->resends, 1);
    see_status(f, STENTOR__V1__STATUS__STATUS_SENT, 3, 1);
    assert_true(entry(f)->seen & SEEN_S_TWICE);
}

static void an_item_is_seen_and_what_was_done_with_it_is_not(void **state)
{
    Fixture *f = *state;
    Stentor__V1__FeedItem item;
    Stentor__V1__FeedState read;
    Stentor__V1__FeedEvent event;
    stentor__v1__feed_item__init(&item);
    stentor__v1__feed_state__init(&read);
    stentor__v1__feed_event__init(&event);
    event.meta = event_meta(f->arena, NTF_ID, AT(0));
    event.part_case = STENTOR__V1__FEED_EVENT__PART_STATE;
    event.state = &read;
    see(f, "FEED", &event.base, 1);
    assert_null(entry(f));
    event.part_case = STENTOR__V1__FEED_EVENT__PART_ITEM;
    event.item = &item;
    see(f, "FEED", &event.base, 2);
    assert_int_equal(entry(f)->seen, SEEN_ITEM);
    assert_int_equal(entry(f)->moved_us, AT(5));
}

static Stentor__V1__DeadLetter *letter_new(
    Fixture *f, const char *stage, const char *stream, const char *reason,
    const ProtobufCMessage *inside)
{
    Stentor__V1__DeadLetter *letter = arena_alloc(f->arena, sizeof *letter);
    stentor__v1__dead_letter__init(letter);
    letter->meta = event_meta(f->arena, "unknown", AT(0));
    letter->stage = arena_cstr(f->arena, str_from(stage));
    letter->stream = arena_cstr(f->arena, str_from(stream));
    letter->reason = arena_cstr(f->arena, str_from(reason));
    letter->payload = pb_data(pack(f, inside));
    return letter;
}

static void a_dead_letter_speaks_of_the_event_in_it(void **state)
{
    Fixture *f = *state;
    Stentor__V1__DeadLetter *letter =
        letter_new(f, "renderer", "REQUEST_HIGH", "altered", &request_new(f->arena, NTF_ID)->base);
    see(f, "DEAD", &letter->base, 1);
    assert_null(entry(f)); // it makes no entry
    see(f, "REQUEST_HIGH", &request_new(f->arena, NTF_ID)->base, 1);
    see(f, "DEAD", &letter->base, 1);
    assert_true(entry(f)->seen & SEEN_DEAD_EARLY);
    ProtobufCMessage *mail = &rendered_new(f, 1)->base;
    see(f, "DEAD", &letter_new(f, "dispatcher", "RENDERED_LOW", "unknown_outcome: x", mail)->base,
        1);
    assert_true(entry(f)->seen & SEEN_DEAD_UNKNOWN);
    assert_false(entry(f)->seen & SEEN_DEAD_RENDERED);
    see(f, "DEAD", &letter_new(f, "dispatcher", "RENDERED_LOW", "'attempt' is 0", mail)->base, 1);
    assert_true(entry(f)->seen & SEEN_DEAD_RENDERED);
    ProtobufCMessage *status =
        &status_new(f->arena, NTF_ID, STENTOR__V1__STATUS__STATUS_SENT, AT(4))->base;
    see(f, "DEAD", &letter_new(f, "archiver", "STATUS", "too long", status)->base, 1);
    assert_true(entry(f)->seen & SEEN_DEAD_HISTORY);
}

static void what_cannot_be_read_is_passed_over(void **state)
{
    Fixture *f = *state;
    static const char *const streams[] = {"REQUEST_LOW", "RENDERED_LOW", "DEFERRED", "STATUS",
                                          "DEAD",        "FEED",         "INBOUND"};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        see_bytes(f, streams[i], STR("\xff\xff\xff"), 1);
        see_bytes(f, streams[i], STR_EMPTY, 1);
    }
    assert_int_equal(audit_table_count(f->table), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_request_waits_beyond_the_floor_and_beyond_historys_position, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_rendered_mail_tells_its_attempt_and_its_life, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_deferral_moves_when_it_is_due_and_not_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_failure_is_early_or_late_by_whether_it_was_rendered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_callbacks_failure_is_an_end_and_says_nothing_of_how_far_it_came, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            only_two_attempts_of_one_life_are_sent_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_item_is_seen_and_what_was_done_with_it_is_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dead_letter_speaks_of_the_event_in_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_passed_over, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
