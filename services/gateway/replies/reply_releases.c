// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/replies/reply_releases.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/config_read.h"
#include "common/base/log.h"
#include "common/bus/events/suppression_event.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/config/config_store.h"
#include "common/events/reply_content.h"
#include "services/gateway/suppressions/suppression_note.h"

#define STAGE "gateway"

enum { BATCH_MAX = 64 };

struct ReplyReleases {
    Bus *bus;
    AuditLog *audit;
    MasterKey *master;
    Worker *worker;
    Metric *released;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// One reply of START; lives in its batch's arena.
typedef struct Item {
    ReplyReleases *releases;
    Delivery *delivery;
    const Stentor__V1__InboundReply *reply;
    ReplyHashes hashes; // under each of them the number may have an opt-out
    size_t next;        // the one that is looked at next
    Stentor__V1__Suppression *entry;
    uint64_t replaces;
    char subject[SUBJECT_SIZE];
} Item;

static char SAID_BY[] = SUPPRESSION_BY_REPLY;

static void look_at_next(Item *item);

// ---- released ----

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Item *item = ctx;
    (void)sequence;
    if (err == NULL && !duplicate) {
        metric_add(item->releases->released, 1);
        LOG(LOG_INFO, "a reply of START ended an opt-out", log_text("tenant", item->entry->tenant),
            log_text("suppression", item->entry->id));
    }
    if (err != NULL) {
        delivery_settle(item->delivery, err);
    } else {
        look_at_next(item);
    }
}

static ConfigVerdict leave(void *ctx, uint64_t there)
{
    (void)ctx, (void)there;
    return CONFIG_LEAVE; // another changed it at this moment: its word stands
}

static void on_noted(void *ctx, const Error *err, const AuditHead *head)
{
    Item *item = ctx;
    Error own = {0};
    (void)head;
    ConfigStore store = {
        .replaces = item->replaces, .decide = leave, .done = on_stored, .ctx = item};
    if (err != NULL) {
        delivery_settle(item->delivery, err);
    } else if (!suppression_event(item->entry, item->delivery->arena, &store.out, &own)) {
        delivery_settle(item->delivery, &own);
    } else {
        config_store(item->releases->bus, &store, item->delivery->arena);
    }
}

// ---- which ----

// The opt-out of a STOP that came before this START.
static bool ends(const Stentor__V1__InboundReply *reply, const Stentor__V1__Suppression *entry)
{
    return entry->released_at_us == 0 &&
           entry->reason == STENTOR__V1__SUPPRESSION_REASON__SUPPRESSION_REASON_OPT_OUT &&
           strcmp(entry->created_by, SAID_BY) == 0 && entry->created_at_us <= reply->received_at_us;
}

static void on_entry_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Item *item = ctx;
    Error own = {0};
    Stentor__V1__Suppression *entry =
        err != NULL || payload.len == 0
            ? NULL
            : (Stentor__V1__Suppression *)event_unpack(
                  &stentor__v1__suppression__descriptor, payload, item->delivery->arena, &own);
    if (err != NULL || own.kind != ERROR_NONE) {
        delivery_settle(item->delivery, err != NULL ? err : &own);
        return;
    }
    if (entry == NULL || !ends(item->reply, entry)) {
        look_at_next(item);
        return;
    }
    item->entry = entry;
    item->replaces = sequence;
    entry->released_at_us = item->reply->received_at_us;
    entry->released_by = SAID_BY;
    suppression_note_release(item->releases->audit, item->entry, on_noted, item);
}

static void look_at_next(Item *item)
{
    char key[SUPPRESSION_KEY_SIZE];
    const Stentor__V1__InboundReply *reply = item->reply;
    if (item->next >= item->hashes.count) {
        delivery_settle(item->delivery, NULL);
        return;
    }
    suppression_key(key, (Channel)reply->channel, CATEGORY_NONE, item->hashes.hashes[item->next++]);
    subject_config(item->subject, "suppression", str_from(reply->meta->tenant), str_from(key));
    config_read(item->releases->bus, item->subject, item->delivery->arena, on_entry_read, item);
}

static void release(
    ReplyReleases *releases, Delivery *delivery, const Stentor__V1__InboundReply *reply)
{
    Item *item = arena_zalloc(delivery->arena, sizeof *item);
    *item = (Item){.releases = releases, .delivery = delivery, .reply = reply};
    reply_hashes(releases->master, reply, delivery->arena, &item->hashes);
    look_at_next(item);
}

// ---- arriving replies ----

static void take(ReplyReleases *releases, Delivery *delivery)
{
    Error err = {0};
    const Stentor__V1__InboundReply *reply = (const Stentor__V1__InboundReply *)event_unpack(
        &stentor__v1__inbound_reply__descriptor, delivery->message.payload, delivery->arena, &err);
    if (reply == NULL) {
        delivery_settle(delivery, &err);
    } else if (
        strcmp(reply->kind, "start") != 0 || reply->meta == NULL ||
        reply->address_hash.len != SUPPRESSION_HASH_LEN) {
        delivery_settle(delivery, NULL);
    } else {
        release(releases, delivery, reply);
    }
}

static void on_worker_batch(void *ctx, Delivery **deliveries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        take(ctx, deliveries[i]);
    }
}

// ---- life ----

ReplyReleases *reply_releases_new(Bus *bus, AuditLog *audit, MasterKey *master, Metrics *metrics)
{
    ReplyReleases *releases = xcalloc(1, sizeof *releases);
    releases->bus = bus;
    releases->audit = audit;
    releases->master = master;
    releases->released = metrics_counter(
        metrics, "stentor_gateway_replies_released_total", "",
        "Opt-outs that a reply of START ended");
    WorkerOptions options = {
        .consumer = topology_consumer("stentor-gateway", "REPLIES"),
        .batch_max = BATCH_MAX,
        .stage = STAGE,
    };
    releases->worker = worker_new(bus, &options, on_worker_batch, releases);
    worker_start(releases->worker);
    return releases;
}

static void on_worker_freed(void *ctx)
{
    ReplyReleases *releases = ctx;
    releases->worker = NULL;
    releases->on_stopped(releases->stopped_ctx);
}

static void on_worker_stopped(void *ctx)
{
    ReplyReleases *releases = ctx;
    worker_free(releases->worker, on_worker_freed, releases);
}

void reply_releases_stop(ReplyReleases *releases, void (*on_stopped)(void *ctx), void *ctx)
{
    releases->on_stopped = on_stopped;
    releases->stopped_ctx = ctx;
    worker_stop(releases->worker, on_worker_stopped, releases);
}

void reply_releases_free(ReplyReleases *releases)
{
    free(releases);
}
