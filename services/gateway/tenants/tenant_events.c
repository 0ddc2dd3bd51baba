// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/tenants/tenant_events.h"

#include <stdlib.h>

#include "common/api/config_read.h"
#include "common/api/config_write.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/domain/event_seal.h"

#define STAGE "gateway"

enum {
    BATCH_MAX = 256,
    TRIES_MAX = 16, // against other writers of the same entry
};

typedef enum Result { RESULT_STORED, RESULT_KNOWN, RESULT_PASSED, RESULT_REFUSED, RESULTS } Result;

// One event; lives in its batch's arena.
typedef struct Item {
    TenantEvents *events;
    Delivery *delivery;
    TenantFacts facts;
    Stentor__V1__Tenant wanted;
    char subject[SUBJECT_SIZE];
    int tries;
    struct Item *next;
} Item;

struct TenantEvents {
    Bus *bus;
    EventKeys *keys;
    Worker *worker;
    TenantMembers members;
    Metric *results[RESULTS];
    Item *first;
    Item **last;
    bool busy;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

static void start_next(TenantEvents *events);

// ---- the end of an event ----

static void settle(TenantEvents *events, Delivery *delivery, Result result, const Error *err)
{
    if (err == NULL || err->kind == ERROR_PERMANENT) {
        metric_add(events->results[result], 1);
    }
    delivery_settle(delivery, err);
}

// Sent again, the dead letter is for this reader alone, and has the event's time.
static void refuse(TenantEvents *events, Delivery *delivery, const DomainEvent *event, Error *err)
{
    if (event != NULL && err->kind == ERROR_PERMANENT) {
        BusMessage *message = &delivery->message;
        message->payload = domain_event_letter(event, STR(TENANT_LETTER_FOR), delivery->arena);
        message->event_id = event->identity;
        event_keep_letter(events->keys, clock_mono_us(), message, delivery->arena);
    }
    settle(events, delivery, RESULT_REFUSED, err);
}

static void finish(Item *item, Result result, const Error *err)
{
    TenantEvents *events = item->events;
    tenant_facts_free(&item->facts);
    events->busy = false;
    settle(events, item->delivery, result, err); // the item may be gone with its batch
    start_next(events);
}

static bool read_event(Delivery *delivery, Str type, DomainEvent *ret, Error *err)
{
    DomainInput input = domain_input(&delivery->message, STR("platform"), type, NULL);
    return domain_event_read(&input, delivery->arena, ret, err);
}

// What the settings cannot be is known only when they are merged.
static void finish_refused(Item *item, Error *err)
{
    Str tenant = STR_EMPTY;
    Str type = STR_EMPTY;
    Error ignored = {0};
    DomainEvent event;
    Delivery *delivery = item->delivery;
    TenantEvents *events = item->events;
    bool ok = domain_subject(delivery->message.subject, &tenant, &type) &&
              read_event(delivery, type, &event, &ignored);
    tenant_facts_free(&item->facts);
    events->busy = false;
    refuse(events, delivery, ok ? &event : NULL, err);
    if (ok) {
        domain_event_free(&event);
    }
    start_next(events);
}

// ---- into CONFIG ----

static void read_entry(Item *item);

static void on_written(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    Item *item = ctx;
    Error own = {0};
    (void)payload;
    (void)sequence;
    if (err != NULL && err->kind == ERROR_CONFLICT) {
        if (++item->tries < TRIES_MAX) {
            read_entry(item);
            return;
        }
        (void)error_set(&own, ERROR_TRANSIENT, "%s", err->text);
        err = &own;
    }
    if (err == NULL) {
        LOG(LOG_INFO, "an event changed a tenant", log_text("tenant", item->wanted.tenant),
            log_str("event_id", item->delivery->message.event_id));
    }
    finish(item, RESULT_STORED, err);
}

static void on_entry_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Item *item = ctx;
    Error own = {0};
    Arena *arena = item->delivery->arena;
    const Stentor__V1__Tenant *stored = NULL;
    if (err == NULL && payload.len > 0) {
        stored = (const Stentor__V1__Tenant *)event_unpack(
            &stentor__v1__tenant__descriptor, payload, arena, &own);
        err = stored == NULL ? &own : NULL;
    }
    if (err != NULL) {
        (void)error_set(&own, ERROR_TRANSIENT, "%s", err->text); // an operator repairs the entry
        finish(item, RESULT_REFUSED, &own);
        return;
    }
    if (!tenant_event_apply(&item->facts, stored, arena, &item->wanted, &own)) {
        finish_refused(item, &own);
        return;
    }
    if (config_is_same(&item->wanted.base, payload, arena)) {
        finish(item, RESULT_KNOWN, NULL);
        return;
    }
    item->wanted.updated_at_us = clock_now_us();
    config_write(
        &(ConfigWrite){
            .bus = item->events->bus,
            .arena = arena,
            .kind = "tenant",
            .tenant = item->facts.tenant,
            .key = STR("self"),
            .message = &item->wanted.base,
            .replaces = sequence,
        },
        on_written, item);
}

static void read_entry(Item *item)
{
    subject_config(item->subject, "tenant", item->facts.tenant, STR("self"));
    config_read(item->events->bus, item->subject, item->delivery->arena, on_entry_read, item);
}

static void start_next(TenantEvents *events)
{
    if (events->busy || events->first == NULL) {
        return;
    }
    Item *item = events->first;
    events->first = item->next;
    events->last = events->first == NULL ? &events->first : events->last;
    events->busy = true;
    read_entry(item);
}

// ---- arriving events ----

// Its dead letter is sealed, however it came.
static bool open_event(const TenantEvents *events, Delivery *delivery, Error *err)
{
    BusMessage *message = &delivery->message;
    int64_t now_us = clock_mono_us();
    bool ok = event_open(events->keys, now_us, message, delivery->arena, err);
    if (ok) {
        event_keep(events->keys, now_us, message, delivery->arena);
    }
    return ok;
}

static void take_event(TenantEvents *events, Delivery *delivery, Str type)
{
    Error err = {0};
    DomainEvent event;
    if (!open_event(events, delivery, &err) || !read_event(delivery, type, &event, &err)) {
        refuse(events, delivery, NULL, &err);
        return;
    }
    if (event.only.len > 0 && !str_eq(event.only, STR(TENANT_LETTER_FOR))) {
        domain_event_free(&event);
        settle(events, delivery, RESULT_PASSED, NULL);
        return;
    }
    Item *item = arena_zalloc(delivery->arena, sizeof *item);
    item->events = events;
    item->delivery = delivery;
    if (!tenant_event_read(&event, &events->members, delivery->arena, &item->facts, &err)) {
        refuse(events, delivery, &event, &err);
        domain_event_free(&event);
        return;
    }
    if (item->facts.passed != NULL) {
        LOG(LOG_WARN, "members of a tenant's notification_policy have no setting, they do nothing",
            log_str("tenant", item->facts.tenant), log_text("members", item->facts.passed),
            log_str("event_id", event.identity));
    }
    domain_event_free(&event);
    *events->last = item;
    events->last = &item->next;
}

static void on_worker_batch(void *ctx, Delivery **deliveries, size_t count)
{
    TenantEvents *events = ctx;
    for (size_t i = 0; i < count; i++) {
        Str tenant = STR_EMPTY;
        Str type = STR_EMPTY;
        // The copy of one that came in clear is taken too: the original may have gone before this
        // service's first event, or while its consumer was deleted. Twice changes nothing.
        bool ours = domain_subject(deliveries[i]->message.subject, &tenant, &type) &&
                    str_eq(tenant, STR("platform")) &&
                    event_type_of_tenant(event_type_plain(type)) != TENANT_EVENT_NONE;
        if (ours) {
            take_event(events, deliveries[i], type);
        } else {
            settle(events, deliveries[i], RESULT_PASSED, NULL);
        }
    }
    start_next(events);
}

// ---- life ----

static void register_metrics(TenantEvents *events, Metrics *metrics)
{
    static const char *const labels[RESULTS] = {
        [RESULT_STORED] = "result=\"stored\"",
        [RESULT_KNOWN] = "result=\"known\"",
        [RESULT_PASSED] = "result=\"passed\"",
        [RESULT_REFUSED] = "result=\"refused\"",
    };
    for (int i = 0; i < RESULTS; i++) {
        events->results[i] = metrics_counter(
            metrics, "stentor_gateway_tenant_events_total", labels[i],
            "Events read for what they say of tenants; passed: of something else");
    }
}

// Of a poison message, which no handler sees.
static void keep_poison(void *ctx, BusMessage *message, Arena *arena)
{
    const TenantEvents *events = ctx;
    event_keep(events->keys, clock_mono_us(), message, arena);
}

TenantEvents *tenant_events_new(
    Bus *bus, MasterKey *master, const TenantMembers *members, Metrics *metrics)
{
    TenantEvents *events = xcalloc(1, sizeof *events);
    events->bus = bus;
    events->keys = event_keys_new(master);
    events->members = *members;
    events->last = &events->first;
    register_metrics(events, metrics);
    WorkerOptions options = {
        .consumer = topology_consumer("stentor-gateway", "EVENTS"),
        .batch_max = BATCH_MAX,
        .stage = STAGE,
        .keep = keep_poison,
    };
    events->worker = worker_new(bus, &options, on_worker_batch, events);
    worker_start(events->worker);
    return events;
}

static void on_worker_freed(void *ctx)
{
    TenantEvents *events = ctx;
    events->worker = NULL;
    events->on_stopped(events->stopped_ctx);
}

static void on_worker_stopped(void *ctx)
{
    TenantEvents *events = ctx;
    worker_free(events->worker, on_worker_freed, events);
}

void tenant_events_stop(TenantEvents *events, void (*on_stopped)(void *ctx), void *ctx)
{
    events->on_stopped = on_stopped;
    events->stopped_ctx = ctx;
    worker_stop(events->worker, on_worker_stopped, events);
}

void tenant_events_free(TenantEvents *events)
{
    event_keys_free(events->keys);
    free(events);
}
