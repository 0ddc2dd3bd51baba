// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/bus/events/frames.h"
#include "common/codec/event.h"
#include "common/history/accepted.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define ALICE "ntf_01M83AVY1NCDCG3Y6T3Y82BH3P"
#define BOB "ntf_01M83AVY1NCDCG3Y6T3Y82BH3Q"

static const int64_t accepted_at_us = INT64_C(1795408394293123);

static Frame status_frame(Arena *arena, const char *tenant, const char *id, const char *reason)
{
    Stentor__V1__Meta meta;
    Stentor__V1__NotificationStatus event;
    stentor__v1__meta__init(&meta);
    stentor__v1__notification_status__init(&event);
    meta.tenant = arena_printf(arena, "%s", tenant);
    meta.event_id = arena_printf(arena, "AAAAAAAAAAAAAAAAAAAAAA");
    meta.notification_id = arena_printf(arena, "%s", id);
    meta.occurred_at_us = accepted_at_us;
    event.meta = &meta;
    event.channel = (Stentor__V1__Channel)CHANNEL_EMAIL;
    event.status = (Stentor__V1__Status)STATUS_SUPPRESSED;
    event.reason_code = arena_printf(arena, "%s", reason);
    event.template_ = arena_printf(arena, "welcome");
    Frame frame = {FRAME_STATUS, {.subject = "ntf.status.acme.email.suppressed"}};
    frame.out.event_id = STR("AAAAAAAAAAAAAAAAAAAAAA");
    Error err;
    assert_true(event_pack(&event.base, arena, &frame.out.payload, &err));
    return frame;
}

static Frame request_frame(Arena *arena, const char *id, const char *gate_trace)
{
    Stentor__V1__Meta meta;
    Stentor__V1__NotificationRequest event;
    stentor__v1__meta__init(&meta);
    stentor__v1__notification_request__init(&event);
    meta.tenant = arena_printf(arena, "acme");
    meta.notification_id = arena_printf(arena, "%s", id);
    event.meta = &meta;
    event.channel = (Stentor__V1__Channel)CHANNEL_EMAIL;
    event.gate_trace = arena_printf(arena, "%s", gate_trace);
    Frame frame = {FRAME_REQUEST, {.subject = "ntf.request.normal.acme"}};
    frame.out.event_id = STR("BBBBBBBBBBBBBBBBBBBBBB");
    assert_true(event_pack(&event.base, arena, &frame.out.payload, NULL));
    return frame;
}

static Str accept_row(const Frame *frames, size_t count, Arena *arena)
{
    Str packed = frames_pack(frames, count, arena);
    char *row = arena_alloc(arena, FRAMES_HEAD.len + packed.len);
    memcpy(row, FRAMES_HEAD.ptr, FRAMES_HEAD.len);
    memcpy(row + FRAMES_HEAD.len, packed.ptr, packed.len);
    return str_of(row, FRAMES_HEAD.len + packed.len);
}

static void the_accept_log_shows_the_status_of_the_one_that_is_asked_for(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Frame deferred = {FRAME_DEFERRED, {.subject = "ntf.deferred.limit.acme", .payload = STR("x")}};
    deferred.out.event_id = STR("CCCCCCCCCCCCCCCCCCCCCC");
    Frame frames[] = {
        deferred, request_frame(arena, BOB, "T+S+A+"), status_frame(arena, "acme", BOB, "opt_out"),
        request_frame(arena, ALICE, "T+S-"), status_frame(arena, "acme", ALICE, "hard_bounce")};
    Str events = accept_row(frames, 5, arena);
    HistoryRow row;
    Error err = {0};
    if (!accepted_row(events, accepted_at_us, STR("acme"), STR(ALICE), arena, &row, &err)) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(row.status, STATUS_SUPPRESSED);
    assert_true(str_eq(row.reason_code, STR("hard_bounce")));
    assert_int_equal(row.at_us[FOLD_ENDED], accepted_at_us);
    assert_true(str_eq(row.text[FOLD_GATE_TRACE], STR("T+S-")));
    assert_false(accepted_row(events, accepted_at_us, STR("other"), STR(ALICE), arena, &row, &err));
    assert_false(
        accepted_row(STR("\x07"), accepted_at_us, STR("acme"), STR(ALICE), arena, &row, &err));
    arena_free(arena);
}

// Its row is asked for by the millisecond in the id.
static void the_accept_log_finds_an_id_that_was_made_with_its_row(void **state)
{
    (void)state;
    static const struct {
        int64_t since_id_us;
        bool digest;
        bool found;
    } cases[] = {
        {0, false, true},   {999, false, true},    {1000, false, false},
        {-1, false, false}, {-1000, false, false}, {500, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        HistoryRow row = {.created_at_us = INT64_C(1795408394293000)};
        row.at_us[FOLD_QUEUED] = row.created_at_us + cases[i].since_id_us;
        row.text[FOLD_DIGEST] = cases[i].digest ? STR("win_1") : STR_EMPTY;
        assert_int_equal(accepted_finds(&row), cases[i].found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_accept_log_shows_the_status_of_the_one_that_is_asked_for),
        cmocka_unit_test(the_accept_log_finds_an_id_that_was_made_with_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
