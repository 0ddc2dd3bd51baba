// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/accept/events.h"

#include <inttypes.h>

#include "common/bus/events/cancel_event.h"
#include "common/bus/events/status_event.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/events/meta.h"
#include "common/events/status.h"
#include "common/request/request_mail.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/request.pb-c.h"

typedef struct Building {
    const Request *request;
    const Acceptance *acceptance;
    Arena *arena;
    Str id;
} Building;

static char *derive(Building *b, const char *stage, const char *discriminator)
{
    char *id = arena_alloc(b->arena, EVENT_ID_SIZE);
    event_id_derive(stage, b->id, str_from(discriminator), id);
    return id;
}

static Stentor__V1__Meta make_meta(Building *b, const char *event_id, const char *causation)
{
    MetaSpec head = {
        .event_id = event_id,
        .tenant = pb_text(b->arena, b->acceptance->tenant),
        .notification_id = pb_text(b->arena, b->id),
        .correlation_id = pb_text(b->arena, b->request->correlation_id),
        .causation_id = causation,
        .at_us = b->acceptance->accepted_at_us,
    };
    return meta_make(&head);
}

static bool seal_address(Building *b, Stentor__V1__Sealed **ret, Error *err)
{
    Stentor__V1__Address address;
    stentor__v1__address__init(&address);
    address.address = pb_text(b->arena, b->request->to);
    address.name = pb_text(b->arena, b->request->to_name);
    Str plain = STR_EMPTY;
    if (!event_pack(&address.base, b->arena, &plain, err)) {
        return false;
    }
    const Acceptance *a = b->acceptance;
    *ret = seal(a->key, a->tenant, b->id, "address", plain, b->arena);
    return true;
}

static Stentor__V1__Address **pack_addresses(Building *b, const MailAddress *list, size_t count)
{
    Stentor__V1__Address **ret = arena_array(b->arena, count + 1, sizeof *ret);
    for (size_t i = 0; i < count; i++) {
        ret[i] = arena_alloc(b->arena, sizeof **ret);
        stentor__v1__address__init(ret[i]);
        ret[i]->address = pb_text(b->arena, list[i].address);
        ret[i]->name = pb_text(b->arena, list[i].name);
    }
    return ret;
}

// Under the recipient's key, as all of the mail: a copy's address ends with it.
static bool seal_mail(Building *b, Stentor__V1__Sealed **ret, Error *err)
{
    const RequestMail *mail = b->request->mail;
    if (mail == NULL) {
        return true;
    }
    Stentor__V1__MailExtras extras;
    stentor__v1__mail_extras__init(&extras);
    extras.cc = pack_addresses(b, mail->cc, mail->cc_count);
    extras.n_cc = mail->cc_count;
    extras.bcc = pack_addresses(b, mail->bcc, mail->bcc_count);
    extras.n_bcc = mail->bcc_count;
    extras.reply_to = pb_text(b->arena, mail->reply_to);
    extras.list_id = pb_text(b->arena, mail->list_id);
    extras.attachments =
        arena_array(b->arena, mail->attachment_count + 1, sizeof *extras.attachments);
    extras.n_attachments = mail->attachment_count;
    for (size_t i = 0; i < mail->attachment_count; i++) {
        extras.attachments[i] = mail->attachments[i].file;
    }
    Str plain = STR_EMPTY;
    if (!event_pack(&extras.base, b->arena, &plain, err)) {
        return false;
    }
    const Acceptance *a = b->acceptance;
    *ret = seal(a->key, a->tenant, b->id, "mail", plain, b->arena);
    return true;
}

static ProtobufCBinaryData hash_of(const Acceptance *a)
{
    return pb_data(a->address_hash == NULL ? STR_EMPTY : str_of(a->address_hash, ADDRESS_HASH_LEN));
}

// NULL: the dispatcher's.
static Stentor__V1__Retries *make_retries(Building *b)
{
    const OwnRetries *own = &b->request->retries;
    if (!has_own_retries(own)) {
        return NULL;
    }
    Stentor__V1__Retries *retries = arena_zalloc(b->arena, sizeof *retries);
    stentor__v1__retries__init(retries);
    retries->n_wait_s = own->count;
    retries->wait_s = arena_array(b->arena, own->count, sizeof *retries->wait_s);
    for (size_t i = 0; i < own->count; i++) {
        retries->wait_s[i] = own->wait_s[i];
    }
    retries->max_attempts = own->max_attempts;
    return retries;
}

// Only a call is begun again long after it was sent, when its recipient did not answer.
static void add_quiet_hours(const Building *b, Stentor__V1__NotificationRequest *event)
{
    const GateDecision *decision = &b->acceptance->decision;
    if (b->request->channel != CHANNEL_VOICE ||
        decision->quiet.start_minute == decision->quiet.end_minute) {
        return;
    }
    Stentor__V1__QuietHours *quiet = arena_alloc(b->arena, sizeof *quiet);
    stentor__v1__quiet_hours__init(quiet);
    quiet->start_minute = (uint32_t)decision->quiet.start_minute;
    quiet->end_minute = (uint32_t)decision->quiet.end_minute;
    event->quiet_hours = quiet;
    event->quiet_zone = pb_borrow(decision->zone != NULL ? zone_name(decision->zone) : "");
}

static bool build_request(
    Building *b, Stentor__V1__Meta *meta, Stentor__V1__NotificationRequest *event, Error *err)
{
    const Request *r = b->request;
    const Acceptance *a = b->acceptance;
    *meta = make_meta(b, derive(b, "request", ""), "");
    stentor__v1__notification_request__init(event);
    event->meta = meta;
    event->channel = (Stentor__V1__Channel)r->channel;
    event->category = (Stentor__V1__Category)r->category;
    event->priority = (Stentor__V1__Priority)r->priority;
    event->template_ = pb_text(b->arena, r->template_key);
    event->template_version = pb_text(b->arena, r->template_version);
    event->locale = pb_text(b->arena, r->locale);
    event->recipient_id = pb_text(b->arena, r->recipient_id);
    event->address_hash = hash_of(a);
    event->accepted_at_us = a->accepted_at_us;
    event->scheduled_for_us = r->scheduled_for_us;
    event->expires_at_us = r->expires_at_us;
    event->source_event_id = pb_text(b->arena, r->source_event_id);
    event->source_event_type = pb_text(b->arena, r->source_event_type);
    event->copy_of = pb_text(b->arena, r->copy_of);
    event->batch_id = pb_text(b->arena, r->batch_id);
    event->trigger_key = pb_text(b->arena, r->trigger_key);
    event->cancel_key = pb_text(b->arena, r->cancel_key);
    event->source_event_at_us = r->source_event_at_us;
    event->time_zone = pb_text(b->arena, a->time_zone);
    event->consent_source = pb_text(b->arena, r->consent_source);
    event->consent_at_us = r->consent_at_us;
    event->retries = make_retries(b);
    event->gate_trace =
        pb_borrow(events_status(&a->decision) == STATUS_QUEUED ? a->gate_trace : "");
    add_quiet_hours(b, event);
    Str variables = r->variables.len > 0 ? r->variables : STR("{}");
    event->variables = (a->packed ? seal_packed : seal)(
        a->key, a->tenant, b->id, "variables", variables, b->arena);
    return seal_mail(b, &event->mail, err) && seal_address(b, &event->address, err);
}

static bool frame_of(
    Building *b, FrameKind kind, const ProtobufCMessage *message, char *event_id, Frame *ret,
    Error *err)
{
    char *subject = arena_alloc(b->arena, SUBJECT_SIZE);
    if (kind == FRAME_DEFERRED) {
        const char *reason = gate_reason_deferred(b->acceptance->decision.reason);
        subject_deferred(subject, reason, b->acceptance->tenant);
    } else {
        Priority lane = b->acceptance->lane;
        subject_request(
            subject, lane != PRIORITY_NONE ? lane : b->request->priority, b->acceptance->tenant);
    }
    *ret = (Frame){
        .kind = kind,
        .out = {
            .subject = subject,
            .event_id = str_from(event_id),
            .traceparent = b->acceptance->traceparent,
        }};
    return event_pack(message, b->arena, &ret->out.payload, err);
}

// Whoever gathers for the same border names the same window.
static char *window_id(Building *b)
{
    const Request *r = b->request;
    char *discriminator = arena_printf(
        b->arena, STR_FMT "/%s/%s/%" PRId64, STR_ARG(b->acceptance->tenant),
        category_name(r->category), channel_name(r->channel), b->acceptance->decision.until_us);
    char id[EVENT_ID_SIZE];
    event_id_derive("window", r->recipient_id, str_from(discriminator), id);
    return arena_printf(b->arena, "dgw_%s", id);
}

static void fill_window(
    Building *b, const Stentor__V1__NotificationRequest *request, Stentor__V1__DigestWindow *window)
{
    const Acceptance *a = b->acceptance;
    stentor__v1__digest_window__init(window);
    window->window_id = window_id(b);
    window->recipient_id = request->recipient_id;
    window->category = request->category;
    window->channel = request->channel;
    window->flush_at_us = a->decision.until_us;
    window->template_ = pb_text(b->arena, a->digest.template_key);
    window->template_version = pb_text(b->arena, a->digest.template_version);
    window->locale = request->locale;
}

static bool frame_deferred(
    Building *b, Stentor__V1__NotificationRequest *request, Frame *ret, Error *err)
{
    const GateDecision *decision = &b->acceptance->decision;
    const char *reason = gate_reason_deferred(decision->reason);
    meta_keep_trace(request->meta, b->acceptance->traceparent, b->arena);
    Stentor__V1__Meta meta = make_meta(b, derive(b, "deferred", reason), request->meta->event_id);
    Stentor__V1__Deferred deferred;
    stentor__v1__deferred__init(&deferred);
    deferred.meta = &meta;
    deferred.reason = pb_borrow(reason);
    deferred.due_at_us = decision->until_us;
    deferred.cancel_key = request->cancel_key;
    deferred.work_case = STENTOR__V1__DEFERRED__WORK_REQUEST;
    deferred.request = request;
    Stentor__V1__DigestWindow window;
    if (decision->verdict == GATE_GATHER) {
        fill_window(b, request, &window);
        deferred.digest = &window;
    }
    return frame_of(b, FRAME_DEFERRED, &deferred.base, meta.event_id, ret, err);
}

static bool frame_status(Building *b, Frame *ret, Error *err)
{
    const Request *r = b->request;
    const Acceptance *a = b->acceptance;
    Status status = events_status(&a->decision);
    char *discriminator = arena_printf(b->arena, "%s/0", status_name(status));
    Stentor__V1__Meta meta =
        make_meta(b, derive(b, "status", discriminator), derive(b, "request", ""));
    StatusSpec spec = {&meta, status, gate_reason_name(a->decision.reason), ""};
    Stentor__V1__NotificationStatus event = status_make(&spec, r->channel);
    event.category = (Stentor__V1__Category)r->category;
    event.priority = (Stentor__V1__Priority)r->priority;
    event.template_ = pb_text(b->arena, r->template_key);
    event.template_version = pb_text(b->arena, r->template_version);
    event.recipient_id = pb_text(b->arena, r->recipient_id);
    event.address_hash = hash_of(a);
    event.accepted_at_us = a->accepted_at_us;
    event.scheduled_for_us = a->decision.until_us;
    event.batch_id = pb_text(b->arena, r->batch_id);
    event.source_event_id = pb_text(b->arena, r->source_event_id);
    event.source_event_type = pb_text(b->arena, r->source_event_type);
    event.copy_of = pb_text(b->arena, r->copy_of);
    // History writes no row for a `queued` that says what its request says (common/history/fold.c).
    event.gate_trace = pb_borrow(status == STATUS_QUEUED ? "" : a->gate_trace);
    if (a->decision.verdict == GATE_GATHER) {
        event.digest_window_id = window_id(b);
    }
    ret->kind = FRAME_STATUS;
    return status_event(&event, a->traceparent, b->arena, &ret->out, err);
}

// With the notification, in its accept row: both are durable or neither is, and a repeated event,
// which makes no notification, supersedes nothing. Killed between the two publications: the sweep
// publishes the row again under the same ids. Also when the gate refuses the new one: the old one
// has the old date.
static bool frame_supersede(const Building *b, Frame *ret, Error *err)
{
    const Request *r = b->request;
    char *place = arena_printf(
        b->arena, STR_FMT "|" STR_FMT, STR_ARG(b->acceptance->tenant), STR_ARG(r->cancel_key));
    char *event_id = arena_alloc(b->arena, EVENT_ID_SIZE);
    event_id_derive("supersede", r->source_event_id, str_from(place), event_id);
    CancelEvent cancel = {
        .tenant = b->acceptance->tenant,
        .cancel_key = r->cancel_key,
        .before_us = r->source_event_at_us,
        .newer_event_id = r->source_event_id,
        .reason = arena_printf(
            b->arena, "trigger " STR_FMT ", event " STR_FMT, STR_ARG(r->trigger_key),
            STR_ARG(r->source_event_id)),
        .event_id = str_from(event_id),
        .causation_id = r->source_event_id,
        .at_us = b->acceptance->accepted_at_us,
        .traceparent = b->acceptance->traceparent,
    };
    ret->kind = FRAME_DEFERRED;
    return cancel_event(&cancel, b->arena, &ret->out, err);
}

Status events_status(const GateDecision *decision)
{
    switch (decision->verdict) {
    case GATE_SUPPRESS:
        return STATUS_SUPPRESSED;
    case GATE_DEFER:
    case GATE_GATHER:
        return STATUS_SCHEDULED;
    case GATE_GO:
        break;
    }
    return STATUS_QUEUED;
}

bool events_build(
    const Request *request, const Acceptance *acceptance, Arena *arena,
    Frame ret[EVENTS_PER_NOTIFICATION], size_t *ret_count, Error *err)
{
    Building b = {
        .request = request,
        .acceptance = acceptance,
        .arena = arena,
        .id = str_from(acceptance->id),
    };
    *ret_count = 0;
    if (request->supersedes && !frame_supersede(&b, &ret[(*ret_count)++], err)) {
        return false;
    }
    Frame *first = &ret[*ret_count];
    Status status = events_status(&acceptance->decision);
    if (status == STATUS_SUPPRESSED) {
        *ret_count += 1;
        return frame_status(&b, first, err);
    }
    Stentor__V1__Meta meta;
    Stentor__V1__NotificationRequest event;
    if (!build_request(&b, &meta, &event, err)) {
        return false;
    }
    *ret_count += 2;
    bool ok = status == STATUS_SCHEDULED
                  ? frame_deferred(&b, &event, first, err)
                  : frame_of(&b, FRAME_REQUEST, &event.base, meta.event_id, first, err);
    return ok && frame_status(&b, first + 1, err);
}
