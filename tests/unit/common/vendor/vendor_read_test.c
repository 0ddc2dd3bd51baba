// SPDX-License-Identifier: Apache-2.0
// Every vendor with answers that no vendor should give: there is always a result, what it says
// follows from the status, and what it shows is one line of UTF-8 within its bound.
#include "common/vendor/vendor_read.h"
#include "tests/unit/common/vendor/vendor_case.h"

static const int statuses[] = {100, 200, 202, 204, 301, 400, 401, 403, 404, 408, 409,
                               420, 422, 429, 451, 499, 500, 502, 503, 504, 520, 599};

static void check_result(const VendorAnswer *answer, const SendResult *result)
{
    bool accepted = result->state == SEND_ANSWERED && result->reply == REPLY_ACCEPTED;
    assert_true(result->state == SEND_ANSWERED || result->state == SEND_UNKNOWN);
    assert_true(result->reply <= REPLY_ELSEWHERE);
    assert_true(!accepted || (answer->status >= 200 && answer->status < 300));
    assert_true(result->text.len <= VENDOR_TEXT_MAX && str_is_utf8(result->text));
    assert_false(str_has_control(result->text));
    assert_true(result->vendor_message_id.len <= VENDOR_MESSAGE_ID_MAX);
    assert_false(str_has_control(result->vendor_message_id));
    assert_true(result->retry_after_ms <= 86400000);
}

// Each vendor with each status.
static void read_everywhere(Str body, bool cut)
{
    VendorMail mail = case_mail();
    for (size_t n = 0; vendor_at(n) != NULL; n++) {
        for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
            const VendorApi *api = vendor_at(n);
            Arena *arena = arena_new(0);
            VendorAnswer answer = {.status = statuses[i], .body = body, .cut = cut};
            SendResult result;
            memset(&result, 0xff, sizeof result);
            api->read(&answer, arena, &result);
            check_result(&answer, &result);
            if (api->asked != NULL) {
                assert_int_not_equal(api->asked(&answer, &mail, arena, &result), 1);
            }
            arena_free(arena);
        }
    }
}

static void what_is_no_json_is_judged_by_the_status(void **state)
{
    (void)state;
    static const Str bodies[] = {
        {"", 0},
        {"<html>403</html>", 16},
        {"{", 1},
        {"[]", 2},
        {"null", 4},
        {"17", 2},
        {"\"text\"", 6},
        {"{\"a\":1}garbage", 14},
        {"\0\0\0\0", 4},
        {"{\"message\":\"\0\"}", 15},
        {"{\"message\":\"\xff\xfe\"}", 16},
        {"{\"message\":\"\\u0000\"}", 20},
        {"{\"message\":\"\\ud800\"}", 20},
        {"\xef\xbb\xbf{}", 5}};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        read_everywhere(bodies[i], false);
    }
}

static void members_of_the_wrong_type_are_not_read(void **state)
{
    (void)state;
    static const char *const values[] = {"null", "true", "17",     "-1e400",      "1e5",
                                         "[]",   "{}",   "[[[]]]", "\"\\n\\t@\"", "{\"0\":[]}"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        Arena *arena = arena_new(0);
        const char *v = values[i];
        const char *body = arena_printf(
            arena,
            "{\"ErrorCode\":%s,\"Message\":%s,\"MessageID\":%s,\"errors\":%s,\"message\":%s,"
            "\"id\":%s,\"name\":%s,\"statusCode\":%s,\"MessageId\":%s,\"__type\":%s,\"results\":%s,"
            "\"Messages\":%s,\"TotalCount\":%s,\"items\":%s}",
            v, v, v, v, v, v, v, v, v, v, v, v, v, v);
        read_everywhere(str_from(body), false);
        arena_free(arena);
    }
}

static void the_last_of_a_key_that_stands_twice_counts(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorAnswer answer = {.status = 422, .body = STR("{\"a\":\"x\",\"a\":\"y\"}")};
    json_t *body = vendor_answer_object(&answer, arena);
    assert_true(str_eq(vendor_member_text(body, "a"), STR("y")));
    arena_free(arena);
}

static void what_is_too_big_too_deep_or_too_much_is_not_parsed(void **state)
{
    (void)state;
    enum { BIG = 10 * 1024 * 1024 };
    static char bytes[BIG];
    memset(bytes, '[', BIG);
    read_everywhere(str_of(bytes, BIG), true);
    read_everywhere(str_of(bytes, VENDOR_ANSWER_MAX), false);
    memset(bytes, ' ', BIG);
    memcpy(bytes, "{\"message\":\"x\"}", 15);
    Arena *arena = arena_new(0);
    VendorAnswer answer = {.status = 400, .body = str_of(bytes, VENDOR_ANSWER_MAX)};
    assert_non_null(vendor_answer_object(&answer, arena));
    answer.body.len++;
    assert_null(vendor_answer_object(&answer, arena));
    answer.body.len = 15;
    answer.cut = true;
    assert_null(vendor_answer_object(&answer, arena));
    arena_free(arena);
}

static void a_long_text_is_cut_between_characters_after_masking(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const char *text = "";
    for (int i = 0; i < 60; i++) {
        text = arena_printf(arena, "%sé b@example.org\r\n", text);
    }
    Str clean = vendor_clean_text(STR("300"), str_from(text), arena);
    assert_true(clean.len <= VENDOR_TEXT_MAX && clean.len > VENDOR_TEXT_MAX - 16);
    assert_true(str_is_utf8(clean) && !str_has_control(clean));
    assert_true(str_starts(clean, STR("300 é b***@example.org")));
    assert_null(strstr(arena_cstr(arena, clean), " b@"));
    arena_free(arena);
}

static void a_text_keeps_its_code_and_loses_numbers(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    Str clean = vendor_clean_text(STR("21211"), STR("49 151 77777777\nis invalid"), arena);
    assert_true(str_eq(clean, STR("21211 49 *** is invalid")));
    clean = vendor_clean_text(STR_EMPTY, str_of("a\0+4915177777777", 16), arena);
    assert_true(str_eq(clean, STR("a +49***")));
    clean = vendor_clean_text(STR("4915177777777"), STR_EMPTY, arena);
    assert_true(str_eq(clean, STR("491***")));
    arena_free(arena);
}

static void an_id_is_printable_or_none(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    static char longest[VENDOR_MESSAGE_ID_MAX + 1];
    memset(longest, 'a', sizeof longest);
    assert_true(str_eq(vendor_clean_id(STR("<a@b>"), arena), STR("a@b")));
    assert_int_equal(vendor_clean_id(STR("a\nb"), arena).len, 0);
    assert_int_equal(vendor_clean_id(STR("\xff"), arena).len, 0);
    assert_int_equal(vendor_clean_id(str_of(longest, sizeof longest - 1), arena).len, 200);
    assert_int_equal(vendor_clean_id(str_of(longest, sizeof longest), arena).len, 0);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_json_is_judged_by_the_status),
        cmocka_unit_test(members_of_the_wrong_type_are_not_read),
        cmocka_unit_test(the_last_of_a_key_that_stands_twice_counts),
        cmocka_unit_test(what_is_too_big_too_deep_or_too_much_is_not_parsed),
        cmocka_unit_test(a_long_text_is_cut_between_characters_after_masking),
        cmocka_unit_test(a_text_keeps_its_code_and_loses_numbers),
        cmocka_unit_test(an_id_is_printable_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
