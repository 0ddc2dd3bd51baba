// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/turns.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum {
    SLOW_AFTER_MS = 250, // full for so long; with a vendor that keeps up it is a few milliseconds
    // A tenant whose mails take this long from the claim to the outcome waits for the vendor. One
    // with faster mails waits for this machine, and its further mails continue within a second.
    STUCK_MS = 1000,
};

// A lane's deliveries of one tenant; exists while there are any.
typedef struct LaneTenant {
    size_t jobs;     // in handling
    int64_t took_us; // duration of the last that ended
    Job *first;      // held, oldest first
    Job *last;
} LaneTenant;

void turns_open(DispatcherLane *lane)
{
    lane->tenants = map_new(free);
}

void turns_close(DispatcherLane *lane)
{
    map_free(lane->tenants);
    lane->tenants = NULL;
}

// HTTP APIs that are used carry mails too: as many as are on the way, and as many that follow.
size_t turns_room(const DispatcherLane *lane)
{
    const DispatcherParts *parts = &lane->dispatcher->parts;
    size_t calls = parts->vendors != NULL ? vendors_calls(parts->vendors) : 0;
    size_t max = parts->claims_max + 2 * calls;
    return max < parts->in_flight_max || calls == 0 ? max : parts->in_flight_max;
}

static size_t tenant_max(const DispatcherLane *lane)
{
    const DispatcherParts *parts = &lane->dispatcher->parts;
    size_t max = turns_room(lane) * parts->tenant_percent / 100;
    return max > 0 ? max : 1;
}

static bool is_stuck(const LaneTenant *tenant)
{
    return tenant->took_us >= STUCK_MS * INT64_C(1000);
}

static bool holds_much(const DispatcherLane *lane)
{
    return lane->held >= lane->dispatcher->parts.in_flight_max / 2;
}

// Claims beyond a tenant's part were made before the lane was slow, and do not fill the lane. Held
// deliveries fill it when their tenant is not stuck, or sends alone: then waiting is enough.
static bool is_full(const DispatcherLane *lane, int64_t now_us)
{
    size_t claims_max = turns_room(lane);
    if (!lane->slow) {
        return lane->jobs >= claims_max;
    }
    bool alone = !company_is(&lane->company, now_us);
    size_t max = tenant_max(lane);
    size_t count = 0;
    bool moving = false;
    Str name;
    void *value = NULL;
    for (size_t i = 0; map_next(lane->tenants, &i, &name, &value);) {
        const LaneTenant *tenant = value;
        count += tenant->jobs < max ? tenant->jobs : max;
        moving = moving || (tenant->first != NULL && !is_stuck(tenant));
    }
    return count >= claims_max || (lane->held > 0 && alone) || (holds_much(lane) && moving);
}

static void mark_full(DispatcherLane *lane, int64_t now_us)
{
    bool full = is_full(lane, now_us);
    if (full != lane->full) {
        lane->full = full;
        lane->full_since_us = now_us;
        worker_pause(lane->worker, full);
    }
}

static LaneTenant *tenant_of(DispatcherLane *lane, Str name)
{
    LaneTenant *tenant = map_get(lane->tenants, name);
    if (tenant == NULL) {
        tenant = xcalloc(1, sizeof *tenant);
        map_put(lane->tenants, name, tenant);
    }
    return tenant;
}

static void hold(DispatcherLane *lane, LaneTenant *tenant, Job *job)
{
    job->next = NULL;
    if (tenant->last == NULL) {
        tenant->first = job;
    } else {
        tenant->last->next = job;
    }
    tenant->last = job;
    lane->held++;
}

static Job *unhold(DispatcherLane *lane, LaneTenant *tenant)
{
    Job *job = tenant->first;
    tenant->first = job->next;
    if (tenant->first == NULL) {
        tenant->last = NULL;
    }
    job->next = NULL;
    lane->held--;
    return job;
}

static void go_on(DispatcherLane *lane, LaneTenant *tenant, Job *job, int64_t now_us)
{
    job->taken_us = now_us;
    tenant->jobs++;
    lane->jobs++;
}

static Turn turn_of(const DispatcherLane *lane, const LaneTenant *tenant)
{
    bool over = tenant->first != NULL || tenant->jobs >= tenant_max(lane);
    if (!lane->slow || !over) {
        return TURN_NOW;
    }
    return holds_much(lane) && is_stuck(tenant) ? TURN_POSTPONED : TURN_HELD;
}

Turn turns_take(DispatcherLane *lane, Job *job)
{
    int64_t now_us = clock_mono_us();
    company_note(&lane->company, job->key->tenant, now_us);
    LaneTenant *tenant = tenant_of(lane, job->key->tenant);
    Turn turn = turn_of(lane, tenant);
    if (turn == TURN_HELD) {
        hold(lane, tenant, job);
    } else {
        go_on(lane, tenant, job, now_us);
    }
    mark_full(lane, now_us);
    return turn;
}

void turns_left(Job *job)
{
    DispatcherLane *lane = job->lane;
    int64_t now_us = clock_mono_us();
    LaneTenant *tenant = map_get(lane->tenants, job->key->tenant);
    assert(tenant != NULL && tenant->jobs > 0);
    tenant->jobs--;
    lane->jobs--;
    if (!job->postponed) {
        tenant->took_us = now_us - job->taken_us;
    }
    if (tenant->jobs == 0 && tenant->first == NULL) {
        (void)map_remove(lane->tenants, job->key->tenant);
    }
    mark_full(lane, now_us);
}

static LaneTenant *find_due(const DispatcherLane *lane)
{
    size_t max = tenant_max(lane);
    Str name;
    void *value = NULL;
    for (size_t i = 0; lane->held > 0 && map_next(lane->tenants, &i, &name, &value);) {
        LaneTenant *tenant = value;
        if (tenant->first != NULL && tenant->jobs < max) {
            return tenant;
        }
    }
    return NULL;
}

bool turns_due(const DispatcherLane *lane)
{
    return find_due(lane) != NULL;
}

size_t turns_next(DispatcherLane *lane, size_t max, Job ***ret)
{
    LaneTenant *tenant = find_due(lane);
    if (tenant == NULL) {
        return 0;
    }
    Arena *arena = tenant->first->delivery->arena;
    int64_t now_us = clock_mono_us();
    size_t count = 0;
    Job **jobs = arena_array(arena, max, sizeof *jobs);
    while (count < max && tenant->first != NULL && tenant->first->delivery->arena == arena) {
        jobs[count] = unhold(lane, tenant);
        go_on(lane, tenant, jobs[count++], now_us);
    }
    mark_full(lane, now_us);
    *ret = jobs;
    return count;
}

void turns_update(DispatcherLane *lane, int64_t now_us)
{
    if (!lane->slow && lane->full && company_is(&lane->company, now_us) &&
        now_us - lane->full_since_us >= SLOW_AFTER_MS * INT64_C(1000)) {
        LOG(LOG_DEBUG, "a lane's vendor is slow; its tenants now take turns",
            log_text("lane", priority_name(lane->lane)));
        lane->slow = true;
    } else if (lane->slow && lane->held == 0 && lane->jobs < turns_room(lane)) {
        lane->slow = false;
    }
    mark_full(lane, now_us);
}

Job *turns_give_up(DispatcherLane *lane)
{
    Str name;
    void *value = NULL;
    for (size_t i = 0; lane->held > 0 && map_next(lane->tenants, &i, &name, &value);) {
        LaneTenant *tenant = value;
        if (tenant->first != NULL) {
            Job *job = unhold(lane, tenant);
            go_on(lane, tenant, job, clock_mono_us()); // until it is settled
            return job;
        }
    }
    return NULL;
}
