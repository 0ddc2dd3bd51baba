// SPDX-License-Identifier: Apache-2.0
// FEED folded into feed.*: counters are at all times what a count of the items says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/common/feed/feed_stage.h"

#define ACTION(name) STENTOR__V1__FEED_ACTION__FEED_ACTION_##name

enum { RECIPIENTS = 3, ITEMS = 6, EVENTS = 90, RUNS = 4 };

// Rows whose counters are not what a count says; 0: they agree.
static const char DRIFT[] =
    "SELECT count(*) FROM (SELECT tenant_id, recipient, category, count(*) FILTER (WHERE seen_at "
    "IS "
    "NULL) AS unseen, count(*) FILTER (WHERE read_at IS NULL) AS unread, count(*) AS total FROM "
    "feed.items WHERE archived_at IS NULL AND snoozed_until IS NULL GROUP BY 1, 2, 3) i FULL JOIN "
    "(SELECT * FROM feed.counters WHERE total > 0 OR unread > 0 OR unseen > 0) c USING (tenant_id, "
    "recipient, category) WHERE (i.unseen, i.unread, i.total) IS DISTINCT FROM (c.unseen::int8, "
    "c.unread::int8, c.total::int8)";

static const char WORLD[] =
    "SELECT md5(coalesce((SELECT string_agg(i::text, ' ' ORDER BY recipient, notification_id) FROM "
    "feed.items i), '') || coalesce((SELECT string_agg(c::text, ' ' ORDER BY recipient, category) "
    "FROM feed.counters c), ''))";

static const char COUNTS[] =
    "SELECT concat_ws(' ', sum(unseen), sum(unread), sum(total)) FROM feed.counters";

static const char STATUSES[] =
    "SELECT coalesce(string_agg(status, ' ' ORDER BY status), '') FROM feed.statuses";

static unsigned seed;

static unsigned draw(unsigned below)
{
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8) % below;
}

static FeedEvent *random_event(Scene *s)
{
    int recipient = (int)draw(RECIPIENTS);
    int number = recipient * 10 + (int)draw(ITEMS);
    int64_t at_us = FEED_T0 + (int64_t)draw(1000) * 1000000;
    static const Stentor__V1__FeedAction actions[] = {
        ACTION(FETCHED), ACTION(SEEN),   ACTION(READ),     ACTION(UNREAD), ACTION(ARCHIVE),
        ACTION(CLICK),   ACTION(SNOOZE), ACTION(UNSNOOZE), ACTION(EXPIRE), ACTION(UNARCHIVE),
    };
    static const Stentor__V1__FeedAction of_all[] = {ACTION(SEEN), ACTION(READ), ACTION(ARCHIVE)};
    FeedEvent *event;
    switch (draw(8)) {
    case 0:
    case 1:
        event = item_event(s, recipient, number, FEED_T0 + number * INT64_C(1000000));
        event->item->expires_at_us = draw(3) == 0 ? FEED_T0 + 500000000 : 0;
        return event;
    case 2:
        return up_to_event(s, recipient, of_all[draw(3)], number, FEED_T0 + 40000000, at_us);
    case 3:
        event = state_event(s, recipient, ACTION(SNOOZE_END), number, at_us);
        event->state->until_us = at_us + 1000000;
        return event;
    default:
        event = state_event(s, recipient, actions[draw(10)], number, at_us);
        event->state->until_us = at_us + (int64_t)draw(100) * 1000000;
        return event;
    }
}

static void fold_all(Scene *s, FeedEvent *const *events, size_t count, unsigned most)
{
    s->sequence = 0;
    for (size_t i = 0; i < count;) {
        for (unsigned n = 1 + draw(most); n > 0 && i < count; n--) {
            tell(s, events[i++]);
        }
        flush(s, true);
        assert_value(s, DRIFT, "0");
    }
}

// In random order, each third one again later; then the same log once more into empty tables.
static void counters_equal_a_count_of_the_items_whatever_comes_and_after_a_rebuild(void **state)
{
    Scene *s = *state;
    for (unsigned run = 1; run <= RUNS; run++) {
        char world[64];
        FeedEvent *events[EVENTS];
        seed = run;
        admin_exec(s->fx->admin, FEED_CLEAR);
        for (size_t i = 0; i < EVENTS; i++) {
            events[i] = i > 0 && draw(3) == 0 ? events[draw((unsigned)i)] : random_event(s);
        }
        fold_all(s, events, EVENTS, FEED_ROUNDS);
        snprintf(world, sizeof world, "%s", admin_value(s->fx->admin, WORLD));
        admin_exec(s->fx->admin, FEED_CLEAR);
        fold_all(s, events, EVENTS, FEED_ROUNDS);
        assert_value(s, WORLD, world);
        admin_exec(s->fx->admin, FEED_CLEAR);
        fold_all(s, events, EVENTS, 80); // more than the rounds of a flush hold
    }
}

static void an_item_counts_until_it_is_seen_read_archived_or_snoozed(void **state)
{
    Scene *s = *state;
    tell(s, item_event(s, 0, 1, FEED_T0 + 1));
    tell(s, item_event(s, 0, 2, FEED_T0 + 2));
    flush(s, true);
    assert_value(s, COUNTS, "2 2 2");
    tell_alone(s, state_event(s, 0, ACTION(SEEN), 1, FEED_T0 + 10));
    assert_value(s, COUNTS, "1 2 2");
    tell_alone(s, state_event(s, 0, ACTION(READ), 1, FEED_T0 + 11));
    assert_value(s, COUNTS, "1 1 2");
    tell_alone(s, state_event(s, 0, ACTION(UNREAD), 1, FEED_T0 + 12));
    assert_value(s, COUNTS, "1 2 2");
    tell_alone(s, state_event(s, 0, ACTION(ARCHIVE), 2, FEED_T0 + 13));
    assert_value(s, COUNTS, "0 1 1");
    tell_alone(s, state_event(s, 0, ACTION(UNARCHIVE), 2, FEED_T0 + 14));
    assert_value(s, COUNTS, "1 2 2");
    FeedEvent *snooze = state_event(s, 0, ACTION(SNOOZE), 2, FEED_T0 + 15);
    snooze->state->until_us = FEED_T0 + 1000;
    tell_alone(s, snooze);
    assert_value(s, COUNTS, "0 1 1");
}

static void the_end_of_a_snooze_makes_it_unread_again_and_moves_it_up(void **state)
{
    Scene *s = *state;
    tell(s, item_event(s, 0, 1, FEED_T0 + 1));
    tell(s, item_event(s, 0, 2, FEED_T0 + 2));
    flush(s, true);
    tell_alone(s, state_event(s, 0, ACTION(READ), 1, FEED_T0 + 3));
    FeedEvent *snooze = state_event(s, 0, ACTION(SNOOZE), 1, FEED_T0 + 4);
    snooze->state->until_us = FEED_T0 + 1000;
    tell_alone(s, snooze);
    FeedEvent *end = state_event(s, 0, ACTION(SNOOZE_END), 1, FEED_T0 + 1000);
    end->state->until_us = FEED_T0 + 999; // of an earlier one
    tell_alone(s, end);
    assert_value(s, COUNTS, "1 1 1");
    end->state->until_us = FEED_T0 + 1000;
    tell_alone(s, end);
    tell_alone(s, end);
    assert_value(s, COUNTS, "1 2 2");
    assert_value(
        s, "SELECT right(notification_id, 1) FROM feed.items ORDER BY placed_at DESC LIMIT 1", "1");
}

static void the_earliest_time_stands_and_of_archiving_the_last_word(void **state)
{
    Scene *s = *state;
    tell_alone(s, item_event(s, 0, 1, FEED_T0));
    tell_alone(s, state_event(s, 0, ACTION(CLICK), 1, FEED_T0 + 20));
    tell_alone(s, state_event(s, 0, ACTION(READ), 1, FEED_T0 + 10));
    tell_alone(s, state_event(s, 0, ACTION(SEEN), 1, FEED_T0 + 30));
    tell_alone(s, state_event(s, 0, ACTION(UNARCHIVE), 1, FEED_T0 + 50));
    tell_alone(s, state_event(s, 0, ACTION(ARCHIVE), 1, FEED_T0 + 40)); // said before
    assert_value(
        s,
        "SELECT concat_ws(' ', extract(microseconds FROM seen_at)::int % 100, extract(microseconds "
        "FROM read_at)::int % 100, extract(microseconds FROM clicked_at)::int % 100, archived_at "
        "IS NULL) FROM feed.items",
        "10 10 20 t");
}

static void all_up_to_one_leaves_what_came_later(void **state)
{
    Scene *s = *state;
    tell(s, item_event(s, 0, 1, FEED_T0 + 1));
    tell(s, item_event(s, 0, 2, FEED_T0 + 2));
    tell(s, item_event(s, 1, 11, FEED_T0 + 1)); // another recipient's
    tell(s, up_to_event(s, 0, ACTION(READ), 2, FEED_T0 + 2, FEED_T0 + 9));
    tell(s, item_event(s, 0, 3, FEED_T0 + 1)); // older, and stored later
    flush(s, true);
    assert_value(
        s,
        "SELECT string_agg(right(notification_id, 1), '' ORDER BY notification_id) FROM feed.items"
        " WHERE read_at IS NULL",
        "31");
    assert_value(s, DRIFT, "0");
}

// As a projection that catches up, or is made again, has them.
static void words_about_all_items_count_each_though_one_flush_has_many(void **state)
{
    Scene *s = *state;
    tell(s, item_event(s, 0, 1, FEED_T0));
    for (int i = 1; i <= 6; i++) {
        tell(s, up_to_event(s, 0, ACTION(SEEN), 1, FEED_T0, FEED_T0 + i));
    }
    tell(s, up_to_event(s, 0, ACTION(READ), 1, FEED_T0, FEED_T0 + 7));
    tell(s, up_to_event(s, 0, ACTION(ARCHIVE), 1, FEED_T0, FEED_T0 + 8));
    flush(s, true);
    assert_value(
        s, "SELECT count(*) FROM feed.items WHERE read_at IS NOT NULL AND archived_at IS NOT NULL",
        "1");
    assert_value(s, DRIFT, "0");
}

static void removals_and_items_that_expire_take_no_rounds_from_what_is_said_of_all(void **state)
{
    Scene *s = *state;
    for (int i = 0; i < FEED_ROUNDS + 6; i++) {
        FeedEvent *event = item_event(s, 0, i, FEED_T0);
        event->item->expires_at_us = FEED_T0 + 100;
        tell(s, event);
        tell(s, item_event(s, 1, 100 + i, FEED_T0));
    }
    tell(s, item_event(s, 0, 999, FEED_T0));
    for (int i = 0; i < FEED_ROUNDS + 6; i++) {
        tell(s, state_event(s, 0, ACTION(EXPIRE), i, FEED_T0 + 100));
        tell(s, removal_event(s, i == 0 ? 1 : 100 + i, FEED_T0 + 101));
    }
    tell(s, up_to_event(s, 0, ACTION(SEEN), 999, FEED_T0, FEED_T0 + 102));
    tell(s, up_to_event(s, 0, ACTION(READ), 999, FEED_T0, FEED_T0 + 103));
    tell(s, item_event(s, 1, 99, FEED_T0)); // of a later key: it stays
    flush(s, true);
    assert_value(
        s,
        "SELECT string_agg(concat_ws(':', right(notification_id, 3), extract(microseconds FROM "
        "seen_at)::int % 1000, extract(microseconds FROM read_at)::int % 1000), ' ' ORDER BY "
        "recipient) FROM feed.items",
        "999:102:103 099");
    assert_value(s, DRIFT, "0");
}

// A repeat, and a later one that would end the same snooze.
static void of_several_ends_of_an_item_in_one_flush_the_first_counts(void **state)
{
    Scene *s = *state;
    FeedEvent *event = item_event(s, 0, 1, FEED_T0);
    event->item->expires_at_us = FEED_T0 + 100;
    tell(s, event);
    tell(s, item_event(s, 0, 2, FEED_T0));
    FeedEvent *snooze = state_event(s, 0, ACTION(SNOOZE), 2, FEED_T0 + 1);
    snooze->state->until_us = FEED_T0 + 50;
    tell_alone(s, snooze);
    for (int i = 0; i < 4; i++) {
        FeedEvent *end = state_event(s, 0, ACTION(SNOOZE_END), 2, FEED_T0 + 49 + i);
        end->state->until_us = end->meta->occurred_at_us;
        tell(s, end);
        tell(s, state_event(s, 0, ACTION(EXPIRE), 1, FEED_T0 + 99 + i));
    }
    flush(s, true);
    assert_value(
        s,
        "SELECT extract(microseconds FROM placed_at)::int % 1000 || ' ' || (SELECT "
        "string_agg(total || ':' || version, ' ' ORDER BY category) FROM feed.counters) FROM "
        "feed.items",
        "50 1:6 0:7");
    assert_value(s, DRIFT, "0");
}

static void each_status_is_told_once_and_never_by_a_rebuild(void **state)
{
    Scene *s = *state;
    tell_alone(s, item_event(s, 0, 1, FEED_T0));
    tell_alone(s, state_event(s, 0, ACTION(FETCHED), 1, FEED_T0 + 1));
    assert_value(s, STATUSES, "delivered");
    tell_alone(s, state_event(s, 0, ACTION(READ), 1, FEED_T0 + 2));
    assert_value(s, STATUSES, "delivered opened");
    admin_exec(s->fx->admin, "DELETE FROM feed.statuses"); // STATUS has them
    tell_alone(s, state_event(s, 0, ACTION(UNREAD), 1, FEED_T0 + 3));
    tell_alone(s, state_event(s, 0, ACTION(READ), 1, FEED_T0 + 4));
    assert_value(s, STATUSES, "");
    tell(s, item_event(s, 0, 2, FEED_T0));
    tell(s, state_event(s, 0, ACTION(CLICK), 2, FEED_T0 + 1));
    flush(s, false);
    assert_value(s, STATUSES, "");
}

static void what_has_expired_or_lost_its_key_is_gone_with_its_counts(void **state)
{
    Scene *s = *state;
    FeedEvent *short_lived = item_event(s, 0, 1, FEED_T0);
    short_lived->item->expires_at_us = FEED_T0 + 100;
    tell(s, short_lived);
    tell(s, item_event(s, 0, 2, FEED_T0));
    tell(s, item_event(s, 1, 3, FEED_T0));
    flush(s, true);
    tell_alone(s, state_event(s, 0, ACTION(EXPIRE), 1, FEED_T0 + 99)); // not yet
    assert_value(s, COUNTS, "3 3 3");
    tell_alone(s, state_event(s, 0, ACTION(EXPIRE), 1, FEED_T0 + 100));
    assert_value(s, COUNTS, "2 2 2");
    tell(s, removal_event(s, 1, FEED_T0 + 200));
    tell(s, item_event(s, 1, 4, FEED_T0)); // of a later key: here again
    flush(s, true);
    assert_value(
        s, "SELECT string_agg(right(notification_id, 1), '' ORDER BY 1) FROM feed.items", "24");
    assert_value(s, DRIFT, "0");
}

// The log was folded up to 901 and then lost its tail: what is said now has lower numbers.
static void what_is_said_now_reaches_items_that_the_log_has_lost(void **state)
{
    Scene *s = *state;
    tell(s, item_event(s, 0, 1, FEED_T0 + 1));
    s->sequence = 899;
    tell(s, item_event(s, 0, 2, FEED_T0 + 2));
    tell(s, item_event(s, 1, 3, FEED_T0 + 3));
    flush(s, true);
    s->sequence = 1;
    tell(s, up_to_event(s, 0, ACTION(READ), 2, FEED_T0 + 2, FEED_T0 + 9));
    tell(s, removal_event(s, 1, FEED_T0 + 10));
    DbTxn *txn = db_txn_new(s->fx->pool);
    feed_sql_forget_tail(s->fold, txn);
    flush_txn(s, txn, true);
    assert_value(
        s,
        "SELECT string_agg(concat_ws(':', right(notification_id, 1), read_at IS NOT NULL, "
        "stored_sequence), ' ' ORDER BY 1) FROM feed.items",
        "1:t:1 2:t:1");
    assert_value(s, DRIFT, "0");
}

static void what_is_too_old_is_dropped_with_its_counts(void **state)
{
    Scene *s = *state;
    tell(s, item_event(s, 0, 1, FEED_T0));
    tell(s, item_event(s, 0, 2, FEED_T0 + 5000000));
    flush(s, true);
    assert_value(
        s, "SELECT feed.drop_old('epoch'::timestamptz + 1795000001 * interval '1 s', 10)", "1");
    assert_value(s, COUNTS, "1 1 1");
    assert_value(s, DRIFT, "0");
}

// What a projector folds into one transaction at most, when every item is as large as one may be.
static void a_flush_of_the_largest_items_is_written(void **state)
{
    Scene *s = *state;
    const int count = 2 * FEED_FLUSH_BYTES / FEED_EVENT_MAX + 1;
    char *large = arena_zalloc(s->arena, FEED_EVENT_MAX);
    for (int i = 0; i < count; i++) {
        FeedEvent *event = item_event(s, 0, i, FEED_T0 + i);
        event->item->content->ciphertext = pb_data(str_of(large, FEED_EVENT_MAX - 256));
        tell(s, event);
    }
    flush(s, true);
    assert_value(s, "SELECT sum(length(content)) / 1048576 FROM feed.items", "13");
    assert_value(s, DRIFT, "0");
}

// Each item of a state is a row, many times as large as what names it in the event.
static void a_flush_of_states_of_many_items_is_written(void **state)
{
    Scene *s = *state;
    const int count = 2 * FEED_FLUSH_MAX - 1;
    tell(s, item_event(s, 0, 1, FEED_T0));
    for (int i = 1; i < count; i++) {
        FeedEvent *event = state_event(s, i / 10, ACTION(CLICK), 0, FEED_T0 + i);
        char **ids = arena_array(s->arena, FEED_STATE_IDS_MAX, sizeof *ids);
        for (int j = 0; j < FEED_STATE_IDS_MAX; j++) {
            ids[j] = pb_borrow(item_name(s, i % 10 * FEED_STATE_IDS_MAX + j));
        }
        event->state->notification_ids = ids;
        event->state->n_notification_ids = FEED_STATE_IDS_MAX;
        tell(s, event);
    }
    flush(s, true);
    assert_value(s, "SELECT clicked_at IS NULL FROM feed.items", "t"); // its numbers begin at 100
    tell_alone(s, state_event(s, 0, ACTION(CLICK), 1, FEED_T0 + 1));
    assert_value(s, COUNTS, "0 0 1");
}

static void counters_without_an_item_keep_their_version(void **state)
{
    Scene *s = *state;
    tell(s, item_event(s, 0, 1, FEED_T0));
    flush(s, true);
    assert_value(
        s, "SELECT feed.drop_old('epoch'::timestamptz + 1795000001 * interval '1 s', 10)", "1");
    assert_value(
        s, "SELECT concat_ws(' ', unseen, unread, total, version) FROM feed.counters", "0 0 0 1");
}

static void an_event_that_no_table_takes_is_refused_with_its_reason(void **state)
{
    Scene *s = *state;
    FeedEvent *event = item_event(s, 0, 1, FEED_T0);
    event->item->category = 99;
    FeedEvent *all = up_to_event(s, 0, ACTION(SNOOZE), 1, FEED_T0, FEED_T0);
    FeedEvent *foreign = item_event(s, 0, 1, FEED_T0);
    foreign->recipient.len = 31;
    FeedEvent *late = state_event(s, 0, ACTION(SNOOZE), 1, FEED_T0);
    late->state->until_us = INT64_MAX;
    const struct {
        const FeedEvent *event;
        const char *reason;
    } rows[] = {
        {event, "unknown category 99"},
        {all, "names no item"},
        {foreign, "'recipient' is not a hash"},
        {late, "outside of 1970 to 9999"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Error err = {0};
        BusMessage message = message_of(s, rows[i].event, 1);
        assert_false(feed_fold_event(s->fold, &message, s->arena, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        assert_non_null(strstr(err.text, rows[i].reason));
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(counters_equal_a_count_of_the_items_whatever_comes_and_after_a_rebuild),
        TEST(an_item_counts_until_it_is_seen_read_archived_or_snoozed),
        TEST(the_end_of_a_snooze_makes_it_unread_again_and_moves_it_up),
        TEST(the_earliest_time_stands_and_of_archiving_the_last_word),
        TEST(all_up_to_one_leaves_what_came_later),
        TEST(words_about_all_items_count_each_though_one_flush_has_many),
        TEST(removals_and_items_that_expire_take_no_rounds_from_what_is_said_of_all),
        TEST(of_several_ends_of_an_item_in_one_flush_the_first_counts),
        TEST(each_status_is_told_once_and_never_by_a_rebuild),
        TEST(what_has_expired_or_lost_its_key_is_gone_with_its_counts),
        TEST(what_is_said_now_reaches_items_that_the_log_has_lost),
        TEST(what_is_too_old_is_dropped_with_its_counts),
        TEST(a_flush_of_the_largest_items_is_written),
        TEST(a_flush_of_states_of_many_items_is_written),
        TEST(counters_without_an_item_keep_their_version),
        TEST(an_event_that_no_table_takes_is_refused_with_its_reason),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
