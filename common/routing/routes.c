// SPDX-License-Identifier: Apache-2.0
#include "common/routing/routes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/vendor/generic/definition.h"
#include "common/vendor/vendor_api.h"

typedef struct Item {
    Arena *arena; // holds this
    char *key;    // "<key>" of a route, "<vendor>.<name>" of a credential
    const ProtobufCMessage *entry;
} Item;

// Of one owner and kind, in the order of the kind.
typedef struct Items {
    Item **at;
    size_t count, cap;
} Items;

typedef struct Owner {
    Items routes, credentials;
} Owner;

struct Routes {
    Map *owners; // tenant -> Owner
};

// ---- storing ----

static void free_items(Items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        arena_free(items->at[i]->arena);
    }
    free((void *)items->at);
}

static void free_owner(void *value)
{
    Owner *owner = value;
    free_items(&owner->routes);
    free_items(&owner->credentials);
    free(owner);
}

Routes *routes_new(void)
{
    Routes *routes = xcalloc(1, sizeof *routes);
    routes->owners = map_new(free_owner);
    return routes;
}

void routes_free(Routes *routes)
{
    if (routes != NULL) {
        map_free(routes->owners);
        free(routes);
    }
}

static Owner *take_owner(Routes *routes, Str tenant)
{
    Owner *owner = map_get(routes->owners, tenant);
    if (owner == NULL) {
        owner = xcalloc(1, sizeof *owner);
        map_put(routes->owners, tenant, owner);
    }
    return owner;
}

static Item *find_item(const Items *items, Str key)
{
    for (size_t i = 0; i < items->count; i++) {
        if (str_eq(str_from(items->at[i]->key), key)) {
            return items->at[i];
        }
    }
    return NULL;
}

static void remove_item(Items *items, Str key)
{
    for (size_t i = 0; i < items->count; i++) {
        if (str_eq(str_from(items->at[i]->key), key)) {
            arena_free(items->at[i]->arena);
            memmove(
                (void *)&items->at[i], (void *)&items->at[i + 1],
                (items->count - i - 1) * sizeof *items->at);
            items->count--;
            return;
        }
    }
}

static void put_item(Items *items, Item *item, int (*order)(const void *a, const void *b))
{
    remove_item(items, str_from(item->key));
    if (items->count == items->cap) {
        items->cap = items->cap == 0 ? 4 : 2 * items->cap;
        items->at = xrealloc((void *)items->at, items->cap * sizeof *items->at);
    }
    items->at[items->count++] = item;
    qsort((void *)items->at, items->count, sizeof *items->at, order);
}

static Item *read_item(const ProtobufCMessageDescriptor *type, Str key, Str payload, Error *err)
{
    Arena *arena = arena_new(0);
    Item *item = arena_zalloc(arena, sizeof *item);
    item->arena = arena;
    item->key = arena_cstr(arena, key);
    item->entry = event_unpack(type, payload, arena, err);
    if (item->entry == NULL) {
        arena_free(arena);
        return NULL;
    }
    return item;
}

static int by_position(const void *a, const void *b)
{
    const RouteEntry *left = (const RouteEntry *)(*(Item *const *)a)->entry;
    const RouteEntry *right = (const RouteEntry *)(*(Item *const *)b)->entry;
    if (left->position != right->position) {
        return left->position < right->position ? -1 : 1;
    }
    return strcmp(left->key, right->key);
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(Item *const *)a)->key, (*(Item *const *)b)->key);
}

bool routes_changed(Routes *routes, Str tenant, Str key, Str payload, Error *err)
{
    Items *items = &take_owner(routes, tenant)->routes;
    if (payload.len == 0) {
        remove_item(items, key);
        return true;
    }
    Item *item = read_item(&stentor__v1__route__descriptor, key, payload, err);
    if (item == NULL) {
        return false;
    }
    bool room = items->count < ROUTES_MAX || find_item(items, key) != NULL ||
                error_set(err, ERROR_PERMANENT, "more than %d routes of one owner", ROUTES_MAX);
    if (!room || !route_check((const RouteEntry *)item->entry, err)) {
        arena_free(item->arena);
        return false;
    }
    put_item(items, item, by_position);
    return true;
}

bool routes_credential_changed(Routes *routes, Str tenant, Str key, Str payload, Error *err)
{
    Items *items = &take_owner(routes, tenant)->credentials;
    if (payload.len == 0) {
        remove_item(items, key);
        return true;
    }
    Item *item = read_item(&stentor__v1__vendor_credential__descriptor, key, payload, err);
    if (item == NULL) {
        return false;
    }
    bool room =
        items->count < CREDENTIALS_MAX || find_item(items, key) != NULL ||
        error_set(err, ERROR_PERMANENT, "more than %d credentials of one owner", CREDENTIALS_MAX);
    if (!room || !credential_entry_check((const CredentialEntry *)item->entry, err)) {
        arena_free(item->arena);
        return false;
    }
    put_item(items, item, by_key);
    return true;
}

// ---- reading ----

const RouteEntry *routes_get(const Routes *routes, Str tenant, Str key)
{
    const Owner *owner = map_get(routes->owners, tenant);
    const Item *item = owner == NULL ? NULL : find_item(&owner->routes, key);
    return item == NULL ? NULL : (const RouteEntry *)item->entry;
}

static const CredentialEntry *credential_at(const Owner *owner, size_t i)
{
    return (const CredentialEntry *)owner->credentials.at[i]->entry;
}

const CredentialEntry *routes_credential(const Routes *routes, Str tenant, Str vendor, Str name)
{
    const Owner *owner = map_get(routes->owners, tenant);
    for (size_t i = 0; owner != NULL && i < owner->credentials.count; i++) {
        const CredentialEntry *entry = credential_at(owner, i);
        if (str_eq(str_from(entry->vendor), vendor) && str_eq(str_from(entry->name), name)) {
            return entry;
        }
    }
    return NULL;
}

static bool is_promoted(const CredentialEntry *entry)
{
    return entry->state == STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_ACTIVE;
}

static bool is_in_force(const CredentialEntry *entry)
{
    return is_promoted(entry) ||
           entry->state == STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_SUPERSEDED;
}

static ChannelSet channels_of(const Owner *owner)
{
    ChannelSet set = 0;
    for (size_t i = 0; owner != NULL && i < owner->credentials.count; i++) {
        const CredentialEntry *entry = credential_at(owner, i);
        set |= is_in_force(entry) ? 1U << routing_vendor_channel(str_from(entry->vendor)) : 0;
    }
    return set;
}

ChannelSet routes_channels(const Routes *routes, Str tenant, ChannelSet base)
{
    base |= 1U << CHANNEL_INAPP;
    if (routes == NULL) {
        return base;
    }
    return base | channels_of(map_get(routes->owners, tenant)) |
           channels_of(map_get(routes->owners, STR(ROUTING_PLATFORM)));
}

static bool is_newer(const CredentialEntry *entry, const CredentialEntry *than)
{
    if (than == NULL || entry->changed_at_us != than->changed_at_us) {
        return than == NULL || entry->changed_at_us > than->changed_at_us;
    }
    return strcmp(entry->name, than->name) > 0;
}

// but: passed over.
static const CredentialEntry *newest_of(
    const Owner *owner, Str vendor, bool (*fits)(const CredentialEntry *entry),
    const CredentialEntry *but)
{
    const CredentialEntry *newest = NULL;
    for (size_t i = 0; owner != NULL && i < owner->credentials.count; i++) {
        const CredentialEntry *entry = credential_at(owner, i);
        if (entry != but && fits(entry) && str_eq(str_from(entry->vendor), vendor) &&
            is_newer(entry, newest)) {
            newest = entry;
        }
    }
    return newest;
}

Stentor__V1__CredentialState routes_credential_state(
    const Routes *routes, const CredentialEntry *credential)
{
    const CredentialEntry *active = newest_of(
        map_get(routes->owners, str_from(credential->tenant)), str_from(credential->vendor),
        is_promoted, NULL);
    bool passed = is_promoted(credential) && active != NULL && is_newer(active, credential);
    return passed ? STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_SUPERSEDED : credential->state;
}

const RouteEntry **routes_list(const Routes *routes, Str tenant, Arena *arena, size_t *ret_count)
{
    const Owner *owner = map_get(routes->owners, tenant);
    size_t count = owner == NULL ? 0 : owner->routes.count;
    const RouteEntry **all = arena_array(arena, count + 1, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        all[i] = (const RouteEntry *)owner->routes.at[i]->entry;
    }
    *ret_count = count;
    return all;
}

const CredentialEntry **routes_credentials(
    const Routes *routes, Str tenant, Arena *arena, size_t *ret_count)
{
    const Owner *owner = map_get(routes->owners, tenant);
    size_t count = owner == NULL ? 0 : owner->credentials.count;
    const CredentialEntry **all = arena_array(arena, count + 1, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        all[i] = credential_at(owner, i);
    }
    *ret_count = count;
    return all;
}

static const CredentialEntry *account_of(const Routes *routes, Str owner, Str vendor, Str name)
{
    if (name.len == 0) {
        return newest_of(map_get(routes->owners, owner), vendor, is_promoted, NULL);
    }
    const CredentialEntry *entry = routes_credential(routes, owner, vendor, name);
    return entry != NULL && is_in_force(entry) ? entry : NULL;
}

const CredentialEntry *routes_account(const Routes *routes, Str tenant, Str vendor, Str name)
{
    const CredentialEntry *own = account_of(routes, tenant, vendor, name);
    return own != NULL ? own : account_of(routes, STR(ROUTING_PLATFORM), vendor, name);
}

const CredentialEntry *routes_predecessor(const Routes *routes, const CredentialEntry *active)
{
    return newest_of(
        map_get(routes->owners, str_from(active->tenant)), str_from(active->vendor), is_in_force,
        active);
}

// ---- which route ----

static bool fits_domain(const char *pattern, Str domain)
{
    Str wanted = str_from(pattern);
    if (wanted.len == 0) {
        return true;
    }
    if (!str_starts(wanted, STR("*."))) {
        return str_eq_nocase(wanted, domain);
    }
    Str tail = str_slice(wanted, 1, wanted.len); // ".example.com"
    return domain.len > tail.len &&
           str_eq_nocase(tail, str_slice(domain, domain.len - tail.len, domain.len));
}

static bool fits(const RouteEntry *route, const RouteQuestion *question)
{
    Channel channel = route->channel == STENTOR__V1__CHANNEL__CHANNEL_UNSPECIFIED
                          ? CHANNEL_EMAIL
                          : (Channel)route->channel;
    bool category = route->category == STENTOR__V1__CATEGORY__CATEGORY_UNSPECIFIED ||
                    (Category)route->category == question->category;
    bool country = route->country[0] == '\0' || str_eq(str_from(route->country), question->country);
    return !route->disabled && channel == question->channel && category && country &&
           fits_domain(route->domain, question->domain);
}

static const RouteEntry *first_of(const Routes *routes, Str tenant, const RouteQuestion *question)
{
    const Owner *owner = map_get(routes->owners, tenant);
    for (size_t i = 0; owner != NULL && i < owner->routes.count; i++) {
        const RouteEntry *route = (const RouteEntry *)owner->routes.at[i]->entry;
        if (fits(route, question)) {
            return route;
        }
    }
    return NULL;
}

// ---- which vendors of it ----

typedef struct Candidate {
    RoutePick pick;
    Str name; // of the credential, as the route has it
    uint32_t step;
    double weight;
    uint32_t points;  // that a degraded one loses
    bool last_resort; // degraded, on a route that falls back on that
    double rank;      // within its step: the lowest is first
} Candidate;

// In (0, 1), from the mail and the vendor alone.
static double draw(Str notification_id, Str vendor, Str credential)
{
    char text[256]; // longer ids are cut, and all still the same each time
    int len = snprintf(
        text, sizeof text, STR_FMT "|" STR_FMT "|" STR_FMT, STR_ARG(notification_id),
        STR_ARG(vendor), STR_ARG(credential));
    uint8_t hash[SHA256_LEN];
    sha256(str_of(text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1), hash);
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; i++) {
        bits = bits << 8 | hash[i];
    }
    return ((double)(bits >> 12) + 0.5) / 0x1p52;
}

static int by_turn(const void *a, const void *b)
{
    const Candidate *left = a;
    const Candidate *right = b;
    if (left->last_resort != right->last_resort) {
        return left->last_resort ? 1 : -1;
    }
    if (left->step != right->step) {
        return left->step < right->step ? -1 : 1;
    }
    return left->rank < right->rank ? -1 : left->rank > right->rank ? 1 : 0;
}

static bool is_avoided(const RouteQuestion *question, Str vendor)
{
    for (size_t i = 0; i < question->avoid_count; i++) {
        if (str_eq(question->avoid[i], vendor)) {
            return true;
        }
    }
    return false;
}

static bool is_shut(const RoutePick *pick)
{
    return pick->standing == STANDING_OPEN || pick->standing == STANDING_DISABLED;
}

// What a degraded vendor weighs so that it loses `points` of a hundred of its step's mails, and the
// others have them by their weights. It keeps a hundredth, by which it shows that it works again.
static double weight_of(const Candidate *all, size_t count, const Candidate *one)
{
    double others = 0;
    for (size_t i = 0; i < count; i++) {
        others += &all[i] != one && all[i].step == one->step ? all[i].weight : 0;
    }
    if (one->pick.standing != STANDING_DEGRADED || others == 0) {
        return one->weight;
    }
    double share = 100 * one->weight / (one->weight + others);
    double left = share - one->points;
    double least = share < 1 ? share : 1;
    left = left < least ? least : left;
    return others * left / (100 - left);
}

// An exponential time with the weight as its rate: who comes first is drawn by weight, and who is
// left out changes nothing among the others.
static void draw_ranks(Candidate *all, size_t count, Str notification_id)
{
    for (size_t i = 0; i < count; i++) {
        double drawn = draw(notification_id, all[i].pick.vendor, all[i].name);
        all[i].rank = -log(drawn) / weight_of(all, count, &all[i]);
    }
}

// What URLs begin with that a vendor by definition takes; empty: it takes all.
static Str prefix_of(const CredentialEntry *account)
{
    for (size_t i = 0; account != NULL && i < account->n_settings; i++) {
        if (strcmp(account->settings[i]->name, "address_prefix") == 0) {
            return str_from(account->settings[i]->value);
        }
    }
    return STR_EMPTY;
}

static bool takes(const VendorApi *api, const CredentialEntry *account, Str address)
{
    if (api == NULL || address.len == 0) {
        return true;
    }
    return api->by_definition ? str_starts(address, prefix_of(account))
                              : api->takes == NULL || api->takes(address);
}

static bool read_candidate(
    const Routes *routes, const RouteQuestion *question, const Stentor__V1__RouteVendor *step,
    unsigned fallback_on, Candidate *ret)
{
    Str vendor = str_from(step->vendor);
    Str name = str_from(step->credential);
    bool own = routing_is_own(vendor);
    const CredentialEntry *account =
        own ? NULL : routes_account(routes, question->tenant, vendor, name);
    if (is_avoided(question, vendor) || (!own && account == NULL) ||
        !takes(vendor_find(vendor), account, question->address)) {
        return false;
    }
    Candidate candidate = {
        .pick = {.vendor = vendor, .credential = account, .standing = STANDING_UP},
        .name = name,
        .step = step->step,
        .weight = step->weight == 0 ? 1 : step->weight};
    if (question->standing != NULL) {
        candidate.pick.standing =
            question->standing(question->ctx, vendor, account, &candidate.points);
    }
    candidate.last_resort =
        candidate.pick.standing == STANDING_DEGRADED && (fallback_on & FALLBACK_DEGRADED) != 0;
    *ret = candidate;
    return true;
}

// Those that are shut go behind the others, unless all are or the route does not fall back on that.
// Returns how many count.
static size_t leave_out_shut(Candidate *candidates, size_t count, unsigned fallback_on)
{
    Candidate shut[ROUTE_VENDORS_MAX];
    size_t kept = 0;
    size_t left_out = 0;
    for (size_t i = 0; (fallback_on & FALLBACK_OPEN) != 0 && i < count; i++) {
        if (is_shut(&candidates[i].pick)) {
            shut[left_out++] = candidates[i];
        } else {
            candidates[kept++] = candidates[i];
        }
    }
    memcpy(&candidates[kept], shut, left_out * sizeof *shut);
    return kept > 0 ? kept : count;
}

// max_vendors: of the route; 0: it does not say.
static void pick(
    size_t max_vendors, const RouteQuestion *question, Candidate *candidates, size_t count,
    RouteChoice *ret)
{
    size_t most = max_vendors == 0 ? ROUTE_VENDORS_DEFAULT : max_vendors;
    size_t left = most > question->avoid_count ? most - question->avoid_count : 0;
    size_t all = count;
    if (count > 0) {
        qsort(candidates, count, sizeof *candidates, by_turn);
        count = leave_out_shut(candidates, count, ret->rules.fallback_on);
    }
    for (size_t i = 0; i < all && ret->all < left; i++) {
        ret->picks[ret->all++] = candidates[i].pick;
    }
    ret->count = count < ret->all ? count : ret->all;
    ret->waits = ret->count > 0 && is_shut(&ret->picks[0]);
}

static RoutingRules rules_of(const RouteEntry *route, const RouteQuestion *question)
{
    unsigned fallback_on = 0;
    RoutingUnknown unknown = ROUTING_UNKNOWN_UNSAID;
    for (size_t i = 0; i < route->n_fallback_on; i++) {
        fallback_on |= fallback_from_name(str_from(route->fallback_on[i]));
    }
    (void)routing_unknown_from_name(str_from(route->unknown), &unknown);
    return routing_rules(
        question->channel, question->category, fallback_on, unknown, route->settle_ms);
}

typedef struct Implied {
    const Routes *routes;
    const RouteQuestion *question;
    unsigned fallback_on;
    Candidate candidates[ROUTE_VENDORS_MAX];
    size_t count;
} Implied;

// vendor: lives as long as the routes.
static void imply(Implied *implied, const char *vendor)
{
    char none[1] = "";
    Stentor__V1__RouteVendor step;
    if (implied->count == ROUTE_VENDORS_MAX) {
        return;
    }
    stentor__v1__route_vendor__init(&step);
    step.vendor = pb_borrow(vendor);
    step.credential = none;
    step.step = (uint32_t)implied->count;
    if (read_candidate(
            implied->routes, implied->question, &step, implied->fallback_on,
            &implied->candidates[implied->count])) {
        implied->count++;
    }
}

static bool is_implied(const Implied *implied, Str vendor)
{
    for (size_t i = 0; i < implied->count; i++) {
        if (str_eq(implied->candidates[i].pick.vendor, vendor)) {
            return true;
        }
    }
    return false;
}

// Behind those that the code knows: the owner's vendors by definition.
static void imply_defined(Implied *implied, Str tenant)
{
    const Owner *owner = map_get(implied->routes->owners, tenant);
    for (size_t i = 0; owner != NULL && i < owner->credentials.count; i++) {
        const CredentialEntry *entry = credential_at(owner, i);
        Str vendor = str_from(entry->vendor);
        if (is_promoted(entry) && definition_channel(vendor) == implied->question->channel &&
            !is_implied(implied, vendor)) {
            imply(implied, entry->vendor);
        }
    }
}

static void choose_implied(const Routes *routes, const RouteQuestion *question, RouteChoice *ret)
{
    Implied implied = {
        .routes = routes, .question = question, .fallback_on = ret->rules.fallback_on};
    const VendorApi *api = NULL;
    if (question->channel == CHANNEL_INAPP) {
        imply(&implied, ROUTING_INAPP);
    }
    for (size_t i = 0; (api = vendor_at(i)) != NULL; i++) {
        if (api->channel == question->channel) {
            imply(&implied, api->name);
        }
    }
    imply_defined(&implied, question->tenant);
    imply_defined(&implied, STR(ROUTING_PLATFORM));
    ret->implied = true;
    pick(0, question, implied.candidates, implied.count, ret);
}

void routes_choose(const Routes *routes, const RouteQuestion *question, RouteChoice *ret)
{
    *ret = (RouteChoice){0};
    const RouteEntry *route = first_of(routes, question->tenant, question);
    if (route == NULL && !str_eq(question->tenant, STR(ROUTING_PLATFORM))) {
        route = first_of(routes, STR(ROUTING_PLATFORM), question);
    }
    if (route == NULL) {
        ret->rules =
            routing_rules(question->channel, question->category, 0, ROUTING_UNKNOWN_UNSAID, 0);
        if (question->channel != CHANNEL_EMAIL) {
            choose_implied(routes, question, ret);
        }
        return;
    }
    ret->route = route;
    ret->rules = rules_of(route, question);
    Candidate candidates[ROUTE_VENDORS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < route->n_vendors && i < ROUTE_VENDORS_MAX; i++) {
        if (read_candidate(
                routes, question, route->vendors[i], ret->rules.fallback_on, &candidates[count])) {
            count++;
        }
    }
    draw_ranks(candidates, count, question->notification_id);
    pick(route->max_vendors, question, candidates, count, ret);
}

// ---- which addresses ----

typedef struct Taking {
    Str address;
    char *reason;
    size_t used;
    bool taken, picky; // one takes it; each vendor so far takes some addresses only
} Taking;

static void ask_vendor(
    Taking *taking, const char *name, const VendorApi *api, const CredentialEntry *account)
{
    if (account == NULL || taking->taken) {
        return;
    }
    Str prefix = prefix_of(account);
    const char *which = api->by_definition ? prefix.ptr : api->addresses;
    taking->taken = takes(api, account, taking->address);
    taking->picky = true;
    int wrote = snprintf(
        taking->reason + taking->used, ROUTES_REASON_SIZE - taking->used, "%s %s (%s)",
        taking->used == 0 ? "not an address of" : ",", name, which != NULL ? which : "");
    bool fits = wrote > 0 && taking->used + (size_t)wrote < ROUTES_REASON_SIZE;
    taking->used = fits ? taking->used + (size_t)wrote : taking->used;
    taking->reason[taking->used] = '\0';
}

static void ask_defined(Taking *taking, const Routes *routes, Str tenant, Channel channel)
{
    const Owner *owner = map_get(routes->owners, tenant);
    for (size_t i = 0; owner != NULL && i < owner->credentials.count; i++) {
        const CredentialEntry *entry = credential_at(owner, i);
        const VendorApi *api = vendor_find(str_from(entry->vendor));
        if (is_promoted(entry) && api != NULL && api->by_definition && api->channel == channel) {
            ask_vendor(taking, entry->vendor, api, entry);
        }
    }
}

bool routes_takes(
    const Routes *routes, Str tenant, Channel channel, Str address, char reason[ROUTES_REASON_SIZE])
{
    Taking taking = {.address = address, .reason = reason};
    const VendorApi *api = NULL;
    reason[0] = '\0';
    for (size_t i = 0; (api = vendor_at(i)) != NULL; i++) {
        if (api->channel == channel) {
            ask_vendor(
                &taking, api->name, api,
                routes_account(routes, tenant, str_from(api->name), STR_EMPTY));
        }
    }
    ask_defined(&taking, routes, tenant, channel);
    ask_defined(&taking, routes, STR(ROUTING_PLATFORM), channel);
    return taking.taken || !taking.picky;
}
