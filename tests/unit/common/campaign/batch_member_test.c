// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/campaign/batch_member.h"

#define BATCH "dbt_01HZZZZZZZZZZZZZZZZZZZZZZZ"
#define OTHER "dbt_01HZZZZZZZZZZZZZZZZZZZZZZY"

static void a_members_id_is_derived_from_its_place(void **state)
{
    (void)state;
    const int64_t at_us = INT64_C(1795199136000000);
    char first[ID_SIZE];
    char again[ID_SIZE];
    char next[ID_SIZE];
    char other[ID_SIZE];
    batch_notification_id(STR(BATCH), 7, at_us, first);
    batch_notification_id(STR(BATCH), 7, at_us, again);
    batch_notification_id(STR(BATCH), 8, at_us, next);
    batch_notification_id(STR(OTHER), 7, at_us, other);
    int64_t ms = 0;
    assert_true(id_parse(str_from(first), "ntf_", &ms));
    assert_int_equal(ms, at_us / 1000);
    assert_string_equal(first, again);
    assert_string_not_equal(first, next);
    assert_string_not_equal(first, other);
    char batch[] = BATCH; // made with the class of its members
    batch[sizeof BATCH - 1 - ULID_LEN + 10] = 'S';
    batch_notification_id(str_from(batch), 7, at_us, other);
    assert_int_equal(other[14], 'S');
}

static void a_member_has_what_the_template_requires_itself_or_from_the_batch(void **state)
{
    (void)state;
    static const struct {
        const char *variables, *defaults, *field; // NULL: taken
    } rows[] = {
        {"{\"name\":\"A\",\"order\":{\"id\":7}}", NULL, NULL},
        {"{\"name\":\"A\"}", "{\"order\":{\"id\":7}}", NULL},
        {"{}", "{\"name\":\"all\",\"order\":{\"id\":7}}", NULL},
        {"{\"name\":\"A\"}", NULL, "variables.order.id"},
        // A member's own object takes the place of the batch's as a whole, as when it is sent.
        {"{\"name\":\"A\",\"order\":{}}", "{\"order\":{\"id\":7}}", "variables.order.id"},
        {"{\"name\":null}", "{\"name\":\"all\",\"order\":{\"id\":7}}", "variables.name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *arena = arena_new(0);
        json_t *defaults = rows[i].defaults == NULL ? NULL : json_loads(rows[i].defaults, 0, NULL);
        MemberRules rules = {
            .model = {.template_key = STR("bill"), .template_version = STR("1.0.0")},
            .variables_max = REQUEST_VARIABLES_MAX,
            .required = "name\0order.id\0",
            .defaults = defaults,
        };
        char *line = arena_printf(arena, "{\"to\":\"a@b.c\",\"variables\":%s}", rows[i].variables);
        Member member;
        FieldError err = {.field = ""};
        assert_int_equal(
            batch_member_parse(str_from(line), &rules, arena, &member, &err),
            rows[i].field == NULL);
        assert_string_equal(err.field, rows[i].field == NULL ? "" : rows[i].field);
        json_decref(defaults);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_has_what_the_template_requires_itself_or_from_the_batch),
        cmocka_unit_test(a_members_id_is_derived_from_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
