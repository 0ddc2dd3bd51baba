// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/history/hold.h"
#include "tests/unit/common/history/history_events.h"

enum { BYTES_MAX = 1024 * 1024, SPAN_US = 250 * 1000 };

typedef struct Fixture {
    Arena *arena;
    Fold *fold;
    Hold *hold;
    uint64_t sequence;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof(*f));
    f->arena = arena_new(0);
    f->fold = fold_new();
    f->hold = hold_new(BYTES_MAX, SPAN_US);
    fold_hold_back(f->fold, f->hold, NULL);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    fold_free(f->fold);
    hold_free(f->hold);
    arena_free(f->arena);
    free(f);
    return 0;
}

static const char *id_of(Fixture *f, int number)
{
    return arena_printf(f->arena, "ntf_01KAGTQ5M0%016d", number);
}

static void fold_at(Fixture *f, BusMessage message, int64_t now_us)
{
    Error err = {0};
    message.sequence = ++f->sequence;
    fold_set_now(f->fold, now_us);
    if (!fold_event(f->fold, &message, f->arena, &err)) {
        fail_msg("%s", err.text);
    }
}

static void fold_request(Fixture *f, int number, int64_t now_us)
{
    fold_at(f, request_message(f->arena, request_new(f->arena, id_of(f, number))), now_us);
}

// After so many microseconds.
static void fold_sent(Fixture *f, int number, int64_t took_us)
{
    StatusEvent *sent =
        status_new(f->arena, id_of(f, number), STENTOR__V1__STATUS__STATUS_SENT, AT(3));
    attempt_new(f->arena, sent, 1, STENTOR__V1__OUTCOME__OUTCOME_ACCEPTED);
    BusMessage message = status_message(f->arena, sent);
    message.stored_at_us = AT(0) + took_us;
    fold_at(f, message, 0);
}

static size_t rows(const Fixture *f)
{
    size_t count = 0;
    fold_rows(f->fold, &count);
    return count;
}

static uint64_t before(const Fixture *f, const char *stream)
{
    HoldPlace place = {.sequence = UINT64_MAX};
    return hold_before(f->hold, stream, &place) ? place.sequence : UINT64_MAX;
}

static void a_request_is_held_until_its_end_comes(void **state)
{
    Fixture *f = *state;
    fold_request(f, 1, 0);
    assert_int_equal(rows(f), 0);
    assert_int_equal(hold_count(f->hold), 1);
    arena_reset(f->arena); // the flush in between: the row is a copy
    fold_sent(f, 1, 0);
    assert_int_equal(rows(f), 1);
    assert_int_equal(hold_count(f->hold), 0);
    size_t count = 0;
    const HistoryRow *row = fold_rows(f->fold, &count)[0];
    assert_int_equal(row->status, STATUS_SENT);
    assert_int_equal(row->at_us[FOLD_QUEUED], AT(0));
    assert_int_equal(row->at_us[FOLD_SENT], AT(3));
    assert_true(str_eq(row->text[FOLD_LOCALE], STR("en-US")));
    assert_true(str_eq(row->text[FOLD_CORRELATION], STR("corr-1")));
    assert_true(row->text[FOLD_ADDRESS].len > 0);
    assert_ptr_equal(fold_attempts(f->fold, &count)[0]->row, row);
    fold_clear(f->fold);
    assert_int_equal(fold_wait_ms(f->fold, 0), -1);
}

static void a_request_after_its_end_joins_it(void **state)
{
    Fixture *f = *state;
    fold_sent(f, 1, 0);
    fold_request(f, 1, 0);
    assert_int_equal(rows(f), 1);
    assert_int_equal(hold_count(f->hold), 0);
}

static void a_request_that_comes_twice_is_written_at_once(void **state)
{
    Fixture *f = *state;
    fold_request(f, 1, 0);
    fold_request(f, 1, 0);
    assert_int_equal(rows(f), 1);
    assert_int_equal(hold_count(f->hold), 0);
}

static bool is_of_stay(const HistoryRow *request)
{
    return str_eq(request->text[FOLD_SOURCE_TYPE], STR("stay.confirmed"));
}

static void one_that_may_not_wait_is_written_at_once(void **state)
{
    Fixture *f = *state;
    fold_hold_back(f->fold, f->hold, is_of_stay);
    fold_request(f, 1, 0);
    assert_int_equal(rows(f), 0);
    Request *other = request_new(f->arena, id_of(f, 2));
    other->source_event_type = (char *)(uintptr_t) "";
    fold_at(f, request_message(f->arena, other), 0);
    assert_int_equal(rows(f), 1);
    assert_int_equal(hold_count(f->hold), 1);
}

static void another_tenants_event_takes_no_row(void **state)
{
    Fixture *f = *state;
    fold_request(f, 1, 0);
    StatusEvent *forged =
        status_new(f->arena, id_of(f, 1), STENTOR__V1__STATUS__STATUS_BOUNCED, AT(3));
    forged->meta->tenant = (char *)(uintptr_t) "other";
    fold_at(f, status_message(f->arena, forged), 0);
    assert_int_equal(rows(f), 1);
    assert_int_equal(hold_count(f->hold), 1);
}

static void rows_are_ripe_in_the_order_in_which_they_came(void **state)
{
    Fixture *f = *state;
    fold_request(f, 1, 1000);
    fold_request(f, 2, 2000);
    assert_int_equal(fold_wait_ms(f->fold, 1000), SPAN_US / 1000);
    assert_int_equal(fold_wait_ms(f->fold, 1001 + SPAN_US - 2), 1);
    fold_ripen(f->fold, 999 + SPAN_US);
    assert_int_equal(rows(f), 0);
    fold_ripen(f->fold, 1000 + SPAN_US);
    assert_int_equal(rows(f), 1);
    size_t count = 0;
    assert_true(str_eq(fold_rows(f->fold, &count)[0]->id, str_from(id_of(f, 1))));
    assert_int_equal(fold_wait_ms(f->fold, 1000), 0); // a row to write
    fold_clear(f->fold);
    fold_ripen(f->fold, 2000 + SPAN_US);
    assert_true(str_eq(fold_rows(f->fold, &count)[0]->id, str_from(id_of(f, 2))));
}

static void one_flush_takes_a_bounded_number(void **state)
{
    Fixture *f = *state;
    for (int i = 0; i < FOLD_RIPE_MAX + 7; i++) {
        fold_request(f, i, 0);
    }
    fold_ripen(f->fold, SPAN_US);
    assert_int_equal(rows(f), FOLD_RIPE_MAX);
    fold_ripen(f->fold, SPAN_US); // the flush failed and is tried again
    assert_int_equal(rows(f), FOLD_RIPE_MAX);
    fold_clear(f->fold);
    assert_int_equal(fold_wait_ms(f->fold, SPAN_US), 0);
    fold_ripen(f->fold, SPAN_US);
    assert_int_equal(rows(f), 7);
}

// Rows are taken out at the front, in the middle and at the end.
static void the_position_stays_before_the_oldest_held_row(void **state)
{
    Fixture *f = *state;
    assert_int_equal(before(f, "REQUEST_HIGH"), UINT64_MAX);
    fold_request(f, 1, 0);                          // sequence 1
    assert_int_equal(before(f, "REQUEST_HIGH"), 0); // nothing before it: as stored
    for (int i = 2; i <= 5; i++) {
        fold_request(f, i, 0);
    }
    fold_sent(f, 3, 0);
    assert_int_equal(before(f, "REQUEST_HIGH"), 0);
    fold_sent(f, 1, 0);
    assert_int_equal(before(f, "REQUEST_HIGH"), 1);
    HoldPlace place;
    assert_true(hold_before(f->hold, "REQUEST_HIGH", &place));
    assert_int_equal(place.stored_at_us, AT(5));
    fold_sent(f, 2, 0);
    assert_int_equal(before(f, "REQUEST_HIGH"), 3);
    assert_int_equal(before(f, "STATUS"), UINT64_MAX);
    fold_sent(f, 5, 0);
    assert_int_equal(before(f, "REQUEST_HIGH"), 3);
    fold_sent(f, 4, 0);
    assert_int_equal(before(f, "REQUEST_HIGH"), UINT64_MAX);
}

static void a_full_hold_takes_nothing_more(void **state)
{
    Fixture *f = *state;
    int fit = 0;
    for (; rows(f) == 0 && fit < 10000; fit++) {
        fold_request(f, fit, 0);
        assert_true(hold_bytes(f->hold) <= BYTES_MAX);
    }
    assert_in_range(fit, 500, 3000); // 350 bytes to 2 KiB each
    assert_int_equal(hold_count(f->hold), fit - 1);
    fold_sent(f, 0, 0);
    fold_request(f, fit, 0); // there is room again
    assert_int_equal(hold_count(f->hold), fit - 1);
}

static void rows_wait_as_long_as_mails_take(void **state)
{
    Fixture *f = *state;
    assert_int_equal(hold_span_us(f->hold), SPAN_US);
    for (int i = 0; i < 500; i++) {
        fold_sent(f, i, 1000000);
    }
    assert_in_range(hold_span_us(f->hold), 1900000, 2000000);
    for (int i = 0; i < 500; i++) {
        fold_sent(f, i, HOLD_MAX_US + 1); // to wait for these would save nothing
    }
    assert_in_range(hold_span_us(f->hold), 1900000, 2000000);
    for (int i = 0; i < 500; i++) {
        fold_sent(f, i, HOLD_MAX_US);
    }
    assert_int_equal(hold_span_us(f->hold), HOLD_MAX_US);
    for (int i = 0; i < 500; i++) {
        fold_sent(f, i, 20000);
    }
    assert_int_equal(hold_span_us(f->hold), SPAN_US);
}

static void a_stream_that_lost_its_tail_is_not_held_out_of_order(void **state)
{
    Fixture *f = *state;
    f->sequence = 10;
    fold_request(f, 1, 0);
    f->sequence = 4;
    fold_request(f, 2, 0);
    assert_int_equal(rows(f), 1);
    assert_int_equal(hold_count(f->hold), 1);
}

static void after_a_release_nothing_waits(void **state)
{
    Fixture *f = *state;
    fold_request(f, 1, 0);
    hold_release(f->hold);
    assert_int_equal(fold_wait_ms(f->fold, 0), 0);
    fold_request(f, 2, 0);
    assert_int_equal(rows(f), 1);
    fold_ripen(f->fold, 0);
    assert_int_equal(rows(f), 2);
}

static void what_is_dropped_is_forgotten(void **state)
{
    Fixture *f = *state;
    fold_request(f, 1, 0);
    fold_request(f, 2, 0);
    fold_sent(f, 2, 0);
    fold_forget(f->fold);
    assert_int_equal(rows(f), 0);
    assert_int_equal(hold_count(f->hold), 0);
    assert_int_equal(hold_bytes(f->hold), 0);
    assert_int_equal(fold_oldest_us(f->fold), 0);
    fold_request(f, 3, 0);
    assert_int_equal(before(f, "REQUEST_HIGH"), 0); // it is read from the stored position again
}

// Every order of a story whose events disagree makes the row that it makes without holding.
static void holding_changes_no_row(void **state)
{
    Fixture *f = *state;
    for (int n = 0; n < STORY_ORDERS; n++) {
        int order[STORY_EVENTS];
        story_order(n, order);
        Fold *plain = fold_new();
        for (int i = 0; i < STORY_EVENTS; i++) {
            Error err;
            BusMessage message = story_event(f->arena, NTF_ID, order[i]);
            assert_true(fold_event(plain, &message, f->arena, &err));
            fold_at(f, message, 0);
        }
        size_t count = 0;
        const HistoryRow *a = fold_rows(plain, &count)[0];
        const HistoryRow *b = fold_rows(f->fold, &count)[0];
        assert_int_equal(count, 1);
        assert_int_equal(a->rank, b->rank);
        assert_true(str_eq(a->reason, b->reason));
        assert_memory_equal(a->at_us, b->at_us, sizeof a->at_us);
        for (int i = 0; i < FOLD_TEXT_COUNT; i++) {
            assert_true(str_eq(a->text[i], b->text[i]));
        }
        fold_free(plain);
        fold_forget(f->fold);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_held_until_its_end_comes),
        TEST(a_request_after_its_end_joins_it),
        TEST(a_request_that_comes_twice_is_written_at_once),
        TEST(one_that_may_not_wait_is_written_at_once),
        TEST(another_tenants_event_takes_no_row),
        TEST(rows_are_ripe_in_the_order_in_which_they_came),
        TEST(one_flush_takes_a_bounded_number),
        TEST(the_position_stays_before_the_oldest_held_row),
        TEST(a_full_hold_takes_nothing_more),
        TEST(rows_wait_as_long_as_mails_take),
        TEST(a_stream_that_lost_its_tail_is_not_held_out_of_order),
        TEST(after_a_release_nothing_waits),
        TEST(what_is_dropped_is_forgotten),
        TEST(holding_changes_no_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
