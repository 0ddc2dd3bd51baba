// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "common/config/config_mirror.h"
#include "stentor/v1/config.pb-c.h"
#include "tests/unit/common/bus/bus_tools.h"

typedef struct Copy {
    size_t changes;
    bool refuse;
    char kind[32], tenant[32], key[64];
    char word[32]; // of the last trigger
    size_t olds;   // triggers that say "old"
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
    if (str_eq(kind, STR("trigger"))) {
        copy->word[0] = '\0';
    }
    if (str_eq(kind, STR("trigger")) && message->payload.len > 0) {
        Stentor__V1__Trigger *entry = stentor__v1__trigger__unpack(
            NULL, message->payload.len, (const uint8_t *)message->payload.ptr);
        str_to_c(str_from(entry->template_), copy->word, sizeof copy->word);
        copy->olds += strcmp(copy->word, "old") == 0 ? 1 : 0;
        stentor__v1__trigger__free_unpacked(entry, NULL);
    }
    return copy->refuse ? error_set(err, ERROR_PERMANENT, "cannot be read") : true;
}

static void put(const char *subject, Str payload)
{
    static int number;
    char id[32];
    Acks acks = {0};
    snprintf(id, sizeof id, "cfg-%d-%d", (int)getpid(), number++);
    BusOut out = {.subject = subject, .event_id = str_from(id), .payload = payload};
    bus_publish(rig.bus, &out, on_acks, &acks);
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

// A trigger of acme's under this key; `word` is what it says.
static Str trigger(const char *key, const char *word)
{
    static uint8_t bytes[256];
    Stentor__V1__Trigger entry;
    stentor__v1__trigger__init(&entry);
    entry.tenant = (char *)(uintptr_t) "acme";
    entry.key = (char *)(uintptr_t)key;
    entry.template_ = (char *)(uintptr_t)word;
    return str_of((char *)bytes, stentor__v1__trigger__pack(&entry, bytes));
}

static void put_trigger(const char *key, const char *word)
{
    char subject[64];
    snprintf(subject, sizeof subject, "cfg.trigger.acme.%s", key);
    put(subject, trigger(key, word));
}

static void the_last_entry_of_each_subject_counts(void **state)
{
    (void)state;
    Copy copy = {0};
    put_trigger("welcome", "old");
    put_trigger("welcome", "new");
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    assert_false(config_mirror_ready(mirror));
    WAIT(&rig, config_mirror_ready(mirror));
    assert_int_equal(copy.changes, 2); // the earlier one first
    assert_string_equal(copy.kind, "trigger");
    assert_string_equal(copy.tenant, "acme");
    assert_string_equal(copy.key, "welcome");
    assert_string_equal(copy.word, "new");
    end(mirror);
}

static void a_change_arrives_within_a_second(void **state)
{
    (void)state;
    Copy copy = {0};
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    WAIT(&rig, config_mirror_ready(mirror));
    put_trigger("late", "x");
    uint64_t since = uv_now(&rig.loop);
    WAIT(&rig, copy.changes == 1);
    assert_true(uv_now(&rig.loop) - since < 1000);
    assert_string_equal(copy.key, "late");
    put("cfg.trigger.acme.late", STR_EMPTY); // a removal, for it has an id
    WAIT(&rig, copy.changes == 2);
    assert_string_equal(copy.word, "");
    end(mirror);
}

static void what_a_service_refuses_is_passed_over(void **state)
{
    (void)state;
    Copy copy = {.refuse = true};
    put_trigger("a", "1");
    put_trigger("b", "2");
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    WAIT(&rig, config_mirror_ready(mirror));
    assert_int_equal(copy.changes, 2);
    end(mirror);
}

// What the server answers lands on the reply's subject, and nothing stops it there.
static void finding_02_what_the_server_answers_is_no_entry(void **state)
{
    (void)state;
    Copy copy = {0};
    put_trigger("a", "1");
    put_trigger("b", "1");
    put_trigger("c", "1");
    rig_post(&rig, "$JS.API.STREAM.INFO.STATUS", "cfg.trigger.acme.a", STR_EMPTY);
    // The end of a pull is an empty message: without the check it removes the entry.
    rig_ask(
        &rig, "$JS.API.CONSUMER.DURABLE.CREATE.STATUS.thief",
        "{\"stream_name\":\"STATUS\",\"config\":{\"durable_name\":\"thief\",\"ack_policy\":"
        "\"explicit\"}}");
    rig_post(
        &rig, "$JS.API.CONSUMER.MSG.NEXT.STATUS.thief", "cfg.trigger.acme.b",
        STR("{\"batch\":1,\"no_wait\":true}"));
    put("cfg.trigger.acme.c", trigger("d", "2")); // speaks of another
    put("cfg.dead.acme.x", trigger("x", "2"));    // of no kind
    put("cfg.tenant.acme.self",
        trigger("self", "")); // of another kind: its tenant's callback is not called
    WAIT(&rig, rig_count(&rig, "CONFIG") == 8);
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    WAIT(&rig, config_mirror_ready(mirror));
    assert_int_equal(copy.changes, 4); // a, b, c from before, and a tenant that says nothing else
    assert_string_equal(copy.word, "1");
    end(mirror);
}

static void finding_02_the_newest_readable_entry_counts_also_after_a_restart(void **state)
{
    (void)state;
    Copy copy = {0};
    put_trigger("a", "oldest");
    put_trigger("a", "newest");
    put("cfg.trigger.acme.a", STR("{}"));
    put("cfg.trigger.acme.a", STR("{\"type\":1}"));
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    WAIT(&rig, config_mirror_ready(mirror));
    assert_string_equal(copy.word, "newest");
    size_t changes = copy.changes;
    put("cfg.trigger.acme.a", STR("{}")); // while it runs, memory keeps what it has
    put_trigger("b", "next");
    WAIT(&rig, copy.changes > changes);
    assert_string_equal(copy.key, "b");
    put_trigger("a", "repaired");
    WAIT(&rig, copy.changes == changes + 2);
    assert_string_equal(copy.word, "repaired");
    end(mirror);
}

// Who can spoil one entry can spoil all of them, and wait for a restart.
static void finding_02_however_many_are_spoiled_each_counts_as_it_was_before(void **state)
{
    (void)state;
    enum { MANY = 300 };
    Copy copy = {0};
    char subject[64], key[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "k%d", i);
        snprintf(subject, sizeof subject, "cfg.trigger.acme.%s", key);
        put_trigger(key, "good");
        rig_post(&rig, "$JS.API.STREAM.INFO.STATUS", subject, STR_EMPTY);
    }
    WAIT(&rig, rig_count(&rig, "CONFIG") == 2 * MANY);
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    WAIT(&rig, config_mirror_ready(mirror));
    assert_int_equal(copy.changes, MANY);
    assert_string_equal(copy.word, "good");
    end(mirror);
}

// A mirror of the stream would miss some of them, and for ever those whose earlier one it missed.
static void finding_02_entries_that_are_replaced_at_once_are_kept_too(void **state)
{
    (void)state;
    enum { MANY = 300 };
    Copy copy = {0};
    Acks acks = {0};
    Arena *arena = arena_new(0);
    for (int i = 0; i < MANY; i++) { // none waits for the one before
        BusHeader replaces = bus_replaces((uint64_t)i, arena);
        const char *word = i == MANY - 1 ? "newest" : "earlier";
        BusOut out = {
            .subject = "cfg.trigger.acme.a",
            .event_id = str_from(arena_printf(arena, "at-once-%d", i)),
            .payload = arena_str(arena, trigger("a", word)),
            .headers = &replaces,
            .header_count = 1};
        bus_publish(rig.bus, &out, on_acks, &acks);
    }
    WAIT(&rig, acks.stored == MANY);
    rig_post(&rig, "$JS.API.STREAM.INFO.STATUS", "cfg.trigger.acme.a", STR_EMPTY);
    WAIT(&rig, rig_last(&rig, "CONFIG") == MANY + 1);
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    WAIT(&rig, config_mirror_ready(mirror));
    assert_int_equal(copy.changes, 7); // eight are kept, and the last cannot be read
    assert_string_equal(copy.word, "newest");
    end(mirror);
    arena_free(arena);
}

static uint64_t sequence_of_last(const char *subject)
{
    char body[96];
    (void)snprintf(body, sizeof body, "{\"last_by_subj\":\"%s\"}", subject);
    const char *at = strstr(rig_ask(&rig, "$JS.API.STREAM.MSG.GET.CONFIG", body), "\"seq\":");
    assert_non_null(at);
    return strtoull(at + strlen("\"seq\":"), NULL, 10);
}

// The message read last is gone, because eight of its subject came since, and so is the consumer:
// the stream is read again from its beginning. Law: what was true before does not come back.
static void a_read_that_begins_again_shows_nothing_older(void **state)
{
    (void)state;
    Copy copy = {0};
    put_trigger("a", "old");
    put_trigger("a", "new");
    put_trigger("busy", "1");
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    WAIT(&rig, config_mirror_ready(mirror));
    assert_int_equal(copy.olds, 1); // before it was ready
    char name[64] = "", subject[128], body[64];
    const char *at =
        strstr(rig_ask(&rig, "$JS.API.CONSUMER.NAMES.CONFIG", ""), "\"consumers\":[\"");
    assert_non_null(at);
    sscanf(at + strlen("\"consumers\":[\""), "%63[^\"]", name);
    (void)snprintf(
        body, sizeof body, "{\"seq\":%" PRIu64 "}", sequence_of_last("cfg.trigger.acme.busy"));
    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DELETE.CONFIG.%s", name);
    assert_non_null(strstr(rig_ask(&rig, subject, ""), "\"success\":true"));
    assert_non_null(
        strstr(rig_ask(&rig, "$JS.API.STREAM.MSG.DELETE.CONFIG", body), "\"success\":true"));
    put_trigger("b", "late");
    WAIT(&rig, strcmp(copy.word, "late") == 0);
    assert_int_equal(copy.olds, 1);
    assert_true(config_mirror_ready(mirror));
    put_trigger("a", "newest");
    WAIT(&rig, strcmp(copy.word, "newest") == 0);
    end(mirror);
}

static void it_can_be_freed_while_it_reads(void **state)
{
    (void)state;
    Copy copy = {0};
    for (int i = 0; i < 20; i++) {
        char subject[64];
        snprintf(subject, sizeof subject, "cfg.trigger.acme.k%d", i);
        put(subject, STR("{}"));
    }
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    pass_ms(&rig, 15);
    end(mirror);
    assert_int_equal(copy.changes, 0);
}

static void count_ready(void *ctx)
{
    ++*(int *)ctx;
}

static void it_tells_once_that_it_is_ready_after_all_that_was_there(void **state)
{
    (void)state;
    Copy copy = {0};
    int called = 0;
    put_trigger("a", "1");
    ConfigMirror *mirror = config_mirror_new(rig.bus, note_change, &copy);
    config_mirror_on_ready(mirror, count_ready, &called);
    assert_int_equal(called, 0);
    WAIT(&rig, called == 1);
    assert_int_equal(copy.changes, 1);
    assert_true(config_mirror_ready(mirror));
    put_trigger("b", "2");
    WAIT(&rig, copy.changes == 2);
    assert_int_equal(called, 1);
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
    put_trigger("a", "1");
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
        TEST(the_last_entry_of_each_subject_counts),
        TEST(a_change_arrives_within_a_second),
        TEST(what_a_service_refuses_is_passed_over),
        TEST(finding_02_what_the_server_answers_is_no_entry),
        TEST(finding_02_the_newest_readable_entry_counts_also_after_a_restart),
        TEST(finding_02_however_many_are_spoiled_each_counts_as_it_was_before),
        TEST(finding_02_entries_that_are_replaced_at_once_are_kept_too),
        TEST(a_read_that_begins_again_shows_nothing_older),
        TEST(it_can_be_freed_while_it_reads),
        TEST(it_waits_for_the_stream_to_be_made),
        TEST(it_can_be_freed_while_it_waits),
        TEST(it_tells_once_that_it_is_ready_after_all_that_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
