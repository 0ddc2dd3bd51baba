// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/intake/commands.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/domain/domain_event.h"
#include "common/json/json_read.h"
#include "common/names/event_type.h"
#include "common/request/template_test.h"
#include "common/service/cleanup.h"
#include "services/ingest/resend/resend_event.h"
#include "services/ingest/resend/resends.h"
#include "stentor/v1/order.pb-c.h"
#include "stentor/v1/request.pb-c.h"

#define STAGE "ingest"

enum {
    BATCH_MAX = 256,
    WAITS = 5, // deliveries granted to a template or a tenant that was put just before the command
    WAIT_MS = 300,
};

struct Commands {
    Worker *worker;
    Triggers *triggers;
    Resends *resends;
    Accept *accept;
    const Catalog *catalog;
    IngestMetrics *metrics;
    EventKeys *keys;
    Reseal *reseal;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// One command on its way to the commit; lives in the batch's arena.
typedef struct Command {
    Commands *commands;
    Delivery *delivery;
    Request request;
    Submission submission;
} Command;

// ---- reading ----

static bool check_variables(Str json, FieldError *err)
{
    if (json.len == 0) {
        return true;
    }
    if (json.len > REQUEST_VARIABLES_MAX) {
        return field_error(
            err, "variables", "%zu bytes of JSON; at most %d", json.len,
            (int)REQUEST_VARIABLES_MAX);
    }
    json_error_t where;
    json_t *root = json_read(json, JSON_REJECT_DUPLICATES, &where);
    bool is_json = root != NULL;
    bool is_object = json_is_object(root);
    json_decref(root);
    if (!is_json) {
        return field_error(
            err, "variables_json", "line %d, column %d: %.100s", where.line, where.column,
            where.text);
    }
    return is_object || field_error(err, "variables_json", "must be an object");
}

static OwnRetries retries_of(const Stentor__V1__Retries *retries)
{
    return retries == NULL ? (OwnRetries){0}
                           : (OwnRetries){
                                 .wait_s = retries->wait_s,
                                 .count = retries->n_wait_s,
                                 .max_attempts = retries->max_attempts,
                             };
}

static Request request_of(const Stentor__V1__NotifyCommand *c)
{
    return (Request){
        .to = str_from(c->to),
        .to_name = str_from(c->to_name),
        .channel = (Channel)c->channel,
        .category = (Category)c->category,
        .priority = (Priority)c->priority,
        .template_key = str_from(c->template_),
        .template_version = str_from(c->template_version),
        .locale = str_from(c->locale),
        .variables = str_from(c->variables_json),
        .correlation_id = str_from(c->correlation_id),
        .recipient_id = str_from(c->recipient_id),
        .scheduled_for_us = c->scheduled_for_us,
        .expires_at_us = c->expires_at_us,
        .produced_at_us = c->produced_at_us,
        .consent_source = str_from(c->consent_source),
        .consent_at_us = c->consent_at_us,
        .retries = retries_of(c->retries),
    };
}

bool command_read(Str payload, bool is_test, int64_t now_us, Arena *arena, Request *ret, Error *err)
{
    const Stentor__V1__NotifyCommand *command = (const Stentor__V1__NotifyCommand *)event_unpack(
        &stentor__v1__notify_command__descriptor, payload, arena, err);
    if (command == NULL) {
        return false;
    }
    FieldError wrong = {.field = ""};
    *ret = request_of(command);
    if (!check_variables(ret->variables, &wrong) ||
        (is_test && !template_test_mark(ret, now_us, arena, &wrong)) ||
        !request_check(ret, now_us, arena, &wrong)) {
        return error_set(err, ERROR_PERMANENT, "field '%s': %s", wrong.field, wrong.text);
    }
    return true;
}

// ---- accepting ----

static void settle_result(Command *c, const AcceptResult *result)
{
    if (result->verdict == ACCEPT_STORED) {
        metric_add(c->commands->metrics->commands, 1);
    } else if (result->verdict == ACCEPT_REPLAYED) {
        metric_add(c->commands->metrics->replayed, 1);
    } else if (result->verdict == ACCEPT_OTHER_BODY) {
        Error err = {0};
        (void)error_set(
            &err, ERROR_PERMANENT,
            "another command was accepted before with the same message id '%.*s'",
            STR_ARG(c->submission.key));
        metric_add(c->commands->metrics->api.refused[REFUSED_CONFLICT], 1);
        delivery_settle(c->delivery, &err);
        return;
    }
    delivery_settle(c->delivery, result->verdict == ACCEPT_UNAVAILABLE ? &result->error : NULL);
}

static void on_accept_done(void *ctx, const AcceptResult *result)
{
    settle_result(ctx, result);
}

// What makes two deliveries the same command. Also the idempotency key.
static Str identify(const BusMessage *message, Str tenant, Str type, Arena *arena)
{
    if (message->event_id.len > 0) {
        return domain_identity(domain_own_id(tenant, type, message->event_id), arena);
    }
    return str_from(
        arena_printf(arena, "%s/%" PRIu64, message->stream, bus_message_place(message)));
}

// The time in the notification's id: the command's own when the stream took it soon enough.
static int64_t id_time(const BusMessage *message, int64_t produced_at_us)
{
    const int64_t back_us = INT64_C(7) * 86400 * 1000000, ahead_us = INT64_C(60) * 1000000;
    int64_t stored_at_us = message->stored_at_us;
    bool near =
        produced_at_us >= stored_at_us - back_us && produced_at_us <= stored_at_us + ahead_us;
    return near ? produced_at_us : stored_at_us;
}

// Killed after the commit and before the ack: the redelivered command meets its key in
// ingest.idempotency_keys and is acknowledged without a second notification
// (tests/integration/faults/test_kill.py).
static bool submit(Command *c, Str tenant, Str type, Error *err)
{
    const BusMessage *message = &c->delivery->message;
    Arena *arena = c->delivery->arena;
    Str identity = identify(message, tenant, type, arena);
    char *id = arena_alloc(arena, ID_SIZE);
    notify_id_derive(
        tenant, identity, id_time(message, c->request.produced_at_us),
        retention_class_code(c->request.retention), id);
    c->request.given_id = id;
    c->submission = (Submission){
        .tenant = tenant,
        .scope = STR("evt"),
        .key = identity,
        .traceparent = message->traceparent,
        .requests = &c->request,
        .count = 1,
        .single = true,
        .bytes = message->payload.len,
        .done = on_accept_done,
        .ctx = c,
    };
    sha256(message->payload, c->submission.body_hash);
    return accept_submit(c->commands->accept, &c->submission, arena, err);
}

// Nothing is sent for a tenant that no operator has made. Its entry may be on its way.
static bool take_unknown(Commands *commands, Delivery *delivery, Str tenant)
{
    Error err = {0};
    if (catalog_standing(commands->catalog, tenant) != STANDING_UNKNOWN) {
        return false;
    }
    if (delivery->message.delivered < WAITS) {
        delivery_redeliver(delivery, WAIT_MS);
        return true;
    }
    (void)catalog_may_send(commands->catalog, tenant, &err);
    metric_add(commands->metrics->api.refused[REFUSED_UNKNOWN_TENANT], 1);
    delivery_settle(delivery, &err);
    return true;
}

static void take_command(Commands *commands, const EventDelivery *event, int64_t now_us)
{
    Delivery *delivery = event->delivery;
    Str tenant = event->tenant;
    Command *c = arena_zalloc(delivery->arena, sizeof *c);
    c->commands = commands;
    c->delivery = delivery;
    Error err = {0};
    FieldError wrong = {.field = ""};
    Refusal refusal = REFUSED_INVALID;
    bool is_test = str_eq(event->type, STR(TEMPLATE_TEST_EVENT));
    bool ok = command_read(
        delivery->message.payload, is_test, now_us, delivery->arena, &c->request, &err);
    delivery->produced_at_us = c->request.produced_at_us; // also of one with a wrong field
    if (ok && take_unknown(commands, delivery, tenant)) {
        return;
    }
    if (ok && !catalog_may_send(commands->catalog, tenant, &err)) {
        refusal = REFUSED_SUSPENDED;
        ok = false;
    }
    if (ok && !catalog_freeze(commands->catalog, tenant, &c->request, delivery->arena, &wrong)) {
        if (delivery->message.delivered < WAITS) {
            delivery_redeliver(delivery, WAIT_MS);
            return;
        }
        ok = error_set(&err, ERROR_PERMANENT, "field '%s': %s", wrong.field, wrong.text);
    }
    if (ok) {
        refusal = REFUSED_UNAVAILABLE;
        ok = submit(c, tenant, event->type, &err);
    }
    if (!ok) {
        metric_add(commands->metrics->api.refused[refusal], 1);
        delivery_settle(delivery, &err);
    }
}

// The parts that drop read the event themselves (cleanup.h), by a filter that knows one name: an
// event of another name is published again under that one. Killed before the ack: the same event
// under the same id again, at worst a second pass that finds nothing. Here its publisher learns
// that it cannot be read.
static bool emit_clean_up(
    const Commands *commands, Delivery *delivery, Str tenant, Str requested_by, Error *err)
{
    Arena *arena = delivery->arena;
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    const char *place = arena_printf(arena, "EVENTS/%" PRIu64, delivery->message.sequence);
    subject_event(subject, tenant, STR(CLEANUP_EVENT_TYPE));
    event_id_derive("cleanup", tenant, str_from(place), event_id);
    static const BusHeader written[] = {{"Content-Type", {"application/protobuf", 20}}};
    Stentor__V1__CleanUpSentEmail event;
    stentor__v1__clean_up_sent_email__init(&event);
    event.requested_by = pb_text(arena, requested_by);
    BusOut out = {
        .subject = subject,
        .event_id = str_from(event_id),
        .traceparent = delivery->message.traceparent,
        .headers = written,
        .header_count = 1,
    };
    (void)event_pack(&event.base, arena, &out.payload, NULL); // a hundred bytes
    // Who asked may be an address: then only programs with keys read it, and the others the tenant.
    if (!event_is_plain(STR(CLEANUP_EVENT_TYPE), out.payload) &&
        !event_seal_out(commands->keys, clock_mono_us(), &out, arena, err)) {
        return false;
    }
    delivery_emit(delivery, &out);
    return true;
}

static void take_clean_up(Commands *commands, Delivery *delivery, Str type)
{
    Str tenant, requested_by;
    Error err = {0};
    bool ok = cleanup_event_read(&delivery->message, delivery->arena, &tenant, &requested_by, &err);
    if (ok && !str_eq(type, STR(CLEANUP_EVENT_TYPE))) {
        ok = emit_clean_up(commands, delivery, tenant, requested_by, &err);
    }
    metric_add(commands->metrics->api.refused[REFUSED_INVALID], ok ? 0 : 1);
    delivery_settle(delivery, ok ? NULL : &err);
}

// One that cannot be opened is settled.
static bool open_delivery(Commands *commands, const EventDelivery *event)
{
    Delivery *delivery = event->delivery;
    Error err = {0};
    bool ok =
        event_open(commands->keys, clock_mono_us(), &delivery->message, delivery->arena, &err);
    if (!ok) {
        metric_add(commands->metrics->api.refused[REFUSED_INVALID], 1);
        delivery_settle(delivery, &err);
    } else if (!catalog_tenant(commands->catalog, event->tenant)->events_in_clear) {
        event_keep(commands->keys, clock_mono_us(), &delivery->message, delivery->arena);
    }
    return ok;
}

static void take_ours(Commands *commands, const EventDelivery *event, Str plain, int64_t now_us)
{
    if (!open_delivery(commands, event)) {
        return;
    }
    if (str_eq(event->type, STR("notify")) || str_eq(event->type, STR(TEMPLATE_TEST_EVENT))) {
        take_command(commands, event, now_us);
    } else if (str_eq(plain, STR(RESEND_EVENT_TYPE))) {
        if (!take_unknown(commands, event->delivery, event->tenant)) {
            resends_take(commands->resends, event->delivery, event->tenant, event->type);
        }
    } else {
        take_clean_up(commands, event->delivery, event->type);
    }
}

// false: there is nothing to do for it here, or it is done.
static bool take_delivery(
    Commands *commands, Delivery *delivery, int64_t now_us, EventDelivery *ret)
{
    *ret = (EventDelivery){.delivery = delivery};
    // The copy of one that came in clear was handled with its original, which goes only behind
    // that.
    bool is_copy = event_original(&delivery->message) != 0 && !delivery->message.replayed;
    if (is_copy || !domain_subject(delivery->message.subject, &ret->tenant, &ret->type)) {
        metric_add(commands->metrics->commands_ignored, 1);
        delivery_settle(delivery, NULL);
        return false;
    }
    Str plain = event_type_plain(ret->type);
    bool ours = str_eq(ret->type, STR("notify")) || str_eq(ret->type, STR(TEMPLATE_TEST_EVENT)) ||
                str_eq(plain, STR(RESEND_EVENT_TYPE)) || str_eq(plain, STR(CLEANUP_EVENT_TYPE));
    if (ours) {
        take_ours(commands, ret, plain, now_us);
    }
    return !ours;
}

static void on_worker_batch(void *ctx, Delivery **deliveries, size_t count)
{
    Commands *commands = ctx;
    int64_t now_us = clock_now_us();
    EventDelivery *events = arena_array(deliveries[0]->arena, count, sizeof *events);
    size_t event_count = 0;
    reseal_note(commands->reseal, deliveries, count);
    for (size_t i = 0; i < count; i++) {
        event_count += take_delivery(commands, deliveries[i], now_us, &events[event_count]);
    }
    if (event_count > 0) {
        triggers_take(commands->triggers, events, event_count, now_us);
    }
    resends_go(commands->resends);
}

// ---- life ----

static void keep_poison(void *ctx, BusMessage *message, Arena *arena)
{
    const Commands *commands = ctx;
    event_keep(commands->keys, clock_mono_us(), message, arena);
}

Commands *commands_new(
    Bus *bus, const Suppressions *suppressions, Reseal *reseal, const TriggersOptions *options)
{
    Commands *commands = xcalloc(1, sizeof *commands);
    commands->accept = options->accept;
    commands->catalog = options->catalog;
    commands->metrics = options->metrics;
    commands->keys = options->keys;
    commands->reseal = reseal;
    WorkerOptions worker = {
        .consumer = topology_consumer("stentor-ingest", "EVENTS"),
        .batch_max = BATCH_MAX,
        .stage = STAGE,
        .keep = keep_poison,
    };
    TriggersOptions triggers = *options;
    triggers.stage = STAGE;
    commands->triggers = triggers_new(&triggers);
    commands->resends = resends_new(&(ResendsOptions){
        .bus = bus,
        .pool = options->pool,
        .suppressions = suppressions,
        .metrics = options->metrics,
        .keys = options->keys,
    });
    commands->worker = worker_new(bus, &worker, on_worker_batch, commands);
    return commands;
}

void commands_start(Commands *commands)
{
    worker_start(commands->worker);
}

void commands_stop(Commands *commands, void (*on_stopped)(void *ctx), void *ctx)
{
    resends_stop(commands->resends);
    worker_stop(commands->worker, on_stopped, ctx);
}

static void on_worker_freed(void *ctx)
{
    Commands *commands = ctx;
    commands->on_freed(commands->freed_ctx);
    triggers_free(commands->triggers);
    resends_free(commands->resends);
    free(commands);
}

void commands_free(Commands *commands, void (*on_freed)(void *ctx), void *ctx)
{
    commands->on_freed = on_freed;
    commands->freed_ctx = ctx;
    worker_free(commands->worker, on_worker_freed, commands);
}
