// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "services/cli/replay/replay_options.h"

static const int64_t NOW = INT64_C(1800000000) * 1000000;

static Arena *arena;

static int open_all(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

// Flags as pairs, "" for a switch.
static bool plan_of(const char *const *pairs, ReplayPlan *ret, Error *err)
{
    Cli cli = {.arena = arena, .settings = {.tenant = "acme"}};
    for (int i = 0; pairs[i] != NULL; i += 2) {
        cli.args.flags[cli.args.flag_count].name = pairs[i];
        cli.args.flags[cli.args.flag_count++].value = pairs[i + 1];
    }
    return replay_plan_read(&cli, NOW, ret, err);
}
#define PLAN(ret, err, ...) plan_of((const char *const[]){__VA_ARGS__, NULL}, (ret), (err))

static void only_the_streams_own_worker_is_a_target(void **state)
{
    (void)state;
    size_t count;
    const ConsumerSpec *consumers = topology_consumers(&count);
    ReplayPlan plan;
    Error err = {0};
    for (size_t i = 0; i < count; i++) {
        const char *const names[] = {consumers[i].name, consumers[i].service};
        for (int n = 0; n < 2; n++) {
            bool made = PLAN(
                &plan, &err, "stream", consumers[i].stream, "from-seq", "1", "to-service", names[n],
                "all-tenants", "");
            // A copy in the public log would be a second status for its subscribers.
            bool is_public = topology_stream(consumers[i].stream)->republish != NULL;
            assert_int_equal(made, !is_public);
            assert_true(!made || strcmp(plan.service, consumers[i].name) == 0);
            assert_true(made || strstr(err.text, "would reach its subscribers") != NULL);
        }
    }
    assert_false(PLAN(&plan, &err, "stream", "CONFIG", "from-seq", "1", "to-service", "renderer"));
    assert_non_null(strstr(err.text, "no service works on CONFIG"));
}

static void the_filter_of_a_tenant_is_within_the_streams_subjects(void **state)
{
    (void)state;
    size_t count;
    const StreamSpec *streams = topology_streams(&count);
    for (size_t i = 0; i < count; i++) {
        ReplayPlan plan = {.stream = &streams[i], .tenant = "acme"};
        Error err = {0};
        bool by_vendor = strcmp(streams[i].name, "INBOUND") == 0;
        // No tenant in the subject.
        if (by_vendor || strcmp(streams[i].name, "IN_HAND") == 0) {
            assert_false(
                PLAN(&plan, &err, "stream", streams[i].name, "from-seq", "1", "dry-run", ""));
            continue;
        }
        const char *filter = replay_filter(&plan, arena);
        // Given by hand it is accepted: every stream's row is right.
        bool ok = PLAN(
            &plan, &err, "stream", streams[i].name, "from-seq", "1", "dry-run", "", "subject",
            filter);
        if (!ok) {
            fail_msg("%s", err.text);
        }
    }
}

static void a_filter_outside_of_the_stream_is_refused(void **state)
{
    (void)state;
    const char *const bad[] = {
        "",
        "ntf.status",
        "ntf.*.acme",
        ">",
        "ntf.status.",
        "ntf.status..x",
        "ntf.status.>.x",
        "ntf.status.a*",
        "ntf.status.a b",
        "ntf.request.x"};
    ReplayPlan plan;
    Error err = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(PLAN(
            &plan, &err, "stream", "STATUS", "from-seq", "1", "dry-run", "", "subject", bad[i]));
        assert_int_equal(err.kind, ERROR_USAGE);
    }
}

static void a_continuation_says_all_that_was_said(void **state)
{
    (void)state;
    ReplayPlan plan;
    Error err = {0};
    assert_true(PLAN(
        &plan, &err, "stream", "EVENTS", "from-time", "1h", "subject", "evt.*.notify", "tenant",
        "other", "to-service", "ingest", "rate", "50/s", "run", "r1", "accept-again", ""));
    assert_string_equal(
        replay_continue(&plan, 8, 90, arena),
        "stentor replay --stream EVENTS --from-seq 8 --to-seq 90 --subject 'evt.*.notify' --tenant "
        "other --to-service ingest --rate 50/s --accept-again --run r1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_the_streams_own_worker_is_a_target),
        TEST(the_filter_of_a_tenant_is_within_the_streams_subjects),
        TEST(a_filter_outside_of_the_stream_is_refused),
        TEST(a_continuation_says_all_that_was_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
