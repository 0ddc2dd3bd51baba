// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/chat/chat.h"

#include "tests/unit/common/vendor/vendor_case.h"

#define SLACK "https://hooks.slack.com/services/T0/B0/x1"
#define DISCORD "https://discord.com/api/webhooks/17/tok-En_1"
#define TEAMS "https://prod-07.westus.logic.azure.com:443/workflows/a/triggers/m?sig=s"

static const VendorAccount ACCOUNT = {.name = {"chat", 4}};

static VendorMail message(const char *to, const char *text, const char *data)
{
    return (VendorMail){
        .tenant = STR("acme"),
        .notification_id = STR(CASE_NID),
        .attempt = 1,
        .to = {STR_EMPTY, str_from(to)},
        .text = str_from(text),
        .data = str_from(data)};
}

static void each_service_takes_its_own_urls_only(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        const VendorApi *api; // NULL: none takes it
    } rows[] = {
        {SLACK, &slack_api},
        {DISCORD, &discord_api},
        {"https://discordapp.com/api/webhooks/1/x?thread_id=7", &discord_api},
        {"https://ptb.discord.com/api/webhooks/1/x", &discord_api},
        {"https://canary.discord.com/api/webhooks/1/x", &discord_api},
        {"https://prod-07.westus.logic.azure.com/workflows/a/triggers/m?sig=s", &teams_api},
        {"https://a1.b2.environment.api.powerplatform.com/powerautomate/x?sig=s", &teams_api},
        {TEAMS, &teams_api},
        {"http://hooks.slack.com/services/T0/B0/x1", NULL},
        {"https://hooks.slack.com@evil.example/services/T0/B0/x1", NULL},
        {"https://hooks.slack.com:8443/services/T0/B0/x1", NULL},
        {"https://hooks.slack.com.evil.example/services/T0/B0/x1", NULL},
        {"https://evil.example/services/T0?hooks.slack.com", NULL},
        {"https://hooks.slack.com", NULL},
        {"https://hooks.slack.com/api/chat.postMessage", NULL},
        {"https://discord.com/api/channels/1/messages", NULL},
        {"https://.logic.azure.com/x", NULL},
        {"https://logic.azure.com/x", NULL},
        {"https://prod-07.westus.logic.azure.com:80/x", NULL},
        {"https://prod-07.westus.logic.azure.com/a#b", NULL},
        {"https://HOOKS.slack.com/services/T0", NULL},
        {"https://hooks.slack.com/services/../../x", NULL},
        {"https://hooks.slack.com/services/%2e%2e/x", NULL},
        {"https://discord.com/api/webhooks/./../x", NULL},
        {"https://prod-07.westus.logic.azure.com/workflows/..%2Fx", NULL},
        {"", NULL},
    };
    const VendorApi *const all[] = {&slack_api, &discord_api, &teams_api};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t n = 0; n < 3; n++) {
            if (all[n]->takes(str_from(rows[i].url)) != (rows[i].api == all[n])) {
                fail_msg("%s: %s", all[n]->name, rows[i].url);
            }
        }
    }
}

static void slack_gets_a_text_that_is_no_markup(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = message(SLACK, "Bob <!channel> & \"Co\" <http://x|y>\nend", "");
    VendorRequest request;
    case_build(&slack_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", SLACK, "Content-Type: application/json\n",
        "{\"text\":\"Bob &lt;!channel&gt; &amp; \\\"Co\\\" &lt;http://x|y&gt;\\nend\"}");
    arena_free(arena);
}

static void slacks_blocks_wake_no_channel(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = message(
        SLACK, "alt",
        "{\"blocks\":[{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":"
        "\"<!here> <!date^1|d> <@U1>\"},\"n\":1}],\"embeds\":[],\"card\":{}}");
    VendorRequest request;
    case_build(&slack_api, &mail, &ACCOUNT, arena, &request);
    assert_string_equal(
        arena_cstr(arena, request.body),
        "{\"text\":\"alt\",\"blocks\":[{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\","
        "\"text\":\"&lt;!here> <!date^1|d> <@U1>\"},\"n\":1}]}");
    arena_free(arena);
}

static void discord_is_asked_to_wait_and_to_mention_no_one(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = message(DISCORD, "@everyone hi", "{\"embeds\":[{\"title\":\"t\"}]}");
    VendorRequest request;
    case_build(&discord_api, &mail, &ACCOUNT, arena, &request);
    case_request_is(
        &request, arena, "POST", DISCORD "?wait=true", "Content-Type: application/json\n",
        "{\"content\":\"@everyone hi\",\"embeds\":[{\"title\":\"t\"}],"
        "\"allowed_mentions\":{\"parse\":[]}}");
    mail.to.address = STR("https://discord.com/api/webhooks/1/x?thread_id=7");
    case_build(&discord_api, &mail, &ACCOUNT, arena, &request);
    assert_string_equal(
        arena_cstr(arena, request.url),
        "https://discord.com/api/webhooks/1/x?thread_id=7&wait=true");
    arena_free(arena);
}

static void teams_gets_a_card(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    const VendorPair settings[] = {{STR("base_url"), STR("http://127.0.0.1:9")}};
    VendorAccount account = {.name = STR("t"), .settings = settings, .setting_count = 1};
    VendorMail mail = message(TEAMS, "Hi **Bob**\r\n\r\n[x](http://y)", "");
    VendorRequest request;
    case_build(&teams_api, &mail, &account, arena, &request);
    case_request_is(
        &request, arena, "POST", "http://127.0.0.1:9/workflows/a/triggers/m?sig=s",
        "Content-Type: application/json\n",
        "{\"type\":\"message\",\"attachments\":[{\"contentType\":"
        "\"application/vnd.microsoft.card.adaptive\",\"content\":{\"type\":\"AdaptiveCard\","
        "\"$schema\":\"http://adaptivecards.io/schemas/adaptive-card.json\",\"version\":\"1.4\","
        "\"body\":[{\"type\":\"RichTextBlock\",\"spacing\":\"None\",\"inlines\":[{\"type\":"
        "\"TextRun\",\"text\":\"Hi **Bob**\"}]},{\"type\":\"RichTextBlock\",\"spacing\":\"None\","
        "\"inlines\":[{\"type\":\"TextRun\",\"text\":\" \"}]},{\"type\":\"RichTextBlock\","
        "\"spacing\":\"None\",\"inlines\":[{\"type\":\"TextRun\",\"text\":\"[x](http://y)\"}]}]}}]"
        "}");
    mail = message(TEAMS, "alt", "{\"card\":{\"type\":\"AdaptiveCard\"}}");
    case_build(&teams_api, &mail, &account, arena, &request);
    assert_string_equal(
        arena_cstr(arena, request.body),
        "{\"type\":\"message\",\"attachments\":[{\"contentType\":"
        "\"application/vnd.microsoft.card.adaptive\",\"content\":{\"type\":\"AdaptiveCard\"}}]}");
    arena_free(arena);
}

static void what_a_service_cannot_carry_is_named(void **state)
{
    (void)state;
    char *text = malloc(SLACK_TEXT_MAX + 2);
    memset(text, '&', SLACK_TEXT_MAX + 1);
    text[SLACK_TEXT_MAX + 1] = '\0';
    const struct {
        const VendorApi *api;
        const char *to, *text, *data, *expected;
    } rows[] = {
        {&slack_api, SLACK, text, "",
         "the message's 'text' has 40001 characters, and slack takes at most 40000"},
        {&discord_api, DISCORD, text + SLACK_TEXT_MAX - DISCORD_TEXT_MAX, "",
         "the message's 'text' has 2001 characters, and discord takes at most 2000"},
        {&teams_api, TEAMS, text + SLACK_TEXT_MAX - TEAMS_BODY_MAX + 100, "",
         "the message has 28870 bytes, and teams takes at most 28672"},
        {&slack_api, SLACK, "", "", "the message has neither 'text' nor 'data'"},
        {&slack_api, SLACK, "", "{\"embeds\":[{}]}",
         "the message has neither 'text' nor 'data.blocks'"},
        {&discord_api, DISCORD, "", "{\"blocks\":[{}]}",
         "the message has neither 'text' nor 'data.embeds'"},
        {&teams_api, TEAMS, "", "{}", "the message has neither 'text' nor 'data.card'"},
        {&slack_api, SLACK, "x", "[1]", "the message's 'data' is not a JSON object"},
        {&slack_api, SLACK, "x", "{\"blocks\":1}", "the message's 'data.blocks' is not an array"},
        {&teams_api, TEAMS, "x", "{\"card\":[]}", "the message's 'data.card' is not an object"},
        {&discord_api, DISCORD, "x", "{\"embeds\":[1,2,3,4,5,6,7,8,9,10,11]}",
         "the message's 'data.embeds' has 11 entries, at most 10"},
        {&slack_api, DISCORD, "x", "",
         "the message's 'to' is not an address of slack: hooks.slack.com/services"},
        {&slack_api, SLACK, "\xff", "", "the message's 'text' is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        VendorMail mail = message(rows[i].to, rows[i].text, rows[i].data);
        case_refused(rows[i].api, &mail, &ACCOUNT, ERROR_PERMANENT, rows[i].expected);
    }
    free(text);
}

// clang-format off
static const CaseRow SLACK_ROWS[] = {
    {"no such URL", 404, NULL, NULL, "no_service", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "no_service"},
    {"archived", 410, NULL, NULL, "channel_is_archived", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "channel_is_archived"},
    {"forbidden", 403, NULL, NULL, "action_prohibited", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "action_prohibited"},
    {"bad payload", 400, NULL, NULL, "invalid_payload", SEND_ANSWERED, REPLY_TERMINAL, 0, "invalid_payload"},
    {"moved", 302, NULL, NULL, "", SEND_ANSWERED, REPLY_TERMINAL, 0, ""},
    {"throttled", 429, "Retry-After", "30", "rate_limited", SEND_ANSWERED, REPLY_THROTTLED, 30000, "rate_limited"},
    {"down", 503, NULL, NULL, "", SEND_ANSWERED, REPLY_RETRY, 0, ""},
    {"error", 500, NULL, NULL, "rollup_error", SEND_UNKNOWN, REPLY_RETRY, 0, "rollup_error"},
};
static const CaseRow DISCORD_ROWS[] = {
    {"unknown", 404, NULL, NULL, "{\"message\":\"Unknown Webhook\",\"code\":10015}", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "10015 Unknown Webhook"},
    {"token", 401, NULL, NULL, "{\"message\":\"Invalid Webhook Token\",\"code\":50027}", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "50027 Invalid Webhook Token"},
    {"forbidden", 403, NULL, NULL, "{}", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, ""},
    {"throttled", 429, "Retry-After", "1", "{\"message\":\"You are being rate limited.\",\"retry_after\":0.65,\"global\":false}", SEND_ANSWERED, REPLY_THROTTLED, 651, "You are being rate limited."},
    {"banned", 429, "Retry-After", "600", "<html>error 1015</html>", SEND_ANSWERED, REPLY_THROTTLED, 600000, ""},
    {"for ever", 429, NULL, NULL, "{\"retry_after\":1e300}", SEND_ANSWERED, REPLY_THROTTLED, 86400000, ""},
    {"bad", 400, NULL, NULL, "{\"message\":\"Invalid Form Body\",\"code\":50035}", SEND_ANSWERED, REPLY_TERMINAL, 0, "50035 Invalid Form Body"},
};
static const CaseRow TEAMS_ROWS[] = {
    {"taken", 202, NULL, NULL, "", SEND_ANSWERED, REPLY_ACCEPTED, 0, ""},
    {"gone", 404, NULL, NULL, "{\"error\":{\"code\":\"WorkflowNotFound\",\"message\":\"The workflow was not found.\"}}", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "WorkflowNotFound The workflow was not found."},
    {"signature", 401, NULL, NULL, "{\"error\":{\"code\":\"DirectApiAuthorizationRequired\",\"message\":\"no\"}}", SEND_ANSWERED, REPLY_BAD_ADDRESS, 0, "DirectApiAuthorizationRequired no"},
    {"throttled", 429, "Retry-After", "7", "", SEND_ANSWERED, REPLY_THROTTLED, 7000, ""},
    {"time-out", 504, NULL, NULL, "", SEND_UNKNOWN, REPLY_RETRY, 0, ""},
};
// clang-format on

static void an_endpoint_that_refuses_is_a_bad_address(void **state)
{
    (void)state;
    case_rows(&slack_api, SLACK_ROWS, sizeof SLACK_ROWS / sizeof *SLACK_ROWS);
    case_rows(&discord_api, DISCORD_ROWS, sizeof DISCORD_ROWS / sizeof *DISCORD_ROWS);
    case_rows(&teams_api, TEAMS_ROWS, sizeof TEAMS_ROWS / sizeof *TEAMS_ROWS);
    case_accepted(&slack_api, 200, "", "", "ok", "");
    case_accepted(&discord_api, 200, "", "", "{\"id\":\"1234\"}", "1234");
    case_accepted(&discord_api, 204, "", "", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_service_takes_its_own_urls_only),
        cmocka_unit_test(slack_gets_a_text_that_is_no_markup),
        cmocka_unit_test(slacks_blocks_wake_no_channel),
        cmocka_unit_test(discord_is_asked_to_wait_and_to_mention_no_one),
        cmocka_unit_test(teams_gets_a_card),
        cmocka_unit_test(what_a_service_cannot_carry_is_named),
        cmocka_unit_test(an_endpoint_that_refuses_is_a_bad_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
