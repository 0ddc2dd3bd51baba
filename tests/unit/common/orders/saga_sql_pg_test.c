// SPDX-License-Identifier: Apache-2.0
// Two processes with one order, step by step: whoever commits second has written nothing of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/orders/saga_sql.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

#define ORDER "6f1c9a52-9f0e-4f43-8a37-2f5a3c1d0e11"
#define SAGA "0b0f6f5e-5b0c-4f1e-9d63-0d9a3d1c7a42" // a correlation id of its own
#define LATER "9f1c9a52-9f0e-4f43-8a37-2f5a3c1d0e11"
#define NOW_US INT64_C(1795199136000000)

typedef struct Scene {
    Fixture *fx;
    Arena *arena;
    Fold *fold; // of the transaction under way
    OutRow *rows;
    size_t row_count;
    bool done;
} Scene;

// The first number of the answer.
static int64_t admin_count(PGconn *admin, const char *sql)
{
    int64_t value = -1;
    (void)str_to_i64(str_from(admin_value(admin, sql)), &value);
    return value;
}

// One process's batch.
typedef struct Side {
    Fold fold;
    OutRow rows[8];
    size_t row_count;
    uint64_t sequence;
} Side;

static int set_up(void **state)
{
    static char url[512];
    Scene *s = calloc(1, sizeof *s);
    url_with("&user=stentor_order_saga", url, sizeof url);
    s->fx = fixture_new(
        &(DbPoolOptions){.url = url, .application_name = "saga-test", .connections = 1});
    s->arena = arena_new(0);
    admin_exec(
        s->fx->admin, "TRUNCATE order_saga.order_state, order_saga.order_archive, "
                      "order_saga.inbox_state, order_saga.outbox_message");
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    fixture_free(s->fx);
    arena_free(s->arena);
    free(s);
    return 0;
}

static Entry *add_to(
    Scene *s, Side *side, InputKind kind, const char *message, const char *correlation_id,
    const char *order_id)
{
    if (side->fold.arena == NULL) {
        fold_init(&side->fold, s->arena, 8, NOW_US, 3);
    }
    SagaInput *in = arena_zalloc(s->arena, sizeof *in);
    *in = (SagaInput){.kind = kind, .tenant = STR("acme"), .type = STR("StatusChanged")};
    in->message_id = str_from(message);
    in->traceparent = in->reason = in->carrier = in->tracking_number = STR_EMPTY;
    in->sequence = ++side->sequence;
    in->received_at_us = in->happened_at_us = NOW_US;
    in->has_total = true;
    in->total_micros = 19990000;
    memcpy(in->correlation_id, correlation_id, UUID_SIZE);
    memcpy(in->order_id, order_id, UUID_SIZE);
    memcpy(in->currency, "EUR", CURRENCY_SIZE);
    return fold_add(&side->fold, in);
}

static Entry *add(Scene *s, Side *side, InputKind kind, const char *message)
{
    return add_to(s, side, kind, message, ORDER, ORDER);
}

static void on_loaded(void *ctx, DbTxn *txn, const Error *err)
{
    Scene *s = ctx;
    s->done = true;
    if (err != NULL) {
        fail_msg("%s", err->text);
    }
    saga_sql_loaded(txn, s->fold);
}

static void on_stored(void *ctx, DbTxn *txn, const Error *err)
{
    Scene *s = ctx;
    s->done = true;
    if (err != NULL) {
        fail_msg("%s", err->text);
    }
    saga_sql_stored(txn, s->fold, s->rows, s->row_count);
}

static void load_and_decide(Scene *s, Side *side)
{
    DbTxn *txn = db_txn_new(s->fx->pool);
    saga_sql_load(txn, &side->fold);
    s->fold = &side->fold;
    s->done = false;
    db_txn_submit(txn, on_loaded, s);
    assert_true(run_for(&s->fx->loop, &s->done, true, WAIT_MS));
    fold_run(&side->fold);
}

static void make_rows(Scene *s, Side *side)
{
    static const Recipient recipient = {.email = {"a@b.cd", 6}, .full_name = {"A", 1}};
    Error err = {0};
    for (size_t i = 0; i < side->fold.command_count; i++) {
        const Command *command = &side->fold.commands[i];
        OutRow *row = &side->rows[side->row_count++];
        *row = (OutRow){
            .order = command->order, .traceparent = STR_EMPTY, .initiator = STR("caused-by")};
        assert_true(
            command->command == COMMAND_NONE
                ? message_timeout(command, NOW_US, s->arena, &row->message, &err)
                : message_command(command, &recipient, s->arena, &row->message, &err));
        row->message.happened_at_us = NOW_US;
        row->body = row->message.payload;
    }
}

static void submit_store(Scene *s, Side *side)
{
    for (size_t i = 0; i < side->fold.order_count; i++) {
        side->fold.order_list[i]->recipient = STR("sealed");
    }
    make_rows(s, side);
    DbTxn *txn = db_txn_new(s->fx->pool);
    saga_sql_store(txn, &side->fold, side->rows, side->row_count);
    s->fold = &side->fold;
    s->rows = side->rows;
    s->row_count = side->row_count;
    s->done = false;
    db_txn_submit(txn, on_stored, s);
}

static void store(Scene *s, Side *side)
{
    submit_store(s, side);
    assert_true(run_for(&s->fx->loop, &s->done, true, WAIT_MS));
}

static bool is_lost(const Side *side)
{
    return side->fold.order_list[0]->is_lost;
}

static void run_side(Scene *s, Side *side)
{
    load_and_decide(s, side);
    store(s, side);
}

static void of_two_that_place_an_order_one_does(void **state)
{
    Scene *s = *state;
    Side a = {0}, b = {0};
    add(s, &a, INPUT_CHECKED_OUT, "m-a");
    add(s, &b, INPUT_CHECKED_OUT, "m-b");
    load_and_decide(s, &a);
    load_and_decide(s, &b);
    store(s, &a);
    store(s, &b);
    assert_false(is_lost(&a));
    assert_true(is_lost(&b));
    assert_true(a.rows[0].sequence_number > 0 && a.rows[1].sequence_number > 0);
    assert_int_equal(b.rows[0].sequence_number, 0);
    assert_int_equal(
        admin_count(s->fx->admin, "SELECT count(*) FROM order_saga.outbox_message"), 2);
    assert_int_equal(admin_count(s->fx->admin, "SELECT count(*) FROM order_saga.inbox_state"), 1);
    fold_done(&a.fold);
    fold_done(&b.fold);
}

static void of_two_that_end_an_order_one_does_and_the_other_decides_again(void **state)
{
    Scene *s = *state;
    Side placed = {0}, a = {0}, b = {0}, again = {0};
    add(s, &placed, INPUT_CHECKED_OUT, "m-0");
    run_side(s, &placed);
    add(s, &a, INPUT_COMPLETED, "m-a");
    add(s, &b, INPUT_CANCELLED, "m-b");
    load_and_decide(s, &a);
    load_and_decide(s, &b);
    store(s, &b);
    store(s, &a);
    assert_true(is_lost(&a) && !is_lost(&b));
    const Entry *entry = add(s, &again, INPUT_COMPLETED, "m-a");
    run_side(s, &again);
    assert_false(is_lost(&again));
    assert_int_equal(entry->verdict, VERDICT_CONFLICT);
    assert_int_equal(again.fold.order_list[0]->total_micros, 19990000);
    assert_int_equal(
        admin_count(
            s->fx->admin,
            "SELECT count(*) FROM order_saga.outbox_message WHERE message_type = 'CompleteOrder'"),
        0);
    assert_int_equal(
        admin_count(
            s->fx->admin,
            "SELECT version FROM order_saga.order_state WHERE current_state = 'Cancelled'"),
        2);
    fold_done(&placed.fold);
    fold_done(&a.fold);
    fold_done(&b.fold);
    fold_done(&again.fold);
}

static void an_event_and_its_order_do_not_miss_each_other(void **state)
{
    Scene *s = *state;
    for (int first = 0; first < 2; first++) {
        admin_exec(
            s->fx->admin,
            "TRUNCATE order_saga.order_state, order_saga.inbox_state, order_saga.outbox_message");
        Side event = {0}, order = {0}, again = {0};
        add(s, &event, INPUT_COMPLETED, "m-early");
        add(s, &order, INPUT_CHECKED_OUT, "m-out");
        load_and_decide(s, &event);
        load_and_decide(s, &order);
        store(s, first == 0 ? &event : &order);
        store(s, first == 0 ? &order : &event);
        assert_false(is_lost(first == 0 ? &event : &order));
        assert_true(is_lost(first == 0 ? &order : &event));
        if (first == 0) {
            add(s, &again, INPUT_CHECKED_OUT, "m-out");
        } else {
            add(s, &again, INPUT_COMPLETED, "m-early");
        }
        run_side(s, &again);
        assert_false(is_lost(&again));
        assert_int_equal(again.fold.order_list[0]->state, ORDER_COMPLETED);
        assert_int_equal(
            admin_count(
                s->fx->admin,
                "SELECT count(*) FROM order_saga.inbox_state WHERE verdict = 'applied' AND "
                "event IS NULL"),
            2);
        fold_done(&event.fold);
        fold_done(&order.fold);
        fold_done(&again.fold);
    }
}

static void a_message_twice_is_counted_and_known(void **state)
{
    Scene *s = *state;
    Side a = {0}, b = {0};
    add(s, &a, INPUT_CHECKED_OUT, "m-a");
    run_side(s, &a);
    const Entry *entry = add(s, &b, INPUT_CHECKED_OUT, "m-a");
    add(s, &b, INPUT_CHECKED_OUT, "m-a");
    run_side(s, &b);
    assert_true(entry->is_known && entry->verdict == VERDICT_DUPLICATE);
    assert_false(is_lost(&b));
    assert_int_equal(
        admin_count(
            s->fx->admin,
            "SELECT receive_count FROM order_saga.inbox_state WHERE verdict = 'applied'"),
        3);
    fold_done(&a.fold);
    fold_done(&b.fold);
}

// The saga has an id of its own, and who completes the order knows only the order's: behind it, in
// the same batch on either side, and before it.
static void an_event_finds_its_order_by_the_order_id(void **state)
{
    Scene *s = *state;
    for (int how = 0; how < 4; how++) {
        admin_exec(
            s->fx->admin,
            "TRUNCATE order_saga.order_state, order_saga.inbox_state, order_saga.outbox_message");
        Side one = {0}, two = {0};
        Side *first = how == 0 || how == 3 ? &one : &two;
        if (how == 0 || how == 1) {
            add_to(s, first, INPUT_CHECKED_OUT, "m-out", SAGA, ORDER);
        } else {
            add_to(s, first, INPUT_COMPLETED, "m-done", ORDER, ORDER);
        }
        if (first == &one) {
            run_side(s, &one);
        }
        if (how == 0 || how == 1) {
            add_to(s, &two, INPUT_COMPLETED, "m-done", ORDER, ORDER);
        } else {
            add_to(s, &two, INPUT_CHECKED_OUT, "m-out", SAGA, ORDER);
        }
        run_side(s, &two);
        assert_int_equal(
            admin_count(
                s->fx->admin,
                "SELECT count(*) FROM order_saga.order_state WHERE correlation_id = '" SAGA
                "' AND order_id = '" ORDER "' AND current_state = 'Completed'"),
            1);
        assert_int_equal(
            admin_count(
                s->fx->admin,
                "SELECT count(*) FROM order_saga.inbox_state WHERE verdict = 'applied' AND "
                "correlation_id = '" SAGA "'"),
            2);
        assert_int_equal(
            admin_count(s->fx->admin, "SELECT count(*) FROM order_saga.order_state"), 1);
        if (first == &one) {
            fold_done(&one.fold);
        }
        fold_done(&two.fold);
    }
}

// Whoever comes second must not write an order that only now is seen to be there by its order id.
static void an_event_by_its_order_id_and_its_order_do_not_miss_each_other(void **state)
{
    Scene *s = *state;
    for (int first = 0; first < 2; first++) {
        admin_exec(
            s->fx->admin,
            "TRUNCATE order_saga.order_state, order_saga.inbox_state, order_saga.outbox_message");
        Side event = {0}, order = {0};
        add_to(s, &event, INPUT_COMPLETED, "m-early", ORDER, ORDER);
        add_to(s, &order, INPUT_CHECKED_OUT, "m-out", SAGA, ORDER);
        load_and_decide(s, &event);
        load_and_decide(s, &order);
        store(s, first == 0 ? &event : &order);
        store(s, first == 0 ? &order : &event);
        assert_false(is_lost(first == 0 ? &event : &order));
        assert_true(is_lost(first == 0 ? &order : &event));
        fold_done(&event.fold);
        fold_done(&order.fold);
    }
}

// Rows are locked in the order of their keys, whatever the order of the events: two processes with
// the same orders cannot hold what the other one waits for.
static void orders_are_written_in_the_order_of_their_keys(void **state)
{
    Scene *s = *state;
    Side placed = {0}, ended = {0};
    add_to(s, &placed, INPUT_CHECKED_OUT, "m-1", ORDER, ORDER);
    add_to(s, &placed, INPUT_CHECKED_OUT, "m-2", LATER, LATER);
    run_side(s, &placed);
    add_to(s, &ended, INPUT_COMPLETED, "m-3", LATER, LATER);
    add_to(s, &ended, INPUT_COMPLETED, "m-4", ORDER, ORDER);
    load_and_decide(s, &ended);
    admin_exec(s->fx->admin, "BEGIN");
    admin_exec(
        s->fx->admin,
        "SELECT FROM order_saga.order_state WHERE correlation_id = '" ORDER "' FOR UPDATE");
    submit_store(s, &ended);
    assert_false(run_for(&s->fx->loop, &s->done, true, 500));
    admin_exec(
        s->fx->admin,
        "SELECT FROM order_saga.order_state WHERE correlation_id = '" LATER "' FOR UPDATE NOWAIT");
    admin_exec(s->fx->admin, "COMMIT");
    assert_true(run_for(&s->fx->loop, &s->done, true, WAIT_MS));
    assert_false(ended.fold.order_list[0]->is_lost || ended.fold.order_list[1]->is_lost);
    assert_int_equal(
        admin_count(
            s->fx->admin,
            "SELECT count(*) FROM order_saga.order_state WHERE current_state = 'Completed'"),
        2);
    fold_done(&placed.fold);
    fold_done(&ended.fold);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(of_two_that_place_an_order_one_does),
        TEST(of_two_that_end_an_order_one_does_and_the_other_decides_again),
        TEST(an_event_and_its_order_do_not_miss_each_other),
        TEST(a_message_twice_is_counted_and_known),
        TEST(an_event_finds_its_order_by_the_order_id),
        TEST(an_event_by_its_order_id_and_its_order_do_not_miss_each_other),
        TEST(orders_are_written_in_the_order_of_their_keys),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
