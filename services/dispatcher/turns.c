// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/turns.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"

// So long full, and it is the vendor: with one that keeps up a lane is full for some milliseconds.
enum { SLOW_AFTER_MS = 250 };

// What a lane has of one tenant; there while there is something.
typedef struct LaneTenant {
    size_t jobs; // going on
    Job *first;  // held, oldest first
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

static size_t tenant_max(const DispatcherLane *lane)
{
    const DispatcherParts *parts = &lane->dispatcher->parts;
    size_t max = parts->claims_max * parts->tenant_percent / 100;
    return max > 0 ? max : 1;
}

// What is beyond a tenant's part was claimed before the lane was slow, and keeps nobody out.
static size_t claims_that_count(const DispatcherLane *lane)
{
    if (!lane->slow) {
        return lane->jobs;
    }
    size_t max = tenant_max(lane);
    size_t count = 0;
    Str name;
    void *value = NULL;
    for (size_t i = 0; map_next(lane->tenants, &i, &name, &value);) {
        const LaneTenant *tenant = value;
        count += tenant->jobs < max ? tenant->jobs : max;
    }
    return count;
}

static void mark_full(DispatcherLane *lane)
{
    bool full = claims_that_count(lane) >= lane->dispatcher->parts.claims_max;
    if (full != lane->full) {
        lane->full = full;
        lane->full_since_us = clock_mono_us();
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

static void forget_if_gone(DispatcherLane *lane, Str name, const LaneTenant *tenant)
{
    if (tenant->jobs == 0 && tenant->first == NULL) {
        (void)map_remove(lane->tenants, name);
    }
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

static void go_on(DispatcherLane *lane, LaneTenant *tenant)
{
    tenant->jobs++;
    lane->jobs++;
}

Turn turns_take(DispatcherLane *lane, Job *job)
{
    LaneTenant *tenant = tenant_of(lane, job->key.tenant);
    bool over = tenant->first != NULL || tenant->jobs >= tenant_max(lane);
    bool postponed = over && lane->held >= lane->dispatcher->parts.in_flight_max / 2;
    if (lane->slow && over && !postponed) {
        hold(lane, tenant, job);
        return TURN_HELD;
    }
    go_on(lane, tenant);
    mark_full(lane);
    return lane->slow && postponed ? TURN_POSTPONED : TURN_NOW;
}

void turns_left(Job *job)
{
    DispatcherLane *lane = job->lane;
    LaneTenant *tenant = map_get(lane->tenants, job->key.tenant);
    assert(tenant != NULL && tenant->jobs > 0);
    tenant->jobs--;
    lane->jobs--;
    forget_if_gone(lane, job->key.tenant, tenant);
    mark_full(lane);
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
    size_t count = 0;
    Job **jobs = arena_array(arena, max, sizeof *jobs);
    while (count < max && tenant->first != NULL && tenant->first->delivery->arena == arena) {
        jobs[count++] = unhold(lane, tenant);
        go_on(lane, tenant);
    }
    mark_full(lane);
    *ret = jobs;
    return count;
}

void turns_look(DispatcherLane *lane, int64_t now_us)
{
    if (!lane->slow && lane->full &&
        now_us - lane->full_since_us >= SLOW_AFTER_MS * INT64_C(1000)) {
        LOG(LOG_DEBUG, "a lane's mails take long; its tenants take turns",
            log_text("lane", priority_name(lane->lane)));
        lane->slow = true;
    } else if (lane->slow && lane->held == 0 && lane->jobs < lane->dispatcher->parts.claims_max) {
        lane->slow = false;
    }
    mark_full(lane);
}

Job *turns_give_up(DispatcherLane *lane)
{
    Str name;
    void *value = NULL;
    for (size_t i = 0; lane->held > 0 && map_next(lane->tenants, &i, &name, &value);) {
        LaneTenant *tenant = value;
        if (tenant->first != NULL) {
            Job *job = unhold(lane, tenant);
            go_on(lane, tenant); // until it is settled
            return job;
        }
    }
    return NULL;
}
