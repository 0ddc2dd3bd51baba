// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/auditlog/audit_entry.h"

static const AuditNote shown = {
    .kind = AUDIT_READ,
    .tenant = "acme",
    .action = "content.shown",
    .actor = "cli root",
    .target = "ntf_1",
    .request_id = "r1",
    .at_us = 1000000,
};

static void expect_refused(AuditNote note, const char *text)
{
    Arena *arena = arena_new(0);
    Error err = {0};
    Str payload;
    assert_false(audit_entry_pack(&note, &(AuditHead){0}, arena, &payload, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, text));
    arena_free(arena);
}

static void an_entry_that_says_too_little_or_too_much_is_refused(void **state)
{
    (void)state;
    AuditNote note = shown;
    note.actor = NULL;
    expect_refused(note, "needs 'actor'");
    note = shown;
    note.tenant = "a b";
    expect_refused(note, "needs a tenant");
    note = shown;
    note.ground = "alice@example.com asked for it";
    expect_refused(note, "an address must not stand");
    note = shown;
    const AuditDetail detail = {"who", "bob@example.com"};
    note.details = &detail;
    note.detail_count = 1;
    expect_refused(note, "'who' holds an '@'");
}

static void a_repeat_has_the_same_id_and_anything_else_another(void **state)
{
    (void)state;
    char first[EVENT_ID_SIZE], second[EVENT_ID_SIZE];
    AuditNote note = shown;
    audit_note_id(&note, first);
    audit_note_id(&note, second);
    assert_string_equal(first, second);
    note.target = "ntf_2";
    audit_note_id(&note, second);
    assert_string_not_equal(first, second);
}

enum { ENTRIES = 5 };

typedef struct Log {
    Arena *arena;
    Str payloads[ENTRIES];
} Log;

static Log made(void)
{
    Log log = {.arena = arena_new(0)};
    AuditHead head = {0};
    for (size_t i = 0; i < ENTRIES; i++) {
        AuditNote note = shown;
        note.at_us += (int64_t)i;
        Error err = {0};
        assert_true(audit_entry_pack(&note, &head, log.arena, &log.payloads[i], &err));
        head = audit_head_of(i + 1, log.payloads[i]);
    }
    return log;
}

// Which of the entries does not fit; 0: all do. `skip` is left out, 0: none.
static uint64_t first_broken(const Log *log, size_t skip, const char **ret_text)
{
    static Error err;
    AuditChain chain = {0};
    uint64_t broken = 0;
    for (size_t i = 0; i < ENTRIES; i++) {
        const Stentor__V1__AuditEntry *entry = NULL;
        Error problem = {0};
        if (i + 1 == skip) {
            continue;
        }
        bool ok = audit_chain_add(&chain, i + 1, log->payloads[i], log->arena, &entry, &problem);
        if (!ok && broken == 0) {
            broken = i + 1;
            err = problem;
        }
    }
    *ret_text = err.text;
    return broken;
}

static char *find(char *in, size_t len, const char *text)
{
    size_t wanted = strlen(text);
    for (size_t i = 0; i + wanted <= len; i++) {
        if (memcmp(in + i, text, wanted) == 0) {
            return in + i;
        }
    }
    return NULL;
}

static void a_chain_holds_and_what_was_changed_or_removed_shows(void **state)
{
    (void)state;
    const char *text;
    Log log = made();
    assert_int_equal(first_broken(&log, 0, &text), 0);
    assert_int_equal(first_broken(&log, 3, &text), 4);
    assert_non_null(strstr(text, "entries 3 to 3 are missing"));
    // The log may begin later than 1: older entries are past their age.
    assert_int_equal(first_broken(&log, 1, &text), 0);

    char *changed = arena_copy(log.arena, log.payloads[1].ptr, log.payloads[1].len);
    char *actor = find(changed, log.payloads[1].len, "cli root");
    assert_non_null(actor);
    actor[4] = 'b';
    log.payloads[1] = str_of(changed, log.payloads[1].len);
    assert_int_equal(first_broken(&log, 0, &text), 3);
    assert_non_null(strstr(text, "entry 3 does not fit entry 2"));
    log.payloads[3] = STR("\xff\xff");
    assert_int_equal(first_broken(&log, 2, &text), 3); // 2 is missing, then 4 is no entry
    arena_free(log.arena);
}

static void a_stream_that_was_replaced_shows(void **state)
{
    (void)state;
    Log log = made();
    AuditChain chain = {0};
    const Stentor__V1__AuditEntry *entry = NULL;
    Error err = {0};
    assert_false(audit_chain_add(&chain, 1, log.payloads[2], log.arena, &entry, &err));
    assert_non_null(strstr(err.text, "the stream was replaced"));
    arena_free(log.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_that_says_too_little_or_too_much_is_refused),
        cmocka_unit_test(a_repeat_has_the_same_id_and_anything_else_another),
        cmocka_unit_test(a_chain_holds_and_what_was_changed_or_removed_shows),
        cmocka_unit_test(a_stream_that_was_replaced_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
