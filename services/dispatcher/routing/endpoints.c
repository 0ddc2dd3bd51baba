// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/routing/endpoints.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/map.h"

enum { NAME_SIZE = 17 };

typedef struct Endpoint {
    int64_t next_us; // when the burst is whole again (GCRA's theoretical arrival)
    int64_t line_us; // the time of the last one that waits
    int64_t held_us; // nothing before it
} Endpoint;

struct Endpoints {
    Map *by_name; // hash of the address, which is a secret -> Endpoint
};

Endpoints *endpoints_new(void)
{
    Endpoints *endpoints = xcalloc(1, sizeof *endpoints);
    endpoints->by_name = map_new(free);
    return endpoints;
}

void endpoints_free(Endpoints *endpoints)
{
    if (endpoints != NULL) {
        map_free(endpoints->by_name);
        free(endpoints);
    }
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// Those of which nothing is to be remembered. map_remove() while walking: one walk for each.
static void forget_idle(Endpoints *endpoints, int64_t now_us)
{
    Map *kept = map_new(free);
    Str name;
    void *value;
    for (size_t i = 0; map_next(endpoints->by_name, &i, &name, &value);) {
        const Endpoint *old = value;
        if (later(later(old->next_us, old->line_us), old->held_us) > now_us) {
            Endpoint *copy = xmalloc(sizeof *copy);
            *copy = *old;
            map_put(kept, name, copy);
        }
    }
    map_free(endpoints->by_name);
    endpoints->by_name = kept;
}

// NULL: there are too many.
static Endpoint *find(Endpoints *endpoints, Str address, int64_t now_us)
{
    char name[NAME_SIZE];
    (void)snprintf(name, sizeof name, "%016llx", (unsigned long long)str_hash(address));
    Endpoint *endpoint = map_get(endpoints->by_name, str_from(name));
    if (endpoint != NULL) {
        return endpoint;
    }
    if (map_count(endpoints->by_name) >= ENDPOINTS_MAX) {
        forget_idle(endpoints, now_us);
    }
    if (map_count(endpoints->by_name) >= ENDPOINTS_MAX) {
        return NULL;
    }
    endpoint = xcalloc(1, sizeof *endpoint);
    map_put(endpoints->by_name, str_from(name), endpoint);
    return endpoint;
}

bool endpoints_take(
    Endpoints *endpoints, Str address, EndpointPace pace, int64_t now_us, int64_t *ret_due_us)
{
    Endpoint *endpoint = pace.interval_ms > 0 ? find(endpoints, address, now_us) : NULL;
    if (endpoint == NULL) {
        return true;
    }
    int64_t interval_us = pace.interval_ms * INT64_C(1000);
    int64_t next_us = later(endpoint->next_us, now_us);
    if (endpoint->held_us <= now_us && next_us - now_us <= (pace.burst - 1) * interval_us) {
        endpoint->next_us = next_us + interval_us;
        return true;
    }
    int64_t most_us = now_us + ENDPOINT_LINE_MAX_S * INT64_C(1000000);
    int64_t free_us = later(next_us - (pace.burst - 1) * interval_us, endpoint->held_us);
    endpoint->line_us = later(endpoint->line_us + interval_us, free_us);
    endpoint->line_us = endpoint->line_us < most_us ? endpoint->line_us : most_us;
    *ret_due_us = endpoint->line_us;
    return false;
}

void endpoints_hold(Endpoints *endpoints, Str address, uint32_t wait_ms, int64_t now_us)
{
    Endpoint *endpoint = find(endpoints, address, now_us);
    if (endpoint != NULL) {
        int64_t least_ms = wait_ms > ENDPOINT_HOLD_MIN_MS ? wait_ms : ENDPOINT_HOLD_MIN_MS;
        endpoint->held_us = later(endpoint->held_us, now_us + least_ms * 1000);
    }
}
