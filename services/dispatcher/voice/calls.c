// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/voice/calls.h"

static QuietHours quiet_hours_of(const Stentor__V1__Rendered *rendered)
{
    const Stentor__V1__QuietHours *hours = rendered->quiet_hours;
    uint32_t start = hours->start_minute, end = hours->end_minute;
    return (QuietHours){
        start < MINUTES_OF_DAY ? (int32_t)start : -1, end < MINUTES_OF_DAY ? (int32_t)end : -1};
}

bool calls_check(const Stentor__V1__Rendered *rendered, Error *err)
{
    return rendered->quiet_hours == NULL || quiet_hours_check(quiet_hours_of(rendered), err) ||
           error_wrap(err, "'quiet_hours'");
}

bool calls_wait_for_morning(Job *job, const JobOpening *opening)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    if (rendered->quiet_hours == NULL || opening->rules->zones == NULL) {
        return false;
    }
    Zone *zone = zones_get(opening->rules->zones, str_from(rendered->quiet_zone), NULL);
    zone = zone != NULL ? zone : zones_get(opening->rules->zones, STR_EMPTY, NULL);
    int64_t end_us = quiet_hours_end(quiet_hours_of(rendered), zone, opening->now_us);
    if (end_us <= opening->now_us) {
        return false;
    }
    const SendResult result = {
        .state = SEND_ANSWERED,
        .reply = REPLY_THROTTLED,
        .text = STR("it waits for the end of the recipient's quiet hours")};
    job->decided = true;
    job->row.claimed_at_us = opening->now_us;
    job_defer(job, &result, end_us, "", opening->now_us);
    return true;
}

void calls_plan_next(Job *job, const Ladder *ladder, double random01, int64_t now_us)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    int64_t due_us = 0;
    bool more = rendered->attempt < JOB_ATTEMPTS_MAX &&
                ladder_next(ladder, rendered->rung, now_us, 0, random01, &due_us);
    if (more && (rendered->expires_at_us == 0 || due_us < rendered->expires_at_us)) {
        job->row.due_at_us = due_us;
        job->row.rung = (int32_t)rendered->rung + 1;
    }
}

// Nothing about the call before is in doubt, whatever the one before that was.
void calls_follow(const Job *job, Stentor__V1__Rendered *next)
{
    Arena *arena = job->delivery->arena;
    next->after_call = job->rendered->attempt;
    next->unknown_vendor = next->unknown_credential = next->unknown_key =
        arena_cstr(arena, STR_EMPTY);
    next->unknown_at_us = 0;
    next->unknown_asked = 0;
    next->unknown_unclear = false;
}

bool calls_are_planned(const Job *job)
{
    // Of another channel it is that of an outcome that a proof has overruled.
    return job->rendered->channel == STENTOR__V1__CHANNEL__CHANNEL_VOICE &&
           job->row.due_at_us > 0 && job->row_key->attempt == job->key->attempt;
}

bool calls_may_have_begun(const Job *job)
{
    return job->rendered->channel == STENTOR__V1__CHANNEL__CHANNEL_VOICE && job->route.routed &&
           job->taken_unknown && job->row.state == LEDGER_DEFERRED;
}

bool calls_is_answered(const Job *job)
{
    const LedgerConflict *conflict = job->conflict;
    return job->rendered->after_call > 0 && conflict->attempt < job->key->attempt &&
           conflict->row.state == LEDGER_SENT && conflict->row.due_at_us > 0;
}
