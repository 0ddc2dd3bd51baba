// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/inbound_capability.h"

#define FIRST "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
#define SECOND "100102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
#define HASH "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n"

static MasterKey *open_file(const char *text)
{
    Error err = {0};
    MasterKey *master = master_key_parse(str_from(text), &err);
    if (master == NULL) {
        fail_msg("%s", err.text);
    }
    return master;
}

static void it_fits_its_tenant_and_vendor_alone(void **state)
{
    (void)state;
    MasterKey *master = open_file(FIRST HASH);
    char text[INBOUND_CAPABILITY_SIZE], again[INBOUND_CAPABILITY_SIZE];
    inbound_capability(master, STR("acme"), STR("postmark"), text);
    inbound_capability(master, STR("acme"), STR("postmark"), again);
    assert_int_equal(strlen(text), INBOUND_CAPABILITY_LEN);
    assert_string_equal(text, again);
    Str given = str_from(text);
    assert_true(inbound_capability_fits(master, STR("acme"), STR("postmark"), given));
    assert_false(inbound_capability_fits(master, STR("acme"), STR("mailgun"), given));
    assert_false(inbound_capability_fits(master, STR("acm"), STR("postmark"), given));
    assert_false(inbound_capability_fits(master, STR("acme"), STR("postmark"), STR_EMPTY));
    assert_false(
        inbound_capability_fits(master, STR("acme"), STR("postmark"), str_slice(given, 0, 31)));
    text[0] = text[0] == 'A' ? 'B' : 'A';
    assert_false(inbound_capability_fits(master, STR("acme"), STR("postmark"), given));
    master_key_free(master);
}

static void another_master_key_makes_another(void **state)
{
    (void)state;
    MasterKey *one = open_file(FIRST HASH), *other = open_file(SECOND HASH);
    char text[INBOUND_CAPABILITY_SIZE];
    inbound_capability(one, STR("acme"), STR("postmark"), text);
    assert_false(inbound_capability_fits(other, STR("acme"), STR("postmark"), str_from(text)));
    master_key_free(one);
    master_key_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_fits_its_tenant_and_vendor_alone),
        cmocka_unit_test(another_master_key_makes_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
