// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/live/catch_up.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/auth.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/bus/consume/reader.h"
#include "common/bus/topology/topology.h"

enum {
    KEPT_BYTES_MAX = 1024 * 1024, // of one group
    BATCH = 32,                   // events between two looks at the clients' backlog
    PACE_MS = 20,
    PAUSE_MAX_MS = 1000,
};

// An event that was heard meanwhile.
typedef struct Kept {
    LiveEvent event;
    size_t bytes;
    struct Kept *next;
} Kept;

typedef struct CatchUp {
    CatchUps *ups;
    char tenant[TENANT_SIZE];
    char subject[SUBJECT_SIZE];
    uint64_t from; // the lowest position of its clients
    uint64_t since_ms;
    Reader *reader; // NULL: it waits for its turn
    bool paused;    // until its clients have taken some
    bool caught_up; // the reader has brought all; what was kept follows
    uint64_t paused_ms;
    CatchUpClient *clients;
    Kept *kept, *last_kept;
    size_t kept_bytes;
    struct CatchUp *next; // of all, in their order
} CatchUp;

struct CatchUps {
    Bus *bus;
    CatchUpHandlers handlers;
    CatchUp *groups;
    int readers;     // that are not freed yet
    uv_timer_t pace; // while one is paused
    bool stopping;
    bool closed; // the timer
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// ---- the end of a group ----

static void free_group(CatchUp *group)
{
    for (Kept *kept = group->kept, *next = NULL; kept != NULL; kept = next) {
        next = kept->next;
        free(kept);
    }
    free(group);
}

static void start_next(CatchUps *ups);

static void end_if_stopped(CatchUps *ups)
{
    if (ups->readers == 0 && ups->closed && ups->on_stopped != NULL) {
        void (*on_stopped)(void *ctx) = ups->on_stopped;
        ups->on_stopped = NULL;
        on_stopped(ups->stopped_ctx);
    }
}

static void on_reader_freed(void *ctx)
{
    CatchUp *group = ctx;
    CatchUps *ups = group->ups;
    free_group(group);
    ups->readers--;
    if (ups->stopping) {
        end_if_stopped(ups);
    } else {
        start_next(ups);
    }
}

static void end_group(CatchUp *group)
{
    CatchUp **at = &group->ups->groups;
    while (*at != group) {
        at = &(*at)->next;
    }
    *at = group->next;
    if (group->reader != NULL) {
        reader_free(group->reader, on_reader_freed, group);
    } else {
        free_group(group);
    }
}

static void release(CatchUp *group, CatchUpClient *client, bool whole)
{
    CatchUpClient **at = &group->clients;
    while (*at != client) {
        at = &(*at)->next;
    }
    *at = client->next;
    client->group = NULL;
    client->next = NULL;
    if (!group->ups->stopping) {
        group->ups->handlers.on_caught_up(client->owner, whole);
    }
}

static void release_all(CatchUp *group, bool whole)
{
    while (group->clients != NULL) {
        release(group, group->clients, whole);
    }
    end_group(group);
}

// ---- events ----

// Of one that was stored so long ago, or is one too many, the client hears only that it missed some.
static void give(CatchUp *group, const LiveEvent *event, bool too_old)
{
    CatchUpClient *next = NULL;
    for (CatchUpClient *client = group->clients; client != NULL; client = next) {
        next = client->next;
        if (event->sequence <= client->position || !live_fits(client->filter, event)) {
            continue;
        }
        if (too_old || client->count == CATCH_UP_EVENTS_MAX) {
            release(group, client, false);
        } else {
            client->position = event->sequence;
            client->count++;
            group->ups->handlers.on_event(client->owner, event);
        }
    }
}

static bool is_congested(const CatchUp *group)
{
    const CatchUpClient *client = group->clients;
    while (client != NULL && group->ups->handlers.backlog(client->owner) <= CATCH_UP_BACKLOG_MAX) {
        client = client->next;
    }
    return client != NULL;
}

static void on_pace(uv_timer_t *timer);

static void pause_group(CatchUp *group)
{
    uv_timer_t *pace = &group->ups->pace;
    group->paused = true;
    group->paused_ms = uv_now(pace->loop);
    reader_pause(group->reader, true);
    if (!uv_is_active((uv_handle_t *)pace)) {
        (void)uv_timer_start(pace, on_pace, PACE_MS, PACE_MS);
    }
}

static void on_messages(void *ctx, const BusMessage *messages, size_t count)
{
    CatchUp *group = ctx;
    Arena *arena = arena_new(0);
    int64_t oldest_us = clock_now_us() - (int64_t)CATCH_UP_AGE_S * 1000000;
    for (size_t i = 0; i < count && group->clients != NULL; i++) {
        LiveEvent event;
        Error err = {0};
        arena_reset(arena);
        if (live_event_read(&messages[i], messages[i].sequence, arena, &event, &err)) {
            give(group, &event, messages[i].stored_at_us < oldest_us);
        }
    }
    arena_free(arena);
    if (group->clients == NULL) {
        end_group(group);
    } else if (is_congested(group)) {
        pause_group(group);
    }
}

static void give_kept(CatchUp *group)
{
    for (int i = 0; i < BATCH && group->kept != NULL; i++) {
        Kept *kept = group->kept;
        give(group, &kept->event, false);
        group->kept = kept->next;
        group->last_kept = kept->next == NULL ? NULL : group->last_kept;
        group->kept_bytes -= kept->bytes;
        free(kept);
    }
    if (group->kept == NULL || group->clients == NULL) {
        release_all(group, true);
    }
}

static void go_on(CatchUp *group)
{
    if (group->caught_up) {
        group->paused_ms = uv_now(group->ups->pace.loop);
        give_kept(group);
    } else {
        group->paused = false;
        reader_pause(group->reader, false);
    }
}

// A client that takes nothing holds up the others of its group for a second; then it is too slow.
static void on_pace(uv_timer_t *timer)
{
    CatchUps *ups = timer->data;
    CatchUp *next = NULL;
    bool any = false;
    for (CatchUp *group = ups->groups; group != NULL; group = next) {
        next = group->next;
        if (!group->paused) {
            continue;
        }
        any = true;
        if (!is_congested(group) || uv_now(timer->loop) - group->paused_ms > PAUSE_MAX_MS) {
            go_on(group);
        }
    }
    if (!any) {
        (void)uv_timer_stop(timer);
    }
}

// All that was stored when the reader began is handed over: what was heard since follows it.
static void on_caught_up(void *ctx)
{
    CatchUp *group = ctx;
    group->caught_up = true;
    pause_group(group);
    give_kept(group);
}

static void on_failed(void *ctx, const Error *err)
{
    CatchUp *group = ctx;
    LOG(LOG_INFO, "statuses that clients missed are not there any more", log_error(err));
    release_all(group, false);
}

// ---- turns ----

static void start(CatchUp *group)
{
    static const ReaderHandlers handlers = {on_messages, on_caught_up, on_failed};
    ReaderOptions options = {
        .stream = "STATUS",
        .filter = group->subject,
        .start_sequence = group->from + 1,
        .batch_max = BATCH};
    group->ups->readers++;
    group->reader = reader_new(group->ups->bus, &options, &handlers, group);
}

static void start_next(CatchUps *ups)
{
    CatchUp *group = ups->groups;
    while (group != NULL && ups->readers < CATCH_UP_READERS_MAX) {
        if (group->reader == NULL) {
            start(group);
        }
        group = group->next;
    }
}

static CatchUp *new_group(CatchUps *ups, Str tenant, const char *subject, uint64_t now_ms)
{
    CatchUp *group = xcalloc(1, sizeof *group);
    group->ups = ups;
    group->from = UINT64_MAX;
    group->since_ms = now_ms;
    (void)str_to_c(tenant, group->tenant, sizeof group->tenant);
    (void)str_to_c(str_from(subject), group->subject, sizeof group->subject);
    CatchUp **at = &ups->groups;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = group;
    return group;
}

static CatchUp *find_waiting(const CatchUps *ups, const char *subject)
{
    CatchUp *group = ups->groups;
    while (group != NULL && (group->reader != NULL || strcmp(group->subject, subject) != 0)) {
        group = group->next;
    }
    return group;
}

void catch_up_join(CatchUps *ups, CatchUpClient *client, Str tenant, uint64_t now_ms)
{
    char subject[SUBJECT_SIZE];
    live_subject(tenant, client->filter, subject, sizeof subject);
    CatchUp *group = find_waiting(ups, subject);
    if (group == NULL) {
        group = new_group(ups, tenant, subject, now_ms);
    }
    client->group = group;
    client->next = group->clients;
    group->clients = client;
    group->from = client->position < group->from ? client->position : group->from;
    start_next(ups);
}

void catch_up_leave(CatchUps *ups, CatchUpClient *client)
{
    CatchUp *group = client->group;
    CatchUpClient **at = group != NULL ? &group->clients : NULL;
    while (at != NULL && *at != client) {
        at = &(*at)->next;
    }
    if (at != NULL) {
        *at = client->next;
        client->group = NULL;
    }
    if (group != NULL && group->clients == NULL && !ups->stopping) {
        end_group(group);
    }
}

// ---- what is heard ----

static bool fits_any(const CatchUp *group, const LivePlace *place)
{
    if (!str_eq(str_from(group->tenant), place->tenant)) {
        return false;
    }
    const CatchUpClient *client = group->clients;
    while (client != NULL && !live_fits_place(client->filter, place)) {
        client = client->next;
    }
    return client != NULL;
}

bool catch_ups_want(const CatchUps *ups, const LivePlace *place)
{
    const CatchUp *group = ups->groups;
    while (group != NULL && !fits_any(group, place)) {
        group = group->next;
    }
    return group != NULL;
}

static Str copy_text(char **at, Str text)
{
    Str copy = {*at, text.len};
    memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return copy;
}

static void keep(CatchUp *group, const LiveEvent *event)
{
    size_t len = event->template_.len + event->notification_id.len + event->text.len;
    Kept *kept = xcalloc(1, sizeof *kept + len);
    char *at = (char *)(kept + 1);
    kept->event = *event;
    kept->event.place.tenant = str_from(group->tenant);
    kept->event.template_ = copy_text(&at, event->template_);
    kept->event.notification_id = copy_text(&at, event->notification_id);
    kept->event.text = copy_text(&at, event->text);
    *(group->last_kept != NULL ? &group->last_kept->next : &group->kept) = kept;
    group->last_kept = kept;
    kept->bytes = sizeof *kept + len;
    group->kept_bytes += kept->bytes;
}

void catch_ups_heard(CatchUps *ups, const LiveEvent *event)
{
    CatchUp *next = NULL;
    for (CatchUp *group = ups->groups; group != NULL; group = next) {
        next = group->next;
        bool reads = group->reader != NULL; // else its reader brings it
        if (reads && fits_any(group, &event->place)) {
            keep(group, event);
            if (group->kept_bytes > KEPT_BYTES_MAX) {
                release_all(group, false);
            }
        }
    }
}

// ---- life ----

void catch_ups_tick(CatchUps *ups, uint64_t now_ms)
{
    CatchUp *next = NULL;
    for (CatchUp *group = ups->groups; group != NULL; group = next) {
        next = group->next;
        if (now_ms - group->since_ms > CATCH_UP_PATIENCE_MS) {
            release_all(group, false);
        }
    }
}

CatchUps *catch_ups_new(Bus *bus, uv_loop_t *loop, const CatchUpHandlers *handlers)
{
    CatchUps *ups = xcalloc(1, sizeof *ups);
    ups->bus = bus;
    (void)uv_timer_init(loop, &ups->pace);
    ups->pace.data = ups;
    ups->handlers = *handlers;
    return ups;
}

static void on_pace_closed(uv_handle_t *handle)
{
    CatchUps *ups = handle->data;
    ups->closed = true;
    end_if_stopped(ups);
}

void catch_ups_stop(CatchUps *ups, void (*on_stopped)(void *ctx), void *ctx)
{
    ups->stopping = true;
    while (ups->groups != NULL) {
        release_all(ups->groups, false);
    }
    ups->on_stopped = on_stopped;
    ups->stopped_ctx = ctx;
    uv_close((uv_handle_t *)&ups->pace, on_pace_closed);
}

void catch_ups_free(CatchUps *ups)
{
    free(ups);
}
