// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "services/cli/api_field.h"

static void a_field_of_the_api_is_named_as_the_option_that_fills_it(void **state)
{
    (void)state;
    static const Command send = {
        .name = "send", .usage = "", .flags = "to= name= at= var= time-zone= theme= json"};
    static const struct {
        const char *field, *option; // NULL: there is none
    } rows[] = {
        {"scheduled_for", "--at"},
        {"time_zone", "--time-zone"},
        {"to", "--to"},
        {"to.name", "--name"},
        {"notifications[1].to.address", "--to"},
        {"variables.plan", "--var plan"},
        {"notifications[0].variables.order.total", "--var order.total"},
        {"theme.color", "--theme"},
        {"expires_at", NULL}, // this command has no --expires
        {"html", NULL},
        {"", NULL},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *option = api_field_option(&send, str_from(rows[i].field), arena);
        if (rows[i].option == NULL) {
            assert_null(option);
        } else {
            assert_non_null(option);
            assert_string_equal(option, rows[i].option);
        }
    }
    static const Command inbound = {.name = "inbound put", .usage = "", .flags = "secret= json"};
    const char *option = api_field_option(&inbound, STR("secrets[0].reference"), arena);
    assert_non_null(option);
    assert_string_equal(option, "--secret");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_of_the_api_is_named_as_the_option_that_fills_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
