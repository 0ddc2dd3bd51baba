// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/health.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/config/channel_health.h"
#include "common/config/config_store.h"

static const int64_t LOG_EVERY_US = INT64_C(600) * 1000000;

struct Health {
    Bus *bus;
    const Directory *directory;
    const Vendor *vendor;
    Channel channel;
    const char *instance;
    char key[CHANNEL_HEALTH_KEY_SIZE];
    Arena *arena; // of the entry that is being stored
    bool storing;
    bool probed;
    int64_t logged_at_us; // the last line about the vendor's absence
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

HealthMove health_decide(const VendorHealth *own, const ChannelState *known, int64_t now_us)
{
    if (known->disabled_until_us > now_us) {
        return HEALTH_STAY; // an operator's word stands until its time is over
    }
    if (own->down_since_us == 0) {
        bool ended = known->down_since_us > 0 && own->reached_at_us > known->changed_at_us;
        return ended ? HEALTH_UP : HEALTH_STAY;
    }
    // An entry made since then is of another replica, which has reached it later than this one.
    bool is_news = known->down_since_us == 0 && known->changed_at_us < own->down_since_us;
    bool is_held = now_us - own->down_since_us >= HEALTH_HOLD_MS * INT64_C(1000);
    bool may = now_us - known->changed_at_us >= HEALTH_PAUSE_S * INT64_C(1000000);
    return is_news && is_held && may ? HEALTH_DOWN : HEALTH_STAY;
}

void health_describe(const char *vendor, const VendorHealth *own, Buf *out)
{
    char since[CLOCK_RFC3339_SIZE];
    clock_format(own->down_since_us, since);
    buf_printf(
        out, "%s cannot be reached since %s, %zu mails wait here: %s", vendor, since, own->waiting,
        own->reason);
}

// ---- storing ----

static void on_entry_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Health *health = ctx;
    (void)sequence;
    (void)duplicate;
    health->storing = false;
    if (err != NULL && err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "the vendor's state was not stored in CONFIG; trying again", log_error(err),
            log_text("channel", health->key));
    }
    if (health->on_stopped != NULL) {
        health->on_stopped(health->stopped_ctx);
    }
}

// Another replica was quicker: what it says is read first, and the next tick decides.
static ConfigVerdict leave(void *ctx, uint64_t there)
{
    (void)ctx;
    (void)there;
    return CONFIG_LEAVE;
}

// At a character's border, for protobuf takes UTF-8 only.
static Str cut(Str text, size_t max)
{
    size_t end = text.len < max ? text.len : max;
    while (end > 0 && end < text.len && ((unsigned char)text.ptr[end] & 0xc0) == 0x80) {
        end--;
    }
    return str_slice(text, 0, end);
}

static void store(Health *health, const VendorHealth *own, HealthMove move, int64_t now_us)
{
    Error err = {0};
    arena_reset(health->arena);
    Stentor__V1__ChannelHealth entry;
    stentor__v1__channel_health__init(&entry);
    entry.tenant = arena_cstr(health->arena, STR(CHANNEL_HEALTH_TENANT));
    entry.channel = (Stentor__V1__Channel)health->channel;
    entry.vendor = arena_cstr(health->arena, str_from(health->vendor->name));
    entry.down_since_us = move == HEALTH_DOWN ? own->down_since_us : 0;
    entry.changed_at_us = now_us;
    Str reason = move == HEALTH_DOWN ? str_from(own->reason) : STR_EMPTY;
    entry.reason = arena_cstr(health->arena, cut(reason, CHANNEL_HEALTH_REASON_MAX));
    entry.noted_by = arena_cstr(health->arena, str_from(health->instance));
    ConfigStore what = {
        .replaces = directory_channel(health->directory, str_from(health->key)).sequence,
        .decide = leave,
        .done = on_entry_stored,
        .ctx = health};
    if (!channel_health_event(&entry, health->arena, &what.out, &err)) {
        LOG(LOG_ERROR, "the vendor's state cannot be stored", log_error(&err));
        return;
    }
    health->storing = true;
    config_store(health->bus, &what, health->arena);
}

// ---- from time to time ----

static void log_absence(Health *health, const VendorHealth *own, int64_t now_us)
{
    if (own->down_since_us == 0) {
        health->logged_at_us = 0;
    } else if (health->logged_at_us == 0) {
        health->logged_at_us = own->down_since_us; // the vendor has logged the first failure
    } else if (now_us - health->logged_at_us >= LOG_EVERY_US) {
        health->logged_at_us = now_us;
        LOG(LOG_WARN, "the vendor still cannot be reached; mails wait",
            log_text("vendor", health->vendor->name), log_text("reason", own->reason),
            log_int("seconds", (now_us - own->down_since_us) / 1000000),
            log_int("waiting", (int64_t)own->waiting));
    }
}

void health_tick(Health *health)
{
    int64_t now_us = clock_now_us();
    VendorHealth own = health->vendor->health(health->vendor->self);
    ChannelState known = directory_channel(health->directory, str_from(health->key));
    log_absence(health, &own, now_us);
    if (health->storing || health->on_stopped != NULL) {
        return;
    }
    if (!health->probed && known.down_since_us > 0 && own.reached_at_us == 0) {
        health->vendor->probe(health->vendor->self); // no mail need be waiting to show it
    }
    health->probed = true;
    HealthMove move = health_decide(&own, &known, now_us);
    if (move != HEALTH_STAY) {
        store(health, &own, move, now_us);
    }
}

// ---- start and stop ----

Health *health_new(
    Bus *bus, const Directory *directory, const Vendor *vendor, Channel channel,
    const char *instance)
{
    Health *health = xcalloc(1, sizeof *health);
    health->bus = bus;
    health->directory = directory;
    health->vendor = vendor;
    health->channel = channel;
    health->instance = instance;
    health->arena = arena_new(0);
    (void)channel_health_key(health->key, channel, str_from(vendor->name));
    return health;
}

void health_stop(Health *health, void (*on_stopped)(void *ctx), void *ctx)
{
    health->on_stopped = on_stopped;
    health->stopped_ctx = ctx;
    if (!health->storing) {
        on_stopped(ctx);
    }
}

void health_free(Health *health)
{
    if (health != NULL) {
        arena_free(health->arena);
        free(health);
    }
}
