// SPDX-License-Identifier: Apache-2.0
#include "bus_tools.h"
#include "common/bus/config_mirror.h"

typedef struct Copy {
    size_t changes;
    bool refuse;
    char kind[32], tenant[32], key[64], payload[32];
} Copy;

static Rig rig;

static bool note_change(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    Copy *copy = ctx;
    copy->changes++;
    str_to_c(kind, copy->kind, sizeof copy->kind);
    str_to_c(tenant, copy->tenant, sizeof copy->tenant);
    str_to_c(key, copy->key, sizeof copy->key);
    str_to_c(message->payload, copy->payload, sizeof copy->payload);
    return copy->refuse ? error_set(err, ERROR_PERMANENT, "cannot be read") : true;
}

static void put(const char *subject, const char *payload)
{
    static int number;
    char id[32];
    Acks acks = {0};
    snprintf(id, sizeof id, "cfg-%d-%d", (int)getpid(), number++);
    publish_id(&rig, subject, id, payload, &acks);
    WAIT(&rig, acks.stored == 1);
}

static void end(ConfigMirror *mirror)
{
    rig.done = false;
    config_mirror_free(mirror, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
}

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig, getenv("STENTOR_TEST_NATS_URL"));
    rig_fresh(&rig, 0);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void the_last_entry_of_each_subject_is_read(void **state)
{
    (void)state;
    Copy copy = {0};
    put("cfg.template.acme.welcome", "old");
    put("cfg.template.acme.welcome", "new");
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    assert_false(config_mirror_ready(mirror));
    WAIT(&rig, config_mirror_ready(mirror));
    assert_int_equal(copy.changes, 1);
    assert_string_equal(copy.kind, "template");
    assert_string_equal(copy.tenant, "acme");
    assert_string_equal(copy.key, "welcome");
    assert_string_equal(copy.payload, "new");
    end(mirror);
}

static void a_change_arrives_within_a_second(void **state)
{
    (void)state;
    Copy copy = {0};
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    WAIT(&rig, config_mirror_ready(mirror));
    put("cfg.tenant.acme.sender.address", "x");
    uint64_t since = uv_now(&rig.loop);
    WAIT(&rig, copy.changes == 1);
    assert_true(uv_now(&rig.loop) - since < 1000);
    assert_string_equal(copy.key, "sender.address");
    end(mirror);
}

static void an_unreadable_entry_is_passed_over(void **state)
{
    (void)state;
    Copy copy = {.refuse = true};
    put("cfg.template.acme.a", "1");
    put("cfg.template.acme.b", "2");
    put("cfg.odd", "3");
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    WAIT(&rig, config_mirror_ready(mirror));
    assert_int_equal(copy.changes, 2);
    end(mirror);
}

static void count_ready(void *ctx)
{
    ++*(int *)ctx;
}

static void it_tells_once_that_it_is_ready_after_all_that_was_there(void **state)
{
    (void)state;
    Copy copy = {0};
    int told = 0;
    put("cfg.template.acme.a", "1");
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    config_mirror_on_ready(mirror, count_ready, &told);
    assert_int_equal(told, 0);
    WAIT(&rig, told == 1);
    assert_int_equal(copy.changes, 1);
    assert_true(config_mirror_ready(mirror));
    put("cfg.template.acme.b", "2");
    WAIT(&rig, copy.changes == 2);
    assert_int_equal(told, 1);
    end(mirror);
}

static void it_waits_for_the_stream_to_be_made(void **state)
{
    (void)state;
    Copy copy = {0};
    rig_ask(&rig, "$JS.API.STREAM.DELETE.CONFIG", "");
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    pass_ms(&rig, 300);
    assert_false(config_mirror_ready(mirror));
    rig_apply(&rig, 0);
    put("cfg.template.acme.a", "1");
    WAIT(&rig, config_mirror_ready(mirror) && copy.changes == 1);
    end(mirror);
}

static void it_can_be_freed_while_it_waits(void **state)
{
    (void)state;
    Copy copy = {0};
    rig_ask(&rig, "$JS.API.STREAM.DELETE.CONFIG", "");
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    pass_ms(&rig, 300);
    end(mirror);
    assert_int_equal(copy.changes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_last_entry_of_each_subject_is_read),
        TEST(a_change_arrives_within_a_second),
        TEST(an_unreadable_entry_is_passed_over),
        TEST(it_waits_for_the_stream_to_be_made),
        TEST(it_can_be_freed_while_it_waits),
        TEST(it_tells_once_that_it_is_ready_after_all_that_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
