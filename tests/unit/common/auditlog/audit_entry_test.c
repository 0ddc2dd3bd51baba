// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/auditlog/audit_view.h"

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
    Error err = {0};
    assert_false(audit_note_fits(&note, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, text));
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
        const AuditNote *notes[] = {&note, &shown};
        assert_true(
            audit_entries_pack(notes, i == 0 ? 2 : 1, &head, log.arena, &log.payloads[i], &err));
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

static void a_message_of_several_entries_is_covered_whole_and_read_one_by_one(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    AuditChain chain = {0};
    AuditNote second = shown, third = shown;
    const Stentor__V1__AuditEntry *entry = NULL;
    Error err = {0};
    Str payload, next;
    second.target = "ntf_2";
    third.actor = "key k1";
    const AuditNote *notes[] = {&shown, &second, &third};
    assert_true(audit_entries_pack(notes, 3, &(AuditHead){0}, arena, &payload, &err));
    AuditHead head = audit_head_of(1, payload);
    assert_true(audit_entries_pack(notes, 1, &head, arena, &next, &err));
    assert_true(audit_chain_add(&chain, 1, payload, arena, &entry, &err));
    assert_int_equal(chain.entries, 3);
    assert_string_equal(audit_view_entry(entry, 0)->target, "ntf_1");
    assert_string_equal(audit_view_entry(entry, 1)->target, "ntf_2");
    assert_string_equal(audit_view_entry(entry, 2)->actor, "key k1");
    assert_null(audit_view_entry(entry, 3));
    const AuditFilter filter = {.kind = STR("read"), .actor = STR("key k1")};
    assert_false(audit_filter_fits(&filter, entry->kind, audit_view_entry(entry, 0)));
    assert_true(audit_filter_fits(&filter, entry->kind, audit_view_entry(entry, 2)));
    // The last of three is changed: the message behind it does not fit.
    char *changed = arena_copy(arena, payload.ptr, payload.len);
    find(changed, payload.len, "key k1")[5] = '2';
    AuditChain other = {0};
    assert_true(audit_chain_add(&other, 1, str_of(changed, payload.len), arena, &entry, &err));
    assert_false(audit_chain_add(&other, 2, next, arena, &entry, &err));
    assert_true(audit_chain_add(&chain, 2, next, arena, &entry, &err));
    arena_free(arena);
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
        cmocka_unit_test(a_message_of_several_entries_is_covered_whole_and_read_one_by_one),
        cmocka_unit_test(a_stream_that_was_replaced_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
