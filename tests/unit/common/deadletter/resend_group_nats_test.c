// SPDX-License-Identifier: Apache-2.0
// Letters handled together, on a real server.
#include "common/deadletter/resend_group.h"
#include "tests/unit/common/bus/bus_tools.h"
#include "tests/unit/common/deadletter/dead_letters.h"

static Rig rig;

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)duplicate;
    assert_null(err);
    *(uint64_t *)ctx = sequence;
}

static uint64_t store(Arena *arena, const char *id, const DeadLetter *letter)
{
    uint64_t sequence = 0;
    BusOut out = {
        .subject = "ntf.dead.dispatcher.demo",
        .event_id = str_from(id),
        .payload = packed(arena, &letter->base)};
    bus_publish(rig.bus, &out, on_stored, &sequence);
    WAIT(&rig, sequence > 0);
    return sequence;
}

static uint64_t store_mail(Arena *arena, const char *id)
{
    Rendered *mail = rendered_new(arena);
    return store(
        arena, id, letter_new(arena, "ntf.rendered.normal.demo", packed(arena, &mail->base)));
}

static void on_step(void *ctx)
{
    *(bool *)ctx = true;
}

static void step(
    ResendGroup *group, void (*take)(ResendGroup *group, void (*done)(void *ctx), void *ctx))
{
    bool done = false;
    take(group, on_step, &done);
    WAIT_FLAG(&rig, done);
}

static void resend_all(ResendGroup *group)
{
    ResendRules rules = {.now_us = NOW_US};
    for (size_t i = 0; i < group->count; i++) {
        if (group->tasks[i].fate == LETTER_OPEN) {
            resend_task_prepare(&group->tasks[i], &rules);
        }
    }
}

static void each_letter_is_published_and_then_deleted(void **state)
{
    Arena *arena = *state;
    ResendGroup group;
    uint64_t mail = store_mail(arena, "mail");
    uint64_t unread = store(arena, "unread", letter_new(arena, "ntf.nowhere.demo", STR("x")));
    resend_group_begin(&group, rig.bus, arena, false);
    ResendTask *one = resend_group_add(&group, mail);
    ResendTask *refused = resend_group_add(&group, unread);
    ResendTask *missing = resend_group_add(&group, unread + 7);
    step(&group, resend_group_fetch);
    assert_int_equal(one->fate, LETTER_OPEN);
    assert_string_equal(one->letter.notification_id, NTF_ID);
    assert_int_equal(missing->fate, LETTER_MISSING);
    resend_all(&group);
    assert_int_equal(refused->fate, LETTER_REFUSED);
    assert_int_equal(refused->err.kind, ERROR_PERMANENT);
    assert_int_equal(one->attempt, 7);
    step(&group, resend_group_publish);
    assert_int_equal(rig_count(&rig, "RENDERED_NORMAL"), 1);
    assert_int_equal(rig_count(&rig, "DEAD"), 2); // deleted only in a step of its own
    step(&group, resend_group_delete);
    assert_int_equal(one->fate, LETTER_OPEN);
    assert_int_equal(rig_count(&rig, "DEAD"), 1); // the refused one
}

// As after a crash between the two steps.
static void a_repeat_publishes_nothing_new_and_deletes(void **state)
{
    Arena *arena = *state;
    ResendGroup group;
    uint64_t mail = store_mail(arena, "mail");
    for (int i = 0; i < 2; i++) {
        resend_group_begin(&group, rig.bus, arena, true);
        resend_group_add(&group, mail);
        step(&group, resend_group_fetch);
        resend_all(&group);
        step(&group, resend_group_publish);
        assert_int_equal(group.tasks[0].fate, LETTER_OPEN);
    }
    assert_int_equal(rig_count(&rig, "RENDERED_NORMAL"), 1);
    step(&group, resend_group_delete);
    assert_int_equal(rig_count(&rig, "DEAD"), 0);
    step(&group, resend_group_delete);
    assert_int_equal(group.tasks[0].fate, LETTER_UNDELETED);
    assert_int_equal(group.tasks[0].err.kind, ERROR_CONFLICT);
}

static void a_duplicate_under_its_own_id_keeps_its_letter(void **state)
{
    Arena *arena = *state;
    ResendGroup group;
    uint64_t mail = store_mail(arena, "mail");
    for (int i = 0; i < 2; i++) {
        resend_group_begin(&group, rig.bus, arena, false);
        resend_group_add(&group, mail);
        step(&group, resend_group_fetch);
        resend_all(&group);
        group.tasks[0].own_id = true;
        step(&group, resend_group_publish);
    }
    assert_int_equal(group.tasks[0].fate, LETTER_UNPUBLISHED);
    assert_non_null(strstr(group.tasks[0].err.text, "try again in two minutes"));
    step(&group, resend_group_delete);
    assert_int_equal(rig_count(&rig, "DEAD"), 1);
}

static void a_step_with_nothing_to_do_is_done_at_once(void **state)
{
    ResendGroup group;
    bool done = false;
    resend_group_begin(&group, rig.bus, *state, false);
    resend_group_publish(&group, on_step, &done);
    assert_true(done);
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

static int set_up(void **state)
{
    *state = arena_new(0);
    rig_fresh(&rig, 30000);
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_letter_is_published_and_then_deleted),
        TEST(a_repeat_publishes_nothing_new_and_deletes),
        TEST(a_duplicate_under_its_own_id_keeps_its_letter),
        TEST(a_step_with_nothing_to_do_is_done_at_once),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
