// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/worker.h"
#include "common/codec/event.h"
#include "stentor/v1/dead.pb-c.h"
#include "tests/unit/common/base/states/states_walk.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { ACK_WAIT_MS = 1500, LONG_ACK_WAIT_MS = 60000 };

static Rig rig;

typedef enum Behaviour {
    SETTLE_OK,
    HOLD,
    FAIL_PERMANENT,
    FAIL_TRANSIENT,
    FAIL_CANCELLED,
    AGAIN_SOON,
    EMIT,
    EMIT_NOWHERE,
    EMIT_REFUSED
} Behaviour;

typedef struct Hand {
    Behaviour behaviour;
    size_t seen, batches, largest;
    uint32_t delivered_max;
    Delivery *held[4096];
    size_t held_count;
    char first_payload[32], first_id[32], first_trace[64], first_subject[64];
    uint64_t first_sequence;
    int64_t first_stored_us;
} Hand;

static void emit_rendered(Delivery *d, const char *subject)
{
    char id[64];
    snprintf(id, sizeof id, "out-" STR_FMT, STR_ARG(d->message.event_id));
    delivery_emit(
        d, &(BusOut){.subject = subject, .event_id = str_from(id), .payload = d->message.payload});
}

static void behave(Hand *hand, Delivery *d)
{
    Error err;
    switch (hand->behaviour) {
    case SETTLE_OK:
        delivery_settle(d, NULL);
        break;
    case HOLD:
        hand->held[hand->held_count++] = d;
        break;
    case FAIL_PERMANENT:
        error_set(&err, ERROR_PERMANENT, "cannot be read");
        delivery_settle(d, &err);
        break;
    case FAIL_TRANSIENT:
        error_set(&err, ERROR_TRANSIENT, "not now");
        delivery_settle(d, &err);
        break;
    case FAIL_CANCELLED:
        hand->behaviour = SETTLE_OK;
        error_set(&err, ERROR_CANCELLED, "stopping");
        delivery_settle(d, &err);
        break;
    case AGAIN_SOON:
        hand->behaviour = SETTLE_OK;
        delivery_redeliver(d, 300);
        break;
    case EMIT:
        emit_rendered(d, "ntf.rendered.normal.acme");
        delivery_settle(d, NULL);
        break;
    case EMIT_NOWHERE:
        hand->behaviour = EMIT;
        emit_rendered(d, "no.stream.takes.this");
        delivery_settle(d, NULL);
        break;
    case EMIT_REFUSED:
        emit_rendered(d, "ntf.rendered.normal.acme");
        emit_rendered(d, "not a subject");
        delivery_settle(d, NULL);
        break;
    }
}

static void note_first(Hand *hand, const BusMessage *m)
{
    str_to_c(m->payload, hand->first_payload, sizeof hand->first_payload);
    str_to_c(m->event_id, hand->first_id, sizeof hand->first_id);
    str_to_c(m->traceparent, hand->first_trace, sizeof hand->first_trace);
    str_to_c(m->subject, hand->first_subject, sizeof hand->first_subject);
    hand->first_sequence = m->sequence;
    hand->first_stored_us = m->stored_at_us;
}

static void take(void *ctx, Delivery **deliveries, size_t count)
{
    Hand *hand = ctx;
    hand->batches++;
    hand->largest = count > hand->largest ? count : hand->largest;
    for (size_t i = 0; i < count; i++) {
        const BusMessage *m = &deliveries[i]->message;
        if (hand->seen++ == 0) {
            note_first(hand, m);
        }
        hand->delivered_max =
            m->delivered > hand->delivered_max ? m->delivered : hand->delivered_max;
        behave(hand, deliveries[i]);
    }
}

static Worker *start(Rig *on, Hand *hand, size_t in_flight_max)
{
    WorkerOptions options = {
        .consumer = topology_consumer("stentor-renderer", "REQUEST_NORMAL"),
        .batch_max = 100,
        .in_flight_max = in_flight_max,
        .stage = "renderer"};
    assert_non_null(options.consumer);
    Worker *worker = worker_new(on->bus, &options, take, hand);
    worker_start(worker);
    return worker;
}

static void end(Rig *on, Worker *worker)
{
    on->done = false;
    worker_free(worker, on_rig_done, on);
    WAIT_FLAG(on, on->done);
}

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig, getenv("STENTOR_TEST_NATS_URL"));
    rig_fresh(&rig, ACK_WAIT_MS);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static long ack_pending(Rig *on)
{
    const char *at = strstr(
        rig_ask(on, "$JS.API.CONSUMER.INFO.REQUEST_NORMAL.renderer", ""), "\"num_ack_pending\":");
    return at != NULL ? strtol(at + strlen("\"num_ack_pending\":"), NULL, 10) : -1;
}

static void a_delivery_carries_what_was_published(void **state)
{
    (void)state;
    Hand hand = {.behaviour = SETTLE_OK};
    publish_many(&rig, "ntf.request.normal.acme", "m", 1);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, hand.seen == 1);
    assert_string_equal(hand.first_payload, "0");
    assert_string_equal(hand.first_id, "m0");
    assert_string_equal(
        hand.first_trace, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_string_equal(hand.first_subject, "ntf.request.normal.acme");
    assert_int_equal(hand.first_sequence, 1);
    assert_true(hand.first_stored_us > 1700000000000000);
    end(&rig, worker);
}

static void batches_are_filled_and_everything_is_acked(void **state)
{
    (void)state;
    Hand hand = {.behaviour = SETTLE_OK};
    publish_many(&rig, "ntf.request.normal.acme", "m", 3000);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, hand.seen == 3000);
    assert_int_equal(hand.largest, 100);
    pass_ms(&rig, 50);
    assert_int_equal(ack_pending(&rig), 0);
    assert_int_equal(worker_stats(worker)->acked, 3000);
    assert_int_equal(worker_stats(worker)->redelivered, 0);
    end(&rig, worker);
}

static void in_flight_is_bounded(void **state)
{
    (void)state;
    Hand hand = {.behaviour = HOLD};
    publish_many(&rig, "ntf.request.normal.acme", "m", 500);
    Worker *worker = start(&rig, &hand, 60);
    WAIT(&rig, hand.held_count == 60);
    pass_ms(&rig, 200);
    assert_int_equal(hand.held_count, 60);
    assert_int_equal(worker_in_flight(worker), 60);
    hand.behaviour = SETTLE_OK;
    for (size_t i = 0; i < 60; i++) {
        delivery_settle(hand.held[i], NULL);
    }
    WAIT(&rig, hand.seen == 500);
    end(&rig, worker);
}

static void outputs_are_stored_before_the_input_is_acked(void **state)
{
    (void)state;
    Hand hand = {.behaviour = EMIT};
    publish_many(&rig, "ntf.request.normal.acme", "m", 1000);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, worker_stats(worker)->acked == 1000);
    assert_int_equal(rig_count(&rig, "RENDERED_NORMAL"), 1000);
    end(&rig, worker);
}

static void an_output_that_failed_brings_the_input_again(void **state)
{
    (void)state;
    Hand hand = {.behaviour = EMIT_NOWHERE};
    Rig hasty;
    Error err;
    publish_many(&rig, "ntf.request.normal.acme", "m", 1);
    rig_open(&hasty, NULL);
    hasty.bus = bus_open(
        &hasty.loop,
        &(BusOptions){
            .url = getenv("STENTOR_TEST_NATS_URL"),
            .service = "stentor-test",
            .publish_deadline_ms = 300},
        &err);
    Worker *worker = start(&hasty, &hand, 0);
    WAIT(&hasty, worker_stats(worker)->acked == 1);
    assert_int_equal(worker_stats(worker)->given_back, 1);
    assert_int_equal(hand.delivered_max, 2);
    assert_int_equal(rig_count(&rig, "RENDERED_NORMAL"), 1);
    BusStats stats = bus_stats(hasty.bus);
    assert_int_equal(stats.delivered, 2);
    assert_int_equal(stats.redelivered, 1);
    assert_int_equal(stats.acked, 1);
    assert_int_equal(stats.given_back, 1);
    assert_int_equal(stats.published, 3); // not the one that failed; a mark and its end (guard.h)
    end(&hasty, worker);
    rig_close(&hasty);
}

static void an_output_that_can_never_be_published_buries_the_input(void **state)
{
    (void)state;
    Hand hand = {.behaviour = EMIT_REFUSED};
    publish_many(&rig, "ntf.request.normal.acme", "m", 1);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, worker_stats(worker)->dead_letters == 1);
    assert_int_equal(worker_stats(worker)->given_back, 0);
    assert_int_equal(rig_count(&rig, "DEAD"), 1);
    WAIT(&rig, ack_pending(&rig) == 0);
    end(&rig, worker);
}

static void an_unsettled_delivery_comes_again(void **state)
{
    (void)state;
    Hand hand = {.behaviour = HOLD};
    Rig dying;
    publish_many(&rig, "ntf.request.normal.acme", "m", 1);
    rig_open(&dying, getenv("STENTOR_TEST_NATS_URL"));
    Worker *worker = start(&dying, &hand, 1);
    WAIT(
        &dying,
        hand.held_count == 1); // and its loop never turns again: a process that hangs or died
    Hand other = {.behaviour = SETTLE_OK};
    Worker *heir = start(&rig, &other, 0);
    WAIT(&rig, other.seen == 1);
    assert_int_equal(other.delivered_max, 2);
    WAIT(&rig, worker_stats(heir)->acked == 1);
    end(&rig, heir);
    delivery_settle(hand.held[0], NULL);
    end(&dying, worker);
    rig_close(&dying);
}

static void a_delivery_in_hand_is_renewed(void **state)
{
    (void)state;
    Hand hand = {.behaviour = HOLD};
    publish_many(&rig, "ntf.request.normal.acme", "m", 3);
    Worker *worker = start(&rig, &hand, 0);
    pass_ms(&rig, 3 * ACK_WAIT_MS);
    assert_int_equal(hand.seen, 3);
    for (size_t i = 0; i < hand.held_count; i++) {
        delivery_settle(hand.held[i], NULL);
    }
    end(&rig, worker);
}

static void the_unreadable_has_one_dead_letter(void **state)
{
    (void)state;
    Hand hand = {.behaviour = FAIL_PERMANENT};
    publish_many(&rig, "ntf.request.normal.acme", "m", 2);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, worker_stats(worker)->dead_letters == 2);
    assert_int_equal(rig_count(&rig, "DEAD"), 2);
    pass_ms(&rig, 100);
    assert_int_equal(ack_pending(&rig), 0);
    assert_int_equal(hand.seen, 2);
    end(&rig, worker);
}

static void a_copy_of_a_replay_never_has_a_dead_letter(void **state)
{
    (void)state;
    Hand hand = {.behaviour = FAIL_PERMANENT};
    Acks acks = {0};
    BusHeader mark = {BUS_REPLAY_HEADER, STR("run_1")};
    bus_publish(
        rig.bus,
        &(BusOut){
            .subject = "ntf.request.normal.acme",
            .event_id = STR("copy"),
            .payload = STR("x"),
            .headers = &mark,
            .header_count = 1},
        on_acks, &acks);
    WAIT(&rig, acks.stored == 1);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, worker_stats(worker)->acked == 1);
    assert_int_equal(rig_count(&rig, "DEAD"), 0);
    assert_int_equal(worker_stats(worker)->dead_letters, 0);
    publish_many(&rig, "ntf.request.normal.acme", "m", 1); // an original is
    WAIT(&rig, worker_stats(worker)->dead_letters == 1);
    assert_int_equal(rig_count(&rig, "DEAD"), 1);
    end(&rig, worker);
}

static void read_letter(void *ctx, Delivery **deliveries, size_t count)
{
    Arena *keep = ctx;
    Error err;
    assert_int_equal(count, 1);
    const Stentor__V1__DeadLetter *letter = (const Stentor__V1__DeadLetter *)event_unpack(
        &stentor__v1__dead_letter__descriptor, deliveries[0]->message.payload, keep, &err);
    assert_non_null(letter);
    assert_string_equal(letter->reason, "cannot be read");
    assert_string_equal(letter->stage, "renderer");
    assert_string_equal(letter->stream, "REQUEST_NORMAL");
    assert_string_equal(letter->subject, "ntf.request.normal.acme");
    assert_string_equal(letter->meta->tenant, "acme");
    assert_int_equal(letter->stream_sequence, 1);
    assert_int_equal(letter->payload.len, 1);
    assert_int_equal(letter->payload.data[0], '0');
    assert_true(str_eq(deliveries[0]->message.subject, STR("ntf.dead.renderer.acme")));
    delivery_settle(deliveries[0], NULL);
}

static void a_dead_letter_keeps_its_input_whole(void **state)
{
    (void)state;
    static const ConsumerSpec spec = {"DEAD", "reader", "test", 30, 100, false, false};
    Hand hand = {.behaviour = FAIL_PERMANENT};
    Arena *arena = arena_new(0);
    rig_ask(
        &rig, "$JS.API.CONSUMER.DURABLE.CREATE.DEAD.reader",
        "{\"stream_name\":\"DEAD\",\"config\":{\"durable_name\":\"reader\",\"ack_policy\":"
        "\"explicit\","
        "\"deliver_policy\":\"all\"}}");
    publish_many(&rig, "ntf.request.normal.acme", "m", 1);
    Worker *worker = start(&rig, &hand, 0);
    Worker *reader = worker_new(rig.bus, &(WorkerOptions){.consumer = &spec}, read_letter, arena);
    worker_start(reader);
    WAIT(&rig, worker_stats(reader)->acked == 1);
    end(&rig, reader);
    end(&rig, worker);
    arena_free(arena);
}

static void a_transient_failure_comes_again_after_a_second(void **state)
{
    (void)state;
    Hand hand = {.behaviour = FAIL_TRANSIENT};
    publish_many(&rig, "ntf.request.normal.acme", "m", 1);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, hand.seen == 1);
    hand.behaviour = SETTLE_OK;
    pass_ms(&rig, 700);
    assert_int_equal(hand.seen, 1);
    WAIT(&rig, hand.seen == 2);
    assert_int_equal(hand.delivered_max, 2);
    end(&rig, worker);
}

static void again_waits_as_long_as_asked(void **state)
{
    (void)state;
    Hand hand = {.behaviour = AGAIN_SOON};
    publish_many(&rig, "ntf.request.normal.acme", "m", 1);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, hand.seen == 1);
    pass_ms(&rig, 150);
    assert_int_equal(hand.seen, 1);
    WAIT(&rig, hand.seen == 2);
    end(&rig, worker);
}

static void what_is_cancelled_goes_back_at_once(void **state)
{
    (void)state;
    Hand hand = {.behaviour = FAIL_CANCELLED};
    publish_many(&rig, "ntf.request.normal.acme", "m", 1);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, hand.seen == 1);
    uint64_t since = uv_now(&rig.loop);
    WAIT(&rig, hand.seen == 2);
    assert_true(uv_now(&rig.loop) - since < 500);
    end(&rig, worker);
}

static void a_stop_waits_for_what_is_in_hand(void **state)
{
    (void)state;
    Hand hand = {.behaviour = HOLD};
    publish_many(&rig, "ntf.request.normal.acme", "m", 10);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, hand.held_count == 10);
    rig.done = false;
    worker_stop(worker, on_rig_done, &rig);
    publish_many(&rig, "ntf.request.normal.acme", "late", 5);
    pass_ms(&rig, 100);
    assert_false(rig.done);
    assert_int_equal(hand.seen, 10);
    for (size_t i = 0; i < 10; i++) {
        assert_false(rig.done);
        delivery_settle(hand.held[i], NULL);
    }
    WAIT_FLAG(&rig, rig.done);
    end(&rig, worker);
    Hand other = {.behaviour = SETTLE_OK};
    Worker *heir = start(&rig, &other, 0);
    WAIT(&rig, other.seen == 5);
    end(&rig, heir);
}

// What a release build does with a bug: the move is not made, and the next worker gets everything.
static void a_refused_move_changes_nothing(void **state)
{
    (void)state;
    Hand hand = {.behaviour = HOLD};
    publish_many(&rig, "ntf.request.normal.acme", "m", 2);
    Worker *worker = start(&rig, &hand, 0);
    WAIT(&rig, hand.held_count == 2);
    states_survive(true);
    worker_start(worker); // it runs already
    rig.done = false;
    worker_stop(worker, on_rig_done, &rig);
    worker_stop(worker, NULL, NULL); // the first is answered
    worker_start(worker);            // what is stopped takes nothing any more
    publish_many(&rig, "ntf.request.normal.acme", "late", 3);
    pass_ms(&rig, 100);
    assert_int_equal(hand.seen, 2);
    assert_false(rig.done);
    for (size_t i = 0; i < 2; i++) {
        delivery_settle(hand.held[i], NULL);
    }
    WAIT_FLAG(&rig, rig.done);
    rig.done = false;
    worker_free(worker, on_rig_done, &rig);
    worker_free(worker, NULL, NULL); // likewise
    states_survive(false);
    WAIT_FLAG(&rig, rig.done);
    Hand other = {.behaviour = SETTLE_OK};
    Worker *heir = start(&rig, &other, 0);
    WAIT(&rig, other.seen == 3);
    end(&rig, heir);
}

// What a heir sees when ack_wait would keep it waiting for longer than the test does.
static void expect_at_once(size_t count)
{
    Hand hand = {.behaviour = SETTLE_OK};
    Worker *heir = start(&rig, &hand, 0);
    WAIT(&rig, hand.seen == count);
    WAIT(&rig, ack_pending(&rig) == 0);
    end(&rig, heir);
}

static void what_a_leaving_worker_pulled_goes_to_the_next_at_once(void **state)
{
    (void)state;
    Hand hand = {.behaviour = HOLD};
    Rig leaving;
    rig_fresh(&rig, LONG_ACK_WAIT_MS);
    rig_open(&leaving, getenv("STENTOR_TEST_NATS_URL"));
    Worker *worker = start(&leaving, &hand, 0);
    pass_ms(&leaving, 50);
    worker_pause(worker, true);
    publish_many(&rig, "ntf.request.normal.acme", "m", 20);
    WAIT(&leaving, worker_stats(worker)->received == 20);
    leaving.done = false;
    worker_stop(worker, on_rig_done, &leaving);
    publish_many(&rig, "ntf.request.normal.acme", "stopping", 3); // for pulls that are still open
    WAIT_FLAG(&leaving, leaving.done);
    end(&leaving, worker);
    publish_many(&rig, "ntf.request.normal.acme", "stopped", 2);
    pass_ms(&leaving, 50);
    rig_close(&leaving);
    expect_at_once(25);
}

static void what_a_leaving_worker_cancels_goes_to_the_next_at_once(void **state)
{
    (void)state;
    Hand hand = {.behaviour = HOLD};
    Rig leaving;
    Error err;
    rig_fresh(&rig, LONG_ACK_WAIT_MS);
    publish_many(&rig, "ntf.request.normal.acme", "m", 10);
    rig_open(&leaving, getenv("STENTOR_TEST_NATS_URL"));
    Worker *worker = start(&leaving, &hand, 0);
    WAIT(&leaving, hand.held_count == 10);
    leaving.done = false;
    worker_stop(worker, on_rig_done, &leaving);
    error_set(&err, ERROR_CANCELLED, "stopping");
    for (size_t i = 0; i < 10; i++) {
        delivery_settle(hand.held[i], &err);
    }
    WAIT_FLAG(&leaving, leaving.done);
    end(&leaving, worker);
    rig_close(&leaving);
    expect_at_once(10);
}

static void a_paused_worker_hands_nothing_over(void **state)
{
    (void)state;
    Hand hand = {.behaviour = SETTLE_OK};
    Worker *worker = start(&rig, &hand, 0);
    worker_pause(worker, true);
    publish_many(&rig, "ntf.request.normal.acme", "m", 10);
    pass_ms(&rig, 100);
    assert_int_equal(hand.seen, 0);
    worker_pause(worker, false);
    WAIT(&rig, hand.seen == 10);
    end(&rig, worker);
}

// Its open request brings what is published after the yield to it, too.
static void what_waits_in_a_worker_that_yields_comes_to_the_other(void **state)
{
    (void)state;
    Hand first = {.behaviour = SETTLE_OK}, second = {.behaviour = SETTLE_OK};
    WorkerOptions options = {
        .consumer = topology_consumer("stentor-renderer", "REQUEST_NORMAL"),
        .stage = "renderer",
        .yields = true};
    Worker *a = worker_new(rig.bus, &options, take, &first);
    worker_start(a);
    publish_many(&rig, "ntf.request.normal.acme", "before", 1);
    WAIT(&rig, first.seen == 1);
    worker_pause(a, true);
    publish_many(&rig, "ntf.request.normal.acme", "waits", 10);
    WAIT(&rig, worker_stats(a)->received == 11);
    worker_yield(a);
    publish_many(&rig, "ntf.request.normal.acme", "later", 5);
    WAIT(&rig, worker_stats(a)->given_back >= 15);
    Rig other;
    rig_open(&other, getenv("STENTOR_TEST_NATS_URL"));
    Worker *b = start(&other, &second, 0);
    WAIT(&other, second.seen == 15);
    assert_int_equal(first.seen, 1);
    end(&rig, a);
    end(&other, b);
    rig_close(&other);
}

static void two_workers_share_the_work(void **state)
{
    (void)state;
    Hand first = {.behaviour = SETTLE_OK}, second = {.behaviour = SETTLE_OK};
    Rig other;
    rig_open(&other, getenv("STENTOR_TEST_NATS_URL"));
    Worker *a = start(&rig, &first, 50), *b = start(&other, &second, 50);
    WAIT(&rig, worker_stats(a)->received == 0);
    pass_ms(&rig, 50);
    pass_ms(&other, 50);
    publish_many(&rig, "ntf.request.normal.acme", "m", 2000);
    for (int i = 0; i < 4000 && first.seen + second.seen < 2000; i++) {
        uv_run(&rig.loop, UV_RUN_NOWAIT);
        uv_run(&other.loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
    assert_int_equal(first.seen + second.seen, 2000);
    assert_true(first.seen > 0 && second.seen > 0);
    end(&rig, a);
    end(&other, b);
    rig_close(&other);
}

static void the_worker_goes_on_after_the_server_restarted(void **state)
{
    (void)state;
    Rig own;
    Server server;
    Hand hand = {.behaviour = EMIT};
    server_init(&server);
    server_start(&server);
    rig_open(&own, server.url);
    rig_apply(&own, ACK_WAIT_MS);
    Worker *worker = start(&own, &hand, 0);
    publish_many(&own, "ntf.request.normal.acme", "a", 1000);
    WAIT(&own, hand.seen > 200);
    server_kill(&server, SIGKILL);
    pass_ms(&own, 200);
    server_start(&server);
    WAIT(&own, bus_connected(own.bus));
    publish_many(&own, "ntf.request.normal.acme", "b", 1000);
    WAIT(&own, rig_count(&own, "RENDERED_NORMAL") == 2000);
    WAIT(&own, ack_pending(&own) == 0);
    end(&own, worker);
    rig_close(&own);
    server_done(&server);
}

static void an_ack_never_reaches_another_message(void **state)
{
    (void)state;
    Rig own;
    Server server;
    Hand hand = {.behaviour = HOLD};
    server_init(&server);
    server_start(&server);
    rig_open(&own, server.url);
    rig_apply(&own, LONG_ACK_WAIT_MS);
    Worker *worker = start(&own, &hand, 0);
    pass_ms(&own, 300);
    server_kill(&server, SIGKILL);
    server_keep_copy(&server); // of the stream without messages
    server_start(&server);
    WAIT(&own, bus_connected(own.bus));
    publish_many(&own, "ntf.request.normal.acme", "old", 1);
    WAIT(&own, hand.held_count == 1);
    server_kill(&server, SIGKILL);
    server_put_copy_back(&server);
    server_start(&server);
    Rig other; // stores "new" before the worker's own loop hears of the new connection
    rig_open(&other, server.url);
    publish_many(&other, "ntf.request.normal.acme", "new", 1);
    rig_close(&other);
    WAIT(&own, hand.held_count == 2);
    assert_int_equal(hand.held[0]->message.sequence, hand.held[1]->message.sequence);
    delivery_settle(hand.held[0], NULL);
    pass_ms(&own, 300);
    assert_int_equal(ack_pending(&own), 1);
    assert_int_equal(bus_stats(own.bus).withheld, 1);
    delivery_settle(hand.held[1], NULL);
    WAIT(&own, ack_pending(&own) == 0);
    end(&own, worker);
    rig_close(&own);
    server_done(&server);
}

static void acks_outlive_a_connection_when_the_store_is_the_same(void **state)
{
    (void)state;
    Rig own;
    Server server;
    Hand hand = {.behaviour = HOLD};
    server_init(&server);
    server_start(&server);
    rig_open(&own, server.url);
    rig_apply(&own, LONG_ACK_WAIT_MS);
    Worker *worker = start(&own, &hand, 0);
    publish_many(&own, "ntf.request.normal.acme", "m", 3);
    WAIT(&own, hand.held_count == 3);
    server_kill(&server, SIGTERM);
    pass_ms(&own, 100);
    delivery_settle(hand.held[0], NULL); // while no worker is there to take it
    server_start(&server);
    WAIT(&own, bus_connected(own.bus));
    delivery_settle(hand.held[1], NULL); // before it is known
    WAIT(&own, ack_pending(&own) == 1);
    delivery_settle(hand.held[2], NULL); // after
    WAIT(&own, ack_pending(&own) == 0);
    assert_int_equal(bus_stats(own.bus).withheld, 0);
    end(&own, worker);
    rig_close(&own);
    server_done(&server);
}

static void a_worker_waits_for_its_consumer_to_be_made(void **state)
{
    (void)state;
    Hand hand = {.behaviour = SETTLE_OK};
    rig_ask(&rig, "$JS.API.CONSUMER.DELETE.REQUEST_NORMAL.renderer", "");
    log_level_set(LOG_ERROR);
    Worker *worker = start(&rig, &hand, 0);
    publish_many(&rig, "ntf.request.normal.acme", "m", 3);
    pass_ms(&rig, 200);
    rig_apply(&rig, ACK_WAIT_MS);
    WAIT(&rig, hand.seen == 3);
    end(&rig, worker);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_delivery_carries_what_was_published),
        TEST(batches_are_filled_and_everything_is_acked),
        TEST(in_flight_is_bounded),
        TEST(outputs_are_stored_before_the_input_is_acked),
        TEST(an_output_that_failed_brings_the_input_again),
        TEST(an_output_that_can_never_be_published_buries_the_input),
        TEST(an_unsettled_delivery_comes_again),
        TEST(a_delivery_in_hand_is_renewed),
        TEST(the_unreadable_has_one_dead_letter),
        TEST(a_copy_of_a_replay_never_has_a_dead_letter),
        TEST(a_dead_letter_keeps_its_input_whole),
        TEST(a_transient_failure_comes_again_after_a_second),
        TEST(again_waits_as_long_as_asked),
        TEST(what_is_cancelled_goes_back_at_once),
        TEST(a_stop_waits_for_what_is_in_hand),
        TEST(a_refused_move_changes_nothing),
        TEST(what_a_leaving_worker_pulled_goes_to_the_next_at_once),
        TEST(what_a_leaving_worker_cancels_goes_to_the_next_at_once),
        TEST(a_paused_worker_hands_nothing_over),
        TEST(what_waits_in_a_worker_that_yields_comes_to_the_other),
        TEST(two_workers_share_the_work),
        cmocka_unit_test(the_worker_goes_on_after_the_server_restarted),
        cmocka_unit_test(an_ack_never_reaches_another_message),
        cmocka_unit_test(acks_outlive_a_connection_when_the_store_is_the_same),
        TEST(a_worker_waits_for_its_consumer_to_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
