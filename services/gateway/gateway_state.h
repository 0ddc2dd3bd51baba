// SPDX-License-Identifier: Apache-2.0
// What the gateway is made of, for gateway.c (its life) and gateway_routes.c (its API); for no
// other file.
#pragma once

#include "common/api/api.h"
#include "common/api/guards/idempotency.h"
#include "common/base/log.h"
#include "common/config/channel_health.h"
#include "common/configured/configured.h"
#include "common/render/public_url.h"
#include "common/service/http_rows.h"
#include "common/service/storage_rows.h"
#include "services/gateway/access/access_api.h"
#include "services/gateway/access/oidc/oidc_public.h"
#include "services/gateway/assets/assets_api.h"
#include "services/gateway/assets/assets_public.h"
#include "services/gateway/attachments/attachments_api.h"
#include "services/gateway/deadletters/dead_letters_api.h"
#include "services/gateway/figures/figures_api.h"
#include "services/gateway/find/find_api.h"
#include "services/gateway/find/find_projector.h"
#include "services/gateway/inbox/feed_projector.h"
#include "services/gateway/inbox/inbox_duties.h"
#include "services/gateway/inbox/inbox_keys_api.h"
#include "services/gateway/inbox/inbox_public.h"
#include "services/gateway/inbox/inbox_tokens.h"
#include "services/gateway/jobs/audits_api.h"
#include "services/gateway/jobs/shadows_api.h"
#include "services/gateway/live/live_api.h"
#include "services/gateway/notifications/notification_api.h"
#include "services/gateway/openapi/openapi_api.h"
#include "services/gateway/orders/orders_api.h"
#include "services/gateway/preferences/preferences_public.h"
#include "services/gateway/recipients/recipients_api.h"
#include "services/gateway/replies/replies_api.h"
#include "services/gateway/replies/reply_releases.h"
#include "services/gateway/scheduled/scheduled_api.h"
#include "services/gateway/subscriptions/subscriptions_api.h"
#include "services/gateway/suppressions/link_revocations_api.h"
#include "services/gateway/suppressions/suppressions_api.h"
#include "services/gateway/suppressions/suppressions_list.h"
#include "services/gateway/templates/templates_api.h"
#include "services/gateway/tenants/api_keys_api.h"
#include "services/gateway/tenants/inbound_keys_api.h"
#include "services/gateway/tenants/mail_domains_api.h"
#include "services/gateway/tenants/tenant_api.h"
#include "services/gateway/tenants/tenant_events.h"
#include "services/gateway/triggers/resolvers_api.h"
#include "services/gateway/triggers/triggers_api.h"
#include "services/gateway/vendors/vendors_api.h"
#include "services/gateway/web/web_files.h"
#include "services/gateway/why/why_api.h"

typedef struct GatewayOptions {
    const char *bind;
    int64_t port;
    int64_t body_max;
    const char *attachment_places;
    int64_t preview_cpu_ms;
    int64_t attachment_max;
    const char *channels;
    const char *tenant_members;
    const char *public_url;
    const char *webhook_addresses;
    const char *webhook_dns;
    const char *inbox_origins;
    bool inbox_demo;
    int64_t tenant_requests;
    int64_t key_requests;
    const char *console_url;
    ConsoleTimes console;
    OidcOptions oidc;
    int64_t key_lease_ms;
    StorageOptions storage;
    HttpLimits limits;
    FindOptions find;
} GatewayOptions;

// Stopping goes through these in order; each begins when the one before has ended.
typedef enum Phase {
    PHASE_RUNNING,
    PHASE_DRAINING, // no new connections; what was asked is answered
    PHASE_FREEING,  // handles close
    PHASE_STOPPED,
} Phase;

typedef struct Gateway {
    Service *service;
    ApiMetrics metrics;
    Configured configured;
    Keyring *keyring;
    PeopleWait *wait;
    HttpServer *server;
    Api api;
    Allowance allowance;
    Idempotency idempotency;
    TemplatesApi templates;
    SuppressionsApi suppressions;
    LinkRevocationsApi link_revocations;
    AuditLog *audit;
    TriggersApi triggers;
    ResolversApi resolvers;
    RecipientsApi people;
    NotificationApi notifications;
    WhyApi why;
    ScheduledApi scheduled;
    TenantApi *tenants;
    TenantEvents *tenant_events;
    ApiKeysApi *api_keys;
    KeyUsage *key_usage;
    AccessApi access;
    InboundKeysApi inbound_keys;
    RepliesApi replies;
    ReplyReleases *reply_releases;
    MailDomainsApi *mail_domains;
    VendorsApi vendors;
    SubscriptionsApi subscriptions;
    Assets *assets;
    AssetObjects *objects;
    AssetsApi assets_api;
    AttachmentsApi attachments;
    AttachmentPlaces *places;
    AssetsPublic assets_public;
    LinkRevocations *revoked;
    PreferencesPublic preferences;
    FeedProjector *feed;
    FindStore find_store;
    FindContext find_context;
    OrdersApi orders;
    FindProjector *find; // NULL: no search index
    InboxDuties *duties;
    InboxTokens inbox_tokens;
    InboxPublic inbox;
    InboxOrigins inbox_origins;
    InboxKeys *inbox_keys;
    InboxKeysApi inbox_keys_api;
    WebFiles web;
    PeopleWait *inbox_wait;
    DeadLettersApi dead_letters;
    Live *live;
    FiguresApi figures;
    JobRunner *jobs;
    AuditsApi audits;
    ShadowsApi shadows;
    Arena *arena; // of the process
    Str public_url;
    Str console_origin; // a part of the options, which live as long as the process
    uv_timer_t tick;
    Phase phase;
    int closing; // parts that are not stopped, then not freed yet
} Gateway;

// NULL: requests are taken; else why not. ctx is a Gateway.
const char *gateway_unready(void *ctx);
// Fills g->api. Its parts, its index and its preferences are there; the server takes nothing yet.
void gateway_routes_build(Gateway *g, const GatewayOptions *o, ChannelSet delivered);
