// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/inapp/inapp_vendor.h"

#include "common/base/crash.h"
#include "common/bus/topology/topology.h"
#include "common/feed/feed_event.h"
#include "common/routing/routes.h"

static void on_item_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    Mail *mail = ctx;
    SendResult result = {.state = SEND_ANSWERED, .reply = REPLY_ACCEPTED};
    CRASH_POINT_IF("inapp.stored", err == NULL);
    if (err == NULL) {
        result.text = STR("stored in FEED");
    } else if (err->kind == ERROR_PERMANENT || err->kind == ERROR_CONFIG) {
        result.reply = REPLY_TERMINAL;
        result.text = str_from(err->text);
    } else {
        result.state = SEND_UNKNOWN;
        result.reply = REPLY_RETRY;
        result.text = str_from(err->text);
    }
    mail->on_done(mail->ctx, mail, &result);
}

static void send_item(void *self, Mail *mail)
{
    char id[EVENT_ID_SIZE];
    char subject[SUBJECT_SIZE];
    feed_item_id(mail->content->notification_id, id);
    subject_feed(subject, mail->tenant);
    BusOut out = {.subject = subject, .event_id = str_from(id), .payload = mail->message};
    bus_publish(self, &out, on_item_acked, mail);
}

// Each item is on its way at once, so none waits here.
static void drain(void *self)
{
    (void)self;
}

static VendorHealth health(void *self)
{
    (void)self;
    return (VendorHealth){.reason = ""};
}

Vendor inapp_vendor(Bus *bus)
{
    return (Vendor){
        .name = ROUTING_INAPP,
        .self = bus,
        .send = send_item,
        .drain = drain,
        .health = health,
        .probe = drain};
}
