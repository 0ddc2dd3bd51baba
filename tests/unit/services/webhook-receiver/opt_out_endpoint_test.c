// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "services/webhook-receiver/opt_out_endpoint.h"
#include "stentor/v1/people.pb-c.h"

static void both_encodings_of_one_click_are_known(void **state)
{
    (void)state;
    assert_true(opt_out_is_one_click(STR("List-Unsubscribe=One-Click")));
    assert_true(opt_out_is_one_click(STR("--x\r\nContent-Disposition: form-data; "
                                         "name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--")));
    assert_false(opt_out_is_one_click(STR_EMPTY));
    assert_false(opt_out_is_one_click(STR("List-Unsubscribe")));
    assert_false(opt_out_is_one_click(STR("a=b")));
}

static void only_its_own_path_is_its(void **state)
{
    (void)state;
    assert_true(opt_out_is_path(STR("/v1/opt-out/oot_x")));
    assert_false(opt_out_is_path(STR("/v1/opt-out")));
    assert_false(opt_out_is_path(STR("/v1/inbound/acme/sendgrid")));
}

static void the_preference_says_off_for_that_category_and_channel(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    OptOut what = {
        .tenant = STR("acme"),
        .notification_id = STR("ntf_01M2V3W4X5Y6Z7A8B9CADBECFD"),
        .recipient_id = STR("rcp_01M2V3W4X5Y6Z7A8B9CADBECFE"),
        .channel = CHANNEL_EMAIL,
        .category = CATEGORY_SOCIAL,
    };
    BusOut out;
    Error err = {0};
    assert_true(opt_out_preference(&what, 77, arena, &out, &err));
    assert_string_equal(out.subject, "ppl.acme");
    const Stentor__V1__PersonEvent *event = (const Stentor__V1__PersonEvent *)event_unpack(
        &stentor__v1__person_event__descriptor, out.payload, arena, &err);
    assert_non_null(event);
    assert_string_equal(event->recipient_id, "rcp_01M2V3W4X5Y6Z7A8B9CADBECFE");
    assert_string_equal(event->said_by, "opt-out");
    assert_int_equal(event->part_case, STENTOR__V1__PERSON_EVENT__PART_PREFERENCE);
    assert_true(event->preference->off);
    assert_int_equal(event->preference->category, CATEGORY_SOCIAL);
    assert_int_equal(event->preference->channel, CHANNEL_EMAIL);
    assert_int_equal(event->meta->occurred_at_us, 77);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_encodings_of_one_click_are_known),
        cmocka_unit_test(only_its_own_path_is_its),
        cmocka_unit_test(the_preference_says_off_for_that_category_and_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
