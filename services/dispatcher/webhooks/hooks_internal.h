// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share.
#pragma once

#include "common/base/map.h"
#include "common/bus/consume/worker.h"
#include "common/config/config_mirror.h"
#include "common/db/lock.h"
#include "services/dispatcher/budget/budgets.h"
#include "services/dispatcher/webhooks/hook_ledger.h"
#include "services/dispatcher/webhooks/hooks.h"
#include "services/dispatcher/webhooks/subscriptions.h"
#include "stentor/v1/webhook.pb-c.h"

enum {
    HOOK_FLUSH_MS = 1,           // claims, and outcomes, that share a statement
    HOOK_FLUSH_AGAIN_MS = 500,   // outcomes, or rows, that Postgres did not take
    HOOK_CONFIG_AGAIN_MS = 5000, // rows whose table, or a right on it, is missing
    HOOK_STOP_PATIENCE_MS = 3000,
    HOOK_QUEUE_FACTOR = 4, // of an endpoint: so many times its posts on the way may wait in memory
    HOOK_TENANT_PART = 4,  // a tenant has at most this part of all posts, and of what is in hand
    HOOK_CHAIN_MAX = 64,   // events of one notification that wait in memory for the first one
    HOOK_HOLD_MIN_S = 1,
    HOOK_HOLD_MAX_S = 60,
    HOOK_MISSED_MAX = 6, // rounds that an event in order waits for one that gives no sign
    HOOK_RESPONSE_MAX = 1024,
    HOOK_RACE_MS = 200,
    HOOK_GONE = 410, // the endpoint's word that it wants nothing any more
    HOOK_TOO_MANY = 429,
    HOOK_SELF_MS = 1000,
    HOOK_EARLY_READS = 5, // of a status before its notification's category is not known: 15 s
    HOOK_EARLY_S = 15,
    HOOK_EARLY_MAX = 512, // of them in that time
    HOOK_YOUNG_S = 600,   // a notification whose category may still come
    HOOK_IDLE_S = 600,    // an endpoint without work is forgotten
    HOOK_STAGE_TICK_MS = 500,
};

typedef struct HookMetrics {
    Metric *matched, *delivered, *retried, *failed;
    Metric *held_full, *held_late, *held_order;
    Metric *disabled, *repeated, *gone, *uncategorised;
    Metric *post_seconds;
} HookMetrics;

typedef struct HookJob HookJob;

typedef struct JobList {
    HookJob *head, *tail;
    size_t count;
} JobList;

// What a tenant has here together: slow endpoints of one tenant leave room for others'.
typedef struct HookTenant {
    size_t in_hand; // its jobs, each from its reading to its end
    size_t posting;
} HookTenant;

// One subscription's deliveries here, whatever CONFIG says of it meanwhile.
typedef struct Endpoint {
    char *key; // "<tenant>|<subscription id>"
    HookTenant *tenant;
    JobList queue;
    uint32_t posting;   // claimed or being claimed
    bool probing;       // its last post got no answer: one at a time until it answers
    bool starved;       // in hooks->starved: waits for a token
    uint64_t disabling; // the entry's sequence whose end is being stored; 0: none is
    int64_t used_us;    // of clock_mono_us()
} Endpoint;

struct HookJob {
    Hooks *hooks;
    Delivery *delivery;
    Stentor__V1__WebhookDelivery *event;
    HookTenant *tenant;
    Endpoint *endpoint;         // NULL: it has not come to one, or is not posted
    HookJob *next;              // in the list that it is in
    JobList chain;              // events of the same notification that wait for this one
    int64_t read_us, posted_us; // of clock_mono_us()
    const char *refusal; // it is claimed to record this, nothing is posted; NULL: it is posted
    HookOutcome outcome;
    char response[HOOK_RESPONSE_MAX];
    size_t response_len;
    int64_t hold_at_us; // it is put back until then
    const char *hold_why;
    bool gone;    // 410
    bool counted; // in endpoint->posting
    bool refused; // Postgres refused its outcome
};

// Claims, or outcomes, of one statement; in the transaction's arena.
typedef struct JobBatch {
    Hooks *hooks;
    HookJob *jobs[HOOK_BATCH_MAX];
    size_t count;
    int statement;
} JobBatch;

typedef struct MatchBatch MatchBatch;

typedef enum MatchTurn {
    MATCH_WAITS, // another process's, or it is not known yet where the consumer stands
    MATCH_READS,
    MATCH_RESTS, // there is no subscription, and the consumer is closed
} MatchTurn;

struct Hooks {
    HooksParts parts;
    Str owner;
    Subscriptions *subscriptions;
    ConfigMirror *mirror;
    Worker *matcher, *deliverer;
    DbLock *match_lock;
    MatchBatch *matching, *matching_last; // the first is in Postgres, the others wait
    HttpClient *client;
    Budgets *budgets;
    Map *tenants;   // tenant -> HookTenant, as long as the process lives
    Map *endpoints; // key -> Endpoint
    Map *jobs;      // delivery id -> HookJob
    Map *chains;    // "<subscription id>|<notification id>" -> the HookJob that goes first
    Endpoint **starved;
    size_t starved_count, starved_room;
    JobList claiming, recording;
    JobList signing; // in order: put back once their rows have a sign
    JobList refused; // outcomes that Postgres refuses
    uv_timer_t tick, claim_timer, record_timer, starved_timer, turn_timer, match_timer;
    MatchTurn turn;
    bool asking;            // where the consumer of STATUS stands, or moving it
    bool moved;             // since it was last known
    int64_t looked_us;      // of clock_mono_us(): when it was asked
    int64_t wanted_us;      // of clock_mono_us(): when there was a subscription
    int64_t early_since_us; // of clock_mono_us(): in the HOOK_EARLY_S since then so many statuses
    size_t early_count;     // were put back, because their notification's category may still come
    size_t posts;           // on the way
    HookMetrics metrics;
    bool working, stopping;
    uint64_t stopping_at_ms;
    int open;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

void job_list_push(JobList *list, HookJob *job);
HookJob *job_list_pop(JobList *list); // NULL: it is empty
// All of them, HOOK_BATCH_MAX at a time.
void job_list_submit(
    JobList *list, Hooks *hooks, void (*submit)(Hooks *hooks, HookJob *const *jobs, size_t count));

// match.c
void match_batch(Hooks *hooks, Delivery **deliveries, size_t count);
void match_give_up(Hooks *hooks); // what waits for Postgres, for a stop

// match_turn.c
void match_begin(Hooks *hooks); // the worker matches while this process has the lock
void match_tick(Hooks *hooks);  // whether there is something to match for

// intake.c
void hook_intake(Hooks *hooks, Delivery **deliveries, size_t count);
void hook_give_up(Hooks *hooks); // returns what waits, for a stop
// As it is now; NULL: it was removed.
const Subscription *hook_subscription(const HookJob *job);
// The error that is recorded because nothing may be posted; NULL: it may be posted. Asked whenever
// the job goes on, for it may have waited: "removed", "disabled", "gone", "secret" (none signs).
const char *hook_refusal(const HookJob *job, int64_t now_us);
void hook_tick(Hooks *hooks); // what waited for too long; endpoints without work
// Every way in which a job ends: err as delivery_settle's.
void hook_end(HookJob *job, const Error *err);
void hook_redeliver(HookJob *job, int64_t delay_ms);
// Back for a moment, which uses no attempt. at_us 0: by how often it was held before.
void hook_hold(HookJob *job, int64_t at_us, const char *why);
void hook_put_back(HookJob *job); // what hook_hold ends with

// order.c
// What is waited for is asked about after so long, and HOOK_MISSED_MAX times.
int64_t hook_round_ms(const Hooks *hooks);
// Counts a round of the one that waits; true: the event of the other one is in no stream any more.
bool hook_is_gone(
    Stentor__V1__WebhookDelivery *waiting, const HookBlocker *first, int64_t round_ms);
void hook_wait_in_order(HookJob *job, const HookBlocker *first);
bool hook_wants_sign(const HookJob *job, int64_t now_us); // that it is on its way
void hook_sign_flush(Hooks *hooks);

// endpoint.c
HookTenant *tenant_of(Hooks *hooks, Str name);
bool tenant_has_room(const Hooks *hooks, const HookTenant *tenant); // for one more in hand
Endpoint *endpoint_of(Hooks *hooks, const Subscription *subscription);
bool endpoint_take(Endpoint *endpoint, const Subscription *subscription, HookJob *job);
void endpoint_pump(Hooks *hooks, Endpoint *endpoint); // claims what may be posted now
void endpoint_pump_starved(Hooks *hooks);

// claim.c
void hook_claim(HookJob *job);
void hook_claim_flush(Hooks *hooks);

// post.c
void hook_post(HookJob *job, int64_t now_us); // which hook_refusal allowed at this time

// outcome.c
void hook_record(HookJob *job); // job->outcome
void hook_record_flush(Hooks *hooks);
void hook_record_refused(Hooks *hooks); // the first of them once more
void hook_publish(HookJob *job);        // the recorded outcome
// Of a recorded failure: so many in a row turn the endpoint off. Not one of before its subscription
// was turned on again.
void hook_judge(HookJob *job, int64_t failures);
// The outcome of an attempt that failed: again by the ladder, or its end.
void hook_failed(HookJob *job, const char *error, int status_code, uint32_t retry_after_ms);

// disable.c
void hook_disable(HookJob *job, const char *reason);
bool hook_event_out(
    const HookJob *job, const char *type, const char *error, const char *id, BusOut *ret,
    Error *err);
