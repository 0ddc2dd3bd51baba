// SPDX-License-Identifier: Apache-2.0
// Each stream of the topology has a row that says whether the log holds it, and where an event goes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bus/topology/topology.h"
#include "common/eventlog/log_streams.h"

static void every_stream_is_decided(void **state)
{
    (void)state;
    size_t count, rows, kept = 0;
    const StreamSpec *streams = topology_streams(&count);
    const LogStream *log = log_streams(&rows);
    assert_int_equal(rows, count); // one that is gone has no row
    for (size_t i = 0; i < count; i++) {
        if (log_stream(streams[i].name) == NULL) {
            fail_msg("log_streams.c has no row for the stream '%s'", streams[i].name);
        }
        assert_true(log[i].why[0] != '\0');
        kept += log[i].keeping != KEPT_NOT ? 1 : 0;
    }
    assert_in_range(kept, 9, LOG_STREAMS_MAX);
}

static void the_class_is_in_the_notifications_id(void **state)
{
    (void)state;
    assert_int_equal(log_class(STR("ntf_01HZZZZZZZS000000000000000")), 'S');
    assert_int_equal(log_class(STR("ntf_01HZZZZZZZB000000000000000")), 'B');
    assert_int_equal(log_class(STR("ntf_01HZZZZZZZR000000000000000")), 'R');
    assert_int_equal(log_class(STR("ntf_01HZZZZZZZ7000000000000000")), 'R'); // kept longest
    assert_int_equal(log_class(STR("ntf_01HZZZZZZZ")), 'R');
    assert_int_equal(log_class(STR_EMPTY), 'R');
    assert_string_equal(log_class_name('B'), "brief");
    assert_string_equal(log_class_name('S'), "standard");
    assert_string_equal(log_class_name('R'), "record");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stream_is_decided),
        cmocka_unit_test(the_class_is_in_the_notifications_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
