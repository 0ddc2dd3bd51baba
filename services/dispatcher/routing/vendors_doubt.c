// SPDX-License-Identifier: Apache-2.0
// A mail that may have been sent by an earlier attempt: where it is bound to, and what the policy
// says of it.
#include <string.h>

#include "services/dispatcher/routing/vendor_mail.h"
#include "services/dispatcher/routing/vendors_internal.h"

// First in the order; those behind it are for when it turns out that it never had the mail.
static void bind_to(JobRoute *route, VendorPlace *place)
{
    size_t kept = route->count < ROUTE_VENDORS_MAX - 1 ? route->count : ROUTE_VENDORS_MAX - 1;
    memmove(&route->targets[1], &route->targets[0], kept * sizeof route->targets[0]);
    route->targets[0] = place;
    route->count = kept + 1;
    route->bound = true;
}

static void drop_target(JobRoute *route, const VendorPlace *place)
{
    size_t kept = 0;
    for (size_t i = 0; i < route->count; i++) {
        if (route->targets[i] != place) {
            route->targets[kept++] = route->targets[i];
        }
    }
    route->count = kept;
}

RoutingFacts vendor_doubt_facts(
    const VendorPlace *place, const Job *job, const RoutingRules *rules, int64_t now_us)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    const VendorApi *api = place != NULL ? place->api : NULL;
    int64_t age_ms = (now_us - rendered->unknown_at_us) / 1000;
    return (RoutingFacts){
        .state = SEND_UNKNOWN,
        .priority = (Priority)rendered->priority,
        .vendor_up = place != NULL && vendor_is_up(place, now_us),
        .key_known_s = place != NULL ? vendor_key_known_s(place) : 0,
        .key_age_ms = age_ms,
        .can_be_asked = api != NULL && api->ask != NULL,
        .asked = rendered->unknown_asked,
        .asked_not_found = rendered->unknown_asked > 0 && !rendered->unknown_unclear,
        .calls_back = place != NULL && vendor_calls_back(place),
        .settled = age_ms >= rules->settle_ms,
    };
}

// One that may take the mail in place of `place`, now or once it is up.
static bool has_another(Vendors *vendors, const RouteChoice *choice, const VendorPlace *place)
{
    for (size_t i = 0; i < choice->all; i++) {
        const RoutePick *pick = &choice->picks[i];
        const VendorPlace *other = vendors_place_in_use(vendors, pick->vendor, pick->credential);
        if (other != NULL && other != place) {
            return true;
        }
    }
    return false;
}

// A superseded credential that the vendor refuses comes back never: nothing probes it.
static bool is_dead(const VendorPlace *place, const VendorPlace *active)
{
    return place == NULL || (place != active && place->api != NULL &&
                             place->breaker.state == BREAKER_OPEN && place->breaker.config);
}

// Where the attempt before may have sent it, or with the vendor's active credential when that one
// was revoked meanwhile, here or at the vendor (*ret_is_gone). NULL: there is none.
static VendorPlace *place_of_doubt(Vendors *vendors, const Job *job, bool *ret_is_gone)
{
    Str vendor = str_from(job->rendered->unknown_vendor);
    Str credential = str_from(job->rendered->unknown_credential);
    VendorPlace *place = vendors_place(vendors, job->key->tenant, vendor, credential);
    VendorPlace *active = vendors_place(vendors, job->key->tenant, vendor, STR_EMPTY);
    *ret_is_gone = place == NULL || (active != NULL && is_dead(place, active));
    return *ret_is_gone ? active : place;
}

static NextAction decide_doubt(
    Vendors *vendors, const RouteChoice *choice, const Job *job, const VendorPlace *place,
    bool is_gone, int64_t now_us)
{
    const JobRoute *route = &job->route;
    RoutingFacts facts = vendor_doubt_facts(place, job, &route->rules, now_us);
    if (is_gone) { // another account, perhaps: it knows neither the key nor the mail
        facts.key_known_s = 0;
        facts.can_be_asked = false;
    }
    facts.other_usable = route->count > 0 && vendor_is_up(route->targets[0], now_us);
    facts.other_shut = has_another(vendors, choice, place);
    RoutingRules rules = route->rules;
    if (place == NULL && rules.unknown == ROUTING_RESEND) {
        rules.unknown = ROUTING_PARK; // the vendor was taken away
    }
    return routing_next(&rules, &facts).action;
}

void vendors_resolve_doubt(Vendors *vendors, const RouteChoice *choice, Job *job, int64_t now_us)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    JobRoute *route = &job->route;
    bool is_gone = false;
    VendorPlace *place = place_of_doubt(vendors, job, &is_gone);
    drop_target(route, place);
    route->routed = true;
    route->doubt = decide_doubt(vendors, choice, job, place, is_gone, now_us);
    job->place = (LedgerPlace){
        str_from(rendered->unknown_vendor), str_from(rendered->unknown_credential),
        str_from(rendered->unknown_key)};
    if (route->doubt == NEXT_FAILOVER) {
        job->place = vendor_ledger_place(route->targets[0], vendor_mail_key(job));
        return;
    }
    if (place != NULL) {
        bind_to(route, place);
    }
    if (is_gone && route->doubt == NEXT_RESEND) {
        job->place = vendor_ledger_place(place, str_from(rendered->unknown_key));
    }
}
