// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/variables/variable_check.h"
#include "common/variables/variable_format.h"

typedef Stentor__V1__TemplateVariable Rule;

static char empty_text[] = "";

static Rule rule_of(char *name, char *type)
{
    Rule rule;
    stentor__v1__template_variable__init(&rule);
    rule.name = name;
    rule.type = type;
    rule.format = empty_text;
    return rule;
}

// "path text", or "" when the value fits.
static const char *fault_of(const Rule *rule, const char *json)
{
    static char out[sizeof((VariableFault *)0)->path + sizeof((VariableFault *)0)->text + 2];
    VariableFault fault;
    Arena *arena = arena_new(0);
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    out[0] = '\0';
    if (!variable_check(rule, value, arena, &fault)) {
        assert_int_not_equal(fault.kind, VARIABLE_FINE);
        (void)snprintf(out, sizeof out, "%s %s", fault.path, fault.text);
    }
    json_decref(value);
    arena_free(arena);
    return out;
}

static void a_format_is_met_or_named(void **state)
{
    (void)state;
    static const struct {
        const char *format, *good, *bad;
    } cases[] = {
        {"email", "a@example.com", "a at example.com"},
        {"uri", "https://example.com/x?y=1", "example.com"},
        {"uri", "urn:isbn:0451450523", "http: //x"},
        {"date", "2026-02-28", "2026-02-30"},
        {"date", "2024-02-29", "24-02-29"},
        {"time", "23:59", "24:00"},
        {"time", "00:00:59", "00:61:00"},
        {"date-time", "2026-11-23T10:00:00+01:00", "2026-11-23 10:00"},
        {"uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Str format = str_from(cases[i].format);
        assert_true(variable_format_is(format));
        if (!variable_format_met(format, str_from(cases[i].good), arena) ||
            variable_format_met(format, str_from(cases[i].bad), arena)) {
            fail_msg("%s: '%s' or '%s'", cases[i].format, cases[i].good, cases[i].bad);
        }
    }
    assert_false(variable_format_is(STR("colour")));
    arena_free(arena);
}

static void bounds_and_enumerations_hold(void **state)
{
    (void)state;
    char name[] = "n", number[] = "number", string[] = "string", integer[] = "integer";
    Rule rule = rule_of(name, number);
    Stentor__V1__VariableBound low = STENTOR__V1__VARIABLE_BOUND__INIT, high = low;
    low.value = 0;
    high.value = 9.5;
    rule.minimum = &low;
    rule.maximum = &high;
    assert_string_equal(fault_of(&rule, "9.5"), "");
    assert_string_equal(fault_of(&rule, "-1"), "n must be at least 0");
    assert_string_equal(fault_of(&rule, "9.6"), "n must be at most 9.5");
    assert_string_equal(fault_of(&rule, "\"9\""), "n is of type string, expected number");
    rule = rule_of(name, integer);
    assert_string_equal(fault_of(&rule, "7.0"), "");
    assert_string_equal(fault_of(&rule, "7.5"), "n is of type number, expected integer");
    rule = rule_of(name, string);
    rule.min_length = 2;
    rule.max_length = 3;
    assert_string_equal(fault_of(&rule, "\"\xd8\xb3\xd9\x84\xd8\xa7\""), ""); // three letters
    assert_string_equal(fault_of(&rule, "\"a\""), "n must have at least 2 characters");
    assert_string_equal(fault_of(&rule, "\"abcd\""), "n must have at most 3 characters");
    char paid[] = "\"paid\"", one[] = "1";
    rule = rule_of(name, empty_text);
    rule.allowed = (char *[]){paid, one};
    rule.n_allowed = 2;
    assert_string_equal(fault_of(&rule, "\"paid\""), "");
    assert_string_equal(fault_of(&rule, "1"), "");
    assert_string_equal(fault_of(&rule, "\"1\""), "n must be one of \"paid\", 1");
}

static void a_nested_fault_has_its_path(void **state)
{
    (void)state;
    char order[] = "order", object[] = "object", lines[] = "lines", array[] = "array";
    char email[] = "email", string[] = "string", format[] = "email";
    Rule mail = rule_of(email, string);
    mail.format = format;
    mail.required = true;
    Rule line = rule_of(empty_text, object);
    line.properties = (Rule *[]){&mail};
    line.n_properties = 1;
    Rule list = rule_of(lines, array);
    list.items = &line;
    list.min_items = 1;
    list.max_items = 2;
    Rule top = rule_of(order, object);
    top.properties = (Rule *[]){&list};
    top.n_properties = 1;
    assert_string_equal(fault_of(&top, "{\"lines\": [{\"email\": \"a@b.test\"}]}"), "");
    assert_string_equal(
        fault_of(&top, "{\"lines\": [{\"email\": \"a@b.test\"}, {\"email\": \"x\"}]}"),
        "order.lines[1].email must be of format email");
    assert_string_equal(fault_of(&top, "{\"lines\": [{}]}"), "order.lines[0].email is missing");
    assert_string_equal(
        fault_of(&top, "{\"lines\": []}"), "order.lines must have at least 1 items");
    assert_string_equal(
        fault_of(&top, "{\"lines\": [1, 2, 3]}"), "order.lines must have at most 2 items");
    assert_string_equal(
        fault_of(&top, "{\"lines\": [null]}"), "order.lines[0] is of type null, expected object");
    assert_string_equal(fault_of(&top, "{\"lines\": null}"), "");
}

// As a template finds it: what {{unit_price}} shows is there.
static void a_member_is_found_in_any_of_its_spellings(void **state)
{
    (void)state;
    char line[] = "line", object[] = "object", price[] = "unit_price", number[] = "number";
    Rule inner = rule_of(price, number);
    inner.required = true;
    Rule rule = rule_of(line, object);
    rule.properties = (Rule *[]){&inner};
    rule.n_properties = 1;
    assert_string_equal(fault_of(&rule, "{\"unit_price\": 1}"), "");
    assert_string_equal(fault_of(&rule, "{\"unitPrice\": 1}"), "");
    assert_string_equal(
        fault_of(&rule, "{\"UnitPrice\": \"1\"}"),
        "line.unit_price is of type string, expected number");
    assert_string_equal(fault_of(&rule, "{\"unitPrice\": null}"), "line.unit_price is missing");
    assert_string_equal(
        fault_of(&rule, "{\"unit_price\": null, \"unitPrice\": 1}"),
        "line.unit_price is missing"); // the exact name wins
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_format_is_met_or_named),
        cmocka_unit_test(bounds_and_enumerations_hold),
        cmocka_unit_test(a_nested_fault_has_its_path),
        cmocka_unit_test(a_member_is_found_in_any_of_its_spellings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
