// SPDX-License-Identifier: Apache-2.0
// Job: one delivery on its way through the dispatcher, and the pure part of its handling: what was
// read, which mail it makes, what a vendor's answer means. No I/O; time is an argument. Law: a job
// lives in its batch's arena and ends with the delivery's settle; nothing touches it after that.
// Where it is on its way is its state (job_state.h).
#pragma once

#include "common/bus/consume/worker.h"
#include "common/codec/seal.h"
#include "common/mime/mime.h"
#include "common/model/rules/ladder.h"
#include "common/model/rules/quiet_hours.h"
#include "common/routing/routes.h"
#include "services/dispatcher/attachments/attachments.h"
#include "services/dispatcher/directory.h"
#include "services/dispatcher/dress/copies.h"
#include "services/dispatcher/dress/dress.h"
#include "services/dispatcher/job_state.h"
#include "services/dispatcher/ledger/ledger.h"
#include "services/dispatcher/unknown.h"
#include "services/dispatcher/vendor/vendor.h"
#include "stentor/v1/rendered.pb-c.h"

// Throttled attempts use no rung of the ladder for so long after the mail was rendered, then each
// uses one; and attempts have a maximum of their own.
enum { JOB_THROTTLED_FREE_H = 24, JOB_ATTEMPTS_MAX = 1000 };
enum { JOB_RESENDS_MAX = 1, JOB_NAME_SIZE = 48, JOB_REPLY_MAX = 1000 };

typedef struct VendorPlace VendorPlace; // routing/vendors.h
typedef struct Vendors Vendors;

// Which vendors a route gives the mail, and what it is for. All zero: no route, so everything goes
// to the SMTP server of the options.
typedef struct JobRoute {
    bool routed;
    const char *name;                        // of the route; "": it was found by an earlier attempt
    VendorPlace *targets[ROUTE_VENDORS_MAX]; // in the order in which they are tried
    size_t count, at;
    RoutingRules rules;
    int64_t waits_until_us; // 0: it need not; else all its vendors are down until then
    const char *waits_for;  // why, for an operator
    // It may have been sent at targets[at], so it goes to no other vendor unless a policy says so.
    bool bound;
    bool absent;      // the vendor of the attempt before never had it
    NextAction doubt; // with Rendered.unknown_vendor: what the policy says about that attempt
} JobRoute;

typedef struct Job Job;
struct Job {
    void *owner; // the Dispatcher
    void *lane;  // the DispatcherLane that it came through
    Delivery *delivery;
    Stentor__V1__Rendered *rendered;
    JobState state;           // written by job_state_move() alone
    const LedgerKey *key;     // which attempt it is
    Str name;                 // "ntf_.../<attempt>": in the table of jobs in flight
    LedgerRow row;            // its row in the ledger, or the one to be written ...
    const LedgerKey *row_key; // ... under this key: `key`, or an earlier attempt settled as sent
    LedgerConflict *conflict; // the row that was in the way of the claim; NULL: none
    LedgerPlace place;        // where its mail goes under its claim
    Mail mail;
    size_t attached; // bytes of files that it holds (attachments_hold)
    Dress dress;     // what the mail carries beside its content
    Str message_id;  // without <>
    Str from_domain; // of its From, and whose mailbox it goes to (mail_provider); empty: not known
    Str provider;
    int64_t taken_us; // when its handling started, of clock_mono_us()
    uint32_t resends;
    JobRoute route;
    bool crowded;           // its vendor has its part of the lane already (routing/bulkhead.h)
    int64_t begun_us;       // when the last call of a vendor began
    bool taken_unknown;     // its claim was that of a process that may have sent it
    const SendResult *last; // of the call that was surely not sent, while it moves on ...
    size_t moves_to;        // ... to this one of route.targets ...
    LedgerPlace next_place; // ... and there
    Job *next;
    bool aside; // Postgres has rejected its outcome (record.c)
    // Two facts that are found before the claim and used once it is held; so each is true or false
    // in most states.
    bool decided;   // row is the outcome already; nothing is sent
    bool postponed; // not sent now: too many of its tenant's mails wait already (turns.h)
};

typedef struct JobRules {
    Ladders ladders;
    Str from_name, from; // the installation's default sender
    Str mail_domain;
    const char *vendor; // of mails without a route: "smtp"
    DressRules dress;
    Str public_url; // below it vendors report each attempt; empty: they are given no address
    const MasterKey *master; // of the capabilities in it
    HashKeys hash_keys;      // of addresses: common/codec/hash.h
    Zones *zones;            // of quiet hours; NULL: none hold
} JobRules;

// "<notification id>/<attempt>" in `space`.
Str job_name(Str notification_id, int32_t attempt, char *space, size_t size);

// Reads and checks the event. ERROR_PERMANENT names the field; the delivery then becomes a dead
// letter.
bool job_read(Job *job, Delivery *delivery, int64_t now_us, Error *err);

typedef struct JobOpening {
    const JobRules *rules;
    Directory *directory;
    Vendors *vendors; // NULL: no routes
    Attachments *attachments;
    uint64_t now_ms;      // of the loop
    DataKey *address_key; // NULL: destroyed
    DataKey *content_key;
    Arena *scratch; // for the plain text; reset by the caller
    Buf *buf;       // for composing; cleared here
    int64_t now_us;
    bool patient; // waits for what CONFIG has not delivered yet
} JobOpening;

// Unseals, unpacks and composes the mail, or decides the job (expired, erased, unreadable, a bad
// address, a suppressed one, an unverified sender). false: its template version is not
// known here yet, or, of a patient opening, its sender's domain. In opening/.
bool job_open(Job *job, const JobOpening *opening);

// What the ledger's answer to the claim means for the job.
typedef enum Course {
    COURSE_BEGIN,   // the claim is ours
    COURSE_RECHECK, // a row is in the way and not visible
    COURSE_REPEAT,  // there is an outcome: publish it once more, send nothing
    COURSE_TAKE_OVER,
    COURSE_PARK,
    COURSE_WAIT, // another process holds it
} Course;

// Pure. owner: this process; policy: the channel's, for a claim whose outcome is unknown.
Course job_classify(const Job *job, Str owner, UnknownPolicy policy);

// What the vendor's result makes of the attempt, into job->row. The vendor's reply is cleaned for
// Postgres and protobuf: UTF-8, no control characters, JOB_REPLY_MAX bytes at most.
void job_outcome(Job *job, const JobRules *rules, const SendResult *result, int64_t now_us);
// The same, but the next attempt is due at `due_us` and uses no rung. step: LedgerRow.next_step, or
// "".
void job_defer(
    Job *job, const SendResult *result, int64_t due_us, const char *step, int64_t now_us);
// The vendor's answer without this message's address in its text (mask_known); other addresses are
// masked where it is read. In the job's arena.
SendResult job_shown(const Job *job, const SendResult *result);
const SendResult *job_keep_result(const Job *job, const SendResult *result); // in its arena
// Failed, decided here before its claim: nothing is sent. The reason is cleaned as a reply is.
// dead_letter: its rung stays in the row, which makes a letter of it (report.c).
void job_decide_unsent(Job *job, const char *code, Str reason, bool dead_letter, int64_t now_us);
// The same of a claimed job, without a letter: nothing is sent any more.
void job_decide(Job *job, const char *reason_code, const char *reason, int64_t now_us);
// For a row that Postgres rejects: drops all but the state, the times and the code. false: there
// was nothing more to drop.
bool job_shorten_row(Job *job);
