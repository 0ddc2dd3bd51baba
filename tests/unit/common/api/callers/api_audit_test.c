// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/api/callers/api_audit.h"

enum { NOTHING = -1 };

static int noted(const char *method, Scope scope, bool reveals, bool person)
{
    AuditKind kind = AUDIT_ERASURE;
    const ApiAct act = {str_from(method), scope, reveals, person};
    return api_audit_wants(&act, &kind) ? (int)kind : NOTHING;
}

static void every_write_is_noted_and_what_only_reads_is_not(void **state)
{
    (void)state;
    for (Scope scope = SCOPE_NONE + 1; scope < SCOPE_COUNT; scope++) {
        bool reveals = scope == SCOPE_RECIPIENTS_REVEAL || scope == SCOPE_SUPPRESSIONS_EXPORT;
        bool itself = scope == SCOPE_CONTENT_REVEAL || scope == SCOPE_DEAD_RESEND;
        int person = noted("POST", scope, false, true);
        Str name = str_from(scope_name(scope));
        bool reads = name.len > 5 && str_eq(str_slice(name, name.len - 5, name.len), STR(":read"));
        assert_int_equal(
            person, reveals           ? (int)AUDIT_READ
                    : reads || itself ? NOTHING
                                      : (int)AUDIT_WRITE);
        assert_int_equal(noted("GET", scope, false, true), reveals ? (int)AUDIT_READ : NOTHING);
        assert_int_equal(noted("HEAD", scope, false, false), reveals ? (int)AUDIT_READ : NOTHING);
    }
    assert_int_equal(noted("PUT", SCOPE_TRIGGERS_WRITE, false, false), AUDIT_WRITE);
    assert_int_equal(noted("PATCH", SCOPE_TENANT_WRITE, false, false), AUDIT_WRITE);
    assert_int_equal(noted("DELETE", SCOPE_KEYS_MANAGE, false, false), AUDIT_WRITE);
}

static void what_a_key_sends_and_says_of_recipients_is_data_but_for_what_it_deletes(void **state)
{
    (void)state;
    static const Scope data[] = {
        SCOPE_NOTIFICATIONS_SEND, SCOPE_BATCHES_WRITE, SCOPE_RECIPIENTS_WRITE, SCOPE_INBOX_TOKEN};
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        assert_int_equal(noted("POST", data[i], false, false), NOTHING);
        assert_int_equal(noted("POST", data[i], false, true), AUDIT_WRITE);
        assert_int_equal(noted("DELETE", data[i], false, false), AUDIT_WRITE);
    }
}

static void a_reveal_is_a_read_by_whomever_and_by_whatever_route(void **state)
{
    (void)state;
    assert_int_equal(noted("GET", SCOPE_RECIPIENTS_READ, true, false), AUDIT_READ);
    assert_int_equal(noted("GET", SCOPE_RECIPIENTS_READ, false, false), NOTHING);
    assert_int_equal(noted("POST", SCOPE_RECIPIENTS_REVEAL, false, true), AUDIT_READ);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_write_is_noted_and_what_only_reads_is_not),
        cmocka_unit_test(what_a_key_sends_and_says_of_recipients_is_data_but_for_what_it_deletes),
        cmocka_unit_test(a_reveal_is_a_read_by_whomever_and_by_whatever_route),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
