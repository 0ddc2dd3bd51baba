// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "services/archiver/log/log_tenants.h"

typedef struct Bench {
    LogTenants *tenants;
    Buf text;
} Bench;

static int set_up(void **state)
{
    static Bench bench;
    bench.tenants = log_tenants_new();
    buf_init(&bench.text, 64 * 1024);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    Bench *bench = *state;
    log_tenants_free(bench->tenants);
    buf_done(&bench->text);
    return 0;
}

static void each_tenant_is_named_once(void **state)
{
    Bench *bench = *state;
    static const char *const names[] = {"acme", "beta", "acme", "acme", "beta"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        log_tenants_add(bench->tenants, str_from(names[i]));
    }
    log_tenants_print(bench->tenants, &bench->text);
    const char *text = buf_c(&bench->text);
    assert_true(strcmp(text, "acme,beta") == 0 || strcmp(text, "beta,acme") == 0);
}

static void an_event_without_a_tenant_may_be_any_tenants(void **state)
{
    Bench *bench = *state;
    log_tenants_add(bench->tenants, STR("acme"));
    log_tenants_add(bench->tenants, STR_EMPTY);
    log_tenants_add(bench->tenants, STR("beta"));
    log_tenants_print(bench->tenants, &bench->text);
    assert_string_equal(buf_c(&bench->text), "");
}

static void so_may_one_tenant_too_many(void **state)
{
    Bench *bench = *state;
    char name[16];
    for (int i = 0; i < LOG_TENANTS_MAX; i++) {
        (void)snprintf(name, sizeof name, "t%d", i);
        log_tenants_add(bench->tenants, str_from(name));
    }
    log_tenants_print(bench->tenants, &bench->text);
    int count = 1;
    for (const char *at = buf_c(&bench->text); *at != '\0'; at++) {
        count += *at == ',';
    }
    assert_int_equal(count, LOG_TENANTS_MAX);
    buf_clear(&bench->text);
    log_tenants_add(bench->tenants, STR("more"));
    log_tenants_print(bench->tenants, &bench->text);
    assert_int_equal(bench->text.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_tenant_is_named_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_event_without_a_tenant_may_be_any_tenants, set_up, tear_down),
        cmocka_unit_test_setup_teardown(so_may_one_tenant_too_many, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
