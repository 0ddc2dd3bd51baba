// SPDX-License-Identifier: Apache-2.0
// Killed between an entry's new message and the end: the next run finds fewer to write. Killed
// before the earlier messages are deleted: the next run finds nothing to write and deletes them.
#include "services/cli/config/config_order.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/map.h"
#include "common/codec/hash.h"
#include "common/config/config_store.h"
#include "services/cli/config/config_walk.h"

enum { PASSES = 3, AIR_MAX = 1024, DELETES_MAX = 128, REQUEST_MS = 10000 };

bool config_is_ordered(const BusMessage *message)
{
    return bus_message_header(message, "Nats-Expected-Last-Subject-Sequence").len > 0;
}

typedef struct Order {
    Session *session;
    Arena *arena;
    ConfigOrdered *done;
    Map *old;         // subject -> its last message without the header, until an entry follows
    Map *spoiled;     // subjects whose last message is no entry
    uint64_t from;    // where the walk goes on
    bool more;        // the walk ended before the end
    bool walking;     // the session's loop is the walk's
    size_t waiting;   // for an answer
    uint64_t *forget; // sequences
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

// It is not the subject's last message: an earlier one, or a service has stored another meanwhile.
static ConfigVerdict decide_again(void *ctx, uint64_t there)
{
    (void)ctx, (void)there;
    return CONFIG_LEAVE;
}

static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    Again *again = ctx;
    Order *order = again->order;
    (void)sequence;
    order->done->rewritten += err == NULL && !duplicate ? 1 : 0;
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
    if (reason == NULL && !config_is_ordered(message)) {
        store_again(order, message); // refused unless it is the subject's last message
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
    do {
        order->more = false;
        ok = walk(order, &(ConfigPart){.earlier = true, .from = order->from}, take_entry, err);
    } while (ok && order->more);
    return ok;
}

// ---- earlier messages ----

static void forget(Order *order, uint64_t sequence)
{
    if (order->forget_count == order->forget_room) {
        order->forget_room = order->forget_room > 0 ? 2 * order->forget_room : 1024;
        order->forget = xrealloc(order->forget, order->forget_room * sizeof *order->forget);
    }
    order->forget[order->forget_count++] = sequence;
}

// A message without the header goes once an entry follows it; what is no entry does not count, for
// the message before it may be the newest that can be read.
static bool take_earlier(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    Order *order = ctx;
    (void)err;
    if (reason != NULL) {
        map_put(order->spoiled, message->subject, order);
        return true;
    }
    (void)map_remove(order->spoiled, message->subject);
    const uint64_t *old = map_get(order->old, message->subject);
    if (old != NULL) {
        forget(order, *old);
        (void)map_remove(order->old, message->subject);
    }
    if (!config_is_ordered(message)) {
        uint64_t *sequence = xmalloc(sizeof *sequence);
        *sequence = message->sequence;
        map_put(order->old, message->subject, sequence);
    }
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
            &failure, ERROR_TRANSIENT, "NATS did not delete a message of CONFIG: %s",
            err != NULL    ? err->text
            : text != NULL ? text
                           : "the answer cannot be read");
    }
    json_decref(root);
    order->done->forgotten += gone ? 1 : 0;
    note_end(order, gone ? NULL : &failure);
}

static bool forget_all(Order *order, Error *err)
{
    for (size_t i = 0; i < order->forget_count && order->failure.kind == ERROR_NONE;) {
        for (; order->waiting < DELETES_MAX && i < order->forget_count; i++) {
            char query[64];
            int len = snprintf(
                query, sizeof query, "{\"seq\":%llu,\"no_erase\":true}",
                (unsigned long long)order->forget[i]);
            order->waiting++;
            bus_request(
                order->session->bus, "$JS.API.STREAM.MSG.DELETE.CONFIG", str_of(query, (size_t)len),
                REQUEST_MS, on_deleted, order);
        }
        if (!wait_for_all(order, err)) {
            return false;
        }
    }
    return true;
}

static void end_pass(Order *order)
{
    map_free(order->old);
    map_free(order->spoiled);
    free(order->forget);
}

// Those that a service of an earlier version stored meanwhile.
static int64_t count_left(const Order *order)
{
    int64_t left = 0;
    size_t at = 0;
    Str subject;
    void *value;
    while (map_next(order->old, &at, &subject, &value)) {
        left += map_get(order->spoiled, subject) == NULL ? 1 : 0;
    }
    return left;
}

// The copy with earlier entries that an earlier version had; `config mend` may still need it.
static bool delete_retired(const Order *order, Error *err)
{
    Str reply;
    return map_count(order->spoiled) > 0 ||
           session_request(
               order->session, "$JS.API.STREAM.DELETE.CONFIG_HISTORY", STR_EMPTY, order->arena,
               &reply, err);
}

// ---- both ----

static bool run(Order *order, Error *err)
{
    bool ok = true;
    order->done->left = 1;
    for (int i = 0; ok && order->done->left > 0 && i < PASSES; i++) {
        end_pass(order);
        order->old = map_new(free);
        order->spoiled = map_new(NULL);
        order->forget = NULL;
        order->forget_count = order->forget_room = 0;
        ok = rewrite_entries(order, err) &&
             walk(order, &(ConfigPart){.earlier = true}, take_earlier, err) &&
             forget_all(order, err);
        order->done->left = ok ? count_left(order) : 0;
    }
    return ok && delete_retired(order, err);
}

bool config_order(Session *session, Arena *arena, ConfigOrdered *ret, Error *err)
{
    *ret = (ConfigOrdered){0};
    Order order = {.session = session, .arena = arena, .done = ret};
    bool ok = run(&order, err);
    end_pass(&order);
    return ok || error_wrap(err, "entries of an earlier version");
}
