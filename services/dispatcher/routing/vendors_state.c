// SPDX-License-Identifier: Apache-2.0
// The state of each vendor as an entry of CONFIG: stored when a breaker opens or closes, heard when
// another replica's did, and obeyed when an operator has suspended the vendor. That of the SMTP
// server is health.c's; here it is only read.
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/codec/event.h"
#include "common/config/config_store.h"
#include "services/dispatcher/routing/vendors_internal.h"

enum { STORE_PAUSE_MS = 2000 };

static const VendorEntry *entry_of(const Vendors *vendors, Str tenant, const VendorPlace *place)
{
    char key[CHANNEL_HEALTH_KEY_SIZE];
    char name[2 * CHANNEL_HEALTH_KEY_SIZE];
    Channel channel = routing_vendor_channel(str_from(place->vendor.name));
    if (!channel_health_key(key, channel, str_from(place->vendor.name))) {
        return NULL;
    }
    int used = snprintf(name, sizeof name, STR_FMT "/%s", STR_ARG(tenant), key);
    return used > 0 && (size_t)used < sizeof name
               ? map_get(vendors->entries, (Str){name, (size_t)used})
               : NULL;
}

static bool is_about(const VendorEntry *entry, const VendorPlace *place)
{
    return entry->credential[0] == '\0' || strcmp(entry->credential, place->credential) == 0;
}

static bool is_disabled(const VendorEntry *entry, int64_t now_us)
{
    return entry != NULL && entry->status == CHANNEL_DISABLED && now_us < entry->until_us;
}

bool vendors_is_suspended(
    const Vendors *vendors, const VendorPlace *place, Str tenant, int64_t now_us,
    int64_t *ret_until_us)
{
    const Str owners[] = {tenant, STR(CHANNEL_HEALTH_TENANT)};
    for (size_t i = 0; map_count(vendors->entries) > 0 && i < 2; i++) {
        const VendorEntry *entry = entry_of(vendors, owners[i], place);
        if (is_disabled(entry, now_us) && is_about(entry, place)) {
            *ret_until_us = entry->until_us;
            return true;
        }
    }
    return false;
}

uint32_t vendors_points(
    const Vendors *vendors, const VendorPlace *place, int64_t *ret_changed_at_us)
{
    const VendorEntry *entry = entry_of(vendors, str_from(place->owner), place);
    if (entry == NULL || entry->status != CHANNEL_DEGRADED || !is_about(entry, place)) {
        return 0;
    }
    *ret_changed_at_us = entry->changed_at_us;
    return entry->points > 0 ? entry->points : (uint32_t)DELIVERY_STEP_POINTS;
}

// ---- hearing ----

static double chance_of(int64_t now_us)
{
    return (double)(now_us % 1000) / 1000.0;
}

// What another replica, or an earlier process, found.
static void hear(VendorPlace *place, const VendorEntry *entry)
{
    int64_t now_us = clock_now_us();
    bool down = entry->status == CHANNEL_DOWN;
    if ((!down && entry->status != CHANNEL_ACTIVE) || !is_about(entry, place) ||
        breaker_hear(
            &place->breaker, down, entry->refused, entry->changed_at_us, chance_of(now_us),
            now_us) == BREAKER_STAYS) {
        return;
    }
    place->down_since_us = down ? entry->down_since_us : 0;
    place->refused = entry->refused;
    vendors_end_right(place);
    LOG(LOG_INFO, "another dispatcher says how a vendor is", log_text("vendor", place->vendor.name),
        log_text("credential", place->credential),
        log_text("breaker", breaker_state_name(place->breaker.state)));
}

void vendors_hear_known(VendorPlace *place)
{
    const VendorEntry *entry = entry_of(place->vendors, str_from(place->owner), place);
    if (entry != NULL && entry->status == CHANNEL_DOWN) {
        hear(place, entry);
    }
}

static void hear_all(Vendors *vendors, Str tenant, const VendorEntry *entry)
{
    Str name;
    void *value;
    for (size_t i = 0; map_next(vendors->places, &i, &name, &value);) {
        VendorPlace *place = value;
        if (str_eq(str_from(place->owner), tenant) && entry_of(vendors, tenant, place) == entry) {
            hear(place, entry);
        }
    }
}

bool vendors_put_entry(Vendors *vendors, Str tenant, Str key, const BusMessage *message, Error *err)
{
    Arena *arena = arena_new(0);
    const Stentor__V1__ChannelHealth *found = (const void *)event_unpack(
        &stentor__v1__channel_health__descriptor, message->payload, arena, err);
    if (found != NULL) {
        VendorEntry *entry = xcalloc(1, sizeof *entry);
        *entry = (VendorEntry){
            .status = channel_health_status(found, 0),
            .until_us = found->until_us > 0 ? found->until_us : INT64_MAX,
            .changed_at_us = found->changed_at_us,
            .down_since_us = found->down_since_us,
            .sequence = message->sequence,
            .refused = found->refused,
            .points = found->points_lost,
        };
        (void)str_to_c(str_from(found->credential), entry->credential, sizeof entry->credential);
        const char *name = arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(key));
        const VendorEntry *before = map_get(vendors->entries, str_from(name));
        // That it is degraded no more says nothing of a breaker that opened here meanwhile.
        bool of_breaker =
            before == NULL || before->status != CHANNEL_DEGRADED || entry->status == CHANNEL_DOWN;
        map_put(vendors->entries, str_from(name), entry);
        if (of_breaker && !str_eq(str_from(found->noted_by), str_from(vendors->parts.instance))) {
            hear_all(vendors, tenant, entry);
        }
    }
    arena_free(arena);
    return found != NULL;
}

// ---- telling ----

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    VendorPlace *place = ctx;
    place->storing = false;
    if (err != NULL && err->kind != ERROR_CANCELLED) {
        LOG(LOG_WARN, "a vendor's state was not stored in CONFIG; trying again", log_error(err),
            log_text("vendor", place->vendor.name));
    }
    vendors_part_closed(place->vendors);
}

// What another replica stored meanwhile is heard first.
static ConfigVerdict leave(void *ctx, uint64_t there)
{
    (void)ctx;
    (void)there;
    return CONFIG_LEAVE;
}

static void describe(VendorPlace *place, Stentor__V1__ChannelHealth *entry)
{
    bool down = place->down_since_us > 0;
    entry->credential = place->credential;
    entry->status = down ? STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DOWN
                         : STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_ACTIVE;
    entry->down_since_us = place->down_since_us;
    entry->refused = down && place->refused;
    entry->reason = down ? place->reason : arena_cstr(place->arena, STR_EMPTY);
}

static bool store(VendorPlace *place, const VendorEntry *known, Stentor__V1__ChannelHealth *entry)
{
    Vendors *vendors = place->vendors;
    Arena *arena = place->arena;
    entry->tenant = place->owner;
    entry->channel = (Stentor__V1__Channel)place->api->channel;
    entry->vendor = arena_cstr(arena, str_from(place->vendor.name));
    entry->changed_at_us = clock_now_us();
    entry->noted_by = arena_cstr(arena, str_from(vendors->parts.instance));
    ConfigStore what = {
        .replaces = known != NULL ? known->sequence : 0,
        .decide = leave,
        .done = on_stored,
        .ctx = place};
    Error err = {0};
    if (!channel_health_event(entry, arena, &what.out, &err)) {
        LOG(LOG_ERROR, "a vendor's state cannot be stored", log_error(&err));
        return false;
    }
    place->storing = true;
    place->stored_at_us = entry->changed_at_us;
    vendors->open++;
    config_store(vendors->parts.bus, &what, arena);
    return true;
}

static bool may_store(const VendorPlace *place, int64_t now_us)
{
    const Vendors *vendors = place->vendors;
    return place->api != NULL && vendors->parts.bus != NULL && !place->storing &&
           !vendors->stopping && now_us - place->stored_at_us >= STORE_PAUSE_MS * INT64_C(1000);
}

bool vendors_store_points(VendorPlace *place, uint32_t points, const char *reason)
{
    int64_t now_us = clock_now_us();
    const VendorEntry *known = entry_of(place->vendors, str_from(place->owner), place);
    bool taken = known != NULL && (known->status == CHANNEL_DOWN || is_disabled(known, now_us));
    if (taken || !may_store(place, now_us)) {
        return false;
    }
    arena_reset(place->arena);
    Stentor__V1__ChannelHealth entry;
    stentor__v1__channel_health__init(&entry);
    entry.status = points > 0 ? STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_DEGRADED
                              : STENTOR__V1__CHANNEL_STATUS__CHANNEL_STATUS_ACTIVE;
    entry.points_lost = points;
    entry.reason = arena_cstr(place->arena, points > 0 ? str_from(reason) : STR_EMPTY);
    return store(place, known, &entry);
}

void vendors_store_state(VendorPlace *place)
{
    int64_t now_us = clock_now_us();
    if (!may_store(place, now_us)) {
        return;
    }
    const VendorEntry *known = entry_of(place->vendors, str_from(place->owner), place);
    bool said_down = known != NULL && known->status == CHANNEL_DOWN && is_about(known, place);
    // One entry for all of the owner's credentials of the vendor: the last word counts, and that
    // another one works says nothing.
    bool is_news = place->down_since_us > 0 ? !said_down : said_down;
    if (is_news && !is_disabled(known, now_us)) {
        arena_reset(place->arena);
        Stentor__V1__ChannelHealth entry;
        stentor__v1__channel_health__init(&entry);
        describe(place, &entry);
        (void)store(place, known, &entry);
    }
}

void vendors_note_move(VendorPlace *place, BreakerMove move, const char *reason)
{
    if (move == BREAKER_STAYS) {
        return;
    }
    bool opens = move == BREAKER_OPENS;
    (void)str_to_c(
        str_slice(str_from(reason), 0, VENDOR_REASON_MAX - 1), place->reason, sizeof place->reason);
    place->down_since_us = !opens                     ? 0
                           : place->down_since_us > 0 ? place->down_since_us
                                                      : clock_now_us();
    place->refused = opens && place->breaker.config;
    LOG(opens ? LOG_WARN : LOG_INFO,
        opens ? "a vendor is left alone for a while: it fails" : "a vendor works again",
        log_text("vendor", place->vendor.name), log_text("credential", place->credential),
        log_text("owner", place->owner), log_text("reason", place->reason));
    vendors_store_state(place);
}
