// SPDX-License-Identifier: Apache-2.0
// A writer's wait for the fold, by the role that gateway logs in with; a test plays the fold.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/recipients/people_wait.h"
#include "tests/unit/common/db/migrated.h"
#include "tests/unit/common/db/pg_fixture.h"

typedef struct Scene {
    Fixture *fx;
    PeopleWait *wait;
    bool freed;
} Scene;

typedef struct Writer {
    bool answered;
    bool seen;
} Writer;

static void on_seen(void *ctx, bool seen)
{
    Writer *writer = ctx;
    writer->answered = true;
    writer->seen = seen;
}

static void on_freed(void *ctx)
{
    *(bool *)ctx = true;
}

static int set_up(void **state)
{
    char url[512];
    Scene *s = xcalloc(1, sizeof *s);
    s->fx = fixture_new(&(DbPoolOptions){
        .url = url_with("&user=stentor_gateway", url, sizeof url), .connections = 1});
    admin_exec(s->fx->admin, "TRUNCATE people.positions");
    s->wait = people_wait_new(s->fx->pool);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Scene *s = *state;
    people_wait_free(s->wait, on_freed, &s->freed);
    assert_true(run_for(&s->fx->loop, &s->freed, true, WAIT_MS));
    fixture_free(s->fx);
    free(s);
    return 0;
}

static void fold_up_to(Scene *s, int sequence)
{
    char sql[320];
    snprintf(
        sql, sizeof sql,
        "INSERT INTO people.positions (projection, stream, sequence, stream_created_at) VALUES "
        "('people', 'PEOPLE', %d, now()) ON CONFLICT (projection, stream) DO UPDATE SET sequence = "
        "excluded.sequence",
        sequence);
    admin_exec(s->fx->admin, sql);
}

static bool is_seen(Scene *s, uint64_t sequence)
{
    Writer writer = {0};
    people_wait(s->wait, sequence, on_seen, &writer);
    assert_false(writer.answered); // never from inside the call
    assert_true(run_for(&s->fx->loop, &writer.answered, true, WAIT_MS));
    return writer.seen;
}

static void what_is_folded_is_seen_and_what_is_not_after_the_patience_is_not(void **state)
{
    Scene *s = *state;
    assert_false(is_seen(s, 1)); // no position yet
    fold_up_to(s, 5);
    assert_true(is_seen(s, 4));
    assert_true(is_seen(s, 5));
    assert_false(is_seen(s, 6));
}

static void a_writer_is_held_until_its_own_event_is_folded(void **state)
{
    Scene *s = *state;
    Writer first = {0};
    Writer second = {0};
    fold_up_to(s, 5);
    people_wait(s->wait, 6, on_seen, &first);
    people_wait(s->wait, 1000, on_seen, &second);
    fold_up_to(s, 6);
    assert_true(run_for(&s->fx->loop, &first.answered, true, WAIT_MS));
    assert_true(first.seen);
    assert_true(run_for(&s->fx->loop, &second.answered, true, WAIT_MS));
    assert_false(second.seen);
}

// A stream that is made again, or restored from a copy, gives low sequences to new events.
static void a_position_of_before_the_log_began_again_answers_nobody(void **state)
{
    Scene *s = *state;
    fold_up_to(s, 100);
    assert_true(is_seen(s, 100));
    fold_up_to(s, 3);
    assert_false(is_seen(s, 4));
    fold_up_to(s, 4);
    assert_true(is_seen(s, 4));
}

static void who_still_waits_at_the_end_is_answered_as_not_seen(void **state)
{
    Scene *s = *state;
    Writer writer = {0};
    people_wait(s->wait, 1, on_seen, &writer);
    people_wait_free(s->wait, on_freed, &s->freed);
    assert_true(writer.answered);
    assert_false(writer.seen);
    assert_true(run_for(&s->fx->loop, &s->freed, true, WAIT_MS));
    s->freed = false;
    s->wait = people_wait_new(s->fx->pool); // tear_down's
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            what_is_folded_is_seen_and_what_is_not_after_the_patience_is_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_writer_is_held_until_its_own_event_is_folded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_position_of_before_the_log_began_again_answers_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            who_still_waits_at_the_end_is_answered_as_not_seen, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, migrate_all, NULL);
}
