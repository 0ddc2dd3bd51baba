// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/suppressions/suppressions_api.h"

#include <assert.h>

#include "common/api/api_json.h"
#include "common/bus/events/suppression_event.h"
#include "common/codec/hash.h"
#include "common/model/address.h"
#include "services/gateway/suppressions/suppression_put.h"
#include "services/gateway/suppressions/suppressions_import.h"
#include "services/gateway/suppressions/suppressions_list.h"

enum { NAME_MAX_BYTES = 32 };

static_assert((int)SUPPRESSION_HASH_LEN == (int)ADDRESS_HASH_LEN, "both give the same hash");

bool suppressions_hash_address(
    const SuppressionsApi *api, ApiCall *call, Channel channel, Str text,
    uint8_t ret[SUPPRESSION_HASH_LEN], Str *ret_address, FieldError *err)
{
    char reason[ADDRESS_REASON_SIZE];
    *ret_address = text;
    if (channel == CHANNEL_EMAIL && !address_parse(text, call->http->arena, ret_address, reason)) {
        return field_error(err, "address", "%s", reason);
    }
    address_hash(api->hash_keys.keys[0], str_from(call->tenant), channel, *ret_address, ret);
    return true;
}

// ---- POST /v1/suppressions ----

typedef struct Fields {
    Str address;
    Str address_hash;
    Str channel;
    Str category;
    Str reason;
    Str note;
    int64_t expires_at_us;
} Fields;

static void take_fields(ApiBody *body, Fields *fields)
{
    (void)api_read_text(body, "address", ADDRESS_MAX, &fields->address);
    (void)api_read_text(body, "address_hash", 2 * ADDRESS_HASH_LEN, &fields->address_hash);
    (void)api_read_text(body, "channel", NAME_MAX_BYTES, &fields->channel);
    (void)api_read_text(body, "category", NAME_MAX_BYTES, &fields->category);
    (void)api_read_text(body, "reason", NAME_MAX_BYTES, &fields->reason);
    (void)api_read_text(body, "note", SUPPRESSION_NOTE_MAX, &fields->note);
    (void)api_read_time(body, "expires_at", &fields->expires_at_us);
    (void)api_body_end(body);
}

// false: the channel is none, and so is the address of it.
static bool read_names(ApiBody *body, const Fields *fields, SuppressionSpec *spec)
{
    spec->channel = CHANNEL_EMAIL;
    spec->category = CATEGORY_NONE;
    spec->reason = SUPPRESSION_MANUAL;
    bool one = fields->category.len > 0 && !str_eq(fields->category, STR("any"));
    if (one && !category_from_name(fields->category, &spec->category)) {
        (void)api_body_fail(body, "category", "not a category such as 'marketing', nor 'any'");
    }
    if (fields->reason.len > 0 && !suppression_reason_from_name(fields->reason, &spec->reason)) {
        (void)api_body_fail(
            body, "reason",
            "one of hard_bounce, complaint, invalid_address, opt_out, manual, compliance, "
            "rate_limit");
    }
    return fields->channel.len == 0 || channel_from_name(fields->channel, &spec->channel) ||
           api_body_fail(body, "channel", "not a channel: " CHANNEL_NAMES);
}

static bool read_hash(
    const SuppressionsApi *api, ApiCall *call, ApiBody *body, const Fields *fields,
    SuppressionSpec *spec, uint8_t hash[ADDRESS_HASH_LEN])
{
    if ((fields->address.len > 0) == (fields->address_hash.len > 0)) {
        return api_body_fail(body, "address", "give either 'address' or 'address_hash'");
    }
    size_t len = 0;
    FieldError err = {.field = ""};
    spec->hash = hash;
    if (fields->address.len > 0) {
        return suppressions_hash_address(
                   api, call, spec->channel, fields->address, hash, &spec->address, &err) ||
               api_body_fail(body, err.field, "%s", err.text);
    }
    bool good = hex_decode(fields->address_hash, hash, ADDRESS_HASH_LEN, &len);
    return (good && len == ADDRESS_HASH_LEN) ||
           api_body_fail(body, "address_hash", "not 64 hexadecimal digits");
}

static bool read_body(
    const SuppressionsApi *api, ApiCall *call, ApiBody *body, SuppressionSpec *spec,
    uint8_t hash[ADDRESS_HASH_LEN])
{
    Fields fields = {STR_EMPTY, STR_EMPTY, STR_EMPTY,         STR_EMPTY,
                     STR_EMPTY, STR_EMPTY, .expires_at_us = 0};
    take_fields(body, &fields);
    if (read_names(body, &fields, spec)) {
        (void)read_hash(api, call, body, &fields, spec, hash);
    }
    if (fields.expires_at_us != 0 && fields.expires_at_us <= call->http->received_at_us) {
        (void)api_body_fail(body, "expires_at", "must be in the future");
    }
    spec->expires_at_us = fields.expires_at_us;
    spec->note = fields.note;
    return api_body_good(body);
}

static void post_suppression(ApiCall *call)
{
    const SuppressionsApi *api = call->ctx;
    ApiBody body = {0};
    uint8_t hash[ADDRESS_HASH_LEN];
    SuppressionSpec spec = {
        .tenant = str_from(call->tenant),
        .at_us = call->http->received_at_us,
        .by = call->key_id,
        .address = STR_EMPTY,
        .notification_id = STR_EMPTY,
    };
    Precondition needs;
    if (!precondition_read(call, &needs)) {
        return;
    }
    bool ok = api_body_parse(&body, call->http->body, call->http->arena) &&
              read_body(api, call, &body, &spec, hash);
    if (!ok) {
        api_answer_problem(call, &body.problem);
    }
    api_body_free(&body);
    if (ok) {
        suppression_add(api, call, suppression_make(&spec, call->http->arena), &needs);
    }
}

#define LIST_QUERY "limit cursor channel reason state address address_hash"

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/suppressions", SCOPE_SUPPRESSIONS_READ, suppressions_list, LIST_QUERY, false},
    {"POST", "/v1/suppressions", SCOPE_SUPPRESSIONS_WRITE, post_suppression, NULL, true},
    {"GET", "/v1/suppressions/export", SCOPE_SUPPRESSIONS_EXPORT, suppressions_list, LIST_QUERY,
     false},
    {"POST", "/v1/suppressions/import", SCOPE_SUPPRESSIONS_WRITE, suppressions_import,
     "channel category reason note expires_at dry_run", false},
    {"GET", "/v1/suppressions/{}", SCOPE_SUPPRESSIONS_READ, suppressions_one, NULL, false},
    {"DELETE", "/v1/suppressions/{}", SCOPE_SUPPRESSIONS_WRITE, suppressions_one, NULL, true},
    {"POST", "/v1/suppressions/{}/release", SCOPE_SUPPRESSIONS_WRITE, suppressions_one, NULL, true},
};

void suppressions_api_add(Api *api, SuppressionsApi *suppressions)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], suppressions);
}
