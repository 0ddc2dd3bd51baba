// SPDX-License-Identifier: Apache-2.0
// Events as every stage filled them by itself before common/events was their only maker: what is
// stored already has these bytes.
#pragma once

#include "common/codec/event.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

#define NTF "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"

static inline Stentor__V1__Meta a_cause(void)
{
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    meta.event_id = pb_borrow("c2VhbGVkLWluLTIwMjYuLi");
    meta.tenant = pb_borrow("acme");
    meta.notification_id = pb_borrow(NTF);
    meta.correlation_id = pb_borrow("order-7");
    meta.causation_id = pb_borrow("an-earlier-one");
    meta.occurred_at_us = 5;
    return meta;
}

static inline Stentor__V1__NotificationRequest a_request(Stentor__V1__Meta *meta)
{
    Stentor__V1__NotificationRequest request;
    stentor__v1__notification_request__init(&request);
    request.meta = meta;
    request.channel = STENTOR__V1__CHANNEL__CHANNEL_SMS;
    request.category = STENTOR__V1__CATEGORY__CATEGORY_BILLING;
    request.priority = STENTOR__V1__PRIORITY__PRIORITY_HIGH;
    request.template_ = pb_borrow("welcome");
    request.template_version = pb_borrow("1.2.0");
    request.recipient_id = pb_borrow("rcp_1");
    request.address_hash = pb_data(STR("0123456789abcdef"));
    request.accepted_at_us = 1000001;
    request.scheduled_for_us = 2000002;
    request.batch_id = pb_borrow("bat_1");
    request.resends = 2;
    request.digest_window_id = pb_borrow("dgw_1");
    request.source_event_type = pb_borrow("stay.confirmed");
    request.copy_of = pb_borrow("ntf_first");
    return request;
}

static inline Stentor__V1__Rendered a_rendered(Stentor__V1__Meta *meta)
{
    Stentor__V1__Rendered rendered;
    stentor__v1__rendered__init(&rendered);
    rendered.meta = meta;
    rendered.channel = STENTOR__V1__CHANNEL__CHANNEL_EMAIL;
    rendered.category = STENTOR__V1__CATEGORY__CATEGORY_MARKETING;
    rendered.priority = STENTOR__V1__PRIORITY__PRIORITY_LOW;
    rendered.template_ = pb_borrow("news");
    rendered.template_version = pb_borrow("3.0.0");
    rendered.recipient_id = pb_borrow("rcp_2");
    rendered.address_hash = pb_data(STR("fedcba9876543210"));
    rendered.accepted_at_us = 1000001;
    rendered.rendered_at_us = 3000003;
    rendered.content_checksum = pb_data(STR("a checksum"));
    rendered.batch_id = pb_borrow("bat_2");
    rendered.attempt = 3;
    rendered.resends = 1;
    return rendered;
}

static inline Str packed(const ProtobufCMessage *message, Arena *arena)
{
    Str bytes = STR_EMPTY;
    return event_pack(message, arena, &bytes, NULL) ? bytes : STR("too large");
}
