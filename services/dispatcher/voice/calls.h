// SPDX-License-Identifier: Apache-2.0
// Calls that were not answered: another one follows by voice's own ladder, never in quiet hours.
// The next call is published, to wait for its time, together with "sent" of this one, because
// nothing but this event has what it says. A report of "busy" or "no answer" moves this attempt's
// row from sent to deferred (callbacks/late.c), and the claim of the next one finds nothing in its
// way. Without such a report, before it is due, that claim finds the row as sent, and ends. Pure.
#pragma once

#include "services/dispatcher/job.h"

// ERROR_PERMANENT: its quiet hours are none.
bool calls_check(const Stentor__V1__Rendered *rendered, Error *err);

// A call does not begin in its recipient's quiet hours, however often it was tried before and
// whatever it waited for. true: the attempt is deferred to their end.
bool calls_wait_for_morning(Job *job, const JobOpening *opening);

// It was to wait for the morning, but the process whose claim this one has taken over may have made
// the call: a policy decides, as by day.
bool calls_may_have_begun(const Job *job);

// Of a call that was taken: when another one follows, into job->row.
void calls_plan_next(Job *job, const Ladder *ladder, double random01, int64_t now_us);
// That of job->row is this attempt's own, and there is one.
bool calls_are_planned(const Job *job);
// Into the event of the next call.
void calls_follow(const Job *job, Stentor__V1__Rendered *next);

// job is the next call, and its claim has found the one before as sent.
bool calls_is_answered(const Job *job);
