// SPDX-License-Identifier: Apache-2.0
// Killed between an entry's new message and the end: the next run finds fewer to write. Killed
// before the history forgets: the next run finds nothing to write and forgets.
#include "services/cli/config/config_order.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/map.h"
#include "common/codec/hash.h"
#include "common/config/config_store.h"
#include "services/cli/config/config_walk.h"

enum {
    PASSES = 3,
    AIR_MAX = 1024,
    DELETES_MAX = 128,
    COPY_TRIES = 600,
    COPY_MS = 100,
    REQUEST_MS = 10000
};

bool config_is_ordered(const BusMessage *message)
{
    return bus_message_header(message, "Nats-Expected-Last-Subject-Sequence").len > 0;
}

typedef struct Order {
    Session *session;
    Arena *arena;
    ConfigOrdered *done;
    Map *bad;          // subjects whose last message is no entry: their earlier ones stay
    uint64_t from;     // where the walk goes on
    uint64_t last;     // of CONFIG, as far as it was read or written
    bool more;         // the walk ended before the end
    bool walking;      // the session's loop is the walk's
    size_t waiting;    // for an answer
    int64_t unordered; // of this pass
    uint64_t *forget;  // sequences of CONFIG_HISTORY
    size_t forget_count, forget_room;
    Error failure;
} Order;

// What is under way goes on while the walk does.
static void note_end(Order *order, const Error *err)
{
    order->waiting--;
    if (err != NULL && order->failure.kind == ERROR_NONE) {
        order->failure = *err;
    }
    if (order->waiting == 0 && !order->walking) {
        session_finish(order->session, NULL);
    }
}

static bool wait_for_all(Order *order, Error *err)
{
    Error ignored = {0};
    while (order->waiting > 0) { // each ends by its own deadline
        (void)session_run(order->session, 0, &ignored);
    }
    if (order->failure.kind != ERROR_NONE) {
        *err = order->failure;
    }
    return order->failure.kind == ERROR_NONE;
}

// ---- entries ----

// One that is stored again; in an arena of its own.
typedef struct Again {
    Order *order;
    Arena *arena;
} Again;

// Another stored there meanwhile, a service of this version or of an earlier one: the next pass
// looks at it.
static ConfigVerdict decide_again(void *ctx, uint64_t there)
{
    (void)ctx, (void)there;
    return CONFIG_LEAVE;
}

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Again *again = ctx;
    Order *order = again->order;
    order->done->rewritten += err == NULL && !duplicate ? 1 : 0;
    order->last = sequence > order->last ? sequence : order->last;
    arena_free(again->arena);
    CRASH_POINT_IF("config.ordered", err == NULL);
    note_end(order, err);
}

static void store_again(Order *order, const BusMessage *message)
{
    Arena *arena = arena_new(0);
    Again *again = arena_alloc(arena, sizeof *again);
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    const char *what = arena_printf(arena, "order/%llu", (unsigned long long)message->sequence);
    event_id_derive("config", message->subject, str_from(what), event_id);
    *again = (Again){order, arena};
    ConfigStore put = {
        .out =
            {.subject = arena_cstr(arena, message->subject),
             .event_id = str_from(event_id),
             .payload = arena_str(arena, message->payload)},
        .replaces = message->sequence,
        .decide = decide_again,
        .done = on_stored,
        .ctx = again,
    };
    order->waiting++;
    config_store(order->session->bus, &put, arena);
}

static bool take_entry(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    (void)err;
    Order *order = ctx;
    order->from = message->sequence + 1;
    order->last = message->sequence > order->last ? message->sequence : order->last;
    if (reason != NULL) {
        map_put(order->bad, message->subject, order);
    } else if (!config_is_ordered(message)) {
        order->unordered++;
        store_again(order, message);
    }
    order->more = order->waiting >= AIR_MAX;
    return !order->more;
}

static bool walk(Order *order, const ConfigPart *part, ConfigWalk each, Error *err)
{
    order->walking = true;
    bool ok = config_walk(order->session, part, each, order, err);
    order->walking = false;
    return wait_for_all(order, err) && ok;
}

static bool rewrite_entries(Order *order, Error *err)
{
    bool ok = true;
    order->from = 0;
    order->unordered = 0;
    do {
        order->more = false;
        ok = walk(order, &(ConfigPart){.from = order->from}, take_entry, err);
    } while (ok && order->more);
    return ok;
}

// ---- the history ----

// It copies a moment later.
static bool has_copied(Order *order, Error *err)
{
    Str reply;
    for (int i = 0; i < COPY_TRIES; i++) {
        if (!session_request(
                order->session, "$JS.API.STREAM.INFO.CONFIG_HISTORY", STR_EMPTY, order->arena,
                &reply, err)) {
            return false;
        }
        json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
        const json_t *state = json_object_get(root, "state");
        uint64_t last = (uint64_t)json_integer_value(json_object_get(state, "last_seq"));
        json_decref(root);
        if (last >= order->last) {
            return true;
        }
        Error ignored = {0};
        (void)session_run(order->session, COPY_MS, &ignored); // nothing finishes it
    }
    return error_set(
        err, ERROR_TRANSIENT,
        "CONFIG_HISTORY has not copied CONFIG within %d s (HINT: stentor doctor)",
        COPY_TRIES * COPY_MS / 1000);
}

// What came after the walk over CONFIG is the next run's.
static bool take_copy(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    Order *order = ctx;
    (void)reason, (void)err;
    if (message->sequence > order->last) {
        return false;
    }
    if (config_is_ordered(message) || map_get(order->bad, message->subject) != NULL) {
        return true;
    }
    if (order->forget_count == order->forget_room) {
        order->forget_room = order->forget_room > 0 ? 2 * order->forget_room : 1024;
        order->forget = xrealloc(order->forget, order->forget_room * sizeof *order->forget);
    }
    order->forget[order->forget_count++] = message->sequence;
    return true;
}

static void on_deleted(void *ctx, Str reply, const Error *err)
{
    Order *order = ctx;
    json_t *root = err == NULL ? json_loadb(reply.ptr, reply.len, 0, NULL) : NULL;
    const json_t *error = json_object_get(root, "error");
    const char *text = json_string_value(json_object_get(error, "description"));
    Error failure = {0};
    // One that is gone, for there are newer ones of its subject, is gone.
    bool gone = json_is_true(json_object_get(root, "success")) ||
                (text != NULL && strstr(text, "no message found") != NULL);
    if (!gone) {
        error_set(
            &failure, ERROR_TRANSIENT, "CONFIG_HISTORY does not delete a message: %s",
            err != NULL    ? err->text
            : text != NULL ? text
                           : "the answer cannot be read");
    }
    json_decref(root);
    order->done->forgotten += gone ? 1 : 0;
    note_end(order, gone ? NULL : &failure);
}

static bool forget_copies(Order *order, Error *err)
{
    for (size_t i = 0; i < order->forget_count && order->failure.kind == ERROR_NONE;) {
        for (; order->waiting < DELETES_MAX && i < order->forget_count; i++) {
            char query[64];
            int len = snprintf(
                query, sizeof query, "{\"seq\":%llu,\"no_erase\":true}",
                (unsigned long long)order->forget[i]);
            order->waiting++;
            bus_request(
                order->session->bus, "$JS.API.STREAM.MSG.DELETE.CONFIG_HISTORY",
                str_of(query, (size_t)len), REQUEST_MS, on_deleted, order);
        }
        if (!wait_for_all(order, err)) {
            return false;
        }
    }
    return true;
}

// ---- both ----

static bool run(Order *order, Error *err)
{
    bool ok = rewrite_entries(order, err);
    for (int i = 1; ok && order->unordered > 0 && i < PASSES; i++) {
        ok = rewrite_entries(order, err);
    }
    order->done->left = order->unordered;
    return ok && has_copied(order, err) &&
           walk(order, &(ConfigPart){.stream = "CONFIG_HISTORY"}, take_copy, err) &&
           forget_copies(order, err);
}

bool config_order(Session *session, Arena *arena, ConfigOrdered *ret, Error *err)
{
    *ret = (ConfigOrdered){0};
    Order order = {.session = session, .arena = arena, .done = ret, .bad = map_new(NULL)};
    bool ok = run(&order, err);
    map_free(order.bad);
    free(order.forget);
    return ok || error_wrap(err, "entries of an earlier version");
}
