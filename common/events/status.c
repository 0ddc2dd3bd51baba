// SPDX-License-Identifier: Apache-2.0
#include "common/events/status.h"

#include "common/codec/event.h"

typedef Stentor__V1__NotificationStatus NotificationStatus;

NotificationStatus status_make(const StatusSpec *spec, Channel channel)
{
    NotificationStatus status;
    stentor__v1__notification_status__init(&status);
    status.meta = spec->meta;
    status.channel = (Stentor__V1__Channel)channel;
    status.status = (Stentor__V1__Status)spec->status;
    status.reason_code = pb_borrow(spec->reason_code);
    status.reason = pb_borrow(spec->reason);
    return status;
}

NotificationStatus status_of_request(
    const StatusSpec *spec, const Stentor__V1__NotificationRequest *request)
{
    NotificationStatus status = status_make(spec, (Channel)request->channel);
    status.category = request->category;
    status.priority = request->priority;
    status.template_ = request->template_;
    status.template_version = request->template_version;
    status.recipient_id = request->recipient_id;
    status.address_hash = request->address_hash;
    status.accepted_at_us = request->accepted_at_us;
    status.scheduled_for_us = request->scheduled_for_us;
    status.batch_id = request->batch_id;
    status.digest_window_id = request->digest_window_id;
    status.source_event_id = request->source_event_id;
    status.source_event_type = request->source_event_type;
    status.copy_of = request->copy_of;
    status.resends = request->resends;
    return status;
}

NotificationStatus status_of_rendered(const StatusSpec *spec, const Stentor__V1__Rendered *rendered)
{
    NotificationStatus status = status_make(spec, (Channel)rendered->channel);
    status.category = rendered->category;
    status.priority = rendered->priority;
    status.template_ = rendered->template_;
    status.template_version = rendered->template_version;
    status.recipient_id = rendered->recipient_id;
    status.address_hash = rendered->address_hash;
    status.accepted_at_us = rendered->accepted_at_us;
    status.rendered_at_us = rendered->rendered_at_us;
    status.content_checksum = rendered->content_checksum;
    status.batch_id = rendered->batch_id;
    status.resends = rendered->resends;
    return status;
}
