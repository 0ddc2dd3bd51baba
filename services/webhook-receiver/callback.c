// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/callback.h"

#include <stdio.h>

#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/jetstream/trace.h"
#include "common/bus/topology/topology.h"
#include "common/codec/bounce_token.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/codec/inbound_capability.h"
#include "common/events/meta.h"
#include "common/render/public_url.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/ses/sns.h"
#include "stentor/v1/inbound.pb-c.h"

enum { READS_MAX = 12, CHALLENGE_MAX = 128 };

// Lives in the request's arena.
typedef struct Call {
    size_t open; // parts that JetStream has not answered yet
    bool failed; // one of them was not stored
    CallbackEndpoint *endpoint;
    HttpRequest *http;
    CallbackRoute route;
    CallbackRequest request;
    const VendorDefinition *definition; // of a vendor by definition; valid until the loop turns
    SnsMessage sns;
    Str key; // the name of the one that fitted
} Call;

void callback_init(CallbackEndpoint *endpoint, Metrics *metrics)
{
    endpoint->taken = metrics_counter(
        metrics, "stentor_webhook_receiver_callbacks_total", "", "Callbacks stored");
    endpoint->refused = metrics_counter(
        metrics, "stentor_webhook_receiver_callbacks_refused_total", "", "Callbacks refused");
    for (int i = 0; i < INBOUND_KEYS_MAX; i++) {
        char labels[32];
        (void)snprintf(labels, sizeof labels, "place=\"%d\"", i + 1);
        endpoint->fitted[i] = metrics_counter(
            metrics, "stentor_webhook_receiver_key_fitted_total", labels,
            "Callbacks by the place of the key that fitted in its tenant's list");
    }
    rejected_init(&endpoint->rejected, endpoint->bus, metrics);
}

// ---- answers ----

static void answer_unavailable(CallbackEndpoint *endpoint, HttpRequest *http, const char *why)
{
    metric_add(endpoint->refused, 1);
    http_response_header(http, "Retry-After", STR("5"));
    http_problem(http, 503, "unavailable", "Temporarily unavailable", NULL, "%s", why);
}

static void answer_rejected(
    CallbackEndpoint *endpoint, HttpRequest *http, const CallbackRoute *route, RejectReason reason,
    const char *why)
{
    bool final = reason == REJECT_BAD_SIGNATURE;
    metric_add(endpoint->refused, 1);
    rejected_note(&endpoint->rejected, http, route->tenant, route->name, reason);
    if (route->vendor->reads == callback_basic_reads) {
        http_response_header(http, "WWW-Authenticate", STR("Basic realm=\"callbacks\""));
    }
    int unsigned_status = route->vendor->unsigned_status;
    bool again = reason == REJECT_UNSIGNED && unsigned_status != 0;
    http_problem(
        http,
        final   ? route->vendor->bad_status
        : again ? unsigned_status
                : 401,
        "bad-signature", "The signature is not valid", NULL, "%s", why);
}

// ---- storing ----

// What was stored of a callback that comes again is recognised.
static void finish(Call *call, const Error *err)
{
    call->failed = call->failed || err != NULL;
    if (--call->open > 0) {
        return;
    }
    call->endpoint->waiting--;
    if (call->failed) {
        answer_unavailable(call->endpoint, call->http, "the callback could not be stored");
        return;
    }
    CRASH_POINT("webhook.stored");
    metric_add(call->endpoint->taken, 1);
    const VendorCallback *vendor = call->route.vendor;
    bool own = vendor->answer != NULL;
    http_respond(
        call->http, 200, own ? vendor->answer_type : "application/json",
        own ? str_from(vendor->answer) : STR("{}"));
}

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate; // a vendor's retry of a stored callback is a success
    finish(ctx, err);
}

// The tenant is hashed too: the same bytes for two tenants are two callbacks. What the vendor says
// is the same in all repeats counts, else the bytes.
static void derive_id(const Call *call, size_t part, char ret[EVENT_ID_SIZE])
{
    uint8_t hash[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    const VendorCallback *vendor = call->route.vendor;
    Str same = vendor->repeat_key != NULL ? vendor->repeat_key(&call->request, call->http->arena)
                                          : STR_EMPTY;
    sha256(same.len > 0 ? same : call->http->body, hash);
    hex_encode(hash, SHA256_LEN, hex);
    Arena *arena = call->http->arena;
    char *discriminator = arena_printf(arena, STR_FMT "/%s", STR_ARG(call->route.tenant), hex);
    discriminator = part == 0 ? discriminator : arena_printf(arena, "%s/%zu", discriminator, part);
    event_id_derive("inbound", call->route.name, str_from(discriminator), ret);
}

static bool pack_callback(
    Call *call, Str body, size_t part, char event_id[EVENT_ID_SIZE], Str *ret, Error *err)
{
    HttpRequest *http = call->http;
    Str tenant = call->route.tenant;
    derive_id(call, part, event_id);
    MetaSpec head = {
        .event_id = event_id,
        .tenant = arena_cstr(http->arena, tenant),
        .at_us = http->received_at_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    Stentor__V1__InboundCallback callback;
    stentor__v1__inbound_callback__init(&callback);
    callback.meta = &meta;
    callback.vendor = arena_cstr(http->arena, call->route.name);
    callback.key = arena_cstr(http->arena, call->key);
    DataKey *key = data_key_for_tenant(call->endpoint->master, tenant);
    callback.body = seal(key, tenant, STR_EMPTY, "body", body, http->arena);
    data_key_free(key);
    callback.received_at_us = http->received_at_us;
    Str token = call->route.vendor->one_address ? STR_EMPTY : http_query(http, INBOUND_ATTEMPT);
    callback.attempt_token = arena_cstr(http->arena, str_slice(token, 0, BOUNCE_TOKEN_LEN));
    return event_pack(&callback.base, http->arena, ret, err);
}

// A body that one message does not hold, in parts.
static bool split(Call *call, Str **ret_parts, size_t *ret_count, Error *err)
{
    HttpRequest *http = call->http;
    const CallbackEndpoint *endpoint = call->endpoint;
    const VendorCallback *vendor = call->route.vendor;
    if (vendor->split == NULL || http->body.len <= endpoint->part_max) {
        *ret_parts = &http->body;
        *ret_count = 1;
        return true;
    }
    return vendor->split(http->body, endpoint->part_max, http->arena, ret_parts, ret_count, err);
}

// Of the mail that it reports about; empty: its URL has none.
static Str trace_of(const Call *call)
{
    Str attempt = http_query(call->http, INBOUND_ATTEMPT);
    Str trace = str_slice(attempt, BOUNCE_TOKEN_LEN + 1, attempt.len);
    bool is_one = !call->route.vendor->one_address && attempt.len > BOUNCE_TOKEN_LEN &&
                  attempt.ptr[BOUNCE_TOKEN_LEN] == '.' && trace_is_parent(trace);
    return is_one ? trace : STR_EMPTY;
}

static bool pack_parts(Call *call, BusOut **ret, size_t *ret_count, Error *err)
{
    Arena *arena = call->http->arena;
    Str *parts = NULL;
    if (!split(call, &parts, ret_count, err)) {
        return false;
    }
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    subject_inbound(subject, arena_cstr(call->http->arena, call->route.name));
    BusOut *out = arena_array(arena, *ret_count, sizeof *out);
    Str traceparent = trace_of(call);
    for (size_t i = 0; i < *ret_count; i++) {
        char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
        if (!pack_callback(call, parts[i], i, event_id, &out[i].payload, err)) {
            return false;
        }
        out[i].subject = subject;
        out[i].event_id = str_from(event_id);
        out[i].traceparent = traceparent;
    }
    *ret = out;
    return true;
}

// Killed after the publish and before the 200: the vendor sends it again, and JetStream recognises
// its id, which is derived from the body (tests/integration/faults/test_kill.py).
static void store(Call *call)
{
    BusOut *parts = NULL;
    size_t count = 0;
    Error err = {0};
    if (!pack_parts(call, &parts, &count, &err)) {
        call->endpoint->waiting--;
        metric_add(call->endpoint->refused, 1);
        http_problem(
            call->http, 413, "too-large", "The callback is too large", NULL, "%s", err.text);
        return;
    }
    call->open = count;
    if (count == 0) { // a webhook with nothing in it
        call->open = 1;
        finish(call, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        bus_publish(call->endpoint->bus, &parts[i], on_bus_acked, call);
    }
}

// ---- checks before the body ----

bool callback_route(Str path, CallbackRoute *ret)
{
    Str prefix = STR("/v1/inbound/");
    Str vendor = STR_EMPTY;
    if (!str_starts(path, prefix)) {
        return false;
    }
    Str rest = str_slice(path, prefix.len, path.len);
    bool whole = str_split(&rest, '/', &ret->tenant) && id_is_tenant(ret->tenant) &&
                 str_split(&rest, '/', &vendor);
    ret->vendor = whole ? vendor_callback_find(vendor) : NULL;
    ret->name = vendor;
    ret->capability = rest;
    // "a/" has an empty part, which is no capability.
    bool parted = whole && (size_t)(vendor.ptr + vendor.len - path.ptr) < path.len;
    return ret->vendor != NULL && str_find(rest, '/') < 0 && parted == (rest.len > 0);
}

static bool has_headers(const VendorCallback *vendor, const HttpRequest *http)
{
    for (size_t i = 0; vendor->needs_all && vendor->reads[i] != NULL; i++) {
        if (http_header(http, vendor->reads[i]).len == 0) {
            return false;
        }
    }
    return true;
}

// These reveal nothing about which tenants have a key: every tenant has a capability.
static bool check_head(CallbackEndpoint *endpoint, HttpRequest *http, const CallbackRoute *route)
{
    bool given = route->capability.len > 0;
    if ((given || route->vendor->needs_capability) &&
        !inbound_capability_fits(endpoint->master, route->tenant, route->name, route->capability)) {
        answer_rejected(
            endpoint, http, route, REJECT_CAPABILITY,
            "the path is not one that `stentor inbound url VENDOR` has shown");
        return false;
    }
    if (route->vendor->signs_url && endpoint->public_url.len == 0) {
        answer_unavailable(
            endpoint, http,
            "the vendor signs its URL, and " PUBLIC_URL_OPTION " of webhook-receiver is not set");
        return false;
    }
    if (str_eq(http->method, STR("GET"))) {
        return true;
    }
    if (!has_headers(route->vendor, http)) {
        answer_rejected(
            endpoint, http, route, REJECT_UNSIGNED, "a header that the vendor sends is missing");
        return false;
    }
    bool least = route->vendor->split == NULL && http->body_max < route->vendor->body_max;
    http->body_max = least ? http->body_max : route->vendor->body_max;
    return true;
}

bool callback_admit(CallbackEndpoint *endpoint, HttpRequest *request)
{
    CallbackRoute route;
    if (!callback_route(request->path, &route)) {
        metric_add(endpoint->refused, 1);
        http_problem(
            request, 404, "not-found", "Not found", NULL,
            "the path is /v1/inbound/<tenant>/<vendor>/<capability>, as `stentor inbound url "
            "VENDOR` "
            "shows it");
        return false;
    }
    bool asks = str_eq(request->method, STR("GET")) && route.vendor->challenges;
    if (!str_eq(request->method, STR("POST")) && !asks) {
        http_response_header(request, "Allow", STR("POST"));
        http_problem(request, 405, "method-not-allowed", "Only POST is allowed", NULL, "use POST");
        return false;
    }
    if (!endpoint->ready(endpoint->ready_ctx) || endpoint->waiting >= CALLBACKS_MAX) {
        answer_unavailable(
            endpoint, request,
            "NATS cannot be reached, or too many callbacks are waiting; send it again");
        return false;
    }
    return check_head(endpoint, request, &route);
}

// ---- the signature ----

static void reject(Call *call, RejectReason reason, const char *why)
{
    call->endpoint->waiting--;
    answer_rejected(call->endpoint, call->http, &call->route, reason, why);
}

static void reject_verdict(Call *call, CallbackVerdict verdict)
{
    if (verdict == CALLBACK_STALE) {
        reject(call, REJECT_STALE, "the signed time is too old or in the future");
    } else if (verdict == CALLBACK_UNSIGNED) {
        reject(call, REJECT_UNSIGNED, "the signature, or its time, does not have its form");
    } else {
        reject(
            call, REJECT_BAD_SIGNATURE,
            "the signature does not match the tenant's key and this body");
    }
}

static void on_confirmed(void *ctx, Str body, const Error *err)
{
    (void)body;
    Call *call = ctx;
    if (err != NULL) {
        call->endpoint->waiting--;
        LOG(LOG_WARN, "a subscription of SNS was not confirmed; SNS asks again",
            log_str("tenant", call->route.tenant), log_str("topic", call->sns.topic),
            log_error(err));
        answer_unavailable(call->endpoint, call->http, "SNS could not be asked; send it again");
        return;
    }
    LOG(LOG_INFO, "a subscription of SNS is confirmed", log_str("tenant", call->route.tenant),
        log_str("topic", call->sns.topic));
    store(call);
}

// Its topic is on the tenant's list, which is the operator's word for it.
static bool confirms(Call *call)
{
    if (!str_eq(call->sns.type, STR("SubscriptionConfirmation"))) {
        return false;
    }
    if (!sns_is_pinned(call->sns.subscribe_url, call->sns.topic)) {
        reject(call, REJECT_TOPIC, "'SubscribeURL' is not of the topic's own region");
        return true;
    }
    sns_confirm(call->endpoint->sns, call->sns.subscribe_url, on_confirmed, call);
    return true;
}

// One by definition whose tenant has none is as one without a key.
static bool verify(
    const Call *call, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    const VendorCallback *vendor = call->route.vendor;
    if (!vendor->by_definition) {
        return vendor->verify(&call->request, keys, key_count, ret, ret_key);
    }
    *ret = CALLBACK_BAD;
    return call->definition != NULL &&
           definition_verify(call->definition, &call->request, keys, key_count, ret, ret_key);
}

// A path without a key costs as much and answers the same as a wrong key.
static void check_signature(Call *call, const InboundForce *force)
{
    const CallbackKey *keys = force->keys;
    CallbackKey none = inbound_keys_none(call->endpoint->keys, call->route.vendor);
    CallbackVerdict verdict = CALLBACK_BAD;
    size_t which = 0;
    bool known = force->count > 0;
    bool good = verify(call, known ? keys : &none, known ? force->count : 1, &verdict, &which);
    if (!good && verdict == CALLBACK_BAD && force->missing > 0) {
        call->endpoint->waiting--; // it may be good under the one that is missing
        answer_unavailable(
            call->endpoint, call->http, "a key cannot be read, or is none; send it again");
        return;
    }
    if (!good || !known) {
        reject_verdict(call, good ? CALLBACK_BAD : verdict);
        return;
    }
    http_request_known(call->http);
    metric_add(call->endpoint->fitted[which], 1);
    call->key = arena_str(call->http->arena, keys[which].name);
    if (!confirms(call)) {
        store(call);
    }
}

static void on_certificate(void *ctx, Str pem, const Error *err)
{
    Call *call = ctx;
    if (err != NULL) {
        call->endpoint->waiting--;
        LOG(LOG_WARN, "the certificate of SNS was not fetched; SNS sends the message again",
            log_str("tenant", call->route.tenant), log_str("topic", call->sns.topic),
            log_error(err));
        answer_unavailable(call->endpoint, call->http, "SNS could not be asked; send it again");
        return;
    }
    check_signature(call, &(InboundForce){.keys = {{STR("fetched"), pem}}, .count = 1});
}

// Nothing is fetched for who does not know the capability and a topic of the list.
static void check_sns(Call *call, const InboundEntry *entry)
{
    InboundForce force;
    if (!sns_read(call->http->body, call->http->arena, &call->sns, NULL)) {
        reject(call, REJECT_UNSIGNED, "the body is no message of SNS");
        return;
    }
    if (entry == NULL || !inbound_keys_lists(entry, call->sns.topic)) {
        reject(call, REJECT_TOPIC, "its topic is not on the tenant's list");
        return;
    }
    inbound_keys_in_force(call->endpoint->keys, entry, call->http->received_at_us, &force);
    if (force.count + force.missing > 0) {
        check_signature(call, &force);
    } else if (!sns_is_certificate_url(call->sns.certificate_url, call->sns.topic)) {
        reject(call, REJECT_BAD_SIGNATURE, "'SigningCertURL' is not of the topic's own region");
    } else {
        sns_certificate(call->endpoint->sns, call->sns.certificate_url, on_certificate, call);
    }
}

static void check_keys(Call *call, const InboundEntry *entry)
{
    InboundForce force = {.count = 0};
    if (entry != NULL) {
        inbound_keys_in_force(call->endpoint->keys, entry, call->http->received_at_us, &force);
    }
    check_signature(call, &force);
}

// As the vendor was given it; of one that does not sign it the path is enough.
static Str url_of(const CallbackEndpoint *endpoint, HttpRequest *http)
{
    Str attempt = http_query(http, INBOUND_ATTEMPT);
    return str_from(arena_printf(
        http->arena, STR_FMT STR_FMT "%s" STR_FMT, STR_ARG(endpoint->public_url),
        STR_ARG(http->path), attempt.len > 0 ? "?" INBOUND_ATTEMPT "=" : "", STR_ARG(attempt)));
}

static VendorPair *read_headers(const Call *call, HttpRequest *http, size_t *ret_count)
{
    const VendorCallback *vendor = call->route.vendor;
    VendorPair *pairs = arena_array(http->arena, READS_MAX + 1, sizeof *pairs);
    const char *defined =
        call->definition != NULL ? definition_signature_header(call->definition) : NULL;
    *ret_count = 0;
    if (defined != NULL) {
        pairs[(*ret_count)++] = (VendorPair){str_from(defined), http_header(http, defined)};
    }
    for (size_t i = 0; vendor->reads != NULL && vendor->reads[i] != NULL && i < READS_MAX; i++) {
        pairs[(*ret_count)++] =
            (VendorPair){str_from(vendor->reads[i]), http_header(http, vendor->reads[i])};
    }
    return pairs;
}

// The vendor asks whether the address is ours: the token that it repeats is the one of the path,
// which check_head() has found to be the tenant's.
static void answer_challenge(
    CallbackEndpoint *endpoint, HttpRequest *http, const CallbackRoute *route)
{
    Str challenge = http_query(http, "hub.challenge");
    bool shaped = challenge.len > 0 && challenge.len <= CHALLENGE_MAX;
    for (size_t i = 0; shaped && i < challenge.len; i++) {
        shaped = ascii_is_alnum(challenge.ptr[i]);
    }
    if (!shaped || !str_eq(http_query(http, "hub.mode"), STR("subscribe")) ||
        !callback_equal(http_query(http, "hub.verify_token"), route->capability)) {
        metric_add(endpoint->refused, 1);
        http_problem(
            http, 403, "wrong-token", "The token is not the address's own", NULL,
            "'hub.verify_token' is the last part of the path, 'hub.mode' is subscribe, and "
            "'hub.challenge' has letters and digits");
        return;
    }
    http_respond(http, 200, "text/plain", challenge);
}

void callback_handle(CallbackEndpoint *endpoint, HttpRequest *http)
{
    Call *call = arena_zalloc(http->arena, sizeof *call);
    *call = (Call){.endpoint = endpoint, .http = http};
    (void)callback_route(http->path, &call->route); // callback_admit has checked it
    const VendorCallback *vendor = call->route.vendor;
    if (str_eq(http->method, STR("GET"))) {
        answer_challenge(endpoint, http, &call->route);
        return;
    }
    call->request = (CallbackRequest){
        .url = url_of(endpoint, http),
        .body = http->body,
        .received_at_us = http->received_at_us,
        .max_age_s = endpoint->max_age_s,
    };
    if (vendor->by_definition) {
        call->definition =
            definitions_find(endpoint->definitions, call->route.tenant, call->route.name);
    }
    call->request.headers = read_headers(call, http, &call->request.header_count);
    endpoint->waiting++;
    const InboundEntry *entry =
        inbound_keys_find(endpoint->keys, call->route.tenant, call->route.name);
    if (str_eq(str_from(vendor->name), STR("ses"))) {
        check_sns(call, entry);
    } else {
        check_keys(call, entry);
    }
}
