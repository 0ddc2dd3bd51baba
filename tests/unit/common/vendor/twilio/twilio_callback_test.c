// SPDX-License-Identifier: Apache-2.0
// The signatures are those of twilio-node's spec/validation.spec.js and twilio-python's
// tests/unit/test_request_validator.py.
#include "common/vendor/twilio/twilio.h"
#include "tests/unit/common/vendor/callbacks.h"

#define FORM                                                                                       \
    "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&"             \
    "To=%2B18005551212"

typedef struct Vector {
    const char *url, *body, *signature;
    bool good;
} Vector;

// clang-format off
static const Vector VECTORS[] = {
    {"https://mycompany.com/myapp.php?foo=1&bar=2", FORM, "RSOYDt4T1cUTdK1PDd93/VVr8B8=", true},
    {"https://mycompany.com:443/myapp.php?foo=1&bar=2", FORM, "RSOYDt4T1cUTdK1PDd93/VVr8B8=", true},
    {"http://mycompany.com:1234/myapp.php?foo=1&bar=2", FORM, "Zmvh+3yNM1Phv2jhDCwEM3q5ebU=", true},
    {"https://mycompany.com/myapp.php?foo=1&bar=2", FORM, "kvajT1Ptam85bY51eRf/AJRuM3w=", true},
    {"http://mycompany.com/myapp.php?foo=1&bar=2", FORM, "0ZXoZLH/DfblKGATFgpif+LLRf4=", true},
    {"https://mycompany.com/myapp.php?foo=1&bar=2", "Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234", "IK+Dwps556ElfBT0I3Rgjkr1wJU=", true},
    {"https://mycompany.com/myapp.php?foo=1&bar=3", FORM, "RSOYDt4T1cUTdK1PDd93/VVr8B8=", false},
    {"http://mycompany.com/myapp.php?foo=1&bar=2", FORM, "RSOYDt4T1cUTdK1PDd93/VVr8B8=", false},
    {"https://mycompany.com/myapp.php?foo=1&bar=2", "Digits=1235", "RSOYDt4T1cUTdK1PDd93/VVr8B8=", false},
    {"https://mycompany.com/myapp.php?foo=1&bar=2", FORM, "RSOYDt4T1cUTdK1PDd93/VVr8B9=", false},
    {"", FORM, "RSOYDt4T1cUTdK1PDd93/VVr8B8=", false},
};
// clang-format on

static void the_vectors_of_twilios_own_libraries_fit(void **state)
{
    (void)state;
    const CallbackKey keys[] = {{STR("old"), STR("54321")}, {STR("new"), STR("12345")}};
    for (size_t i = 0; i < sizeof VECTORS / sizeof *VECTORS; i++) {
        const Vector *vector = &VECTORS[i];
        const VendorPair header = {STR("x-twilio-signature"), str_from(vector->signature)};
        CallbackRequest request = {
            .url = str_from(vector->url),
            .headers = &header,
            .header_count = 1,
            .body = str_from(vector->body)};
        size_t which = 9;
        CallbackVerdict verdict = ask(&twilio_callback, &request, keys, 2, &which);
        if (verdict != (vector->good ? CALLBACK_GOOD : CALLBACK_BAD)) {
            fail_msg("vector %zu: %d", i, (int)verdict);
        }
        assert_int_equal(which, vector->good ? 1 : 9);
    }
}

static void without_a_signature_or_a_form_it_is_unsigned(void **state)
{
    (void)state;
    const CallbackKey key = {STR("main"), STR("12345")};
    const VendorPair header = {STR("X-Twilio-Signature"), STR("RSOYDt4T1cUTdK1PDd93/VVr8B8=")};
    size_t which = 0;
    CallbackRequest request = {.url = STR("https://a.example/"), .body = STR(FORM)};
    assert_int_equal(ask(&twilio_callback, &request, &key, 1, &which), CALLBACK_UNSIGNED);
    request.headers = &header;
    request.header_count = 1;
    request.body = STR("{}");
    assert_int_equal(ask(&twilio_callback, &request, &key, 1, &which), CALLBACK_UNSIGNED);
}

#define SAYS(status, code)                                                                         \
    "MessageSid=SM01&To=%2B4915112345678&MessageStatus=" status "&ErrorCode=" code

// clang-format off
static const Meaning MEANINGS[] = {
    {SAYS("sent", ""),             STATUS_SENT,      OUTCOME_ACCEPTED,  "",                  SUPPRESSION_NONE},
    {SAYS("delivered", ""),        STATUS_DELIVERED, OUTCOME_DELIVERED, "",                  SUPPRESSION_NONE},
    {SAYS("read", ""),             STATUS_OPENED,    OUTCOME_OPENED,    "",                  SUPPRESSION_NONE},
    {SAYS("undelivered", "30005"), STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_HARD_BOUNCE},
    {SAYS("failed", "21614"),      STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_INVALID_ADDRESS},
    {SAYS("undelivered", "30003"), STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {SAYS("undelivered", "30006"), STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {SAYS("undelivered", "30007"), STATUS_FAILED,    OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {SAYS("failed", "21610"),      STATUS_FAILED,    OUTCOME_FAILED,    "opted_out",   SUPPRESSION_OPT_OUT},
    {SAYS("failed", "39999"),      STATUS_FAILED,    OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
    {SAYS("canceled", ""),         STATUS_FAILED,    OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
};
// clang-format on

static void each_status_is_what_it_says(void **state)
{
    (void)state;
    each_means(&twilio_callback, MEANINGS, sizeof MEANINGS / sizeof *MEANINGS);
    static const char failed[] = "MessageSid=SM01&MessageStatus=failed&ErrorCode=%s";
    each_code_means_what_it_means_in_an_answer(&twilio_callback, &twilio_api, failed);
    each_code_means_what_it_means_in_an_answer(
        &twilio_whatsapp_callback, &twilio_whatsapp_api, failed);
    static const char *const ignored[] = {SAYS("queued", ""), SAYS("sending", "")};
    each_is_ignored(&twilio_callback, ignored, sizeof ignored / sizeof *ignored);
    static const char *const refused[] = {"", "{}", "MessageSid=SM01", "MessageStatus=%zz"};
    each_is_refused(&twilio_callback, refused, sizeof refused / sizeof *refused);
}

static void an_event_has_the_message_and_the_number(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(&twilio_callback, SAYS("undelivered", "30005"), arena);
    assert_true(str_eq(event.message_id, STR("SM01")));
    assert_true(str_eq(event.email, STR("+4915112345678")));
    assert_true(str_eq(event.text, STR("30005 failed")));
    event = read_one(&twilio_callback, "MessageStatus=delivered&MessageSid=%00&To=%0a", arena);
    assert_int_equal(event.message_id.len + event.email.len, 0);
    arena_free(arena);
}

static void who_replies_stop_is_suppressed(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    static const char *const stops[] = {
        "MessageSid=SM1&From=%2B4915112345678&To=%2B15005550006&SmsStatus=received&Body=Stop",
        "MessageSid=SM1&From=%2B4915112345678&To=%2B15005550006&Body=let+me+go&OptOutType=STOP"};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        CallbackEvent event = read_one(&twilio_callback, stops[i], arena);
        assert_int_equal(event.status, STATUS_NONE);
        assert_int_equal(event.suppress, SUPPRESSION_OPT_OUT);
        assert_true(str_eq(event.email, STR("+4915112345678")));
    }
    CallbackEvent event = read_one(&twilio_callback, "From=%0a&Body=STOP", arena);
    assert_int_equal(event.suppress, SUPPRESSION_NONE);
    arena_free(arena);
}

static void what_a_recipient_wrote_is_a_reply(void **state)
{
    (void)state;
    static const struct {
        const char *body, *text, *kind;
        ReplyWord word;
    } cases[] = {
        {"From=%2B4915112345678&Body=Thank+you", "Thank you", "text", REPLY_WORD_NONE},
        {"From=%2B4915112345678&Body=HELP", "HELP", "text", REPLY_WORD_HELP},
        {"From=%2B4915112345678&Body=Start!", "Start!", "text", REPLY_WORD_START},
        {"From=%2B4915112345678&MediaContentType0=image%2Fpng", "", "image/png", REPLY_WORD_NONE},
        {"From=%2B4915112345678&Body=%ff", "", "text", REPLY_WORD_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(0);
        CallbackEvent event = read_one(&twilio_callback, cases[i].body, arena);
        assert_int_equal(event.suppress, SUPPRESSION_NONE);
        assert_int_equal(event.reply->word, cases[i].word);
        assert_string_equal(arena_cstr(arena, event.reply->text), cases[i].text);
        assert_string_equal(arena_cstr(arena, event.reply->kind), cases[i].kind);
        assert_true(str_eq(event.email, STR("+4915112345678")));
        arena_free(arena);
    }
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(
        &twilio_callback,
        "MessageSid=SM2&From=%2B49151123&To=%2B15005550006&Body=ok&OriginalRepliedMessageSid=SM1",
        arena);
    assert_true(str_eq(event.reply->to, STR("+15005550006")));
    assert_true(str_eq(event.reply->answers, STR("SM1")));
    arena_free(arena);
}

static void a_price_is_an_amount_with_a_currency(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        int64_t micros;
        const char *currency;
        uint32_t segments;
    } rows[] = {
        {"Price=-0.00750&PriceUnit=USD&NumSegments=2", 7500, "USD", 2},
        {"Price=0.1&PriceUnit=EUR", 100000, "EUR", 0},
        {"Price=&PriceUnit=USD&NumSegments=1", 0, "", 1},
        {"Price=0.1", 0, "", 0},
        {"Price=0.1&PriceUnit=usd", 0, "", 0},
        {"Price=0.1&PriceUnit=DOLLAR", 0, "", 0},
        {"Price=much&PriceUnit=USD&NumSegments=-1", 0, "", 0},
        {"Price=99999999999999999999&PriceUnit=USD&NumSegments=999999", 0, "", 0},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *body =
            arena_printf(arena, "MessageStatus=delivered&MessageSid=SM1&%s", rows[i].says);
        CallbackEvent event = read_one(&twilio_callback, body, arena);
        assert_int_equal(event.cost_micros, rows[i].micros);
        assert_true(str_eq(event.currency, str_from(rows[i].currency)));
        assert_int_equal(event.segments, rows[i].segments);
    }
    arena_free(arena);
}

static void a_number_is_of_its_channel(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool sms, whatsapp;
    } cases[] = {
        {"From=%2B4915112345678&Body=Stop", true, false},
        {"From=whatsapp%3A%2B4915112345678&Body=Stop", false, true},
        {"MessageStatus=read&MessageSid=SM1&To=whatsapp%3A%2B4915112345678", false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(0);
        Str number = STR("+4915112345678");
        CallbackEvent sms = read_one(&twilio_callback, cases[i].body, arena);
        CallbackEvent whatsapp = read_one(&twilio_whatsapp_callback, cases[i].body, arena);
        assert_int_equal(str_eq(sms.email, number), cases[i].sms);
        assert_int_equal(str_eq(whatsapp.email, number), cases[i].whatsapp);
        arena_free(arena);
    }
}

static void a_key_is_an_auth_token(void **state)
{
    (void)state;
    Error err = {0};
    assert_false(twilio_callback.key_check(STR("12345"), &err));
    assert_true(twilio_callback.key_check(STR("0123456789abcdef0123456789abcdef"), &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_twilios_own_libraries_fit),
        cmocka_unit_test(without_a_signature_or_a_form_it_is_unsigned),
        cmocka_unit_test(each_status_is_what_it_says),
        cmocka_unit_test(an_event_has_the_message_and_the_number),
        cmocka_unit_test(who_replies_stop_is_suppressed),
        cmocka_unit_test(what_a_recipient_wrote_is_a_reply),
        cmocka_unit_test(a_price_is_an_amount_with_a_currency),
        cmocka_unit_test(a_number_is_of_its_channel),
        cmocka_unit_test(a_key_is_an_auth_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
