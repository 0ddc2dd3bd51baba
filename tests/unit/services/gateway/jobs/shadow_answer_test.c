// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "services/gateway/jobs/job_runner.h"
#include "services/gateway/jobs/shadow_answer.h"

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static ShadowGroup *add_group(ShadowTally *tally, uint64_t signature)
{
    ShadowGroup *group = shadow_count_group(tally, signature, "ntf_1", SHADOW_EXAMPLES);
    if (group != NULL) {
        group->version = xstrdup("1.0.0");
    }
    return group;
}

static void requests_of_all_results_are_counted_once(void **state)
{
    (void)state;
    ShadowTally tally;
    shadow_tally_init(&tally);
    tally.scanned = 100;
    for (int i = 0; i < SHADOW_RESULT_COUNT; i++) {
        tally.results[i] = 1U << i;
    }
    json_t *answer = shadow_answer(&tally, 1500000);
    const json_t *skipped = json_object_get(answer, "skipped");
    json_int_t sum = 0;
    static const char *const names[] = {"same", "different", "failed", "fixed", "failed_both"};
    static const char *const skips[] = {
        "expired", "suppressed", "erased", "unknown_version", "unreadable"};
    for (size_t i = 0; i < 5; i++) {
        sum += number(answer, names[i]) + number(skipped, skips[i]);
    }
    assert_int_equal(sum, (1 << SHADOW_RESULT_COUNT) - 1);
    assert_int_equal(number(answer, "compared"), sum);
    assert_int_equal(number(answer, "scanned"), 100);
    assert_int_equal(number(answer, "failed"), 1 << SHADOW_FAILS);
    assert_true(json_is_true(json_object_get(answer, "complete")));
    assert_true(json_real_value(json_object_get(answer, "seconds")) == 1.5);
    json_decref(answer);
    shadow_tally_done(&tally);
}

static void groups_beyond_the_first_are_a_number(void **state)
{
    (void)state;
    ShadowTally tally;
    shadow_tally_init(&tally);
    for (uint64_t i = 0; i < SHADOW_GROUPS_MAX + 5; i++) {
        assert_true((add_group(&tally, i) != NULL) == (i < SHADOW_EXAMPLES));
        assert_null(i < SHADOW_GROUPS_MAX ? add_group(&tally, i) : NULL); // it is there
    }
    tally.limited = true;
    json_t *answer = shadow_answer(&tally, 0);
    const json_t *differences = json_object_get(answer, "differences");
    assert_int_equal(json_array_size(differences), SHADOW_EXAMPLES);
    assert_int_equal(number(json_array_get(differences, 0), "count"), 2);
    assert_int_equal(
        number(answer, "other_differences"), 2 * (SHADOW_GROUPS_MAX - SHADOW_EXAMPLES) + 5);
    assert_true(json_is_false(json_object_get(answer, "complete")));
    json_decref(answer);
    shadow_tally_done(&tally);
}

// The parts of the answer to one group whose html differs so.
static json_t *answer_of(const char *diff)
{
    ShadowTally tally;
    shadow_tally_init(&tally);
    add_group(&tally, 1)->parts[SHADOW_HTML] = xstrdup(diff);
    json_t *answer = shadow_answer(&tally, 0);
    json_t *difference = json_incref(json_array_get(json_object_get(answer, "differences"), 0));
    json_decref(answer);
    shadow_tally_done(&tally);
    return difference;
}

static const json_t *lines_of(const json_t *difference)
{
    const json_t *part = json_array_get(json_object_get(difference, "parts"), 0);
    assert_string_equal(json_string_value(json_object_get(part, "part")), "html");
    return json_object_get(part, "lines");
}

static const char *text_at(const json_t *lines, size_t at, const char *name)
{
    return json_string_value(json_object_get(json_array_get(lines, at), name));
}

static void a_diff_becomes_lines_with_what_is_done_to_them(void **state)
{
    (void)state;
    json_t *difference = answer_of(
        "@@ -1,2 +1,2 @@\n <b>\n-Dear {{name}}\n\\ no line break at the end\n+Hi {{name}}\n");
    const json_t *lines = lines_of(difference);
    static const char *const expected[][2] = {
        {"@", "@@ -1,2 +1,2 @@"}, {" ", "<b>"}, {"-", "Dear {{name}}"}, {"+", "Hi {{name}}"}};
    assert_int_equal(json_array_size(lines), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(text_at(lines, i, "op"), expected[i][0]);
        assert_string_equal(text_at(lines, i, "text"), expected[i][1]);
    }
    assert_true(json_is_false(json_object_get(difference, "cut")));
    assert_int_equal(number(difference, "lines_left_out"), 0);
    json_decref(difference);
}

static void what_is_too_long_is_cut_between_characters_and_says_so(void **state)
{
    (void)state;
    char many[2 * SHADOW_LINES_MAX * 3], line[1024] = "+";
    size_t len = 0;
    for (int i = 0; i < 2 * SHADOW_LINES_MAX; i++) {
        len += (size_t)snprintf(many + len, sizeof many - len, "-x\n");
    }
    json_t *difference = answer_of(many);
    assert_int_equal(json_array_size(lines_of(difference)), SHADOW_LINES_MAX);
    assert_true(json_is_true(json_object_get(difference, "cut")));
    assert_int_equal(number(difference, "lines_left_out"), SHADOW_LINES_MAX);
    json_decref(difference);
    for (size_t i = 0; i < 200; i++) {
        memcpy(line + 1 + 2 * i, "\xc3\xa9", 2);
    }
    line[1] = 'x'; // 299 bytes of it, so that a character stands across the bound
    line[2] = 'y';
    line[3] = 'z';
    memmove(line + 4, line + 5, 396);
    difference = answer_of(line);
    const char *text = text_at(lines_of(difference), 0, "text");
    assert_true(strlen(text) <= SHADOW_LINE_MAX && strlen(text) > SHADOW_LINE_MAX - 2);
    assert_true(json_is_true(json_object_get(difference, "cut")));
    json_decref(difference);
}

enum { BIG_LINES = SHADOW_LINES_MAX + 7 };

// A diff whose lines take six times their bytes in JSON.
static char *big_diff(void)
{
    Buf out;
    buf_init(&out, 1024 * 1024);
    for (int i = 0; i < BIG_LINES; i++) {
        buf_char(&out, '+');
        for (int n = 0; n < SHADOW_LINE_MAX; n++) {
            buf_char(&out, '\x01');
        }
        buf_char(&out, '\n');
    }
    char *diff = xstrdup(buf_c(&out));
    buf_done(&out);
    return diff;
}

static void the_largest_answer_fits_a_jobs_result_and_counts_what_it_leaves_out(void **state)
{
    (void)state;
    ShadowTally tally;
    shadow_tally_init(&tally);
    for (uint64_t i = 0; i < SHADOW_EXAMPLES; i++) {
        ShadowGroup *group = add_group(&tally, i);
        for (int part = 0; part < SHADOW_PART_COUNT; part++) {
            group->parts[part] = big_diff();
        }
    }
    for (int i = 0; i < SHADOW_REASONS_LISTED; i++) {
        char reason[240]; // as of an Error
        memset(reason, '\x01', sizeof reason - 1);
        (void)snprintf(reason, 4, "%03d", i);
        reason[3] = '\x01';
        reason[sizeof reason - 1] = '\0';
        shadow_count_reason(&tally, "code", reason);
    }
    json_t *answer = shadow_answer(&tally, 0);
    assert_true(json_dumpb(answer, NULL, 0, JSON_COMPACT) < JOB_RESULT_MAX - 16 * 1024);
    const json_t *differences = json_object_get(answer, "differences");
    assert_int_equal(json_array_size(differences), SHADOW_EXAMPLES);
    for (size_t i = 0; i < SHADOW_EXAMPLES; i++) {
        const json_t *difference = json_array_get(differences, i);
        const json_t *parts = json_object_get(difference, "parts");
        size_t shown = 0;
        assert_int_equal(json_array_size(parts), SHADOW_PART_COUNT);
        for (size_t part = 0; part < SHADOW_PART_COUNT; part++) {
            size_t count = json_array_size(json_object_get(json_array_get(parts, part), "lines"));
            assert_true(count > 0); // each has its share
            shown += count;
        }
        assert_true(json_is_true(json_object_get(difference, "cut")));
        assert_int_equal(
            number(difference, "lines_left_out"), SHADOW_PART_COUNT * BIG_LINES - shown);
    }
    json_decref(answer);
    shadow_tally_done(&tally);
}

static void the_most_frequent_reasons_are_listed(void **state)
{
    (void)state;
    ShadowTally tally;
    shadow_tally_init(&tally);
    for (int i = 0; i < SHADOW_REASONS_MAX + 1; i++) {
        char reason[16];
        (void)snprintf(reason, sizeof reason, "reason %d", i);
        for (int n = 0; n <= i; n++) {
            shadow_count_reason(&tally, "code", reason);
        }
    }
    json_t *answer = shadow_answer(&tally, 0);
    const json_t *reasons = json_object_get(answer, "reasons");
    assert_int_equal(json_array_size(reasons), SHADOW_REASONS_LISTED);
    assert_string_equal(text_at(reasons, 0, "reason"), "code: reason 99");
    assert_int_equal(number(json_array_get(reasons, 0), "count"), 100);
    json_decref(answer);
    shadow_tally_done(&tally);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_all_results_are_counted_once),
        cmocka_unit_test(groups_beyond_the_first_are_a_number),
        cmocka_unit_test(a_diff_becomes_lines_with_what_is_done_to_them),
        cmocka_unit_test(what_is_too_long_is_cut_between_characters_and_says_so),
        cmocka_unit_test(the_largest_answer_fits_a_jobs_result_and_counts_what_it_leaves_out),
        cmocka_unit_test(the_most_frequent_reasons_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
