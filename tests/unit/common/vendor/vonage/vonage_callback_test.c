// SPDX-License-Identifier: Apache-2.0
// The signatures are those of vonage-ruby-sdk and vonage-python-sdk.
#include "tests/unit/common/vendor/callbacks.h"

typedef struct Vector {
    const char *secret, *body;
    int64_t at_s;
    bool good;
} Vector;

#define RUBY                                                                                       \
    "message-timestamp=2013-11-21+15%3A27%3A30&messageId=020000001B0FE827&msisdn=14843472194&"     \
    "text=Test+again&timestamp=1385047698&to=13239877404&type=text&sig="                           \
    "DDB8397C2B90AAC7F3882D306475C9A5058C92322EEF43C92B298B6E0FC0D330"
#define PYTHON                                                                                     \
    "param2=value2&sig=280c4320703dbc98bfa22db676655ed2acfbfe8792b062ff7622e67f1183c287&"          \
    "timestamp=1234567890&param1=value1"

static const Vector VECTORS[] = {
    {"my_secret_key_for_testing", RUBY, 1385047698, true},
    {"signature_secret", PYTHON, 1234567890, true},
    {"my_secret_key_for_testinG", RUBY, 1385047698, false},
    {"signature_secret", PYTHON "&more=1", 1234567890, false},
};

static void the_vectors_of_vonages_own_libraries_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof VECTORS / sizeof *VECTORS; i++) {
        const Vector *vector = &VECTORS[i];
        const CallbackKey keys[] = {
            {STR("other"), STR("another_secret")}, {STR("main"), str_from(vector->secret)}};
        CallbackRequest request = {
            .body = str_from(vector->body),
            .received_at_us = vector->at_s * 1000000,
            .max_age_s = 600};
        size_t which = 9;
        assert_int_equal(
            ask(&vonage_callback, &request, keys, 2, &which),
            vector->good ? CALLBACK_GOOD : CALLBACK_BAD);
        assert_int_equal(which, vector->good ? 1 : 9);
        request.received_at_us += INT64_C(601) * 1000000;
        assert_int_equal(
            ask(&vonage_callback, &request, keys, 2, &which),
            vector->good ? CALLBACK_STALE : CALLBACK_BAD);
    }
}

#define SAYS(status, code)                                                                         \
    "msisdn=4915112345678&messageId=0A01&client-ref=" NTF "-3&status=" status "&err-code=" code

// clang-format off
static const Meaning MEANINGS[] = {
    {SAYS("accepted", "0"),  STATUS_SENT,      OUTCOME_ACCEPTED,  "",            SUPPRESSION_NONE},
    {SAYS("buffered", "0"),  STATUS_SENT,      OUTCOME_ACCEPTED,  "",            SUPPRESSION_NONE},
    {SAYS("delivered", "0"), STATUS_DELIVERED, OUTCOME_DELIVERED, "",            SUPPRESSION_NONE},
    {SAYS("expired", "8"),   STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    {SAYS("failed", "3"),    STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_HARD_BOUNCE},
    {SAYS("rejected", "12"), STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce", SUPPRESSION_HARD_BOUNCE},
    {SAYS("failed", "2"),    STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce", SUPPRESSION_NONE},
    {SAYS("rejected", "9"),  STATUS_FAILED,    OUTCOME_FAILED,    "blocked",     SUPPRESSION_NONE},
    {SAYS("failed", "99"),   STATUS_FAILED,    OUTCOME_FAILED,    "rejected",    SUPPRESSION_NONE},
};
// clang-format on

static void each_receipt_is_what_it_says(void **state)
{
    (void)state;
    each_means(&vonage_callback, MEANINGS, sizeof MEANINGS / sizeof *MEANINGS);
    static const char *const ignored[] = {SAYS("unknown", "1")};
    each_is_ignored(&vonage_callback, ignored, 1);
    static const char *const refused[] = {"", "{}", "messageId=49151"};
    each_is_refused(&vonage_callback, refused, sizeof refused / sizeof *refused);
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(&vonage_callback, SAYS("failed", "3"), arena);
    assert_true(str_eq(event.notification_id, STR(NTF)));
    assert_int_equal(event.attempt, 3);
    assert_true(str_eq(event.email, STR("+4915112345678")));
    assert_true(str_eq(event.message_id, STR("0A01")));
    assert_true(str_eq(event.text, STR("3 failed")));
    event = read_one(&vonage_callback, "status=delivered&client-ref=" NTF "-0", arena);
    assert_int_equal(event.notification_id.len, 0);
    assert_int_equal(event.cost_micros, 0);
    event = read_one(&vonage_callback, SAYS("delivered", "0") "&price=0.03330000", arena);
    assert_int_equal(event.cost_micros, 33300);
    assert_true(str_eq(event.currency, STR("EUR")));
    arena_free(arena);
}

static void what_a_recipient_wrote_is_a_reply(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(
        &vonage_callback,
        "msisdn=4915112345678&to=SHOP&messageId=0B01&text=Stop&type=text&keyword=STOP&"
        "timestamp=1385047698",
        arena);
    assert_int_equal(event.suppress, SUPPRESSION_OPT_OUT);
    assert_int_equal(event.reply->word, REPLY_WORD_STOP);
    assert_true(str_eq(event.email, STR("+4915112345678")));
    assert_true(str_eq(event.message_id, STR("0B01")));
    assert_true(str_eq(event.reply->to, STR("SHOP")));
    assert_int_equal(event.at_us, INT64_C(1385047698) * 1000000);
    event = read_one(&vonage_callback, "msisdn=49151&type=unicode&text=%D0%9F", arena);
    assert_true(str_eq(event.reply->text, STR("П")) && str_eq(event.reply->kind, STR("text")));
    event = read_one(&vonage_callback, "msisdn=4915112345678&type=binary&data=00", arena);
    assert_true(event.reply->text.len == 0 && str_eq(event.reply->kind, STR("binary")));
    arena_free(arena);
}

static void other_bytes_of_the_same_fields_are_the_same(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackRequest one = {.body = STR("a=%41&sig=AB"), .received_at_us = 1};
    CallbackRequest two = {.body = STR("sig=AB&a=A"), .received_at_us = 1};
    assert_true(
        str_eq(vonage_callback.repeat_key(&one, arena), vonage_callback.repeat_key(&two, arena)));
    assert_true(str_eq(vonage_callback.repeat_key(&one, arena), STR("AB")));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_vonages_own_libraries_fit),
        cmocka_unit_test(each_receipt_is_what_it_says),
        cmocka_unit_test(what_a_recipient_wrote_is_a_reply),
        cmocka_unit_test(other_bytes_of_the_same_fields_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
