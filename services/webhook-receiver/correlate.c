// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/correlate.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/bus/events/status_event.h"
#include "common/bus/events/suppression_event.h"
#include "common/codec/bounce_token.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/config/config_store.h"
#include "common/events/meta.h"
#include "common/events/status.h"
#include "common/vendor/callback_read.h"
#include "services/webhook-receiver/lmtp/mail_intake.h"
#include "services/webhook-receiver/mail/mail_work.h"
#include "services/webhook-receiver/reply_event.h"
#include "services/webhook-receiver/tracing/callback_span.h"
#include "stentor/v1/inbound.pb-c.h"

// Few at once: a callback may hold CALLBACK_EVENTS_MAX events, all published in one turn of the
// loop.
enum {
    BATCH_MAX = 2,
    IN_FLIGHT_MAX = 2,
    OUTPUTS_MAX = 3,
    KEYS_MAX = 10000
}; // a reply has no status
static_assert(
    IN_FLIGHT_MAX * OUTPUTS_MAX * CALLBACK_EVENTS_MAX <= BUS_PENDING_MAX,
    "callbacks in flight have more events than the bus may hold");

typedef struct Counters {
    Metric *status[STATUS_COUNT];
    Metric *ignored;
    Metric *unreadable;
    Metric *unknown; // without a notification id
    Metric *late;    // old enough to be a repeat that STATUS would not recognise
    Metric *machine;
    Metric *suppressed;
    Metric *foreign;
    Metric *replies;
} Counters;

struct Correlator {
    Bus *bus;
    Worker *worker;
    MasterKey *master;
    const Suppressions *known;
    const InboundKeys *inbound;
    Definitions *definitions;
    Tracer *tracer; // NULL: no traces
    MailWork *mails;
    int open;  // parts that are not stopped yet
    Map *keys; // tenant -> DataKey, derived from the master key
    BounceKey token_key;
    Counters counters;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// ---- one event ----

// What makes an event the same when it comes again. SendGrid's ids are for ever, and those that are
// made of a mail; others' are not
// (Mailgun's hold for a day), or there are none, so the message and the time stand beside them.
// Without any it is known by its place in the callback, whose id is derived from its bytes.
static Str vendor_cause(const CallbackEvent *event, const CallbackOrigin *origin, Arena *arena)
{
    bool for_ever = origin->is_mail || str_eq(origin->vendor, STR("sendgrid"));
    if (for_ever && event->id.len > 0) {
        return event->id;
    }
    Str id = event->id.len > 0 ? event->id : event->message_id;
    id = id.len > 0 ? id : event->notification_id;
    return id.len > 0 && event->at_us > 0
               ? str_from(arena_printf(
                     arena, STR_FMT "/" STR_FMT "/" STR_FMT "/%" PRId64, STR_ARG(origin->vendor),
                     STR_ARG(origin->tenant), STR_ARG(id), event->at_us))
               : str_from(
                     arena_printf(arena, STR_FMT "/%zu", STR_ARG(origin->event_id), origin->index));
}

static int64_t event_time(const CallbackEvent *event, const CallbackOrigin *origin)
{
    return event->at_us > 0 ? event->at_us : origin->received_at_us;
}

void correlate_name(CallbackEvent *event, const CallbackOrigin *origin)
{
    if (event->notification_id.len == 0 && origin->notification_id.len > 0) {
        event->notification_id = origin->notification_id;
        event->attempt = origin->attempt;
    }
}

bool correlate_is_late(const CallbackEvent *event, const CallbackOrigin *origin, int64_t now_us)
{
    int64_t age_us = now_us - event_time(event, origin);
    bool timeless = event->at_us == 0 && !origin->is_mail;
    return event->notification_id.len == 0 || timeless ||
           age_us > CORRELATE_LATE_S * INT64_C(1000000) ||
           callback_is_unanswered(origin->channel, event->reason_code);
}

static Stentor__V1__Meta *make_meta(
    const CallbackEvent *event, const CallbackOrigin *origin, Arena *arena)
{
    Str cause = vendor_cause(event, origin, arena);
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    event_id_derive("status", cause, str_from(status_name(event->status)), id);
    MetaSpec head = {
        .event_id = id,
        .tenant = pb_text(arena, origin->tenant),
        .notification_id = pb_text(arena, event->notification_id),
        .causation_id = pb_text(arena, origin->event_id),
        .at_us = event_time(event, origin),
    };
    Stentor__V1__Meta *meta = arena_alloc(arena, sizeof *meta);
    *meta = meta_make(&head);
    return meta;
}

// A vendor's text may name the recipient. E-mail addresses and phone numbers are masked in it
// already (callback_words).
static char *text_of(const CallbackEvent *event, const CallbackOrigin *origin, Arena *arena)
{
    if (origin->channel == CHANNEL_EMAIL || event->text.len == 0) {
        return pb_text(arena, event->text);
    }
    size_t room = 2 * CALLBACK_TEXT_MAX + 4;
    char *shown = arena_alloc(arena, room);
    mask_known(event->text, event->email, shown, room);
    return pb_text(arena, callback_cut(str_from(shown), CALLBACK_TEXT_MAX));
}

// Number 0: a vendor's report is about the notification, whichever attempt brought it.
static Stentor__V1__Attempt *make_attempt(
    const CallbackEvent *event, const CallbackOrigin *origin, Arena *arena)
{
    Stentor__V1__Attempt *attempt = arena_alloc(arena, sizeof *attempt);
    stentor__v1__attempt__init(attempt);
    attempt->vendor = pb_text(arena, origin->vendor);
    attempt->vendor_message_id = pb_text(arena, event->message_id);
    attempt->outcome = (Stentor__V1__Outcome)event->outcome;
    attempt->enhanced_code = pb_text(arena, event->enhanced_code);
    attempt->text = text_of(event, origin, arena);
    attempt->finished_at_us = event_time(event, origin);
    attempt->machine = event->machine;
    attempt->segments = event->segments;
    attempt->cost_micros = event->cost_micros;
    attempt->currency = pb_text(arena, event->currency);
    attempt->price_category = pb_text(arena, event->price_category);
    attempt->of_attempt = (uint32_t)event->attempt;
    return attempt;
}

Stentor__V1__NotificationStatus *correlate_status(
    const CallbackEvent *event, const CallbackOrigin *origin, Arena *arena)
{
    StatusSpec spec = {
        .meta = make_meta(event, origin, arena),
        .status = event->status,
        .reason_code = event->reason_code,
        .reason = event->reason_code[0] != '\0' ? text_of(event, origin, arena) : "",
    };
    Stentor__V1__NotificationStatus *status = arena_alloc(arena, sizeof *status);
    *status = status_make(&spec, origin->channel);
    status->attempt = make_attempt(event, origin, arena);
    return status;
}

bool correlate_settle(
    const CallbackEvent *event, const CallbackOrigin *origin, bool late, Arena *arena, BusOut *ret,
    Error *err)
{
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    Stentor__V1__NotificationStatus *status = correlate_status(event, origin, arena);
    status->attempt->number = (uint32_t)event->attempt;
    status->unpublished = late;
    status->untimed = event->at_us == 0;
    subject_settle(subject, origin->tenant);
    event_id_derive(
        "settle", vendor_cause(event, origin, arena), str_from(status_name(event->status)),
        event_id);
    *ret = (BusOut){.subject = subject, .event_id = str_from(event_id)};
    return event_pack(&status->base, arena, &ret->payload, err);
}

// The same for all repeats, whatever else of them differs. Empty: it names no message.
static Str timeless_id(const CallbackEvent *event, const CallbackOrigin *origin, Arena *arena)
{
    if (event->message_id.len == 0) {
        return STR_EMPTY;
    }
    char *id = arena_alloc(arena, EVENT_ID_SIZE);
    const char *cause = arena_printf(
        arena, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(origin->vendor), STR_ARG(origin->tenant),
        STR_ARG(event->message_id));
    event_id_derive(
        "cause", str_from(cause), str_from(suppression_reason_name(event->suppress)), id);
    return str_from(id);
}

bool correlate_suppression(
    const CallbackEvent *event, const CallbackOrigin *origin, Str hash_key,
    const Suppressions *known, Arena *arena, Stentor__V1__Suppression **ret)
{
    // A full mailbox bounces too; only a permanent failure suppresses.
    bool passing =
        event->suppress == SUPPRESSION_HARD_BOUNCE && str_starts(event->enhanced_code, STR("4"));
    bool has_address = event->email.len > 0 || event->address_hash != NULL;
    if (event->suppress == SUPPRESSION_NONE || !has_address || passing) {
        return false;
    }
    bool has_time = event->at_us > 0 && event->at_us < origin->received_at_us;
    uint8_t hash[ADDRESS_HASH_LEN];
    if (event->email.len > 0) {
        address_hash(hash_key, origin->tenant, origin->channel, event->email, hash);
    } else {
        memcpy(hash, event->address_hash, sizeof hash);
    }
    // A vendor of numbers that refuses for an opt-out has heard a STOP itself.
    bool by_reply = event->suppress == SUPPRESSION_OPT_OUT && origin->channel != CHANNEL_EMAIL;
    SuppressionSpec spec = {
        .tenant = origin->tenant,
        .channel = origin->channel,
        .hash = hash,
        .reason = event->suppress,
        .at_us = has_time ? event->at_us : origin->received_at_us,
        .by = by_reply ? STR(SUPPRESSION_BY_REPLY) : STR("vendor"),
        .note = event->text,
        .notification_id = event->notification_id,
        .address = event->email,
        .source_event_id = has_time ? STR_EMPTY : timeless_id(event, origin, arena),
    };
    *ret = suppression_make(&spec, arena);
    return suppressions_wants(
               known, spec.tenant, spec.channel, spec.category, hash, spec.reason, spec.at_us,
               suppression_cause(*ret)) &&
           suppression_check(*ret, NULL);
}

// ---- one callback ----

static void free_data_key(void *value)
{
    data_key_free(value);
}

static DataKey *find_key(Correlator *c, Str tenant)
{
    DataKey *key = map_get(c->keys, tenant);
    if (key == NULL) {
        if (map_count(c->keys) >= KEYS_MAX) { // derived again when needed; a bound, not a policy
            map_free(c->keys);
            c->keys = map_new(free_data_key);
        }
        key = data_key_for_tenant(c->master, tenant);
        map_put(c->keys, tenant, key);
    }
    return key;
}

// Whose URL it came by. A token that was not made here is none.
static void read_token(Correlator *c, Str text, CallbackOrigin *origin, Arena *arena)
{
    BounceToken token;
    if (bounce_token_read(text, &token) &&
        bounce_token_check(&c->token_key, &token, origin->tenant)) {
        origin->notification_id = arena_str(arena, str_from(token.notification_id));
        origin->attempt = token.attempt;
    }
}

// *ret_vendor NULL: a mail, or nothing is to be read.
static bool open_callback(
    Correlator *c, Delivery *delivery, CallbackOrigin *ret_origin,
    const VendorCallback **ret_vendor, Str *ret_body, Error *err)
{
    Arena *arena = delivery->arena;
    const Stentor__V1__InboundCallback *callback =
        (const Stentor__V1__InboundCallback *)event_unpack(
            &stentor__v1__inbound_callback__descriptor, delivery->message.payload, arena, err);
    if (callback == NULL) {
        return false;
    }
    if (callback->rejected[0] != '\0') {
        return true; // kept for whoever asks why it was refused
    }
    if (callback->meta == NULL || callback->body == NULL ||
        !id_is_tenant(str_from(callback->meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "the stored callback has no tenant or no body");
    }
    bool is_mail = str_eq(str_from(callback->vendor), STR(MAIL_VENDOR));
    const VendorCallback *vendor = vendor_callback_find(str_from(callback->vendor));
    if (vendor == NULL && !is_mail) {
        return error_set(
            err, ERROR_PERMANENT, "the stored callback is of unknown vendor '%.40s'",
            callback->vendor);
    }
    Str tenant = str_from(callback->meta->tenant);
    *ret_origin = (CallbackOrigin){
        .tenant = tenant,
        .vendor = is_mail ? STR("smtp") : str_from(callback->vendor), // what went by SMTP bounces
        .channel = is_mail ? CHANNEL_EMAIL : vendor->channel,
        .is_mail = is_mail,
        .event_id = str_from(callback->meta->event_id),
        .received_at_us = callback->received_at_us,
    };
    *ret_vendor = vendor;
    read_token(c, str_from(callback->attempt_token), ret_origin, arena);
    return unseal(
        find_key(c, tenant), tenant, STR_EMPTY, "body", callback->body, arena, ret_body, err);
}

static void on_suppression_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    delivery_held(ctx, err);
}

static void emit_suppression(
    Correlator *c, Delivery *delivery, const CallbackEvent *event, const CallbackOrigin *origin)
{
    Stentor__V1__Suppression *suppression = NULL;
    if (!correlate_suppression(
            event, origin, master_hash_key(c->master), c->known, delivery->arena, &suppression)) {
        return;
    }
    delivery_hold(delivery);
    suppression_store(
        c->bus, c->known, suppression, delivery->message.traceparent, delivery->arena,
        on_suppression_stored, delivery);
    metric_add(c->counters.suppressed, 1);
}

static bool emit_reply(
    Correlator *c, Delivery *delivery, const CallbackEvent *event, const CallbackOrigin *origin,
    Error *err)
{
    BusOut out = {0};
    ReplyKeys keys = {find_key(c, origin->tenant), master_hash_key(c->master)};
    if (!reply_event(event, origin, &keys, delivery->arena, &out, err)) {
        return false;
    }
    out.traceparent = delivery->message.traceparent;
    delivery_emit(delivery, &out);
    metric_add(c->counters.replies, 1);
    return true;
}

// Opened or followed by a program, or passed on by the vendor: it proves that the vendor had the
// message, and no more.
static bool is_only_proof(const CallbackEvent *event)
{
    return (event->machine && event->status == STATUS_OPENED) || event->status == STATUS_SENT;
}

static bool emit_event(
    Correlator *c, Delivery *delivery, const CallbackEvent *event, const CallbackOrigin *origin,
    Error *err)
{
    emit_suppression(c, delivery, event, origin);
    if (event->reply != NULL && !emit_reply(c, delivery, event, origin, err)) {
        return false;
    }
    if (event->status == STATUS_NONE) {
        return true;
    }
    bool proof = is_only_proof(event);
    if (proof && event->machine) {
        metric_add(c->counters.machine, 1);
    }
    if (proof && event->notification_id.len == 0) {
        return true;
    }
    int64_t now_us = clock_now_us();
    bool late = !proof && correlate_is_late(event, origin, now_us);
    if (late) {
        metric_add(event->notification_id.len == 0 ? c->counters.unknown : c->counters.late, 1);
    }
    BusOut out = {0};
    if (!proof && !late) {
        const Stentor__V1__NotificationStatus *status =
            correlate_status(event, origin, delivery->arena);
        if (!status_event(status, delivery->message.traceparent, delivery->arena, &out, err)) {
            return false;
        }
        delivery_emit(delivery, &out);
        metric_add(c->counters.status[event->status], 1);
    }
    BusOut settle = {0};
    if (!correlate_settle(event, origin, late, delivery->arena, &settle, err)) {
        return false;
    }
    settle.traceparent = delivery->message.traceparent;
    delivery_emit(delivery, &settle);
    if (!proof) {
        callback_span(
            c->tracer, event, origin, settle.event_id, delivery->message.traceparent, now_us);
    }
    return true;
}

// Of a number at the vendor that is not on the tenant's list: another tenant's, whose app calls the
// same address.
static bool is_foreign(
    const Correlator *c, const CallbackEvent *event, const CallbackOrigin *origin)
{
    const VendorCallback *vendor = origin->is_mail ? NULL : vendor_callback_find(origin->vendor);
    if (vendor == NULL || vendor->account_setting == NULL) {
        return false;
    }
    const InboundEntry *entry = inbound_keys_find(c->inbound, origin->tenant, origin->vendor);
    if (entry != NULL && inbound_keys_lists(entry, event->account)) {
        return false;
    }
    metric_add(c->counters.foreign, 1);
    LOG(LOG_DEBUG, "an event is about a number that is not the tenant's; it changes nothing",
        log_str("tenant", origin->tenant), log_str("vendor", origin->vendor),
        log_str("number", event->account));
    return true;
}

// Killed anywhere before the ack: the callback is redelivered and makes the same events with the
// same ids (tests/integration/faults/test_kill.py).
static bool correlate(
    Correlator *c, Delivery *delivery, CallbackOrigin *origin, const CallbackBatch *batch,
    Error *err)
{
    metric_add(c->counters.ignored, (double)batch->ignored);
    metric_add(c->counters.unreadable, (double)batch->unreadable);
    for (size_t i = 0; i < batch->count; i++) {
        origin->index = i;
        if (is_foreign(c, &batch->events[i], origin)) {
            continue;
        }
        correlate_name(&batch->events[i], origin);
        if (!emit_event(c, delivery, &batch->events[i], origin, err)) {
            return false;
        }
    }
    return true;
}

// ---- one mail ----

typedef struct MailReading {
    Correlator *correlator;
    Delivery *delivery;
    CallbackOrigin origin;
} MailReading;

static void on_mail_worked(void *ctx, const CallbackBatch *batch, const Error *err)
{
    MailReading *reading = ctx;
    Error bad = {0};
    if (err == NULL &&
        !correlate(reading->correlator, reading->delivery, &reading->origin, batch, &bad)) {
        err = &bad;
    }
    delivery_settle(reading->delivery, err);
}

static void read_mail(Correlator *c, Delivery *delivery, const CallbackOrigin *origin, Str body)
{
    MailReading *reading = arena_zalloc(delivery->arena, sizeof *reading);
    *reading = (MailReading){.correlator = c, .delivery = delivery, .origin = *origin};
    MailInput input = {
        .tenant = origin->tenant, .body = body, .received_at_us = origin->received_at_us};
    mail_work_read(c->mails, &input, delivery->arena, on_mail_worked, reading);
}

// ---- a batch ----

static bool read_events(
    Correlator *c, const CallbackOrigin *origin, const VendorCallback *vendor, Str body,
    Arena *arena, CallbackBatch *ret, Error *err)
{
    if (vendor == NULL || !vendor->by_definition) {
        return vendor == NULL || vendor->events(body, arena, ret, err);
    }
    const VendorDefinition *definition =
        definitions_find(c->definitions, origin->tenant, origin->vendor);
    return definition != NULL
               ? definition_events(definition, body, arena, ret, err)
               : error_set(
                     err, ERROR_PERMANENT,
                     "vendor '" STR_FMT "' has no active credential, so no definition, any more",
                     STR_ARG(origin->vendor));
}

static void take(Correlator *c, Delivery *delivery)
{
    CallbackOrigin origin = {0};
    CallbackBatch batch = {0};
    const VendorCallback *vendor = NULL;
    Str body = STR_EMPTY;
    Error err = {0};
    bool ok = open_callback(c, delivery, &origin, &vendor, &body, &err);
    if (ok && origin.is_mail) {
        read_mail(c, delivery, &origin, body);
        return;
    }
    ok = ok && read_events(c, &origin, vendor, body, delivery->arena, &batch, &err) &&
         correlate(c, delivery, &origin, &batch, &err);
    delivery_settle(delivery, ok ? NULL : &err);
}

static void on_worker_batch(void *ctx, Delivery **deliveries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        take(ctx, deliveries[i]);
    }
}

// ---- start and stop ----

static void register_metrics(Counters *counters, Metrics *metrics)
{
    static const char *const LABELS[STATUS_COUNT] = {
        [STATUS_DELIVERED] = "status=\"delivered\"", [STATUS_OPENED] = "status=\"opened\"",
        [STATUS_CLICKED] = "status=\"clicked\"",     [STATUS_FAILED] = "status=\"failed\"",
        [STATUS_BOUNCED] = "status=\"bounced\"",     [STATUS_COMPLAINED] = "status=\"complained\"",
    };
    for (int i = 0; i < STATUS_COUNT; i++) {
        if (LABELS[i] != NULL) {
            counters->status[i] = metrics_counter(
                metrics, "stentor_webhook_receiver_events_total", LABELS[i],
                "Vendor events published as a status");
        }
    }
    counters->ignored = metrics_counter(
        metrics, "stentor_webhook_receiver_events_ignored_total", "",
        "Vendor events that change no status");
    counters->unreadable = metrics_counter(
        metrics, "stentor_webhook_receiver_events_unreadable_total", "",
        "Vendor events without an event type");
    counters->unknown = metrics_counter(
        metrics, "stentor_webhook_receiver_events_unknown_total", "",
        "Vendor events that name no notification of ours");
    counters->late = metrics_counter(
        metrics, "stentor_webhook_receiver_events_late_total", "",
        "Vendor events that the dispatcher publishes unless they came before");
    counters->machine = metrics_counter(
        metrics, "stentor_webhook_receiver_events_machine_total", "",
        "Mails opened by a program, which change no status");
    counters->suppressed = metrics_counter(
        metrics, "stentor_webhook_receiver_suppressions_total", "",
        "Suppressions made from vendor events");
    counters->foreign = metrics_counter(
        metrics, "stentor_webhook_receiver_events_foreign_total", "",
        "Vendor events about a number that is not on the tenant's list");
    counters->replies = metrics_counter(
        metrics, "stentor_webhook_receiver_replies_total", "",
        "Messages of recipients published on REPLIES");
}

Correlator *correlator_new(
    Bus *bus, MasterKey *master, const Suppressions *known, const InboundKeys *inbound,
    Definitions *definitions, Metrics *metrics, Tracer *tracer)
{
    Correlator *c = xcalloc(1, sizeof *c);
    c->tracer = tracer;
    c->bus = bus;
    c->master = master;
    c->known = known;
    c->inbound = inbound;
    c->definitions = definitions;
    c->keys = map_new(free_data_key);
    bounce_key(master, &c->token_key);
    c->mails = mail_work_new(bus_loop(bus), master);
    register_metrics(&c->counters, metrics);
    WorkerOptions options = {
        .consumer = topology_consumer("stentor-webhook-receiver", "INBOUND"),
        .batch_max = BATCH_MAX,
        .in_flight_max = IN_FLIGHT_MAX,
        .stage = "webhook-receiver",
    };
    c->worker = worker_new(bus, &options, on_worker_batch, c);
    return c;
}

void correlator_start(Correlator *c)
{
    worker_start(c->worker);
}

static void on_part_stopped(void *ctx)
{
    Correlator *c = ctx;
    if (--c->open == 0) {
        c->on_stopped(c->stopped_ctx);
    }
}

// Mails that are being read are given back: another process reads them from the beginning.
void correlator_stop(Correlator *c, void (*on_stopped)(void *ctx), void *ctx)
{
    c->on_stopped = on_stopped;
    c->stopped_ctx = ctx;
    c->open = 2;
    worker_stop(c->worker, on_part_stopped, c);
    mail_work_free(c->mails, on_part_stopped, c);
}

static void on_worker_freed(void *ctx)
{
    Correlator *c = ctx;
    map_free(c->keys);
    c->on_freed(c->freed_ctx);
    free(c);
}

void correlator_free(Correlator *c, void (*on_freed)(void *ctx), void *ctx)
{
    c->on_freed = on_freed;
    c->freed_ctx = ctx;
    worker_free(c->worker, on_worker_freed, c);
}
