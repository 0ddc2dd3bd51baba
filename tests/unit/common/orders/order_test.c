// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/orders/order.h"

#define ORDER "6f1c9a52-9f0e-4f43-8a37-2f5a3c1d0e11"
#define NOW_US INT64_C(1795199136000000)

typedef struct Scene {
    Arena *arena;
    Fold fold;
    uint64_t sequence;
} Scene;

static int set_up(void **state)
{
    static Scene scene;
    scene = (Scene){.arena = arena_new(0)};
    fold_init(&scene.fold, scene.arena, 32, NOW_US, 3);
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    fold_done(&s->fold);
    arena_free(s->arena);
    return 0;
}

static SagaInput *new_input(Scene *s, InputKind kind, const char *message)
{
    SagaInput *in = arena_zalloc(s->arena, sizeof *in);
    in->kind = kind;
    in->tenant = STR("acme");
    in->type = STR("x");
    in->message_id = str_from(message);
    in->sequence = ++s->sequence;
    in->happened_at_us = NOW_US - 1000000;
    memcpy(in->correlation_id, ORDER, UUID_SIZE);
    memcpy(in->order_id, ORDER, UUID_SIZE);
    memcpy(in->currency, "USD", CURRENCY_SIZE);
    return in;
}

static Entry *add(Scene *s, InputKind kind, const char *message)
{
    return fold_add(&s->fold, new_input(s, kind, message));
}

// The order as a table has it that was placed before.
static Order *placed(Scene *s, int32_t version, int32_t retries, const char *token)
{
    Order *order = s->fold.order_list[0];
    order->state = ORDER_PLACED;
    order->version = order->expected = version;
    order->retries = retries;
    order->placed_at_us = NOW_US - 60000000;
    memcpy(order->token_id, token, UUID_SIZE);
    return order;
}

static void several_events_of_an_order_are_one_write(void **state)
{
    Scene *s = *state;
    Entry *out = add(s, INPUT_CHECKED_OUT, "a");
    Entry *done = add(s, INPUT_COMPLETED, "b");
    Entry *late = add(s, INPUT_CANCELLED, "c");
    fold_run(&s->fold);
    const Order *order = s->fold.order_list[0];
    assert_int_equal(s->fold.order_count, 1);
    assert_int_equal(order->state, ORDER_COMPLETED);
    assert_true(order->expected == 0 && order->version == 2);
    assert_int_equal(order->finished_at_us, NOW_US);
    assert_string_equal(order->token_id, "");
    assert_true(
        out->verdict == VERDICT_APPLIED && out->from == ORDER_NONE && out->to == ORDER_PLACED);
    assert_true(done->verdict == VERDICT_APPLIED && done->to == ORDER_COMPLETED);
    assert_true(
        late->verdict == VERDICT_CONFLICT && late->from == ORDER_COMPLETED &&
        late->to == ORDER_COMPLETED);
    assert_int_equal(s->fold.command_count, 3); // place, wait, complete
    assert_int_equal(s->fold.commands[0].command, COMMAND_PLACE);
    assert_int_equal(s->fold.commands[1].command, COMMAND_NONE);
    assert_int_equal(s->fold.commands[2].command, COMMAND_COMPLETE);
    assert_int_equal(s->fold.commands[2].happened_at_us, NOW_US);
}

static void the_same_message_twice_is_one_entry(void **state)
{
    Scene *s = *state;
    Entry *first = add(s, INPUT_CHECKED_OUT, "a");
    assert_ptr_equal(add(s, INPUT_CHECKED_OUT, "a"), first);
    fold_run(&s->fold);
    assert_int_equal(first->times, 2);
    assert_int_equal(s->fold.entry_count, 1);
    assert_int_equal(s->fold.order_list[0]->version, 1);
    assert_int_equal(s->fold.command_count, 2);
}

static void a_message_of_the_table_changes_nothing(void **state)
{
    Scene *s = *state;
    Entry *entry = add(s, INPUT_COMPLETED, "a");
    const Order *order = placed(s, 1, 0, ORDER);
    entry->is_known = true;
    fold_run(&s->fold);
    assert_int_equal(entry->verdict, VERDICT_DUPLICATE);
    assert_false(order_is_changed(order));
    assert_int_equal(s->fold.command_count, 0);
}

static void what_comes_before_its_order_is_applied_behind_it(void **state)
{
    Scene *s = *state;
    Entry *early = add(s, INPUT_COMPLETED, "early");
    SagaInput *older = new_input(s, INPUT_CANCELLED, "older");
    older->sequence = 0; // the table's: it came before
    add(s, INPUT_CHECKED_OUT, "out");
    fold_add_waiting(&s->fold, s->fold.order_list[0], older);
    fold_run(&s->fold);
    const Order *order = s->fold.order_list[0];
    assert_int_equal(order->state, ORDER_CANCELLED);
    assert_int_equal(early->verdict, VERDICT_CONFLICT);
    assert_true(early->from == ORDER_CANCELLED && early->times == 1);
    assert_int_equal(s->fold.entry_count, 3);
    const Entry *revived = s->fold.entry_list[2];
    assert_true(
        revived->input == older && revived->verdict == VERDICT_APPLIED && revived->times == 0);
    assert_int_equal(order->unmatched, 1);
}

static void without_its_order_it_stays_unmatched(void **state)
{
    Scene *s = *state;
    Entry *early = add(s, INPUT_COMPLETED, "early");
    Entry *wait = add(s, INPUT_TIMEOUT, "wait");
    fold_run(&s->fold);
    assert_int_equal(early->verdict, VERDICT_UNMATCHED);
    assert_int_equal(wait->verdict, VERDICT_STALE);
    assert_false(order_is_changed(s->fold.order_list[0]));
}

static void a_waiting_event_that_is_delivered_again_is_applied_once(void **state)
{
    Scene *s = *state;
    SagaInput *in = new_input(s, INPUT_COMPLETED, "early");
    Entry *again = fold_add(&s->fold, in);
    add(s, INPUT_CHECKED_OUT, "out");
    fold_add_waiting(&s->fold, s->fold.order_list[0], in);
    fold_run(&s->fold);
    assert_int_equal(again->verdict, VERDICT_APPLIED);
    assert_int_equal(s->fold.entry_count, 2);
    assert_int_equal(s->fold.order_list[0]->version, 2);
}

static Entry *add_timeout(Scene *s, const char *message, const char *token)
{
    SagaInput *in = new_input(s, INPUT_TIMEOUT, message);
    memcpy(in->token_id, token, UUID_SIZE);
    return fold_add(&s->fold, in);
}

static void a_time_out_places_the_order_again(void **state)
{
    Scene *s = *state;
    Entry *entry = add_timeout(s, "t", ORDER);
    const Order *order = placed(s, 4, 0, ORDER);
    fold_run(&s->fold);
    assert_int_equal(entry->verdict, VERDICT_APPLIED);
    assert_true(order->state == ORDER_PLACED && order->retries == 1 && order->version == 5);
    assert_string_not_equal(order->token_id, ORDER);
    assert_int_equal(s->fold.command_count, 2);
    assert_int_equal(s->fold.commands[0].happened_at_us, order->placed_at_us); // the first one's
    assert_string_equal(s->fold.commands[1].token_id, order->token_id);
    assert_int_equal(s->fold.retried, 1);
}

static void the_last_time_out_fails_the_order(void **state)
{
    Scene *s = *state;
    Entry *entry = add_timeout(s, "t", ORDER);
    const Order *order = placed(s, 4, 2, ORDER);
    fold_run(&s->fold);
    assert_int_equal(entry->to, ORDER_FAILED);
    assert_true(order->retries == 3 && order->finished_at_us == NOW_US);
    assert_int_equal(s->fold.command_count, 1);
    assert_int_equal(s->fold.commands[0].command, COMMAND_FAIL);
    assert_int_equal(s->fold.commands[0].happened_at_us, NOW_US);
}

static void the_time_out_that_failed_an_order_is_known_by_its_token(void **state)
{
    Scene *s = *state;
    (void)add_timeout(s, "t", ORDER);
    Order *order = placed(s, 4, 1, ORDER);
    fold_run(&s->fold);
    SagaInput *last = new_input(s, INPUT_TIMEOUT, "last");
    memcpy(last->token_id, order->token_id, UUID_SIZE); // of the wait that is to end it
    assert_false(order_failed_by(order, last));
    order->state = ORDER_FAILED;
    order->retries = 3;
    assert_true(order_failed_by(order, last));
    memcpy(last->token_id, ORDER, UUID_SIZE); // an earlier one
    assert_false(order_failed_by(order, last));
    last->kind = INPUT_COMPLETED;
    assert_false(order_failed_by(order, last));
}

static void a_time_out_of_another_wait_is_stale(void **state)
{
    Scene *s = *state;
    Entry *entry = add_timeout(s, "t", "00000000-0000-4000-8000-000000000001");
    const Order *order = placed(s, 4, 1, ORDER);
    fold_run(&s->fold);
    assert_int_equal(entry->verdict, VERDICT_STALE);
    assert_false(order_is_changed(order));
    assert_string_equal(order->token_id, ORDER);
}

static void an_archived_order_stays_as_it_is(void **state)
{
    Scene *s = *state;
    Entry *again = add(s, INPUT_CHECKED_OUT, "a");
    Entry *entry = add(s, INPUT_CANCELLED, "b");
    Order *order = placed(s, 2, 0, ORDER);
    order->state = ORDER_COMPLETED;
    order->is_archived = true;
    fold_run(&s->fold);
    assert_int_equal(again->verdict, VERDICT_CONFLICT);
    assert_int_equal(entry->verdict, VERDICT_CONFLICT);
    assert_false(order_is_changed(order));
}

static void tenants_do_not_share_orders_or_messages(void **state)
{
    Scene *s = *state;
    Entry *ours = add(s, INPUT_CHECKED_OUT, "a");
    SagaInput *in = new_input(s, INPUT_COMPLETED, "a");
    in->tenant = STR("other");
    Entry *theirs = fold_add(&s->fold, in);
    fold_run(&s->fold);
    assert_int_equal(s->fold.order_count, 2);
    assert_int_equal(ours->verdict, VERDICT_APPLIED);
    assert_int_equal(theirs->verdict, VERDICT_UNMATCHED);
}

static void by_the_log_an_order_ends_when_its_event_was_stored(void **state)
{
    Scene *s = *state;
    s->fold.at_events = true;
    SagaInput *early = new_input(s, INPUT_CANCELLED, "early");
    SagaInput *out = new_input(s, INPUT_CHECKED_OUT, "out");
    early->received_at_us = NOW_US - 5000000;
    out->received_at_us = NOW_US - 4000000;
    (void)fold_add(&s->fold, early);
    (void)fold_add(&s->fold, out);
    fold_run(&s->fold);
    assert_int_equal(s->fold.order_list[0]->state, ORDER_CANCELLED);
    assert_int_equal(
        s->fold.order_list[0]->finished_at_us, NOW_US - 4000000); // not before it began
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_time_out_that_failed_an_order_is_known_by_its_token),
        TEST(by_the_log_an_order_ends_when_its_event_was_stored),
        TEST(several_events_of_an_order_are_one_write),
        TEST(the_same_message_twice_is_one_entry),
        TEST(a_message_of_the_table_changes_nothing),
        TEST(what_comes_before_its_order_is_applied_behind_it),
        TEST(without_its_order_it_stays_unmatched),
        TEST(a_waiting_event_that_is_delivered_again_is_applied_once),
        TEST(a_time_out_places_the_order_again),
        TEST(the_last_time_out_fails_the_order),
        TEST(a_time_out_of_another_wait_is_stale),
        TEST(an_archived_order_stays_as_it_is),
        TEST(tenants_do_not_share_orders_or_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
