// SPDX-License-Identifier: Apache-2.0
// POST /v1/templates/{key}/{version}/test-send. In the order in which it happens: the body, the
// stored version (its sample stands for variables that are not given), the checks that ingest will
// make too, the event for ingest, the answer with the id that the event leads to. The gateway
// itself publishes no mail. Under an Idempotency-Key the event and its id are the same in each
// repeat that is carried out again: killed between the event's ack and the stored answer
// (`gateway.answer_made`), the repeat makes no second notification.
#include <inttypes.h>

#include "common/api/api_json.h"
#include "common/api/config_read.h"
#include "common/api/guards/idempotency.h"
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/json/json_write.h"
#include "common/model/template_key.h"
#include "common/request/required.h"
#include "common/request/semver.h"
#include "common/request/template_test.h"
#include "services/gateway/templates/template_call.h"
#include "stentor/v1/request.pb-c.h"

enum { TO_MAX = 4096 }; // of a push token; request_check has each channel's own bound

typedef struct TestSend {
    TemplateCall *call;
    Request request;
    json_t *variables; // borrowed from the body, or the sample, which the arena owns; NULL: none
    int64_t at_us;
    char event_id[EVENT_ID_SIZE];
    char id[ID_SIZE]; // of the notification
} TestSend;

static Arena *arena_of(const TestSend *test)
{
    return test->call->base->http->arena;
}

// ---- the body ----

static void read_to(TestSend *test, ApiBody *body)
{
    json_t *object = NULL;
    if (!json_is_object(json_object_get(body->root, "to"))) {
        (void)api_read_text(body, "to", TO_MAX, &test->request.to);
        return;
    }
    (void)api_read_object(body, "to", &object);
    ApiBody inside = api_body_inside(body, object, "to.");
    (void)api_read_text(&inside, "address", TO_MAX, &test->request.to);
    (void)api_read_text(&inside, "name", REQUEST_NAME_MAX, &test->request.to_name);
    (void)api_body_inside_end(body, &inside);
}

static void free_json(void *json)
{
    json_decref(json);
}

static bool read_body(TestSend *test)
{
    ApiCall *call = test->call->base;
    ApiBody body = {0};
    bool ok = api_body_parse(&body, call->http->body, call->http->arena);
    if (ok) {
        bool named = api_has(&body, "to");
        read_to(test, &body);
        (void)api_read_text(&body, "locale", REQUEST_LOCALE_MAX, &test->request.locale);
        (void)api_read_object(&body, "variables", &test->variables);
        if (!named || (api_body_good(&body) && test->request.to.len == 0)) {
            (void)api_body_fail(&body, "to", "required: where the test goes");
        }
        if (test->variables != NULL) {
            arena_own(call->http->arena, free_json, json_incref(test->variables));
        }
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// ---- the version ----

static bool refuse_status(const TestSend *test, const char *detail)
{
    Problem problem = {
        .status = 409, .slug = "version-status", .title = "The version cannot be tested"};
    (void)snprintf(problem.detail, sizeof problem.detail, "%s", detail);
    api_answer_problem(test->call->base, &problem);
    return false;
}

// The renderer would show the platform's version of that number.
static bool is_hidden(const TestSend *test)
{
    const TemplateCall *call = test->call;
    CatalogName name = {
        str_from(call->version->key), template_channel((int)call->version->channel)};
    CatalogVersion found;
    return !str_eq(str_from(call->version->tenant), PLATFORM) &&
           catalog_find(
               call->api->catalog, PLATFORM, name, str_from(call->version->version), &found) &&
           found.status != STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT;
}

static bool may_be_tested(const TestSend *test)
{
    const Stentor__V1__TemplateVersion *version = test->call->version;
    bool own = str_eq(str_from(version->tenant), str_from(test->call->base->tenant));
    switch (version->status) {
    case STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE:
        return true;
    case STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_DRAFT:
        if (!own) {
            return refuse_status(test, "it is a draft of the platform's, which tests it itself");
        }
        return !is_hidden(test) ||
               refuse_status(
                   test, "the platform has a version of this number, which would be sent: publish "
                         "the draft under another one");
    default:
        return refuse_status(test, "it is archived: only drafts and active versions are sent");
    }
}

static void take_sample(TestSend *test)
{
    const char *sample = test->call->version->sample_json;
    if (test->variables == NULL && sample[0] != '\0') {
        test->variables = json_loads(sample, 0, NULL);
        arena_own(arena_of(test), free_json, test->variables);
    }
}

// ---- the checks, as ingest makes them ----

static bool check_channel(TestSend *test)
{
    TemplateCall *call = test->call;
    Str tenant = str_from(call->base->tenant);
    char reason[ROUTES_REASON_SIZE];
    ChannelSet delivered = routes_channels(call->api->routes, tenant, call->api->delivered);
    if (!channel_set_has(delivered, test->request.channel)) {
        return template_call_fail(
            call, "channel", "'%s' is not delivered by this installation",
            channel_name(test->request.channel));
    }
    return routes_takes(
               call->api->routes, tenant, test->request.channel, test->request.to, reason) ||
           template_call_fail(call, "to", "%s", reason);
}

static void check_variables(TestSend *test)
{
    TemplateCall *call = test->call;
    Arena *arena = arena_of(test);
    Str tenant = str_from(call->base->tenant);
    const char *at = catalog_required(call->api->catalog, tenant, &test->request);
    const char *path = NULL, *field = NULL, *text = NULL;
    FieldError wrong;
    while (!problem_is_full(&call->problem) &&
           (path = required_missing(&at, test->variables, NULL)) != NULL) {
        (void)required_error(&wrong, path, &test->request, arena);
        (void)template_call_fail(call, wrong.field, "%s", wrong.text);
    }
    VariableRules *rules = catalog_rules(call->api->catalog, tenant, &test->request);
    for (size_t i = 0; !problem_is_full(&call->problem) &&
                       !variable_rules_hold(rules, test->variables, &i, arena, &field, &text);) {
        (void)template_call_fail(call, field, "%s", text);
    }
}

static Str pack_variables(const TestSend *test)
{
    return test->variables != NULL ? json_text(test->variables, JSON_DECIMALS, arena_of(test))
                                   : STR_EMPTY;
}

static bool check_request(TestSend *test)
{
    TemplateCall *call = test->call;
    Arena *arena = arena_of(test);
    const Stentor__V1__TemplateVersion *version = call->version;
    FieldError wrong = {.field = ""};
    test->request.channel = template_channel((int)version->channel);
    test->request.template_key = str_from(version->key);
    test->request.template_version = str_from(version->version);
    test->request.variables = pack_variables(test);
    bool ok = template_test_mark(&test->request, test->at_us, arena, &wrong) &&
              request_check(&test->request, call->base->http->received_at_us, arena, &wrong) &&
              catalog_freeze(
                  call->api->catalog, str_from(call->base->tenant), &test->request, arena, &wrong);
    if (!ok) {
        (void)template_call_fail(call, wrong.field, "%s", wrong.text);
    } else if (check_channel(test)) {
        check_variables(test);
    }
    return template_call_good(call);
}

// ---- the event ----

static void on_published(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    const TestSend *test = ctx;
    ApiCall *call = test->call->base;
    (void)sequence, (void)duplicate;
    if (err != NULL) {
        api_answer_failure(call, err);
        return;
    }
    Str correlation = test->request.correlation_id;
    const char *place = arena_printf(call->http->arena, "/v1/notifications/%s", test->id);
    http_response_header(call->http, "Location", str_from(place));
    api_answer_json(
        call, 202,
        json_pack(
            "{s:s, s:s, s:s, s:s, s:s%}", "id", test->id, "template", test->call->version->key,
            "version", test->call->version->version, "channel", channel_name(test->request.channel),
            "correlation_id", correlation.ptr, correlation.len));
}

static bool pack_event(const TestSend *test, Str *ret, Error *err)
{
    Arena *arena = arena_of(test);
    const Request *r = &test->request;
    Stentor__V1__NotifyCommand command;
    stentor__v1__notify_command__init(&command);
    command.to = arena_cstr(arena, r->to);
    command.to_name = arena_cstr(arena, r->to_name);
    command.channel = (Stentor__V1__Channel)r->channel;
    command.template_ = arena_cstr(arena, r->template_key);
    command.template_version = arena_cstr(arena, r->template_version);
    command.locale = arena_cstr(arena, r->locale);
    command.variables_json = arena_cstr(arena, r->variables);
    command.produced_at_us = test->at_us;
    return event_pack(&command.base, arena, ret, err);
}

static void choose_ids(TestSend *test)
{
    const ApiCall *call = test->call->base;
    Str tenant = str_from(call->tenant), key = STR_EMPTY;
    (void)idempotency_key_parse(
        http_header(call->http, "Idempotency-Key"), call->http->arena, &key);
    const char *what = arena_printf(
        call->http->arena, "%s/" STR_FMT "/" STR_FMT "/%d/%" PRId64, call->tenant,
        STR_ARG(test->request.template_key), STR_ARG(test->request.template_version),
        (int)test->request.channel, test->at_us);
    event_id_derive(
        "test", key.len > 0 ? key : str_from(call->http->id), str_from(what), test->event_id);
    template_test_id(tenant, str_from(test->event_id), test->at_us, test->id);
}

static void publish(TestSend *test)
{
    ApiCall *call = test->call->base;
    Arena *arena = arena_of(test);
    static const BusHeader headers[] = {{"Content-Type", {"application/protobuf", 20}}};
    Error err = {0};
    choose_ids(test);
    BusOut out = {
        .subject = arena_printf(arena, "evt.%s." TEMPLATE_TEST_EVENT, call->tenant),
        .event_id = str_from(test->event_id),
        .headers = headers,
        .header_count = 1,
    };
    if (!pack_event(test, &out.payload, &err) ||
        !event_seal_out(test->call->api->keys, clock_mono_us(), &out, arena, &err)) {
        api_answer_failure(call, &err);
        return;
    }
    bus_publish(test->call->api->bus, &out, on_published, test);
}

// ---- the call ----

static void on_version_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    TestSend *test = ctx;
    (void)sequence;
    if (!template_call_unpack(test->call, payload, err) || !may_be_tested(test)) {
        return;
    }
    take_sample(test);
    if (check_request(test)) {
        publish(test);
    }
}

// Whom nothing is sent for may not test either.
static bool may_send(ApiCall *base, const TemplatesApi *api)
{
    TenantStanding standing = catalog_standing(api->catalog, str_from(base->tenant));
    if (standing != STANDING_ACTIVE) {
        api_answer_standing(base, standing);
        return false;
    }
    return api_need_scope(base, SCOPE_NOTIFICATIONS_SEND);
}

void templates_test_send(ApiCall *base)
{
    TestSend *test = arena_zalloc(base->http->arena, sizeof *test);
    test->call = template_call_new(base);
    test->at_us = base->claimed_at_us > 0 ? base->claimed_at_us : base->http->received_at_us;
    if (may_send(base, test->call->api) && read_body(test) &&
        template_call_channel(test->call, http_query(base->http, "channel")) &&
        template_call_find(test->call, base->params[0], base->params[1])) {
        config_read(
            test->call->api->bus, test->call->subject, base->http->arena, on_version_read, test);
    }
}
