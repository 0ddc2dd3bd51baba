// SPDX-License-Identifier: Apache-2.0
// The audit log's chain at a real server: several writers, repeats, a log that has lost entries.
#include "common/auditlog/audit_append.h"
#include "common/bus/jetstream/get_message.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { WRITERS = 3, EACH = 20, BURST = 200 };

static Rig rig;

typedef struct Tally {
    size_t done, failed;
    AuditHead head;
    Error err;
} Tally;

static void on_done(void *ctx, const Error *err, const AuditHead *head)
{
    Tally *tally = ctx;
    tally->done++;
    if (err != NULL) {
        tally->failed++;
        tally->err = *err;
    } else {
        tally->head = *head;
    }
}

static AuditNote note_of(const char *actor, int64_t at_us)
{
    return (AuditNote){
        .kind = AUDIT_ERASURE,
        .tenant = "acme",
        .action = "erasure.requested",
        .actor = actor,
        .target = "rcp_1",
        .request_id = "r1",
        .at_us = at_us};
}

static Tally append(AuditLog *log, AuditNote note)
{
    Tally tally = {0};
    audit_log_append(log, &note, on_done, &tally);
    WAIT(&rig, tally.done == 1);
    return tally;
}

typedef struct Got {
    Arena *arena;
    BusMessage message;
    bool found, done;
} Got;

static void on_message(void *ctx, Str reply, const Error *err)
{
    Got *got = ctx;
    Error problem = {0};
    assert_null(err);
    (void)get_message_reply(reply, "AUDIT", got->arena, &got->message, &got->found, &problem);
    got->done = true;
}

// Reads the whole stream and checks the chain.
static AuditChain check(uint64_t entries)
{
    Arena *arena = arena_new(0);
    AuditChain chain = {0};
    for (uint64_t sequence = 1; sequence <= entries; sequence++) {
        Got got = {.arena = arena};
        get_message(
            rig.bus, &(MessageQuery){.stream = "AUDIT", .sequence = sequence}, on_message, &got);
        WAIT(&rig, got.done);
        assert_true(got.found);
        const Stentor__V1__AuditEntry *entry = NULL;
        Error err = {0};
        if (!audit_chain_add(&chain, sequence, got.message.payload, arena, &entry, &err)) {
            fail_msg("%s", err.text);
        }
    }
    arena_free(arena);
    return chain;
}

static void writers_at_once_make_one_chain(void **state)
{
    (void)state;
    rig_fresh(&rig, 30000);
    AuditLog *logs[WRITERS];
    Bus *buses[WRITERS];
    Tally tally = {0};
    for (size_t w = 0; w < WRITERS; w++) {
        buses[w] = rig_bus(&rig, getenv("STENTOR_TEST_NATS_URL"), "stentor-test", NULL);
        logs[w] = audit_log_new(buses[w]);
    }
    for (int i = 0; i < EACH; i++) {
        for (size_t w = 0; w < WRITERS; w++) {
            AuditNote note = note_of((const char *[]){"one", "two", "three"}[w], i + 1);
            note.request_id = note.actor;
            audit_log_append(logs[w], &note, on_done, &tally);
        }
    }
    WAIT(&rig, tally.done == (size_t)(WRITERS * EACH));
    assert_int_equal(tally.failed, 0);
    assert_int_equal(rig_count(&rig, "AUDIT"), WRITERS * EACH);
    AuditChain chain = check(WRITERS * EACH);
    assert_int_equal(chain.entries, WRITERS * EACH);
    assert_int_equal(chain.repeats, 0);
    for (size_t w = 0; w < WRITERS; w++) {
        audit_log_free(logs[w]);
        rig_close_bus(&rig, buses[w]);
    }
}

static void a_burst_of_writes_goes_by_few_messages_in_its_order(void **state)
{
    (void)state;
    rig_fresh(&rig, 30000);
    AuditLog *log = audit_log_new(rig.bus);
    Tally tally = {0};
    for (int i = 0; i < BURST; i++) {
        AuditNote note = note_of("key one", i + 1);
        note.kind = i % 50 == 49 ? AUDIT_ERASURE : AUDIT_WRITE; // the former stands alone
        note.tenant = i % 2 == 0 ? "acme" : "other";
        audit_log_append(log, &note, on_done, &tally);
    }
    WAIT(&rig, tally.done == (size_t)BURST);
    assert_int_equal(tally.failed, 0);
    uint64_t messages = (uint64_t)rig_count(&rig, "AUDIT");
    assert_true(messages <= (uint64_t)(BURST / AUDIT_TOGETHER_MAX + 8));
    AuditChain chain = check(messages);
    assert_int_equal(chain.entries, BURST);
    assert_int_equal(chain.messages, messages);
    audit_log_free(log);
}

static void a_repeat_is_the_same_entry(void **state)
{
    (void)state;
    rig_fresh(&rig, 30000);
    AuditLog *log = audit_log_new(rig.bus);
    assert_int_equal(append(log, note_of("cli root", 1)).failed, 0);
    assert_int_equal(append(log, note_of("cli root", 2)).failed, 0);
    assert_int_equal(append(log, note_of("cli root", 1)).failed, 0);
    AuditLog *other = audit_log_new(rig.bus); // another process, later
    assert_int_equal(append(other, note_of("cli root", 2)).failed, 0);
    assert_int_equal(append(other, note_of("cli root", 3)).failed, 0);
    assert_int_equal(append(log, note_of("cli root", 4)).failed, 0);
    assert_int_equal(rig_count(&rig, "AUDIT"), 4);
    (void)check(4);
    audit_log_free(log);
    audit_log_free(other);
}

static void the_chain_goes_on_behind_entries_that_are_gone(void **state)
{
    (void)state;
    rig_fresh(&rig, 30000);
    AuditLog *log = audit_log_new(rig.bus);
    assert_int_equal(append(log, note_of("cli root", 1)).failed, 0);
    rig_ask(&rig, "$JS.API.STREAM.PURGE.AUDIT", "");
    AuditLog *other = audit_log_new(rig.bus);
    Tally tally = append(other, note_of("cli root", 2));
    assert_int_equal(tally.failed, 0);
    assert_int_equal(tally.head.sequence, 2);
    assert_int_equal(append(log, note_of("cli root", 3)).failed, 0);
    assert_int_equal(rig_count(&rig, "AUDIT"), 2);
    audit_log_free(log);
    audit_log_free(other);
}

static void a_note_that_cannot_be_stored_is_named(void **state)
{
    (void)state;
    AuditLog *log = audit_log_new(rig.bus);
    AuditNote note = note_of("cli alice@example.com", 1);
    Tally tally = append(log, note);
    assert_int_equal(tally.failed, 1);
    assert_int_equal(tally.err.kind, ERROR_PERMANENT);
    audit_log_free(log);
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
        cmocka_unit_test(writers_at_once_make_one_chain),
        cmocka_unit_test(a_burst_of_writes_goes_by_few_messages_in_its_order),
        cmocka_unit_test(a_repeat_is_the_same_entry),
        cmocka_unit_test(the_chain_goes_on_behind_entries_that_are_gone),
        cmocka_unit_test(a_note_that_cannot_be_stored_is_named),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
