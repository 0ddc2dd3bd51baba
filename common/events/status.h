// SPDX-License-Identifier: Apache-2.0
// The status of a notification, the one public event. The only place that begins one (tests/lint);
// common/bus/events/status_event.h packs and addresses it.
#pragma once

#include "common/model/enums.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

typedef struct StatusSpec {
    Stentor__V1__Meta *meta;
    Status status;
    const char *reason_code; // NULL: ""
    const char *reason;      // NULL: ""
} StatusSpec;

// Meta and strings are borrowed: they, and the work, must live until the status is packed.
Stentor__V1__NotificationStatus status_make(const StatusSpec *spec, Channel channel);
// With what a status says of the notification's work, as far as the work knows it: template,
// recipient, address hash, campaign, times, resend generation. The digest window and the attempt
// are the caller's to add.
Stentor__V1__NotificationStatus status_of_request(
    const StatusSpec *spec, const Stentor__V1__NotificationRequest *request);
Stentor__V1__NotificationStatus status_of_rendered(
    const StatusSpec *spec, const Stentor__V1__Rendered *rendered);
