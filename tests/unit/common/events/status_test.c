// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/id.h"
#include "common/events/status.h"
#include "tests/unit/common/events/events_fixture.h"

typedef Stentor__V1__NotificationStatus NotificationStatus;

static void assert_bytes(
    const NotificationStatus *status, const NotificationStatus *before, const char *hex)
{
    Arena *arena = arena_new(0);
    Str bytes = packed(&status->base, arena);
    char *text = arena_alloc(arena, 2 * bytes.len + 1);
    hex_encode(bytes.ptr, bytes.len, text);
    assert_true(str_eq(bytes, packed(&before->base, arena)));
    assert_string_equal(text, hex);
    arena_free(arena);
}

static void a_status_has_meta_channel_status_and_why(void **state)
{
    (void)state;
    Stentor__V1__Meta meta = a_cause();
    StatusSpec spec = {&meta, STATUS_FAILED, "poison_message", "why"};
    NotificationStatus status = status_make(&spec, CHANNEL_PUSH);
    NotificationStatus before;
    stentor__v1__notification_status__init(&before);
    before.meta = &meta;
    before.channel = STENTOR__V1__CHANNEL__CHANNEL_PUSH;
    before.status = STENTOR__V1__STATUS__STATUS_FAILED;
    before.reason_code = pb_borrow("poison_message");
    before.reason = pb_borrow("why");
    assert_bytes(
        &status, &before,
        "0a590a16633256686247566b4c576c754c5449774d6a59754c69120461636d651a1e6e74665f3031"
        "41525a334e44454b5453563452524646513639473546415622076f726465722d372a0e616e2d6561"
        "726c6965722d6f6e6530051004280b320e706f69736f6e5f6d6573736167653a03776879");
}

static void a_status_without_a_reason_has_none(void **state)
{
    (void)state;
    StatusSpec spec = {.status = STATUS_SENT};
    NotificationStatus status = status_make(&spec, CHANNEL_EMAIL);
    assert_string_equal(status.reason_code, "");
    assert_string_equal(status.reason, "");
    assert_null(status.attempt);
}

static void a_request_s_status_says_what_the_request_says(void **state)
{
    (void)state;
    Stentor__V1__Meta meta = a_cause();
    Stentor__V1__NotificationRequest request = a_request(NULL);
    StatusSpec spec = {&meta, STATUS_FAILED, "missing_variable", "'name' is missing"};
    NotificationStatus status = status_of_request(&spec, &request);
    NotificationStatus before;
    stentor__v1__notification_status__init(&before);
    before.meta = &meta;
    before.channel = request.channel;
    before.category = request.category;
    before.priority = request.priority;
    before.status = STENTOR__V1__STATUS__STATUS_FAILED;
    before.reason_code = pb_borrow("missing_variable");
    before.reason = pb_borrow("'name' is missing");
    before.template_ = request.template_;
    before.template_version = request.template_version;
    before.recipient_id = request.recipient_id;
    before.address_hash = request.address_hash;
    before.accepted_at_us = request.accepted_at_us;
    before.scheduled_for_us = request.scheduled_for_us;
    before.batch_id = request.batch_id;
    before.resends = request.resends;
    before.digest_window_id = request.digest_window_id;
    before.source_event_type = request.source_event_type;
    before.copy_of = request.copy_of;
    assert_bytes(
        &status, &before,
        "0a590a16633256686247566b4c576c754c5449774d6a59754c69120461636d651a1e6e74665f3031"
        "41525a334e44454b5453563452524646513639473546415622076f726465722d372a0e616e2d6561"
        "726c6965722d6f6e653005100218082002280b32106d697373696e675f7661726961626c653a1127"
        "6e616d6527206973206d697373696e67420777656c636f6d654a05312e322e3052057263705f315a"
        "103031323334353637383961626364656660c1843d7082897a8801029201056261745f31"
        "9a01056467775f31f2010e737461792e636f6e6669726d6564fa01096e74665f666972"
        "7374");
}

static void a_rendered_one_s_status_says_what_was_rendered(void **state)
{
    (void)state;
    Stentor__V1__Meta meta = a_cause();
    Stentor__V1__Rendered rendered = a_rendered(NULL);
    StatusSpec spec = {.meta = &meta, .status = STATUS_SENT};
    NotificationStatus status = status_of_rendered(&spec, &rendered);
    NotificationStatus before;
    stentor__v1__notification_status__init(&before);
    before.meta = &meta;
    before.channel = rendered.channel;
    before.category = rendered.category;
    before.priority = rendered.priority;
    before.status = STENTOR__V1__STATUS__STATUS_SENT;
    before.template_ = rendered.template_;
    before.template_version = rendered.template_version;
    before.recipient_id = rendered.recipient_id;
    before.address_hash = rendered.address_hash;
    before.accepted_at_us = rendered.accepted_at_us;
    before.rendered_at_us = rendered.rendered_at_us;
    before.content_checksum = rendered.content_checksum;
    before.batch_id = rendered.batch_id;
    before.resends = rendered.resends;
    assert_bytes(
        &status, &before,
        "0a590a16633256686247566b4c576c754c5449774d6a59754c69120461636d651a1e6e74665f3031"
        "41525a334e44454b5453563452524646513639473546415622076f726465722d372a0e616e2d6561"
        "726c6965722d6f6e653005100118052004280542046e6577734a05332e302e3052057263705f325a"
        "106665646362613938373635343332313060c1843d68c38db70182010a6120636865636b73756d88"
        "01019201056261745f32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_has_meta_channel_status_and_why),
        cmocka_unit_test(a_status_without_a_reason_has_none),
        cmocka_unit_test(a_request_s_status_says_what_the_request_says),
        cmocka_unit_test(a_rendered_one_s_status_says_what_was_rendered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
