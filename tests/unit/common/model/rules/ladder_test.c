// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/model/rules/ladder.h"

enum { SECOND = 1000000 };

static void the_default_ends_within_a_day(void **state)
{
    (void)state;
    Ladder ladder = ladder_default();
    const int32_t waits[] = {300, 900, 3600, 14400, 43200};
    assert_int_equal(ladder.count, 5);
    for (uint32_t rung = 0; rung < 5; rung++) {
        int64_t due = 0;
        assert_true(ladder_next(&ladder, rung, 1000, 0, 0.0, &due));
        assert_true(due == 1000 + (int64_t)waits[rung] * SECOND);
    }
}

static void a_used_up_ladder_says_so(void **state)
{
    (void)state;
    Ladder ladder = ladder_default();
    int64_t due = 77;
    assert_false(ladder_next(&ladder, 5, 0, 0, 0.0, &due));
    assert_false(ladder_next(&ladder, UINT32_MAX, 0, UINT32_MAX, 0.5, &due));
    assert_true(due == 77);
}

static void jitter_adds_up_to_a_tenth(void **state)
{
    (void)state;
    Ladder ladder = ladder_default();
    for (int i = 0; i < 1000; i++) {
        int64_t due = 0;
        assert_true(ladder_next(&ladder, 0, 0, 0, i / 1000.0, &due));
        int64_t expected = INT64_C(300) * SECOND + INT64_C(30) * SECOND * i / 1000;
        assert_true(due >= expected - 1 && due <= expected + 1);
    }
}

static void a_longer_retry_after_wins_up_to_a_week(void **state)
{
    (void)state;
    Ladder ladder = ladder_default();
    int64_t due = 0;
    assert_true(ladder_next(&ladder, 0, 0, 299999, 0.0, &due));
    assert_true(due == INT64_C(300) * SECOND);
    assert_true(ladder_next(&ladder, 0, 0, 300001, 0.0, &due));
    assert_true(due == INT64_C(300001000));
    assert_true(ladder_next(&ladder, 0, 0, UINT32_MAX, 0.0, &due));
    assert_true(due == INT64_C(604800) * SECOND);
}

static void a_ladder_is_read_from_text(void **state)
{
    (void)state;
    Ladder ladder = {.count = 0};
    assert_true(ladder_parse(STR("1, 900,604800"), &ladder));
    assert_int_equal(ladder.count, 3);
    assert_int_equal(ladder.rung_s[0], 1);
    assert_int_equal(ladder.rung_s[1], 900);
    assert_int_equal(ladder.rung_s[2], 604800);
    assert_true(ladder_parse(STR("1,2,3,4,5,6,7,8,9,10"), &ladder));
    assert_int_equal(ladder.count, LADDER_MAX);
    const char *bad[] = {
        "", ",", "5,", "0", "-1", "604801", "5m", "5 6", "1,2,3,4,5,6,7,8,9,10,11"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(ladder_parse(str_from(bad[i]), &ladder));
        assert_int_equal(ladder.count, LADDER_MAX);
    }
}

static void each_channel_has_its_own_ladder_and_the_others_the_default(void **state)
{
    (void)state;
    Ladders ladders;
    assert_true(ladders_parse(STR("email=300, 900 ; sms=60"), &ladders, NULL));
    assert_int_equal(ladders_of(&ladders, CHANNEL_EMAIL)->count, 2);
    assert_int_equal(ladders_of(&ladders, CHANNEL_EMAIL)->rung_s[1], 900);
    assert_int_equal(ladders_of(&ladders, CHANNEL_SMS)->count, 1);
    assert_int_equal(ladders_of(&ladders, CHANNEL_SMS)->rung_s[0], 60);
    assert_int_equal(ladders_of(&ladders, CHANNEL_PUSH)->count, ladder_default().count);
    assert_int_equal(ladders_of(&ladders, CHANNEL_VOICE)->count, 2);
    assert_int_equal(ladders_of(&ladders, CHANNEL_VOICE)->rung_s[0], 120);
    assert_int_equal(ladders_of(&ladders, CHANNEL_VOICE)->rung_s[1], 600);
    assert_int_equal(ladders_of(&ladders, CHANNEL_COUNT)->count, ladder_default().count);
    assert_true(ladders_parse(STR("7,8,9"), &ladders, NULL));
    assert_int_equal(ladders_of(&ladders, CHANNEL_EMAIL)->count, 3);
    assert_int_equal(ladders_of(&ladders, CHANNEL_VOICE)->rung_s[0], 7);
}

static void ladders_that_are_none_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "'' is no ladder"},
        {"5m", "'5m' is no ladder"},
        {"email=", "'' is no ladder"},
        {"email=0", "'0' is no ladder"},
        {"email=60;", "'' is no <channel>=<waits>"},
        {"email=60;90", "'90' is no <channel>=<waits>"},
        {"fax=60", "'fax' is no channel"},
        {"email=60;email=90", "'email' is named twice"},
        {"email=60,sms=90", "'60,sms=90' is no ladder"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        Ladders ladders;
        Error err = {0};
        assert_false(ladders_parse(str_from(bad[i][0]), &ladders, &err));
        assert_int_equal(err.kind, ERROR_CONFIG);
        if (strstr(err.text, bad[i][1]) == NULL ||
            strstr(err.text, "email=300,900;sms=60") == NULL) {
            fail_msg("'%s': %s", bad[i][0], err.text);
        }
    }
}

static void replies_are_distinguished(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *enhanced;
        ReplyClass expected;
    } rows[] = {
        {250, "2.0.0", REPLY_ACCEPTED},
        {251, "", REPLY_ACCEPTED},
        {200, "", REPLY_ACCEPTED},
        {421, "", REPLY_THROTTLED},
        {421, "4.3.0", REPLY_THROTTLED},
        {450, "4.2.0", REPLY_THROTTLED},
        {452, "", REPLY_THROTTLED},
        {451, "", REPLY_RETRY},
        {451, "4.3.0", REPLY_RETRY},
        {451, "4.7.1", REPLY_THROTTLED},
        {451, "4.7.650", REPLY_THROTTLED},
        {432, "4.2.2", REPLY_THROTTLED},
        {431, "4.3.1", REPLY_THROTTLED},
        {455, "4.5.3", REPLY_THROTTLED},
        {454, "4.7.0", REPLY_THROTTLED},
        {454, "4.7.5", REPLY_RETRY},
        {454, "", REPLY_RETRY},
        {499, "", REPLY_RETRY},
        {451, "5.1.1", REPLY_RETRY},
        {550, "5.1.1", REPLY_BAD_ADDRESS},
        {550, "5.1.2", REPLY_BAD_ADDRESS},
        {553, "5.1.3", REPLY_BAD_ADDRESS},
        {551, "5.1.6", REPLY_BAD_ADDRESS},
        {556, "5.1.10", REPLY_BAD_ADDRESS},
        {550, "", REPLY_TERMINAL},
        {550, "5.7.1", REPLY_TERMINAL},
        {550, "5.1.8", REPLY_TERMINAL},
        {550, "5.1.11", REPLY_TERMINAL},
        {552, "5.2.2", REPLY_TERMINAL},
        {554, "5.7.1", REPLY_TERMINAL},
        {599, "", REPLY_TERMINAL},
        {550, "4.2.2", REPLY_TERMINAL},
        {0, "", REPLY_RETRY},
        {-1, "", REPLY_RETRY},
        {199, "", REPLY_RETRY},
        {354, "", REPLY_RETRY},
        {600, "", REPLY_RETRY},
        {999, "5.1.1", REPLY_RETRY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ReplyClass got = reply_classify(rows[i].code, str_from(rows[i].enhanced));
        if (got != rows[i].expected) {
            fail_msg(
                "%d %s is %d, not %d", rows[i].code, rows[i].enhanced, (int)got,
                (int)rows[i].expected);
        }
    }
}

static void a_request_may_have_a_ladder_of_its_own(void **state)
{
    (void)state;
    static const uint32_t waits[] = {5, 7};
    static const struct {
        size_t count;
        uint32_t max_attempts;
        uint32_t wanted_count;
        int32_t wanted[4];
    } rows[] = {
        {0, 0, 3, {10, 20, 30}},     // nothing of its own
        {2, 0, 2, {5, 7}},           // as many attempts as there are waits, and one
        {2, 5, 4, {5, 7, 7, 7}},     // the last one is repeated
        {2, 2, 1, {5}},              // cut
        {0, 5, 4, {10, 20, 30, 30}}, // the installation's waits
        {0, 1, 0, {0}},              // no retry
        {2, 1, 0, {0}},
    };
    const Ladder base = {.rung_s = {10, 20, 30}, .count = 3};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const OwnRetries own = {waits, rows[i].count, rows[i].max_attempts};
        Ladder ladder;
        assert_true(ladder_own(&base, &own, &ladder, NULL));
        assert_int_equal(ladder.count, rows[i].wanted_count);
        for (uint32_t rung = 0; rung < ladder.count; rung++) {
            assert_int_equal(ladder.rung_s[rung], rows[i].wanted[rung]);
        }
    }
}

static void a_ladder_of_a_request_has_bounds(void **state)
{
    (void)state;
    static const uint32_t none[] = {0}, week[] = {LADDER_WAIT_MAX_S + 1};
    static const uint32_t many[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const OwnRetries bad[] = {{none, 1, 0}, {week, 1, 0}, {many, 11, 0}, {NULL, 0, 12}};
    const Ladder base = ladder_default();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        Error err = {0};
        Ladder ladder;
        assert_false(ladder_own(&base, &bad[i], &ladder, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
    }
    Ladder ladder;
    assert_true(ladder_own(&base, &(OwnRetries){many, 10, 11}, &ladder, NULL));
    assert_int_equal(ladder.count, LADDER_MAX);
}

static void each_class_of_a_reply_has_a_name_that_is_read_back(void **state)
{
    (void)state;
    ReplyClass read = REPLY_ACCEPTED;
    for (ReplyClass reply = REPLY_ACCEPTED; reply <= REPLY_ELSEWHERE; reply++) {
        assert_true(reply_class_from_name(str_from(reply_class_name(reply)), &read));
        assert_int_equal(read, reply);
    }
    assert_string_equal(reply_class_name(REPLY_BAD_ADDRESS), "bad_address");
    assert_false(reply_class_from_name(STR("unknown"), &read));
    assert_false(reply_class_from_name(STR_EMPTY, &read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_ends_within_a_day),
        cmocka_unit_test(a_used_up_ladder_says_so),
        cmocka_unit_test(jitter_adds_up_to_a_tenth),
        cmocka_unit_test(a_longer_retry_after_wins_up_to_a_week),
        cmocka_unit_test(a_ladder_is_read_from_text),
        cmocka_unit_test(each_channel_has_its_own_ladder_and_the_others_the_default),
        cmocka_unit_test(ladders_that_are_none_are_refused_by_name),
        cmocka_unit_test(replies_are_distinguished),
        cmocka_unit_test(a_request_may_have_a_ladder_of_its_own),
        cmocka_unit_test(a_ladder_of_a_request_has_bounds),
        cmocka_unit_test(each_class_of_a_reply_has_a_name_that_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
