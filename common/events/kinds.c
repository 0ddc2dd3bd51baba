// SPDX-License-Identifier: Apache-2.0
#include "common/events/kinds.h"

#include "stentor/v1/audit.pb-c.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/feed.pb-c.h"
#include "stentor/v1/inbound.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/reply.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"
#include "stentor/v1/webhook.pb-c.h"

typedef struct EventKind {
    const char *stream;  // a prefix
    const char *subject; // a prefix
    const ProtobufCMessageDescriptor *type;
} EventKind;

// clang-format off
static const EventKind kinds[] = {
    {"REQUEST_",  "ntf.request.",  &stentor__v1__notification_request__descriptor},
    {"RENDERED_", "ntf.rendered.", &stentor__v1__rendered__descriptor},
    {"STATUS",    "ntf.status.",   &stentor__v1__notification_status__descriptor},
    {"SETTLE",    "ntf.settle.",   &stentor__v1__notification_status__descriptor},
    {"HOOK",      "ntf.hook.",     &stentor__v1__webhook_delivery__descriptor},
    {"DEFERRED",  "ntf.deferred.", &stentor__v1__deferred__descriptor},
    {"INBOUND",   "ntf.inbound.",  &stentor__v1__inbound_callback__descriptor},
    {"FEED",      "feed.",         &stentor__v1__feed_event__descriptor},
    {"REPLIES",   "ntf.reply.",    &stentor__v1__inbound_reply__descriptor},
    {"AUDIT",     "aud.",          &stentor__v1__audit_entry__descriptor},
};
// clang-format on
enum { KINDS = sizeof kinds / sizeof *kinds };

const ProtobufCMessageDescriptor *event_type_of_stream(Str stream)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (str_starts(stream, str_from(kinds[i].stream))) {
            return kinds[i].type;
        }
    }
    return NULL;
}

const ProtobufCMessageDescriptor *event_type_of_subject(Str subject)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (str_starts(subject, str_from(kinds[i].subject))) {
            return kinds[i].type;
        }
    }
    bool command = str_starts(subject, STR("evt.")) && str_ends(subject, STR(".notify"));
    return command ? &stentor__v1__notify_command__descriptor : NULL;
}

const ProtobufCMessageDescriptor *event_type_of_content(Channel channel)
{
    switch (channel) {
    case CHANNEL_EMAIL:
        return &stentor__v1__email_content__descriptor;
    case CHANNEL_SMS:
        return &stentor__v1__sms_content__descriptor;
    case CHANNEL_WHATSAPP:
        return &stentor__v1__whatsapp_content__descriptor;
    case CHANNEL_PUSH:
        return &stentor__v1__push_content__descriptor;
    case CHANNEL_INAPP:
        return &stentor__v1__inapp_content__descriptor;
    case CHANNEL_VOICE:
        return &stentor__v1__voice_content__descriptor;
    case CHANNEL_WEBHOOK:
        return &stentor__v1__webhook_content__descriptor;
    case CHANNEL_NONE:
    case CHANNEL_COUNT:
        break;
    }
    return NULL;
}
