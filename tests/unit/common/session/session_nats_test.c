// SPDX-License-Identifier: Apache-2.0
// One command's calls to a real server.
#include "common/session/session.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { BLOCKED_MS = 60000, TICK_MS = 150 }; // TICK_MS: then a request's deadline is looked at

static Session session;

static void ask(void)
{
    Arena *arena = arena_new(0);
    Str reply;
    Error err = {0};
    bool fine =
        session_request(&session, "$JS.API.STREAM.INFO.CONFIG", STR("{}"), arena, &reply, &err);
    assert_string_equal(err.text, "");
    assert_true(fine);
    arena_free(arena);
}

static void get(void)
{
    Arena *arena = arena_new(0);
    BusMessage message;
    bool found = true;
    Error err = {0};
    const MessageQuery query = {.stream = "CONFIG", .last_of = "cfg.tenant.none.self"};
    bool fine = session_get_message(&session, &query, arena, &message, &found, &err);
    assert_string_equal(err.text, "");
    assert_true(fine && !found);
    arena_free(arena);
}

// As after a minute in Postgres: the loop's clock, which only a turn of the loop sets, is old.
static void block(void)
{
    uv_sleep(TICK_MS);
    uv_update_time(&session.loop);
    session.loop.time -= BLOCKED_MS;
}

static void a_call_after_a_minute_of_other_work_is_not_late(void **state)
{
    (void)state;
    block();
    ask();
    block();
    get();
}

static int open_session(void **state)
{
    (void)state;
    Rig rig = {0}; // makes the streams
    Error err = {0};
    const SessionOptions options = {
        .nats_url = getenv("STENTOR_TEST_NATS_URL"), .user = "", .password = ""};
    rig_open(&rig, options.nats_url);
    rig_fresh(&rig, 30000);
    rig_close(&rig);
    return session_open(&session, &options, &err) ? 0 : -1;
}

static int close_session(void **state)
{
    (void)state;
    session_close(&session);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_after_a_minute_of_other_work_is_not_late),
    };
    return cmocka_run_group_tests(tests, open_session, close_session);
}
