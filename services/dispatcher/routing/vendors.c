// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/routing/vendors.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/model/addresses/calling_code.h"
#include "common/routing/quota.h"
#include "services/dispatcher/routing/vendor_mail.h"
#include "services/dispatcher/routing/vendors_internal.h"
#include "services/dispatcher/vendor/inapp/inapp_vendor.h"

enum {
    PLACE_NAME_SIZE = 160,
    CALLS_MAX = 4096,         // of all vendors together
    PROMOTED_S = 60,          // a credential that is refused so soon gives way to the one before it
    HALF_OPEN_WAIT_MS = 5000, // what waits while a probe is under way
};

// ---- the vendors ----

// Its entry was checked, so it compiles. What a request holds of the one before stays.
static void take_definition(VendorPlace *place, const CredentialEntry *entry)
{
    Error err = {0};
    Str document = str_from(entry->definition);
    if (document.len > 0 && !definition_is(place->definition, document)) {
        definition_drop(place->definition);
        place->definition = definition_compile(document, place->api->channel, &err);
    }
}

static bool read_account(void *ctx, VendorAccount *ret, Error *err)
{
    VendorPlace *place = ctx;
    const Vendors *vendors = place->vendors;
    const CredentialEntry *entry = routes_credential(
        vendors->routes, str_from(place->owner), str_from(place->vendor.name),
        str_from(place->credential));
    if (entry == NULL) {
        return error_set(
            err, ERROR_CONFIG, "credential '%s' of %s is gone", place->credential,
            place->vendor.name);
    }
    static VendorPair settings[CREDENTIAL_SETTINGS_MAX]; // read at once, by one thread
    size_t count =
        entry->n_settings < CREDENTIAL_SETTINGS_MAX ? entry->n_settings : CREDENTIAL_SETTINGS_MAX;
    for (size_t i = 0; i < count; i++) {
        settings[i] =
            (VendorPair){str_from(entry->settings[i]->name), str_from(entry->settings[i]->value)};
    }
    take_definition(place, entry);
    *ret = (VendorAccount){
        .name = str_from(entry->name),
        .id = str_from(entry->key_id),
        .settings = settings,
        .setting_count = count,
        .definition = place->definition,
    };
    const SecretName name = {
        str_from(entry->tenant), str_from(entry->vendor), str_from(entry->name)};
    return !credential_has_secret(entry) || secrets_use(vendors->secrets, &name, &ret->secret, err);
}

// The limits of its credential, as CONFIG has them now.
static bool may_start(void *ctx, Priority lane, size_t waiting, int64_t *ret_at_us)
{
    const VendorPlace *place = ctx;
    const Vendors *vendors = place->vendors;
    const CredentialEntry *entry = routes_credential(
        vendors->routes, str_from(place->owner), str_from(place->vendor.name),
        str_from(place->credential));
    if (vendors->budgets == NULL || entry == NULL) {
        return true;
    }
    int64_t per_s = quota_stricter(entry->rate_per_s, place->quota_per_s);
    int64_t per_day = quota_stricter(entry->rate_per_day, place->quota_per_day);
    return (per_s == 0 && per_day == 0) || budgets_take(
                                               vendors->budgets, str_from(place->limit), per_s,
                                               per_day, lane, (uint32_t)waiting, ret_at_us);
}

static void on_quota(void *ctx, const VendorQuota *quota)
{
    VendorPlace *place = ctx;
    int64_t before = place->quota_per_s;
    place->quota_due_us = clock_mono_us() + QUOTA_POLL_S * INT64_C(1000000);
    quota_limits(quota, &place->quota_per_s, &place->quota_per_day);
    if (place->quota_per_s != before) {
        LOG(LOG_INFO, "a vendor says how much its account may send",
            log_text("vendor", place->vendor.name), log_text("credential", place->credential),
            log_text("owner", place->owner), log_int("per_s", place->quota_per_s));
    }
}

static void ask_quota(VendorPlace *place, int64_t now_us)
{
    if (place->http != NULL && place->api->quota != NULL && now_us >= place->quota_due_us) {
        place->quota_due_us = now_us + QUOTA_AGAIN_S * INT64_C(1000000);
        place->vendor.probe(place->vendor.self);
    }
}

bool vendors_smtp_may_start(void *ctx, Priority lane, size_t waiting, int64_t *ret_at_us)
{
    const Vendors *vendors = ctx;
    int64_t per_s = vendors->parts.smtp_per_s;
    int64_t per_day = vendors->parts.smtp_per_day;
    return vendors->budgets == NULL || (per_s == 0 && per_day == 0) ||
           budgets_take(
               vendors->budgets, str_from(vendors->smtp->limit), per_s, per_day, lane,
               (uint32_t)waiting, ret_at_us);
}

static void free_place(void *value)
{
    VendorPlace *place = value;
    definition_drop(place->definition);
    free(place->name);
    free(place->limit);
    arena_free(place->arena);
    free(place->owner);
    free(place->credential);
    free(place);
}

static VendorPlace *add_place(Vendors *vendors, Str name, Str owner, Str credential)
{
    VendorPlace *place = xcalloc(1, sizeof *place);
    place->vendors = vendors;
    place->arena = arena_new(0);
    place->owner = xstrdup(arena_cstr(place->arena, owner));
    place->credential = xstrdup(arena_cstr(place->arena, credential));
    place->limit = xstrdup(arena_cstr(place->arena, name));
    map_put(vendors->places, name, place);
    return place;
}

static VendorPlace *open_http(Vendors *vendors, Str name, const CredentialEntry *entry)
{
    const VendorApi *api = vendor_find(str_from(entry->vendor));
    if (api == NULL || vendors->stopping || map_count(vendors->places) >= VENDOR_PLACES_MAX) {
        return NULL;
    }
    VendorPlace *place = add_place(vendors, name, str_from(entry->tenant), str_from(entry->name));
    Transport http1 = transport_http1(vendors->client);
    unsigned calls = api->http2 ? HTTP_VENDOR_STREAMS : vendors->parts.calls;
    vendors->calls += calls;
    place->api = api;
    place->name = xstrdup(entry->vendor);
    take_definition(place, entry);
    place->http = http_vendor_new(&(HttpVendorOptions){
        .loop = vendors->parts.loop,
        .transport = api->http2 ? transport_http2(vendors->client2, place->limit) : http1,
        .grants = http1,
        .api = api,
        .name = place->name,
        .calls = calls,
        .connect_ms = vendors->parts.connect_ms,
        .whole_ms = vendors->parts.call_ms,
        .account = read_account,
        .may_start = may_start,
        .on_quota = on_quota,
        .ctx = place,
    });
    place->vendor = http_vendor(place->http);
    vendors->open++;
    vendors_hear_known(place);
    ask_quota(place, clock_mono_us());
    if (vendors->draining) {
        place->vendor.drain(place->vendor.self);
    }
    return place;
}

static VendorPlace *place_of(Vendors *vendors, Str vendor, const CredentialEntry *entry)
{
    if (entry == NULL) {
        return str_eq(vendor, STR(ROUTING_INAPP)) ? vendors->inapp : vendors->smtp;
    }
    char name[PLACE_NAME_SIZE];
    int used = snprintf(name, sizeof name, "%s/%s/%s", entry->tenant, entry->vendor, entry->name);
    if (used <= 0 || (size_t)used >= sizeof name) {
        return NULL;
    }
    Str at = {name, (size_t)used};
    VendorPlace *place = map_get(vendors->places, at);
    return place != NULL ? place : open_http(vendors, at, entry);
}

// Refused as soon as it was promoted: the credential before it is used until that is mended.
static VendorPlace *before_of(Vendors *vendors, const VendorPlace *place)
{
    if (place->api == NULL || place->breaker.state != BREAKER_OPEN || !place->breaker.config) {
        return NULL;
    }
    const CredentialEntry *entry = routes_credential(
        vendors->routes, str_from(place->owner), str_from(place->vendor.name),
        str_from(place->credential));
    int64_t worked_us = entry != NULL ? place->breaker.opened_at_us - entry->changed_at_us : -1;
    if (worked_us < 0 || worked_us > PROMOTED_S * INT64_C(1000000)) {
        return NULL;
    }
    const CredentialEntry *before = routes_predecessor(vendors->routes, entry);
    bool replaced = before != NULL &&
                    before->state == STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_SUPERSEDED;
    return replaced ? place_of(vendors, str_from(place->vendor.name), before) : NULL;
}

VendorPlace *vendors_place_in_use(Vendors *vendors, Str vendor, const CredentialEntry *entry)
{
    VendorPlace *place = place_of(vendors, vendor, entry);
    VendorPlace *before = place != NULL ? before_of(vendors, place) : NULL;
    return before != NULL ? before : place;
}

VendorPlace *vendors_place(Vendors *vendors, Str tenant, Str vendor, Str credential)
{
    if (vendor.len == 0 || routing_is_own(vendor)) {
        return place_of(vendors, vendor, NULL);
    }
    const CredentialEntry *entry = routes_account(vendors->routes, tenant, vendor, credential);
    return entry != NULL ? place_of(vendors, vendor, entry) : NULL;
}

// ---- one of them ----

const Vendor *vendor_of(const VendorPlace *place)
{
    return &place->vendor;
}

const VendorApi *vendor_api_of(const VendorPlace *place)
{
    return place->api;
}

int64_t vendor_key_known_s(const VendorPlace *place)
{
    return place->definition != NULL ? definition_key_known_s(place->definition)
           : place->api != NULL      ? place->api->key_known_s
                                     : 0;
}

bool vendor_calls_back(const VendorPlace *place)
{
    return place->definition != NULL ? definition_calls_back(place->definition)
                                     : place->api != NULL && !place->api->endpoint;
}

LedgerPlace vendor_ledger_place(const VendorPlace *place, Str key)
{
    return (LedgerPlace){
        .vendor = str_from(place->vendor.name),
        .credential = str_from(place->credential),
        .key = place->api != NULL ? key : STR_EMPTY,
    };
}

bool vendor_endpoint_take(
    const VendorPlace *place, Str address, int64_t now_us, int64_t *ret_due_us)
{
    const VendorApi *api = place->api;
    if (api == NULL || !api->endpoint) {
        return true;
    }
    const EndpointPace pace = {api->endpoint_interval_ms, api->endpoint_burst};
    return endpoints_take(place->vendors->endpoints, address, pace, now_us, ret_due_us);
}

void vendor_endpoint_tell(
    const VendorPlace *place, Str address, const SendResult *result, int64_t now_us)
{
    if (place->api != NULL && place->api->endpoint && result->state == SEND_ANSWERED &&
        result->reply == REPLY_THROTTLED) {
        endpoints_hold(place->vendors->endpoints, address, result->retry_after_ms, now_us);
    }
}

// A recipient's own address named the host: that of one who names a host that is not there would
// make the pushes of all others wait.
static bool is_unreached_host(const VendorPlace *place, const SendResult *result)
{
    return place->api != NULL && place->api->base_url == NULL && result->state == SEND_UNSENT;
}

void vendor_tell(VendorPlace *place, const SendResult *result, int64_t begun_us)
{
    int64_t now_us = clock_now_us();
    double chance = (double)(now_us % 1000) / 1000.0;
    // One dead endpoint, or one that throttles, says nothing of the others.
    bool alone = place->api != NULL && place->api->endpoint;
    bool silent =
        result->waited || result->of_recipient || alone || is_unreached_host(place, result);
    BreakerResult said = silent ? BREAKER_NOTHING : breaker_result(result);
    BreakerMove move = breaker_tell(&place->breaker, said, begun_us, chance, now_us);
    vendors_end_right(place);
    char reason[VENDOR_REASON_MAX];
    (void)snprintf(
        reason, sizeof reason, STR_FMT "%s" STR_FMT, STR_ARG(str_slice(result->code, 0, 32)),
        result->code.len > 0 && result->text.len > 0 ? " " : "",
        STR_ARG(str_slice(result->text, 0, 120)));
    vendors_note_move(place, move, reason);
    place->mended = place->mended && move != BREAKER_OPENS;
    if (move == BREAKER_OPENS && before_of(place->vendors, place) != NULL) {
        LOG(LOG_ERROR,
            "a credential is refused right after it was promoted; the one before it is used",
            log_text("vendor", place->vendor.name), log_text("owner", place->owner),
            log_text("credential", place->credential), log_text("hint", "stentor credential list"));
    }
    Budgets *budgets = place->vendors->budgets;
    if (alone) {
        return;
    }
    bool throttled = result->state == SEND_ANSWERED && result->reply == REPLY_THROTTLED;
    if (throttled && !result->of_recipient && budgets != NULL && place->api != NULL) {
        budgets_throttled(budgets, str_from(place->limit), result->retry_after_ms);
    }
    if (result->state == SEND_ANSWERED && result->reply == REPLY_CONFIG && place->api != NULL) {
        secrets_refresh(
            place->vendors->secrets,
            &(SecretName){
                str_from(place->owner), str_from(place->vendor.name), str_from(place->credential)});
    }
}

int64_t vendor_due_us(const VendorPlace *place, int64_t now_us)
{
    const Breaker *breaker = &place->breaker;
    if (before_of(place->vendors, place) != NULL) {
        return now_us;
    }
    if (breaker->state != BREAKER_OPEN || breaker->probe_at_us <= now_us) {
        return now_us + HALF_OPEN_WAIT_MS * INT64_C(1000);
    }
    // A refused credential is probed after 15 minutes, and mended by an operator long before.
    int64_t most_us = now_us + BREAKER_WAIT_MAX_MS * INT64_C(1000);
    return breaker->probe_at_us < most_us ? breaker->probe_at_us : most_us;
}

// ---- which of them ----

typedef struct Asking {
    Vendors *vendors;
    const Job *job;
    int64_t now_us;
    int64_t suspended_until_us; // of the last one that is
} Asking;

static VendorStanding standing(
    void *ctx, Str vendor, const CredentialEntry *credential, uint32_t *ret_points)
{
    Asking *asking = ctx;
    VendorPlace *place = vendors_place_in_use(asking->vendors, vendor, credential);
    if (place == NULL) {
        return STANDING_OPEN;
    }
    if (vendors_is_suspended(
            asking->vendors, place, asking->job->key->tenant, asking->now_us,
            &asking->suspended_until_us)) {
        return STANDING_DISABLED;
    }
    if (!breaker_is_closed(&place->breaker) &&
        !vendors_takes_probe(place, asking->job, asking->now_us)) {
        return STANDING_OPEN;
    }
    int64_t since_us = 0;
    *ret_points = vendors_points(asking->vendors, place, &since_us);
    return *ret_points > 0 ? STANDING_DEGRADED : STANDING_UP;
}

static void read_choice(Vendors *vendors, const RouteChoice *choice, Job *job)
{
    JobRoute *route = &job->route;
    route->rules = choice->rules;
    route->routed = choice->route != NULL || choice->implied;
    route->name =
        choice->route != NULL ? arena_cstr(job->delivery->arena, str_from(choice->route->key)) : "";
    for (size_t i = 0; i < choice->count; i++) {
        const RoutePick *pick = &choice->picks[i];
        VendorPlace *place = vendors_place_in_use(vendors, pick->vendor, pick->credential);
        // The first one's suspension makes the mail wait; behind it, it would be a fallback.
        bool suspended = choice->picks[i].standing == STANDING_DISABLED;
        if (place != NULL && (route->count == 0 || !suspended)) {
            route->targets[route->count++] = place;
        }
    }
}

static void note_wait(const Asking *asking, const RouteChoice *choice, JobRoute *route)
{
    if (!choice->waits || route->count == 0) {
        return;
    }
    int64_t now_us = asking->now_us;
    if (choice->picks[0].standing == STANDING_DISABLED) {
        int64_t most_us = now_us + VENDORS_SUSPENDED_WAIT_S * INT64_C(1000000);
        int64_t until_us = asking->suspended_until_us;
        route->waits_until_us = until_us < most_us ? until_us : most_us;
        route->waits_for = "an operator has suspended the vendor";
    } else if (!vendors_wants_probe(route->targets[0], now_us)) {
        route->waits_until_us = vendor_due_us(route->targets[0], now_us);
        route->waits_for = "the vendor fails, and no other one may take it";
    }
}

// The SMTP server without a route: only an operator's suspension keeps mails from it.
static void check_smtp(Vendors *vendors, Job *job, int64_t now_us)
{
    int64_t until_us = 0;
    if (vendors_is_suspended(vendors, vendors->smtp, job->key->tenant, now_us, &until_us)) {
        int64_t most_us = now_us + VENDORS_SUSPENDED_WAIT_S * INT64_C(1000000);
        job->route.waits_until_us = until_us < most_us ? until_us : most_us;
        job->route.waits_for = "an operator has suspended the vendor";
    }
}

// ---- the choice ----

void vendors_choose(Vendors *vendors, Job *job, Str address, int64_t now_us)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    Str avoid[ROUTE_AVOID_MAX];
    size_t avoid_count = 0;
    for (; avoid_count < rendered->n_avoid_vendors && avoid_count < ROUTE_AVOID_MAX;
         avoid_count++) {
        avoid[avoid_count] = str_from(rendered->avoid_vendors[avoid_count]);
    }
    ptrdiff_t at = str_find(address, '@');
    Asking asking = {.vendors = vendors, .job = job, .now_us = now_us};
    RouteQuestion question = {
        .tenant = job->key->tenant,
        .channel = (Channel)rendered->channel,
        .category = (Category)rendered->category,
        .address = address,
        .domain = at >= 0 ? str_slice(address, (size_t)at + 1, address.len) : STR_EMPTY,
        .country = at >= 0 ? STR_EMPTY : calling_code_country(address),
        .notification_id = job->key->notification_id,
        .avoid = avoid,
        .avoid_count = avoid_count,
        .standing = standing,
        .ctx = &asking,
    };
    RouteChoice choice;
    routes_choose(vendors->routes, &question, &choice);
    read_choice(vendors, &choice, job);
    if (rendered->unknown_vendor[0] != '\0') {
        vendors_resolve_doubt(vendors, &choice, job, now_us);
    } else if (!job->route.routed) {
        check_smtp(vendors, job, now_us);
    } else {
        note_wait(&asking, &choice, &job->route);
        if (job->route.count > 0) {
            job->place = vendor_ledger_place(job->route.targets[0], vendor_mail_key(job));
        }
    }
}

bool vendors_want_message(const JobRoute *route)
{
    bool any = !route->routed;
    for (size_t i = 0; i < route->count; i++) {
        const VendorApi *api = route->targets[i]->api;
        any = any || api == NULL || api->whole;
    }
    return any;
}

bool vendors_rewrite_message(const JobRoute *route)
{
    bool any = false;
    for (size_t i = 0; route->routed && i < route->count; i++) {
        const VendorApi *api = route->targets[i]->api;
        any = any || (api != NULL && api->rewrites);
    }
    return any;
}

// ---- CONFIG ----

// A refused credential is worth a try again: its entry, or its secret, is another one.
static void on_secret_changed(void *ctx, const SecretName *secret)
{
    const Vendors *vendors = ctx;
    char name[PLACE_NAME_SIZE];
    int used = snprintf(
        name, sizeof name, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(secret->owner),
        STR_ARG(secret->vendor), STR_ARG(secret->name));
    VendorPlace *place = used > 0 && (size_t)used < sizeof name
                             ? map_get(vendors->places, (Str){name, (size_t)used})
                             : NULL;
    if (place != NULL) {
        breaker_credential_changed(&place->breaker, clock_now_us());
        place->mended = !breaker_is_closed(&place->breaker);
    }
}

static bool credential_changed(Vendors *vendors, Str tenant, Str key, Error *err)
{
    Str vendor = STR_EMPTY;
    Str rest = key;
    (void)str_split(&rest, '.', &vendor);
    const SecretName name = {tenant, vendor, rest};
    const CredentialEntry *entry = routes_credential(vendors->routes, tenant, vendor, rest);
    if (entry == NULL || entry->state == STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_REVOKED) {
        secrets_forget(vendors->secrets, &name);
        return true;
    }
    on_secret_changed(vendors, &name);
    if (!credential_has_secret(entry)) {
        return true;
    }
    if (entry->state == STENTOR__V1__CREDENTIAL_STATE__CREDENTIAL_STATE_STAGED) {
        // Read already, so that it works at once when it is promoted.
        return secrets_stage(vendors->secrets, &name, str_from(entry->reference), err);
    }
    return secrets_want(vendors->secrets, &name, str_from(entry->reference), err);
}

static void count_route(Vendors *vendors, Str tenant, Str key)
{
    char name[PLACE_NAME_SIZE];
    int used = snprintf(name, sizeof name, STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(key));
    if (used <= 0 || (size_t)used >= sizeof name) {
        return;
    }
    if (routes_get(vendors->routes, tenant, key) != NULL) {
        map_put(vendors->known, (Str){name, (size_t)used}, vendors);
    } else {
        (void)map_remove(vendors->known, (Str){name, (size_t)used});
    }
}

bool vendors_changed(
    Vendors *vendors, Str kind, Str tenant, Str key, const BusMessage *message, Error *err)
{
    if (str_eq(kind, STR("route"))) {
        bool fine = routes_changed(vendors->routes, tenant, key, message->payload, err);
        count_route(vendors, tenant, key);
        return fine;
    }
    if (str_eq(kind, STR("credential"))) {
        return routes_credential_changed(vendors->routes, tenant, key, message->payload, err) &&
               credential_changed(vendors, tenant, key, err);
    }
    if (str_eq(kind, STR(CHANNEL_HEALTH_KIND))) {
        return vendors_put_entry(vendors, tenant, key, message, err);
    }
    return true;
}

// ---- start and stop ----

static VendorPlace *open_smtp(Vendors *vendors)
{
    VendorPlace *place =
        add_place(vendors, STR("platform/smtp/"), STR(ROUTING_PLATFORM), STR_EMPTY);
    place->vendor = vendors->parts.smtp;
    return place;
}

static VendorPlace *open_inapp(Vendors *vendors)
{
    VendorPlace *place =
        add_place(vendors, STR("platform/inapp/"), STR(ROUTING_PLATFORM), STR_EMPTY);
    place->vendor = inapp_vendor(vendors->parts.bus);
    return place;
}

static double read_down(void *ctx)
{
    const Vendors *vendors = ctx;
    double down = 0;
    Str name;
    void *value;
    for (size_t i = 0; map_next(vendors->places, &i, &name, &value);) {
        const VendorPlace *place = value;
        down += place->api != NULL && place->down_since_us > 0 ? 1 : 0;
    }
    return down;
}

void vendors_warn(const Vendors *vendors, Buf *warning)
{
    enum { LINES_MAX = 10 };
    Str name;
    void *value;
    int lines = 0;
    for (size_t i = 0; lines < LINES_MAX && map_next(vendors->places, &i, &name, &value);) {
        const VendorPlace *place = value;
        if (place->api == NULL || place->down_since_us == 0) {
            continue;
        }
        char since[CLOCK_RFC3339_SIZE];
        clock_format(place->down_since_us, since);
        buf_printf(
            warning, "%s%s with credential %s of %s fails since %s: %s",
            warning->len > 0 ? "; " : "", place->vendor.name, place->credential, place->owner,
            since, place->reason);
        lines++;
    }
}

static double read_routes(void *ctx)
{
    const Vendors *vendors = ctx;
    return (double)map_count(vendors->known);
}

// Each vendor keeps to its own number of calls, so a call waits there for nothing but its own
// vendor's, unless very many vendors are busy at once.
static bool open_clients(Vendors *vendors, Error *err)
{
    const VendorsParts *parts = &vendors->parts;
    vendors->client = http_client_new(
        parts->loop,
        &(HttpClientOptions){.calls = CALLS_MAX, .ca_file = parts->ca_file, .guard = &parts->guard},
        err);
    vendors->client2 = vendors->client == NULL ? NULL
                                               : http2_client_new(
                                                     parts->loop,
                                                     &(Http2ClientOptions){
                                                         .guard = &parts->guard,
                                                         .ca_file = parts->ca_file,
                                                         .connect_ms = parts->connect_ms},
                                                     err);
    return vendors->client2 != NULL;
}

Vendors *vendors_new(const VendorsParts *parts, Error *err)
{
    Vendors *vendors = xcalloc(1, sizeof *vendors);
    vendors->parts = *parts;
    if (!open_clients(vendors, err)) {
        free(vendors); // the process ends
        return NULL;
    }
    vendors->secrets = secrets_new(
        &(SecretsOptions){
            .loop = parts->loop,
            .metrics = parts->metrics,
            .service = "dispatcher",
            .folders = parts->secret_dirs,
            .on_changed = on_secret_changed,
            .ctx = vendors},
        err);
    if (vendors->secrets == NULL) {
        free(vendors); // the process ends
        return NULL;
    }
    vendors->routes = routes_new();
    vendors->places = map_new(free_place);
    vendors->budgets = parts->pool != NULL && parts->metrics != NULL
                           ? budgets_new(parts->pool, parts->instance, parts->metrics)
                           : NULL;
    vendors->outcomes = vendors_count_outcomes(vendors);
    vendors->endpoints = endpoints_new();
    vendors->known = map_new(NULL);
    vendors->entries = map_new(free);
    if (parts->metrics != NULL) {
        metrics_gauge_fn(
            parts->metrics, "stentor_dispatcher_routes", "",
            "Routes of vendors that CONFIG has, of all tenants", read_routes, vendors);
        metrics_gauge_fn(
            parts->metrics, "stentor_dispatcher_vendors_down", "",
            "Vendors' HTTP APIs that fail or refuse their credential, and are left alone for a "
            "while",
            read_down, vendors);
    }
    vendors->open = 1;
    vendors->smtp = open_smtp(vendors);
    vendors->inapp = parts->bus != NULL ? open_inapp(vendors) : NULL;
    return vendors;
}

void vendors_tick(Vendors *vendors)
{
    Str name;
    void *value;
    for (size_t i = 0; map_next(vendors->places, &i, &name, &value);) {
        vendors_store_state(value);
        if (!vendors->draining) {
            ask_quota(value, clock_mono_us());
        }
    }
    if (vendors->outcomes != NULL && !vendors->stopping) {
        outcome_counts_tick(vendors->outcomes, clock_mono_us());
    }
}

Secrets *vendors_secrets(const Vendors *vendors)
{
    return vendors->secrets;
}

size_t vendors_calls(const Vendors *vendors)
{
    return vendors->calls;
}

void vendors_drain(Vendors *vendors)
{
    vendors->draining = true;
    Str name;
    void *value;
    for (size_t i = 0; map_next(vendors->places, &i, &name, &value);) {
        const VendorPlace *place = value;
        if (place->http != NULL) { // the SMTP server's mails are its owner's to release
            place->vendor.drain(place->vendor.self);
        }
    }
}

static void on_budgets_closed(void *ctx)
{
    Vendors *vendors = ctx;
    vendors->on_stopped(vendors->stopped_ctx);
}

static void on_secrets_closed(void *ctx)
{
    Vendors *vendors = ctx;
    if (vendors->budgets != NULL) {
        budgets_close(vendors->budgets, on_budgets_closed, vendors);
    } else {
        vendors->on_stopped(vendors->stopped_ctx);
    }
}

static void on_client_freed(void *ctx)
{
    Vendors *vendors = ctx;
    vendors->client = NULL;
    secrets_close(vendors->secrets, on_secrets_closed, vendors);
}

static void on_client2_freed(void *ctx)
{
    Vendors *vendors = ctx;
    vendors->client2 = NULL;
    http_client_free(vendors->client, on_client_freed, vendors);
}

void vendors_part_closed(Vendors *vendors)
{
    vendors->open--;
    if (vendors->stopping && vendors->open == 1) {
        http2_client_free(vendors->client2, on_client2_freed, vendors);
    }
}

static void on_http_closed(void *ctx)
{
    VendorPlace *place = ctx;
    place->http = NULL;
    vendors_part_closed(place->vendors);
}

void vendors_stop(Vendors *vendors, void (*on_stopped)(void *ctx), void *ctx)
{
    vendors->stopping = true;
    vendors->on_stopped = on_stopped;
    vendors->stopped_ctx = ctx;
    vendors->open++;
    Str name;
    void *value;
    for (size_t i = 0; map_next(vendors->places, &i, &name, &value);) {
        VendorPlace *place = value;
        if (place->http != NULL) {
            http_vendor_close(place->http, on_http_closed, place);
        }
    }
    vendors_part_closed(vendors);
}

void vendors_free(Vendors *vendors)
{
    if (vendors != NULL) {
        map_free(vendors->places);
        map_free(vendors->entries);
        map_free(vendors->known);
        routes_free(vendors->routes);
        secrets_free(vendors->secrets);
        budgets_free(vendors->budgets);
        outcome_counts_free(vendors->outcomes);
        endpoints_free(vendors->endpoints);
        free(vendors);
    }
}
