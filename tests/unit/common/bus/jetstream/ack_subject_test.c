// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bus/jetstream/ack_subject.h"

static void the_first_form_is_read(void **state)
{
    (void)state;
    AckSubject ack;
    assert_true(
        ack_subject_parse(STR("$JS.ACK.STATUS.archiver.2.70.12.1700000000123456789.5"), &ack));
    assert_true(str_eq(ack.stream, STR("STATUS")));
    assert_true(str_eq(ack.consumer, STR("archiver")));
    assert_int_equal(ack.delivered, 2);
    assert_int_equal(ack.stream_sequence, 70);
    assert_int_equal(ack.consumer_sequence, 12);
    assert_int_equal(ack.stored_at_us, 1700000000123456);
    assert_int_equal(ack.pending, 5);
}

static void the_second_form_is_read(void **state)
{
    (void)state;
    AckSubject ack;
    assert_true(ack_subject_parse(
        STR("$JS.ACK._.AbCdEf.STATUS.archiver.1.70.12.1700000000123456789.0"), &ack));
    assert_true(str_eq(ack.stream, STR("STATUS")));
    assert_int_equal(ack.stream_sequence, 70);
    assert_true(
        ack_subject_parse(STR("$JS.ACK.hub.AbCdEf.S.c.1.71.12.1700000000123456789.0.rNd"), &ack));
    assert_true(str_eq(ack.consumer, STR("c")));
    assert_int_equal(ack.stream_sequence, 71);
}

static void anything_else_is_not_one(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "$JS.ACK.",
        "$JS.ACK.S.c.1.2.3.4",
        "$JS.ACK.S.c.x.2.3.4.5",
        "$JS.ACK.S.c.1..3.4.5",
        "$JS.ACK..c.1.2.3.4.5",
        "$JS.ACK.S.c.-1.2.3.4.5",
        "$JS.ACK.S.c.1.99999999999999999999.3.4.5",
        "$JS.NAK.S.c.1.2.3.4.5",
        "$JS.ACK.S.c.1.2.3.4.5.6",
        "$JS.ACK.a.b.S.c.1.2.3.4.5.6.7",
        "_INBOX.ingest.x.p1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        AckSubject ack;
        if (ack_subject_parse(str_from(bad[i]), &ack)) {
            fail_msg("'%s' was read", bad[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_form_is_read),
        cmocka_unit_test(the_second_form_is_read),
        cmocka_unit_test(anything_else_is_not_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
