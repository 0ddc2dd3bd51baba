// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/id.h"
#include "common/model/retention/retention.h"

static void a_class_stands_in_the_id_and_any_other_character_is_a_record(void **state)
{
    (void)state;
    char id[ID_SIZE];
    static const uint8_t entropy[10] = {0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    id_derived("ntf_", INT64_C(1795199136123456), entropy, id);
    assert_int_equal(retention_class_of_id(str_from(id)), RETENTION_RECORD); // 'Z'
    for (int i = 0; i < RETENTION_CLASS_COUNT; i++) {
        RetentionClass class = (RetentionClass)i, named = RETENTION_CLASS_COUNT;
        retention_id_set_code(id, retention_class_code(class));
        assert_int_equal(id[4 + RETENTION_CLASS_AT], retention_class_code(class));
        assert_int_equal(retention_class_of_id(str_from(id)), class);
        int64_t ms = 0;
        assert_true(id_parse(str_from(id), "ntf_", &ms));
        assert_int_equal(ms, INT64_C(1795199136123));
        assert_true(retention_class_from_name(str_from(retention_class_name(class)), &named));
        assert_int_equal(named, class);
    }
    retention_id_set_code(id, RETENTION_CODE_ANY);
    assert_true(id_parse(str_from(id), "ntf_", NULL));
    assert_int_equal(retention_class_of_id(str_from(id)), RETENTION_RECORD);
    assert_int_equal(retention_class_of_id(STR("ntf_B")), RETENTION_RECORD);
}

static void categories_have_classes_and_the_installation_changes_them(void **state)
{
    (void)state;
    RetentionClasses classes;
    assert_true(retention_classes_parse(STR_EMPTY, &classes, NULL));
    for (int i = 0; i < CATEGORY_COUNT; i++) {
        bool standard = i == CATEGORY_MARKETING || i == CATEGORY_OPERATIONAL ||
                        i == CATEGORY_REMINDER || i == CATEGORY_SYSTEM || i == CATEGORY_SOCIAL;
        assert_int_equal(classes.of[i], standard ? RETENTION_STANDARD : RETENTION_RECORD);
    }
    assert_true(retention_classes_parse(STR("marketing=brief, social = record"), &classes, NULL));
    assert_int_equal(classes.of[CATEGORY_MARKETING], RETENTION_BRIEF);
    assert_int_equal(classes.of[CATEGORY_SOCIAL], RETENTION_RECORD);
    assert_int_equal(classes.of[CATEGORY_BILLING], RETENTION_RECORD);
    static const char *const wrong[][2] = {
        {"marketting=brief", "'marketting' is not a category"},
        {"marketing=short", "'marketing=short': expected record"},
        {"marketing", "'marketing': expected record"},
        {"marketing=brief,,", "'' is not a category"},
        {"=brief", "'' is not a category"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        Error err = {0};
        assert_false(retention_classes_parse(str_from(wrong[i][0]), &classes, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        assert_non_null(strstr(err.text, wrong[i][1]));
    }
}

static void assert_spans(
    const RetentionPlan *plan, RetentionClass class, const char *hot, const char *warm,
    const char *kept, RetentionPeriod period)
{
    const RetentionSpans *spans = &plan->of[class];
    char text[RETENTION_SPAN_SIZE];
    retention_span_text(spans->hot, text);
    assert_string_equal(text, hot);
    retention_span_text(spans->warm, text);
    assert_string_equal(text, warm);
    retention_span_text(spans->kept, text);
    assert_string_equal(text, kept);
    assert_int_equal(spans->period, period);
}

static void the_presets_are_those_of_the_documents(void **state)
{
    (void)state;
    RetentionPlan plan;
    assert_true(retention_plan_parse(STR_EMPTY, &plan, NULL)); // transactional 24 and 84 months
    assert_spans(&plan, RETENTION_RECORD, "24 months", "36 months", "84 months", RETENTION_MONTH);
    assert_spans(&plan, RETENTION_STANDARD, "6 months", "24 months", "24 months", RETENTION_MONTH);
    assert_spans(&plan, RETENTION_BRIEF, "30 days", "90 days", "90 days", RETENTION_MONTH);
    assert_true(retention_plan_parse(STR("bookworm"), &plan, NULL)); // 90 days, 2 years, 7 years
    assert_spans(&plan, RETENTION_RECORD, "90 days", "24 months", "84 months", RETENTION_MONTH);
    assert_true(retention_plan_parse(STR("large"), &plan, NULL));
    for (int i = 0; i < RETENTION_CLASS_COUNT; i++) {
        assert_int_equal(plan.of[i].hot.days, 30);
        assert_int_equal(plan.of[i].period, RETENTION_DAY);
    }
}

static void a_preset_is_changed_class_by_class(void **state)
{
    (void)state;
    RetentionPlan plan;
    assert_true(retention_plan_parse(
        STR("bookworm, brief=7d:30d:60d/month,standard=1m:1y:2y"), &plan, NULL));
    assert_spans(&plan, RETENTION_RECORD, "90 days", "24 months", "84 months", RETENTION_MONTH);
    assert_spans(&plan, RETENTION_BRIEF, "7 days", "30 days", "60 days", RETENTION_MONTH);
    assert_spans(&plan, RETENTION_STANDARD, "1 months", "12 months", "24 months", RETENTION_MONTH);
    assert_true(retention_plan_parse(STR("record=12m:1y:10y/day"), &plan, NULL));
    assert_spans(&plan, RETENTION_RECORD, "12 months", "12 months", "120 months", RETENTION_DAY);
    static const char *const wrong[][2] = {
        {"small", "'small' is neither a preset"},
        {"brief=7d:30d:60d,large", "'large' is neither a preset (default"},
        {"brief=30d:7d:60d", "'brief=30d:7d:60d': expected hot, warm and kept"},
        {"brief=7d:30d:1d", "expected hot, warm and kept"},
        {"brief=7d:30d", "expected hot, warm and kept"},
        {"brief=0d:1d:2d", "expected hot, warm and kept"},
        {"brief=-1d:1d:2d", "expected hot, warm and kept"},
        {"brief=1w:2w:3w", "expected hot, warm and kept"},
        {"brief=1m:2m:3m/week", "expected hot, warm and kept"},
        {"brief=1m:2m:3m/", "expected hot, warm and kept"},
        {"record=1y:2y:101y", "expected hot, warm and kept"},
        {"record=1m:2m:9999999999999999999m", "expected hot, warm and kept"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        Error err = {0};
        assert_false(retention_plan_parse(str_from(wrong[i][0]), &plan, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        assert_non_null(strstr(err.text, wrong[i][1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_stands_in_the_id_and_any_other_character_is_a_record),
        cmocka_unit_test(categories_have_classes_and_the_installation_changes_them),
        cmocka_unit_test(the_presets_are_those_of_the_documents),
        cmocka_unit_test(a_preset_is_changed_class_by_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
