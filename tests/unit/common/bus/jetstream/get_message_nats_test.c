// SPDX-License-Identifier: Apache-2.0
// One stored message asked of a real server.
#include "common/base/arena.h"
#include "common/bus/jetstream/get_message.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { MANY = 1000 };

static Rig rig;

typedef struct Got {
    Arena *arena;
    BusMessage message;
    bool found;
    bool done;
    Error err;
} Got;

static void on_message(void *ctx, Str reply, const Error *err)
{
    Got *got = ctx;
    got->err = err != NULL ? *err : (Error){0};
    if (err == NULL) {
        (void)get_message_reply(reply, "CONFIG", got->arena, &got->message, &got->found, &got->err);
    }
    got->done = true;
}

static Got get(Arena *arena, const MessageQuery *query)
{
    Got got = {.arena = arena};
    get_message(rig.bus, query, on_message, &got);
    WAIT_FLAG(&rig, got.done);
    return got;
}

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)duplicate;
    assert_null(err);
    *(uint64_t *)ctx = sequence;
}

static uint64_t store(const char *subject, const char *id, const char *payload)
{
    uint64_t sequence = 0;
    BusOut out = {.subject = subject, .event_id = str_from(id), .payload = str_from(payload)};
    bus_publish(rig.bus, &out, on_stored, &sequence);
    WAIT(&rig, sequence > 0);
    return sequence;
}

static void assert_is(const Got *got, uint64_t sequence, const char *payload)
{
    assert_int_equal(got->err.kind, ERROR_NONE);
    assert_true(got->found);
    assert_int_equal(got->message.sequence, sequence);
    assert_true(str_eq(got->message.payload, str_from(payload)));
    assert_true(got->message.stored_at_us > 0);
}

static void a_message_is_got_by_sequence_by_subject_and_by_what_comes_next(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    rig_fresh(&rig, 30000);
    uint64_t first = store("cfg.tenant.acme.self", "one", "1");
    uint64_t second = store("cfg.tenant.other.self", "two", "2");
    uint64_t third = store("cfg.tenant.acme.self", "three", "3");
    Got got = get(arena, &(MessageQuery){.stream = "CONFIG", .sequence = second});
    assert_is(&got, second, "2");
    assert_true(str_eq(got.message.subject, STR("cfg.tenant.other.self")));
    assert_true(str_eq(got.message.event_id, STR("two")));
    got = get(arena, &(MessageQuery){.stream = "CONFIG", .last_of = "cfg.tenant.acme.self"});
    assert_is(&got, third, "3");
    got = get(
        arena,
        &(MessageQuery){.stream = "CONFIG", .sequence = first + 1, .next_of = "cfg.tenant.acme.*"});
    assert_is(&got, third, "3");
    got = get(arena, &(MessageQuery){.stream = "CONFIG", .sequence = first, .next_of = ">"});
    assert_is(&got, first, "1");
    arena_free(arena);
}

static void what_is_not_there_is_none_and_a_missing_stream_is_an_error(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    rig_fresh(&rig, 30000);
    uint64_t only = store("cfg.tenant.acme.self", "one", "1");
    const MessageQuery none[] = {
        {.stream = "CONFIG", .sequence = only + 1},
        {.stream = "CONFIG", .sequence = only + 1, .next_of = ">"},
        {.stream = "CONFIG", .last_of = "cfg.tenant.unknown.self"},
        {.stream = "DEAD", .sequence = 1},
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        Got got = get(arena, &none[i]);
        assert_int_equal(got.err.kind, ERROR_NONE);
        assert_false(got.found);
    }
    Got got = get(arena, &(MessageQuery){.stream = "NOWHERE", .sequence = 1});
    assert_int_equal(got.err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(got.err.text, "not found"));
    arena_free(arena);
}

// Each caller of an API may ask for one; they are not so many workers.
static void a_thousand_at_once_are_all_answered(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    rig_fresh(&rig, 30000);
    uint64_t only = store("cfg.tenant.acme.self", "one", "1");
    Got *got = arena_array(arena, MANY, sizeof *got);
    MessageQuery query = {.stream = "CONFIG", .last_of = "cfg.tenant.acme.self"};
    for (size_t i = 0; i < MANY; i++) {
        got[i] = (Got){.arena = arena};
        get_message(rig.bus, &query, on_message, &got[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        WAIT_FLAG(&rig, got[i].done);
        assert_is(&got[i], only, "1");
    }
    arena_free(arena);
}

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig, getenv("STENTOR_TEST_NATS_URL"));
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_got_by_sequence_by_subject_and_by_what_comes_next),
        cmocka_unit_test(what_is_not_there_is_none_and_a_missing_stream_is_an_error),
        cmocka_unit_test(a_thousand_at_once_are_all_answered),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
