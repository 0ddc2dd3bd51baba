// SPDX-License-Identifier: Apache-2.0
#include "common/bus/jetstream/bus.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/bus/consume/guard/guard.h"
#include "common/bus/consume/presence.h"
#include "common/bus/jetstream/bus_internal.h"
#include "common/bus/jetstream/get_message.h"
#include "common/bus/jetstream/serve.h"
#include "common/bus/jetstream/trace.h"
#include "common/ticks/ticks.h"

enum { TURN_ROUNDS_MAX = 8 };

// ---- what arrives ----

static int64_t header_number(natsMsg *message, const char *name)
{
    const char *text = NULL;
    int64_t value;
    if (natsMsgHeader_Get(message, name, &text) != NATS_OK || !str_to_i64(str_from(text), &value)) {
        return -1;
    }
    return value;
}

static Endpoint *endpoint_of_port(const Bus *bus, Str port)
{
    int64_t slot;
    bool is_slot =
        str_to_i64(str_slice(port, 1, port.len), &slot) && slot >= 0 && slot < BUS_ENDPOINTS_MAX;
    return is_slot ? bus->endpoints[slot] : NULL;
}

// A status for a pull request.
static void dispatch_status(Bus *bus, Str port, natsMsg *message)
{
    Endpoint *endpoint = endpoint_of_port(bus, port);
    if (endpoint == NULL ||
        !str_eq(str_from(natsMsg_GetSubject(message)), str_from(endpoint->inbox))) {
        return; // for an earlier owner of the slot
    }
    const char *text = NULL;
    natsMsgHeader_Get(message, "Description", &text);
    int code = (int)header_number(message, "Status");
    endpoint->handlers->on_status(
        endpoint->ctx, code, text != NULL ? text : "",
        header_number(message, "Nats-Pending-Messages"));
}

// "<port>.<token>": who took the port knows the token.
static void dispatch_reply(Bus *bus, Str token, natsMsg *message)
{
    Str port;
    if (str_split(&token, '.', &port) && port.len > 0) {
        char kind = port.ptr[0];
        if (kind == 'p') {
            publisher_on_ack(bus->publisher, token, message);
        } else if (kind == 'r') {
            requests_on_reply(bus->requests, token, message);
        } else if (kind == 'w') {
            dispatch_status(bus, port, message);
        }
    }
    link_discard(bus->link, message);
}

static void on_link_unanswered(void *ctx, const char *name)
{
    Bus *bus = ctx;
    Str port = str_from(name);
    int64_t number;
    if (name[0] == 'p') {
        publisher_on_unanswered(bus->publisher, name);
    } else if (name[0] == 'r' && str_to_i64(str_slice(port, 1, port.len), &number)) {
        requests_on_unanswered(bus->requests, (size_t)number);
    } else if (name[0] == 'w' && endpoint_of_port(bus, port) != NULL) {
        Endpoint *endpoint = endpoint_of_port(bus, port);
        endpoint->handlers->on_status(endpoint->ctx, 503, "", -1);
    }
}

static Endpoint *find_endpoint(Bus *bus, const AckSubject *ack)
{
    for (int i = 0; i < BUS_ENDPOINTS_MAX; i++) {
        Endpoint *endpoint = bus->endpoints[i];
        if (endpoint != NULL && str_eq(endpoint->stream, ack->stream) &&
            str_eq(str_from(endpoint->consumer), ack->consumer)) {
            return endpoint;
        }
    }
    return NULL;
}

static bool is_leaver(const Bus *bus, Str stream, Str consumer)
{
    for (size_t i = 0; i < bus->leaver_count; i++) {
        if (str_eq(stream, str_from(bus->leavers[i].stream)) &&
            str_eq(consumer, str_from(bus->leavers[i].consumer))) {
            return true;
        }
    }
    return false;
}

void bus_add_leaver(Bus *bus, const Endpoint *endpoint)
{
    Str consumer = str_from(endpoint->consumer);
    if (is_leaver(bus, endpoint->stream, consumer) || bus->leaver_count == BUS_ENDPOINTS_MAX) {
        return;
    }
    size_t i = bus->leaver_count;
    if (str_to_c(endpoint->stream, bus->leavers[i].stream, sizeof bus->leavers[i].stream) &&
        str_to_c(consumer, bus->leavers[i].consumer, sizeof bus->leavers[i].consumer)) {
        char subject[224];
        snprintf(
            subject, sizeof subject, "$JS.API.CONSUMER.INFO.%s.%s", bus->leavers[i].stream,
            bus->leavers[i].consumer);
        link_ask_at_close(bus->link, subject);
        bus->leaver_count++;
    }
}

void bus_give_back(Bus *bus, natsMsg *message)
{
    link_give_back(bus->link, natsMsg_GetReply(message));
    link_discard(bus->link, message);
}

// ---- the pace of ticks ----

static void on_timer_tick(uv_timer_t *timer);

static void set_pace(Bus *bus, bool rests)
{
    uint64_t every_ms = rests ? BUS_TICK_MS * BUS_REST_TICKS : BUS_TICK_MS;
    bus->rests = rests;
    bus->still = 0;
    ticks_start(&bus->tick, on_timer_tick, every_ms);
}

// Something is under way again.
static void wake(Bus *bus)
{
    bus->still = 0;
    if (bus->rests) {
        set_pace(bus, false);
    }
}

// ---- deliveries ----

static void dispatch_delivery(Bus *bus, natsMsg *message, unsigned breaks)
{
    AckSubject ack;
    const char *reply = natsMsg_GetReply(message);
    Endpoint *endpoint = NULL;
    bool known = reply != NULL && ack_subject_parse(str_from(reply), &ack);
    if (known) {
        ack.breaks = breaks;
        endpoint = find_endpoint(bus, &ack);
    }
    if (endpoint != NULL) {
        wake(bus);
        endpoint->handlers->on_delivery(endpoint->ctx, message, &ack);
    } else if (known && is_leaver(bus, ack.stream, ack.consumer)) {
        bus_give_back(bus, message); // what the last pull requests of a stopped worker brought
    } else {
        link_discard(bus->link, message); // of a reader's consumer that was given up meanwhile
    }
}

static void handle_message(Bus *bus, natsMsg *message, unsigned breaks)
{
    Str subject = str_from(natsMsg_GetSubject(message));
    Str inbox = str_from(link_inbox(bus->link));
    if (str_starts(subject, inbox) && subject.len > inbox.len && subject.ptr[inbox.len] == '.') {
        dispatch_reply(bus, str_slice(subject, inbox.len + 1, subject.len), message);
    } else {
        dispatch_delivery(bus, message, breaks);
    }
}

static void on_link_message(void *ctx, natsMsg *message, unsigned breaks)
{
    handle_message(ctx, message, breaks);
}

static void on_link_served(void *ctx, natsMsg *message)
{
    Bus *bus = ctx;
    if (bus->serve != NULL) {
        serve_take(bus->serve, message);
    } else {
        link_discard(bus->link, message);
    }
}

static void on_link_heard(void *ctx, natsMsg *message)
{
    Bus *bus = ctx;
    listen_take(bus, message);
    link_discard(bus->link, message);
}

static void handle_state(Bus *bus, bool connected)
{
    publisher_on_link(bus->publisher, connected);
    for (int i = 0; i < BUS_ENDPOINTS_MAX; i++) {
        if (bus->endpoints[i] != NULL) {
            bus->endpoints[i]->handlers->on_link(bus->endpoints[i]->ctx, connected);
        }
    }
    for (size_t i = 0; i < bus->watcher_count; i++) {
        bus->watchers[i].on_change(bus->watchers[i].ctx, connected);
    }
}

static void on_link_state(void *ctx, bool connected)
{
    handle_state(ctx, connected);
}

void bus_message_fill(BusMessage *out, natsMsg *message, const AckSubject *ack)
{
    const char *id = NULL, *trace = NULL, *run = NULL;
    natsMsgHeader_Get(message, "Nats-Msg-Id", &id);
    natsMsgHeader_Get(message, "traceparent", &trace);
    natsMsgHeader_Get(message, BUS_REPLAY_HEADER, &run);
    out->subject = str_from(natsMsg_GetSubject(message));
    out->payload = str_of(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
    out->event_id = str_from(id);
    out->traceparent = trace_is_parent(str_from(trace)) ? str_from(trace) : STR_EMPTY;
    out->sequence = ack->stream_sequence;
    out->stored_at_us = ack->stored_at_us;
    out->delivered = ack->delivered;
    out->replayed = run != NULL;
    out->native = message;
}

Str bus_message_header(const BusMessage *message, const char *name)
{
    const char *value = NULL;
    if (message->native == NULL || message->is_opened) {
        return get_message_header(message->headers, name);
    }
    natsMsg *native = (natsMsg *)(uintptr_t)message->native; // its look-up is not const
    natsMsgHeader_Get(native, name, &value);
    return str_from(value);
}

bool bus_message_headers(
    const BusMessage *message, Arena *arena, size_t max, BusHeader **ret, size_t *ret_count)
{
    const char **names = NULL;
    int count = 0;
    natsMsg *native = (natsMsg *)(uintptr_t)message->native;
    *ret = NULL;
    *ret_count = 0;
    if (native == NULL || natsMsgHeader_Keys(native, &names, &count) != NATS_OK) {
        return native != NULL; // none
    }
    bool fits = count >= 0 && (size_t)count <= max;
    BusHeader *headers = arena_array(arena, fits ? (size_t)count : 0, sizeof *headers);
    for (int i = 0; fits && i < count; i++) {
        const char *value = NULL;
        (void)natsMsgHeader_Get(native, names[i], &value);
        headers[i] = (BusHeader){names[i], str_from(value)};
    }
    free((void *)names);
    *ret = headers;
    *ret_count = fits ? (size_t)count : 0;
    return fits;
}

// ---- the turn ----

static bool run_endpoints(Bus *bus)
{
    bool more = false;
    for (int i = 0; i < BUS_ENDPOINTS_MAX; i++) {
        Endpoint *endpoint = bus->endpoints[i];
        if (endpoint != NULL && endpoint->handlers->on_turn(endpoint->ctx)) {
            more = true;
        }
    }
    return more;
}

static void on_loop_idle(uv_idle_t *idle)
{
    (void)idle; // its being active is what keeps the loop from sleeping
}

static void turn(Bus *bus)
{
    bool more = true;
    for (int round = 0; more && round < TURN_ROUNDS_MAX; round++) {
        bus->turn_wanted = false;
        more = run_endpoints(bus);
        if (bus->guard != NULL) {
            guard_turn(bus->guard);
        }
        more = publisher_turn(bus->publisher) || more || bus->turn_wanted;
    }
    if (!more && bus->guard != NULL) {
        more = guard_rest(bus->guard);
    }
    if (more) {
        uv_idle_start(&bus->idle, on_loop_idle);
    } else {
        uv_idle_stop(&bus->idle);
    }
}

// Nothing waits for an answer, a verdict or a time that counts in ticks.
static bool is_still(const Bus *bus)
{
    bool holds = publisher_pending(bus->publisher) > 0 || requests_pending(bus->requests) ||
                 (bus->guard != NULL && !guard_is_still(bus->guard));
    for (int i = 0; i < BUS_ENDPOINTS_MAX && !holds; i++) {
        holds = bus->endpoints[i] != NULL && bus->endpoints[i]->holds;
    }
    return !holds && !bus->closing && link_connected(bus->link);
}

static void on_loop_prepare(uv_prepare_t *prepare)
{
    Bus *bus = prepare->data;
    turn(bus);
    if (bus->rest_ms > 0) {
        link_rest(bus->link, is_still(bus) ? bus->rest_ms : 0);
    }
    link_write(bus->link); // the loop may sleep next
}

static void tick(Bus *bus)
{
    int64_t now = (int64_t)uv_now(bus->loop);
    CRASH_LATE();
    link_tick(bus->link);
    publisher_tick(bus->publisher);
    requests_tick(bus->requests);
    for (int i = bus->rests ? BUS_REST_TICKS : 1; i > 0 && bus->guard != NULL; i--) {
        guard_tick(bus->guard);
    }
    if (bus->presence != NULL && !bus->closing) {
        presence_tick(bus->presence, now);
    }
    for (int i = 0; i < BUS_ENDPOINTS_MAX; i++) {
        if (bus->endpoints[i] != NULL) {
            bus->endpoints[i]->handlers->on_tick(bus->endpoints[i]->ctx, now);
        }
    }
}

static void on_timer_tick(uv_timer_t *timer)
{
    Bus *bus = timer->data;
    ticks_keep(timer);
    tick(bus);
    bool still = is_still(bus);
    bus->still = still ? bus->still + 1 : 0;
    if (bus->rests && !still) {
        set_pace(bus, false);
    } else if (!bus->rests && bus->still >= BUS_REST_TICKS) {
        set_pace(bus, true);
    }
}

void bus_want_turn(Bus *bus)
{
    bus->turn_wanted = true;
}

int64_t bus_now_ms(const Bus *bus)
{
    return (int64_t)uv_now(bus->loop);
}

// ---- start and stop ----

// nats.c writes these into its CONNECT line as they are (3.4.1 .. 3.10.1).
static bool fits_connect_line(const char *text)
{
    return text == NULL || (strpbrk(text, "\"\\") == NULL && !str_has_control(str_from(text)));
}

static bool check_options(const BusOptions *o, Error *err)
{
    if (!fits_connect_line(o->user) || !fits_connect_line(o->password) ||
        !fits_connect_line(o->name)) {
        return error_set(
            err, ERROR_CONFIG,
            "nats user, password or name holds a quote, a backslash or a control character");
    }
    if (o->url == NULL || o->url[0] == '\0') {
        return error_set(err, ERROR_CONFIG, "nats url is empty");
    }
    size_t len = o->service == NULL ? 0 : strlen(o->service);
    if (len == 0 || len > SERVICE_NAME_MAX || strpbrk(o->service, " .*>\t\r\n") != NULL) {
        return error_set(
            err, ERROR_CONFIG, "'%s' is not a service name fit for an inbox prefix",
            o->service != NULL ? o->service : "");
    }
    return true;
}

static void open_handle(Bus *bus, uv_handle_t *handle)
{
    handle->data = bus;
    bus->open_handles++;
}

Bus *bus_open(uv_loop_t *loop, const BusOptions *options, Error *err)
{
    static const LinkHandlers handlers = {
        on_link_message, on_link_unanswered, on_link_state, on_link_served, on_link_heard};
    if (!check_options(options, err)) {
        return NULL;
    }
    Bus *bus = xcalloc(1, sizeof *bus);
    char prefix[SERVICE_NAME_MAX + 16];
    snprintf(prefix, sizeof prefix, "_INBOX.%s", options->service);
    snprintf(bus->service, sizeof bus->service, "%s", options->service);
    snprintf(
        bus->user, sizeof bus->user, "%s", options->user != NULL ? options->user : bus->service);
    random_bytes(&bus->reader_number, sizeof bus->reader_number);
    LinkOptions link = {
        options->url,
        options->user,
        options->password,
        options->name != NULL ? options->name : options->service,
        prefix,
        options->held};
    bus->loop = loop;
    bus->link = link_open(loop, &link, &handlers, bus);
    bus->publisher = publisher_new(loop, bus->link, options->window, options->publish_deadline_ms);
    bus->requests = requests_new(loop, bus->link);
    uv_prepare_init(loop, &bus->prepare);
    uv_idle_init(loop, &bus->idle);
    uv_timer_init(loop, &bus->tick);
    open_handle(bus, (uv_handle_t *)&bus->prepare);
    open_handle(bus, (uv_handle_t *)&bus->idle);
    open_handle(bus, (uv_handle_t *)&bus->tick);
    uv_prepare_start(&bus->prepare, on_loop_prepare);
    uv_timer_start(&bus->tick, on_timer_tick, BUS_TICK_MS, BUS_TICK_MS);
    return bus;
}

void bus_release(Bus *bus)
{
    link_release(bus->link);
}

void bus_rest(Bus *bus, int rest_ms)
{
    bus->rest_ms = rest_ms;
    if (rest_ms == 0) {
        link_rest(bus->link, 0);
    }
}

bool bus_rests(const Bus *bus)
{
    return link_rests(bus->link);
}

bool bus_connected(const Bus *bus)
{
    return link_connected(bus->link);
}

const char *bus_trouble(const Bus *bus)
{
    return link_trouble(bus->link);
}

bool bus_server_clock(const Bus *bus, BusClock *ret)
{
    *ret = bus->clock;
    return bus->clock.server_us != 0;
}

uv_loop_t *bus_loop(Bus *bus)
{
    return bus->loop;
}

void bus_watch(Bus *bus, void (*on_change)(void *ctx, bool connected), void *ctx)
{
    assert(bus->watcher_count < BUS_WATCHERS_MAX);
    bus->watchers[bus->watcher_count].on_change = on_change;
    bus->watchers[bus->watcher_count++].ctx = ctx;
}

const char *bus_permission_error(const Bus *bus)
{
    return link_permission_error(bus->link);
}

void bus_spare(Bus *bus, const char *subject)
{
    link_spare(bus->link, subject);
}

BusHeader bus_replaces(uint64_t sequence, Arena *arena)
{
    return (BusHeader){
        "Nats-Expected-Last-Subject-Sequence", str_from(arena_printf(arena, "%" PRIu64, sequence))};
}

BusHeader bus_follows(uint64_t sequence, Arena *arena)
{
    return (BusHeader){
        "Nats-Expected-Last-Sequence", str_from(arena_printf(arena, "%" PRIu64, sequence))};
}

void bus_publish(Bus *bus, const BusOut *out, BusAcked on_acked, void *ctx)
{
    publisher_publish(bus->publisher, out, on_acked, ctx);
    wake(bus);
    bus->turn_wanted = true;
}

size_t bus_pending(const Bus *bus)
{
    return publisher_pending(bus->publisher);
}

void bus_watch_streams(Bus *bus)
{
    if (bus->presence == NULL) {
        bus->presence = presence_new(bus, bus->service);
    }
}

const char *bus_missing(const Bus *bus)
{
    const char *missing = bus->presence != NULL ? presence_missing(bus->presence) : NULL;
    return missing != NULL ? missing : publisher_missing(bus->publisher);
}

BusStats bus_stats(const Bus *bus)
{
    BusStats stats = bus->stats;
    publisher_add_stats(bus->publisher, &stats);
    return stats;
}

bool bus_send(Bus *bus, const char *subject, const char *reply, Str payload)
{
    return link_send(bus->link, subject, reply, payload);
}

bool bus_send_event(Bus *bus, const BusOut *out)
{
    return publisher_send_core(bus->publisher, out);
}

void bus_request(
    Bus *bus, const char *subject, Str payload, int timeout_ms, BusReply on_reply, void *ctx)
{
    requests_ask(bus->requests, subject, payload, timeout_ms, on_reply, ctx);
    wake(bus);
}

static void on_link_closed(void *ctx)
{
    Bus *bus = ctx;
    guard_free(bus->guard);
    publisher_free(bus->publisher);
    requests_free(bus->requests);
    presence_free(bus->presence);
    void (*on_closed)(void *) = bus->on_closed;
    void *closed_ctx = bus->closed_ctx;
    free(bus);
    on_closed(closed_ctx);
}

static void on_handle_closed(uv_handle_t *handle)
{
    Bus *bus = handle->data;
    if (--bus->open_handles == 0) {
        publisher_cancel(bus->publisher);
        requests_cancel(bus->requests);
        link_close(bus->link, on_link_closed, bus);
    }
}

void bus_close(Bus *bus, void (*on_closed)(void *ctx), void *ctx)
{
    for (int i = 0; i < BUS_ENDPOINTS_MAX; i++) {
        assert(bus->endpoints[i] == NULL && "stop workers and readers before");
    }
    assert(bus->serve == NULL && "stop what is served before");
    bus->closing = true;
    bus->on_closed = on_closed;
    bus->closed_ctx = ctx;
    uv_close((uv_handle_t *)&bus->prepare, on_handle_closed);
    uv_close((uv_handle_t *)&bus->idle, on_handle_closed);
    uv_close((uv_handle_t *)&bus->tick, on_handle_closed);
}
