// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/credential/reference.h"

static void each_kind_is_read(void **state)
{
    (void)state;
    Reference reference;
    assert_true(reference_parse(STR("file:/run/secrets/sendgrid"), &reference, NULL));
    assert_int_equal(reference.kind, REFERENCE_FILE);
    assert_true(str_eq(reference.place, STR("/run/secrets/sendgrid")));
    assert_true(reference_parse(STR("env:SENDGRID_KEY_2"), &reference, NULL));
    assert_int_equal(reference.kind, REFERENCE_ENV);
    assert_true(str_eq(reference.place, STR("SENDGRID_KEY_2")));
    assert_true(reference_parse(STR("exec:/usr/bin/read-key  --name main"), &reference, NULL));
    assert_int_equal(reference.kind, REFERENCE_EXEC);
    assert_true(str_eq(reference.place, STR("/usr/bin/read-key")));
    assert_int_equal(reference.argument_count, 2);
    assert_true(str_eq(reference.arguments[1], STR("main")));
}

static void what_is_no_reference_is_refused_with_the_fix_and_never_shown(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "required"},
        {"SG.secretsecret.secret", "a secret itself is never taken"},
        {"file:relative", "not absolute"},
        {"file:/", "not absolute"},
        {"file:/run/../etc/shadow", "'..'"},
        {"file:/run/secrets/a\nb", "on one line"},
        {"env:", "not the name"},
        {"env:1KEY", "not the name"},
        {"env:SG.secret", "not the name"},
        {"env:STENTOR_DATABASE_URL", "programs' own"},
        {"exec:", "not absolute"},
        {"exec:secret", "not absolute"},
        {"exec:/a 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "put them into a script"},
        {"vault:secret/data/mail#key", "kv get -field=FIELD PATH"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Reference reference;
        Error err = {0};
        assert_false(reference_parse(str_from(rows[i].text), &reference, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        if (strstr(err.text, rows[i].says) == NULL) {
            fail_msg("'%s': %s", rows[i].text, err.text);
        }
        assert_null(strstr(err.text, "SG."));
        assert_null(strstr(err.text, "shadow"));
    }
}

static void one_that_is_too_long_is_refused(void **state)
{
    (void)state;
    char text[REFERENCE_MAX + 2];
    Reference reference;
    memset(text, 'a', sizeof text);
    memcpy(text, "file:/", 6);
    assert_true(reference_parse(str_of(text, REFERENCE_MAX), &reference, NULL));
    assert_false(reference_parse(str_of(text, REFERENCE_MAX + 1), &reference, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_read),
        cmocka_unit_test(what_is_no_reference_is_refused_with_the_fix_and_never_shown),
        cmocka_unit_test(one_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
