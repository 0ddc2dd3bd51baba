// SPDX-License-Identifier: Apache-2.0
// A mail with a route: at which vendor it begins, and what follows a vendor's answer. The table is
// routing_next() (common/routing); here its answers are acted on. A mail without a route goes to
// the SMTP server, and what its answer means is in outcomes.c.
#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/dispatcher/dispatcher_internal.h"
#include "services/dispatcher/routing/vendor_mail.h"
#include "services/dispatcher/turns.h"
#include "services/dispatcher/vendor/smtp/smtp_pool.h"

enum {
    JITTER_MS = ROUTING_PROBE_JITTER_MS,
    SOON_MS = 10000,        // sent again after an unknown outcome, when it could not be at once
    HOP_PATIENCE_MS = 3000, // how long a mail waits for SMTP connections when it may go elsewhere
};

// [0, 1) from the attempt's name: the same attempt always gets the same time.
static double chance_of(const Job *job)
{
    return (double)(str_hash(job->name) >> 11) / 9007199254740992.0;
}

static VendorPlace *place_of(const Job *job)
{
    return job->route.count > 0 ? job->route.targets[job->route.at] : NULL;
}

// The next vendor of the route that works. false: there is none, or the mail is bound to its own.
// An urgent mail is no probe while another vendor is there.
static bool find_other(const Job *job, int64_t now_us, size_t *ret)
{
    const JobRoute *route = &job->route;
    bool urgent = (Priority)job->rendered->priority <= PRIORITY_HIGH;
    bool found = false;
    for (size_t i = route->at + 1; !route->bound && i < route->count; i++) {
        const VendorPlace *place = route->targets[i];
        if (vendor_is_closed(place) || (!found && vendor_is_up(place, now_us))) {
            found = true;
            *ret = i;
            if (!urgent || vendor_is_closed(place)) {
                return true;
            }
        }
    }
    return found;
}

Str next_fallback(const Job *job)
{
    size_t other = 0;
    bool falls_back =
        str_eq(job->row.next_step, STR("fallback")) && find_other(job, clock_now_us(), &other);
    return falls_back ? vendor_ledger_place(job->route.targets[other], STR_EMPTY).vendor
                      : STR_EMPTY;
}

// ---- recorded ----

static void record_deferred(Job *job, const SendResult *result, int64_t due_us, const char *step)
{
    job_defer(job, result, due_us, step, clock_now_us());
    record_add(job, JOB_RECORDING);
}

static const char *step_of(const Job *job)
{
    return job->route.bound ? "settle" : job->route.absent ? "absent" : "";
}

// By the ladder, as without a route.
static void record_outcome(Job *job, const SendResult *result)
{
    const Dispatcher *dispatcher = job->owner;
    job_outcome(job, &dispatcher->parts.rules, result, clock_now_us());
    if (job->row.state == LEDGER_DEFERRED) {
        job->row.next_step = str_from(step_of(job));
    }
    record_add(job, JOB_RECORDING);
}

static int64_t probe_due_us(const Job *job, int64_t now_us)
{
    const VendorPlace *place = place_of(job);
    int64_t due_us =
        place != NULL ? vendor_due_us(place, now_us) : now_us + SOON_MS * INT64_C(1000);
    return due_us + (int64_t)(chance_of(job) * JITTER_MS * 1000);
}

static void record_waiting(Job *job, const char *why, int64_t due_us)
{
    SendResult result = {.state = SEND_ANSWERED, .reply = REPLY_THROTTLED, .text = str_from(why)};
    const Dispatcher *dispatcher = job->owner;
    metric_add(dispatcher->metrics.waiting, 1);
    record_deferred(job, &result, due_us, step_of(job));
}

// Nothing is sent: what the policy says of the attempt before is this one's outcome.
static void record_counted(Job *job, bool park)
{
    const Dispatcher *dispatcher = job->owner;
    static const char WHY[] = "the vendor's answer never came, and no callback either";
    SendResult result = {
        .state = SEND_UNKNOWN, .reply = REPLY_RETRY, .text = {WHY, sizeof WHY - 1}};
    job_defer(job, &result, 0, "", clock_now_us());
    job->row.rung = -1;
    job->row.state = park ? LEDGER_PARKED : LEDGER_SENT;
    metric_add(dispatcher->metrics.parked, park ? 1 : 0);
    record_add(job, JOB_RECORDING);
}

// ---- sending ----

// A mail over its vendor's part of the lane waits for its turn there for a moment only. One whose
// SMTP server cannot be reached waits for that.
static void note_sending(Job *job)
{
    Dispatcher *dispatcher = job->owner;
    const Vendor *vendor = vendor_of(place_of(job));
    const DispatcherLane *lane = job->lane;
    uint64_t patient_ms = uv_now(dispatcher->parts.loop) + BULKHEAD_PATIENCE_MS;
    bool over = bulkhead_enter(
        dispatcher->bulkhead, lane->lane, job->key->tenant, str_from(vendor->name),
        turns_room(lane), clock_mono_us());
    job->crowded = over && vendor->health(vendor->self).down_since_us == 0;
    if (job->crowded && job->mail.give_up_at_ms > patient_ms) {
        job->mail.give_up_at_ms = patient_ms;
    }
}

static void note_answered(const Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    const DispatcherLane *lane = job->lane;
    bulkhead_leave(
        dispatcher->bulkhead, lane->lane, job->key->tenant,
        str_from(vendor_of(place_of(job))->name));
}

// How long a mail waits for its turn at the vendor when it may go elsewhere.
static uint64_t patience_of(const Job *job, const VendorPlace *place)
{
    Priority priority = (Priority)job->rendered->priority;
    if (vendor_api_of(place) == NULL) {
        return HOP_PATIENCE_MS;
    }
    return priority == PRIORITY_CRITICAL ? ROUTING_PATIENCE_CRITICAL_MS
           : priority == PRIORITY_HIGH   ? ROUTING_PATIENCE_HIGH_MS
                                         : UINT32_MAX;
}

static void send_now(Job *job)
{
    Dispatcher *dispatcher = job->owner;
    const VendorPlace *place = place_of(job);
    Mail *mail = &job->mail;
    uint64_t now_ms = uv_now(dispatcher->parts.loop);
    size_t other = 0;
    vendor_mail_claim(job, &dispatcher->parts.rules);
    job->begun_us = clock_now_us();
    mail->give_up_at_ms = mail->held_until_ms - (uint64_t)dispatcher->parts.lease_ms / 4;
    uint64_t patience_ms = patience_of(job, place);
    if (mail->give_up_at_ms > now_ms + patience_ms && find_other(job, job->begun_us, &other)) {
        mail->give_up_at_ms = now_ms + patience_ms;
    }
    note_sending(job);
    const Vendor *vendor = vendor_of(place);
    vendor->send(vendor->self, mail);
}

static void pass_on(Job *job)
{
    int64_t now_us = clock_now_us();
    size_t other = 0;
    const JobRoute *route = &job->route;
    if ((route->rules.fallback_on & FALLBACK_OPEN) != 0 && find_other(job, now_us, &other)) {
        move_add(job, other);
    } else {
        record_waiting(
            job, "the vendor fails, and no other one may take it", probe_due_us(job, now_us));
    }
}

static void on_probe_claimed(void *ctx, bool granted)
{
    Job *job = ctx;
    if (!granted) {
        pass_on(job);
    } else if (outcomes_move(job, JOB_SENDING)) {
        send_now(job);
    }
}

// SENDING: to the vendor of its claim, if that vendor may be called now. The one that is to be the
// probe waits, CLAIMED, for the right to it.
static void enter(Job *job)
{
    int64_t at_us = 0;
    if (!vendor_endpoint_take(place_of(job), job->mail.to, clock_now_us(), &at_us)) {
        record_waiting(job, "its endpoint gets no more messages for now", at_us);
        return;
    }
    switch (vendor_ask(place_of(job), clock_now_us(), &at_us)) {
    case BREAKER_SEND:
        if (outcomes_move(job, JOB_SENDING)) {
            send_now(job);
        }
        break;
    case BREAKER_PROBE:
        vendor_claim_probe(place_of(job), on_probe_claimed, job);
        break;
    case BREAKER_WAIT:
        pass_on(job);
        break;
    }
}

static int64_t settled_at_us(const Job *job)
{
    int64_t now_us = clock_now_us();
    int64_t at_us = job->rendered->unknown_at_us + job->route.rules.settle_ms * 1000;
    return at_us > now_us ? at_us : now_us;
}

// What may have been sent ends without another call.
static void end_unknown(Job *job, NextAction action)
{
    if (action == NEXT_EXPIRE) {
        job_decide(
            job, "expired", "the notification expired before it could be sent", clock_now_us());
        record_add(job, JOB_RECORDING);
    } else {
        record_counted(job, action == NEXT_PARK);
    }
}

static void follow_doubt(Job *job);

void next_begin(Job *job)
{
    const JobRoute *route = &job->route;
    if (route->doubt != NEXT_END) {
        follow_doubt(job);
    } else if (route->waits_until_us > 0) {
        record_waiting(
            job, route->waits_for,
            route->waits_until_us + (int64_t)(chance_of(job) * JITTER_MS * 1000));
    } else {
        enter(job);
    }
}

// The attempt before may have been sent, and no callback came: the policy's word.
static void follow_doubt(Job *job)
{
    JobRoute *route = &job->route;
    NextAction doubt = route->doubt;
    route->doubt = NEXT_END;
    job->row.unknown_count = job->row.unknown_count > 0 ? job->row.unknown_count : 1;
    switch (doubt) {
    case NEXT_SAME_KEY:
    case NEXT_RESEND:
    case NEXT_FAILOVER:
        enter(job);
        return;
    case NEXT_ASK:
        job->mail.asks = true;
        enter(job);
        return;
    case NEXT_SETTLE:
        record_waiting(job, "a callback may still come", settled_at_us(job));
        return;
    case NEXT_PARK:
    case NEXT_SENT:
    case NEXT_EXPIRE:
        end_unknown(job, doubt);
        return;
    default:
        route->bound = true;
        record_waiting(
            job, "no vendor that may take it is up, and one may have it",
            probe_due_us(job, clock_now_us()));
        return;
    }
}

// A mail without a route whose turn at the SMTP server never came, because of the server's limit.
bool next_is_limited(const SendResult *result)
{
    return result->state == SEND_UNSENT && str_eq(result->code, STR(SMTP_POOL_LIMITED));
}

// Longer with each attempt of the mail.
static int64_t turn_due_us(const Job *job, int64_t due_us)
{
    int64_t now_us = clock_now_us();
    return now_us + routing_turn_wait_ms((due_us - now_us) / 1000, job->key->attempt) * 1000;
}

void next_limited(Job *job, const SendResult *result)
{
    int64_t wait_us = SOON_MS * INT64_C(1000) + (int64_t)(chance_of(job) * JITTER_MS * 1000);
    record_deferred(job, result, turn_due_us(job, clock_now_us() + wait_us), "");
}

// ---- after an answer ----

static RoutingFacts facts_of(const Job *job, const SendResult *result, int64_t now_us)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    const VendorPlace *place = place_of(job);
    const VendorApi *api = place != NULL ? vendor_api_of(place) : NULL;
    size_t other = 0;
    bool again = rendered->unknown_at_us > 0 && job->route.bound;
    int64_t first_us = again ? rendered->unknown_at_us : job->row.claimed_at_us;
    return (RoutingFacts){
        .state = result->state,
        .reply = result->reply,
        .retry_after_ms = result->retry_after_ms,
        .priority = ((const DispatcherLane *)job->lane)->lane,
        .expired = rendered->expires_at_us > 0 && rendered->expires_at_us <= now_us,
        // After an unknown outcome this attempt is bound: the next one sees which other there is.
        .other_usable = result->state == SEND_UNKNOWN || find_other(job, now_us, &other),
        .vendor_up = place != NULL && vendor_is_up(place, now_us),
        .key_known_s = place != NULL ? vendor_key_known_s(place) : 0,
        .key_age_ms = (now_us - first_us) / 1000,
        .can_be_asked = api != NULL && api->ask != NULL,
        .calls_back = place != NULL && vendor_calls_back(place),
        .settled = false,
    };
}

static void note_unknown(Job *job, const SendResult *result)
{
    const Dispatcher *dispatcher = job->owner;
    job->row.unknown_count++;
    job->route.bound = true;
    metric_add(dispatcher->metrics.unknown, 1);
    LOG(LOG_WARN,
        "a mail was handed over but the vendor's answer never came; its outcome is unknown",
        log_str("notification", job->key->notification_id), log_str("tenant", job->key->tenant),
        log_int("attempt", job->key->attempt), log_str("vendor", job->place.vendor),
        log_str("reason", str_slice(result->text, 0, 200)));
}

// Again under the same claim, with the same key and the same bytes.
static bool send_again(Job *job)
{
    const Dispatcher *dispatcher = job->owner;
    int64_t at_us = 0;
    uint64_t quarter = (uint64_t)dispatcher->parts.lease_ms / 4;
    if (job->resends >= JOB_RESENDS_MAX || dispatcher->stopping ||
        uv_now(dispatcher->parts.loop) + quarter >= job->mail.held_until_ms) {
        return false;
    }
    BreakerAnswer answer = vendor_ask(place_of(job), clock_now_us(), &at_us);
    if (answer == BREAKER_PROBE) {
        vendor_no_probe(place_of(job));
    }
    if (answer != BREAKER_SEND) {
        return false;
    }
    job->resends++;
    send_now(job);
    return true;
}

// One that was sent again because of an unknown outcome, and is unknown once more, takes a rung: so
// it ends.
static void settle_later(Job *job, const SendResult *result, int64_t wait_ms)
{
    if (job->rendered->unknown_vendor[0] != '\0') {
        record_outcome(job, result);
    } else {
        record_deferred(job, result, clock_now_us() + wait_ms * 1000, "settle");
    }
}

// A mail that may have been sent is claimed again by a process that did not send it, too.
static void act_on_unknown(Job *job, const SendResult *result, const RoutingNext *next)
{
    switch (next->action) {
    case NEXT_SAME_KEY:
    case NEXT_RESEND:
        if (job->state == JOB_CLAIMED) {
            enter(job);
        } else if (!send_again(job)) {
            settle_later(job, result, SOON_MS);
        }
        break;
    case NEXT_PARK:
    case NEXT_SENT:
    case NEXT_EXPIRE:
        end_unknown(job, next->action);
        break;
    case NEXT_WAIT:
        record_deferred(job, result, probe_due_us(job, clock_now_us()), "settle");
        break;
    default: // the next attempt decides, when a callback had its time
        settle_later(job, result, next->wait_ms);
        break;
    }
}

static void wait_for_vendor(Job *job, const SendResult *result, const RoutingNext *next)
{
    int64_t now_us = clock_now_us();
    bool counted = job->rendered->retries != NULL; // its caller counts every attempt
    if (result->of_recipient && !counted) { // neither a rung's wait: nothing is wrong but the pace
        record_deferred(job, result, now_us + next->wait_ms * 1000, step_of(job));
    } else if (result->state == SEND_ANSWERED && result->reply == REPLY_THROTTLED) {
        record_outcome(job, result); // as long as it says, or as a rung
    } else {
        int64_t due_us =
            next->wait_ms > 0 ? now_us + next->wait_ms * 1000 : probe_due_us(job, now_us);
        record_deferred(job, result, due_us, step_of(job));
    }
}

static void act(Job *job, const SendResult *result, const RoutingNext *next)
{
    size_t other = 0;
    switch (next->action) {
    case NEXT_SAME_CLAIM:
        if (find_other(job, clock_now_us(), &other)) {
            job->last = job_keep_result(job, result);
            move_add(job, other);
            break;
        }
        record_outcome(job, result);
        break;
    case NEXT_FALLBACK:
        record_deferred(job, result, clock_now_us(), "fallback");
        break;
    case NEXT_WAIT:
        wait_for_vendor(job, result, next);
        break;
    case NEXT_EXPIRE:
        job_decide(
            job, "expired", "the notification expired before it could be sent", clock_now_us());
        record_add(job, JOB_RECORDING);
        break;
    default:
        record_outcome(job, result);
        break;
    }
}

// The vendor was asked about the attempt before, whose answer never came.
static void after_asking(Job *job, const SendResult *result)
{
    int64_t now_us = clock_now_us();
    JobRoute *route = &job->route;
    const RoutingRules *rules = &route->rules;
    size_t other = 0;
    job->mail.asks = false;
    RoutingFacts facts = vendor_doubt_facts(place_of(job), job, rules, now_us);
    facts.asked++;
    facts.asked_not_found = result->state == SEND_UNSENT && !job->rendered->unknown_unclear;
    route->bound = false;
    facts.other_usable = find_other(job, now_us, &other);
    RoutingNext next = routing_next(rules, &facts);
    if (result->state == SEND_ANSWERED) {
        record_outcome(job, result); // it had the mail
    } else if (next.action == NEXT_SAME_CLAIM || next.action == NEXT_LADDER) {
        route->absent = true;
        act(job, result, &next);
    } else {
        int64_t due_us =
            next.action == NEXT_SETTLE ? settled_at_us(job) : now_us + next.wait_ms * 1000;
        record_deferred(job, result, due_us, "asked");
    }
}

// Its turn never came: too many mails, or the limit of its credential. No fault of either.
static bool had_no_turn(const Job *job, const SendResult *result)
{
    return result->state == SEND_UNSENT && result->waited &&
           (job->crowded || vendor_api_of(place_of(job)) != NULL || next_is_limited(result));
}

// An urgent mail does not wait for a turn while another vendor of its route is up: nothing was
// sent.
static bool moves_to_other(const Job *job, int64_t now_us, size_t *ret)
{
    return (Priority)job->rendered->priority <= PRIORITY_HIGH &&
           (job->route.rules.fallback_on & FALLBACK_UNSENT) != 0 && find_other(job, now_us, ret);
}

static void record_no_turn(Job *job, const SendResult *result)
{
    int64_t now_us = clock_now_us();
    const Dispatcher *dispatcher = job->owner;
    size_t other = 0;
    if (moves_to_other(job, now_us, &other)) {
        job->last = job_keep_result(job, result);
        move_add(job, other);
    } else if (job->crowded) {
        metric_add(dispatcher->metrics.postponed, 1);
        record_waiting(
            job, "postponed: the vendor is slow, and has too many of the tenant's mails already",
            turn_due_us(job, now_us + bulkhead_back_ms(chance_of(job)) * 1000));
    } else {
        record_deferred(job, result, turn_due_us(job, probe_due_us(job, now_us)), step_of(job));
    }
}

void next_after(Job *job, const SendResult *result)
{
    int64_t now_us = clock_now_us();
    note_answered(job);
    if (had_no_turn(job, result)) { // neither was it asked, where it was to be
        job->mail.asks = false;
        vendor_tell(place_of(job), result, job->begun_us);
        record_no_turn(job, result);
        return;
    }
    if (job->mail.asks && result->state != SEND_RELEASED) {
        static const SendResult works = {.state = SEND_ANSWERED, .reply = REPLY_ACCEPTED};
        vendor_tell(place_of(job), result->state == SEND_UNKNOWN ? result : &works, job->begun_us);
        after_asking(job, result);
        return;
    }
    vendor_tell(place_of(job), result, job->begun_us);
    vendor_endpoint_tell(place_of(job), job->mail.to, result, now_us);
    if (result->state == SEND_ANSWERED && result->reply == REPLY_ACCEPTED) {
        vendor_note_taken(place_of(job));
    }
    if (result->state == SEND_RELEASED && job->resends == 0) {
        record_add(job, JOB_RELEASING);
        return;
    }
    if (result->state == SEND_UNKNOWN) {
        note_unknown(job, result);
    }
    RoutingFacts facts = facts_of(job, result, now_us);
    RoutingNext next = routing_next(&job->route.rules, &facts);
    if (result->state == SEND_UNKNOWN) {
        act_on_unknown(job, result, &next);
    } else if (result->state == SEND_RELEASED) {
        settle_later(job, result, SOON_MS); // a resend that was not started: the first may be there
    } else {
        act(job, result, &next);
    }
}

void next_taken_over(Job *job)
{
    Dispatcher *dispatcher = job->owner;
    static const char WHY[] = "a process ended when it may have sent this mail";
    SendResult result = {
        .state = SEND_UNKNOWN, .reply = REPLY_RETRY, .text = {WHY, sizeof WHY - 1}};
    JobRoute *route = &job->route;
    VendorPlace *place = vendors_place(
        dispatcher->parts.vendors, job->key->tenant, job->place.vendor, job->place.credential);
    bool fits = place != NULL && (vendor_api_of(place) != NULL ? job->mail.content != NULL
                                                               : job->mail.message.len > 0);
    route->targets[0] = place;
    route->count = place != NULL ? 1 : 0;
    route->at = 0;
    route->bound = true;
    route->doubt = NEXT_END;
    RoutingFacts facts = facts_of(job, &result, clock_now_us());
    facts.key_age_ms = (clock_now_us() - job->conflict->row.claimed_at_us) / 1000;
    facts.vendor_up = facts.vendor_up && fits;
    RoutingNext next = routing_next(&route->rules, &facts);
    act_on_unknown(job, &result, &next);
}

void next_moved(Job *job)
{
    enter(job);
}

void next_not_moved(Job *job)
{
    record_outcome(job, job->last);
}
