// SPDX-License-Identifier: Apache-2.0
#include "common/bus/consume/presence.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/bus/topology/nats_rights.h"
#include "common/bus/topology/topology.h"

enum {
    ITEMS_MAX = 32,
    ASK_EVERY_MS = 15000,   // each costs a request and three wake-ups; presence_doubt asks at once
    MISSED_EVERY_MS = 2000, // while one is missing, or has not answered
    API_TIMEOUT_MS = 2000,
    NOT_FOUND = 404,
};

typedef struct Item {
    Presence *presence;
    const char *stream;
    const char *consumer; // NULL: the stream alone
    bool asking;
    bool missing;
    bool known; // it was there when it was asked for last
} Item;

struct Presence {
    Bus *bus;
    Item items[ITEMS_MAX];
    size_t count;
    int64_t asked_ms;
    bool doubted;  // something speaks against what is known
    bool reported; // that something is missing
    char why[240]; // "": nothing is missing
};

static void add_item(Presence *p, const char *stream, const char *consumer)
{
    if (p->count < ITEMS_MAX) {
        p->items[p->count++] = (Item){.presence = p, .stream = stream, .consumer = consumer};
    }
}

static void add_streams(Presence *p, const NatsRights *access)
{
    Str rest = str_from(access->reads);
    Str word = STR_EMPTY;
    while (rest.len > 0 && str_split(&rest, ' ', &word)) {
        char name[64];
        const StreamSpec *stream =
            word.len > 0 && str_to_c(word, name, sizeof name) ? topology_stream(name) : NULL;
        if (stream != NULL) {
            add_item(p, stream->name, NULL);
        }
    }
}

Presence *presence_new(Bus *bus, const char *service)
{
    Presence *p = xcalloc(1, sizeof *p);
    p->bus = bus;
    size_t count = 0;
    const ConsumerSpec *consumers = topology_consumers(&count);
    for (size_t i = 0; i < count; i++) {
        if (str_eq(str_from(consumers[i].service), str_from(service))) {
            add_item(p, consumers[i].stream, consumers[i].name);
        }
    }
    const NatsRights *access = nats_rights(&count);
    for (size_t i = 0; i < count; i++) {
        if (str_eq(str_from(access[i].service), str_from(service))) {
            add_streams(p, &access[i]);
        }
    }
    return p;
}

void presence_free(Presence *presence)
{
    free(presence);
}

static void describe(Presence *p)
{
    size_t missing = 0;
    char more[48] = "";
    p->why[0] = '\0';
    for (size_t i = 0; i < p->count; i++) {
        missing += p->items[i].missing ? 1 : 0;
    }
    if (missing > 1) {
        (void)snprintf(more, sizeof more, ", and %zu more of %zu", missing - 1, p->count);
    }
    for (size_t i = 0; i < p->count; i++) {
        const Item *item = &p->items[i];
        if (!item->missing) {
            continue;
        }
        (void)snprintf(
            p->why, sizeof p->why, "%s%s%sstream '%s' is missing%s. HINT: run 'stentor migrate'",
            item->consumer != NULL ? "consumer '" : "",
            item->consumer != NULL ? item->consumer : "", item->consumer != NULL ? "' of " : "",
            item->stream, more);
        return;
    }
}

// One line when some are missed, once all were asked for, and one when all are back.
static void report(Presence *p)
{
    bool missing = p->why[0] != '\0';
    bool asking = false;
    for (size_t i = 0; i < p->count; i++) {
        asking = asking || p->items[i].asking;
    }
    if (asking || missing == p->reported) {
        return;
    }
    p->reported = missing;
    if (missing) {
        LOG(LOG_ERROR, "not ready", log_text("why", p->why));
    } else {
        LOG_PLAIN(LOG_INFO, "all streams and consumers exist again");
    }
}

// Only an answer counts: a request that is not answered in time changes nothing.
static void on_info(void *ctx, Str reply, const Error *err)
{
    Item *item = ctx;
    item->asking = false;
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    const json_t *error = json_object_get(root, "error");
    bool missing = json_integer_value(json_object_get(error, "code")) == NOT_FOUND;
    item->known = json_object_get(root, "config") != NULL;
    if (missing != item->missing && (missing || json_object_get(root, "config") != NULL)) {
        item->missing = missing;
        describe(item->presence);
    }
    report(item->presence);
    json_decref(root);
}

static void ask(Item *item)
{
    char subject[160];
    if (item->asking) {
        return;
    }
    item->asking = true;
    if (item->consumer != NULL) {
        (void)snprintf(
            subject, sizeof subject, "$JS.API.CONSUMER.INFO.%s.%s", item->stream, item->consumer);
    } else {
        (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", item->stream);
    }
    bus_request(item->presence->bus, subject, STR_EMPTY, API_TIMEOUT_MS, on_info, item);
}

static bool all_known(const Presence *p)
{
    size_t known = 0;
    for (size_t i = 0; i < p->count; i++) {
        known += p->items[i].known ? 1 : 0;
    }
    return known == p->count;
}

void presence_doubt(Presence *p)
{
    if (p != NULL) {
        p->doubted = true;
    }
}

void presence_tick(Presence *p, int64_t now_ms)
{
    int64_t every_ms = all_known(p) && !p->doubted ? ASK_EVERY_MS : MISSED_EVERY_MS;
    if (!bus_connected(p->bus) || now_ms - p->asked_ms < every_ms) {
        return;
    }
    p->asked_ms = now_ms;
    p->doubted = false;
    for (size_t i = 0; i < p->count; i++) {
        ask(&p->items[i]);
    }
}

const char *presence_missing(const Presence *p)
{
    return p->why[0] != '\0' ? p->why : NULL;
}
