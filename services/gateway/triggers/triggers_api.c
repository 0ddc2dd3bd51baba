// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/triggers/triggers_api.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/config_read.h"
#include "common/api/config_write.h"
#include "common/api/page.h"
#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/trigger/trigger_try.h"
#include "services/gateway/triggers/entry_put.h"

typedef Stentor__V1__Trigger Trigger;

// A change on its way to CONFIG; lives in the request's arena.
typedef struct Change {
    ApiCall *call;
    Str key;
    Str payload; // empty: deleted
    Precondition needs;
    uint64_t replaces; // what was read; of a change that has a precondition
    Trigger trigger;
} Change;

// ---- answers ----

static json_t *tell(const ApiCall *call, const Trigger *trigger)
{
    json_t *object = trigger_to_json(trigger);
    bool shared = strcmp(trigger->tenant, "platform") == 0;
    bool own = strcmp(trigger->tenant, call->tenant) == 0;
    (void)json_object_set_new(object, "scope", json_string(shared ? "platform" : "tenant"));
    (void)json_object_set_new(object, "own", json_boolean(own));
    return object;
}

static Str key_of(const ApiCall *call)
{
    return call->params[0];
}

static void answer_unknown(ApiCall *call)
{
    Str key = str_slice(key_of(call), 0, 64);
    api_answer_missing(
        call, arena_printf(call->http->arena, "trigger '" STR_FMT "'", STR_ARG(key)));
}

// ---- reading ----

// Adds those behind `after`, while there is room; *ret_last is the last one's. false: there are
// more.
static bool add_list(
    json_t *list, const ApiCall *call, bool shared, const Page *page, Str *ret_last)
{
    const TriggersApi *api = call->ctx;
    Arena *arena = call->http->arena;
    size_t count = 0;
    Str tenant = shared ? TRIGGER_PLATFORM : str_from(call->tenant);
    const Trigger **all = trigger_match_list(api->map, tenant, arena, &count);
    for (size_t i = 0; i < count; i++) {
        // The order of the list: the tenant's own, then the platform's, each by its key.
        Str position =
            str_from(arena_printf(arena, "%s/%s", shared ? "platform" : "own", all[i]->key));
        if (str_cmp(position, page->after) <= 0) {
            continue;
        }
        if (json_array_size(list) == page->limit) {
            return false;
        }
        json_t *object = tell(call, all[i]);
        const Trigger *own =
            trigger_match_own(api->map, str_from(call->tenant), str_from(all[i]->key));
        bool overridden = shared && own != NULL;
        (void)json_object_set_new(object, "in_force", json_boolean(!overridden));
        (void)json_array_append_new(list, object);
        *ret_last = position;
    }
    return true;
}

static void get_triggers(ApiCall *call)
{
    Page page;
    Str last = STR_EMPTY;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    json_t *list = json_array();
    bool platform = str_eq(str_from(call->tenant), TRIGGER_PLATFORM);
    bool all = add_list(list, call, false, &page, &last) &&
               (platform || add_list(list, call, true, &page, &last));
    page_answer(call, list, all ? STR_EMPTY : last);
}

static void get_trigger(ApiCall *call)
{
    const TriggersApi *api = call->ctx;
    const Trigger *trigger = trigger_match_get(api->map, str_from(call->tenant), key_of(call));
    if (trigger == NULL) {
        answer_unknown(call);
        return;
    }
    precondition_tag(
        call, trigger_match_sequence(api->map, str_from(trigger->tenant), str_from(trigger->key)));
    api_answer_json(call, 200, tell(call, trigger));
}

// ---- changing ----

// An unknown template is no error: it may come later than the trigger. Nor is a channel without a
// vendor: it may get one.
static void add_warnings(json_t *object, const Change *change)
{
    const TriggersApi *api = change->call->ctx;
    FieldError wrong = {.field = ""};
    Request request = {
        .template_key = str_from(change->trigger.template_),
        .channel = change->trigger.channel == 0 ? CHANNEL_EMAIL : (Channel)change->trigger.channel,
    };
    json_t *warnings = json_array();
    Arena *arena = change->call->http->arena;
    if (!catalog_freeze(api->catalog, str_from(change->call->tenant), &request, arena, &wrong)) {
        (void)json_array_append_new(warnings, json_string(wrong.text));
    }
    const char *deprecated =
        catalog_deprecated(api->catalog, str_from(change->call->tenant), &request, arena);
    if (deprecated != NULL) {
        (void)json_array_append_new(warnings, json_string(deprecated));
    }
    char no_vendor[CHANNEL_WARNING_SIZE];
    ChannelSet delivered =
        routes_channels(api->routes, str_from(change->call->tenant), api->delivered);
    if (channel_set_warn(delivered, request.channel, no_vendor)) {
        (void)json_array_append_new(warnings, json_string(no_vendor));
    }
    (void)json_object_set_new(object, "warnings", warnings);
}

static void answer_stored(void *ctx, uint64_t sequence)
{
    Change *change = ctx;
    ApiCall *call = change->call;
    const TriggersApi *api = call->ctx;
    // The mirror brings it in a moment; until then this process's next call must not meet the old
    // one.
    (void)trigger_match_changed(
        api->map, str_from(call->tenant), change->key, change->payload, sequence, NULL);
    if (change->payload.len == 0) {
        http_respond(call->http, 204, "application/json", STR_EMPTY);
        return;
    }
    precondition_tag(call, sequence);
    json_t *object = tell(call, &change->trigger);
    add_warnings(object, change);
    api_answer_json(call, 200, object);
}

static void publish(Change *change)
{
    const TriggersApi *api = change->call->ctx;
    entry_put(&(EntryPut){
        .call = change->call,
        .bus = api->bus,
        .kind = "trigger",
        .key = change->key,
        .payload = change->payload,
        .replaces = change->replaces,
        .needs = &change->needs,
        .done = answer_stored,
        .ctx = change,
    });
}

// But for who put it and when, which then stay.
static bool is_same(Change *change, const Trigger *there, Str payload)
{
    Trigger trigger = change->trigger;
    trigger.updated_at_us = there->updated_at_us;
    trigger.updated_by = there->updated_by;
    bool same = config_is_same(&trigger.base, payload, change->call->http->arena);
    if (same) {
        change->trigger = trigger;
        change->payload = payload;
    }
    return same;
}

static void on_entry_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Change *change = ctx;
    uint64_t there = payload.len == 0 ? 0 : sequence;
    const Trigger *trigger =
        err != NULL || payload.len == 0
            ? NULL
            : (const Trigger *)event_unpack(
                  &stentor__v1__trigger__descriptor, payload, change->call->http->arena, NULL);
    if (err != NULL) {
        api_answer_failure(change->call, err);
    } else if (!precondition_holds(&change->needs, there)) {
        precondition_answer_failed(change->call, there);
    } else if (trigger != NULL && change->payload.len > 0 && is_same(change, trigger, payload)) {
        answer_stored(change, sequence);
    } else {
        change->replaces = sequence;
        publish(change);
    }
}

// This program's copy is the same: the log is read to see whether it still is.
static bool seems_same(const Change *change)
{
    const ApiCall *call = change->call;
    const TriggersApi *api = call->ctx;
    Arena *arena = call->http->arena;
    const Trigger *there = trigger_match_own(api->map, str_from(call->tenant), change->key);
    Str payload = STR_EMPTY;
    Trigger trigger = change->trigger;
    if (there == NULL || change->payload.len == 0) {
        return false;
    }
    trigger.updated_at_us = there->updated_at_us;
    trigger.updated_by = there->updated_by;
    return event_pack(&there->base, arena, &payload, NULL) &&
           config_is_same(&trigger.base, payload, arena);
}

// With a precondition what stands there is read first, and just that is replaced.
static void change_entry(Change *change)
{
    ApiCall *call = change->call;
    const TriggersApi *api = call->ctx;
    if (!precondition_read(call, &change->needs)) {
        return;
    }
    if (!precondition_is_given(&change->needs) && !seems_same(change)) {
        publish(change);
        return;
    }
    char *subject = arena_alloc(call->http->arena, SUBJECT_SIZE);
    subject_config(subject, "trigger", str_from(call->tenant), change->key);
    config_read(api->bus, subject, call->http->arena, on_entry_read, change);
}

// Of two puts at the same moment neither sees the other: then the notification is made once, as it
// was before there was this check.
static bool refuse_collision(ApiCall *call, const Trigger *trigger)
{
    const TriggersApi *api = call->ctx;
    const Trigger *other = trigger_match_collision(api->map, trigger, call->http->arena);
    if (other == NULL) {
        return false;
    }
    metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
    http_problem(
        call->http, 409, "trigger-collision", "Another trigger makes the same notification",
        "identity",
        "trigger '%s' of tenant '%s' has the same event_type, template, channel and resolver, so "
        "one of the two would never send; put this one with \"identity\": \"trigger\" to get a "
        "notification from each",
        other->key, other->tenant);
    return true;
}

// A name that is known now may be gone when an event comes: then its dead letter says so.
static bool refuse_unknown_resolver(ApiCall *call, const Trigger *trigger)
{
    const TriggersApi *api = call->ctx;
    Str name = str_from(trigger->resolver);
    NamedRules named;
    if (!resolver_is_name(name) ||
        named_resolvers_find(api->resolvers, str_from(call->tenant), name, &named)) {
        return false;
    }
    (void)api_refuse_field(
        call, "resolver",
        "no resolver '%s' is known; known: %s (PUT /v1/resolvers/{name} defines one), or a rule "
        "such "
        "as 'address:guest.email'",
        trigger->resolver,
        named_resolvers_text(api->resolvers, str_from(call->tenant), call->http->arena));
    return true;
}

static void put_trigger(ApiCall *call)
{
    Arena *arena = call->http->arena;
    Change *change = arena_zalloc(arena, sizeof *change);
    Problem problem = {0};
    Error err = {0};
    change->call = call;
    change->key = key_of(call);
    if (!trigger_from_json(
            call->http->body, str_from(call->tenant), change->key, arena, &change->trigger,
            &problem)) {
        api_answer_problem(call, &problem);
        return;
    }
    if (refuse_unknown_resolver(call, &change->trigger) ||
        refuse_collision(call, &change->trigger)) {
        return;
    }
    change->trigger.updated_at_us = call->http->received_at_us;
    change->trigger.updated_by = arena_cstr(arena, call->key_id);
    if (!event_pack(&change->trigger.base, arena, &change->payload, &err)) {
        api_answer_failure(call, &err);
        return;
    }
    change_entry(change);
}

static void delete_trigger(ApiCall *call)
{
    const TriggersApi *api = call->ctx;
    if (trigger_match_own(api->map, str_from(call->tenant), key_of(call)) == NULL) {
        answer_unknown(call);
        return;
    }
    Change *change = arena_zalloc(call->http->arena, sizeof *change);
    change->call = call;
    change->key = key_of(call);
    change_entry(change);
}

// ---- trying ----

static void try_trigger(ApiCall *call)
{
    const TriggersApi *api = call->ctx;
    const HttpRequest *http = call->http;
    const Trigger *trigger = trigger_match_get(api->map, str_from(call->tenant), key_of(call));
    if (trigger == NULL) {
        answer_unknown(call);
        return;
    }
    DomainInput input = {
        .tenant = str_from(call->tenant),
        .type = str_from(trigger->event_type),
        .payload = http->body,
        .message_id = http_header(http, "Nats-Msg-Id"),
        .stream = "try",
        .stored_at_us = http->received_at_us,
        .content_type = http_header(http, "Content-Type"),
        .message_type = http_header(http, "Stentor-Type"),
        .ce_version = http_header(http, "ce-specversion"),
        .ce_id = http_header(http, "ce-id"),
        .ce_source = http_header(http, "ce-source"),
        .ce_type = http_header(http, "ce-type"),
        .ce_time = http_header(http, "ce-time"),
        .zone = catalog_tenant(api->catalog, str_from(call->tenant))->gate.zone,
    };
    Error err = {0};
    json_t *body = trigger_try(
        trigger, api->resolvers, &input, api->catalog, http->received_at_us, call->http->arena,
        &err);
    if (body == NULL) {
        (void)api_refuse_field(call, "event", "%s", err.text);
        return;
    }
    api_answer_json(call, 200, body);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/triggers", SCOPE_TRIGGERS_READ, get_triggers, "limit cursor", false},
    {"GET", "/v1/triggers/{}", SCOPE_TRIGGERS_READ, get_trigger, NULL, false},
    {"PUT", "/v1/triggers/{}", SCOPE_TRIGGERS_WRITE, put_trigger, NULL, true},
    {"DELETE", "/v1/triggers/{}", SCOPE_TRIGGERS_WRITE, delete_trigger, NULL, true},
    {"POST", "/v1/triggers/{}/try", SCOPE_TRIGGERS_READ, try_trigger, NULL, false},
};

void triggers_api_add(Api *api, TriggersApi *triggers)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], triggers);
}
