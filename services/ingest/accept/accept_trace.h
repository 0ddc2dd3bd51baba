// SPDX-License-Identifier: Apache-2.0
// The beginning of each notification's trace: `accept` and `gate`, and what goes on with its
// events.
#pragma once

#include "common/trace/stage.h"
#include "services/ingest/accept/accept_group.h"

// The header of a notification's events: the caller's trace with `accept` as its parent, and for a
// sampled one without a caller's its own. Without a tracer it is the caller's, unchanged. In
// `arena`.
Str accept_traceparent(const Tracer *tracer, Str callers, const char *id, Arena *arena);

// Of a committed group, before its submissions are answered.
void accept_trace_group(Tracer *tracer, const Group *group);
