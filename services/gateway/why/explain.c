// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/why/explain.h"

#include "common/api/api_json.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/model/channel_address.h"
#include "common/model/template_key.h"
#include "services/gateway/why/why_list.h"

enum { NOTICES = 2, TEXT_MAX = 64 }; // a guardian's copy is the second

// One call on its way; lives in the request's arena.
typedef struct Call {
    ApiCall *base;
    const ExplainApi *api;
    Request request;
    int64_t at_us;
    Str recipient_id; // that was asked for; empty: an address
    Notice notices[NOTICES];
    GateRun run;
    HistoryRow row;
    char id[ID_SIZE];
} Call;

// ---- the body ----

static void read_channel(ApiBody *body, Channel *ret)
{
    Str name = STR_EMPTY;
    if (api_read_text(body, "channel", TEXT_MAX, &name) && name.len > 0 &&
        !channel_from_name(name, ret)) {
        api_body_fail(body, "channel", "not a channel, such as email or sms");
    }
}

static void read_category(ApiBody *body, Category *ret)
{
    Str name = STR_EMPTY;
    if (api_read_text(body, "category", TEXT_MAX, &name) && name.len > 0 &&
        !category_from_name(name, ret)) {
        api_body_fail(body, "category", "not a category, such as transactional or marketing");
    }
}

static void read_priority(ApiBody *body, Priority *ret)
{
    Str name = STR_EMPTY;
    if (api_read_text(body, "priority", TEXT_MAX, &name) && name.len > 0 &&
        !priority_from_name(name, ret)) {
        api_body_fail(body, "priority", "not one of critical, high, normal, low");
    }
}

static void read_address(Call *call, ApiBody *body)
{
    Str text = STR_EMPTY;
    char reason[ADDRESS_REASON_SIZE];
    bool is_text = api_read_text(body, "address", PEOPLE_ADDRESS_MAX, &text);
    if (is_text && text.len > 0 &&
        !people_address_check(
            call->request.channel, text, call->base->http->arena, &call->request.to, reason)) {
        api_body_fail(body, "address", "%s", reason);
    }
    if (is_text && text.len == 0 && call->recipient_id.len == 0) {
        api_body_fail(body, "address", "required: it is the address that is asked about");
    }
}

static void read_time(Call *call, ApiBody *body)
{
    int64_t now_us = call->base->http->received_at_us;
    int64_t at_us = 0;
    if (api_read_time(body, "at", &at_us) && at_us != 0 &&
        (at_us < now_us || at_us > now_us + REQUEST_SCHEDULE_MAX_S * INT64_C(1000000))) {
        api_body_fail(body, "at", "neither a time that has passed nor more than 366 days ahead");
    }
    call->at_us = at_us != 0 ? at_us : now_us;
}

// Category and priority that are not said are the template's, as when it is sent.
static void freeze(Call *call, ApiBody *body)
{
    FieldError err = {0};
    Request *request = &call->request;
    request->priority_unsaid = request->priority == PRIORITY_NONE;
    request->priority = request->priority_unsaid ? PRIORITY_NORMAL : request->priority;
    if (api_body_good(body) && request->template_key.len > 0 &&
        !catalog_freeze(
            call->api->gate.catalog, str_from(call->base->tenant), request, call->base->http->arena,
            &err)) {
        api_body_fail(body, err.field, "%s", err.text);
    }
    request->category =
        request->category == CATEGORY_NONE ? CATEGORY_TRANSACTIONAL : request->category;
}

// false: answered.
static bool read_body(Call *call)
{
    ApiBody body = {0};
    Request *request = &call->request;
    bool ok = api_body_parse(&body, call->base->http->body, call->base->http->arena);
    if (ok) {
        request->channel = CHANNEL_EMAIL;
        read_channel(&body, &request->channel);
        read_category(&body, &request->category);
        read_priority(&body, &request->priority);
        read_address(call, &body);
        read_time(call, &body);
        (void)api_read_text(&body, "template", TEMPLATE_KEY_SIZE, &request->template_key);
        (void)api_read_text(&body, "template_version", TEXT_MAX, &request->template_version);
        freeze(call, &body);
        ok = api_body_end(&body);
    }
    if (!ok) {
        api_answer_problem(call->base, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

// ---- the answer ----

static const char *decision_name(const GateDecision *decision)
{
    switch (decision->verdict) {
    case GATE_SUPPRESS:
        return "suppress";
    case GATE_DEFER:
        return "wait";
    case GATE_GATHER:
        return "digest";
    case GATE_GO:
        break;
    }
    return "send";
}

static void put_text(Buf *out, const char *name, Str value)
{
    if (value.len > 0) {
        buf_printf(out, ",\"%s\":", name);
        buf_json(out, value);
    }
}

static void put_time(Buf *out, const char *name, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    if (at_us != 0) {
        clock_format(at_us, text);
        put_text(out, name, str_from(text));
    }
}

// A stored address is sealed, and the platform's list is of hashes that only the address gives.
static void add_unasked(const Call *call, WhyList *list)
{
    const Notice *notice = &call->notices[0];
    bool sealed = notice->sealed.len > 0 && notice->decision.verdict != GATE_SUPPRESS;
    if (sealed && suppressions_count_of_platform(call->api->gate.suppressions) > 0) {
        why_add(
            list, "Is the address on the platform's own list?", WHY_UNKNOWN,
            "Not asked here: the stored address is sealed. It is asked when the content is made; "
            "name the address to ask it now");
    }
}

static void on_facts(void *ctx, const WhyFacts *facts)
{
    const Call *call = ctx;
    const Notice *notice = &call->notices[0];
    Arena *arena = call->base->http->arena;
    WhyList *list = arena_alloc(arena, sizeof *list);
    why_list_ahead(facts, arena, list);
    add_unasked(call, list);
    Buf out;
    buf_init(&out, NOTIFICATION_JSON_MAX);
    buf_printf(
        &out, "{\"reaches_now\":%s,\"decision\":\"%s\"",
        notice->decision.verdict == GATE_GO ? "true" : "false", decision_name(&notice->decision));
    put_text(&out, "reason_code", str_from(gate_reason_name(notice->decision.reason)));
    put_time(&out, "until", notice->decision.until_us);
    put_time(&out, "at", call->at_us);
    put_text(&out, "channel", str_from(channel_name(notice->request.channel)));
    put_text(&out, "category", str_from(category_name(notice->request.category)));
    put_text(&out, "recipient_id", notice->request.recipient_id);
    why_print(&out, list);
    buf_char(&out, '}');
    http_respond(call->base->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

static Status status_of(const GateDecision *decision)
{
    switch (decision->verdict) {
    case GATE_SUPPRESS:
        return STATUS_SUPPRESSED;
    case GATE_DEFER:
    case GATE_GATHER:
        return STATUS_SCHEDULED;
    case GATE_GO:
        break;
    }
    return STATUS_QUEUED;
}

// As the first status would say it.
static void fill_row(Call *call)
{
    const Notice *notice = &call->notices[0];
    const Request *request = &notice->request;
    HistoryRow *row = &call->row;
    *row = (HistoryRow){
        .id = str_from(call->id),
        .created_at_us = call->at_us,
        .status = status_of(&notice->decision),
        .reason_code = str_from(gate_reason_name(notice->decision.reason))};
    row->text[FOLD_CHANNEL] = str_from(channel_name(request->channel));
    row->text[FOLD_CATEGORY] = str_from(category_name(request->category));
    row->text[FOLD_TEMPLATE] = request->template_key;
    row->text[FOLD_TEMPLATE_VERSION] = request->template_version;
    row->text[FOLD_RECIPIENT] = request->recipient_id;
    row->text[FOLD_GATE_TRACE] = str_from(notice->trace);
    row->text[FOLD_ADDRESS_HASH] =
        notice->has_address ? str_of(notice->hash, ADDRESS_HASH_LEN) : STR_EMPTY;
    row->at_us[FOLD_SCHEDULED_FOR] = notice->decision.until_us;
}

static void on_decided(void *ctx, const Error *err)
{
    Call *call = ctx;
    const Notice *notice = &call->notices[0];
    if (err != NULL) {
        api_answer_failure(call->base, err);
        return;
    }
    bool known =
        notice->routed != GUARDIAN_UNSAID || (notice->record != NULL && notice->record->known);
    if (call->recipient_id.len > 0 && !known) {
        api_answer_missing(
            call->base,
            arena_printf(
                call->base->http->arena, "recipient '" STR_FMT "'", STR_ARG(call->recipient_id)));
        return;
    }
    fill_row(call);
    why_read_ahead(call->api->reader, call->base, &call->row, on_facts, call);
}

// ---- the routes ----

static void run_gate(Call *call)
{
    id_new("ntf_", call->at_us, call->id);
    call->notices[0] =
        (Notice){.request = call->request, .tenant = str_from(call->base->tenant), .id = call->id};
    call->run = (GateRun){
        .gate = &call->api->gate,
        .arena = call->base->http->arena,
        .notices = call->notices,
        .count = 1,
        .cap = NOTICES,
        .now_us = call->at_us,
        .dry = true,
        .done = on_decided,
        .ctx = call,
    };
    gate_run(&call->run);
}

static Call *new_call(ApiCall *base, Str recipient_id)
{
    Call *call = arena_zalloc(base->http->arena, sizeof *call);
    call->base = base;
    call->api = base->ctx;
    call->recipient_id = recipient_id;
    call->request.recipient_id = recipient_id;
    return call;
}

static void post_explain(ApiCall *base)
{
    Str id = base->params[0];
    if (!id_parse(id, "rcp_", NULL)) {
        api_answer_missing(
            base, arena_printf(
                      base->http->arena, "recipient '" STR_FMT "'", STR_ARG(str_slice(id, 0, 64))));
        return;
    }
    Call *call = new_call(base, id);
    if (read_body(call)) {
        run_gate(call);
    }
}

static void post_explain_address(ApiCall *base)
{
    Call *call = new_call(base, STR_EMPTY);
    if (read_body(call)) {
        run_gate(call);
    }
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/recipients/{}/explain", SCOPE_RECIPIENTS_READ, post_explain, NULL, false},
    {"POST", "/v1/recipients/explain", SCOPE_RECIPIENTS_READ, post_explain_address, NULL, false},
};

void explain_add(Api *api, ExplainApi *explain)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], explain);
}
