// SPDX-License-Identifier: Apache-2.0
// An endpoint's own queue, its posts on the way and its pace. One that did not answer gets one post
// at a time until it does: a dead endpoint costs one call, not its share of all.
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "services/dispatcher/webhooks/hooks_internal.h"

enum { KEY_SIZE = 128, PART_WAIT_US = 20000 };

void job_list_push(JobList *list, HookJob *job)
{
    job->next = NULL;
    if (list->tail == NULL) {
        list->head = job;
    } else {
        list->tail->next = job;
    }
    list->tail = job;
    list->count++;
}

HookJob *job_list_pop(JobList *list)
{
    HookJob *job = list->head;
    if (job != NULL) {
        list->head = job->next;
        list->tail = list->head == NULL ? NULL : list->tail;
        list->count--;
        job->next = NULL;
    }
    return job;
}

void job_list_submit(
    JobList *list, Hooks *hooks, void (*submit)(Hooks *hooks, HookJob *const *jobs, size_t count))
{
    while (list->head != NULL) {
        HookJob *jobs[HOOK_BATCH_MAX];
        size_t count = 0;
        while (count < HOOK_BATCH_MAX && list->head != NULL) {
            jobs[count++] = job_list_pop(list);
        }
        submit(hooks, jobs, count);
    }
}

HookTenant *tenant_of(Hooks *hooks, Str name)
{
    HookTenant *tenant = map_get(hooks->tenants, name);
    if (tenant == NULL) {
        tenant = xcalloc(1, sizeof *tenant);
        map_put(hooks->tenants, name, tenant);
    }
    return tenant;
}

static size_t part_of(size_t all)
{
    return all > HOOK_TENANT_PART ? all / HOOK_TENANT_PART : 1;
}

bool tenant_has_room(const Hooks *hooks, const HookTenant *tenant)
{
    return tenant->in_hand < part_of(hooks->parts.in_flight_max);
}

Endpoint *endpoint_of(Hooks *hooks, const Subscription *subscription)
{
    char key[KEY_SIZE];
    (void)snprintf(key, sizeof key, "%s|%s", subscription->entry->tenant, subscription->entry->id);
    Endpoint *endpoint = map_get(hooks->endpoints, str_from(key));
    if (endpoint == NULL) {
        endpoint = xcalloc(1, sizeof *endpoint);
        endpoint->key = xstrdup(key);
        endpoint->tenant = tenant_of(hooks, str_from(subscription->entry->tenant));
        map_put(hooks->endpoints, str_from(key), endpoint);
    }
    endpoint->used_us = clock_mono_us();
    return endpoint;
}

bool endpoint_take(Endpoint *endpoint, const Subscription *subscription, HookJob *job)
{
    if (endpoint->queue.count >= (size_t)subscription->in_flight * HOOK_QUEUE_FACTOR) {
        return false;
    }
    job->endpoint = endpoint;
    job_list_push(&endpoint->queue, job);
    return true;
}

// ---- pace ----

static void on_starved_timer(uv_timer_t *timer)
{
    endpoint_pump_starved(timer->data);
}

static void starve(Hooks *hooks, Endpoint *endpoint, int64_t at_us)
{
    int64_t wait_us = at_us - clock_mono_us();
    uint64_t wait_ms = wait_us > 0 ? (uint64_t)wait_us / 1000 + 1 : 1;
    if (!endpoint->starved) {
        if (hooks->starved_count == hooks->starved_room) {
            hooks->starved_room = hooks->starved_room > 0 ? 2 * hooks->starved_room : 64;
            hooks->starved =
                xrealloc((void *)hooks->starved, hooks->starved_room * sizeof *hooks->starved);
        }
        endpoint->starved = true;
        hooks->starved[hooks->starved_count++] = endpoint;
    }
    if (!uv_is_active((uv_handle_t *)&hooks->starved_timer) ||
        uv_timer_get_due_in(&hooks->starved_timer) > wait_ms) {
        (void)uv_timer_start(&hooks->starved_timer, on_starved_timer, wait_ms, 0);
    }
}

void endpoint_pump_starved(Hooks *hooks)
{
    size_t count = hooks->starved_count;
    Endpoint **them = hooks->starved;
    hooks->starved = NULL;
    hooks->starved_count = hooks->starved_room = 0;
    for (size_t i = 0; i < count; i++) {
        them[i]->starved = false;
        endpoint_pump(hooks, them[i]);
    }
    free((void *)them);
}

void endpoint_pump(Hooks *hooks, Endpoint *endpoint)
{
    while (endpoint->queue.head != NULL && !hooks->stopping) {
        HookJob *job = endpoint->queue.head;
        job->refusal = hook_refusal(job, clock_now_us());
        if (job->refusal != NULL) {
            hook_claim(job_list_pop(&endpoint->queue)); // which needs no place and no token
            continue;
        }
        const Subscription *subscription = hook_subscription(job);
        uint32_t limit = endpoint->probing ? 1 : subscription->in_flight;
        int64_t at_us = 0;
        if (endpoint->posting >= limit) {
            return;
        }
        if (endpoint->tenant->posting >= part_of((size_t)hooks->parts.calls)) {
            starve(hooks, endpoint, clock_mono_us() + PART_WAIT_US);
            return;
        }
        if (!budgets_take(
                hooks->budgets, str_from(endpoint->key), (int64_t)subscription->rate_per_s, 0,
                PRIORITY_NORMAL, (uint32_t)endpoint->queue.count, &at_us)) {
            starve(hooks, endpoint, at_us);
            return;
        }
        job = job_list_pop(&endpoint->queue);
        job->counted = true;
        endpoint->posting++;
        endpoint->tenant->posting++;
        hook_claim(job);
    }
}
