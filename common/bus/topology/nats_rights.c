// SPDX-License-Identifier: Apache-2.0
#include "common/bus/topology/nats_rights.h"

#include "common/bus/topology/topology.h"

// clang-format off
#define REQUESTS "REQUEST_CRITICAL REQUEST_HIGH REQUEST_NORMAL REQUEST_LOW"
#define RENDEREDS "RENDERED_CRITICAL RENDERED_HIGH RENDERED_NORMAL RENDERED_LOW"

static const NatsRights rights[] = {
    // It sends dead letters again (ResendErrorEmail): they are read in order and one by one,
    // published as mails, deleted. It stores applications' events, and those that came in clear again
    // (services/ingest/reseal), and answers for them: a reply to
    // another account is _R_.>. AUDIT has an epoch key's end before it destroys the key.
    {"stentor-ingest",
     "ntf.request.> ntf.rendered.> ntf.deferred.> ntf.status.> ntf.dead.> evt.> _R_.> "
     "$JS.API.STREAM.MSG.GET.DEAD $JS.API.STREAM.MSG.DELETE.DEAD ntf.inhand.ingest.* "
     "aud.platform.erasure aud.*.read aud.*.write $JS.API.STREAM.MSG.GET.AUDIT "
     "$JS.API.STREAM.INFO.EVENTS $JS.API.CONSUMER.LIST.EVENTS "
     "$JS.API.STREAM.MSG.GET.EVENTS $JS.API.STREAM.MSG.DELETE.EVENTS",
     "EVENTS", "CONFIG STATUS PEOPLE DEAD EVENTS IN_HAND", SUBJECT_INTAKE " " QUEUE_INTAKE},
    // The gateway writes configuration and recipients, and nothing that becomes a mail but tests of stored template versions
    // (SendTemplateTest, which ingest accepts); it has webhooks delivered again. It reads tenants' events,
    // and what was rendered, to show one notification. Dead letters it reads and drops, with their notification's end; sending one again it
    // asks of ingest (ResendErrorEmail). Its audits read every stream, as the operator's command does.
    {"stentor-gateway",
     "ppl.* cfg.suppression.> cfg.trigger.> cfg.resolver.> cfg.template.> cfg.tenant.> cfg.apikey.> cfg.inbound.> cfg.asset.> "
     "cfg.mail_domain.> cfg.revocation.> cfg.route.> cfg.credential.> cfg.channel_health.*.* cfg.webhook.*.* cfg.inbox_keys.*.self "
     "$JS.API.STREAM.MSG.GET.CONFIG aud.*.read aud.*.write aud.*.suppression $JS.API.STREAM.MSG.GET.AUDIT "
     "ntf.hook.* ntf.dead.gateway.* ntf.inhand.gateway.* feed.* ntf.status.*.inapp.* "
     "evt.*.ResendErrorEmail evt.*.SendTemplateTest ntf.status.*.*.failed aud.*.dead_letter $JS.API.STREAM.MSG.GET.DEAD $JS.API.STREAM.MSG.DELETE.DEAD "
     // The picture of the pipeline: lag, and since when.
     "$JS.API.STREAM.INFO.* $JS.API.CONSUMER.INFO.*.* "
     "$JS.API.STREAM.MSG.GET.REQUEST_CRITICAL $JS.API.STREAM.MSG.GET.REQUEST_HIGH "
     "$JS.API.STREAM.MSG.GET.REQUEST_NORMAL $JS.API.STREAM.MSG.GET.REQUEST_LOW "
     "$JS.API.STREAM.MSG.GET.RENDERED_CRITICAL $JS.API.STREAM.MSG.GET.RENDERED_HIGH "
     "$JS.API.STREAM.MSG.GET.RENDERED_NORMAL $JS.API.STREAM.MSG.GET.RENDERED_LOW "
     "$JS.API.STREAM.MSG.GET.DEFERRED $JS.API.STREAM.MSG.GET.INBOUND $JS.API.STREAM.MSG.GET.SETTLE "
     "$JS.API.STREAM.MSG.GET.HOOK $JS.API.STREAM.MSG.GET.STATUS",
     "EVENTS REPLIES", "CONFIG IN_HAND FEED AUDIT DEAD STATUS DEFERRED " REQUESTS " " RENDEREDS, NULL},
    {"stentor-renderer",         "ntf.rendered.> ntf.status.> ntf.dead.> ntf.inhand.renderer.*",
     REQUESTS, "CONFIG IN_HAND", NULL},
    {"stentor-dispatcher",
     "ntf.status.> ntf.deferred.> ntf.dead.> cfg.suppression.> cfg.channel_health.*.* ntf.inhand.dispatcher.* feed.*",
     RENDEREDS " SETTLE", "CONFIG EVENTS IN_HAND", NULL},
    // Tenants' webhooks. It turns an endpoint's subscription off when it fails too often, and says so to the tenant.
    {"stentor-webhook",
     "ntf.hook.* ntf.deferred.hook.* ntf.dead.webhook.* cfg.webhook.*.* evt.*.notification.webhook.> ntf.inhand.webhook.*",
     "STATUS HOOK", "CONFIG EVENTS IN_HAND", NULL},
    {"stentor-webhook-receiver",
     "ntf.inbound.> ntf.settle.> ntf.status.> ntf.reply.> ntf.dead.> cfg.suppression.> ppl.* ntf.inhand.webhook-receiver.*",
     "INBOUND", "CONFIG IN_HAND", NULL},
    // The clock trims what is nearly full: working streams, and of DEAD the letters whose notification has its end
    // (common/deadletter/dead_trim.h); never STATUS or CONFIG. It looks at the oldest mail that waits, to say since when.
    {"stentor-digest-flusher",
     "ntf.request.> ntf.rendered.> ntf.hook.* ntf.status.> ntf.dead.> evt.*.PlaceOrderTimeout evt.*.CleanUpOrders "
     "ntf.inhand.digest-flusher.* $JS.API.STREAM.INFO.* "
     "$JS.API.CONSUMER.INFO.*.* "
     "$JS.API.STREAM.MSG.GET.REQUEST_CRITICAL $JS.API.STREAM.MSG.GET.REQUEST_HIGH "
     "$JS.API.STREAM.MSG.GET.REQUEST_NORMAL $JS.API.STREAM.MSG.GET.REQUEST_LOW "
     "$JS.API.STREAM.MSG.GET.RENDERED_CRITICAL $JS.API.STREAM.MSG.GET.RENDERED_HIGH "
     "$JS.API.STREAM.MSG.GET.RENDERED_NORMAL $JS.API.STREAM.MSG.GET.RENDERED_LOW "
     "$JS.API.STREAM.MSG.DELETE.REQUEST_CRITICAL $JS.API.STREAM.MSG.DELETE.REQUEST_HIGH "
     "$JS.API.STREAM.MSG.DELETE.REQUEST_NORMAL $JS.API.STREAM.MSG.DELETE.REQUEST_LOW "
     "$JS.API.STREAM.MSG.DELETE.RENDERED_CRITICAL $JS.API.STREAM.MSG.DELETE.RENDERED_HIGH "
     "$JS.API.STREAM.MSG.DELETE.RENDERED_NORMAL $JS.API.STREAM.MSG.DELETE.RENDERED_LOW "
     "$JS.API.STREAM.MSG.DELETE.DEFERRED $JS.API.STREAM.MSG.DELETE.INBOUND $JS.API.STREAM.MSG.DELETE.SETTLE "
     "$JS.API.STREAM.MSG.DELETE.HOOK "
     "$JS.API.STREAM.MSG.DELETE.EVENTS "
     "$JS.API.STREAM.MSG.DELETE.DEAD",
     "DEFERRED", "CONFIG PEOPLE DEAD IN_HAND", NULL},
    // Its child process notes in the audit log what it restores and what ends by age.
    // Guard rails pause marketing by a suppression of every address.
    {"stentor-archiver",
     "ntf.dead.> aud.*.restore aud.*.expiry cfg.suppression.> $JS.API.STREAM.MSG.GET.AUDIT $JS.API.STREAM.MSG.GET.CONFIG",
     "", "CONFIG STATUS EVENTS AUDIT PEOPLE DEAD INBOUND " REQUESTS " " RENDEREDS, NULL},
    {"stentor-order-saga",
     "evt.*.PlaceOrder evt.*.CompleteOrder evt.*.CancelOrder evt.*.OrderFailed ntf.deferred.saga.* ntf.dead.> "
     "ntf.inhand.order-saga.*",
     "EVENTS", "IN_HAND", NULL},
    // The operator's tool: it replays, resends and repairs, so it may write what the stages read.
    // CONFIG it only reads: managing goes through the API, repairing is the admin's. But an erasure revokes links, and deletes what
    // the person wrote.
    {"stentor-cli",
     "evt.> ntf.> ppl.* feed.* cfg.revocation.> aud.*.* replay.> $JS.API.INFO $JS.API.CONSUMER.INFO.*.* $JS.API.STREAM.MSG.GET.* "
     "$JS.API.STREAM.MSG.DELETE.DEAD $JS.API.STREAM.MSG.DELETE.REPLIES",
     "", "CONFIG STATUS DEFERRED INBOUND SETTLE HOOK DEAD EVENTS PEOPLE AUDIT FEED IN_HAND REPLIES " REQUESTS " " RENDEREDS, NULL},
    {"stentor-admin",            ">", "", "", NULL},
};
// clang-format on

// Core subjects: what streams republish, and the heartbeats of all processes (common/service).
static const struct {
    const char *service, *subjects;
} hears[] = {
    {"stentor-gateway", "live.status.> live.feed.* live.process.*.*"},
};

const char *nats_hears(const char *service)
{
    for (size_t i = 0; i < sizeof hears / sizeof hears[0]; i++) {
        if (str_eq(str_from(hears[i].service), str_from(service))) {
            return hears[i].subjects;
        }
    }
    return NULL;
}

const NatsRights *nats_rights(size_t *ret_count)
{
    *ret_count = sizeof rights / sizeof rights[0];
    return rights;
}
