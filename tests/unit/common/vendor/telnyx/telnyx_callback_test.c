// SPDX-License-Identifier: Apache-2.0
// The signatures were made by Python's `cryptography` (Ed25519 of the seed 00 01 .. 1f).
#include "common/vendor/telnyx/telnyx.h"
#include "tests/unit/common/vendor/callbacks.h"

#define KEY "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
#define OTHER_KEY "ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ="
#define SIGNATURE                                                                                  \
    "Rk9ebW+MKtLVpEqzeTso2mExxiqUg4VyrOHdVSpRj628gfuhn53c9PsKauJtFDEUyGl4xvR7ZHJCThln3mLEAw=="
#define BODY "{\"data\":{\"event_type\":\"message.sent\"}}"

enum { AT_S = 1795723200 };

static CallbackVerdict judge(
    const char *signature, const char *timestamp, const char *body, int64_t age_s, size_t *ret_key)
{
    const CallbackKey keys[] = {{STR("old"), STR(OTHER_KEY)}, {STR("new"), STR(KEY)}};
    const VendorPair headers[] = {
        {STR("Telnyx-Signature-Ed25519"), str_from(signature)},
        {STR("Telnyx-Timestamp"), str_from(timestamp)}};
    CallbackRequest request = {
        .headers = headers,
        .header_count = 2,
        .body = str_from(body),
        .received_at_us = (AT_S + age_s) * 1000000,
        .max_age_s = 600};
    return ask(&telnyx_callback, &request, keys, 2, ret_key);
}

static void time_and_body_are_signed(void **state)
{
    (void)state;
    size_t which = 9;
    assert_int_equal(judge(SIGNATURE, "1795723200", BODY, 0, &which), CALLBACK_GOOD);
    assert_int_equal(which, 1);
    assert_int_equal(judge(SIGNATURE, "1795723201", BODY, 0, &which), CALLBACK_BAD);
    assert_int_equal(judge(SIGNATURE, "1795723200", BODY " ", 0, &which), CALLBACK_BAD);
    assert_int_equal(judge(SIGNATURE, "1795723200", BODY, 601, &which), CALLBACK_STALE);
    assert_int_equal(judge(SIGNATURE, "", BODY, 0, &which), CALLBACK_UNSIGNED);
    assert_int_equal(judge(SIGNATURE, "now", BODY, 0, &which), CALLBACK_UNSIGNED);
    assert_int_equal(judge("AAAA", "1795723200", BODY, 0, &which), CALLBACK_UNSIGNED);
    assert_int_equal(judge("", "1795723200", BODY, 0, &which), CALLBACK_UNSIGNED);
}

static void a_key_is_a_public_key_of_ed25519(void **state)
{
    (void)state;
    Error err = {0};
    assert_true(telnyx_callback.key_check(STR(KEY), &err));
    assert_false(telnyx_callback.key_check(STR("A6EHv/POEL4="), &err));
    assert_string_equal(
        err.text, "a key is the account's public key as the portal shows it: base64 of 32 bytes");
    assert_false(telnyx_callback.key_check(STR(SIGNATURE), &err));
    assert_false(telnyx_callback.key_check(STR_EMPTY, &err));
    Arena *arena = arena_new(0);
    assert_true(telnyx_callback.key_check(telnyx_callback.key_none(arena), &err));
    arena_free(arena);
}

#define EVENT(type, payload)                                                                       \
    "{\"data\":{\"event_type\":\"" type "\",\"id\":\"4ee8c3a6\","                                  \
    "\"occurred_at\":\"2026-11-26T20:00:00.000+00:00\",\"payload\":{" payload "}},"                \
    "\"meta\":{\"attempt\":1}}"
#define SAYS(status, code)                                                                         \
    EVENT(                                                                                         \
        "message.finalized",                                                                       \
        "\"id\":\"40385f64\",\"direction\":\"outbound\","                                          \
        "\"to\":[{\"phone_number\":\"+4915112345678\",\"status\":\"" status "\"}],"                \
        "\"errors\":[{\"code\":\"" code "\",\"title\":\"why to +4915112345678\"}]")
#define SENT                                                                                       \
    EVENT(                                                                                         \
        "message.sent",                                                                            \
        "\"id\":\"4\",\"to\":[{\"phone_number\":\"+4915112345678\",\"status\":\"sent\"}],"         \
        "\"errors\":[]")

// clang-format off
static const Meaning MEANINGS[] = {
    {SENT,                             STATUS_SENT,      OUTCOME_ACCEPTED,  "",                  SUPPRESSION_NONE},
    {SAYS("delivered", ""),            STATUS_DELIVERED, OUTCOME_DELIVERED, "",                  SUPPRESSION_NONE},
    {SAYS("delivery_unconfirmed", ""), STATUS_SENT,      OUTCOME_ACCEPTED,  "",                  SUPPRESSION_NONE},
    {SAYS("expired", "40014"),         STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {SAYS("delivery_failed", "40012"), STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_INVALID_ADDRESS},
    {SAYS("sending_failed", "40310"),  STATUS_BOUNCED,   OUTCOME_BOUNCE,    "hard_bounce",       SUPPRESSION_INVALID_ADDRESS},
    {SAYS("delivery_failed", "40001"), STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {SAYS("delivery_failed", "40008"), STATUS_BOUNCED,   OUTCOME_BOUNCE,    "soft_bounce",       SUPPRESSION_NONE},
    {SAYS("delivery_failed", "40002"), STATUS_FAILED,    OUTCOME_FAILED,    "blocked",           SUPPRESSION_NONE},
    {SAYS("sending_failed", "40300"),  STATUS_FAILED,    OUTCOME_FAILED,    "opted_out",         SUPPRESSION_OPT_OUT},
    {SAYS("sending_failed", "49999"),  STATUS_FAILED,    OUTCOME_FAILED,    "rejected",          SUPPRESSION_NONE},
};
// clang-format on

static void each_status_is_what_it_says(void **state)
{
    (void)state;
    each_means(&telnyx_callback, MEANINGS, sizeof MEANINGS / sizeof *MEANINGS);
    each_code_means_what_it_means_in_an_answer(
        &telnyx_callback, &telnyx_api, SAYS("sending_failed", "%s"));
    static const char *const ignored[] = {
        SAYS("queued", ""), SAYS("sending", ""), EVENT("message.finalized", "\"to\":[]"),
        EVENT("message.finalized", "\"to\":{}"), EVENT("number_order.complete", "")};
    each_is_ignored(&telnyx_callback, ignored, sizeof ignored / sizeof *ignored);
    static const char *const refused[] = {
        "", "{}", "[]", "{\"data\":[]}", "{\"data\":{\"event_type\":7}}", "{\"data\":{\"event"};
    each_is_refused(&telnyx_callback, refused, sizeof refused / sizeof *refused);
}

static void an_event_has_the_message_the_number_and_the_time(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(&telnyx_callback, SAYS("delivery_failed", "40012"), arena);
    assert_true(str_eq(event.id, STR("4ee8c3a6")));
    assert_true(str_eq(event.message_id, STR("40385f64")));
    assert_true(str_eq(event.email, STR("+4915112345678")));
    assert_int_equal(event.at_us, INT64_C(1795723200000000));
    assert_true(str_starts(event.text, STR("40012 why to ")));
    arena_free(arena);
}

#define REPLY_WITH(from, text, more)                                                               \
    EVENT(                                                                                         \
        "message.received",                                                                        \
        "\"id\":\"7ee4241c\",\"from\":{\"phone_number\":\"" from "\"},"                            \
        "\"to\":[{\"phone_number\":\"+15005550007\"}],\"text\":\"" text "\"" more)
#define REPLY(from, text) REPLY_WITH(from, text, "")

static void who_replies_stop_is_suppressed(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    static const char *const stops[] = {
        REPLY("+4915112345678", "Stop"), REPLY("4915112345678", "Stop"),
        REPLY("+4915112345678", "Abmelden")};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        CallbackEvent event = read_one(&telnyx_callback, stops[i], arena);
        assert_int_equal(event.status, STATUS_NONE);
        assert_int_equal(event.suppress, SUPPRESSION_OPT_OUT);
        assert_int_equal(event.reply->word, REPLY_WORD_STOP);
        assert_true(str_eq(event.email, STR("+4915112345678")));
    }
    static const char *const others[] = {
        REPLY("+4915112345678", "Thank you"), REPLY("+4915112345678", "START"), REPLY("", "STOP"),
        REPLY("Shop", "STOP")};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(read_one(&telnyx_callback, others[i], arena).suppress, SUPPRESSION_NONE);
    }
    arena_free(arena);
}

static void what_a_recipient_wrote_is_a_reply(void **state)
{
    (void)state;
    static const struct {
        const char *body, *text, *kind;
        ReplyWord word;
    } cases[] = {
        {REPLY("+4915112345678", "Thank you"), "Thank you", "text", REPLY_WORD_NONE},
        {REPLY("+4915112345678", "Hilfe"), "Hilfe", "text", REPLY_WORD_HELP},
        {REPLY("+4915112345678", "Start!"), "Start!", "text", REPLY_WORD_START},
        {REPLY_WITH(
             "+4915112345678", "",
             ",\"media\":[{\"url\":\"https://x.test/1\",\"content_type\":\"image/png\"}]"),
         "", "image/png", REPLY_WORD_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(0);
        CallbackEvent event = read_one(&telnyx_callback, cases[i].body, arena);
        assert_int_equal(event.reply->word, cases[i].word);
        assert_string_equal(arena_cstr(arena, event.reply->text), cases[i].text);
        assert_string_equal(arena_cstr(arena, event.reply->kind), cases[i].kind);
        assert_true(str_eq(event.reply->to, STR("+15005550007")));
        assert_true(str_eq(event.email, STR("+4915112345678")));
        assert_true(str_eq(event.message_id, STR("7ee4241c")));
        assert_int_equal(event.at_us, INT64_C(1795723200000000));
        arena_free(arena);
    }
    Arena *arena = arena_new(0);
    CallbackEvent bare = read_one(&telnyx_callback, EVENT("message.received", ""), arena);
    assert_int_equal(bare.email.len + bare.reply->to.len + bare.reply->text.len, 0);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_and_body_are_signed),
        cmocka_unit_test(a_key_is_a_public_key_of_ed25519),
        cmocka_unit_test(each_status_is_what_it_says),
        cmocka_unit_test(an_event_has_the_message_the_number_and_the_time),
        cmocka_unit_test(who_replies_stop_is_suppressed),
        cmocka_unit_test(what_a_recipient_wrote_is_a_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
