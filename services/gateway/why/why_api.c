// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/why/why_api.h"

#include "services/gateway/why/why_list.h"

void why_api_init(WhyApi *why, const WhyOptions *o)
{
    why->scans = (StreamScans){.bus = o->bus};
    why->reader = (WhyReader){o->pools, &why->scans, o->catalog, o->waits};
    why->content = (ContentApi){o->pools, &why->scans, o->keyring, o->audit};
    why->explain = (ExplainApi){
        .reader = &why->reader,
        .gate =
            {
                .pool = o->pools.primary,
                .catalog = o->catalog,
                .suppressions = o->suppressions,
                .hash_key = master_hash_key(o->master),
                .hash_keys = master_hash_keys(o->master),
            },
    };
}

// ---- GET /v1/notifications/{id}/why ----

static void on_facts(void *ctx, const WhyFacts *facts)
{
    const NotificationRead *notification = ctx;
    WhyList *list = arena_alloc(notification->base->http->arena, sizeof *list);
    why_list_make(facts, notification->base->http->arena, list);
    Buf out;
    buf_init(&out, NOTIFICATION_JSON_MAX);
    buf_cstr(&out, "{\"id\":");
    buf_json(&out, notification->id);
    buf_cstr(&out, ",\"status\":");
    buf_json(&out, str_from(status_name(notification->row.status)));
    why_print(&out, list);
    buf_char(&out, '}');
    http_respond(notification->base->http, 200, "application/json", buf_view(&out));
    buf_done(&out);
}

static void on_read(void *ctx, NotificationRead *notification)
{
    const WhyApi *why = ctx;
    why_read(&why->reader, notification, on_facts, notification);
}

static void get_why(ApiCall *call)
{
    WhyApi *why = call->ctx;
    notification_read(call, &why->reader.pools, on_read, why);
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/notifications/{}/why", SCOPE_NOTIFICATIONS_READ, get_why, NULL, false},
};

void why_api_add(Api *api, WhyApi *why)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], why);
    explain_add(api, &why->explain);
    content_api_add(api, &why->content);
}
