// SPDX-License-Identifier: Apache-2.0
// Routes: which vendors take a mail, in which order. The entries cfg.route.<tenant>.<key> and
// cfg.credential.<tenant>.<vendor>.<name> in memory, and the choice for one mail. The tenant's own
// routes come before the platform's, of one owner by position and key; the first that matches
// counts. Of a route its steps are taken in order; within a step the weights decide by a hash of
// the notification's id, so the same mail always gets the same order. Pure: no I/O, no clock.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/model/channel_set.h"
#include "common/routing/routing_next.h"
#include "stentor/v1/config.pb-c.h"

enum {
    ROUTE_VENDORS_MAX = 8,
    ROUTES_MAX = 1000,      // of one owner
    CREDENTIALS_MAX = 1000, // of one owner
    ROUTE_AVOID_MAX = 8,
    ROUTE_VENDORS_DEFAULT = 2, // max_vendors
    ROUTE_NAME_MAX = 64,
    CREDENTIAL_NAME_MAX = 32,
    CREDENTIAL_SETTINGS_MAX = 16,
};

#define ROUTING_PLATFORM "platform"
#define ROUTING_SMTP "smtp"   // the vendor of the dispatcher's own options: it needs no credential
#define ROUTING_INAPP "inapp" // the inbox of this installation itself: it needs none either

typedef Stentor__V1__Route RouteEntry;
typedef Stentor__V1__VendorCredential CredentialEntry;

// The vendor is "smtp", "inapp" or one of vendor_find().
bool routing_is_vendor(Str vendor);
bool routing_is_own(Str vendor);            // "smtp" or "inapp": without a credential
Channel routing_vendor_channel(Str vendor); // CHANNEL_NONE: it is none
bool routing_is_name(Str name, size_t max); // [a-z0-9_-]{1,max}

// PERMANENT; the text begins with the field's name: "vendors[1].vendor: ...".
bool route_check(const RouteEntry *route, Error *err);
// Has its vendor a secret at all? Else it has no reference either.
bool credential_has_secret(const CredentialEntry *credential);
// All but the reference, which common/credential reads. PERMANENT likewise. Its base_url is one
// that the guard of common/http/client lets pass, so a secret crosses no network in clear.
bool credential_entry_check(const CredentialEntry *credential, Error *err);

typedef struct Routes Routes;
Routes *routes_new(void);
void routes_free(Routes *routes); // NULL-safe
// An entry of CONFIG; an empty payload removes it. PERMANENT: it cannot be read or is wrong, and
// what was there stays.
bool routes_changed(Routes *routes, Str tenant, Str key, Str payload, Error *err);
// key: "<vendor>.<name>".
bool routes_credential_changed(Routes *routes, Str tenant, Str key, Str payload, Error *err);

// Those with a vendor: `base`, in-app always, and each for which the tenant or the platform has a
// credential that is neither staged nor revoked.
ChannelSet routes_channels(const Routes *routes, Str tenant, ChannelSet base);

// NULL: not there. Borrowed until the next change.
const RouteEntry *routes_get(const Routes *routes, Str tenant, Str key);
const CredentialEntry *routes_credential(const Routes *routes, Str tenant, Str vendor, Str name);
// The owner's own, in their order; in `arena`.
const RouteEntry **routes_list(const Routes *routes, Str tenant, Arena *arena, size_t *ret_count);
const CredentialEntry **routes_credentials(
    const Routes *routes, Str tenant, Arena *arena, size_t *ret_count);
// As it counts: of several active ones of one owner and vendor the one that was promoted last is
// active, the others are superseded. So a promotion is one entry, and nothing between two of them
// can be lost.
Stentor__V1__CredentialState routes_credential_state(
    const Routes *routes, const CredentialEntry *credential);
// Whose secret a mail of the tenant is sent with: the one of that name, or with an empty name the
// active one; the tenant's own before the platform's. A revoked or staged one is none. NULL: none.
const CredentialEntry *routes_account(const Routes *routes, Str tenant, Str vendor, Str name);
// The newest superseded one of the same owner and vendor: what takes over when `active` is refused
// within 60 s of its promotion, and what is active again when `active` is revoked. NULL: none.
const CredentialEntry *routes_predecessor(const Routes *routes, const CredentialEntry *active);

// How a vendor's credential stands now.
typedef enum VendorStanding {
    STANDING_UP,
    STANDING_DEGRADED, // loses points of its share of the step
    STANDING_OPEN,     // its breaker is
    STANDING_DISABLED, // suspended by an operator
} VendorStanding;

// credential: NULL for smtp and inapp. *ret_points: of STANDING_DEGRADED, percent points of its
// step's mails.
typedef VendorStanding (*RouteStanding)(
    void *ctx, Str vendor, const CredentialEntry *credential, uint32_t *ret_points);

typedef struct RouteQuestion {
    Str tenant;
    Channel channel;
    Category category;
    Str address; // a vendor that takes no such one is left out; empty: any does
    Str domain;  // of an e-mail address; compared without case
    Str country; // of a phone number, "DE"
    Str notification_id;
    const Str *avoid; // vendors that have refused it
    size_t avoid_count;
    RouteStanding standing; // NULL: all are up
    void *ctx;
} RouteQuestion;

enum { ROUTES_REASON_SIZE = 160 };
// Has the tenant a vendor that takes the address? false: *reason says which addresses have one. The
// address itself is not in it.
bool routes_takes(
    const Routes *routes, Str tenant, Channel channel, Str address,
    char reason[ROUTES_REASON_SIZE]);

typedef struct RoutePick {
    Str vendor;
    const CredentialEntry *credential; // NULL: smtp or inapp
    VendorStanding standing;
} RoutePick;

typedef struct RouteChoice {
    const RouteEntry *route; // NULL: none matches, and nothing is picked unless `implied`
    // No route matches, so each vendor of the channel that has a credential is one of them, in the
    // order of vendor_at(); of in-app the inbox. Never of e-mail, which has the SMTP server.
    bool implied;
    RoutePick picks[ROUTE_VENDORS_MAX]; // in the order in which they are tried
    size_t count;
    size_t all; // picks[count] to picks[all - 1] are left out, for they are open or suspended
    // All that are left are open or suspended: picks[0] is the one to wait for.
    bool waits;
    RoutingRules rules;
} RouteChoice;

// Slices and entries are borrowed from `routes` until its next change. An avoided vendor, one that
// takes no such address, one without a credential, and one beyond max_vendors (avoided ones count)
// are left out; an open or suspended one too when the route falls back on `open`, else it keeps its
// place and `waits`.
void routes_choose(const Routes *routes, const RouteQuestion *question, RouteChoice *ret);
