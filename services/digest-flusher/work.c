// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/work.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/sealed.h"
#include "common/model/enums.h"

typedef Stentor__V1__Deferred Deferred;
typedef Stentor__V1__Meta Meta;

enum {
    CANCEL_KEY_MAX = 256,
    SOURCE_EVENT_MAX = 256,
    REASON_MAX = 512,
    RECIPIENT_MAX = 64,
    TEMPLATE_MAX = 96,
    LOCALE_MAX = 35
};

static const int64_t time_max_us = INT64_C(253402300800000000); // 10000-01-01

static bool is_time(int64_t at_us)
{
    return at_us > 0 && at_us < time_max_us;
}

// ---- the head ----

static bool read_meta(const Deferred *deferred, DueWork *work, Error *err)
{
    const Meta *meta = deferred->meta;
    if (meta == NULL) {
        return error_set(err, ERROR_PERMANENT, "meta is missing");
    }
    work->work_id = str_from(meta->event_id);
    work->tenant = str_from(meta->tenant);
    work->notification_id = str_from(meta->notification_id);
    work->reason = str_from(deferred->reason);
    work->due_at_us = deferred->due_at_us;
    work->cancel_key = str_from(deferred->cancel_key);
    if (work->work_id.len != EVENT_ID_LEN) {
        return error_set(err, ERROR_PERMANENT, "meta.event_id is not an event id");
    }
    if (!id_is_tenant(work->tenant)) {
        return error_set(err, ERROR_PERMANENT, "meta.tenant is not a tenant id");
    }
    return true;
}

// A cancellation concerns no notification, and its time is now.
static bool check_head(const DueWork *work, Error *err)
{
    if (!id_parse(work->notification_id, "ntf_", NULL)) {
        return error_set(err, ERROR_PERMANENT, "meta.notification_id is not a notification id");
    }
    if (!is_time(work->due_at_us)) {
        return error_set(err, ERROR_PERMANENT, "due_at_us is outside 1970..9999");
    }
    if (work->cancel_key.len > CANCEL_KEY_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "cancel_key has %zu bytes, at most %d are stored",
            work->cancel_key.len, CANCEL_KEY_MAX);
    }
    return true;
}

// ---- requests and rendered notifications ----

// The embedded event must be about the same notification, on a lane that exists.
static bool check_embedded(
    const Meta *meta, unsigned priority, const DueWork *work, const char *field, Error *err)
{
    if (meta == NULL) {
        return error_set(err, ERROR_PERMANENT, "%s.meta is missing", field);
    }
    if (!str_eq(str_from(meta->tenant), work->tenant) ||
        !str_eq(str_from(meta->notification_id), work->notification_id)) {
        return error_set(err, ERROR_PERMANENT, "%s.meta is about another notification", field);
    }
    if (priority == PRIORITY_NONE || priority >= PRIORITY_COUNT) {
        return error_set(err, ERROR_PERMANENT, "%s.priority %u is unknown", field, priority);
    }
    return true;
}

static bool read_request(const Deferred *deferred, Arena *arena, DueWork *work, Error *err)
{
    if (deferred->work_case != STENTOR__V1__DEFERRED__WORK_REQUEST) {
        return error_set(
            err, ERROR_PERMANENT, "reason is '%s', and request is missing", deferred->reason);
    }
    Stentor__V1__NotificationRequest *request = deferred->request;
    if (!check_embedded(request->meta, (unsigned)request->priority, work, "request", err)) {
        return false;
    }
    if (channel_name((Channel)request->channel)[0] == '\0') {
        return error_set(
            err, ERROR_PERMANENT, "request.channel %d is unknown", (int)request->channel);
    }
    // Critical mail ignores preferences, as at the gate.
    Str recipient = str_from(request->recipient_id);
    bool critical = (Priority)request->priority == PRIORITY_CRITICAL;
    work->to_recipient = recipient.len > RECIPIENT_MAX ? STR_EMPTY : recipient;
    work->recipient_id = critical ? STR_EMPTY : work->to_recipient;
    work->category = (Category)request->category;
    work->channel = (Channel)request->channel;
    // The earlier of the time in the id (the cause's, if the id is derived) and the acceptance.
    int64_t id_ms = 0;
    (void)id_parse(work->notification_id, "ntf_", &id_ms);
    bool earlier = is_time(request->accepted_at_us) && request->accepted_at_us < id_ms * 1000;
    work->caused_at_us = earlier ? request->accepted_at_us : id_ms * 1000;
    bool timed = is_time(request->source_event_at_us);
    work->event_at_us = timed ? request->source_event_at_us : work->caused_at_us;
    Str source = timed ? str_from(request->source_event_id) : STR_EMPTY;
    work->source_event_id = source.len > SOURCE_EVENT_MAX ? STR_EMPTY : source;
    work->accepted_at_us =
        is_time(request->accepted_at_us) ? request->accepted_at_us : work->caused_at_us;
    work->expires_at_us = is_time(request->expires_at_us) ? request->expires_at_us : 0;
    Str event_id = str_from(request->meta->event_id);
    if (event_id.len != EVENT_ID_LEN ||
        !str_to_c(event_id, work->event_id, sizeof(work->event_id))) {
        return error_set(err, ERROR_PERMANENT, "request.meta.event_id is not an event id");
    }
    request->due_at_us = work->due_at_us; // how late it is sent counts from here
    subject_request(work->subject, (Priority)request->priority, work->tenant);
    return event_pack(&request->base, arena, &work->payload, err);
}

static bool read_rendered(const Deferred *deferred, Arena *arena, DueWork *work, Error *err)
{
    if (deferred->work_case != STENTOR__V1__DEFERRED__WORK_RENDERED) {
        return error_set(err, ERROR_PERMANENT, "reason is 'retry', and rendered is missing");
    }
    Stentor__V1__Rendered *rendered = deferred->rendered;
    if (!check_embedded(rendered->meta, (unsigned)rendered->priority, work, "rendered", err)) {
        return false;
    }
    if (rendered->attempt == 0) {
        return error_set(err, ERROR_PERMANENT, "rendered.attempt is 0");
    }
    work->cancel_key = STR_EMPTY; // a retry cannot be cancelled
    work->attempt = rendered->attempt;
    Str recipient = str_from(rendered->recipient_id);
    work->to_recipient = recipient.len > RECIPIENT_MAX ? STR_EMPTY : recipient;
    // When it was to be sent: how long the oldest mail waits counts from here.
    int64_t wanted_us = rendered->due_at_us > 0 ? rendered->due_at_us : rendered->accepted_at_us;
    work->caused_at_us = is_time(wanted_us) ? wanted_us : 0;
    char attempt[12];
    snprintf(attempt, sizeof(attempt), "%" PRIu32, rendered->attempt);
    event_id_derive("rendered", work->notification_id, str_from(attempt), work->event_id);
    rendered->meta->event_id =
        work->event_id; // packed below: a message and its header have the same id
    subject_rendered(work->subject, (Priority)rendered->priority, work->tenant);
    return event_pack(&rendered->base, arena, &work->payload, err);
}

// ---- digests ----

static bool is_window_id(Str id)
{
    if (id.len != 4 + EVENT_ID_LEN || !str_starts(id, STR("dgw_"))) {
        return false;
    }
    for (size_t i = 4; i < id.len; i++) {
        char c = id.ptr[i];
        bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
        if (!allowed) {
            return false;
        }
    }
    return true;
}

static bool check_length(const char *field, const char *text, size_t max, Error *err)
{
    size_t len = str_from(text).len;
    return (len > 0 && len <= max) ||
           error_set(err, ERROR_PERMANENT, "%s has %zu bytes instead of 1 to %zu", field, len, max);
}

static bool check_window(const Stentor__V1__DigestWindow *window, Error *err)
{
    if (!is_window_id(str_from(window->window_id))) {
        return error_set(err, ERROR_PERMANENT, "digest.window_id is not a window id");
    }
    if (category_name((Category)window->category)[0] == '\0') {
        return error_set(
            err, ERROR_PERMANENT, "digest.category %d is unknown", (int)window->category);
    }
    if (!is_time(window->flush_at_us)) {
        return error_set(err, ERROR_PERMANENT, "digest.flush_at_us is outside 1970..9999");
    }
    if (str_from(window->locale).len > LOCALE_MAX) {
        return error_set(err, ERROR_PERMANENT, "digest.locale is longer than %d", LOCALE_MAX);
    }
    return check_length("digest.recipient_id", window->recipient_id, RECIPIENT_MAX, err) &&
           check_length("digest.template", window->template_, TEMPLATE_MAX, err) &&
           check_length("digest.template_version", window->template_version, TEMPLATE_MAX, err);
}

static bool read_item(const Deferred *deferred, Arena *arena, DueWork *work, Error *err)
{
    if (deferred->digest == NULL) {
        return error_set(err, ERROR_PERMANENT, "reason is 'digest', and digest is missing");
    }
    if (!read_request(deferred, arena, work, err) || !check_window(deferred->digest, err) ||
        // The digest is sent to an item's address, resealed under the same key.
        !sealed_check(deferred->request->address, "request.address", err)) {
        return false;
    }
    if (deferred->digest->channel != deferred->request->channel) {
        return error_set(err, ERROR_PERMANENT, "digest.channel is not the request's");
    }
    work->kind = WORK_GATHER;
    work->window = deferred->digest;
    return true;
}

// ---- cancellations ----

static bool read_cancel(const Deferred *deferred, DueWork *work, Error *err)
{
    if (deferred->work_case != STENTOR__V1__DEFERRED__WORK_CANCEL) {
        return error_set(err, ERROR_PERMANENT, "reason is 'cancel', and cancel is missing");
    }
    const Stentor__V1__Cancel *cancel = deferred->cancel;
    if (!check_length("cancel.cancel_key", cancel->cancel_key, CANCEL_KEY_MAX, err)) {
        return false;
    }
    if (!is_time(cancel->before_us)) {
        return error_set(err, ERROR_PERMANENT, "cancel.before_us is outside 1970..9999");
    }
    if (cancel->newer_at_us != 0 && !is_time(cancel->newer_at_us)) {
        return error_set(err, ERROR_PERMANENT, "cancel.newer_at_us is outside 1970..9999");
    }
    if (str_from(cancel->newer_event_id).len > SOURCE_EVENT_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "cancel.newer_event_id is longer than %d", SOURCE_EVENT_MAX);
    }
    if (str_from(cancel->reason).len > REASON_MAX) {
        return error_set(err, ERROR_PERMANENT, "cancel.reason is longer than %d", REASON_MAX);
    }
    work->kind = WORK_CANCEL;
    work->cancel = cancel;
    work->cancel_key = str_from(cancel->cancel_key);
    return true;
}

// ---- domain events ----

// The events that digest-flusher may publish: its NATS rights name them one by one
// (common/bus/topology/nats_rights.c), and a forbidden event would be retried for ever.
static bool is_publishable(Str type)
{
    return str_eq(type, STR("PlaceOrderTimeout")) || str_eq(type, STR("CleanUpOrders"));
}

static bool read_event(const Deferred *deferred, DueWork *work, Error *err)
{
    if (deferred->work_case != STENTOR__V1__DEFERRED__WORK_EVENT) {
        return error_set(err, ERROR_PERMANENT, "reason is 'saga', and event is missing");
    }
    const Stentor__V1__DomainEvent *event = deferred->event;
    if (!is_publishable(str_from(event->type))) {
        return error_set(
            err, ERROR_PERMANENT, "event.type '%.48s' is not one that digest-flusher may publish",
            event->type);
    }
    if (event->payload.len == 0) {
        return error_set(err, ERROR_PERMANENT, "event.payload is empty");
    }
    if (!is_time(work->due_at_us)) {
        return error_set(err, ERROR_PERMANENT, "due_at_us is outside 1970..9999");
    }
    work->notification_id = STR_EMPTY;
    work->cancel_key = STR_EMPTY;
    work->payload = pb_bytes(event->payload);
    (void)str_to_c(work->work_id, work->event_id, sizeof(work->event_id));
    subject_event(work->subject, work->tenant, str_from(event->type));
    return true;
}

// ---- tenants' webhooks ----

// About a status that has gone out: no cancellation, no preference and no audit of the notification
// concerns it.
static bool read_webhook(const Deferred *deferred, Arena *arena, DueWork *work, Error *err)
{
    if (deferred->work_case != STENTOR__V1__DEFERRED__WORK_WEBHOOK) {
        return error_set(err, ERROR_PERMANENT, "reason is 'hook', and webhook is missing");
    }
    const Stentor__V1__WebhookDelivery *delivery = deferred->webhook;
    if (delivery->meta == NULL || !str_eq(str_from(delivery->meta->tenant), work->tenant)) {
        return error_set(err, ERROR_PERMANENT, "webhook.meta is about another tenant");
    }
    Str event_id = str_from(delivery->meta->event_id);
    if (event_id.len != EVENT_ID_LEN ||
        !str_to_c(event_id, work->event_id, sizeof(work->event_id))) {
        return error_set(err, ERROR_PERMANENT, "webhook.meta.event_id is not an event id");
    }
    if (!is_time(work->due_at_us)) {
        return error_set(err, ERROR_PERMANENT, "due_at_us is outside 1970..9999");
    }
    work->notification_id = STR_EMPTY;
    work->cancel_key = STR_EMPTY;
    subject_hook(work->subject, work->tenant);
    return event_pack(&delivery->base, arena, &work->payload, err);
}

// ---- all ----

static bool read_work(const Deferred *deferred, Arena *arena, DueWork *work, Error *err)
{
    if (str_eq(work->reason, STR("cancel"))) {
        return read_cancel(deferred, work, err);
    }
    if (str_eq(work->reason, STR("saga"))) {
        return read_event(deferred, work, err);
    }
    if (str_eq(work->reason, STR("hook"))) {
        return read_webhook(deferred, arena, work, err);
    }
    if (!check_head(work, err)) {
        return false;
    }
    if (str_eq(work->reason, STR("schedule")) || str_eq(work->reason, STR("quiet")) ||
        str_eq(work->reason, STR("limit"))) {
        return read_request(deferred, arena, work, err);
    }
    if (str_eq(work->reason, STR("digest"))) {
        return read_item(deferred, arena, work, err);
    }
    if (str_eq(work->reason, STR("retry"))) {
        return read_rendered(deferred, arena, work, err);
    }
    return error_set(err, ERROR_PERMANENT, "reason '%.32s' is unknown", deferred->reason);
}

bool due_work_read(Str payload, Arena *arena, DueWork *ret_work, Error *err)
{
    ProtobufCMessage *message =
        event_unpack(&stentor__v1__deferred__descriptor, payload, arena, err);
    if (message == NULL) {
        return false;
    }
    const Deferred *deferred = (const Deferred *)message;
    DueWork work = {.kind = WORK_SEND};
    if (!read_meta(deferred, &work, err) || !read_work(deferred, arena, &work, err)) {
        return false;
    }
    *ret_work = work;
    return true;
}
