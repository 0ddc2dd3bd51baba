// SPDX-License-Identifier: Apache-2.0
// What others ask of us, on a real server without accounts (with them: access_nats_test.c).
#include "common/bus/jetstream/serve.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { HELD_MAX = 8 };

static Rig rig;
static Server server;

typedef struct Held {
    Asked *at[HELD_MAX];
    size_t count;
    bool at_once;
} Held;

static const ServeOptions OPTIONS = {
    .subject = "ask.>", .queue = "q", .in_hand_max = 2, .bytes_max = 100, .busy = "busy"};

static void hold(void *ctx, Asked *asked)
{
    Held *held = ctx;
    if (held->at_once) {
        asked_answer(asked, asked->payload);
        return;
    }
    assert_true(held->count < HELD_MAX);
    held->at[held->count++] = asked;
}

static int open_rig(void **state)
{
    (void)state;
    server_init(&server);
    server_start(&server);
    rig_open(&rig, NULL);
    rig.bus = rig_bus(&rig, server.url, "stentor-test", NULL);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    server_done(&server);
    return 0;
}

typedef struct Answers {
    size_t count, busy, failed;
    char last[160];
} Answers;

static void on_answer(void *ctx, Str reply, const Error *err)
{
    Answers *answers = ctx;
    answers->count++;
    answers->failed += err != NULL ? 1 : 0;
    answers->busy += str_eq(reply, STR("busy")) ? 1 : 0;
    str_to_c(err != NULL ? str_from(err->text) : reply, answers->last, sizeof answers->last);
}

static void ask(Bus *bus, const char *payload, Answers *answers)
{
    bus_request(bus, "ask.a.b", str_from(payload), 3000, on_answer, answers);
}

static Serve *serve(Bus *bus, Held *held)
{
    Serve *made = serve_new(bus, &OPTIONS, hold, held);
    pass_ms(&rig, 50); // the subscription is there
    return made;
}

static void stop(Serve *serve)
{
    rig.done = false;
    serve_stop(serve, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
    serve_free(serve);
}

static void who_asks_is_answered_and_without_anyone_hears_so_at_once(void **state)
{
    (void)state;
    Held held = {.at_once = true};
    Answers answers = {0};
    Bus *other = rig_bus(&rig, server.url, "stentor-other", NULL);
    ask(rig.bus, "first", &answers);
    WAIT(&rig, answers.count == 1);
    assert_non_null(strstr(answers.last, "no responder"));
    Serve *made = serve(other, &held);
    ask(rig.bus, "second", &answers);
    WAIT(&rig, answers.count == 2);
    assert_string_equal(answers.last, "second");
    stop(made);
    ask(rig.bus, "third", &answers);
    WAIT(&rig, answers.count == 3);
    assert_non_null(strstr(answers.last, "no responder"));
    rig_close_bus(&rig, other);
}

static void what_is_beyond_its_bounds_is_answered_busy(void **state)
{
    (void)state;
    Held held = {0};
    Answers answers = {0};
    char large[128];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    Bus *other = rig_bus(&rig, server.url, "stentor-other", NULL);
    Serve *made = serve(other, &held);
    ask(rig.bus, large, &answers);
    WAIT(&rig, answers.busy == 1);
    for (int i = 0; i < 3; i++) {
        ask(rig.bus, "x", &answers);
    }
    WAIT(&rig, answers.busy == 2);
    WAIT(&rig, held.count == 2);
    asked_answer(held.at[0], STR("one"));
    ask(rig.bus, "y", &answers);
    WAIT(&rig, held.count == 3);
    asked_answer(held.at[1], STR("two"));
    asked_answer(held.at[2], STR("three"));
    WAIT(&rig, answers.count == 5);
    assert_int_equal(answers.failed, 0);
    stop(made);
    rig_close_bus(&rig, other);
}

static void a_stop_answers_what_was_taken(void **state)
{
    (void)state;
    Held held = {0};
    Answers answers = {0};
    Bus *other = rig_bus(&rig, server.url, "stentor-other", NULL);
    Serve *made = serve(other, &held);
    ask(rig.bus, "x", &answers);
    WAIT(&rig, held.count == 1);
    rig.done = false;
    serve_stop(made, on_rig_done, &rig);
    ask(rig.bus, "y", &answers); // before the server hears of the end, or after it
    pass_ms(&rig, 100);
    assert_false(rig.done);
    for (size_t i = 0; i < held.count; i++) {
        asked_answer(held.at[i], STR("late"));
    }
    WAIT_FLAG(&rig, rig.done);
    WAIT(&rig, answers.count == 2);
    assert_true(answers.failed == (held.count == 1 ? 1 : 0));
    serve_free(made);
    rig_close_bus(&rig, other);
}

static void it_is_served_again_after_a_lost_connection(void **state)
{
    (void)state;
    Held held = {.at_once = true};
    Answers answers = {0};
    Bus *other = rig_bus(&rig, server.url, "stentor-other", NULL);
    Serve *made = serve(other, &held);
    server_kill(&server, SIGKILL);
    WAIT(&rig, !bus_connected(other) && !bus_connected(rig.bus));
    server_start(&server);
    WAIT(&rig, bus_connected(other) && bus_connected(rig.bus));
    pass_ms(&rig, 50);
    ask(rig.bus, "again", &answers);
    WAIT(&rig, answers.count == 1);
    assert_string_equal(answers.last, "again");
    server_kill(&server, SIGKILL);
    WAIT(&rig, !bus_connected(other));
    stop(made); // without a server too
    server_start(&server);
    rig_close_bus(&rig, other);
}

static void the_headers_are_read(void **state)
{
    (void)state;
    Held held = {0};
    Arena *arena = arena_new(0);
    Bus *other = rig_bus(&rig, server.url, "stentor-other", NULL);
    Serve *made = serve(other, &held);
    BusHeader sent[] = {{"ce-id", STR("c-1")}, {"Stentor-Type", STR("t")}}, *headers;
    size_t count;
    assert_true(bus_send_event(
        rig.bus, &(BusOut){
                     .subject = "ask.x",
                     .event_id = STR("id"),
                     .payload = STR("p"),
                     .headers = sent,
                     .header_count = 2}));
    WAIT(&rig, held.count == 1);
    assert_true(asked_headers(held.at[0], arena, 3, &headers, &count));
    assert_int_equal(count, 3);
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += strcmp(headers[i].name, "ce-id") == 0 && str_eq(headers[i].value, STR("c-1"));
        found += strcmp(headers[i].name, "Nats-Msg-Id") == 0 && str_eq(headers[i].value, STR("id"));
    }
    assert_int_equal(found, 2);
    assert_false(asked_headers(held.at[0], arena, 2, &headers, &count));
    asked_answer(held.at[0], STR("to no process"));
    stop(made);
    arena_free(arena);
    rig_close_bus(&rig, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_is_answered_and_without_anyone_hears_so_at_once),
        cmocka_unit_test(what_is_beyond_its_bounds_is_answered_busy),
        cmocka_unit_test(a_stop_answers_what_was_taken),
        cmocka_unit_test(the_headers_are_read),
        cmocka_unit_test(it_is_served_again_after_a_lost_connection),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
