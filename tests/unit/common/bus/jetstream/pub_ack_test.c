// SPDX-License-Identifier: Apache-2.0

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bus/jetstream/pub_ack.h"

static void a_stored_message_has_its_sequence(void **state)
{
    (void)state;
    PubAck ack;
    Error err;
    assert_true(pub_ack_parse(STR("{\"stream\":\"STATUS\", \"seq\":12345678901}"), &ack, &err));
    assert_true(ack.sequence == 12345678901);
    assert_false(ack.duplicate);
    assert_true(pub_ack_parse(
        STR("{\"stream\":\"STATUS\",\"domain\":\"hub\",\"seq\":7,\"duplicate\": true}"), &ack,
        &err));
    assert_true(ack.duplicate);
}

static void sequence_zero_is_no_success(void **state)
{
    (void)state;
    PubAck ack;
    Error err;
    assert_false(
        pub_ack_parse(STR("{\"stream\":\"STATUS\",\"seq\":0,\"duplicate\":true}"), &ack, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
}

static void a_refusal_is_reported_in_the_servers_words(void **state)
{
    (void)state;
    PubAck ack;
    Error err;
    assert_false(pub_ack_parse(
        STR("{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"maximum bytes "
            "exceeded\"},\"stream\":\"S\",\"seq\":0}"),
        &ack, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
    assert_int_equal(ack.error_code, 10077);
    assert_string_equal(err.text, "jetstream: maximum bytes exceeded (10077)");
}

static void what_ingest_refuses_for_good_is_permanent(void **state)
{
    (void)state;
    PubAck ack;
    Error err;
    assert_false(pub_ack_parse(
        STR("{\"error\":{\"code\":400,\"description\":\"the subject must be "
            "evt.<tenant>.<type>\"},\"stream\":\"EVENTS\",\"seq\":0}"),
        &ack, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_false(pub_ack_parse(
        STR("{\"error\":{\"code\":503,\"description\":\"busy\"},\"stream\":\"EVENTS\",\"seq\":0}"),
        &ack, &err));
    assert_int_equal(err.kind, ERROR_TRANSIENT);
}

static void a_message_too_large_is_permanent(void **state)
{
    (void)state;
    PubAck ack;
    Error err;
    assert_false(pub_ack_parse(
        STR("{\"error\":{\"code\":400,\"err_code\":10054,\"description\":\"message size exceeds "
            "maximum allowed\"}}"),
        &ack, &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
}

static void another_message_in_the_place_is_a_conflict_that_names_it(void **state)
{
    (void)state;
    PubAck ack;
    Error err;
    assert_false(pub_ack_parse(
        STR("{\"error\":{\"code\":400,\"err_code\":10071,\"description\":\"wrong last sequence: "
            "4711\"},\"stream\":\"CONFIG\",\"seq\":0}"),
        &ack, &err));
    assert_int_equal(err.kind, ERROR_CONFLICT);
    assert_int_equal(ack.sequence, 4711);
    assert_false(pub_ack_parse(
        STR("{\"error\":{\"code\":400,\"err_code\":10071,\"description\":\"wrong last "
            "sequence\"}}"),
        &ack, &err));
    assert_int_equal(err.kind, ERROR_CONFLICT);
    assert_int_equal(ack.sequence, 0);
}

static void what_is_no_answer_is_transient(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "{", "x", "{\"error\":", "{\"seq\":}", "{\"seq\":-5}", "{\"seq\":\"7\"}", "null"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        PubAck ack;
        Error err = {0};
        assert_false(pub_ack_parse(str_from(bad[i]), &ack, &err));
        assert_int_equal(err.kind, ERROR_TRANSIENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stored_message_has_its_sequence),
        cmocka_unit_test(sequence_zero_is_no_success),
        cmocka_unit_test(a_refusal_is_reported_in_the_servers_words),
        cmocka_unit_test(what_ingest_refuses_for_good_is_permanent),
        cmocka_unit_test(a_message_too_large_is_permanent),
        cmocka_unit_test(another_message_in_the_place_is_a_conflict_that_names_it),
        cmocka_unit_test(what_is_no_answer_is_transient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
