// SPDX-License-Identifier: Apache-2.0
// The streams and consumers: whether they are there, what waits in each and for how long, and
// whether a process asks for it.
#include <assert.h>

#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "services/cli/doctor/doctor.h"

enum { WAITING_MAX = 100000 };
static const int64_t LATE_US = INT64_C(600) * 1000000; // a message waits longer: a warning

const char *doctor_age(const Cli *cli, int64_t age_us)
{
    long long s = (long long)(age_us / 1000000);
    return s < 120         ? arena_printf(cli->arena, "%lld s", s)
           : s < 2 * 3600  ? arena_printf(cli->arena, "%lld min", s / 60)
           : s < 48 * 3600 ? arena_printf(cli->arena, "%lld h", s / 3600)
                           : arena_printf(cli->arena, "%lld days", s / 86400);
}

static json_t *ask(Doctor *doctor, const char *subject, Error *err)
{
    Str reply;
    if (!session_request(&doctor->session, subject, STR_EMPTY, doctor->cli->arena, &reply, err)) {
        return NULL;
    }
    json_t *json = json_loadb(reply.ptr, reply.len, 0, NULL);
    const char *refusal =
        json_string_value(json_object_get(json_object_get(json, "error"), "description"));
    if (json == NULL || refusal != NULL) {
        error_set(err, ERROR_PERMANENT, "%s", refusal != NULL ? refusal : "the answer is not JSON");
        json_decref(json);
        return NULL;
    }
    return json;
}

static void check_stream(Doctor *doctor, size_t index, int *replicas)
{
    size_t count;
    const StreamSpec *spec = &topology_streams(&count)[index];
    Error err = {0};
    const char *name = arena_printf(doctor->cli->arena, "stream %s", spec->name);
    json_t *info =
        ask(doctor, arena_printf(doctor->cli->arena, "$JS.API.STREAM.INFO.%s", spec->name), &err);
    if (info == NULL) {
        doctor_say(
            doctor, name, CHECK_FAIL,
            arena_printf(doctor->cli->arena, "%s (HINT: stentor migrate)", err.text));
        return;
    }
    const json_t *state = json_object_get(info, "state");
    const json_t *config = json_object_get(info, "config");
    *replicas = (int)json_integer_value(json_object_get(config, "num_replicas"));
    long long bytes = (long long)json_integer_value(json_object_get(state, "bytes"));
    long long max = (long long)json_integer_value(json_object_get(config, "max_bytes"));
    doctor->stream_read[index] = stream_state_read(info, &doctor->streams[index]);
    bool nearly_full = max > 0 && bytes > max / 10 * 8;
    doctor_say(
        doctor, name, nearly_full ? CHECK_WARN : CHECK_OK,
        arena_printf(
            doctor->cli->arena, "%lld messages, %lld MB%s",
            (long long)json_integer_value(json_object_get(state, "messages")), bytes / 1000000,
            nearly_full ? ", over 80 % of its limit" : ""));
    json_decref(info);
}

static const char *filter_of(const json_t *info)
{
    return json_string_value(json_object_get(json_object_get(info, "config"), "filter_subject"));
}

// How long the first message that the consumer has not settled is in the stream; 0: not known, or
// there is none.
static int64_t oldest_age(Doctor *doctor, const char *stream, const json_t *info)
{
    Error err = {0};
    BusMessage message = {0};
    bool found = false;
    const json_t *floor = json_object_get(json_object_get(info, "ack_floor"), "stream_seq");
    const char *filter = filter_of(info);
    MessageQuery query = {
        .stream = stream,
        .sequence = (uint64_t)json_integer_value(floor) + 1,
        .next_of = filter != NULL ? filter : ">"};
    if (!session_get_message(
            &doctor->session, &query, doctor->cli->arena, &message, &found, &err) ||
        !found) {
        return 0;
    }
    int64_t age_us = clock_now_us() - message.stored_at_us;
    return age_us > 0 ? age_us : 0;
}

static void note_oldest(Doctor *doctor, const ConsumerSpec *spec, int64_t age_us)
{
    if (age_us > doctor->oldest_us) {
        doctor->oldest_us = age_us;
        doctor->oldest_for =
            arena_printf(doctor->cli->arena, "stentor-%s on %s", spec->name, spec->stream);
    }
}

static void check_consumer(Doctor *doctor, const ConsumerSpec *spec)
{
    Error err = {0};
    Arena *arena = doctor->cli->arena;
    const char *name = arena_printf(arena, "%s on %s", spec->name, spec->stream);
    json_t *info = ask(
        doctor,
        arena_printf(doctor->cli->arena, "$JS.API.CONSUMER.INFO.%s.%s", spec->stream, spec->name),
        &err);
    if (info == NULL) {
        doctor_say(
            doctor, name, CHECK_FAIL,
            arena_printf(doctor->cli->arena, "%s (HINT: stentor migrate)", err.text));
        return;
    }
    long long waiting = (long long)json_integer_value(json_object_get(info, "num_pending"));
    long long unacked = (long long)json_integer_value(json_object_get(info, "num_ack_pending"));
    // A worker always asks for more, unless it has as many as it may.
    bool idle = json_integer_value(json_object_get(info, "num_waiting")) == 0 && unacked == 0;
    bool wanted =
        !spec->is_optional ||
        json_integer_value(json_object_get(json_object_get(info, "delivered"), "consumer_seq")) > 0;
    idle = idle && wanted;
    int64_t age_us = wanted && waiting + unacked > 0 ? oldest_age(doctor, spec->stream, info) : 0;
    note_oldest(doctor, spec, age_us);
    bool late = age_us > LATE_US;
    doctor_say(
        doctor, name, (waiting > WAITING_MAX && wanted) || idle || late ? CHECK_WARN : CHECK_OK,
        arena_printf(
            arena, "%lld waiting, %lld in flight%s%s%s%s%s", waiting, unacked,
            age_us > 0 ? ", the oldest for " : "",
            age_us > 0 ? doctor_age(doctor->cli, age_us) : "",
            idle   ? ", no process asks for more (HINT: is stentor-"
            : late ? " (HINT: the log of stentor-"
                   : "",
            idle || late ? spec->name : "",
            idle   ? " running?)"
            : late ? " shows what it waits for)"
                   : ""));
    json_decref(info);
}

void doctor_topology(Doctor *doctor)
{
    int replicas = 0;
    size_t count = 0;
    (void)topology_streams(&count);
    assert(count <= DOCTOR_STREAMS_MAX);
    for (size_t i = 0; i < count; i++) {
        check_stream(doctor, i, &replicas);
    }
    const ConsumerSpec *consumers = topology_consumers(&count);
    for (size_t i = 0; i < count; i++) {
        check_consumer(doctor, &consumers[i]);
    }
    doctor_say(
        doctor, "durability", replicas >= 3 ? CHECK_OK : CHECK_WARN,
        replicas >= 3 ? "replicated: no acknowledged request is lost by the failure of one server "
                        "(with sync_interval: always)"
                      : "development: one copy of each stream; after a power cut the log may lack "
                        "its last minutes, which "
                        "the accept log still has");
}
