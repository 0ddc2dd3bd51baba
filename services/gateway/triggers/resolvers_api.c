// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/triggers/resolvers_api.h"

#include <string.h>

#include "common/api/api_json.h"
#include "common/api/config_read.h"
#include "common/api/config_write.h"
#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "services/gateway/triggers/entry_put.h"

typedef Stentor__V1__NamedResolver Entry;

// A change on its way to CONFIG; lives in the request's arena.
typedef struct Change {
    ApiCall *call;
    Str name;
    char *subject;
    Str payload; // empty: deleted
    Precondition needs;
    Entry entry;
} Change;

// ---- answers ----

static const char *word_of_scope(ResolverScope scope)
{
    switch (scope) {
    case RESOLVER_OF_TENANT:
        return "tenant";
    case RESOLVER_OF_PLATFORM:
        return "platform";
    case RESOLVER_BUILT_IN:
        break;
    }
    return "built-in";
}

static json_t *tell(const NamedRules *named)
{
    json_t *object = json_object();
    json_t *rules = json_array();
    (void)json_object_set_new(object, "name", json_string(named->name));
    for (size_t i = 0; i < named->count; i++) {
        (void)json_array_append_new(rules, json_string(named->rules[i]));
    }
    (void)json_object_set_new(object, "rules", rules);
    (void)json_object_set_new(object, "scope", json_string(word_of_scope(named->scope)));
    (void)json_object_set_new(object, "in_force", json_boolean(named->in_force));
    if (named->entry != NULL && named->entry->updated_at_us > 0) {
        char at[CLOCK_RFC3339_SIZE];
        clock_format(named->entry->updated_at_us, at);
        (void)json_object_set_new(object, "updated_at", json_string(at));
        (void)json_object_set_new(object, "updated_by", json_string(named->entry->updated_by));
    }
    return object;
}

static void answer_unknown(ApiCall *call)
{
    Str name = str_slice(call->params[0], 0, 64);
    api_answer_missing(
        call, arena_printf(call->http->arena, "resolver '" STR_FMT "'", STR_ARG(name)));
}

// ---- reading ----

static void get_resolvers(ApiCall *call)
{
    const ResolversApi *api = call->ctx;
    Arena *arena = call->http->arena;
    Page page;
    NamedRules *all = NULL;
    Str last = STR_EMPTY;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    size_t count = named_resolvers_list(api->map, str_from(call->tenant), arena, &all);
    json_t *list = json_array();
    size_t i = 0;
    for (; i < count; i++) {
        // The order of the list: the tenant's own, the platform's, the built-in ones, each by its
        // name.
        Str position = str_from(arena_printf(arena, "%d/%s", (int)all[i].scope, all[i].name));
        if (str_cmp(position, page.after) <= 0) {
            continue;
        }
        if (json_array_size(list) == page.limit) {
            break;
        }
        (void)json_array_append_new(list, tell(&all[i]));
        last = position;
    }
    page_answer(call, list, i < count ? last : STR_EMPTY);
}

static void get_resolver(ApiCall *call)
{
    const ResolversApi *api = call->ctx;
    NamedRules named;
    if (!named_resolvers_find(api->map, str_from(call->tenant), call->params[0], &named)) {
        answer_unknown(call);
        return;
    }
    if (named.sequence != 0) {
        precondition_tag(call, named.sequence);
    }
    api_answer_json(call, 200, tell(&named));
}

// ---- changing ----

static void answer_stored(void *ctx, uint64_t sequence)
{
    Change *change = ctx;
    ApiCall *call = change->call;
    const ResolversApi *api = call->ctx;
    Str tenant = str_from(call->tenant);
    NamedRules named;
    // The mirror brings it in a moment; until then this process's next call must not meet the old
    // one.
    (void)named_resolvers_changed(api->map, tenant, change->name, change->payload, sequence, NULL);
    if (change->payload.len == 0) {
        http_respond(call->http, 204, "application/json", STR_EMPTY);
    } else if (named_resolvers_own(api->map, tenant, change->name, &named)) {
        precondition_tag(call, sequence);
        api_answer_json(call, 200, tell(&named));
    }
}

static void publish(Change *change, uint64_t replaces)
{
    const ResolversApi *api = change->call->ctx;
    entry_put(&(EntryPut){
        .call = change->call,
        .bus = api->bus,
        .kind = "resolver",
        .key = change->name,
        .payload = change->payload,
        .replaces = replaces,
        .needs = &change->needs,
        .done = answer_stored,
        .ctx = change,
    });
}

// But for who put it and when, which then stay.
static bool is_same(Change *change, Str payload)
{
    Arena *arena = change->call->http->arena;
    const Entry *there = payload.len == 0
                             ? NULL
                             : (const Entry *)event_unpack(
                                   &stentor__v1__named_resolver__descriptor, payload, arena, NULL);
    if (there == NULL || change->payload.len == 0) {
        return false;
    }
    Entry entry = change->entry;
    entry.updated_at_us = there->updated_at_us;
    entry.updated_by = there->updated_by;
    bool same = config_is_same(&entry.base, payload, arena);
    change->payload = same ? payload : change->payload;
    return same;
}

static void on_entry_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Change *change = ctx;
    uint64_t there = payload.len == 0 ? 0 : sequence;
    if (err != NULL) {
        api_answer_failure(change->call, err);
    } else if (!precondition_holds(&change->needs, there)) {
        precondition_answer_failed(change->call, there);
    } else if (is_same(change, payload)) {
        answer_stored(change, sequence);
    } else {
        publish(change, sequence);
    }
}

static Change *new_change(ApiCall *call)
{
    Arena *arena = call->http->arena;
    Change *change = arena_zalloc(arena, sizeof *change);
    change->call = call;
    change->name = call->params[0];
    change->subject = arena_alloc(arena, SUBJECT_SIZE);
    subject_config(change->subject, "resolver", str_from(call->tenant), change->name);
    return change;
}

static void change_entry(Change *change)
{
    const ResolversApi *api = change->call->ctx;
    if (precondition_read(change->call, &change->needs)) {
        config_read(api->bus, change->subject, change->call->http->arena, on_entry_read, change);
    }
}

// "rules": one text, or an array of them.
static void take_rules(ApiBody *body, Entry *entry)
{
    json_t *value = json_object_get(body->root, "rules");
    json_t *list = NULL;
    Str text = STR_EMPTY;
    if (json_is_string(value) && api_read_text(body, "rules", RESOLVER_MAX, &text)) {
        entry->rules = arena_array(body->arena, 1, sizeof *entry->rules);
        entry->rules[entry->n_rules++] = arena_cstr(body->arena, text);
        return;
    }
    if (json_is_string(value) || !api_read_array(body, "rules", RESOLVER_RULES_MAX, &list)) {
        return;
    }
    entry->rules = arena_array(body->arena, json_array_size(list) + 1, sizeof *entry->rules);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_string(item)) {
            (void)api_body_fail(body, "rules", "rule %zu is not a text", i + 1);
            return;
        }
        text = str_of(json_string_value(item), json_string_length(item));
        entry->rules[entry->n_rules++] = arena_cstr(body->arena, text);
    }
}

static bool read_entry(Change *change)
{
    ApiBody body = {0};
    ApiCall *call = change->call;
    Entry *entry = &change->entry;
    Arena *arena = call->http->arena;
    FieldError wrong = {.field = ""};
    stentor__v1__named_resolver__init(entry);
    entry->tenant = call->tenant;
    entry->name = arena_cstr(arena, change->name);
    entry->updated_at_us = call->http->received_at_us;
    entry->updated_by = arena_cstr(arena, call->key_id);
    bool ok = api_body_parse(&body, call->http->body, arena);
    if (ok) {
        take_rules(&body, entry);
        (void)api_body_end(&body);
        if (!named_resolver_check(entry, &wrong)) {
            (void)api_body_fail(&body, wrong.field, "%s", wrong.text);
        }
        ok = api_body_good(&body);
    }
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static bool refuse_one_more(ApiCall *call)
{
    const ResolversApi *api = call->ctx;
    Str tenant = str_from(call->tenant);
    NamedRules *all = NULL;
    NamedRules there;
    size_t own = 0;
    size_t count = named_resolvers_list(api->map, tenant, call->http->arena, &all);
    ResolverScope scope =
        strcmp(call->tenant, "platform") == 0 ? RESOLVER_OF_PLATFORM : RESOLVER_OF_TENANT;
    for (size_t i = 0; i < count; i++) {
        own += all[i].scope == scope ? 1 : 0;
    }
    if (own < NAMED_RESOLVERS_MAX ||
        named_resolvers_own(api->map, tenant, call->params[0], &there)) {
        return false;
    }
    (void)api_refuse_field(
        call, "name", "the tenant has %d resolvers already; delete one", NAMED_RESOLVERS_MAX);
    return true;
}

static void put_resolver(ApiCall *call)
{
    Error err = {0};
    Change *change = new_change(call);
    if (!read_entry(change) || refuse_one_more(call)) {
        return;
    }
    if (!event_pack(&change->entry.base, call->http->arena, &change->payload, &err)) {
        api_answer_failure(call, &err);
        return;
    }
    change_entry(change);
}

// Of the tenant's own triggers one that would find no recipient from then on; NULL: none.
static const char *left_without(const ApiCall *call)
{
    const ResolversApi *api = call->ctx;
    Str name = call->params[0];
    Str tenant = str_from(call->tenant);
    size_t count = 0;
    NamedRules other;
    bool shared = strcmp(call->tenant, "platform") == 0;
    if (resolver_built_in(name) != NULL ||
        (!shared && named_resolvers_own(api->map, STR("platform"), name, &other))) {
        return NULL;
    }
    const Stentor__V1__Trigger **all =
        trigger_match_list(api->triggers, tenant, call->http->arena, &count);
    for (size_t i = 0; i < count; i++) {
        if (str_eq(str_from(all[i]->resolver), name)) {
            return all[i]->key;
        }
    }
    return NULL;
}

static void delete_resolver(ApiCall *call)
{
    const ResolversApi *api = call->ctx;
    NamedRules own;
    if (!named_resolvers_own(api->map, str_from(call->tenant), call->params[0], &own)) {
        answer_unknown(call);
        return;
    }
    const char *trigger = left_without(call);
    if (trigger != NULL) {
        metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
        http_problem(
            call->http, 409, "resolver-in-use", "A trigger uses the resolver", "name",
            "trigger '%s' has it as its resolver; change or delete that first", trigger);
        return;
    }
    change_entry(new_change(call));
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/resolvers", SCOPE_TRIGGERS_READ, get_resolvers, "limit cursor", false},
    {"GET", "/v1/resolvers/{}", SCOPE_TRIGGERS_READ, get_resolver, NULL, false},
    {"PUT", "/v1/resolvers/{}", SCOPE_TRIGGERS_WRITE, put_resolver, NULL, true},
    {"DELETE", "/v1/resolvers/{}", SCOPE_TRIGGERS_WRITE, delete_resolver, NULL, true},
};

void resolvers_api_add(Api *api, ResolversApi *resolvers)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], resolvers);
}
