// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/live/live_event.h"

#include <stdio.h>

#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/http/stream.h"
#include "common/webhooks/webhook_event.h"
#include "stentor/v1/status.pb-c.h"

enum { TENANT_TOKEN = 2, CHANNEL_TOKEN = 3, STATUS_TOKEN = 4, TOKENS = 5 };

// ---- what a client asked for ----

bool live_channels(Str names, uint32_t *ret, Str *ret_wrong)
{
    Str name = STR_EMPTY;
    Channel channel = CHANNEL_NONE;
    bool any = names.len > 0;
    *ret = 0;
    while (any && str_split(&names, ',', &name)) {
        if (!channel_from_name(name, &channel)) {
            *ret_wrong = name;
            return false;
        }
        *ret |= UINT32_C(1) << channel;
    }
    return true;
}

bool live_statuses(Str names, uint32_t *ret, Str *ret_wrong)
{
    Str name = STR_EMPTY;
    Status status = STATUS_NONE;
    bool any = names.len > 0;
    *ret = 0;
    while (any && str_split(&names, ',', &name)) {
        if (!status_from_name(name, &status)) {
            *ret_wrong = name;
            return false;
        }
        *ret |= UINT32_C(1) << status;
    }
    return true;
}

static bool has(uint32_t mask, unsigned bit)
{
    return mask == 0 || (mask >> bit & 1u) != 0;
}

bool live_fits_place(const LiveFilter *filter, const LivePlace *place)
{
    return has(filter->channels, place->channel) && has(filter->statuses, place->status);
}

static bool is_text(const char *wanted, Str is)
{
    return wanted[0] == '\0' || str_eq(str_from(wanted), is);
}

bool live_fits(const LiveFilter *filter, const LiveEvent *event)
{
    return live_fits_place(filter, &event->place) && is_text(filter->template_, event->template_) &&
           is_text(filter->notification_id, event->notification_id);
}

// The one bit that is set; 0: none, or several.
static unsigned only_bit(uint32_t mask)
{
    unsigned bit = 0;
    if (mask == 0 || (mask & (mask - 1)) != 0) {
        return 0;
    }
    while ((mask >> bit & 1u) == 0) {
        bit++;
    }
    return bit;
}

void live_subject(Str tenant, const LiveFilter *filter, char *out, size_t size)
{
    unsigned channel = only_bit(filter->channels), status = only_bit(filter->statuses);
    (void)snprintf(
        out, size, "ntf.status." STR_FMT ".%s.%s", STR_ARG(tenant),
        channel != 0 ? channel_name((Channel)channel) : "*",
        status != 0 ? status_name((Status)status) : "*");
}

// ---- the event ----

bool live_place(Str subject, LivePlace *ret)
{
    ret->tenant = subject_token(subject, TENANT_TOKEN);
    return ret->tenant.len > 0 && subject_token(subject, TOKENS).len == 0 &&
           channel_from_name(subject_token(subject, CHANNEL_TOKEN), &ret->channel) &&
           status_from_name(subject_token(subject, STATUS_TOKEN), &ret->status);
}

static bool print_event(
    const Stentor__V1__NotificationStatus *status, Arena *arena, LiveEvent *ret, Error *err)
{
    Str json = webhook_payload(status, &(WebhookPlace){0}, arena);
    if (json.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the status is too long to be shown");
    }
    Buf text;
    buf_init(&text, HTTP_EVENT_MAX);
    http_event_write(&text, ret->sequence, "status", json);
    ret->text = arena_str(arena, buf_view(&text));
    buf_done(&text);
    return true;
}

bool live_event_read(
    const BusMessage *message, uint64_t sequence, Arena *arena, LiveEvent *ret, Error *err)
{
    *ret = (LiveEvent){.sequence = sequence};
    if (!live_place(message->subject, &ret->place)) {
        return error_set(err, ERROR_PERMANENT, "the subject is none of a status");
    }
    const Stentor__V1__NotificationStatus *status =
        (const Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, message->payload, arena, err);
    if (status == NULL) {
        return false;
    }
    if (status->meta == NULL || !str_eq(str_from(status->meta->tenant), ret->place.tenant)) {
        return error_set(err, ERROR_PERMANENT, "the status is not of its subject's tenant");
    }
    ret->template_ = str_from(status->template_);
    ret->notification_id = str_from(status->meta->notification_id);
    return print_event(status, arena, ret, err);
}
