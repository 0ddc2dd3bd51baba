// SPDX-License-Identifier: Apache-2.0
// Signatures: symfony/symfony, Mailer/Bridge/Mailgun/Tests/Webhook.
#include "tests/unit/common/vendor/callbacks.h"

#define KEY "key-0p6mqbf74lb20gzq9f4dhpn9rg3zyk26"

typedef struct Vector {
    const char *timestamp, *token, *signature;
} Vector;

static const Vector VECTORS[] = {
    {"1661590666", "fff0ebc59c0516f4ce0823212a2f45e5c67814420b99fe558b",
     "a0cd251821d8fd56a2130b541becc8e441023574e602fe9829a9ab9fbfdea33f"},
    {"1661621787", "d1931d9645b65e60f6fddf94448e982ff8db9256144a7fcb15",
     "1aed11dcc25700d6b75f9a6d568343ea02ecdd3fc89cc3209e2883a19e5cdd50"},
    {"1661621361", "fafa24ab7699395ccfce2847b87dce8a29f6696a79127ee77c",
     "4328a8ea0818dcb218382cf70ccee285c45a8755f5f5616be90b887b67d84593"},
    {"1661621710", "885894756b6c371a377f5f9516d60a4db497ad27d4931ed215",
     "606307bb55b72686b1b2a2c8c37ae6e6ec89496592bac4a4eee5a346337d04a5"},
};

#define DATA(fields)                                                                               \
    "{\"event-data\":{\"id\":\"G9Bn5sl1TC6nu79C8C0bwg\",\"timestamp\":1521233195.375624,"          \
    "\"recipient\":\"alice@example.com\",\"message\":{\"headers\":{\"message-id\":\"" NTF          \
    "@mail.example.com\"}}," fields "}}"

static CallbackVerdict judge(
    const Vector *v, const CallbackKey *keys, size_t count, int64_t now_s, size_t *ret_key)
{
    Arena *arena = arena_new(0);
    CallbackRequest request = {
        .body = str_from(arena_printf(
            arena,
            "{\"signature\":{\"timestamp\":\"%s\",\"token\":\"%s\",\"signature\":\"%s\"},"
            "\"event-data\":{}}",
            v->timestamp, v->token, v->signature)),
        .received_at_us = now_s * 1000000,
        .max_age_s = 600,
    };
    CallbackVerdict verdict = ask(&mailgun_callback, &request, keys, count, ret_key);
    arena_free(arena);
    return verdict;
}

static void the_published_signatures_verify_and_whatever_differs_does_not(void **state)
{
    (void)state;
    CallbackKey keys[] = {{STR("old"), STR("another-signing-key")}, {STR("new"), STR(KEY)}};
    for (size_t i = 0; i < sizeof VECTORS / sizeof *VECTORS; i++) {
        size_t which = 9;
        Vector v = VECTORS[i];
        int64_t at_s = strtoll(v.timestamp, NULL, 10);
        assert_int_equal(judge(&v, keys, 2, at_s + 600, &which), CALLBACK_GOOD);
        assert_int_equal(which, 1);
        assert_int_equal(judge(&v, keys, 1, at_s, &which), CALLBACK_BAD);
        assert_int_equal(judge(&v, keys, 2, at_s + 601, &which), CALLBACK_STALE);
        assert_int_equal(judge(&v, keys, 2, at_s - 601, &which), CALLBACK_STALE);
        v.token = VECTORS[(i + 1) % 4].token;
        assert_int_equal(judge(&v, keys, 2, at_s, &which), CALLBACK_BAD);
        v = VECTORS[i];
        v.timestamp = "1661590667";
        assert_int_equal(judge(&v, keys, 2, at_s, &which), CALLBACK_BAD);
        v = VECTORS[i];
        v.signature = "";
        assert_int_equal(judge(&v, keys, 2, at_s, &which), CALLBACK_UNSIGNED);
    }
}

static void what_is_no_signature_is_unsigned(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        "",    "[]", "{}", "{\"signature\":7}", "{\"signature\":{\"timestamp\":1,\"token\":2}}",
        "\xff"};
    CallbackKey key = {STR("one"), STR(KEY)};
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        size_t which = 0;
        CallbackRequest request = {.body = str_from(BODIES[i])};
        assert_int_equal(ask(&mailgun_callback, &request, &key, 1, &which), CALLBACK_UNSIGNED);
    }
}

static void a_token_is_what_repeats_have_in_common(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackRequest request = {.body = STR("{\"signature\":{\"token\":\"abc\"},\"x\":1}")};
    assert_true(str_eq(mailgun_callback.repeat_key(&request, arena), STR("abc")));
    arena_free(arena);
}

static void each_event_has_its_meaning(void **state)
{
    (void)state;
    static const Meaning CASES[] = {
        {DATA("\"event\":\"delivered\""), STATUS_DELIVERED, OUTCOME_DELIVERED, "",
         SUPPRESSION_NONE},
        {DATA("\"event\":\"opened\""), STATUS_OPENED, OUTCOME_OPENED, "", SUPPRESSION_NONE},
        {DATA("\"event\":\"clicked\""), STATUS_CLICKED, OUTCOME_CLICKED, "", SUPPRESSION_NONE},
        {DATA("\"event\":\"complained\""), STATUS_COMPLAINED, OUTCOME_COMPLAINT, "complaint",
         SUPPRESSION_COMPLAINT},
        {DATA("\"event\":\"unsubscribed\""), STATUS_NONE, OUTCOME_NONE, "", SUPPRESSION_OPT_OUT},
        {DATA("\"event\":\"failed\",\"severity\":\"permanent\",\"reason\":\"bounce\","
              "\"delivery-status\":{\"code\":550,\"message\":\"No Such User Here\"}"),
         STATUS_BOUNCED, OUTCOME_BOUNCE, "hard_bounce", SUPPRESSION_HARD_BOUNCE},
        {DATA("\"event\":\"failed\",\"severity\":\"permanent\",\"reason\":\"bounce\","
              "\"delivery-status\":{\"message\":\"550 5.7.1 blocked by policy\"}"),
         STATUS_BOUNCED, OUTCOME_BOUNCE, "hard_bounce", SUPPRESSION_NONE},
        {DATA("\"event\":\"failed\",\"severity\":\"permanent\",\"reason\":\"old\""), STATUS_BOUNCED,
         OUTCOME_BOUNCE, "soft_bounce", SUPPRESSION_NONE},
        {DATA("\"event\":\"failed\",\"severity\":\"permanent\",\"reason\":\"suppress-bounce\""),
         STATUS_FAILED, OUTCOME_FAILED, "vendor_suppressed", SUPPRESSION_NONE},
        {DATA("\"event\":\"rejected\""), STATUS_FAILED, OUTCOME_FAILED, "rejected",
         SUPPRESSION_NONE},
    };
    each_means(&mailgun_callback, CASES, sizeof CASES / sizeof *CASES);
    static const char *const IGNORED[] = {
        DATA("\"event\":\"accepted\""), DATA("\"event\":\"stored\""),
        DATA("\"event\":\"failed\",\"severity\":\"temporary\",\"reason\":\"bounce\""),
        DATA("\"event\":\"tomorrow's\"")};
    each_is_ignored(&mailgun_callback, IGNORED, sizeof IGNORED / sizeof *IGNORED);
    static const char *const REFUSED[] = {"", "[", "[]", "{}", "{\"event-data\":{}}"};
    each_is_refused(&mailgun_callback, REFUSED, sizeof REFUSED / sizeof *REFUSED);
}

static void an_event_says_whom_and_when(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackEvent event = read_one(
        &mailgun_callback,
        DATA("\"event\":\"failed\",\"severity\":\"permanent\",\"reason\":\"bounce\","
             "\"user-variables\":{\"nid\":\"" NTF "\",\"attempt\":\"2\"},"
             "\"delivery-status\":{\"message\":\"550 5.1.1 no alice.smith@example.com here\"}"),
        arena);
    assert_true(str_eq(event.notification_id, STR(NTF)));
    assert_int_equal(event.attempt, 2);
    assert_true(str_eq(event.id, STR("G9Bn5sl1TC6nu79C8C0bwg")));
    assert_true(str_eq(event.message_id, STR(NTF "@mail.example.com")));
    assert_true(str_eq(event.email, STR("alice@example.com")));
    assert_true(str_eq(event.enhanced_code, STR("5.1.1")));
    assert_null(strstr(arena_cstr(arena, event.text), "alice.smith"));
    assert_in_range(event.at_us, INT64_C(1521233195375623), INT64_C(1521233195375625));
    event = read_one(&mailgun_callback, DATA("\"event\":\"delivered\""), arena);
    assert_true(str_eq(event.notification_id, STR(NTF))); // by our Message-ID
    arena_free(arena);
}

static void an_open_by_a_robot_is_a_machines(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool machine;
    } CASES[] = {
        {DATA("\"event\":\"opened\",\"client-info\":{\"bot\":\"apple\"}"), true},
        {DATA("\"event\":\"opened\",\"client-info\":{\"client-type\":\"robot\"}"), true},
        {DATA("\"event\":\"opened\",\"client-info\":{\"user-agent\":\"Mozilla/5.0 "
              "(via ggpht.com GoogleImageProxy)\"}"),
         true},
        {DATA("\"event\":\"opened\",\"client-info\":{\"bot\":\"\",\"user-agent\":\"Mozilla/5.0 "
              "(X11; Linux x86_64) Thunderbird/115.0\"}"),
         false},
        {DATA("\"event\":\"delivered\",\"client-info\":{\"bot\":\"apple\"}"), false},
    };
    Arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_int_equal(
            read_one(&mailgun_callback, CASES[i].body, arena).machine, CASES[i].machine);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_signatures_verify_and_whatever_differs_does_not),
        cmocka_unit_test(what_is_no_signature_is_unsigned),
        cmocka_unit_test(a_token_is_what_repeats_have_in_common),
        cmocka_unit_test(each_event_has_its_meaning),
        cmocka_unit_test(an_event_says_whom_and_when),
        cmocka_unit_test(an_open_by_a_robot_is_a_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
