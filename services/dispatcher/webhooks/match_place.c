// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/webhooks/match_place.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/crash.h"
#include "common/bus/topology/admin.h"

enum { TIMEOUT_MS = 5000, BODY_MAX = 4096, CONSUMER_NOT_FOUND = 10014 };

#define STREAM "STATUS"
#define PLACE STREAM ".webhook"
// No status has this subject: "none" is no channel.
#define NOTHING "ntf.status.-.none.none"

// The server finds the sequence of a time, but changes no consumer that begins at a time any more
// (2.9: "start time can not be updated", which `stentor migrate` would meet): so it is made twice.
typedef enum Step { STEP_CLOSE, STEP_DROP, STEP_FIND, STEP_DROP_FOUND, STEP_OPEN, STEP_END } Step;

typedef struct Move {
    Bus *bus;
    Step step;
    json_t *config;
    MatchPlaceMoved on_moved;
    void *ctx;
} Move;

// ---- where it stands ----

bool match_place_read(Str reply, const Error *err, MatchPlace *ret)
{
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    const json_t *error = json_object_get(root, "error");
    json_t *config = json_object_get(root, "config");
    const json_t *unacked = json_object_get(root, "num_ack_pending");
    const json_t *wait_ns = json_object_get(config, "ack_wait");
    const char *filter = json_string_value(json_object_get(config, "filter_subject"));
    *ret = (MatchPlace){
        .missing = json_integer_value(json_object_get(error, "err_code")) == CONSUMER_NOT_FOUND,
        .closed = filter != NULL && str_eq(str_from(filter), STR(NOTHING)),
        .unacked = json_integer_value(unacked),
        .wait_ms = json_integer_value(wait_ns) / 1000000,
        .config = json_incref(config),
    };
    bool known = ret->missing || (json_is_integer(unacked) && json_is_integer(wait_ns));
    json_decref(root);
    return known;
}

void match_place_done(MatchPlace *place)
{
    json_decref(place->config);
}

// ---- moving it ----

void match_place_spare(Bus *bus)
{
    bus_spare(bus, "$JS.API.CONSUMER.CREATE." PLACE);
    bus_spare(bus, "$JS.API.CONSUMER.DELETE." PLACE);
}

static void end_move(Move *move, const Error *err)
{
    move->on_moved(move->ctx, err);
    json_decref(move->config);
    free(move);
}

static void run_step(Move *move);

// The answer to "make it, from this time on" says which message it begins behind.
static bool begin_at_found(Move *move, const json_t *answer)
{
    const json_t *behind = json_object_get(json_object_get(answer, "delivered"), "stream_seq");
    json_object_del(move->config, "opt_start_time");
    json_object_set_new(move->config, "deliver_policy", json_string("by_start_sequence"));
    json_object_set_new(
        move->config, "opt_start_seq", json_integer(json_integer_value(behind) + 1));
    return json_is_integer(behind);
}

static void take_answer(Move *move, Str reply, const Error *err)
{
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    const json_t *error = json_object_get(root, "error");
    const char *text = json_string_value(json_object_get(error, "description"));
    bool drops = move->step == STEP_DROP || move->step == STEP_DROP_FOUND;
    bool gone = json_integer_value(json_object_get(error, "err_code")) == CONSUMER_NOT_FOUND;
    bool done = root != NULL && (error == NULL || (drops && gone));
    if (done && move->step == STEP_FIND) {
        done = begin_at_found(move, root);
    }
    Error failed = err != NULL ? *err : (Error){0};
    if (!done && err == NULL) {
        error_set(
            &failed, ERROR_TRANSIENT, "the consumer of " STREAM ": %s",
            text != NULL ? text : "an answer that cannot be read");
    }
    json_decref(root);
    if (!done) {
        end_move(move, &failed);
        return;
    }
    CRASH_POINT_IF("hook.place_dropped", drops);
    move->step = move->step == STEP_CLOSE ? STEP_END : (Step)(move->step + 1);
    run_step(move);
}

static void on_answer(void *ctx, Str reply, const Error *err)
{
    take_answer(ctx, reply, err);
}

static void send_config(Move *move, const char *subject)
{
    char text[BODY_MAX];
    json_t *body = json_pack("{s:s, s:O}", "stream_name", STREAM, "config", move->config);
    size_t len = json_dumpb(body, text, sizeof text, JSON_COMPACT);
    json_decref(body);
    if (len > sizeof text) {
        Error err;
        error_set(&err, ERROR_CONFIG, "the consumer of " STREAM " is described too long");
        end_move(move, &err);
        return;
    }
    bus_request(move->bus, subject, str_of(text, len), TIMEOUT_MS, on_answer, move);
}

static void run_step(Move *move)
{
    switch (move->step) {
    case STEP_CLOSE:
        send_config(move, "$JS.API.CONSUMER.CREATE." PLACE "." NOTHING);
        break;
    case STEP_DROP:
    case STEP_DROP_FOUND:
        bus_request(
            move->bus, "$JS.API.CONSUMER.DELETE." PLACE, STR_EMPTY, TIMEOUT_MS, on_answer, move);
        break;
    case STEP_FIND:
    case STEP_OPEN:
        send_config(move, "$JS.API.CONSUMER.CREATE." PLACE);
        break;
    case STEP_END:
        end_move(move, NULL);
        break;
    }
}

static Move *new_move(Bus *bus, const MatchPlace *place, MatchPlaceMoved on_moved, void *ctx)
{
    Move *move = xcalloc(1, sizeof *move);
    *move = (Move){.bus = bus, .on_moved = on_moved, .ctx = ctx};
    move->config = place->config != NULL
                       ? json_deep_copy(place->config)
                       : topology_consumer_config(topology_consumer("stentor-webhook", STREAM), 0);
    return move;
}

void match_place_close(Bus *bus, const MatchPlace *place, MatchPlaceMoved on_moved, void *ctx)
{
    Move *move = new_move(bus, place, on_moved, ctx);
    move->step = STEP_CLOSE;
    json_object_set_new(move->config, "filter_subject", json_string(NOTHING));
    run_step(move);
}

void match_place_open(
    Bus *bus, const MatchPlace *place, int64_t from_us, MatchPlaceMoved on_moved, void *ctx)
{
    char from[CLOCK_RFC3339_SIZE];
    Move *move = new_move(bus, place, on_moved, ctx);
    clock_format(from_us, from);
    move->step = STEP_DROP;
    json_object_del(move->config, "filter_subject");
    json_object_del(move->config, "opt_start_seq");
    json_object_set_new(move->config, "deliver_policy", json_string("by_start_time"));
    json_object_set_new(move->config, "opt_start_time", json_string(from));
    run_step(move);
}
