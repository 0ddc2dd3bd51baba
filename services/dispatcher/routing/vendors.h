// SPDX-License-Identifier: Apache-2.0
// Vendors: all that this dispatcher can send through: the SMTP server of its options, and for each
// credential of CONFIG that is used the HTTP API of its vendor, opened when a route first leads
// there. It follows the routes, credentials and suspensions of CONFIG, has a breaker for each, and
// says which of them take a mail. Law: what a breaker finds is stored in CONFIG, so that all
// replicas know it and an operator sees it; an operator's suspension wins.
#pragma once

#include "common/credential/secrets.h"
#include "common/routing/breaker.h"
#include "services/dispatcher/budget/budgets.h"
#include "services/dispatcher/job.h"
#include "services/dispatcher/vendor/http/http_vendor.h"

enum {
    VENDOR_PLACES_MAX = 1024,
    VENDORS_SUSPENDED_WAIT_S = 300, // how long a mail waits whose vendors are all suspended
};

typedef struct VendorsParts {
    uv_loop_t *loop;
    Bus *bus;     // NULL: nothing is stored in CONFIG
    DbPool *pool; // NULL: credentials' limits do not count
    Vendor smtp;
    const char *instance;
    int64_t smtp_per_s, smtp_per_day; // its limits, as those of a credential; 0: none
    unsigned calls;                   // at once, of one credential
    int64_t connect_ms, call_ms;
    const char *ca_file;     // NULL: the system's
    HttpGuard guard;         // where credentials may point to
    Metrics *metrics;        // NULL: none
    const char *secret_dirs; // SECRET_DIRS_OPTION
} VendorsParts;

Vendors *vendors_new(const VendorsParts *parts, Error *err);
// An entry of CONFIG, of any kind; those that are none of its own change nothing.
bool vendors_changed(
    Vendors *vendors, Str kind, Str tenant, Str key, const BusMessage *message, Error *err);
// Every few seconds: stores what the breakers found.
void vendors_tick(Vendors *vendors);
// What fails, for /readyz, with ';' between; nothing: all is well.
void vendors_warn(const Vendors *vendors, Buf *warning);
// Answers mails that were not started with SEND_RELEASED, from now on.
void vendors_drain(Vendors *vendors);
// After the last answer. on_stopped: all is closed; then vendors_free().
void vendors_stop(Vendors *vendors, void (*on_stopped)(void *ctx), void *ctx);
void vendors_free(Vendors *vendors);
Secrets *vendors_secrets(const Vendors *vendors); // DKIM keys are read by them too
// May the SMTP server get a mail of the lane now? As HttpVendorOptions.may_start; ctx: the Vendors.
bool vendors_smtp_may_start(void *ctx, Priority lane, size_t waiting, int64_t *ret_at_us);
// What a callback says of a mail of the tenant.
void vendors_heard(
    Vendors *vendors, Str tenant, Str vendor, Status status, Str reason_code, int64_t at_us);
size_t vendors_calls(const Vendors *vendors); // that all of its HTTP APIs may have on the way

// Fills job->route for a mail to that address, and job->place for its claim. The job's row says
// nothing yet.
void vendors_choose(Vendors *vendors, Job *job, Str address, int64_t now_us);
// Where a claim is that another process left; NULL: its credential is gone.
VendorPlace *vendors_place(Vendors *vendors, Str tenant, Str vendor, Str credential);
bool vendors_want_message(const JobRoute *route); // does one of them take the mail as bytes only?
// Does one of them write Date and Message-ID itself? The mail is signed once for all of them.
bool vendors_rewrite_message(const JobRoute *route);

// ---- one of them ----

const Vendor *vendor_of(const VendorPlace *place);
const VendorApi *vendor_api_of(const VendorPlace *place); // NULL: smtp
int64_t vendor_key_known_s(const VendorPlace *place);     // 0: it knows no keys
bool vendor_calls_back(const VendorPlace *place);         // it may report what it delivers
LedgerPlace vendor_ledger_place(const VendorPlace *place, Str key);
bool vendor_is_up(const VendorPlace *place, int64_t now_us); // closed, or a probe is due
// A mail that may have been sent there by the attempt before: what is known of that.
RoutingFacts vendor_doubt_facts(
    const VendorPlace *place, const Job *job, const RoutingRules *rules, int64_t now_us);
// May a message go to the address now? Of a vendor whose addresses are endpoints of their own
// (endpoints.h); true of all others. false: *ret_due_us is when it comes back.
bool vendor_endpoint_take(
    const VendorPlace *place, Str address, int64_t now_us, int64_t *ret_due_us);
void vendor_endpoint_tell(
    const VendorPlace *place, Str address, const SendResult *result, int64_t now_us);
// May it send now? BREAKER_WAIT: *ret_at_us is when to ask again. BREAKER_PROBE: with the right to
// it (vendor_claim_probe), or it is given back (vendor_no_probe).
BreakerAnswer vendor_ask(VendorPlace *place, int64_t now_us, int64_t *ret_at_us);
bool vendor_is_closed(const VendorPlace *place);
// One dispatcher at a time has the right to probe a vendor: of all together, one probe a wait of
// the breaker; who has it makes the further probes that close the breaker, one after the other.
// on_answer: at once or from the loop; refused, the probe is given back already.
void vendor_claim_probe(VendorPlace *place, void (*on_answer)(void *ctx, bool granted), void *ctx);
void vendor_no_probe(VendorPlace *place);
void vendor_note_taken(const VendorPlace *place); // it took a mail
void vendor_tell(VendorPlace *place, const SendResult *result, int64_t begun_us);
// When what waits for it should come back.
int64_t vendor_due_us(const VendorPlace *place, int64_t now_us);
