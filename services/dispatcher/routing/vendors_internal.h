// SPDX-License-Identifier: Apache-2.0
// What vendors.c (the vendors and the choice among them), vendors_doubt.c (mails that may have been
// sent), vendors_probe.c (who tries a vendor that was left alone) and vendors_state.c (their state
// in CONFIG) share.
#pragma once

#include "common/base/map.h"
#include "common/config/channel_health.h"
#include "common/vendor/generic/definition.h"
#include "services/dispatcher/routing/endpoints.h"
#include "services/dispatcher/routing/outcome_counts.h"
#include "services/dispatcher/routing/vendors.h"

enum { VENDOR_REASON_MAX = 200 };

struct VendorPlace {
    Vendors *vendors;
    Vendor vendor;
    HttpVendor *http; // NULL: smtp, inapp
    const VendorApi *api;
    char *name;                   // the vendor's
    VendorDefinition *definition; // of a vendor by definition, as its credential has it; else NULL
    char *owner;                  // the tenant whose credential it is, or "platform"
    char *credential;             // "" of smtp and inapp
    char *limit;                  // key of its limits, which all dispatchers share
    Breaker breaker;
    int64_t quota_per_s, quota_per_day; // as the vendor says; 0: none
    int64_t quota_due_us;               // when it is asked again, of clock_mono_us()
    // vendors_probe.c
    int64_t offered_us;     // when a mail was last sent its way to be the probe
    int64_t right_until_us; // this dispatcher may probe it; 0: it has to ask
    bool mended;            // its credential is another one since the breaker opened
    // What CONFIG has to say of it (vendors_state.c).
    char reason[VENDOR_REASON_MAX];
    int64_t down_since_us; // 0: its breaker is closed
    bool refused;
    bool storing;
    int64_t stored_at_us;
    Arena *arena; // of the entry that is being stored
};

// An entry cfg.channel_health.<tenant>.<channel>_<vendor>.
typedef struct VendorEntry {
    ChannelStatus status; // that of CHANNEL_DISABLED until until_us
    int64_t until_us;     // INT64_MAX: until it is resumed
    int64_t changed_at_us, down_since_us;
    uint64_t sequence;
    bool refused;
    uint32_t points;                          // of CHANNEL_DEGRADED: what it loses of a hundred
    char credential[CREDENTIAL_NAME_MAX + 1]; // "": of any
} VendorEntry;

struct Vendors {
    VendorsParts parts;
    Routes *routes;
    HttpClient *client;
    Http2Client *client2;
    size_t calls; // that all of its HTTP APIs may have on the way
    Secrets *secrets;
    Budgets *budgets;        // NULL: no limits
    OutcomeCounts *outcomes; // NULL: none are counted
    Endpoints *endpoints;
    Map *places;  // "<owner>/<vendor>/<credential>" -> VendorPlace
    Map *known;   // "<tenant>/<key>" of the routes, for a gauge
    Map *entries; // "<tenant>/<channel>_<vendor>" -> VendorEntry
    VendorPlace *smtp;
    VendorPlace *inapp; // NULL: without NATS
    bool draining, stopping;
    size_t open; // HTTP vendors, entries on the way to CONFIG, and one for the rest
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// vendors.c
// Whose credential is used; the one before it while this one is refused. entry NULL: the one of
// `vendor`, which has none. NULL: there is no room.
VendorPlace *vendors_place_in_use(Vendors *vendors, Str vendor, const CredentialEntry *entry);

// vendors_probe.c
bool vendors_wants_probe(const VendorPlace *place, int64_t now_us);
// May this mail be the probe that it wants? It is offered one now and then, as one that is up.
bool vendors_takes_probe(VendorPlace *place, const Job *job, int64_t now_us);
void vendors_end_right(VendorPlace *place); // when its breaker is open again, or closed

// vendors_delivery.c
OutcomeCounts *vendors_count_outcomes(Vendors *vendors); // NULL: without Postgres
// With a credential of the owner's, of which all have the same points; NULL: there is none here.
VendorPlace *vendors_find_place(const Vendors *vendors, Str owner, Str vendor);

// vendors_doubt.c
// What the policy says about the attempt before, whose answer never came.
void vendors_resolve_doubt(Vendors *vendors, const RouteChoice *choice, Job *job, int64_t now_us);

// vendors_state.c
bool vendors_put_entry(
    Vendors *vendors, Str tenant, Str key, const BusMessage *message, Error *err);
// Is it suspended for mails of the tenant? *ret_until_us: until when.
bool vendors_is_suspended(
    const Vendors *vendors, const VendorPlace *place, Str tenant, int64_t now_us,
    int64_t *ret_until_us);
// Of a hundred of its step's mails, how many it loses: it is degraded. 0: it is not.
// *ret_changed_at_us: since when.
uint32_t vendors_points(
    const Vendors *vendors, const VendorPlace *place, int64_t *ret_changed_at_us);
// false: not now; an operator's word stands, or another entry is on its way.
bool vendors_store_points(VendorPlace *place, uint32_t points, const char *reason);
void vendors_hear_known(VendorPlace *place); // when it is opened
void vendors_note_move(VendorPlace *place, BreakerMove move, const char *reason);
void vendors_store_state(VendorPlace *place);
void vendors_part_closed(Vendors *vendors);
