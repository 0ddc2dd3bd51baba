// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/replay/replay_plan.h"
#include "stentor/v1/deferred.pb-c.h"

#define HOUR_US (INT64_C(3600) * 1000000)
static const int64_t NOW = INT64_C(1800000000) * 1000000;

static Arena *arena;

static int open_all(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static ReplayPlan good(const char *stream, const char *service)
{
    return (ReplayPlan){
        .stream = topology_stream(stream),
        .service = service,
        .run = "r",
        .from_sequence = 1,
        .tenant = "acme",
    };
}

static void the_filter_of_a_tenant_names_it(void **state)
{
    (void)state;
    size_t count;
    size_t by_tenant = 0;
    const StreamSpec *streams = topology_streams(&count);
    for (size_t i = 0; i < count; i++) {
        ReplayPlan plan = {.stream = &streams[i], .tenant = "acme"};
        if (replay_says_tenant(&streams[i])) {
            assert_non_null(strstr(replay_filter(&plan, arena), ".acme"));
            by_tenant++;
        }
    }
    assert_true(by_tenant >= 15);
    ReplayPlan all = {.stream = topology_stream("STATUS")};
    assert_null(replay_filter(&all, arena));
}

static BusMessage message_of(const char *subject, const char *id, int64_t stored_at_us)
{
    return (BusMessage){
        .subject = str_from(subject),
        .event_id = str_from(id),
        .payload = STR("x"),
        .sequence = 7,
        .stored_at_us = stored_at_us,
    };
}

static void copies_have_ids_of_their_run_and_place(void **state)
{
    (void)state;
    char one[REPLAY_ID_SIZE], two[REPLAY_ID_SIZE];
    ReplayPlan plan = good("RENDERED_LOW", "dispatcher");
    BusMessage message = message_of("ntf.rendered.low.acme", "original", NOW);
    Str first = replay_event_id(&plan, &message, one);
    assert_int_equal(first.len, EVENT_ID_LEN);
    assert_true(str_eq(first, replay_event_id(&plan, &message, two)));
    message.sequence = 8;
    assert_false(str_eq(first, replay_event_id(&plan, &message, two)));
    message.sequence = 7;
    plan.run = "another";
    assert_false(str_eq(first, replay_event_id(&plan, &message, two)));
    plan.service = NULL;
    assert_true(str_eq(replay_event_id(&plan, &message, two), STR("original")));
}

static void events_keep_the_identity_that_ingest_knows_them_by(void **state)
{
    (void)state;
    char space[REPLAY_ID_SIZE];
    ReplayPlan plan = good("EVENTS", "ingest");
    BusMessage message = message_of("evt.acme.notify", "order-17", NOW);
    assert_true(str_eq(replay_event_id(&plan, &message, space), STR("order-17")));
    message.event_id = STR_EMPTY;
    assert_true(str_eq(replay_event_id(&plan, &message, space), STR("EVENTS/7")));
}

static void what_ingest_has_forgotten_is_left_out(void **state)
{
    (void)state;
    ReplayPlan plan = good("EVENTS", "ingest");
    BusMessage young = message_of("evt.acme.notify", "a", NOW - 22 * HOUR_US);
    BusMessage old = message_of("evt.acme.notify", "a", NOW - 24 * HOUR_US);
    assert_int_equal(replay_classify(&plan, &young, NOW, arena), REPLAY_TAKE);
    assert_int_equal(replay_classify(&plan, &old, NOW, arena), REPLAY_OLD);
    plan.accept_again = true;
    assert_int_equal(replay_classify(&plan, &old, NOW, arena), REPLAY_TAKE);
    old.replayed = true;
    assert_int_equal(replay_classify(&plan, &old, NOW, arena), REPLAY_COPY);
}

static void copies_are_left_out_unless_they_stand_for_their_subject(void **state)
{
    (void)state;
    ReplayPlan plan = good("RENDERED_LOW", "dispatcher");
    BusMessage copy = message_of("ntf.rendered.low.acme", "a", NOW);
    copy.replayed = true;
    assert_int_equal(replay_classify(&plan, &copy, NOW, arena), REPLAY_COPY);
    plan.last_per_subject = true;
    assert_int_equal(replay_classify(&plan, &copy, NOW, arena), REPLAY_COPY);
    plan.service = NULL;
    assert_int_equal(replay_classify(&plan, &copy, NOW, arena), REPLAY_TAKE);
}

static void other_tenants_are_left_out(void **state)
{
    (void)state;
    ReplayPlan plan = good("DEFERRED", "digest-flusher");
    BusMessage message = message_of("ntf.deferred.acme.other", "a", NOW);
    assert_int_equal(replay_classify(&plan, &message, NOW, arena), REPLAY_OTHER_TENANT);
    plan.tenant = NULL;
    assert_int_equal(replay_classify(&plan, &message, NOW, arena), REPLAY_TAKE);
}

static void scheduled_work_that_has_expired_is_left_out(void **state)
{
    (void)state;
    ReplayPlan plan = good("DEFERRED", "digest-flusher");
    BusMessage message = message_of("ntf.deferred.schedule.acme", "a", NOW);
    Stentor__V1__NotificationRequest request;
    stentor__v1__notification_request__init(&request);
    Stentor__V1__Deferred deferred;
    stentor__v1__deferred__init(&deferred);
    deferred.work_case = STENTOR__V1__DEFERRED__WORK_REQUEST;
    deferred.request = &request;
    const struct {
        int64_t expires_us;
        ReplayVerdict verdict;
    } cases[] = {{0, REPLAY_TAKE}, {NOW + 1, REPLAY_TAKE}, {NOW, REPLAY_EXPIRED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error err;
        request.expires_at_us = cases[i].expires_us;
        assert_true(event_pack(&deferred.base, arena, &message.payload, &err));
        assert_int_equal(replay_classify(&plan, &message, NOW, arena), cases[i].verdict);
    }
    message.payload = STR("\xff\xff");
    assert_int_equal(
        replay_classify(&plan, &message, NOW, arena), REPLAY_TAKE); // its worker judges
}

static void what_is_behind_the_end_is_past(void **state)
{
    (void)state;
    ReplayPlan plan = {.to_sequence = 7, .to_time_us = NOW};
    BusMessage message = message_of("x", "a", NOW);
    assert_false(replay_is_past(&plan, &message));
    message.stored_at_us = NOW + 1;
    assert_true(replay_is_past(&plan, &message));
    message.stored_at_us = NOW;
    message.sequence = 8;
    assert_true(replay_is_past(&plan, &message));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_filter_of_a_tenant_names_it),
        TEST(copies_have_ids_of_their_run_and_place),
        TEST(events_keep_the_identity_that_ingest_knows_them_by),
        TEST(what_ingest_has_forgotten_is_left_out),
        TEST(copies_are_left_out_unless_they_stand_for_their_subject),
        TEST(other_tenants_are_left_out),
        TEST(scheduled_work_that_has_expired_is_left_out),
        TEST(what_is_behind_the_end_is_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
