// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/notifications/notification_api.h"

#include <inttypes.h>

#include "common/api/page.h"
#include "common/codec/event.h"
#include "common/config/channel_health.h"
#include "services/gateway/notifications/notification_read.h"
#include "services/gateway/notifications/timeline.h"
#include "services/gateway/why/why_list.h"

// ---- GET /v1/notifications/{id} ----

// What ?include= adds to the answer, one bit each.
enum { INCLUDE_TIMELINE = 1, INCLUDE_ATTEMPTS = 2, INCLUDE_WHY = 4 };

typedef struct Include {
    const char *name;
    unsigned bit;
} Include;
static const Include INCLUDES[] = {
    {"timeline", INCLUDE_TIMELINE}, {"attempts", INCLUDE_ATTEMPTS}, {"why", INCLUDE_WHY}};
enum { INCLUDE_COUNT = sizeof INCLUDES / sizeof *INCLUDES };

typedef struct Call {
    const NotificationApi *api;
    unsigned include;
    const NotificationRead *read;
    Page page; // of attempts
} Call;

static Call *new_call(const ApiCall *base)
{
    Call *call = arena_zalloc(base->http->arena, sizeof *call);
    call->api = base->ctx;
    return call;
}

static unsigned include_of(Str name)
{
    for (size_t i = 0; i < INCLUDE_COUNT; i++) {
        if (str_eq(name, str_from(INCLUDES[i].name))) {
            return INCLUDES[i].bit;
        }
    }
    return 0;
}

// false: answered.
static bool read_include(ApiCall *base, unsigned *ret)
{
    Str rest = http_query(base->http, "include");
    Str name = STR_EMPTY;
    while (rest.len > 0 && str_split(&rest, ',', &name)) {
        unsigned bit = include_of(name);
        if (bit == 0) {
            api_answer_parameter(
                base, "include",
                "'" STR_FMT "' is unknown; of timeline, attempts, why, with ',' between",
                STR_ARG(name));
            return false;
        }
        *ret |= bit;
    }
    return true;
}

static const NotificationWait *wait_of(const NotificationApi *api, const HistoryRow *row)
{
    Channel channel = CHANNEL_NONE;
    bool known = channel_from_name(row->text[FOLD_CHANNEL], &channel);
    return known ? &api->waits[channel] : NULL;
}

// why NULL: it was not asked for.
static void answer(const Call *call, const WhyList *why)
{
    const NotificationRead *read = call->read;
    Buf out;
    buf_init(&out, NOTIFICATION_JSON_MAX);
    notification_print_open(
        &out, &read->row, read->attempts, read->attempt_count, wait_of(call->api, &read->row),
        (call->include & INCLUDE_ATTEMPTS) != 0);
    if ((call->include & INCLUDE_TIMELINE) != 0) {
        timeline_print(
            &out, &read->row, read->attempts, read->attempt_count, read->attempts_before);
    }
    if (why != NULL) {
        why_print(&out, why);
    }
    buf_char(&out, '}');
    http_respond(read->base->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

static void on_facts(void *ctx, const WhyFacts *facts)
{
    const Call *call = ctx;
    Arena *arena = call->read->base->http->arena;
    WhyList *why = arena_alloc(arena, sizeof *why);
    why_list_make(facts, arena, why);
    answer(call, why);
}

static void on_read(void *ctx, NotificationRead *read)
{
    Call *call = ctx;
    call->read = read;
    if ((call->include & INCLUDE_WHY) != 0) {
        why_read(call->api->why, read, on_facts, call);
    } else {
        answer(call, NULL);
    }
}

static void get_notification(ApiCall *base)
{
    Call *call = new_call(base);
    if (read_include(base, &call->include)) {
        notification_read(base, &call->api->pools, on_read, call);
    }
}

// ---- GET /v1/notifications/{id}/timeline ----

static void on_read_timeline(void *ctx, NotificationRead *read)
{
    (void)ctx;
    Buf out;
    buf_init(&out, NOTIFICATION_JSON_MAX);
    buf_cstr(&out, "{\"id\":");
    buf_json(&out, read->id);
    buf_cstr(&out, ",\"status\":");
    buf_json(&out, str_from(status_name(read->row.status)));
    timeline_print(&out, &read->row, read->attempts, read->attempt_count, read->attempts_before);
    buf_char(&out, '}');
    http_respond(read->base->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

static void get_timeline(ApiCall *base)
{
    Call *call = new_call(base);
    notification_read(base, &call->api->pools, on_read_timeline, call);
}

// ---- GET /v1/notifications/{id}/attempts ----

enum { ATTEMPTS_JSON_MAX = 16 * 1024 * 1024 };

// One more than fits was asked for.
static void on_read_attempts(void *ctx, NotificationRead *read)
{
    Call *call = ctx;
    size_t count = read->attempt_count;
    size_t shown = count < call->page.limit ? count : call->page.limit;
    Str last = STR_EMPTY;
    Buf out;
    buf_init(&out, ATTEMPTS_JSON_MAX);
    page_begin(&out);
    for (size_t i = 0; i < shown; i++) {
        page_item(&call->page, &out);
        notification_print_attempt(&out, &read->attempts[i], true);
    }
    if (shown > 0 && count > shown) {
        last = str_from(
            arena_printf(read->base->http->arena, "%" PRId64, read->attempts[shown - 1].number));
    }
    page_end(read->base, last, &out);
    http_respond(read->base->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

static void get_attempts(ApiCall *base)
{
    Call *call = new_call(base);
    int64_t after = 0;
    if (page_read(base, PAGE_LIMIT, PAGE_LIMIT_MAX, &call->page)) {
        (void)str_to_i64(call->page.after, &after); // nothing of it comes from the caller
        notification_read_attempts(
            base, &call->api->pools, after, call->page.limit + 1, on_read_attempts, call);
    }
}

void notification_api_changed(NotificationApi *notifications, Str key, Str payload)
{
    Arena *arena = arena_new(0);
    Str name = STR_EMPTY;
    Channel channel = CHANNEL_NONE;
    NotificationWait wait = {.since_us = 0};
    // Where another vendor is away, the next one of its route takes over.
    if (str_split(&key, '_', &name) && channel_from_name(name, &channel) &&
        str_eq(key, STR("smtp"))) {
        const Stentor__V1__ChannelHealth *entry = (const Stentor__V1__ChannelHealth *)event_unpack(
            &stentor__v1__channel_health__descriptor, payload, arena, NULL);
        if (entry != NULL && str_to_c(str_from(entry->vendor), wait.vendor, sizeof wait.vendor)) {
            wait.since_us = entry->down_since_us;
        }
        notifications->waits[channel] = wait;
    }
    arena_free(arena);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/notifications/{}", SCOPE_NOTIFICATIONS_READ, get_notification, "include", false},
    {"GET", "/v1/notifications/{}/timeline", SCOPE_NOTIFICATIONS_READ, get_timeline, NULL, false},
    {"GET", "/v1/notifications/{}/attempts", SCOPE_NOTIFICATIONS_READ, get_attempts, "limit cursor",
     false},
};

void notification_api_add(Api *api, NotificationApi *notifications)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], notifications);
}
