// SPDX-License-Identifier: Apache-2.0
// What the saga decided about an event of an order, as a span: its parent is what published the
// event, its children what follows from the saga's own messages. An event without a trace is in its
// order's, whose id follows from the order's correlation id.
#pragma once

#include "common/orders/order.h"
#include "common/trace/tracer.h"

// The header of the messages that an event causes. Without a tracer, or for an order that is not
// sampled, the event's own. In `arena`.
Str saga_traceparent(const Tracer *tracer, const SagaInput *cause, Arena *arena);

// Of an entry whose consequences are committed.
void saga_span(Tracer *tracer, const Entry *entry, int64_t now_us);
