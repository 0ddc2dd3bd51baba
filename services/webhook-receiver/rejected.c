// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/rejected.h"

#include <stdio.h>

#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "stentor/v1/inbound.pb-c.h"

static const char *const REASONS[REJECT_REASON_COUNT] = {
    [REJECT_UNSIGNED] = "unsigned",
    [REJECT_STALE] = "stale",
    [REJECT_BAD_SIGNATURE] = "bad_signature",
    [REJECT_CAPABILITY] = "capability",
    [REJECT_TOPIC] = "topic",
};

static void register_counts(Rejected *rejected, Metrics *metrics)
{
    for (size_t v = 0; v < REJECTED_VENDORS_MAX && vendor_callback_at(v) != NULL; v++) {
        for (int reason = 0; reason < REJECT_REASON_COUNT; reason++) {
            char labels[96];
            (void)snprintf(
                labels, sizeof labels, "vendor=\"%s\",reason=\"%s\"", vendor_callback_at(v)->name,
                REASONS[reason]);
            rejected->counts[v][reason] = metrics_counter(
                metrics, "stentor_webhook_receiver_callbacks_rejected_total", labels,
                "Callbacks refused, by why");
        }
    }
}

void rejected_init(Rejected *rejected, Bus *bus, Metrics *metrics)
{
    *rejected = (Rejected){.bus = bus, .tokens = REJECTED_BURST};
    register_counts(rejected, metrics);
    rejected->unrecorded = metrics_counter(
        metrics, "stentor_webhook_receiver_callbacks_unrecorded_total", "",
        "Refused callbacks that were too many to be recorded");
}

static bool take_token(Rejected *rejected, int64_t now_us)
{
    double passed_s = (double)(now_us - rejected->filled_us) / 1e6;
    if (rejected->filled_us > 0 && passed_s > 0) {
        rejected->tokens += passed_s * REJECTED_PER_S;
    }
    rejected->tokens = rejected->tokens > REJECTED_BURST ? REJECTED_BURST : rejected->tokens;
    rejected->filled_us = now_us;
    if (rejected->tokens < 1) {
        return false;
    }
    rejected->tokens -= 1;
    return true;
}

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    Rejected *rejected = ctx;
    if (err != NULL) {
        metric_add(rejected->unrecorded, 1);
    }
}

static bool pack(
    HttpRequest *http, Str tenant, const char *vendor, const char *reason, char *event_id, Str *ret,
    Error *err)
{
    uint8_t hash[SHA256_LEN];
    sha256(http->body, hash);
    event_id_derive("rejected", str_from(http->id), str_from(vendor), event_id);
    MetaSpec head = {
        .event_id = event_id,
        .tenant = arena_cstr(http->arena, tenant),
        .at_us = http->received_at_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    Stentor__V1__InboundCallback callback;
    stentor__v1__inbound_callback__init(&callback);
    callback.meta = &meta;
    callback.vendor = arena_cstr(http->arena, str_from(vendor));
    callback.rejected = arena_cstr(http->arena, str_from(reason));
    callback.body_bytes = (uint32_t)http->body.len;
    callback.received_at_us = http->received_at_us;
    if (http->body.len > 0) {
        callback.body_hash = (ProtobufCBinaryData){sizeof hash, hash};
    }
    return event_pack(&callback.base, http->arena, ret, err);
}

// Those of vendors by definition are recorded and not counted: their names are the operator's.
static void count(const Rejected *rejected, Str vendor, RejectReason reason)
{
    for (size_t v = 0; v < REJECTED_VENDORS_MAX && vendor_callback_at(v) != NULL; v++) {
        if (str_eq(vendor, str_from(vendor_callback_at(v)->name))) {
            metric_add(rejected->counts[v][reason], 1);
        }
    }
}

void rejected_note(
    Rejected *rejected, HttpRequest *http, Str tenant, Str vendor, RejectReason reason)
{
    char event_id[EVENT_ID_SIZE];
    char subject[SUBJECT_SIZE];
    Str payload = STR_EMPTY;
    count(rejected, vendor, reason);
    if (!take_token(rejected, http->received_at_us) ||
        !pack(
            http, tenant, arena_cstr(http->arena, vendor), REASONS[reason], event_id, &payload,
            NULL)) {
        metric_add(rejected->unrecorded, 1);
        return;
    }
    subject_inbound(subject, "rejected");
    BusOut out = {.subject = subject, .event_id = str_from(event_id), .payload = payload};
    bus_publish(rejected->bus, &out, on_bus_acked, rejected);
}
