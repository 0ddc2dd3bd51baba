// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/http/http_vendor.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/ticks/ticks.h"
#include "services/dispatcher/vendor/http/http_internal.h"

enum { TICK_MS = 200, REST_MS = 1000 };

// uv_now() may be old when this process was stopped.
static uint64_t clock_ms(void)
{
    return uv_hrtime() / 1000000;
}

static void answer(Mail *mail, SendState state, const char *text)
{
    SendResult result = {
        .state = state, .waited = true, .reply = REPLY_RETRY, .text = str_from(text)};
    mail->on_done(mail->ctx, mail, &result);
}

// ---- what the calls show of the vendor's reach ----

void http_vendor_note_failure(HttpVendor *vendor, const char *text)
{
    if (vendor->failures++ == 0) {
        vendor->down_since_us = clock_now_us();
        LOG(LOG_WARN, "a vendor's API cannot be reached", log_text("vendor", vendor->options.name),
            log_text("reason", text));
    }
    (void)str_to_c(
        str_slice(str_from(text), 0, sizeof vendor->reason - 1), vendor->reason,
        sizeof vendor->reason);
}

void http_vendor_note_reached(HttpVendor *vendor)
{
    if (vendor->failures > 0) {
        LOG(LOG_INFO, "a vendor's API can be reached again",
            log_text("vendor", vendor->options.name),
            log_int("seconds", (clock_now_us() - vendor->down_since_us) / 1000000));
    }
    vendor->failures = 0;
    vendor->down_since_us = 0;
    vendor->reached_at_us = clock_now_us();
}

// ---- turns ----

static bool is_late(const Mail *mail)
{
    uint64_t now = clock_ms();
    return mail->give_up_at_ms <= now || mail->held_until_ms <= now;
}

static void drop_late(HttpVendor *vendor)
{
    Mail *mail;
    while ((mail = http_queue_pop_if(&vendor->queue, is_late)) != NULL) {
        answer(mail, SEND_UNSENT, "no call of the vendor's API was free in time");
    }
}

static void release_all(HttpVendor *vendor)
{
    Mail *mail;
    while ((mail = http_queue_pop(&vendor->queue)) != NULL) {
        answer(mail, SEND_RELEASED, "draining");
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    HttpVendor *vendor = handle->data;
    if (--vendor->handles == 0) {
        vendor->on_closed(vendor->closed_ctx);
        bearers_free(vendor->bearers);
        free(vendor);
    }
}

static void end_when_closed(HttpVendor *vendor)
{
    if (vendor->closing && vendor->running == 0 && !uv_is_closing((uv_handle_t *)&vendor->soon)) {
        uv_close((uv_handle_t *)&vendor->soon, on_handle_closed);
        uv_close((uv_handle_t *)&vendor->tick, on_handle_closed);
    }
}

static void on_soon_timer(uv_timer_t *timer);

// false: the limit of its credential is used up; the mail waits, and the others with it.
static bool may_start(HttpVendor *vendor, Mail *mail)
{
    const HttpVendorOptions *options = &vendor->options;
    int64_t at_us = 0;
    if (options->may_start == NULL ||
        options->may_start(options->ctx, mail->lane, vendor->queue.count + 1, &at_us)) {
        return true;
    }
    http_queue_push_front(&vendor->queue, mail);
    int64_t wait_ms = (at_us - clock_mono_us()) / 1000 + 1;
    uv_timer_start(&vendor->soon, on_soon_timer, wait_ms > 0 ? (uint64_t)wait_ms : 1, 0);
    return false;
}

static void pump(HttpVendor *vendor)
{
    if (vendor->draining) {
        release_all(vendor);
        end_when_closed(vendor);
        return;
    }
    drop_late(vendor);
    Mail *mail;
    while (!vendor->waits && vendor->running < vendor->options.calls &&
           (mail = http_queue_next(&vendor->queue, vendor->running, vendor->options.calls)) !=
               NULL) {
        if (!may_start(vendor, mail) || !http_call_start(vendor, mail)) {
            break;
        }
    }
}

static void on_soon_timer(uv_timer_t *timer)
{
    pump(timer->data);
}

void http_vendor_pump_soon(HttpVendor *vendor)
{
    if (!uv_is_active((uv_handle_t *)&vendor->soon) &&
        !uv_is_closing((uv_handle_t *)&vendor->soon)) {
        uv_timer_start(&vendor->soon, on_soon_timer, 0, 0);
    }
}

static void on_tick_timer(uv_timer_t *timer)
{
    HttpVendor *vendor = timer->data;
    if (vendor->queue.count > 0 || vendor->closing) {
        pump(vendor);
    }
    bool rests = vendor->queue.count == 0 && vendor->running == 0 && !vendor->closing;
    ticks_start(timer, on_tick_timer, rests ? REST_MS : TICK_MS);
}

// ---- vendor.h ----

static void send_mail(void *self, Mail *mail)
{
    HttpVendor *vendor = self;
    mail->tries = 0;
    mail->renewed = false;
    http_queue_push(&vendor->queue, mail);
    if (mail->lane <= PRIORITY_HIGH) { // a part of the limit is kept for it
        uv_timer_start(&vendor->soon, on_soon_timer, 0, 0);
    } else {
        http_vendor_pump_soon(vendor);
    }
}

static void drain(void *self)
{
    HttpVendor *vendor = self;
    vendor->draining = true;
    uv_timer_start(&vendor->soon, on_soon_timer, 0, 0);
}

static VendorHealth health(void *self)
{
    const HttpVendor *vendor = self;
    return (VendorHealth){
        .down_since_us = vendor->down_since_us,
        .reached_at_us = vendor->reached_at_us,
        .waiting = vendor->queue.count,
        .reason = vendor->reason,
    };
}

// A call that proves the credential and sends nothing, where the vendor has one.
static void probe(void *self)
{
    HttpVendor *vendor = self;
    if (vendor->options.api->test != NULL && !vendor->probing && !vendor->draining) {
        vendor->probing = true;
        (void)http_call_start(vendor, NULL);
    }
}

Vendor http_vendor(HttpVendor *vendor)
{
    return (Vendor){
        .name = vendor->options.name,
        .self = vendor,
        .send = send_mail,
        .drain = drain,
        .health = health,
        .probe = probe};
}

// ---- start and stop ----

HttpVendor *http_vendor_new(const HttpVendorOptions *options)
{
    HttpVendor *vendor = xcalloc(1, sizeof *vendor);
    vendor->options = *options;
    vendor->options.name = options->name != NULL ? options->name : options->api->name;
    vendor->handles = 2;
    if (options->api->sign != NULL || options->api->grant != NULL) {
        vendor->bearers = bearers_new();
    }
    uv_timer_init(options->loop, &vendor->soon);
    uv_timer_init(options->loop, &vendor->tick);
    vendor->soon.data = vendor;
    vendor->tick.data = vendor;
    uv_timer_start(&vendor->tick, on_tick_timer, TICK_MS, TICK_MS);
    return vendor;
}

size_t http_vendor_running(const HttpVendor *vendor)
{
    return vendor->running;
}

void http_vendor_close(HttpVendor *vendor, void (*on_closed)(void *ctx), void *ctx)
{
    vendor->on_closed = on_closed;
    vendor->closed_ctx = ctx;
    vendor->closing = true;
    drain(vendor);
}
