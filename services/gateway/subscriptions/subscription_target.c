// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/subscriptions/subscription_target.h"

#include "common/base/str.h"

// Lives in the request's arena.
typedef struct Check {
    const SubscriptionTarget *target;
    ApiCall *call;
    const char *host;
    void (*good)(void *ctx);
    void *ctx;
} Check;

static void on_found(void *ctx, const DnsAddresses *found, const Error *err)
{
    const Check *check = ctx;
    Error denied = {0};
    if (err != NULL) {
        (void)api_refuse_field(
            check->call, "target_url", "%s; its name must have an address", err->text);
    } else if (!dns_check(found, &check->target->guard, check->host, &denied)) {
        (void)api_refuse_field(check->call, "target_url", "%s", denied.text);
    } else {
        check->good(check->ctx);
    }
}

void subscription_target_check(
    const SubscriptionTarget *target, ApiCall *call, const GuardedUrl *url, void (*good)(void *ctx),
    void *ctx)
{
    if (url->is_address) { // the guard has looked at it with the URL
        good(ctx);
        return;
    }
    Check *check = arena_alloc(call->http->arena, sizeof *check);
    *check = (Check){
        .target = target,
        .call = call,
        .host = arena_cstr(call->http->arena, str_from(url->host)),
        .good = good,
        .ctx = ctx,
    };
    (void)dns_find(target->dns, check->host, on_found, check);
}
