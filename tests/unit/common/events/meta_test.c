// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/id.h"
#include "common/events/meta.h"
#include "tests/unit/common/events/events_fixture.h"

static void assert_bytes(Str bytes, const char *hex)
{
    char text[512];
    assert_true(2 * bytes.len < sizeof text);
    hex_encode(bytes.ptr, bytes.len, text);
    assert_string_equal(text, hex);
}

static void a_meta_has_the_bytes_that_it_always_had(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    MetaSpec spec = {
        .event_id = "c2VhbGVkLWluLTIwMjYuLi",
        .tenant = "acme",
        .notification_id = NTF,
        .correlation_id = "order-7",
        .causation_id = "an-earlier-one",
        .at_us = 5,
    };
    Stentor__V1__Meta meta = meta_make(&spec);
    Stentor__V1__Meta before = a_cause();
    assert_true(str_eq(packed(&meta.base, arena), packed(&before.base, arena)));
    assert_bytes(
        packed(&meta.base, arena),
        "0a16633256686247566b4c576c754c5449774d6a59754c69120461636d651a1e6e74665f30314152"
        "5a334e44454b5453563452524646513639473546415622076f726465722d372a0e616e2d6561726c"
        "6965722d6f6e653005");
    arena_free(arena);
}

static void what_is_absent_takes_no_bytes(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    MetaSpec spec = {.event_id = "e", .tenant = "acme"};
    Stentor__V1__Meta meta = meta_make(&spec);
    assert_string_equal(meta.notification_id, "");
    assert_string_equal(meta.correlation_id, "");
    assert_string_equal(meta.causation_id, "");
    assert_bytes(packed(&meta.base, arena), "0a0165120461636d65");
    arena_free(arena);
}

static void a_trace_is_the_headers_or_what_waited_with_the_event(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    MetaSpec spec = {.event_id = "e", .tenant = "acme"};
    Stentor__V1__Meta meta = meta_make(&spec);
    assert_true(str_eq(meta_trace(&meta, STR("header")), STR("header")));
    assert_int_equal(meta_trace(&meta, STR_EMPTY).len, 0);
    assert_int_equal(meta_trace(NULL, STR_EMPTY).len, 0);
    meta_keep_trace(&meta, STR("kept"), arena);
    assert_true(str_eq(meta_trace(&meta, STR_EMPTY), STR("kept")));
    assert_true(str_eq(meta_trace(&meta, STR("header")), STR("header")));
    Stentor__V1__Meta next = meta_follow(&meta, "f", 1);
    assert_string_equal(next.traceparent, ""); // a header has it from here on
    arena_free(arena);
}

static void what_follows_names_its_cause_and_keeps_whose_it_is(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Stentor__V1__Meta cause = a_cause();
    Stentor__V1__Meta meta = meta_follow(&cause, "the-next-one", 9);
    Stentor__V1__Meta before = cause;
    before.event_id = pb_borrow("the-next-one");
    before.causation_id = cause.event_id;
    before.occurred_at_us = 9;
    assert_true(str_eq(packed(&meta.base, arena), packed(&before.base, arena)));
    assert_bytes(
        packed(&meta.base, arena),
        "0a0c7468652d6e6578742d6f6e65120461636d651a1e6e74665f303141525a334e44454b54535634"
        "52524646513639473546415622076f726465722d372a16633256686247566b4c576c754c5449774d"
        "6a59754c693009");
    arena_free(arena);
}

static void the_head_of_any_event_is_found(void **state)
{
    (void)state;
    Stentor__V1__Meta cause = a_cause();
    Stentor__V1__NotificationRequest request = a_request(&cause);
    Stentor__V1__Rendered rendered = a_rendered(NULL);
    assert_ptr_equal(event_meta(&request.base), &cause);
    assert_null(event_meta(&rendered.base));
    assert_null(event_meta(&cause.base)); // a type without one
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_is_the_headers_or_what_waited_with_the_event),
        cmocka_unit_test(a_meta_has_the_bytes_that_it_always_had),
        cmocka_unit_test(what_is_absent_takes_no_bytes),
        cmocka_unit_test(what_follows_names_its_cause_and_keeps_whose_it_is),
        cmocka_unit_test(the_head_of_any_event_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
