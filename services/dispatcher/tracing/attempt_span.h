// SPDX-License-Identifier: Apache-2.0
// An attempt as a span: from its claim to its outcome. A redelivery that publishes the outcome once
// more makes the same span again.
#pragma once

#include "common/trace/stage.h"
#include "services/dispatcher/job.h"

// Sets the delivery's traceparent: in which trace the job goes on.
void attempt_resume(Tracer *tracer, const Job *job);
// The trace of a job as an exemplar has it; NULL: it is in none that is exported.
enum { ATTEMPT_TRACE_SIZE = 2 * TRACE_ID_LEN + 1 };
const char *attempt_trace(const Tracer *tracer, const Job *job, char out[ATTEMPT_TRACE_SIZE]);
// job->row has the outcome.
void attempt_span(Tracer *tracer, const Job *job);
