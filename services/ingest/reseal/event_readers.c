// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/reseal/event_readers.h"

#include <jansson.h>

#include "common/base/cleanup.h"
#include "common/bus/topology/topology.h"

DEFINE_CLEANUP(free_answer, json_t *, json_decref)

static uint64_t number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

static json_t *read_answer(Str reply, const char *what, Error *err)
{
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    const json_t *error = json_object_get(root, "error");
    if (json_is_object(root) && error == NULL) {
        return root;
    }
    const char *text = json_string_value(json_object_get(error, "description"));
    (void)error_set(
        err, ERROR_TRANSIENT, "%s of EVENTS: %s", what, text != NULL ? text : "unreadable answer");
    json_decref(root);
    return NULL;
}

bool event_readers_begin(Str reply, EventReaders *ret, Error *err)
{
    CLEANUP(free_answer) json_t *root = read_answer(reply, "state", err);
    const json_t *last = json_object_get(json_object_get(root, "state"), "last_seq");
    *ret = (EventReaders){.past = number(json_object_get(root, "state"), "last_seq"), .named = ""};
    return root != NULL &&
           (json_is_integer(last) ||
            error_set(err, ERROR_TRANSIENT, "state of EVENTS: an answer without 'last_seq'"));
}

static bool is_unused(const json_t *consumer, const char *name)
{
    const ConsumerSpec *spec = topology_consumer(name, "EVENTS");
    return spec != NULL && spec->is_optional && number(consumer, "num_waiting") == 0 &&
           number(json_object_get(consumer, "delivered"), "consumer_seq") == 0;
}

static void take_one(const json_t *consumer, Arena *arena, EventReaders *readers)
{
    const json_t *config = json_object_get(consumer, "config");
    const char *name = json_string_value(json_object_get(config, "durable_name"));
    bool idle = number(consumer, "num_pending") == 0 && number(consumer, "num_ack_pending") == 0;
    if (name == NULL || idle || is_unused(consumer, name)) {
        return;
    }
    uint64_t floor = number(json_object_get(consumer, "ack_floor"), "stream_seq");
    if (floor < readers->past) {
        readers->past = floor;
        readers->named = arena_cstr(arena, str_from(name));
    }
}

// A cluster lists without those whose server did not answer, and says who they are.
static bool is_whole(const json_t *root, const EventReaders *readers, Error *err)
{
    const json_t *missing = json_object_get(root, "missing");
    if (json_array_size(missing) > 0) {
        const char *name = json_string_value(json_array_get(missing, 0));
        return error_set(
            err, ERROR_TRANSIENT, "consumers of EVENTS: the server of '%.60s' does not answer",
            name != NULL ? name : "unknown");
    }
    return readers->total == readers->seen ||
           json_array_size(json_object_get(root, "consumers")) > 0 ||
           error_set(err, ERROR_TRANSIENT, "consumers of EVENTS: a page without any");
}

bool event_readers_take(Str reply, Arena *arena, EventReaders *readers, Error *err)
{
    CLEANUP(free_answer) json_t *root = read_answer(reply, "consumers", err);
    const json_t *consumers = json_object_get(root, "consumers");
    size_t i = 0;
    const json_t *consumer = NULL;
    json_array_foreach(consumers, i, consumer)
    {
        take_one(consumer, arena, readers);
    }
    readers->seen += json_array_size(consumers);
    readers->total = (size_t)number(root, "total");
    return root != NULL && is_whole(root, readers, err);
}
