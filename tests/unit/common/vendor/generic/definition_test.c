// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/generic/definition.h"

#include "tests/unit/common/vendor/phone_case.h"

#define REQUEST                                                                                    \
    "\"request\":{\"url\":\"https://api.acme.example/v2/{{settings.account}}/messages\","          \
    "\"headers\":{\"Authorization\":\"Bearer {{secret}}\",\"X-Key\":\"{{key}}\"},"                 \
    "\"json\":{\"to\":\"{{to}}\",\"body\":\"{{text}}\",\"title\":\"{{title}}\",\"n\":[1,true],"    \
    "\"try\":{\"$value\":\"attempt\"},\"data\":{\"$value\":\"data\"}}}"
#define ANSWER                                                                                     \
    "\"answer\":{\"id\":\"/messages/0/id\",\"code\":\"/error/code\",\"text\":\"/error/a~1b\","     \
    "\"statuses\":{\"409\":\"retry\",\"5xx\":\"retry\",\"504\":\"unknown\"},"                      \
    "\"codes\":{\"21\":\"bad_address\",\"E9\":\"throttled\"},\"otherwise\":\"elsewhere\"}"
#define CALLBACK                                                                                   \
    "\"callback\":{\"signature\":{\"header\":\"X-Sig\",\"prefix\":\"sha256=\"},"                   \
    "\"list\":\"/events\",\"id\":\"/id\",\"notification\":\"/ref\",\"attempt\":\"/n\","            \
    "\"status\":\"/state\",\"time\":\"/at\",\"text\":\"/why\",\"address\":\"/to\","                \
    "\"statuses\":{\"DELIVRD\":\"delivered\",\"UNDELIV\":\"hard_bounce\"}}"

static const VendorPair SETTINGS[] = {{{"account", 7}, {"a/1", 3}}};

static VendorAccount account(VendorDefinition *definition)
{
    return (VendorAccount){
        .name = STR("main"),
        .secret = STR("s3cret"),
        .settings = SETTINGS,
        .setting_count = 1,
        .definition = definition};
}

static VendorDefinition *compile(const char *document)
{
    Error err = {0};
    VendorDefinition *definition = definition_compile(str_from(document), CHANNEL_SMS, &err);
    if (definition == NULL) {
        fail_msg("%s", err.text);
    }
    return definition;
}

static void a_vendors_name_says_its_channel(void **state)
{
    (void)state;
    assert_int_equal(definition_channel(STR("sms-acme")), CHANNEL_SMS);
    assert_int_equal(definition_channel(STR("webhook-chat2")), CHANNEL_WEBHOOK);
    static const char *const none[] = {"sms", "sms-", "acme-sms", "sms-Acme", "sms-a.b", "", "-x"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(definition_channel(str_from(none[i])), CHANNEL_NONE);
        assert_null(vendor_find(str_from(none[i])));
    }
    assert_int_equal(vendor_find(STR("voice-x"))->channel, CHANNEL_VOICE);
}

static void each_value_is_escaped_for_its_place(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorDefinition *definition = compile("{" REQUEST "}");
    VendorAccount with = account(definition);
    VendorMail mail = case_text("\"},\"to\":\"x\\ {{secret}}\n");
    mail.data = STR("{\"a\":[1]}");
    VendorRequest request;
    case_build(definition_api(CHANNEL_SMS), &mail, &with, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://api.acme.example/v2/a%2F1/messages",
        "Authorization: Bearer s3cret\nX-Key: " CASE_NID "-2\nContent-Type: application/json\n",
        "{\"to\":\"+4915112345678\",\"body\":\"\\\"},\\\"to\\\":\\\"x\\\\ {{secret}}\\n\","
        "\"n\":[1,true],\"try\":2,\"data\":{\"a\":[1]}}");
    definition_drop(definition);
    arena_free(arena);
}

static void a_form_and_a_text_are_bodies_too(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorMail mail = case_text("a&b <c>");
    VendorRequest request;
    VendorDefinition *form =
        compile("{\"request\":{\"method\":\"PUT\",\"url\":\"http://10.0.0.1:8080\",\"form\":"
                "{\"t\":\"{{text}}\",\"none\":\"{{subject}}\",\"k\":\"v={{id}}\"}}}");
    VendorAccount with = account(form);
    case_build(definition_api(CHANNEL_SMS), &mail, &with, arena, &request);
    case_request_is(
        &request, arena, "PUT", "http://10.0.0.1:8080",
        "Content-Type: application/x-www-form-urlencoded; charset=utf-8\n",
        "t=a%26b%20%3Cc%3E&k=v%3D");
    definition_drop(form);
    VendorDefinition *xml =
        compile("{\"request\":{\"url\":\"https://a.example/soap\",\"body\":{\"type\":\"text/xml\","
                "\"escape\":\"xml\",\"template\":\"<t>{{text}}</t>{{#each "
                "parameters}}{{this}}{{/each}}\"}}}");
    with = account(xml);
    case_build(definition_api(CHANNEL_SMS), &mail, &with, arena, &request);
    assert_string_equal(arena_cstr(arena, request.body), "<t>a&amp;b &lt;c&gt;</t>");
    definition_drop(xml);
    arena_free(arena);
}

static void a_recipients_own_url_must_begin_with_the_prefix(void **state)
{
    (void)state;
    Error err = {0};
    VendorDefinition *definition = definition_compile(
        STR("{\"request\":{\"url\":\"{{to}}\",\"json\":{\"text\":\"{{text}}\"}}}"), CHANNEL_WEBHOOK,
        &err);
    const VendorPair settings[] = {{STR("address_prefix"), STR("https://chat.example/hooks/")}};
    VendorAccount with = {
        .name = STR("c"),
        .secret = STR("x"),
        .settings = settings,
        .setting_count = 1,
        .definition = definition};
    VendorMail mail = case_text("hi");
    mail.to.address = STR("https://chat.example/hooks/abc");
    Arena *arena = arena_new(0);
    VendorRequest request;
    case_build(definition_api(CHANNEL_WEBHOOK), &mail, &with, arena, &request);
    case_request_is(
        &request, arena, "POST", "https://chat.example/hooks/abc",
        "Content-Type: application/json\n", "{\"text\":\"hi\"}");
    static const char *const refused[] = {
        "https://chat.example.evil/hooks/abc", "https://chat.example/hooks/../admin",
        "https://chat.example/hooks/%2E%2e/admin", "https://chat.example/hooks/..%2Fadmin",
        "https://chat.example/hooks/a%2f..%5C..%2fadmin"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        mail.to.address = str_from(refused[i]);
        case_refused(
            definition_api(CHANNEL_WEBHOOK), &mail, &with, ERROR_PERMANENT,
            i == 0 ? "the message's 'to' does not begin with the setting 'address_prefix'"
                   : "the message's 'to' has a part '.' or '..', which leads to another path");
    }
    definition_drop(definition);
    arena_free(arena);
}

static void what_is_wrong_is_named_by_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *document, *expected;
    } rows[] = {
        {"", "definition: required, a JSON document of at most 32768 bytes"},
        {"{", "definition: not JSON: line 1, column 1"},
        {"[]", "definition: must be a JSON object"},
        {"{}", "definition.request: required"},
        {"{\"x\":1}", "definition.x: unknown; there are request, answer, callback, key_known_s"},
        {"{\"request\":{\"url\":\"https://{{to}}/\",\"json\":{}}}",
         "definition.request.url: must begin with https:// and a host that is written out"},
        {"{\"request\":{\"url\":\"https://a{{to}}.example/\",\"json\":{}}}",
         "definition.request.url: must begin"},
        {"{\"request\":{\"url\":\"{{to}}\",\"json\":{}}}", "definition.request.url: must begin"},
        {"{\"request\":{\"url\":\"https://u@a.example/\",\"json\":{}}}",
         "definition.request.url: must begin"},
        {"{\"request\":{\"url\":\"https://a.example/\"}}",
         "definition.request: needs one of 'json', 'form' and 'body'"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"json\":{},\"form\":{}}}",
         "definition.request: needs one of"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"method\":\"GET\",\"json\":{}}}",
         "definition.request.method: is POST or PUT"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"json\":{\"a\":[{\"b\":\"{{#if x}}\"}]}}}",
         "definition.request.json.a.0.b: line 1, column 1: '{{#if' is never closed"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"headers\":{\"Host\":\"x\"},\"json\":{}}}",
         "definition.request.headers: 'Host' cannot be set"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"json\":{}},\"answer\":{\"id\":\"id\"}}",
         "definition.answer.id: is no JSON pointer such as /messages/0/id"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"json\":{}},"
         "\"answer\":{\"statuses\":{\"404\":\"gone\"}}}",
         "definition.answer.statuses.404: is none of accepted, retry"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"json\":{}},"
         "\"answer\":{\"statuses\":{\"404\":\"accepted\"}}}",
         "definition.answer.statuses.404: only a 2xx is accepted"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"json\":{}},"
         "\"answer\":{\"statuses\":{\"40\":\"retry\"}}}",
         "definition.answer.statuses.40: is no HTTP status"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"json\":{}},"
         "\"answer\":{\"codes\":{\"1\":\"retry\"}}}",
         "definition.answer.code: required where there are codes"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"json\":{}},\"key_known_s\":-1}",
         "definition.key_known_s: is a number of seconds"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"json\":{}},"
         "\"callback\":{\"status\":\"/s\"}}",
         "definition.callback.signature: required"},
        {"{\"request\":{\"url\":\"https://a.example/\",\"json\":{}},\"callback\":{"
         "\"status\":\"/s\",\"signature\":{\"header\":\"X\"},\"statuses\":{\"a\":\"gone\"}}}",
         "definition.callback.statuses.a: is none of sent, delivered"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Error err = {0};
        assert_null(definition_compile(str_from(rows[i].document), CHANNEL_SMS, &err));
        assert_int_equal(err.kind, ERROR_PERMANENT);
        if (strstr(err.text, rows[i].expected) != err.text) {
            fail_msg("expected '%s' in '%s'", rows[i].expected, err.text);
        }
    }
}

static bool is_clear(const char *header, const char *value, Error *err)
{
    json_t *document = json_pack("{s:{s:{s:s}}}", "request", "headers", header, value);
    bool good = definition_check_clear(document, err);
    json_decref(document);
    return good;
}

static void a_secret_in_clear_is_refused_by_the_name_of_its_header(void **state)
{
    (void)state;
    static const struct {
        const char *header, *value;
        bool good;
    } rows[] = {
        {"Authorization", "Bearer {{secret}}", true},
        {"Authorization", "Basic {{id}}:{{ secret }}", true},
        {"Authorization", "Bearer abc.def", false},
        {"authorization", "Key {{id}}", false},
        {"Proxy-Authorization", "Basic YTpi", false},
        {"X-Api-Key", "0123456789abcdef", false},
        {"X-Api-Key", "{{secret}}", true},
        {"X-Auth-Token", "abc", false},
        {"X-Password", "abc", false},
        {"Idempotency-Key", "{{key}}", true},
        {"acme_token", "abc", false},
        {"X-Author-Keyword", "2026-11-27", true},
        {"Accept", "application/json", true},
        {"X-Api-Key", "", true},
        {"X-A", "a\r\nB: 1", false},
        {"X-A", "{{title}}\n", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Error err = {0};
        if (is_clear(rows[i].header, rows[i].value, &err) != rows[i].good) {
            fail_msg("%s: %s", rows[i].header, rows[i].value);
        }
    }
    Error err = {0};
    assert_false(is_clear("X-Api-Key", "0123456789abcdef", &err));
    assert_int_equal(err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(err.text, "definition.request.headers.X-Api-Key: would stand in clear"));
    assert_non_null(strstr(err.text, "write {{secret}}"));
    assert_null(strstr(err.text, "0123456789abcdef"));
    assert_true(definition_check_clear(NULL, &err));
}

static void a_header_has_no_line_break(void **state)
{
    (void)state;
#define BREAK "definition.request.headers.X-A: has a line break or another control character"
    static const char *const rendered = BREAK " with the message's values";
    Arena *arena = arena_new(0);
    Error err = {0};
    assert_false(is_clear("X-A", "a\r\nB: 1", &err));
    assert_string_equal(err.text, BREAK);
    VendorDefinition *definition =
        compile("{\"request\":{\"url\":\"https://a.example/\",\"headers\":{\"X-A\":\"{{text}}\"},"
                "\"json\":{\"to\":\"{{to}}\"}}}");
    VendorAccount with = account(definition);
    VendorRequest request;
    assert_false(definition_try(definition, &with, arena, &request, &err));
    assert_string_equal(err.text, rendered);
    VendorMail mail = case_text("one line");
    case_build(definition_api(CHANNEL_SMS), &mail, &with, arena, &request);
    mail.text = STR("two\nlines");
    case_refused(definition_api(CHANNEL_SMS), &mail, &with, ERROR_PERMANENT, rendered);
    definition_drop(definition);
    arena_free(arena);
}

static void a_misspelled_value_is_found_by_trying(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    VendorDefinition *definition = compile(
        "{\"request\":{\"url\":\"https://a.example/\",\"json\":{\"to\":\"{{recipent}}\"}}}");
    VendorAccount with = account(definition);
    VendorRequest request;
    Error err = {0};
    assert_false(definition_try(definition, &with, arena, &request, &err));
    assert_non_null(strstr(err.text, "definition.request.json.to: line 1, column 1"));
    definition_drop(definition);
    definition = compile("{" REQUEST "}");
    assert_true(definition_try(definition, &with, arena, &request, &err));
    const VendorPair up = {STR("account"), STR("..")};
    with.settings = &up;
    assert_false(definition_try(definition, &with, arena, &request, &err));
    assert_string_equal(
        err.text, "definition.request.url: has a blank, a control character or a part '..'");
    definition_drop(definition);
    arena_free(arena);
}

static void a_recipient_leads_to_no_other_path(void **state)
{
    (void)state;
    Error err = {0};
    VendorDefinition *definition = definition_compile(
        STR("{\"request\":{\"url\":\"https://a.example/to/{{to}}\",\"json\":{\"x\":1}}}"),
        CHANNEL_PUSH, &err);
    VendorAccount with = account(definition);
    VendorMail mail = case_text("hi");
    mail.to.address = STR("../../admin");
    case_refused(
        definition_api(CHANNEL_PUSH), &mail, &with, ERROR_PERMANENT,
        "definition.request.url: has a blank, a control character or a part '..'");
    definition_drop(definition);
}

static void a_text_that_makes_the_url_too_long_is_the_messages_fault(void **state)
{
    (void)state;
    VendorDefinition *definition =
        compile("{\"request\":{\"url\":\"https://a.example/?t={{text}}\",\"json\":{\"x\":1}}}");
    VendorAccount with = account(definition);
    static char text[8193];
    memset(text, 'x', sizeof text - 1);
    VendorMail mail = case_text(text);
    for (size_t len = 8172; len < sizeof text; len++) { // 21 bytes are in front of it
        mail.text.len = len;
        case_refused(
            definition_api(CHANNEL_SMS), &mail, &with, ERROR_PERMANENT,
            "definition.request.url: has over 8192 bytes with the message's values");
    }
    mail.text.len = 8000;
    Arena *arena = arena_new(0);
    VendorRequest request;
    case_build(definition_api(CHANNEL_SMS), &mail, &with, arena, &request);
    assert_int_equal(request.url.len, 8000 + strlen("https://a.example/?t="));
    arena_free(arena);
    definition_drop(definition);
}

static void a_message_that_is_not_utf8_is_refused_even_where_no_text_is_used(void **state)
{
    (void)state;
    Error err = {0};
    VendorDefinition *definition = definition_compile(
        STR("{\"request\":{\"url\":\"https://a.example/\",\"json\":{\"x\":1}}}"), CHANNEL_SMS,
        &err);
    VendorAccount with = account(definition);
    VendorMail mail = case_text("\xff");
    case_refused(
        definition_api(CHANNEL_SMS), &mail, &with, ERROR_PERMANENT,
        "the message's 'text' is not UTF-8");
    definition_drop(definition);
}

static void a_mail_with_files_or_copies_is_not_carried(void **state)
{
    (void)state;
    Error err = {0};
    VendorDefinition *definition = definition_compile(
        STR("{\"request\":{\"url\":\"https://a.example/\",\"json\":{\"html\":\"{{html}}\"}}}"),
        CHANNEL_EMAIL, &err);
    VendorAccount with = account(definition);
    VendorMail mail = case_mail();
    mail.bcc_count = 1;
    case_refused(
        definition_api(CHANNEL_EMAIL), &mail, &with, ERROR_PERMANENT,
        "the mail has copies (cc, bcc), which no vendor by definition carries");
    definition_drop(definition);
}

// ---- answers ----

typedef struct Row {
    int status;
    const char *body;
    SendState state;
    ReplyClass reply;
    const char *id, *text;
} Row;

static void an_answer_is_judged_by_status_then_code(void **state)
{
    (void)state;
    static const Row rows[] = {
        {201, "{\"messages\":[{\"id\":\"m1\"}]}", SEND_ANSWERED, REPLY_ACCEPTED, "m1", ""},
        {200, "{\"messages\":[{\"id\":17}]}", SEND_ANSWERED, REPLY_ACCEPTED, "17", ""},
        {200, "torn", SEND_ANSWERED, REPLY_ACCEPTED, "", ""},
        {200, "{\"error\":{\"code\":21,\"a/b\":\"no\"}}", SEND_ANSWERED, REPLY_BAD_ADDRESS, "",
         "21 no"},
        {400, "{\"error\":{\"code\":\"E9\",\"a/b\":\"slow\"}}", SEND_ANSWERED, REPLY_THROTTLED, "",
         "E9 slow"},
        {422, "{\"error\":{\"code\":5}}", SEND_ANSWERED, REPLY_ELSEWHERE, "", "5"},
        {400, "{}", SEND_ANSWERED, REPLY_TERMINAL, "", ""},
        {409, "{}", SEND_ANSWERED, REPLY_RETRY, "", ""},
        {500, "{}", SEND_ANSWERED, REPLY_RETRY, "", ""},
        {504, "{}", SEND_UNKNOWN, REPLY_RETRY, "", ""},
        {500, "{\"error\":{\"code\":21}}", SEND_ANSWERED, REPLY_BAD_ADDRESS, "", "21"},
        {504, "{\"error\":{\"code\":21}}", SEND_UNKNOWN, REPLY_RETRY, "", "21"},
        {504, "{\"error\":{\"code\":5}}", SEND_UNKNOWN, REPLY_RETRY, "", "5"},
        {408, "{\"error\":{\"code\":\"E9\"}}", SEND_UNKNOWN, REPLY_RETRY, "", "E9"},
        {401, "{}", SEND_ANSWERED, REPLY_CONFIG, "", ""},
    };
    VendorDefinition *definition = compile("{" REQUEST "," ANSWER "}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *arena = arena_new(0);
        VendorAnswer answer = {
            .status = rows[i].status, .body = str_from(rows[i].body), .definition = definition};
        SendResult result;
        memset(&result, 0xff, sizeof result);
        definition_api(CHANNEL_SMS)->read(&answer, arena, &result);
        if (result.state != rows[i].state || result.reply != rows[i].reply) {
            fail_msg("%zu: state %d, reply %d", i, (int)result.state, (int)result.reply);
        }
        assert_string_equal(arena_cstr(arena, result.vendor_message_id), rows[i].id);
        assert_string_equal(arena_cstr(arena, result.text), rows[i].text);
        arena_free(arena);
    }
    definition_drop(definition);
}

static void a_code_overrules_no_uncertain_status(void **state)
{
    (void)state;
    VendorDefinition *definition =
        compile("{" REQUEST ",\"answer\":{\"code\":\"/code\",\"codes\":{\"21\":\"bad_address\"},"
                "\"otherwise\":\"retry\"}}");
    static const int statuses[] = {408, 500, 502, 504};
    static const char *const bodies[] = {"{\"code\":21}", "{\"code\":9}"};
    for (size_t i = 0; i < 2 * sizeof statuses / sizeof *statuses; i++) {
        Arena *arena = arena_new(0);
        VendorAnswer answer = {
            .status = statuses[i / 2], .body = str_from(bodies[i % 2]), .definition = definition};
        SendResult result = {0};
        definition_api(CHANNEL_SMS)->read(&answer, arena, &result);
        assert_int_equal(result.state, SEND_UNKNOWN);
        arena_free(arena);
    }
    definition_drop(definition);
}

// ---- callbacks ----

#define BODY                                                                                       \
    "{\"events\":[{\"id\":\"m1\",\"ref\":\"" CASE_NID "\",\"n\":2,\"state\":\"DELIVRD\",\"at\":"   \
    "\"2026-11-26T20:00:00Z\"},{\"id\":\"m2\",\"state\":\"UNDELIV\",\"why\":\"gone\",\"to\":"      \
    "\"4915112345678\"},{\"id\":\"m3\",\"state\":\"ENROUTE\"},{\"id\":\"m4\"}]}"
// By Python's hmac, with the key 0123456789abcdef.
#define SIGNATURE "a841b30f809d8cdcb4c737316e402b03bbe2c63dbf725f64d104dc0b86323e77"

static CallbackVerdict judge(VendorDefinition *definition, const char *signature, const char *body)
{
    const CallbackKey keys[] = {
        {STR("old"), STR("fedcba9876543210")}, {STR("new"), STR("0123456789abcdef")}};
    const VendorPair header = {STR("x-sig"), str_from(signature)};
    const CallbackRequest request = {.headers = &header, .header_count = 1, .body = str_from(body)};
    CallbackVerdict verdict = CALLBACK_STALE;
    size_t which = 9;
    bool good = definition_verify(definition, &request, keys, 2, &verdict, &which);
    assert_true(good == (verdict == CALLBACK_GOOD) && (!good || which == 1));
    return verdict;
}

static void a_callback_is_signed_over_its_bytes(void **state)
{
    (void)state;
    VendorDefinition *definition = compile("{" REQUEST "," CALLBACK "}");
    assert_int_equal(judge(definition, "sha256=" SIGNATURE, BODY), CALLBACK_GOOD);
    assert_int_equal(judge(definition, "sha256=" SIGNATURE, BODY " "), CALLBACK_BAD);
    assert_int_equal(judge(definition, SIGNATURE, BODY), CALLBACK_UNSIGNED);
    assert_int_equal(judge(definition, "sha256=00", BODY), CALLBACK_BAD);
    assert_int_equal(judge(definition, "", BODY), CALLBACK_UNSIGNED);
    definition_drop(definition);
}

static void its_words_become_ours(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    CallbackBatch batch;
    Error err = {0};
    VendorDefinition *definition = compile("{" REQUEST "," CALLBACK "}");
    assert_true(definition_events(definition, STR(BODY), arena, &batch, &err));
    assert_int_equal(batch.count, 2);
    assert_int_equal(batch.ignored, 1);
    assert_int_equal(batch.unreadable, 1);
    const CallbackEvent *first = &batch.events[0];
    assert_int_equal(first->status, STATUS_DELIVERED);
    assert_int_equal(first->attempt, 2);
    assert_int_equal(first->at_us, INT64_C(1795723200000000));
    assert_string_equal(arena_cstr(arena, first->notification_id), CASE_NID);
    assert_string_equal(arena_cstr(arena, first->message_id), "m1");
    assert_int_equal(batch.events[1].suppress, SUPPRESSION_HARD_BOUNCE);
    assert_string_equal(arena_cstr(arena, batch.events[1].text), "gone");
    assert_string_equal(arena_cstr(arena, batch.events[1].email), "+4915112345678");
    assert_false(definition_events(definition, STR("{}"), arena, &batch, &err));
    assert_false(definition_events(definition, STR("\xff"), arena, &batch, &err));
    definition_drop(definition);
    arena_free(arena);
}

static void who_it_is_about_is_an_address_of_the_channel(void **state)
{
    (void)state;
    static const struct {
        Channel channel;
        const char *to, *email;
    } rows[] = {
        {CHANNEL_SMS, "+4915112345678", "+4915112345678"},
        {CHANNEL_VOICE, "4915112345678", "+4915112345678"},
        {CHANNEL_SMS, "+491", ""},
        {CHANNEL_EMAIL, "alice@example.com", "alice@example.com"},
        {CHANNEL_EMAIL, "alice", ""},
        {CHANNEL_PUSH, "token", "token"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *arena = arena_new(0);
        CallbackBatch batch;
        Error err = {0};
        VendorDefinition *definition =
            definition_compile(STR("{" REQUEST "," CALLBACK "}"), rows[i].channel, &err);
        const char *body =
            arena_printf(arena, "{\"events\":[{\"state\":\"UNDELIV\",\"to\":\"%s\"}]}", rows[i].to);
        assert_true(definition_events(definition, str_from(body), arena, &batch, &err));
        assert_string_equal(arena_cstr(arena, batch.events[0].email), rows[i].email);
        definition_drop(definition);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vendors_name_says_its_channel),
        cmocka_unit_test(each_value_is_escaped_for_its_place),
        cmocka_unit_test(a_form_and_a_text_are_bodies_too),
        cmocka_unit_test(a_recipients_own_url_must_begin_with_the_prefix),
        cmocka_unit_test(what_is_wrong_is_named_by_its_place),
        cmocka_unit_test(a_secret_in_clear_is_refused_by_the_name_of_its_header),
        cmocka_unit_test(a_header_has_no_line_break),
        cmocka_unit_test(a_misspelled_value_is_found_by_trying),
        cmocka_unit_test(a_recipient_leads_to_no_other_path),
        cmocka_unit_test(a_text_that_makes_the_url_too_long_is_the_messages_fault),
        cmocka_unit_test(a_message_that_is_not_utf8_is_refused_even_where_no_text_is_used),
        cmocka_unit_test(a_mail_with_files_or_copies_is_not_carried),
        cmocka_unit_test(an_answer_is_judged_by_status_then_code),
        cmocka_unit_test(a_code_overrules_no_uncertain_status),
        cmocka_unit_test(a_callback_is_signed_over_its_bytes),
        cmocka_unit_test(its_words_become_ours),
        cmocka_unit_test(who_it_is_about_is_an_address_of_the_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
