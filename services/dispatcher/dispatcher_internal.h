// SPDX-License-Identifier: Apache-2.0
// What dispatcher.c, intake.c, claim.c, outcomes.c, next.c, move.c and record.c share.
#pragma once

#include "common/base/map.h"
#include "common/model/company.h"
#include "services/dispatcher/dispatcher.h"
#include "services/dispatcher/health.h"
#include "services/dispatcher/routing/bulkhead.h"
#include "services/dispatcher/routing/vendors.h"

enum {
    FLUSH_MAX = 256,
    FLUSH_MS = 2,
    FLUSH_BACKOFF_MIN_MS = 100,
    FLUSH_BACKOFF_MAX_MS = 5000,
    STOP_PATIENCE_MS = 3000, // with a Postgres that does not answer
    REDELIVER_TEMPLATE_MS = 200,
    REDELIVER_RACE_MS = 200,
    REDELIVER_SELF_MS = 1000,
    REDELIVER_MAX_MS = 60000,
    TEMPLATE_DELIVERIES_MAX = 300, // then the template version is given up
    SENDER_DELIVERIES_MAX = 25,    // then the sender's domain counts as unverified
    RACE_DELIVERIES_MAX = 20,      // then it was no race
    LANES = PRIORITY_COUNT - 1,
    OPEN_EVERY_S = 15,
};

typedef struct DispatcherMetrics {
    Metric *sent, *rejected, *exhausted, *decided, *deferred, *unknown, *parked, *refused,
        *returned, *released, *lost, *postponed, *waiting, *moved, *settled, *open_claimed,
        *open_parked;
    Metric *callbacks_late, *callbacks_repeated, *callbacks_unknown, *callbacks_foreign;
    Metric *send_seconds;
    Metric *delivery_seconds;                             // from when it was to be sent
    Metric *mails_sent, *mails_failed, *mails_suppressed; // by how they ended
    Metric *attempts_sent, *attempts_failed;              // how many a mail had taken then
} DispatcherMetrics;

// Deliveries of one worker. A kill leaves its claims without an outcome unknown, so they are kept
// few: at claims_max of them the worker hands over no more.
typedef struct DispatcherLane {
    Dispatcher *dispatcher;
    Worker *worker;
    Priority lane;
    size_t jobs; // admitted and not settled; held ones are not counted
    size_t held;
    Map *tenants; // their tenants; turns.c owns it
    bool full;
    bool slow;
    Company company;       // of the tenants whose deliveries arrive
    int64_t full_since_us; // of clock_mono_us()
} DispatcherLane;

typedef struct JobQueue {
    Job *head, *tail;
    size_t count;
} JobQueue;

struct Dispatcher {
    DispatcherParts parts;
    Str owner;
    Directory *directory;
    Health *health;
    ConfigMirror *mirror;
    Keyring *keyring;
    DispatcherLane lanes[LANES];
    Worker *settler;
    bool working; // the workers were started
    Map *jobs;    // in flight in this process: name -> Job
    Bulkhead *bulkhead;
    Arena *scratch;
    Buf buf;
    JobQueue finished;         // outcomes not yet handed to Postgres, in order
    JobQueue moving;           // claims not yet moved to another vendor
    JobQueue aside;            // outcomes that Postgres rejects; their claims are kept
    unsigned flush_backoff_ms; // 0: Postgres answers
    bool renewing;
    uv_timer_t flush_timer;
    uv_timer_t moves;
    uv_timer_t tick;  // start-up, renewals
    uv_timer_t turns; // of held deliveries
    int64_t partitions_at_us;
    int64_t open_at_us;        // when the open unknowns were last counted
    int64_t foreign;           // vendors' events that were dropped since the last line about them
    int64_t foreign_logged_us; // of clock_mono_us(); 0: never
    DispatcherMetrics metrics;
    bool stopping;
    uint64_t stopping_at_ms;
    int open; // workers, mirror and handles not yet closed
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

// Jobs that are handled together. It is in the deliveries' arena, so it is gone when the last of
// them is settled.
typedef struct JobBatch {
    Dispatcher *dispatcher;
    Job **jobs;
    size_t count;
    KeyWant *wants; // two for each job: its address's key and its content's
    int64_t now_us;
    size_t takes; // of take_over(): this many are taken over, the others are parked
} JobBatch;

// intake.c
void intake_batch(DispatcherLane *lane, Delivery **deliveries, size_t count);
void intake_left(Job *job);                  // its claim ended: there is room for another
void intake_watch(Dispatcher *dispatcher);   // starts the timer of held deliveries
void intake_give_up(Dispatcher *dispatcher); // returns held deliveries, for a stop

// claim.c
void claim_batch(JobBatch *batch); // CLAIMING; afterwards each job goes on by itself

// settle.c
void settle_batch(Dispatcher *dispatcher, Delivery **deliveries, size_t count);
void settle_count_open(Dispatcher *dispatcher); // when due: queries the gauge's values

// outcomes.c
bool outcomes_move(Job *job, JobState next);      // false: not allowed; leave the job alone
void outcomes_publish(Job *job);                  // RECORDED: publishes job->row, settles
void outcomes_settle(Job *job, const Error *err); // the only ways in which a job ends
void outcomes_redeliver(Job *job, int64_t delay_ms);
void outcomes_on_sent(
    void *ctx, Mail *mail, const SendResult *result); // a MailDone; ctx is the Job
UnknownPolicy outcomes_policy(const Job *job);

// next.c: mails with a route
void next_begin(Job *job);                           // CLAIMED: sends, or records why not
void next_after(Job *job, const SendResult *result); // SENDING
void next_taken_over(Job *job);                      // CLAIMED: the process before may have sent it
void next_moved(Job *job);                           // CLAIMED, at the next vendor
void next_not_moved(Job *job);                       // MOVING
// The vendor that works now and follows in the route, when the attempt is to be repeated there.
// Empty: it is not, or the route is not known here any more (a redelivery).
Str next_fallback(const Job *job);
// A mail without a route that the limit of the SMTP server kept: again soon, without a rung.
bool next_is_limited(const SendResult *result);
void next_limited(Job *job, const SendResult *result); // SENDING

// move.c
void move_add(Job *job, size_t target); // MOVING, to that one of route.targets

// record.c
void record_append(JobQueue *queue, Job *job);
Job *record_take_first(JobQueue *queue);       // NULL: it is empty
void record_add(Job *job, JobState next);      // RECORDING: job->row; RELEASING: its claim
void record_try_aside(Dispatcher *dispatcher); // one, at each tick; all when it is recorded
void record_all_aside(Dispatcher *dispatcher); // all, as when the process stops
void record_renew(Dispatcher *dispatcher);     // leases of mails that are still in flight
