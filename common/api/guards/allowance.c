// SPDX-License-Identifier: Apache-2.0
#include "common/api/guards/allowance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/api/api.h"
#include "common/base/arena.h"

enum { FIELD_MAX = 160, SECOND_US = 1000000 };

void allowance_init(Allowance *allowance, int64_t of_tenant, int64_t of_key)
{
    *allowance = (Allowance){of_tenant, of_key, 0, map_new(free)};
}

void allowance_done(Allowance *allowance)
{
    map_free(allowance->counts);
    *allowance = (Allowance){0};
}

static int64_t *count_of(Allowance *allowance, Str name)
{
    int64_t *count = map_get(allowance->counts, name);
    if (count == NULL) {
        count = xcalloc(1, sizeof *count);
        map_put(allowance->counts, name, count);
    }
    return count;
}

// All begin again at once: nothing is kept of who has not asked for a minute.
static void turn_window(Allowance *allowance, int64_t now_us)
{
    if (now_us >= allowance->ends_us) {
        map_free(allowance->counts);
        allowance->counts = map_new(free);
        allowance->ends_us = now_us + (int64_t)ALLOWANCE_WINDOW_S * SECOND_US;
    }
}

AllowanceLeft allowance_take(
    Allowance *allowance, Str tenant, Str key_id, bool operates, int64_t now_us)
{
    char name[ALLOWANCE_NAME_MAX];
    turn_window(allowance, now_us);
    int size = snprintf(
        name, sizeof name, STR_FMT "/" STR_FMT, STR_ARG(tenant),
        STR_ARG(str_slice(key_id, 0, 256)));
    int64_t *of_key = count_of(allowance, str_of(name, (size_t)size));
    int64_t *of_tenant = count_of(allowance, tenant);
    bool bounds_tenant = allowance->of_tenant > 0 && !operates;
    AllowanceLeft left = {
        .seconds = (allowance->ends_us - now_us + SECOND_US - 1) / SECOND_US,
        .of_tenant = -1,
        .of_key = -1,
    };
    if (bounds_tenant && *of_tenant >= allowance->of_tenant) {
        left.violated = "tenant";
    } else if (allowance->of_key > 0 && *of_key >= allowance->of_key) {
        left.violated = "key";
    } else {
        (*of_key)++;
        *of_tenant += bounds_tenant ? 1 : 0;
    }
    if (bounds_tenant) {
        left.of_tenant = allowance->of_tenant - *of_tenant;
    }
    if (allowance->of_key > 0) {
        left.of_key = allowance->of_key - *of_key;
    }
    return left;
}

static void add_fields(const Allowance *allowance, const AllowanceLeft *left, HttpRequest *http)
{
    char policy[FIELD_MAX] = "";
    char state[FIELD_MAX] = "";
    int policy_len = 0, state_len = 0;
    if (left->of_tenant >= 0) {
        policy_len = snprintf(
            policy, sizeof policy, "\"tenant\";q=%" PRId64 ";w=%d, ", allowance->of_tenant,
            (int)ALLOWANCE_WINDOW_S);
        state_len = snprintf(
            state, sizeof state, "\"tenant\";r=%" PRId64 ";t=%" PRId64 ", ", left->of_tenant,
            left->seconds);
    }
    if (left->of_key >= 0) {
        policy_len += snprintf(
            policy + policy_len, sizeof policy - (size_t)policy_len, "\"key\";q=%" PRId64 ";w=%d, ",
            allowance->of_key, (int)ALLOWANCE_WINDOW_S);
        state_len += snprintf(
            state + state_len, sizeof state - (size_t)state_len,
            "\"key\";r=%" PRId64 ";t=%" PRId64 ", ", left->of_key, left->seconds);
    }
    if (policy_len > 0) { // without the last ", "
        http_response_header(http, "RateLimit-Policy", str_of(policy, (size_t)policy_len - 2));
        http_response_header(http, "RateLimit", str_of(state, (size_t)state_len - 2));
    }
}

bool allowance_admit(Allowance *allowance, ApiCall *call)
{
    HttpRequest *http = call->http;
    AllowanceLeft left = allowance_take(
        allowance, str_from(call->tenant), call->key_id, call->operates, http->received_at_us);
    add_fields(allowance, &left, http);
    if (left.violated == NULL) {
        return true;
    }
    const char *seconds = arena_printf(http->arena, "%" PRId64, left.seconds);
    metric_add(call->metrics->refused[REFUSED_QUOTA], 1);
    http_response_header(http, "Retry-After", str_from(seconds));
    http->violated_policy = left.violated;
    http_problem(
        http, 429, "quota-exceeded", "Too many requests", NULL,
        "the %s has sent as many requests as it may within %d s; the next window begins in %s s",
        left.violated, (int)ALLOWANCE_WINDOW_S, seconds);
    return false;
}
