// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/callback.h"

#include "common/base/crash.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "stentor/v1/inbound.pb-c.h"

#define SIGNATURE_HEADER "X-Twilio-Email-Event-Webhook-Signature"
#define TIMESTAMP_HEADER "X-Twilio-Email-Event-Webhook-Timestamp"

// Lives in the request's arena.
typedef struct Call {
    CallbackEndpoint *endpoint;
    HttpRequest *http;
} Call;

// ---- answers ----

static void answer_unavailable(CallbackEndpoint *endpoint, HttpRequest *http, const char *why)
{
    metric_add(endpoint->refused, 1);
    http_response_header(http, "Retry-After", STR("5"));
    http_problem(http, 503, "unavailable", "Temporarily unavailable", NULL, "%s", why);
}

static void answer_forbidden(CallbackEndpoint *endpoint, HttpRequest *http, const char *why)
{
    metric_add(endpoint->refused, 1);
    http_problem(http, 403, "bad-signature", "The signature is not valid", NULL, "%s", why);
}

// ---- storing ----

static void finish(Call *call, const Error *err)
{
    call->endpoint->waiting--;
    if (err != NULL) {
        answer_unavailable(call->endpoint, call->http, "the callback could not be stored");
        return;
    }
    CRASH_POINT("webhook.stored");
    metric_add(call->endpoint->taken, 1);
    http_respond(call->http, 200, "application/json", STR("{}"));
}

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate; // a vendor's retry of a stored callback is a success
    finish(ctx, err);
}

// The tenant is hashed too: the same bytes for two tenants are two callbacks.
static void derive_id(Str tenant, HttpRequest *http, char ret[EVENT_ID_SIZE])
{
    uint8_t hash[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    sha256(http->body, hash);
    hex_encode(hash, SHA256_LEN, hex);
    char *discriminator = arena_printf(http->arena, STR_FMT "/%s", STR_ARG(tenant), hex);
    event_id_derive("inbound", STR("sendgrid"), str_from(discriminator), ret);
}

static bool pack_callback(
    const CallbackEndpoint *endpoint, Str tenant, HttpRequest *http, char event_id[EVENT_ID_SIZE],
    Str *ret, Error *err)
{
    static char vendor[] = "sendgrid";
    derive_id(tenant, http, event_id);
    MetaSpec head = {
        .event_id = event_id,
        .tenant = arena_cstr(http->arena, tenant),
        .at_us = http->received_at_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    Stentor__V1__InboundCallback callback;
    stentor__v1__inbound_callback__init(&callback);
    callback.meta = &meta;
    callback.vendor = vendor;
    DataKey *key = data_key_for_tenant(endpoint->master, tenant);
    callback.body = seal(key, tenant, STR_EMPTY, "body", http->body, http->arena);
    data_key_free(key);
    callback.received_at_us = http->received_at_us;
    return event_pack(&callback.base, http->arena, ret, err);
}

// Killed after the publish and before the 200: the vendor sends it again, and JetStream recognises
// its id, which is derived from the body (tests/integration/faults/test_kill.py).
static void store(CallbackEndpoint *endpoint, Str tenant, HttpRequest *http)
{
    char event_id[EVENT_ID_SIZE];
    char subject[SUBJECT_SIZE];
    Str payload = STR_EMPTY;
    Error err = {0};
    if (!pack_callback(endpoint, tenant, http, event_id, &payload, &err)) {
        metric_add(endpoint->refused, 1);
        http_problem(http, 413, "too-large", "The callback is too large", NULL, "%s", err.text);
        return;
    }
    Call *call = arena_zalloc(http->arena, sizeof *call);
    *call = (Call){.endpoint = endpoint, .http = http};
    endpoint->waiting++;
    subject_inbound(subject, "sendgrid");
    BusOut out = {.subject = subject, .event_id = str_from(event_id), .payload = payload};
    bus_publish(endpoint->bus, &out, on_bus_acked, call);
}

// ---- checks ----

bool callback_route(Str path, Str *ret_tenant, Str *ret_vendor)
{
    Str prefix = STR("/v1/inbound/");
    if (!str_starts(path, prefix)) {
        return false;
    }
    Str rest = str_slice(path, prefix.len, path.len);
    return str_split(&rest, '/', ret_tenant) && id_is_tenant(*ret_tenant) &&
           (*ret_vendor = rest).len > 0 && str_find(rest, '/') < 0;
}

// Checks before the body arrives, which do not reveal which tenants have a key.
static bool check_headers(CallbackEndpoint *endpoint, HttpRequest *http)
{
    Str timestamp = http_header(http, TIMESTAMP_HEADER);
    if (timestamp.len == 0 || http_header(http, SIGNATURE_HEADER).len == 0) {
        answer_forbidden(
            endpoint, http, "the headers " SIGNATURE_HEADER " and -Timestamp are needed");
        return false;
    }
    if (!sendgrid_is_timestamp(timestamp)) {
        answer_forbidden(endpoint, http, "the timestamp does not have ten digits");
        return false;
    }
    if (!sendgrid_is_fresh(timestamp, http->received_at_us, endpoint->max_age_s)) {
        answer_forbidden(endpoint, http, "the timestamp is too old or in the future");
        return false;
    }
    return true;
}

bool callback_admit(CallbackEndpoint *endpoint, HttpRequest *request)
{
    Str tenant = STR_EMPTY;
    Str vendor = STR_EMPTY;
    if (!callback_route(request->path, &tenant, &vendor)) {
        metric_add(endpoint->refused, 1);
        http_problem(
            request, 404, "not-found", "Not found", NULL,
            "the path is /v1/inbound/<tenant>/sendgrid");
        return false;
    }
    if (!str_eq(request->method, STR("POST"))) {
        http_response_header(request, "Allow", STR("POST"));
        http_problem(request, 405, "method-not-allowed", "Only POST is allowed", NULL, "use POST");
        return false;
    }
    return check_headers(endpoint, request);
}

// A path without a key costs as much and answers the same as a wrong key.
static bool check_signature(CallbackEndpoint *endpoint, HttpRequest *http, Str tenant, Str vendor)
{
    const SendgridKey *key =
        str_eq(vendor, STR("sendgrid")) ? inbound_keys_sendgrid(endpoint->keys, tenant) : NULL;
    const SendgridKey *against = key != NULL ? key : inbound_keys_none(endpoint->keys);
    bool good = sendgrid_verify(
        against, http_header(http, TIMESTAMP_HEADER), http_header(http, SIGNATURE_HEADER),
        http->body);
    if (!good || key == NULL) {
        answer_forbidden(
            endpoint, http, "the signature does not match the tenant's key and this body");
        return false;
    }
    http_request_known(http);
    return true;
}

void callback_handle(CallbackEndpoint *endpoint, HttpRequest *request)
{
    Str tenant = STR_EMPTY;
    Str vendor = STR_EMPTY;
    (void)callback_route(request->path, &tenant, &vendor); // callback_admit has checked it
    if (!endpoint->ready(endpoint->ready_ctx) || endpoint->waiting >= CALLBACKS_MAX) {
        answer_unavailable(
            endpoint, request,
            "NATS cannot be reached, or too many callbacks are waiting; send it again");
    } else if (check_signature(endpoint, request, tenant, vendor)) {
        store(endpoint, tenant, request);
    }
}
