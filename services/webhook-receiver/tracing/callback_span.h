// SPDX-License-Identifier: Apache-2.0
// What a vendor reports about a notification as a span of its trace.
#pragma once

#include "common/trace/stage.h"
#include "services/webhook-receiver/correlate.h"

// `cause_id`: what makes it the same when it comes again.
void callback_span(
    Tracer *tracer, const CallbackEvent *event, const CallbackOrigin *origin, Str cause_id,
    Str traceparent, int64_t now_us);
