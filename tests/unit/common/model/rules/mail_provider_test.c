// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/model/rules/mail_provider.h"

static void expect(const char *address, const char *provider)
{
    Str found = mail_provider(str_from(address));
    if (!str_eq(found, str_from(provider))) {
        fail_msg("%s: '" STR_FMT "', not '%s'", address, STR_ARG(found), provider);
    }
}

static void domains_of_one_provider_are_one(void **state)
{
    (void)state;
    expect("ada@gmail.com", "gmail.com");
    expect("ada@GoogleMail.com", "gmail.com");
    expect("ada@hotmail.com", "outlook.com");
    expect("ada@live.com", "outlook.com");
    expect("ada@msn.com", "outlook.com");
    expect("ada@ymail.com", "yahoo.com");
    expect("ada@aol.com", "yahoo.com");
    expect("ada@me.com", "icloud.com");
    expect("\"a@gmail.com\"@mac.com", "icloud.com");
}

static void every_other_domain_is_one_too(void **state)
{
    (void)state;
    expect("ada@lovelace.example", "other");
    expect("ada@notgmail.com", "other");
    expect("ada@gmail.com.example", "other");
    expect("ada", "");
    expect("ada@", "");
    expect("", "");
}

// The guard rails keep a place for each.
static void the_names_are_listed_once_each(void **state)
{
    (void)state;
    size_t count = 0;
    for (const char *name; (name = mail_provider_name(count)) != NULL; count++) {
        for (size_t i = 0; i < count; i++) {
            assert_string_not_equal(name, mail_provider_name(i));
        }
    }
    assert_in_range(count, 5, 32);
    assert_string_equal(mail_provider_name(count - 1), "other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(domains_of_one_provider_are_one),
        cmocka_unit_test(every_other_domain_is_one_too),
        cmocka_unit_test(the_names_are_listed_once_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
