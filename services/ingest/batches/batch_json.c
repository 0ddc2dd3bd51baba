// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/batches/batch_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/json/json_write.h"
#include "common/request/consent.h"
#include "common/request/required.h"
#include "services/ingest/batches/recipient_query.h"

enum { NAME_MAX_BYTES = 32 };

static const int64_t second_us = 1000000;

// ---- reading ----

static bool take_variables(ApiBody *body, Str *ret, json_t **ret_json)
{
    json_t *variables = NULL;
    if (!api_read_object(body, "variables", &variables) || variables == NULL) {
        return body->problem.status == 0;
    }
    *ret_json = variables;
    *ret = json_text(variables, JSON_DECIMALS, body->arena);
    return ret->len <= BATCH_VARIABLES_MAX ||
           api_body_fail(
               body, "variables", "%zu bytes of JSON; at most %d for a batch", ret->len,
               BATCH_VARIABLES_MAX);
}

static bool check_schedule(ApiBody *body, int64_t now_us, int64_t at_us)
{
    if (at_us > now_us + REQUEST_SCHEDULE_MAX_S * second_us) {
        return api_body_fail(body, "scheduled_for", "more than 366 days ahead");
    }
    return at_us == 0 || at_us > now_us || api_body_fail(body, "scheduled_for", "in the past");
}

static bool check_channel(ApiBody *body, const BatchRules *rules, Channel channel)
{
    char delivered[CHANNEL_SET_TEXT_SIZE];
    channel_set_text(rules->delivered, delivered);
    return channel_set_has(rules->delivered, channel) ||
           api_body_fail(
               body, "channel",
               "'%s' is not delivered by this installation; it delivers %s " CHANNEL_HINT,
               channel_name(channel), delivered);
}

static bool freeze(ApiBody *body, BatchDraft *draft, const BatchRules *rules)
{
    FieldError err = {.field = ""};
    return catalog_freeze(rules->catalog, rules->tenant, &draft->model, body->arena, &err) ||
           api_body_fail(body, err.field, "%s", err.text);
}

// By the rules of a request, with a recipient in the place of the members.
static bool check_model(ApiBody *body, BatchDraft *draft, const BatchRules *rules)
{
    Request probe = draft->model;
    bool email = probe.channel == CHANNEL_NONE || probe.channel == CHANNEL_EMAIL;
    probe.to = email ? STR("member@example.com") : STR_EMPTY;
    probe.recipient_id = STR("rcp_00000000000000000000000000");
    FieldError err = {.field = ""};
    bool ok = true;
    for (size_t at = 0; !request_check_on(&probe, &at, rules->now_us, body->arena, &err);) {
        ok = api_body_fail(body, err.field, "%s", err.text);
    }
    draft->model.channel = probe.channel;
    return ok && check_channel(body, rules, probe.channel) && freeze(body, draft, rules);
}

static bool take_schedule(ApiBody *body, int64_t now_us, int64_t *ret_us)
{
    return !api_has(body, "scheduled_for") ||
           (api_read_time(body, "scheduled_for", ret_us) && check_schedule(body, now_us, *ret_us));
}

// For all members that bring none of their own; check_model judges it.
static void take_consent(ApiBody *body, Request *model)
{
    json_t *consent = NULL;
    FieldError err = {.field = ""};
    if (api_read_object(body, "consent", &consent) && consent != NULL &&
        !consent_read(consent, body->arena, &model->consent_source, &model->consent_at_us, &err)) {
        (void)api_body_fail(body, err.field, "%s", err.text);
    }
}

static bool take_head(
    ApiBody *body, BatchDraft *draft, const BatchRules *rules, json_t **ret_variables)
{
    Request *model = &draft->model;
    model->priority = PRIORITY_LOW;
    (void)api_read_text(body, "name", BATCH_NAME_MAX, &draft->name);
    (void)api_read_text(body, "template", 64, &model->template_key);
    (void)api_read_text(body, "template_version", 64, &model->template_version);
    (void)api_read_text(body, "locale", REQUEST_LOCALE_MAX, &model->locale);
    Str category = STR_EMPTY, priority = STR_EMPTY, channel = STR_EMPTY;
    (void)api_read_text(body, "category", NAME_MAX_BYTES, &category);
    (void)api_read_text(body, "priority", NAME_MAX_BYTES, &priority);
    (void)api_read_text(body, "channel", NAME_MAX_BYTES, &channel);
    if (category.len > 0 && !category_from_name(category, &model->category)) {
        (void)api_body_fail(body, "category", "not a category");
    }
    if (priority.len > 0 && !priority_from_name(priority, &model->priority)) {
        (void)api_body_fail(body, "priority", "not one of critical, high, normal, low");
    }
    if (channel.len > 0 && !channel_from_name(channel, &model->channel)) {
        (void)api_body_fail(body, "channel", "not a channel: " CHANNEL_NAMES);
    }
    (void)take_variables(body, &draft->variables, ret_variables);
    take_consent(body, model);
    (void)take_schedule(body, rules->now_us, &draft->scheduled_for_us);
    (void)api_read_int(body, "rate_per_second", 0, BATCH_RATE_MAX, &draft->rate_per_s);
    if (draft->name.len == 0 || str_has_control(draft->name)) {
        (void)api_body_fail(body, "name", "required: one line of text");
    }
    return check_model(body, draft, rules) && api_body_good(body);
}

static bool take_members(
    ApiBody *body, BatchDraft *draft, const BatchRules *rules, const json_t *variables)
{
    json_t *list = NULL;
    if (!api_read_array(body, "members", BATCH_INLINE_MAX, &list) || list == NULL) {
        return body->problem.status == 0;
    }
    MemberRules each = {
        .model = draft->model,
        .variables_max = REQUEST_VARIABLES_MAX - draft->variables.len,
        .required = catalog_required(rules->catalog, rules->tenant, &draft->model),
        .defaults = variables,
        .now_us = rules->now_us,
    };
    draft->members = arena_array(body->arena, json_array_size(list), sizeof *draft->members);
    size_t bytes = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        FieldError err = {.field = ""};
        Member *member = &draft->members[i];
        if (!batch_member_read(json_array_get(list, i), &each, body->arena, member, &err)) {
            char field[PROBLEM_FIELD_SIZE];
            (void)snprintf(
                field, sizeof field, "members[%zu]%s%s", i, err.field[0] == '\0' ? "" : ".",
                err.field);
            (void)api_body_fail(body, field, "%s", err.text);
            continue;
        }
        bytes += chunk_member_bytes(member);
        if (bytes > CHUNK_BYTES_MAX) {
            return api_body_fail(
                body, "members", "more than %d bytes; upload them in parts", CHUNK_BYTES_MAX);
        }
        draft->member_count++;
    }
    return api_body_good(body);
}

// What a member would bring, the batch itself must have: a recipient's record has no variables.
static bool check_variables(
    ApiBody *body, const BatchDraft *draft, const BatchRules *rules, const json_t *variables)
{
    FieldError err = {.field = ""};
    const char *at = catalog_required(rules->catalog, rules->tenant, &draft->model);
    const char *path = required_missing(&at, variables, NULL);
    if (path == NULL) {
        return true;
    }
    (void)required_error(&err, path, &draft->model, body->arena);
    return api_body_fail(body, err.field, "%s", err.text);
}

// Members by a query, or uploaded ones: not both.
static bool take_query(
    ApiBody *body, BatchDraft *draft, const BatchRules *rules, const json_t *variables)
{
    (void)recipient_query_read(body, &draft->query);
    (void)api_read_bool(body, "dry_run", &draft->dry_run);
    if (draft->query.len == 0) {
        return !draft->dry_run || !api_body_good(body) ||
               api_body_fail(
                   body, "dry_run", "only with recipient_query: it counts whom that finds");
    }
    if (api_has(body, "members")) {
        (void)api_body_fail(
            body, "members", "not together with recipient_query, which chooses the members");
    }
    return check_variables(body, draft, rules, variables);
}

bool batch_json_parse(
    Str text, const BatchRules *rules, Arena *arena, BatchDraft *ret, Problem *ret_problem)
{
    ApiBody body;
    BatchDraft draft = {.name = STR_EMPTY};
    bool ok = api_body_parse(&body, text, arena);
    if (ok) {
        json_t *variables = NULL;
        json_t *unread = NULL;
        bool headed = take_head(&body, &draft, rules, &variables);
        if (headed && take_query(&body, &draft, rules, variables)) {
            (void)take_members(&body, &draft, rules, variables);
        } else { // members are checked against the head
            (void)(headed || recipient_query_read(&body, &draft.query));
            (void)api_read_bool(&body, "dry_run", &draft.dry_run);
            (void)api_read_array(&body, "members", BATCH_INLINE_MAX, &unread);
        }
        ok = api_body_end(&body);
    }
    *ret_problem = body.problem;
    api_body_free(&body);
    *ret = draft;
    return ok;
}

bool batch_json_schedule(
    Str text, int64_t now_us, Arena *arena, int64_t *ret_us, Problem *ret_problem)
{
    *ret_us = 0;
    if (str_trim(text).len == 0) {
        return true;
    }
    ApiBody body;
    bool ok = api_body_parse(&body, text, arena) && take_schedule(&body, now_us, ret_us) &&
              api_body_end(&body);
    *ret_problem = body.problem;
    api_body_free(&body);
    return ok;
}

// ---- printing ----

// Seconds until the last member is accepted: by its limit, else as fast as so far; -1: not known.
static int64_t batch_eta_s(const BatchRow *row, int64_t now_us)
{
    int64_t left = row->total - row->accepted;
    if (row->status != BATCH_RUNNING || row->paused) {
        return -1;
    }
    if (row->rate_per_s > 0) {
        return (left + row->rate_per_s - 1) / row->rate_per_s;
    }
    int64_t spent_us = now_us - row->started_at_us;
    if (row->accepted == 0 || spent_us <= 0) {
        return -1;
    }
    return (int64_t)((double)spent_us / (double)row->accepted * (double)left / 1e6);
}

static void print_text(Buf *out, const char *name, Str value)
{
    buf_printf(out, ",\"%s\":", name);
    if (value.len == 0) {
        buf_cstr(out, "null");
    } else {
        buf_json(out, value);
    }
}

static void print_time(Buf *out, const char *name, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE] = "";
    if (at_us != 0) {
        clock_format(at_us, text);
    }
    print_text(out, name, str_from(text));
}

static void print_totals(Buf *out, const BatchTotals *totals)
{
    buf_cstr(out, ",\"totals\":{");
    const char *comma = "";
    for (int i = STATUS_NONE + 1; i < STATUS_COUNT; i++) {
        if (totals->of[i] > 0) {
            buf_printf(out, "%s\"%s\":%" PRId64, comma, status_name((Status)i), totals->of[i]);
            comma = ",";
        }
    }
    buf_char(out, '}');
}

static void print_consent(Buf *out, const BatchRow *row)
{
    if (row->consent_source.len > 0) {
        char at[CLOCK_RFC3339_SIZE];
        clock_format(row->consent_at_us, at);
        buf_cstr(out, ",\"consent\":{\"source\":");
        buf_json(out, row->consent_source);
        buf_printf(out, ",\"given_at\":\"%s\"}", at);
    }
}

static void print_query(Buf *out, const BatchRow *row)
{
    if (row->query.len > 0) {
        buf_cstr(out, ",\"recipient_query\":");
        buf_str(out, row->query);
        buf_printf(out, ",\"chosen\":%s", row->chosen ? "true" : "false");
    }
}

void batch_json_print(Buf *out, const BatchRow *row, const BatchTotals *totals, int64_t now_us)
{
    buf_cstr(out, "{\"id\":");
    buf_json(out, row->id);
    print_text(out, "name", row->name);
    print_text(out, "status", str_from(batch_status_name(row->status)));
    buf_printf(out, ",\"paused\":%s", row->paused ? "true" : "false");
    print_text(out, "reason", row->reason);
    print_text(out, "channel", str_from(channel_name(row->channel)));
    print_text(out, "category", str_from(category_name(row->category)));
    print_text(out, "priority", str_from(priority_name(row->priority)));
    print_text(out, "template", row->template_key);
    print_text(out, "template_version", row->template_version);
    print_text(out, "locale", row->locale);
    print_consent(out, row);
    print_query(out, row);
    buf_printf(
        out,
        ",\"rate_per_second\":%" PRId64 ",\"members\":%" PRId64 ",\"broken_lines\":%" PRId64
        ",\"accepted\":%" PRId64 ",\"checkpoint\":{\"chunk\":%" PRId64 ",\"offset\":%" PRId64
        ",\"chunks\":%" PRId64 "}",
        row->rate_per_s, row->total, row->broken, row->accepted, row->next_chunk, row->next_offset,
        row->chunks);
    int64_t eta_s = batch_eta_s(row, now_us);
    if (eta_s >= 0) {
        buf_printf(out, ",\"eta_seconds\":%" PRId64, eta_s);
    }
    print_text(out, "created_by", row->created_by);
    print_time(out, "created_at", row->created_at_us);
    print_time(out, "scheduled_for", row->scheduled_for_us);
    print_time(out, "started_at", row->started_at_us);
    print_time(out, "ended_at", row->ended_at_us);
    if (totals != NULL) {
        print_totals(out, totals);
    }
    buf_char(out, '}');
}
