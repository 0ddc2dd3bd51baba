// SPDX-License-Identifier: Apache-2.0
#include "common/bus/events/suppression_event.h"
#include "common/config/config_mirror.h"
#include "common/config/config_store.h"
#include "tests/unit/common/bus/bus_tools.h"

static const uint8_t HASH[SUPPRESSION_HASH_LEN] = {0xab, 1, 2, 3};

static Rig rig;
static Suppressions *known;
static ConfigMirror *mirror;
static Arena *arena;

static bool note_change(
    void *ctx, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    (void)ctx;
    return !str_eq(kind, STR("suppression")) || suppression_apply(known, tenant, key, message, err);
}

static void note_unreadable(void *ctx, Str kind, Str tenant, Str key, uint64_t sequence)
{
    (void)ctx;
    if (str_eq(kind, STR("suppression"))) {
        suppression_unreadable(known, tenant, key, sequence);
    }
}

// The copies are stored at once: nothing hides behind the window of duplicates.
static void shorten_window(void)
{
    char config[2048], body[2048];
    const char *answer = rig_ask(&rig, "$JS.API.STREAM.INFO.CONFIG", "");
    const char *from = strstr(answer, "\"config\":");
    assert_non_null(from);
    from += strlen("\"config\":");
    const char *end = strstr(from, ",\"created\":"); // nats-server 2.10 has objects within
    assert_non_null(end);
    snprintf(config, sizeof config, "%.*s", (int)(end - from), from);
    char *at = strstr(config, "\"duplicate_window\":");
    assert_non_null(at);
    at += strlen("\"duplicate_window\":");
    char *rest = at + strspn(at, "0123456789");
    snprintf(body, sizeof body, "%.*s100000000%s", (int)(at - config), config, rest);
    assert_null(strstr(rig_ask(&rig, "$JS.API.STREAM.UPDATE.CONFIG", body), "\"error\""));
}

static void start_mirror(void)
{
    known = suppressions_new();
    mirror = config_mirror_new(rig.bus, note_change, NULL);
    config_mirror_on_unreadable(mirror, note_unreadable);
    WAIT(&rig, config_mirror_ready(mirror));
}

static void end_mirror(void)
{
    rig.done = false;
    config_mirror_free(mirror, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
    suppressions_free(known);
}

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig, getenv("STENTOR_TEST_NATS_URL"));
    rig_fresh(&rig, 0);
    arena = arena_new(0);
    start_mirror();
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    end_mirror();
    arena_free(arena);
    rig_close(&rig);
    return 0;
}

// ---- what is stored ----

static Stentor__V1__Suppression *entry_of(SuppressionReason reason, int64_t at_us)
{
    SuppressionSpec spec = {
        .tenant = STR("acme"),
        .channel = CHANNEL_EMAIL,
        .hash = HASH,
        .reason = reason,
        .at_us = at_us,
        .by = STR("test"),
    };
    return suppression_make(&spec, arena);
}

static const char *subject_of_entry(void)
{
    BusOut out;
    assert_true(suppression_event(entry_of(SUPPRESSION_MANUAL, 1), arena, &out, NULL));
    return out.subject;
}

static void store_fact(SuppressionReason reason, int64_t at_us, Acks *acks)
{
    suppression_store(rig.bus, known, entry_of(reason, at_us), STR_EMPTY, arena, on_acks, acks);
}

// An operator's: in the place of whatever is there.
static void store_any(Stentor__V1__Suppression *entry, uint64_t replaces, Acks *acks)
{
    ConfigStore store = {.replaces = replaces, .done = on_acks, .ctx = acks};
    assert_true(suppression_event(entry, arena, &store.out, NULL));
    config_store(rig.bus, &store, arena);
}

static SuppressionReason found(void)
{
    return suppressions_find(
        known, STR("acme"), CHANNEL_EMAIL, CATEGORY_MARKETING, HASH, INT64_C(1) << 50);
}

static uint64_t sequence(void)
{
    return suppressions_sequence(known, STR("acme"), CHANNEL_EMAIL, CATEGORY_NONE, HASH);
}

static void release(uint64_t replaces)
{
    Acks acks = {0};
    Stentor__V1__Suppression *entry = entry_of(SUPPRESSION_COMPLAINT, 100);
    entry->released_at_us = 200;
    store_any(entry, replaces, &acks);
    WAIT(&rig, acks.stored == 1 && found() == SUPPRESSION_NONE);
}

// ---- replays ----

// What a service that was taken over can do: the server puts the first message of the
// subject that it keeps on a subject of CONFIG, with its own subject, headers and bytes (or without
// those).
static void replay_first(bool headers_only)
{
    char body[512];
    snprintf(
        body, sizeof body,
        "{\"stream_name\":\"CONFIG\",\"config\":{\"durable_name\":\"thief%d\","
        "\"filter_subject\":\"%s\",\"ack_policy\":\"explicit\",\"headers_only\":%s}}",
        headers_only, subject_of_entry(), headers_only ? "true" : "false");
    char create[128], next[128];
    snprintf(create, sizeof create, "$JS.API.CONSUMER.DURABLE.CREATE.CONFIG.thief%d", headers_only);
    assert_null(strstr(rig_ask(&rig, create, body), "\"error\""));
    snprintf(next, sizeof next, "$JS.API.CONSUMER.MSG.NEXT.CONFIG.thief%d", headers_only);
    rig_post(&rig, next, "cfg.replayed", STR("{\"batch\":1,\"no_wait\":true}"));
}

// Stored behind whatever was to be replayed.
static void pass_a_message(void)
{
    Acks acks = {0};
    publish_id(&rig, "cfg.odd.acme.after", "after", "x", &acks);
    WAIT(&rig, acks.stored == 1);
}

static void finding_02_an_earlier_suppression_is_not_stored_again(void **state)
{
    (void)state;
    shorten_window();
    for (int headers_only = 0; headers_only < 2; headers_only++) {
        Acks acks = {0};
        store_fact(SUPPRESSION_COMPLAINT, 100 + 1000 * headers_only, &acks);
        WAIT(&rig, acks.stored == 1 && found() == SUPPRESSION_COMPLAINT);
        release(acks.last_sequence);
        uint64_t last = sequence();
        pass_ms(&rig, 150); // past the window of duplicates
        replay_first(headers_only == 1);
        pass_a_message();
        WAIT(&rig, rig_count(&rig, "CONFIG") == 3);
        assert_int_equal(found(), SUPPRESSION_NONE);
        assert_true(sequence() == last);
        rig_fresh(&rig, 0);
        end_mirror();
        start_mirror();
        shorten_window();
    }
}

static void finding_02_a_release_without_that_word_is_what_could_be_replayed(void **state)
{
    (void)state;
    BusOut out;
    Acks acks = {0};
    shorten_window();
    Stentor__V1__Suppression *first = entry_of(SUPPRESSION_COMPLAINT, 100);
    assert_true(suppression_event(first, arena, &out, NULL));
    bus_publish(rig.bus, &out, on_acks, &acks); // as before the fix
    WAIT(&rig, acks.stored == 1 && found() == SUPPRESSION_COMPLAINT);
    release(acks.last_sequence);
    pass_ms(&rig, 150);
    // It comes back whole, which shows that the replay of these tests is one. Without its bytes it
    // would be its own removal; no reader takes it for that.
    replay_first(false);
    WAIT(&rig, found() == SUPPRESSION_COMPLAINT);
    pass_ms(&rig, 150);
    replay_first(true);
    WAIT(&rig, bus_stats(rig.bus).unreadable == 1);
    assert_int_equal(found(), SUPPRESSION_COMPLAINT);
}

// ---- two at once ----

static void finding_02_a_complaint_and_a_weaker_entry_at_once_end_as_the_complaint(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        Acks acks = {0};
        // Both are published before either is stored: neither knows of the other.
        for (int i = 0; i < 2; i++) {
            store_fact(
                i == order ? SUPPRESSION_COMPLAINT : SUPPRESSION_HARD_BOUNCE, 1000 + i, &acks);
        }
        WAIT(&rig, acks.stored == 2);
        WAIT(&rig, found() != SUPPRESSION_NONE);
        WAIT(&rig, sequence() == rig_last(&rig, "CONFIG"));
        assert_int_equal(found(), SUPPRESSION_COMPLAINT);
        rig_fresh(&rig, 0);
        end_mirror();
        start_mirror();
    }
}

static void hundreds_of_the_same_address_at_once_all_end_and_one_is_stored(void **state)
{
    (void)state;
    enum { MANY = 500 };
    Acks acks = {0};
    for (int i = 0; i < MANY; i++) {
        store_fact(SUPPRESSION_HARD_BOUNCE, 1000 + i, &acks);
    }
    WAIT(&rig, acks.stored + acks.failed == MANY);
    assert_int_equal(acks.failed, 0);
    assert_int_equal(acks.duplicates, MANY - 1);
    assert_int_equal(rig_last(&rig, "CONFIG"), 1);
    assert_int_equal(found(), SUPPRESSION_HARD_BOUNCE);
}

static void who_knows_nothing_stores_in_the_place_of_what_is_there(void **state)
{
    (void)state;
    Acks acks = {0};
    for (int i = 0; i < 4; i++) {
        store_any(entry_of(SUPPRESSION_MANUAL, 1000 + i), 0, &acks);
    }
    WAIT(&rig, acks.stored == 4);
    assert_int_equal(acks.failed, 0);
    assert_int_equal(rig_last(&rig, "CONFIG"), 4);
}

// Nothing stands there any more (stentor config mend --drop), or the index speaks of another.
static void what_is_gone_is_stored_as_new(void **state)
{
    (void)state;
    Acks acks = {0};
    store_fact(SUPPRESSION_OPT_OUT, 100, &acks);
    WAIT(&rig, acks.stored == 1 && found() == SUPPRESSION_OPT_OUT);
    assert_null(strstr(rig_ask(&rig, "$JS.API.STREAM.MSG.DELETE.CONFIG", "{\"seq\":1}"), "error"));
    store_fact(SUPPRESSION_HARD_BOUNCE, 200, &acks);
    WAIT(&rig, acks.stored == 2 && found() == SUPPRESSION_HARD_BOUNCE);
    assert_int_equal(acks.duplicates, 0);
}

static ConfigVerdict wait_for_ever(void *ctx, uint64_t there)
{
    (void)ctx, (void)there;
    return CONFIG_WAIT;
}

static void a_waiter_in_vain_gets_an_error_after_five_seconds(void **state)
{
    (void)state;
    Acks acks = {0};
    store_any(entry_of(SUPPRESSION_MANUAL, 1), 0, &acks);
    WAIT(&rig, acks.stored == 1);
    ConfigStore store = {.decide = wait_for_ever, .done = on_acks, .ctx = &acks};
    assert_true(suppression_event(entry_of(SUPPRESSION_MANUAL, 2), arena, &store.out, NULL));
    config_store(rig.bus, &store, arena);
    WAIT(&rig, acks.failed == 1);
    assert_int_equal(acks.error.kind, ERROR_TRANSIENT);
}

// ---- what cannot be read ----

static void finding_02_after_eight_forged_entries_the_address_stays_suppressed(void **state)
{
    (void)state;
    Acks acks = {0};
    store_fact(SUPPRESSION_COMPLAINT, 100, &acks);
    WAIT(&rig, acks.stored == 1 && found() == SUPPRESSION_COMPLAINT);
    for (uint64_t last = 2; last <= 10; last++) {
        rig_post(&rig, "$JS.API.STREAM.INFO.STATUS", subject_of_entry(), STR_EMPTY);
        WAIT(&rig, rig_last(&rig, "CONFIG") == last);
    }
    assert_int_equal(rig_count(&rig, "CONFIG"), 8);
    WAIT(&rig, sequence() == 10);
    assert_int_equal(found(), SUPPRESSION_COMPLAINT); // memory keeps it
    end_mirror();
    start_mirror();
    assert_int_equal(found(), SUPPRESSION_UNREADABLE); // and a new process assumes the worst
    assert_int_equal(bus_stats(rig.bus).unreadable, 1);
    store_fact(SUPPRESSION_OPT_OUT, 300, &acks); // it may hold for less
    WAIT(&rig, acks.stored == 1 || acks.failed == 1);
    store_fact(SUPPRESSION_COMPLAINT, 400, &acks);
    WAIT(&rig, found() == SUPPRESSION_COMPLAINT);
    assert_int_equal(bus_stats(rig.bus).unreadable, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(finding_02_an_earlier_suppression_is_not_stored_again),
        TEST(finding_02_a_release_without_that_word_is_what_could_be_replayed),
        TEST(finding_02_a_complaint_and_a_weaker_entry_at_once_end_as_the_complaint),
        TEST(hundreds_of_the_same_address_at_once_all_end_and_one_is_stored),
        TEST(who_knows_nothing_stores_in_the_place_of_what_is_there),
        TEST(what_is_gone_is_stored_as_new),
        TEST(a_waiter_in_vain_gets_an_error_after_five_seconds),
        TEST(finding_02_after_eight_forged_entries_the_address_stays_suppressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
