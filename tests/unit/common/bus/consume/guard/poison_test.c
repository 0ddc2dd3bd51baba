// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/bus/consume/guard/poison.h"

#define OWN STR("me")

static PoisonMarks marks;

static int begin(void **state)
{
    (void)state;
    poison_marks_done(&marks);
    return 0;
}

static PoisonInput input(uint64_t sequence)
{
    return (PoisonInput){sequence, 1000 + (int64_t)sequence};
}

static void put(const char *process, uint64_t at, const char *text)
{
    assert_true(poison_marks_put(&marks, str_from(process), at, str_from(text)));
}

static PoisonEvidence evidence(uint64_t sequence)
{
    PoisonInput it = input(sequence);
    return poison_evidence(&marks, OWN, "EVENTS", &it);
}

static void finding_13_the_fewer_lived_over_it_the_smaller_its_group(void **state)
{
    (void)state;
    static const struct {
        uint32_t deaths;
        size_t together;
    } rows[] = {{0, 256}, {1, 32}, {2, 4}, {3, 1}, {4, 1}, {5, 1}, {UINT32_MAX, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(poison_group_max(rows[i].deaths), rows[i].together);
    }
}

static void finding_13_proof_is_five_deaths_in_a_row_the_last_two_alone(void **state)
{
    (void)state;
    static const struct {
        PoisonEvidence evidence;
        bool proven;
    } rows[] = {
        {{0, 0}, false}, {{4, 4}, false}, {{5, 0}, false}, {{5, 1}, false}, {{5, 2}, true},
        {{5, 5}, true},  {{4, 2}, false}, {{9, 1}, false}, {{9, 2}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(poison_is_proven(&rows[i].evidence), rows[i].proven);
    }
}

// What each life does with the inputs 1..300, of which 77 is poison, as guard.c does it: the first
// that may go together are marked; a life ends over the group of 77, lives over all others.
static size_t die_over_77(uint64_t life)
{
    char process[16];
    uint64_t at = 1;
    snprintf(process, sizeof process, "p%llu", (unsigned long long)life);
    while (at <= 300) {
        PoisonInput group[POISON_GROUP_MAX];
        size_t count = 0;
        uint32_t most = 0;
        for (uint64_t next = at; next <= 300 && count < POISON_GROUP_MAX; next++) {
            uint32_t deaths = evidence(next).deaths;
            most = deaths > most ? deaths : most;
            if (count >= poison_group_max(most)) {
                break;
            }
            group[count++] = input(next);
        }
        if (at <= 77 && 77 < at + count) {
            Buf text;
            buf_init(&text, 64 * 1024);
            assert_true(poison_mark_write(&text, "EVENTS", count, group, count));
            assert_true(poison_marks_put(&marks, str_from(process), life, buf_view(&text)));
            buf_done(&text);
            return count;
        }
        for (size_t i = 0; i < count; i++) {
            poison_acquit(&marks, STR("p"), "EVENTS", &group[i]);
        }
        at += count;
    }
    return 0;
}

static void finding_13_bisection_finds_one_of_three_hundred(void **state)
{
    (void)state;
    static const size_t groups[] = {256, 32, 4, 1, 1};
    for (uint64_t life = 1; life <= 5; life++) {
        PoisonEvidence so_far = evidence(77);
        assert_false(poison_is_proven(&so_far));
        assert_int_equal(die_over_77(life), groups[life - 1]);
    }
    PoisonEvidence all = evidence(77);
    assert_true(poison_is_proven(&all));
    for (uint64_t good = 1; good <= 300; good++) {
        PoisonEvidence e = evidence(good);
        assert_true(good == 77 || !poison_is_proven(&e));
        assert_true(good == 77 || e.deaths <= 3);
    }
}

static void finding_13_a_life_between_takes_all_deaths_back(void **state)
{
    (void)state;
    PoisonInput it = input(7);
    for (int i = 0; i < 4; i++) {
        char process[8];
        snprintf(process, sizeof process, "p%d", i);
        put(process, (uint64_t)i + 1, "EVENTS 1 7/1007");
    }
    assert_int_equal(evidence(7).deaths, 4);
    assert_true(poison_acquit(&marks, OWN, "EVENTS", &it));
    assert_int_equal(evidence(7).deaths, 0);
    for (size_t i = 0; i < marks.count; i++) {
        assert_true(marks.at[i].acquitted);
    }
    assert_false(poison_acquit(&marks, OWN, "EVENTS", &it));
    put("p9", 9, "EVENTS 1 7/1007");
    assert_int_equal(evidence(7).deaths, 1);
}

static void an_acquitted_mark_keeps_its_size(void **state)
{
    (void)state;
    PoisonInput two = input(2);
    put("a", 1, "EVENTS 2 1/1001 2/1002");
    poison_acquit(&marks, OWN, "EVENTS", &two);
    Buf text;
    buf_init(&text, 1024);
    const PoisonMark *mark = poison_marks_find(&marks, STR("a"));
    assert_true(poison_mark_write(&text, mark->stream, mark->size, mark->inputs, mark->count));
    assert_string_equal(buf_c(&text), "EVENTS 2 1/1001");
    buf_done(&text);
    assert_int_equal(evidence(1).deaths, 1);
    assert_int_equal(evidence(1).alone, 0); // it was not alone
    assert_int_equal(evidence(2).deaths, 0);
}

static void what_is_not_the_same_message_of_the_same_stream_does_not_count(void **state)
{
    (void)state;
    put("a", 1, "EVENTS 1 7/1007");
    PoisonInput later = {7, 1008}; // the same sequence, of a store that was restored
    assert_int_equal(poison_evidence(&marks, OWN, "EVENTS", &later).deaths, 0);
    PoisonInput it = input(7);
    assert_int_equal(poison_evidence(&marks, OWN, "SETTLE", &it).deaths, 0);
    assert_int_equal(poison_evidence(&marks, STR("a"), "EVENTS", &it).deaths, 0);
    assert_int_equal(evidence(7).deaths, 1);
}

static void the_newest_word_of_a_process_counts(void **state)
{
    (void)state;
    put("a", 5, "EVENTS 1 7/1007");
    put("a", 4, ""); // older: passed over
    assert_int_equal(evidence(7).deaths, 1);
    put("a", 6, "EVENTS 1 8/1008");
    assert_int_equal(evidence(7).deaths, 0);
    assert_int_equal(evidence(8).deaths, 1);
    put("a", 7, "");
    assert_int_equal(marks.count, 0);
}

static void what_is_no_mark_is_refused_and_takes_the_mark_away(void **state)
{
    (void)state;
    static const char *const bad[] = {
        " ",
        "EVENTS",
        "EVENTS 1",
        "EVENTS x 7/1007",
        "EVENTS 0 7/1007",
        "EVENTS 257 7/1007",
        "EVENTS 1 7",
        "EVENTS 1 7/",
        "EVENTS 1 /1007",
        "EVENTS 1 0/1007",
        "EVENTS 1 7/0",
        "EVENTS 1 -7/1007",
        "EVENTS 1 7/1007 8/1008",
        "EVENTS 1 99999999999999999999/1",
        " 1 7/1007",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put("a", 2 * i + 1, "EVENTS 1 7/1007");
        assert_false(poison_marks_put(&marks, STR("a"), 2 * i + 2, str_from(bad[i])));
        assert_int_equal(marks.count, 0);
    }
    assert_false(poison_marks_put(&marks, STR(""), 100, STR("EVENTS 1 7/1007")));
}

static void marks_in_memory_are_bounded(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= POISON_MARKS_MAX + 10; i++) {
        char process[16];
        snprintf(process, sizeof process, "p%llu", (unsigned long long)i);
        put(process, i, "EVENTS 1 7/1007");
    }
    assert_int_equal(marks.count, POISON_MARKS_MAX);
    assert_null(poison_marks_find(&marks, STR("p10")));
    assert_non_null(poison_marks_find(&marks, STR("p11")));
}

static void finding_13_what_two_processes_take_out_of_a_mark_at_once_stays_out(void **state)
{
    (void)state;
    PoisonInput mine = input(7);
    put("dead", 3, "EVENTS 3 7/1007 8/1008 9/1009");
    assert_true(poison_acquit(&marks, OWN, "EVENTS", &mine));
    marks.at[0].acquitted = false;            // it is being stored
    put("dead", 4, "EVENTS 3 7/1007 9/1009"); // another process was faster, without 8
    assert_int_equal(evidence(7).deaths, 0);
    assert_int_equal(evidence(8).deaths, 0);
    assert_int_equal(evidence(9).deaths, 1);
    assert_true(marks.at[0].acquitted);       // to be stored once more
    put("dead", 5, "EVENTS 2 7/1007 9/1009"); // a group of its own, whole: it has it again
    assert_int_equal(evidence(7).deaths, 1);
    put("dead", 6, "REQUEST_LOW 2 7/1007");
    put("dead", 7, "EVENTS 2 7/1007"); // what was known is of another stream
    assert_int_equal(evidence(7).deaths, 1);
}

static void what_a_consumer_is_through_with_leaves_every_mark_but_the_own(void **state)
{
    (void)state;
    put("dead", 3, "EVENTS 3 7/1007 8/1008 9/1009");
    put("gone", 4, "EVENTS 1 8/1008");
    put("other", 5, "SETTLE 1 7/1007");
    put("me", 6, "EVENTS 1 7/1007");
    assert_false(poison_marks_through(&marks, OWN, "EVENTS", 6));
    assert_true(poison_marks_through(&marks, OWN, "EVENTS", 8));
    assert_int_equal(evidence(7).deaths + evidence(8).deaths, 0);
    assert_int_equal(evidence(9).deaths, 1);
    assert_int_equal(poison_marks_find(&marks, STR("dead"))->count, 1);
    assert_int_equal(poison_marks_find(&marks, STR("gone"))->count, 0);
    assert_true(poison_marks_find(&marks, STR("gone"))->acquitted);
    assert_int_equal(poison_marks_find(&marks, STR("other"))->count, 1);
    assert_int_equal(poison_marks_find(&marks, OWN)->count, 1);
    assert_false(poison_marks_through(&marks, OWN, "EVENTS", 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(finding_13_the_fewer_lived_over_it_the_smaller_its_group, begin),
        cmocka_unit_test_setup(finding_13_proof_is_five_deaths_in_a_row_the_last_two_alone, begin),
        cmocka_unit_test_setup(finding_13_bisection_finds_one_of_three_hundred, begin),
        cmocka_unit_test_setup(finding_13_a_life_between_takes_all_deaths_back, begin),
        cmocka_unit_test_setup(an_acquitted_mark_keeps_its_size, begin),
        cmocka_unit_test_setup(
            what_is_not_the_same_message_of_the_same_stream_does_not_count, begin),
        cmocka_unit_test_setup(the_newest_word_of_a_process_counts, begin),
        cmocka_unit_test_setup(what_is_no_mark_is_refused_and_takes_the_mark_away, begin),
        cmocka_unit_test_setup(
            finding_13_what_two_processes_take_out_of_a_mark_at_once_stays_out, begin),
        cmocka_unit_test_setup(
            what_a_consumer_is_through_with_leaves_every_mark_but_the_own, begin),
        cmocka_unit_test_setup_teardown(marks_in_memory_are_bounded, begin, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
