// SPDX-License-Identifier: Apache-2.0
// A repeat under an Idempotency-Key finds the id that the key leads to: killed between the stored
// entry and the answer, the caller repeats and gets the same subscription with the same secret. Of
// a rotation the secret itself knows its key.
#include "services/gateway/subscriptions/subscriptions_api.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/config_write.h"
#include "common/api/guards/idempotency.h"
#include "common/api/page.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "services/gateway/subscriptions/subscription_json.h"

static const int64_t SHOWN_AGAIN_US = INT64_C(86400) * 1000000;

typedef struct Kept {
    uint64_t sequence;
    size_t len;
    char bytes[];
} Kept;

void subscriptions_api_init(
    SubscriptionsApi *subscriptions, Bus *bus, DbPool *pool, MasterKey *master)
{
    subscriptions->bus = bus;
    subscriptions->pool = pool;
    subscriptions->master = master;
    subscriptions->entries = map_new(free);
}

void subscriptions_api_done(SubscriptionsApi *subscriptions)
{
    map_free(subscriptions->entries);
}

// ---- what is known ----

static Str place_of(Str tenant, Str id, Arena *arena)
{
    return str_from(arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(id)));
}

void subscriptions_api_changed(
    SubscriptionsApi *subscriptions, Str tenant, Str id, Str payload, uint64_t sequence)
{
    Arena *arena = arena_new(0);
    Str place = place_of(tenant, id, arena);
    if (payload.len == 0) {
        (void)map_remove(subscriptions->entries, place);
    } else {
        Kept *kept = xmalloc(sizeof *kept + payload.len);
        kept->sequence = sequence;
        kept->len = payload.len;
        memcpy(kept->bytes, payload.ptr, payload.len);
        map_put(subscriptions->entries, place, kept);
    }
    arena_free(arena);
}

static const Kept *find(const ApiCall *call, Str id)
{
    const SubscriptionsApi *api = call->ctx;
    bool named = id_parse(id, WEBHOOK_ID_PREFIX, NULL);
    return named ? map_get(api->entries, place_of(str_from(call->tenant), id, call->http->arena))
                 : NULL;
}

static WebhookSubscription *unpack(const ApiCall *call, Str payload)
{
    return webhook_subscription_read(str_from(call->tenant), payload, call->http->arena, NULL);
}

static void answer_unknown_id(ApiCall *call, Str id)
{
    Str shown = str_slice(id, 0, ID_SIZE);
    api_answer_missing(
        call, arena_printf(
                  call->http->arena, "subscription '" STR_FMT "' of tenant '%s'", STR_ARG(shown),
                  call->tenant));
}

void subscription_answer_unknown(ApiCall *call)
{
    answer_unknown_id(call, call->params[0]);
}

bool subscription_is_named(ApiCall *call)
{
    bool named = id_parse(call->params[0], WEBHOOK_ID_PREFIX, NULL);
    if (!named) {
        subscription_answer_unknown(call);
    }
    return named;
}

bool subscription_is_known(ApiCall *call, Str id)
{
    if (find(call, id) == NULL) {
        answer_unknown_id(call, id);
        return false;
    }
    return true;
}

bool subscription_is_active_now(ApiCall *call, Str id)
{
    if (!subscription_is_known(call, id)) {
        return false;
    }
    const Kept *kept = find(call, id);
    const WebhookSubscription *entry = unpack(call, str_of(kept->bytes, kept->len));
    if (entry != NULL && webhook_is_active(entry)) {
        return true;
    }
    metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
    http_problem(
        call->http, 409, "subscription-not-active", "Nothing is posted to the subscription", NULL,
        "it is '%s'; enable it first", entry == NULL ? "" : subscription_state_name(entry));
    return false;
}

// ---- reading ----

static int by_id(const void *a, const void *b)
{
    return strcmp(
        (*(const WebhookSubscription *const *)a)->id, (*(const WebhookSubscription *const *)b)->id);
}

// The tenant's behind `after`, in the order of ids.
static const WebhookSubscription **list_of(const ApiCall *call, Str after, size_t *ret_count)
{
    const SubscriptionsApi *api = call->ctx;
    Arena *arena = call->http->arena;
    Str prefix = place_of(str_from(call->tenant), STR_EMPTY, arena);
    const WebhookSubscription **all =
        arena_array(arena, map_count(api->entries) + 1, sizeof(WebhookSubscription *));
    size_t count = 0;
    Str place;
    void *value;
    for (size_t i = 0; map_next(api->entries, &i, &place, &value);) {
        const Kept *kept = value;
        bool wanted = str_starts(place, prefix) &&
                      str_cmp(str_slice(place, prefix.len, place.len), after) > 0;
        const WebhookSubscription *entry =
            wanted ? unpack(call, str_of(kept->bytes, kept->len)) : NULL;
        if (entry != NULL) {
            all[count++] = entry;
        }
    }
    qsort(all, count, sizeof(WebhookSubscription *), by_id);
    *ret_count = count;
    return all;
}

static size_t count_of(const ApiCall *call)
{
    const SubscriptionsApi *api = call->ctx;
    Str prefix = place_of(str_from(call->tenant), STR_EMPTY, call->http->arena), place;
    void *value;
    size_t count = 0;
    for (size_t i = 0; map_next(api->entries, &i, &place, &value);) {
        count += str_starts(place, prefix) ? 1 : 0;
    }
    return count;
}

static void get_subscriptions(ApiCall *call)
{
    Page page;
    size_t count = 0;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    const WebhookSubscription **all = list_of(call, page.after, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count && i < page.limit; i++) {
        (void)json_array_append_new(list, subscription_json(all[i], call->http->received_at_us));
    }
    page_answer(call, list, count > page.limit ? str_from(all[page.limit - 1]->id) : STR_EMPTY);
}

static void get_subscription(ApiCall *call)
{
    const Kept *kept = find(call, call->params[0]);
    const WebhookSubscription *entry =
        kept != NULL ? unpack(call, str_of(kept->bytes, kept->len)) : NULL;
    if (entry == NULL) {
        subscription_answer_unknown(call);
        return;
    }
    precondition_tag(call, kept->sequence);
    api_answer_json(call, 200, subscription_json(entry, call->http->received_at_us));
}

// ---- changes ----

static bool take_stored(ConfigChange *base, Str payload, uint64_t sequence)
{
    subscriptions_api_changed(
        base->call->ctx, str_from(base->call->tenant), base->key, payload, sequence);
    return true;
}

SubscriptionChange *subscription_change_new(ApiCall *call, size_t size, Str id)
{
    const SubscriptionsApi *api = call->ctx;
    SubscriptionChange *change =
        (SubscriptionChange *)config_change_new(call, size, api->bus, WEBHOOK_KIND, id);
    change->base.conflict_slug = "entry-changed";
    change->base.conflict_title = "Another call changed it at this moment; read it and try again";
    change->base.take = take_stored;
    return change;
}

WebhookSubscription *subscription_stands(const ConfigChange *base, Str there)
{
    WebhookSubscription *entry = there.len > 0 ? unpack(base->call, there) : NULL;
    if (entry == NULL) {
        answer_unknown_id(base->call, base->key);
    }
    return entry;
}

void subscription_note_update(const ApiCall *call, WebhookSubscription *entry)
{
    const SubscriptionsApi *api = call->ctx;
    webhook_secrets_seal_again(entry, api->master, call->http->arena);
    entry->updated_at_us = call->http->received_at_us;
    entry->updated_by = arena_cstr(call->http->arena, call->key_id);
}

// What a caller does not set stays as it is there.
static void keep(WebhookSubscription *entry, const WebhookSubscription *there)
{
    entry->id = there->id;
    entry->secrets = there->secrets;
    entry->n_secrets = there->n_secrets;
    entry->state = there->state;
    entry->state_reason = there->state_reason;
    entry->state_changed_at_us = there->state_changed_at_us;
    entry->created_at_us = there->created_at_us;
    entry->created_by = there->created_by;
    entry->updated_at_us = there->updated_at_us;
    entry->updated_by = there->updated_by;
}

// false: answered.
static bool read_entry(SubscriptionChange *change, GuardedUrl *ret_url)
{
    ApiBody body = {0};
    ApiCall *call = change->base.call;
    const SubscriptionsApi *api = call->ctx;
    stentor__v1__webhook_subscription__init(&change->entry);
    change->entry.tenant = call->tenant;
    bool ok = api_body_parse(&body, call->http->body, call->http->arena) &&
              subscription_take(&body, &api->target.guard, &change->entry, ret_url);
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    return ok;
}

static void on_target_good(void *ctx)
{
    config_change_run(ctx);
}

static void run(SubscriptionChange *change)
{
    ApiCall *call = change->base.call;
    const SubscriptionsApi *api = call->ctx;
    GuardedUrl url;
    if (read_entry(change, &url)) {
        subscription_target_check(&api->target, call, &url, on_target_good, &change->base);
    }
}

// ---- POST ----

static void fill_new(SubscriptionChange *change)
{
    ApiCall *call = change->base.call;
    const SubscriptionsApi *api = call->ctx;
    WebhookSubscription *entry = &change->entry;
    Arena *arena = call->http->arena;
    entry->id = arena_cstr(arena, change->base.key);
    entry->state = STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_ACTIVE;
    entry->state_changed_at_us = call->http->received_at_us;
    entry->created_at_us = call->http->received_at_us;
    entry->created_by = arena_cstr(arena, call->key_id);
    subscription_note_update(call, entry);
    webhook_secret_add(entry, api->master, entry->created_at_us, 0, arena, change->secret);
}

bool subscription_show_again(SubscriptionChange *change, const WebhookSubscription *entry)
{
    ApiCall *call = change->base.call;
    const SubscriptionsApi *api = call->ctx;
    const Stentor__V1__WebhookSecret *secret = entry->secrets[0];
    change->replayed = true;
    if (call->http->received_at_us - secret->created_at_us > SHOWN_AGAIN_US) {
        return true;
    }
    Str text = STR_EMPTY;
    Error err = {0};
    DataKey *key = data_key_for_tenant(api->master, str_from(call->tenant));
    bool ok = webhook_secret_open(key, entry, secret, call->http->arena, &text, &err) &&
              (str_to_c(text, change->secret, sizeof change->secret) ||
               error_set(&err, ERROR_PERMANENT, "a webhook's secret is too long"));
    data_key_free(key);
    if (!ok) {
        api_answer_failure(call, &err);
    }
    return ok;
}

static bool answer_key_conflict(ApiCall *call)
{
    metric_add(call->metrics->refused[REFUSED_CONFLICT], 1);
    http_problem(
        call->http, 409, "idempotency-conflict", "The idempotency key belongs to another request",
        "Idempotency-Key",
        "this key came with another body before, or its subscription was changed since; choose a "
        "new key");
    return false;
}

static bool make_new(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    SubscriptionChange *change = (SubscriptionChange *)base;
    *ret = &change->entry.base;
    if (there.len == 0) {
        fill_new(change);
        return true;
    }
    const WebhookSubscription *old = unpack(base->call, there);
    if (old == NULL) {
        return answer_key_conflict(base->call);
    }
    keep(&change->entry, old);
    if (!config_is_same(&change->entry.base, there, base->call->http->arena)) {
        return answer_key_conflict(base->call);
    }
    bool first = old->n_secrets == 1 && old->secrets[0]->created_at_us == old->created_at_us;
    change->replayed = true;
    return !first || subscription_show_again(change, &change->entry);
}

static void answer_new(ConfigChange *base, Str payload)
{
    (void)payload;
    const SubscriptionChange *change = (const SubscriptionChange *)base;
    ApiCall *call = base->call;
    json_t *object = subscription_json(&change->entry, call->http->received_at_us);
    if (change->secret[0] != '\0') {
        (void)json_object_set_new(object, "secret", json_string(change->secret));
    }
    if (change->replayed) {
        http_response_header(call->http, "Idempotent-Replayed", STR("true"));
    }
    const char *path = arena_printf(call->http->arena, "/v1/subscriptions/%s", change->entry.id);
    http_response_header(call->http, "Location", str_from(path));
    api_answer_json(call, 201, object);
}

bool subscription_key_read(ApiCall *call, Str *ret)
{
    return idempotency_key_read(call, ret);
}

// An Idempotency-Key leads to one id of the tenant. false: answered.
static bool choose_id(ApiCall *call, char ret[ID_SIZE])
{
    Str key;
    uint8_t digest[SHA256_LEN];
    if (!subscription_key_read(call, &key)) {
        return false;
    }
    if (key.len == 0) {
        id_new(WEBHOOK_ID_PREFIX, call->http->received_at_us, ret);
        return true;
    }
    Str cause = str_from(
        arena_printf(call->http->arena, "subscription|%s|" STR_FMT, call->tenant, STR_ARG(key)));
    sha256(cause, digest);
    id_derived(WEBHOOK_ID_PREFIX, 0, digest, ret);
    return true;
}

static void post_subscription(ApiCall *call)
{
    char id[ID_SIZE];
    if (!choose_id(call, id)) {
        return;
    }
    if (count_of(call) >= SUBSCRIPTIONS_OF_TENANT_MAX && find(call, str_from(id)) == NULL) {
        (void)api_refuse_field(
            call, "name", "the tenant has %d subscriptions; delete one first",
            SUBSCRIPTIONS_OF_TENANT_MAX);
        return;
    }
    SubscriptionChange *change = subscription_change_new(call, sizeof *change, str_from(id));
    change->base.make = make_new;
    change->base.answer = answer_new;
    run(change);
}

// ---- PUT, DELETE ----

static bool make_put(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    SubscriptionChange *change = (SubscriptionChange *)base;
    const WebhookSubscription *old = subscription_stands(base, there);
    if (old == NULL) {
        return false;
    }
    keep(&change->entry, old);
    if (!config_is_same(&change->entry.base, there, base->call->http->arena)) {
        subscription_note_update(base->call, &change->entry);
    }
    *ret = &change->entry.base;
    return true;
}

static void answer_put(ConfigChange *base, Str payload)
{
    (void)payload;
    const SubscriptionChange *change = (const SubscriptionChange *)base;
    api_answer_json(
        base->call, 200, subscription_json(&change->entry, base->call->http->received_at_us));
}

static void put_subscription(ApiCall *call)
{
    if (!subscription_is_named(call)) {
        return;
    }
    SubscriptionChange *change = subscription_change_new(call, sizeof *change, call->params[0]);
    change->base.make = make_put;
    change->base.answer = answer_put;
    run(change);
}

static void delete_subscription(ApiCall *call)
{
    if (subscription_is_named(call)) {
        SubscriptionChange *change = subscription_change_new(call, sizeof *change, call->params[0]);
        config_change_remove(&change->base, subscription_answer_unknown);
    }
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/subscriptions", SCOPE_SUBSCRIPTIONS_READ, get_subscriptions, "limit cursor",
     false},
    {"POST", "/v1/subscriptions", SCOPE_SUBSCRIPTIONS_WRITE, post_subscription, NULL, false},
    {"GET", "/v1/subscriptions/{}", SCOPE_SUBSCRIPTIONS_READ, get_subscription, NULL, false},
    {"PUT", "/v1/subscriptions/{}", SCOPE_SUBSCRIPTIONS_WRITE, put_subscription, NULL, true},
    {"DELETE", "/v1/subscriptions/{}", SCOPE_SUBSCRIPTIONS_WRITE, delete_subscription, NULL, true},
};

void subscriptions_api_add(Api *api, SubscriptionsApi *subscriptions)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], subscriptions);
    api_add(api, subscription_state_routes, subscription_state_route_count, subscriptions);
    deliveries_api_add(api, subscriptions);
    delivery_replay_add(api, subscriptions);
}
