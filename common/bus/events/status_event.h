// SPDX-License-Identifier: Apache-2.0
// The public event: a NotificationStatus as a message on ntf.status.<tenant>.<channel>.<status>
// with CloudEvents binary-mode headers, so that any language can consume it: ce-specversion 1.0,
// ce-id (event id), ce-source
// "/stentor/<tenant>", ce-type "stentor.notification.<status>.v1", ce-time, ce-subject
// (notification id), content-type "application/protobuf".
#pragma once

#include "common/bus/jetstream/bus.h"
#include "stentor/v1/status.pb-c.h"

// Fills *ret_out from a complete message (meta.event_id set); everything it points to lives in
// `arena`.
bool status_event(
    const Stentor__V1__NotificationStatus *status, Str traceparent, Arena *arena, BusOut *ret_out,
    Error *err);
