// SPDX-License-Identifier: Apache-2.0
// What of a message's headers a segment carries, and what comes back.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/arena.h"
#include "common/codec/event.h"
#include "common/segment/segment_headers.h"
#include "stentor/v1/status.pb-c.h"

enum { PAIRS = 8 };

static const SegmentPair status_pairs[PAIRS] = {
    {{"Nats-Msg-Id", 11}, {"abcdefghijklmnopqrstuv", 22}},
    {{"ce-specversion", 14}, {"1.0", 3}},
    {{"ce-id", 5}, {"abcdefghijklmnopqrstuv", 22}},
    {{"ce-source", 9}, {"/stentor/acme", 13}},
    {{"ce-type", 7}, {"stentor.notification.sent.v1", 28}},
    {{"ce-time", 7}, {"2026-11-20T18:25:36.123456Z", 27}},
    {{"ce-subject", 10}, {"ntf_01HZZZZZZZR000000000000000", 30}},
    {{"content-type", 12}, {"application/protobuf", 20}},
};

static Str make_status(Arena *arena)
{
    Stentor__V1__Meta meta = STENTOR__V1__META__INIT;
    Stentor__V1__NotificationStatus status = STENTOR__V1__NOTIFICATION_STATUS__INIT;
    meta.event_id = "abcdefghijklmnopqrstuv";
    meta.tenant = "acme";
    meta.notification_id = "ntf_01HZZZZZZZR000000000000000";
    meta.occurred_at_us = INT64_C(1795199136123456);
    status.meta = &meta;
    Str payload;
    Error err = {0};
    assert_true(event_pack(&status.base, arena, &payload, &err));
    return payload;
}

static SegmentRecord make_record(Arena *arena)
{
    return (SegmentRecord){
        .sequence = 1, .subject = STR("ntf.status.acme.email.sent"), .payload = make_status(arena)};
}

static void assert_same(const SegmentRecord *record, const SegmentPair *pairs, size_t count)
{
    SegmentHeaderSpace space;
    const SegmentPair *back;
    size_t back_count;
    assert_true(segment_headers_unpack(record, &space, &back, &back_count));
    assert_int_equal(back_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(str_eq(segment_headers_get(back, back_count, pairs[i].name), pairs[i].value));
    }
}

static void a_statuss_headers_follow_from_it(void **state)
{
    Arena *arena = *state;
    SegmentHeaderSpace space;
    Error err = {0};
    SegmentRecord record = make_record(arena);
    assert_true(segment_headers_pack(&record, status_pairs, PAIRS, &space, &err));
    assert_int_equal(record.header_form, SEGMENT_HEADERS_DERIVED);
    assert_int_equal(record.headers.len, 0);
    assert_same(&record, status_pairs, PAIRS);
}

static void what_does_not_follow_is_kept_with_it(void **state)
{
    Arena *arena = *state;
    SegmentHeaderSpace space;
    Error err = {0};
    SegmentPair more[PAIRS + 1];
    memcpy(more, status_pairs, sizeof status_pairs);
    more[PAIRS] = (SegmentPair){STR("traceparent"), STR("00-1-2-01")};
    SegmentRecord record = make_record(arena);
    assert_true(segment_headers_pack(&record, more, PAIRS + 1, &space, &err));
    assert_int_equal(record.header_form, SEGMENT_HEADERS_MORE);
    assert_int_equal(record.headers.len, 2 + 11 + 9);
    assert_same(&record, more, PAIRS + 1);
}

static void one_that_differs_is_kept_as_it_is(void **state)
{
    Arena *arena = *state;
    SegmentHeaderSpace space;
    Error err = {0};
    SegmentPair other[PAIRS];
    memcpy(other, status_pairs, sizeof status_pairs);
    other[5].value = STR("2026-11-20T18:25:36.123457Z");
    SegmentRecord record = make_record(arena);
    assert_true(segment_headers_pack(&record, other, PAIRS, &space, &err));
    assert_int_equal(record.header_form, SEGMENT_HEADERS_OWN);
    assert_same(&record, other, PAIRS);
    assert_true(segment_headers_pack(&record, NULL, 0, &space, &err));
    assert_int_equal(record.header_form, SEGMENT_HEADERS_OWN); // none at all is none
    assert_same(&record, NULL, 0);
    record.payload = STR("no event at all");
    assert_true(segment_headers_pack(&record, status_pairs, PAIRS, &space, &err));
    assert_int_equal(record.header_form, SEGMENT_HEADERS_OWN);
    assert_same(&record, status_pairs, PAIRS);
}

static void too_many_are_refused(void **state)
{
    Arena *arena = *state;
    SegmentHeaderSpace space;
    SegmentPair pairs[SEGMENT_PAIRS_MAX + 1];
    for (size_t i = 0; i <= SEGMENT_PAIRS_MAX; i++) {
        pairs[i] = (SegmentPair){STR("x"), STR("y")};
    }
    Error err = {0};
    SegmentRecord record = make_record(arena);
    assert_false(segment_headers_pack(&record, pairs, SEGMENT_PAIRS_MAX + 1, &space, &err));
    assert_string_equal(err.text, "message 1 has too many headers for a segment");
    record.header_form = SEGMENT_HEADERS_OWN;
    record.headers = STR("\5ab");
    const SegmentPair *back;
    size_t count;
    assert_false(segment_headers_unpack(&record, &space, &back, &count));
}

static void a_notifications_id_is_found(void **state)
{
    Arena *arena = *state;
    assert_true(str_eq(segment_notification_id(make_status(arena)), status_pairs[6].value));
    assert_int_equal(segment_notification_id(STR("no event")).len, 0);
    assert_int_equal(segment_notification_id(STR_EMPTY).len, 0);
}

static int make_arena(void **state)
{
    *state = arena_new(0);
    return 0;
}

static int free_arena(void **state)
{
    arena_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_statuss_headers_follow_from_it),
        cmocka_unit_test(what_does_not_follow_is_kept_with_it),
        cmocka_unit_test(one_that_differs_is_kept_as_it_is),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(a_notifications_id_is_found),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
