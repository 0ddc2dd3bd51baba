// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "services/ingest/intake/request_json.h"

enum { NOW_S = 1795199136 }; // 2026-11-20T18:25:36Z

#define NOW_US (NOW_S * INT64_C(1000000))
#define HEAD "{\"to\":\"a@b.c\",\"template\":\"welcome\""
#define X128                                                                                       \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"                             \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

typedef struct Case {
    const char *body;
    int status;
    const char *field;
    const char *words; // of the detail
} Case;

// clang-format off
static const Case BAD[] = {
    {"", 400, "", "line 1"},
    {"{\"to\": ", 400, "", "line 1"},
    {"{\n\"to\": nope}", 400, "", "line 2"},
    {HEAD "} trailing", 400, "", "line 1, column"},
    {"{\"to\":\"a\xff@b.c\"}", 400, "", "UTF-8"},
    {"{\"to\":\"a@b.c\",\"to\":\"x@y.z\"}", 400, "", "duplicate"},
    {"{\"to\":\"a\\u0000@b.c\"}", 400, "", "line 1"},
    {"\"hello\"", 400, "", "object or an array"},
    {"17", 400, "", "object or an array"},
    {"null", 400, "", "object or an array"},
    {"[]", 422, "", "1 to 1000"},
    {"{}", 422, "to", "required"},
    {"[7]", 422, "notifications[0]", "object"},
    {"[" HEAD "}, {\"to\":7}]", 422, "notifications[1].to", "address"},
    {"{\"template\":\"welcome\"}", 422, "to", "required"},
    {"{\"to\":\"no-at-sign\",\"template\":\"welcome\"}", 422, "to", "no '@'"},
    {"{\"to\":null,\"template\":\"welcome\"}", 422, "to", "address"},
    {"{\"to\":[],\"template\":\"welcome\"}", 422, "to", "address"},
    {"{\"to\":{},\"template\":\"welcome\"}", 422, "to", "required"},
    {"{\"to\":{\"address\":7},\"template\":\"welcome\"}", 422, "to.address", "string"},
    {"{\"to\":{\"address\":\"a@b.c\",\"name\":7},\"template\":\"welcome\"}", 422, "to.name", "string"},
    {"{\"to\":{\"address\":\"a@b.c\",\"nick\":\"x\"},\"template\":\"welcome\"}", 422, "to", "nick"},
    {"{\"to\":{\"address\":\"a@b.c\",\"name\":\"A\\r\\nBcc: x\"},\"template\":\"welcome\"}", 422, "to.name", "line break"},
    {"{\"to\":\"a@b.c\\r\\nBcc: x@y.z\",\"template\":\"welcome\"}", 422, "to", "not allowed"},
    {"{\"to\":\"a@b.c\"}", 422, "template", "required"},
    {"{\"to\":\"a@b.c\",\"template\":\"Wel come\"}", 422, "template", "key"},
    {"{\"to\":\"a@b.c\",\"template\":7}", 422, "template", "string"},
    {HEAD ",\"tempalte\":\"x\"}", 422, "tempalte", "unknown"},
    {HEAD ",\"template_version\":\"1\"}", 422, "template_version", "version"},
    {HEAD ",\"locale\":\"en_US\"}", 422, "locale", "language"},
    {HEAD ",\"locale\":\"en-\"}", 422, "locale", "language"},
    {HEAD ",\"locale\":\"en\\n\"}", 422, "locale", "language"},
    {HEAD ",\"locale\":null}", 422, "locale", "string"},
    {HEAD ",\"variables\":[1]}", 422, "variables", "object"},
    {HEAD ",\"variables\":\"x\"}", 422, "variables", "object"},
    {HEAD ",\"channel\":\"sms\"}", 422, "to", "E.164"},
    {HEAD ",\"channel\":\"webhook\"}", 422, "to", "not a URL"},
    {HEAD ",\"channels\":\"email\"}", 422, "channels", "list"},
    {HEAD ",\"channels\":[]}", 422, "channels", "list"},
    {HEAD ",\"channels\":[7]}", 422, "channels", "string"},
    {HEAD ",\"channels\":[\"email\",\"pigeon\"]}", 422, "channels", "'pigeon'"},
    {HEAD ",\"channels\":[\"email\",\"email\"]}", 422, "channels", "twice"},
    {HEAD ",\"channel\":\"email\",\"channels\":[\"email\"]}", 422, "channels", "either"},
    {HEAD ",\"channels\":[\"email\",\"sms\"]}", 422, "to", "E.164"},
    {"[" HEAD "}," HEAD ",\"channels\":[\"email\",\"sms\"]}]", 422, "notifications[1].to", "E.164"},
    {HEAD ",\"channel\":\"pigeon\"}", 422, "channel", "not a channel"},
    {HEAD ",\"category\":\"gossip\"}", 422, "category", "not a category"},
    {HEAD ",\"priority\":\"soon\"}", 422, "priority", "critical"},
    {HEAD ",\"correlation_id\":\"" X128 "x\"}", 422, "correlation_id", "128"},
    {HEAD ",\"correlation_id\":\"a\\tb\"}", 422, "correlation_id", "control"},
    {HEAD ",\"source_event_id\":\"" X128 "x\"}", 422, "source_event_id", "128"},
    {HEAD ",\"recipient_id\":\"bob\"}", 422, "recipient_id", "rcp_"},
    {HEAD ",\"scheduled_for\":\"tomorrow\"}", 422, "scheduled_for", "RFC 3339"},
    {HEAD ",\"scheduled_for\":1795199136}", 422, "scheduled_for", "string"},
    {HEAD ",\"scheduled_for\":\"2029-01-01T00:00:00Z\"}", 422, "scheduled_for", "366"},
    {HEAD ",\"expires_at\":\"2001-01-01T00:00:00Z\"}", 422, "expires_at", "past"},
    {HEAD ",\"consent\":true}", 422, "consent", "{\"source\", \"given_at\"}"},
    {HEAD ",\"consent\":{}}", 422, "consent.source", "required"},
    {HEAD ",\"consent\":{\"source\":\"form\"}}", 422, "consent.given_at", "required"},
    {HEAD ",\"consent\":{\"source\":7,\"given_at\":\"2026-05-01T00:00:00Z\"}}", 422, "consent.source", "string"},
    {HEAD ",\"consent\":{\"given_at\":\"2026-05-01T00:00:00Z\"}}", 422, "consent.source", "required"},
    {HEAD ",\"consent\":{\"source\":\"mail of bob@x.test\",\"given_at\":\"2025-05-01T12:00:00Z\"}}", 422, "consent.source", "@"},
    {HEAD ",\"consent\":{\"source\":\"form\",\"given_at\":\"in May\"}}", 422, "consent.given_at", "RFC 3339"},
    {HEAD ",\"consent\":{\"source\":\"form\",\"given_at\":\"2029-01-01T00:00:00Z\"}}", 422, "consent.given_at", "future"},
    {HEAD ",\"consent\":{\"source\":\"" X128 X128 "\",\"given_at\":\"2026-05-01T00:00:00Z\"}}", 422, "consent.source", "200"},
    {HEAD ",\"consent\":{\"source\":\"a\\nb\",\"given_at\":\"2026-05-01T00:00:00Z\"}}", 422, "consent.source", "control"},
    {HEAD ",\"consent\":{\"source\":\"form\",\"ip\":\"::1\"}}", 422, "consent", "unknown"},
    {HEAD ",\"expires_at\":\"1970-01-01T00:00:00Z\"}", 422, "expires_at", "past"},
    {HEAD ",\"scheduled_for\":\"2026-12-01T00:00:00Z\",\"expires_at\":\"2026-11-30T00:00:00Z\"}", 422, "expires_at", "scheduled_for"},
};
// clang-format on

static bool parse(const char *body, Arena *arena, RequestList *ret, Problem *problem)
{
    static const RequestRules rules = {.now_us = NOW_US, .delivered = ~0U};
    memset(problem, 0, sizeof *problem);
    if (!request_json_parse(str_from(body), &rules, arena, ret, problem)) {
        return false;
    }
    request_list_done(ret);
    return true;
}

static void each_bad_body_gets_its_status_field_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        Arena *arena = arena_new(0);
        RequestList list = {0};
        Problem problem;
        if (parse(BAD[i].body, arena, &list, &problem)) {
            fail_msg("taken: %s", BAD[i].body);
        }
        if (problem.status != BAD[i].status || strcmp(problem.field, BAD[i].field) != 0 ||
            strstr(problem.detail, BAD[i].words) == NULL) {
            fail_msg(
                "%s: %d '%s' '%s'", BAD[i].body, problem.status, problem.field, problem.detail);
        }
        assert_true(problem.slug[0] != '\0' && problem.title[0] != '\0');
        arena_free(arena);
    }
}

static void a_full_object_is_read_field_by_field(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    RequestList list = {0};
    Problem problem;
    assert_true(parse(
        "{\"to\":{\"address\":\"Alice@EXAMPLE.com\",\"name\":\"Alice\"},\"template\":\"welcome\","
        "\"template_version\":\"1.2.0\",\"locale\":\"en-US\",\"variables\":{\"a\":[1,2.5,\"x\"]},"
        "\"channel\":\"email\",\"category\":\"billing\",\"priority\":\"urgent\","
        "\"correlation_id\":\"c-1\",\"scheduled_for\":\"2026-11-21T00:00:00+01:00\","
        "\"expires_at\":\"2026-12-21T00:00:00Z\",\"recipient_id\":\"rcp_"
        "01ARZ3NDEKTSV4RRFFQ69G5FAV\","
        "\"source_event_id\":\"s-1\","
        "\"consent\":{\"source\":\"form\",\"given_at\":\"2026-05-01T12:00:00Z\"}}",
        arena, &list, &problem));
    assert_true(list.single);
    assert_int_equal(list.count, 1);
    const Request *r = &list.items[0];
    assert_true(str_eq(r->to, STR("Alice@example.com")));
    assert_true(str_eq(r->to_name, STR("Alice")));
    assert_true(str_eq(r->template_key, STR("welcome")));
    assert_true(str_eq(r->template_version, STR("1.2.0")));
    assert_true(str_eq(r->locale, STR("en-US")));
    assert_true(str_eq(r->variables, STR("{\"a\":[1,2.5,\"x\"]}")));
    assert_int_equal(r->channel, CHANNEL_EMAIL);
    assert_int_equal(r->category, CATEGORY_BILLING);
    assert_int_equal(r->priority, PRIORITY_CRITICAL);
    assert_true(str_eq(r->correlation_id, STR("c-1")));
    assert_true(str_eq(r->recipient_id, STR("rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV")));
    assert_true(str_eq(r->source_event_id, STR("s-1")));
    assert_true(str_eq(r->consent_source, STR("form")));
    assert_int_equal(r->consent_at_us, INT64_C(1777636800000000));
    char at[CLOCK_RFC3339_SIZE];
    clock_format(r->scheduled_for_us, at);
    assert_string_equal(at, "2026-11-20T23:00:00.000000Z");
    clock_format(r->expires_at_us, at);
    assert_string_equal(at, "2026-12-21T00:00:00.000000Z");
    arena_free(arena);
}

static void what_is_left_out_has_its_default(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    RequestList list = {0};
    Problem problem;
    assert_true(parse("[" HEAD "}]", arena, &list, &problem));
    const Request *r = &list.items[0];
    assert_false(list.single);
    assert_int_equal(r->channel, CHANNEL_EMAIL);
    assert_int_equal(r->category, CATEGORY_NONE);
    assert_int_equal(r->priority, PRIORITY_NORMAL);
    assert_int_equal(r->variables.len, 0);
    assert_int_equal(r->scheduled_for_us, 0);
    assert_int_equal(r->expires_at_us, 0);
    arena_free(arena);
}

static void a_schedule_that_has_passed_means_now(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    RequestList list = {0};
    Problem problem;
    assert_true(parse(HEAD ",\"scheduled_for\":\"2026-11-20T18:25:36Z\"}", arena, &list, &problem));
    assert_int_equal(list.items[0].scheduled_for_us, 0);
    assert_true(list.items[0].scheduled_past);
    assert_true(parse(HEAD ",\"scheduled_for\":\"1970-01-01T00:00:00Z\"}", arena, &list, &problem));
    assert_int_equal(list.items[0].scheduled_for_us, 0);
    assert_true(list.items[0].scheduled_past);
    assert_true(parse(HEAD ",\"scheduled_for\":\"2026-11-20T18:25:37Z\"}", arena, &list, &problem));
    assert_int_equal(list.items[0].scheduled_for_us, NOW_US + 1000000);
    assert_false(list.items[0].scheduled_past);
    assert_true(parse(HEAD "}", arena, &list, &problem));
    assert_false(list.items[0].scheduled_past);
    arena_free(arena);
}

// One row a body: where only e-mail is delivered, the field that is wrong; NULL: none.
static void a_channel_without_a_vendor_is_refused(void **state)
{
    (void)state;
    static const RequestRules email = {.now_us = NOW_US, .delivered = 1U << CHANNEL_EMAIL};
    static const RequestRules sms = {.now_us = NOW_US, .delivered = 1U << CHANNEL_SMS};
    static const struct {
        const RequestRules *rules;
        const char *body, *field, *detail;
    } rows[] = {
        {&email, HEAD "}", NULL, NULL},
        {&email, HEAD ",\"channels\":[\"email\"]}", NULL, NULL},
        {&email, "{\"to\":\"+491511234567\",\"template\":\"t\",\"channel\":\"sms\"}", "channel",
         "'sms' is not delivered by this installation; it delivers email (HINT: stentor credential "
         "put VENDOR NAME)"},
        {&email,
         "[" HEAD "},{\"recipient_id\":\"rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"template\":\"t\","
         "\"channels\":[\"email\",\"push\"]}]",
         "notifications[1].channels", "'push'"},
        {&sms, HEAD "}", "channel", "'email'"}, // the default is judged, too
        {&email,
         "{\"to\":\"https://hooks.slack.com/services/T/B/x\",\"template\":\"t\",\"channel\":"
         "\"webhook\"}",
         "channel", "'webhook'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *arena = arena_new(0);
        RequestList list = {0};
        Problem problem = {0};
        bool taken =
            request_json_parse(str_from(rows[i].body), rows[i].rules, arena, &list, &problem);
        assert_int_equal(taken, rows[i].field == NULL);
        if (taken) {
            request_list_done(&list);
        } else {
            assert_string_equal(problem.field, rows[i].field);
            assert_non_null(strstr(problem.detail, rows[i].detail));
        }
        arena_free(arena);
    }
}

static void parsed_variables_stay_until_the_list_is_done(void **state)
{
    (void)state;
    static const RequestRules rules = {.now_us = NOW_US, .delivered = ~0U};
    static const char body[] =
        "[" HEAD "},{\"recipient_id\":\"rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"template\":\"t\","
        "\"variables\":{\"a\":7},\"channels\":[\"email\",\"sms\"]}]";
    Arena *arena = arena_new(0);
    RequestList list = {0};
    Problem problem = {0};
    assert_true(request_json_parse(str_from(body), &rules, arena, &list, &problem));
    assert_int_equal(list.count, 3);
    assert_null(list.variables[0]);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(json_integer_value(json_object_get(list.variables[i], "a")), 7);
    }
    request_list_done(&list);
    assert_true(str_eq(list.items[2].variables, STR("{\"a\":7}")));
    arena_free(arena);
}

static void prices_keep_their_digits(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    RequestList list = {0};
    Problem problem;
    assert_true(
        parse(HEAD ",\"variables\":{\"p\":19.99,\"n\":9007199254740993}}", arena, &list, &problem));
    assert_true(str_eq(list.items[0].variables, STR("{\"p\":19.99,\"n\":9007199254740993}")));
    arena_free(arena);
}

// 64 KiB of variables are taken, a byte more is not; both need more room than the first try.
static void variables_have_a_limit(void **state)
{
    (void)state;
    static char body[80000];
    for (size_t more = 0; more < 2; more++) {
        static const char BEFORE[] = HEAD ",\"variables\":{\"v\":\"";
        size_t len = REQUEST_VARIABLES_MAX - sizeof "{\"v\":\"\"}" + 1 + more;
        memcpy(body, BEFORE, sizeof BEFORE - 1);
        memset(body + sizeof BEFORE - 1, 'x', len);
        memcpy(body + sizeof BEFORE - 1 + len, "\"}}", 4);
        Arena *arena = arena_new(0);
        RequestList list = {0};
        Problem problem;
        bool ok = parse(body, arena, &list, &problem);
        assert_int_equal(ok, more == 0);
        if (ok) {
            assert_int_equal(list.items[0].variables.len, REQUEST_VARIABLES_MAX);
        } else {
            assert_string_equal(problem.field, "variables");
            assert_non_null(strstr(problem.detail, "65537"));
        }
        arena_free(arena);
    }
}

static void an_array_has_a_limit(void **state)
{
    (void)state;
    for (size_t count = REQUEST_ARRAY_MAX; count <= REQUEST_ARRAY_MAX + 1; count++) {
        char *body = malloc(count * sizeof HEAD + count + 16);
        size_t len = 0;
        body[len++] = '[';
        for (size_t i = 0; i < count; i++) {
            memcpy(body + len, HEAD "}", sizeof HEAD);
            len += sizeof HEAD;
            body[len++] = i + 1 < count ? ',' : ']';
        }
        body[len] = '\0';
        Arena *arena = arena_new(0);
        RequestList list = {0};
        Problem problem;
        assert_int_equal(parse(body, arena, &list, &problem), count == REQUEST_ARRAY_MAX);
        arena_free(arena);
        free(body);
    }
}

static void channels_make_one_request_each(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    RequestList list = {0};
    Problem problem;
    assert_true(parse(
        "{\"recipient_id\":\"rcp_01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"template\":\"welcome\","
        "\"channels\":[\"sms\",\"email\"]}",
        arena, &list, &problem));
    assert_int_equal(list.count, 2);
    assert_false(list.single); // answered as a list
    assert_int_equal(list.items[0].channel, CHANNEL_SMS);
    assert_int_equal(list.items[1].channel, CHANNEL_EMAIL);
    assert_int_equal(list.items[0].to.len, 0);
    assert_true(str_eq(list.items[1].template_key, STR("welcome")));
    FieldError err = {.field = "template"};
    request_json_problem(&list, 1, &err, arena, &problem);
    assert_string_equal(problem.field, "template"); // there is no array
    arena_free(arena);
}

static void a_field_found_wrong_later_is_named_by_its_object(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    RequestList list = {0};
    Problem problem;
    assert_true(parse(
        "[{\"to\":\"+491511234567\",\"template\":\"code\",\"channels\":[\"sms\",\"voice\"]}," HEAD
        "}]",
        arena, &list, &problem));
    assert_int_equal(list.count, 3);
    FieldError err = {.field = "template"};
    request_json_problem(&list, 1, &err, arena, &problem);
    assert_string_equal(problem.field, "notifications[0].template");
    request_json_problem(&list, 2, &err, arena, &problem);
    assert_int_equal(problem.more_count, 1);
    assert_string_equal(problem.more[0].field, "notifications[1].template");
    arena_free(arena);
}

// The fields in their order, each with a blank behind it.
static const char *fields_of(const Problem *problem, Arena *arena)
{
    char *all = arena_printf(arena, "%s ", problem->field);
    for (size_t i = 0; i < problem->more_count; i++) {
        all = arena_printf(arena, "%s%s ", all, problem->more[i].field);
    }
    return all;
}

static void every_wrong_field_is_named_once(void **state)
{
    (void)state;
    static const struct {
        const char *body, *fields;
    } rows[] = {
        {"{}", "to template "},
        {"{\"to\":{\"address\":7},\"priority\":\"x\"}", "to.address priority template "},
        {"{\"to\":7,\"colour\":1,\"template\":\"T\",\"expires_at\":\"x\"}",
         "to colour expires_at template "},
        // Of which channel it would be is not known.
        {"{\"to\":\"+4915\",\"channel\":\"pigeon\",\"locale\":7}", "channel locale "},
        {"[" HEAD "},{\"to\":\"x\"},7," HEAD ",\"priority\":1,\"category\":2}]",
         "notifications[1].to notifications[1].template notifications[2] "
         "notifications[3].priority notifications[3].category "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *arena = arena_new(0);
        RequestList list = {0};
        Problem problem;
        assert_false(parse(rows[i].body, arena, &list, &problem));
        assert_int_equal(problem.status, 422);
        assert_string_equal(fields_of(&problem, arena), rows[i].fields);
        arena_free(arena);
    }
}

static void a_thousand_wrong_ones_are_named_up_to_the_limit(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    RequestList list = {0};
    Problem problem;
    Buf body;
    buf_init(&body, 65536);
    for (int i = 0; i < 1000; i++) {
        buf_cstr(&body, i == 0 ? "[7" : ",7");
    }
    buf_char(&body, ']');
    assert_false(parse(buf_c(&body), arena, &list, &problem));
    assert_int_equal(problem.more_count, PROBLEM_MORE_MAX);
    buf_done(&body);
    arena_free(arena);
}

static void every_channel_has_its_kind_of_address(void **state)
{
    (void)state;
    static const struct {
        Channel channel;
        const char *to, *wanted; // NULL: refused
    } CASES[] = {
        {CHANNEL_EMAIL, "a@B.c", "a@b.c"},
        {CHANNEL_SMS, "+49 151 1234-567", "+491511234567"},
        {CHANNEL_VOICE, "0151", NULL},
        {CHANNEL_WHATSAPP, "a@b.c", NULL},
        {CHANNEL_PUSH, "dGhpcw:token", "dGhpcw:token"},
        {CHANNEL_PUSH, "two tokens", NULL},
        {CHANNEL_INAPP, "user-17", "user-17"},
        {CHANNEL_WEBHOOK, "https://hooks.slack.com/services/T0/B0/x",
         "https://hooks.slack.com/services/T0/B0/x"},
        {CHANNEL_WEBHOOK, "hooks.slack.com/services/T0/B0/x", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Arena *arena = arena_new(0);
        Request request = {
            .to = str_from(CASES[i].to),
            .channel = CASES[i].channel,
            .template_key = STR("welcome"),
        };
        FieldError err = {.field = ""};
        bool taken = request_check(&request, NOW_US, arena, &err);
        assert_int_equal(taken, CASES[i].wanted != NULL);
        assert_true(!taken || str_eq(request.to, str_from(CASES[i].wanted)));
        arena_free(arena);
    }
}

static void an_array_is_counted_by_channel(void **state)
{
    (void)state;
    Arena *arena = arena_new(0);
    static char body[200000];
    size_t len = 0;
    for (int i = 0; i < 600; i++) {
        len += (size_t)snprintf(
            body + len, sizeof body - len,
            "%c{\"to\":\"+491511234567\",\"template\":\"code\",\"channels\":[\"sms\",\"voice\"]}",
            i == 0 ? '[' : ',');
    }
    snprintf(body + len, sizeof body - len, "]");
    RequestList list = {0};
    Problem problem;
    assert_false(parse(body, arena, &list, &problem));
    assert_non_null(strstr(problem.detail, "by channel"));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_body_gets_its_status_field_and_reason),
        cmocka_unit_test(channels_make_one_request_each),
        cmocka_unit_test(a_field_found_wrong_later_is_named_by_its_object),
        cmocka_unit_test(every_wrong_field_is_named_once),
        cmocka_unit_test(a_thousand_wrong_ones_are_named_up_to_the_limit),
        cmocka_unit_test(every_channel_has_its_kind_of_address),
        cmocka_unit_test(an_array_is_counted_by_channel),
        cmocka_unit_test(a_full_object_is_read_field_by_field),
        cmocka_unit_test(what_is_left_out_has_its_default),
        cmocka_unit_test(a_schedule_that_has_passed_means_now),
        cmocka_unit_test(a_channel_without_a_vendor_is_refused),
        cmocka_unit_test(parsed_variables_stay_until_the_list_is_done),
        cmocka_unit_test(prices_keep_their_digits),
        cmocka_unit_test(variables_have_a_limit),
        cmocka_unit_test(an_array_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
