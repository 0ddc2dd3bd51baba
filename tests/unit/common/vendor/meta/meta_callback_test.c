// SPDX-License-Identifier: Apache-2.0
// The signature is the one of GitHub's documents, whose construction is Meta's.
#include "common/vendor/meta/meta.h"
#include "tests/unit/common/vendor/callbacks.h"

#define SECRET "It's a Secret to Everybody"
#define SIGNED "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

static CallbackVerdict judge(
    const char *header, const char *body, const char *secret, size_t *which)
{
    const VendorPair pair = {STR("X-Hub-Signature-256"), str_from(header)};
    const CallbackKey keys[] = {
        {STR("other"), STR("another secret of theirs")}, {STR("main"), str_from(secret)}};
    CallbackRequest request = {.headers = &pair, .header_count = 1, .body = str_from(body)};
    return ask(&meta_callback, &request, keys, 2, which);
}

static void the_raw_bytes_are_signed(void **state)
{
    (void)state;
    size_t which = 9;
    assert_int_equal(judge(SIGNED, "Hello, World!", SECRET, &which), CALLBACK_GOOD);
    assert_int_equal(which, 1);
    assert_int_equal(judge(SIGNED, "Hello, World", SECRET, &which), CALLBACK_BAD);
    assert_int_equal(
        judge(SIGNED, "Hello, World!", "It's no Secret to Anybody", &which), CALLBACK_BAD);
    assert_int_equal(judge("sha1=75", "Hello, World!", SECRET, &which), CALLBACK_UNSIGNED);
    assert_int_equal(judge("", "Hello, World!", SECRET, &which), CALLBACK_UNSIGNED);
}

#define CHANGE(value)                                                                              \
    "{\"field\":\"messages\",\"value\":{\"messaging_product\":\"whatsapp\",\"metadata\":{"         \
    "\"display_phone_number\":\"15550783881\",\"phone_number_id\":\"106540352242922\"}," value     \
    "}}"
#define WEBHOOK(changes)                                                                           \
    "{\"object\":\"whatsapp_business_account\",\"entry\":[{\"id\":\"1\",\"changes\":[" changes     \
    "]}]}"
#define STATUS_OF(status, more)                                                                    \
    "{\"id\":\"wamid.A\",\"status\":\"" status "\",\"timestamp\":\"1750263773\",\"recipient_id\":" \
    "\"4915112345678\",\"biz_opaque_callback_data\":\"" NTF "-3\"" more "}"
#define SAYS(status) WEBHOOK(CHANGE("\"statuses\":[" STATUS_OF(status, "") "]"))
#define BILLED(pricing)                                                                            \
    WEBHOOK(CHANGE("\"statuses\":[" STATUS_OF("delivered", ",\"pricing\":" pricing) "]"))
#define LONG_65 "abcdefghijklmabcdefghijklmabcdefghijklmabcdefghijklmabcdefghijklm"
#define FAILED(code)                                                                               \
    WEBHOOK(CHANGE("\"statuses\":[" STATUS_OF(                                                     \
        "failed", ",\"errors\":[{\"code\":" code ",\"title\":\"t\",\"error_data\":{\"details\":"   \
                  "\"why\"}}]") "]"))
#define WROTE(message)                                                                             \
    WEBHOOK(CHANGE("\"contacts\":[{\"wa_id\":\"4915112345678\"}],\"messages\":[{\"from\":"         \
                   "\"4915112345678\",\"id\":\"wamid.R\",\"timestamp\":\"1750263773\"," message    \
                   "}]"))

// clang-format off
static const Meaning MEANINGS[] = {
    {SAYS("sent"),      STATUS_SENT,      OUTCOME_ACCEPTED,  "",                        SUPPRESSION_NONE},
    {SAYS("delivered"), STATUS_DELIVERED, OUTCOME_DELIVERED, "",                        SUPPRESSION_NONE},
    {SAYS("read"),      STATUS_OPENED,    OUTCOME_OPENED,    "",                        SUPPRESSION_NONE},
    {FAILED("131026"),  STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",             SUPPRESSION_NONE},
    {FAILED("131047"),  STATUS_FAILED,    OUTCOME_FAILED,    "window_closed",           SUPPRESSION_NONE},
    {FAILED("131049"),  STATUS_FAILED,    OUTCOME_FAILED,    "blocked",                 SUPPRESSION_NONE},
    {FAILED("131050"),  STATUS_FAILED,    OUTCOME_FAILED,    "opted_out",               SUPPRESSION_NONE},
    {FAILED("132001"),  STATUS_FAILED,    OUTCOME_FAILED,    "unknown_vendor_template", SUPPRESSION_NONE},
    {FAILED("131053"),  STATUS_FAILED,    OUTCOME_FAILED,    "rejected",                SUPPRESSION_NONE},
    {WROTE("\"type\":\"text\",\"text\":{\"body\":\"Stopp!\"}"), STATUS_NONE, OUTCOME_NONE, "", SUPPRESSION_OPT_OUT},
    {WROTE("\"type\":\"text\",\"text\":{\"body\":\"Stop it\"}"), STATUS_NONE, OUTCOME_NONE, "", SUPPRESSION_NONE},
};
// clang-format on

static void each_status_is_what_it_says(void **state)
{
    (void)state;
    each_means(&meta_callback, MEANINGS, sizeof MEANINGS / sizeof *MEANINGS);
    each_code_means_what_it_means_in_an_answer(&meta_callback, &meta_api, FAILED("%s"));
    static const char *const ignored[] = {SAYS("played"), SAYS("deleted")};
    each_is_ignored(&meta_callback, ignored, 2);
    static const char *const refused[] = {"", "[]", "{}", "{\"object\":\"page\",\"entry\":[]}"};
    each_is_refused(&meta_callback, refused, sizeof refused / sizeof *refused);
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(&meta_callback, FAILED("131047"), arena);
    assert_true(str_eq(event.notification_id, STR(NTF)));
    assert_int_equal(event.attempt, 3);
    assert_true(str_eq(event.email, STR("+4915112345678")));
    assert_true(str_eq(event.message_id, STR("wamid.A")));
    assert_true(str_eq(event.account, STR("106540352242922")));
    assert_true(str_eq(event.text, STR("131047 why")));
    assert_int_equal(event.at_us, INT64_C(1750263773) * 1000000);
    arena_free(arena);
}

static void a_status_says_as_what_it_is_billed(void **state)
{
    (void)state;
    static const struct {
        const char *body, *category;
    } rows[] = {
        {BILLED("{\"billable\":true,\"pricing_model\":\"PMP\",\"category\":\"utility\",\"type\":"
                "\"regular\"}"),
         "utility"},
        {BILLED("{\"billable\":false,\"pricing_model\":\"PMP\",\"category\":\"service\"}"), "free"},
        {BILLED("{\"category\":\"utility\",\"type\":\"free_customer_service\"}"), "free"},
        {BILLED("{\"category\":\"marketing\",\"type\":\"regular\"}"), "marketing"},
        {BILLED("{\"billable\":true}"), ""},
        {BILLED("{\"category\":\"a\\nb\"}"), ""},
        {BILLED("{\"category\":\"" LONG_65 "\"}"), ""},
        {BILLED("7"), ""},
        {SAYS("sent"), ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *arena = arena_new(0);
        CallbackEvent event = read_one(&meta_callback, rows[i].body, arena);
        assert_string_equal(arena_cstr(arena, event.price_category), rows[i].category);
        arena_free(arena);
    }
}

static void what_a_recipient_wrote_is_a_reply(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(
        &meta_callback,
        WROTE("\"context\":{\"from\":\"15550783881\",\"id\":\"wamid.A\"},\"type\":\"button\","
              "\"button\":{\"payload\":\"p\",\"text\":\"Yes, please\"}"),
        arena);
    assert_true(str_eq(event.email, STR("+4915112345678")));
    assert_true(str_eq(event.message_id, STR("wamid.R")));
    assert_true(str_eq(event.reply->text, STR("Yes, please")));
    assert_true(str_eq(event.reply->answers, STR("wamid.A")));
    assert_true(str_eq(event.reply->kind, STR("button")));
    assert_true(str_eq(event.reply->to, STR("106540352242922")));
    assert_int_equal(event.reply->word, REPLY_WORD_NONE);
    event = read_one(
        &meta_callback, WROTE("\"type\":\"image\",\"image\":{\"id\":\"1\",\"caption\":\"Look\"}"),
        arena);
    assert_true(str_eq(event.reply->text, STR("Look")));
    assert_true(str_eq(event.reply->kind, STR("image")));
    CallbackBatch batch = read_all(&meta_callback, WROTE("\"text\":{\"body\":\"x\"}"), arena);
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.unreadable, 1);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_raw_bytes_are_signed),
        cmocka_unit_test(each_status_is_what_it_says),
        cmocka_unit_test(a_status_says_as_what_it_is_billed),
        cmocka_unit_test(what_a_recipient_wrote_is_a_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
