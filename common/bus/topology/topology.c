// SPDX-License-Identifier: Apache-2.0
#include "common/bus/topology/topology.h"

#include <stdio.h>

enum { DAY_S = 86400 };

#define MIB ((int64_t)1024 * 1024)
#define GIB ((int64_t)1024 * MIB)

// Retention by age is the rule; max_bytes is the disk's protection. A working stream that is nearly
// full loses what every consumer has processed (trim.h); one that is full of what waits refuses, so
// that its publisher holds back. STATUS, the public log, drops its oldest instead. CONFIG keeps
// earlier entries of each subject for when the last one cannot be read. The server's window of
// duplicates is one for all subjects of a stream; ids of EVENTS are chosen by applications, so
// there it is the least that the server takes, and readers tell events apart by tenant, type and
// id. INBOUND's is as long as a callback's signature may be old: one that is captured counts once.
// clang-format off
static const StreamSpec streams[] = {
    {"REQUEST_CRITICAL",  "ntf.request.critical.*",  30 * DAY_S, 2 * GIB, 0, true,  NULL, 0},
    {"REQUEST_HIGH",      "ntf.request.high.*",      30 * DAY_S, 4 * GIB, 0, true,  NULL, 0},
    {"REQUEST_NORMAL",    "ntf.request.normal.*",    30 * DAY_S, 8 * GIB, 0, true,  NULL, 0},
    {"REQUEST_LOW",       "ntf.request.low.*",       30 * DAY_S, 8 * GIB, 0, true,  NULL, 0},
    {"RENDERED_CRITICAL", "ntf.rendered.critical.*",  3 * DAY_S, 1 * GIB, 0, true,  NULL, 0},
    {"RENDERED_HIGH",     "ntf.rendered.high.*",      3 * DAY_S, 2 * GIB, 0, true,  NULL, 0},
    {"RENDERED_NORMAL",   "ntf.rendered.normal.*",    3 * DAY_S, 4 * GIB, 0, true,  NULL, 0},
    {"RENDERED_LOW",      "ntf.rendered.low.*",       3 * DAY_S, 4 * GIB, 0, true,  NULL, 0},
    {"STATUS",            "ntf.status.>",            30 * DAY_S, 8 * GIB, 0, false, "live.status.>", 0},
    {"DEFERRED",          "ntf.deferred.>",          30 * DAY_S, 4 * GIB, 0, true,  NULL, 0},
    {"INBOUND",           "ntf.inbound.>",           30 * DAY_S, 4 * GIB, 0, true,  NULL, 600 * 1000},
    {"SETTLE",            "ntf.settle.*",             7 * DAY_S, 1 * GIB, 0, true,  NULL, 0},
    {"HOOK",              "ntf.hook.*",               3 * DAY_S, 2 * GIB, 0, true,  NULL, 0},
    {"CONFIG",            "cfg.>",                            0, 2 * GIB, 8, true,  NULL, 0},
    {"PEOPLE",            "ppl.*",                            0, 8 * GIB, 0, true,  NULL, 0},
    {"DEAD",              "ntf.dead.>",              90 * DAY_S, 2 * GIB, 0, true,  NULL, 0},
    {"EVENTS",            "evt.>",                    7 * DAY_S, 4 * GIB, 0, true,  NULL, 100},
    // The audit log: as long as the longest class, and what it cannot store is not done.
    {"AUDIT",             "aud.*.*",                2557 * DAY_S, 2 * GIB, 0, true,  NULL, 0},
    // In-app inboxes. Full, it loses its oldest items, whose rows stay in feed.items.
    {"FEED",              "feed.*",                 400 * DAY_S, 8 * GIB, 0, false, "live.feed.$1", 0},
    // What recipients wrote back, for applications. A vendor sends the same again for up to a week, and one that was captured
    // counts once in it.
    {"REPLIES",           "ntf.reply.>",             30 * DAY_S, 1 * GIB, 0, false, "live.reply.>", 7 * DAY_S * 1000},
    // What each process of a service has in hand that came again (guard.h); the oldest may go.
    {"IN_HAND",           "ntf.inhand.*.*",               DAY_S, GIB / 8, 1, false, NULL, 0},
};

static const ConsumerSpec consumers[] = {
    {"REQUEST_CRITICAL",  "renderer",         "stentor-renderer",         30, 8192, false, false},
    {"REQUEST_HIGH",      "renderer",         "stentor-renderer",         30, 8192, false, false},
    {"REQUEST_NORMAL",    "renderer",         "stentor-renderer",         30, 8192, false, false},
    {"REQUEST_LOW",       "renderer",         "stentor-renderer",         30, 8192, false, false},
    {"RENDERED_CRITICAL", "dispatcher",       "stentor-dispatcher",       30, 8192, false, false},
    {"RENDERED_HIGH",     "dispatcher",       "stentor-dispatcher",       30, 8192, false, false},
    {"RENDERED_NORMAL",   "dispatcher",       "stentor-dispatcher",       30, 8192, false, false},
    {"RENDERED_LOW",      "dispatcher",       "stentor-dispatcher",       30, 8192, false, false},
    {"SETTLE",            "dispatcher",       "stentor-dispatcher",       30, 8192, false, false},
    {"STATUS",            "webhook",          "stentor-webhook",          30, 8192, true, true},
    {"HOOK",              "webhook",          "stentor-webhook",          30, 8192, true, false},
    {"DEFERRED",          "digest-flusher",   "stentor-digest-flusher",   30, 8192, false, false},
    {"INBOUND",           "webhook-receiver", "stentor-webhook-receiver", 30, 8192, false, false},
    {"EVENTS",            "ingest",           "stentor-ingest",           30, 8192, false, false},
    {"EVENTS",            "gateway",          "stentor-gateway",          30, 8192, true, false},
    {"REPLIES",           "gateway",          "stentor-gateway",          30, 8192, false, false},
    {"EVENTS",            "order-saga",       "stentor-order-saga",       30, 8192, true, false},
};
// clang-format on

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

const StreamSpec *topology_streams(size_t *ret_count)
{
    *ret_count = COUNT(streams);
    return streams;
}

const ConsumerSpec *topology_consumers(size_t *ret_count)
{
    *ret_count = COUNT(consumers);
    return consumers;
}

const StreamSpec *topology_stream(const char *name)
{
    for (size_t i = 0; i < COUNT(streams); i++) {
        if (str_eq(str_from(streams[i].name), str_from(name))) {
            return &streams[i];
        }
    }
    return NULL;
}

const ConsumerSpec *topology_consumer(const char *service, const char *stream)
{
    for (size_t i = 0; i < COUNT(consumers); i++) {
        bool same_service = str_eq(str_from(consumers[i].service), str_from(service)) ||
                            str_eq(str_from(consumers[i].name), str_from(service));
        if (same_service && str_eq(str_from(consumers[i].stream), str_from(stream))) {
            return &consumers[i];
        }
    }
    return NULL;
}

const char *topology_lane_stream(const char *stage, Priority lane)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%s", stage, priority_stream_suffix(lane));
    const StreamSpec *spec = topology_stream(name);
    return spec != NULL ? spec->name : "";
}

// Every process holds a copy of CONFIG, marks what it has in hand and reads clean-up commands from
// EVENTS; a projection reads once.
unsigned topology_reader_names(const char *stream)
{
    static const char *const of_every_process[] = {"CONFIG", "EVENTS", "IN_HAND"};
    for (size_t i = 0; i < COUNT(of_every_process); i++) {
        if (str_eq(str_from(of_every_process[i]), str_from(stream))) {
            return 32;
        }
    }
    return 8;
}

void topology_reader_name(char out[READER_NAME_SIZE], const char *service, unsigned number)
{
    snprintf(out, READER_NAME_SIZE, "%s-%u", service, number);
}
