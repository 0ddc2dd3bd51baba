// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/live/status_hub.h"

#include <jansson.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/states/states.h"
#include "common/bus/consume/reader.h"
#include "common/bus/jetstream/listen.h"

enum {
    FILL_MAX = 10000, // statuses that are read for those that were not heard
    CHECK_TICKS = 10, // between two looks at the end of STATUS
    ASK_TIMEOUT_MS = 2000,
};

#define HEARD_SUBJECT "live.status.>"
#define INFO_SUBJECT "$JS.API.STREAM.INFO.STATUS"

// clang-format off
static const uint32_t moves[HUB_STATE_COUNT] = {
    [HUB_OFF]     = STATE_BIT(HUB_ASKING),
    [HUB_ASKING]  = STATE_BIT(HUB_ON) | STATE_BIT(HUB_OFF),
    [HUB_ON]      = STATE_BIT(HUB_FILLING) | STATE_BIT(HUB_OFF),
    [HUB_FILLING] = STATE_BIT(HUB_ON) | STATE_BIT(HUB_OFF),
};
static const char *const names[HUB_STATE_COUNT] = {
    [HUB_OFF] = "off", [HUB_ASKING] = "asking", [HUB_ON] = "on", [HUB_FILLING] = "filling",
};
// clang-format on
static const States states = {"status hub", names, moves, HUB_STATE_COUNT};

struct StatusHub {
    Bus *bus;
    StatusHubHandlers handlers;
    void *ctx;
    HubState state;
    uint64_t position;
    uint64_t seen;     // the highest that is known of
    uint64_t expected; // of the last look: what must have been handed over by the next tick
    uint64_t fill_to;
    Reader *reader;
    unsigned ticks;
    bool asked;
    uint64_t filled;
    int readers; // that are not freed yet
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
};

bool hub_state_move(HubState *state, HubState next)
{
    if (!states_step(&states, *state, next, STR("STATUS"))) {
        return false;
    }
    *state = next;
    return true;
}

bool status_hub_ready(const StatusHub *hub)
{
    return hub->state == HUB_ON || hub->state == HUB_FILLING;
}

uint64_t status_hub_position(const StatusHub *hub)
{
    return hub->position;
}

uint64_t status_hub_filled_total(const StatusHub *hub)
{
    return hub->filled;
}

// ---- what was not heard ----

static void end_if_stopped(StatusHub *hub)
{
    if (hub->on_stopped != NULL && hub->readers == 0) {
        void (*on_stopped)(void *ctx) = hub->on_stopped;
        hub->on_stopped = NULL;
        on_stopped(hub->stopped_ctx);
    }
}

static void on_reader_freed(void *ctx)
{
    StatusHub *hub = ctx;
    hub->readers--;
    end_if_stopped(hub);
}

static void end_fill(StatusHub *hub)
{
    if (hub->reader != NULL) {
        Reader *reader = hub->reader;
        hub->reader = NULL;
        reader_free(reader, on_reader_freed, hub);
    }
}

static void lose(StatusHub *hub)
{
    LOG(LOG_WARN, "statuses were missed on live streams, their clients get a reset",
        log_int("behind", (int64_t)hub->position), log_int("up_to", (int64_t)hub->seen));
    hub->position = hub->seen;
    hub->handlers.on_lost(hub->ctx);
}

static void finish_fill(StatusHub *hub)
{
    if (hub->state == HUB_FILLING && hub->position >= hub->seen &&
        hub_state_move(&hub->state, HUB_ON)) {
        end_fill(hub);
    }
}

static void on_fill_messages(void *ctx, const BusMessage *messages, size_t count)
{
    StatusHub *hub = ctx;
    for (size_t i = 0; i < count && hub->state == HUB_FILLING; i++) {
        if (messages[i].sequence > hub->position) {
            hub->position = messages[i].sequence;
            hub->filled++;
            hub->handlers.on_status(hub->ctx, &messages[i], messages[i].sequence);
        }
    }
    hub->seen = hub->position > hub->seen ? hub->position : hub->seen;
    finish_fill(hub);
}

// What STATUS does not hold any more between is passed over.
static void on_fill_caught_up(void *ctx)
{
    StatusHub *hub = ctx;
    hub->position = hub->position < hub->fill_to ? hub->fill_to : hub->position;
    finish_fill(hub);
}

static void on_fill_failed(void *ctx, const Error *err)
{
    StatusHub *hub = ctx;
    LOG(LOG_WARN, "statuses that were missed cannot be read", log_error(err));
    if (hub->state == HUB_FILLING) {
        lose(hub);
        finish_fill(hub);
    }
}

// While it reads, what is heard is only noted: the reader brings it too.
static void fill(StatusHub *hub)
{
    static const ReaderHandlers handlers = {on_fill_messages, on_fill_caught_up, on_fill_failed};
    if (hub->seen - hub->position > FILL_MAX) {
        lose(hub);
        return;
    }
    if (hub->readers == 0 && hub_state_move(&hub->state, HUB_FILLING)) {
        ReaderOptions options = {.stream = "STATUS", .start_sequence = hub->position + 1};
        hub->fill_to = hub->seen;
        hub->readers++;
        hub->reader = reader_new(hub->bus, &options, &handlers, hub);
    }
}

// ---- what is heard ----

static void on_heard(void *ctx, const BusMessage *message)
{
    StatusHub *hub = ctx;
    int64_t number = 0;
    if (!str_to_i64(bus_message_header(message, "Nats-Sequence"), &number) || number <= 0) {
        return; // none that STATUS republished
    }
    uint64_t sequence = (uint64_t)number;
    hub->seen = sequence > hub->seen ? sequence : hub->seen;
    if (hub->state == HUB_ON && sequence == hub->position + 1) {
        hub->position = sequence;
        hub->handlers.on_status(hub->ctx, message, sequence);
    } else if (hub->state == HUB_ON && sequence > hub->position) {
        fill(hub);
    }
}

// ---- the end of STATUS ----

static void take_end(StatusHub *hub, uint64_t last)
{
    if (hub->state == HUB_ASKING && hub_state_move(&hub->state, HUB_ON)) {
        hub->position = last;
        hub->seen = last > hub->seen ? last : hub->seen;
        hub->handlers.on_ready(hub->ctx);
        if (hub->seen > hub->position) {
            fill(hub);
        }
    } else if (hub->state == HUB_ON && last < hub->position) {
        hub->seen = last; // the log lost its tail: its sequences come once more
        lose(hub);
    }
    hub->expected = last;
}

static void on_info(void *ctx, Str reply, const Error *err)
{
    StatusHub *hub = ctx;
    hub->asked = false;
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    const json_t *last = json_object_get(json_object_get(root, "state"), "last_seq");
    if (json_is_integer(last) && hub->state != HUB_OFF) {
        take_end(hub, (uint64_t)json_integer_value(last));
    }
    json_decref(root); // without an answer the next tick asks again
}

static void ask(StatusHub *hub)
{
    if (!hub->asked && bus_connected(hub->bus)) {
        hub->asked = true;
        bus_request(hub->bus, INFO_SUBJECT, STR_EMPTY, ASK_TIMEOUT_MS, on_info, hub);
    }
}

// A status that was lost in silence shows in the end of STATUS alone; what was on its way when that
// was asked for is here a second later.
void status_hub_tick(StatusHub *hub)
{
    if (hub->state == HUB_ASKING) {
        ask(hub);
        return;
    }
    hub->seen = hub->expected > hub->seen ? hub->expected : hub->seen;
    if (hub->state == HUB_ON && hub->seen > hub->position) {
        fill(hub);
    }
    if (hub->state == HUB_ON && ++hub->ticks % CHECK_TICKS == 0) {
        ask(hub);
    }
}

// ---- life ----

static void on_bus_changed(void *ctx, bool connected)
{
    StatusHub *hub = ctx;
    if (connected && hub->state == HUB_ON) {
        ask(hub); // what was published meanwhile was not heard
    }
}

StatusHub *status_hub_new(Bus *bus, const StatusHubHandlers *handlers, void *ctx)
{
    StatusHub *hub = xcalloc(1, sizeof *hub);
    hub->bus = bus;
    hub->handlers = *handlers;
    hub->ctx = ctx;
    bus_watch(bus, on_bus_changed, hub);
    return hub;
}

void status_hub_want(StatusHub *hub, bool wanted)
{
    if (wanted && hub->state == HUB_OFF && hub_state_move(&hub->state, HUB_ASKING)) {
        hub->seen = hub->position = hub->expected = 0;
        bus_listen(hub->bus, HEARD_SUBJECT, on_heard, hub);
        ask(hub);
    } else if (!wanted && hub->state != HUB_OFF && hub_state_move(&hub->state, HUB_OFF)) {
        bus_unlisten(hub->bus, HEARD_SUBJECT);
        end_fill(hub);
    }
}

void status_hub_stop(StatusHub *hub, void (*on_stopped)(void *ctx), void *ctx)
{
    status_hub_want(hub, false);
    hub->on_stopped = on_stopped;
    hub->stopped_ctx = ctx;
    end_if_stopped(hub);
}

void status_hub_free(StatusHub *hub)
{
    free(hub);
}
