// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/ops/ops_processes.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/map.h"

enum { INSTANCE_MAX = 64, BEAT_MAX = 8 * 1024 };

typedef struct Process {
    json_t *said; // its last heartbeat
    int64_t seen_us;
} Process;

struct OpsProcesses {
    Map *all; // by instance
};

static void free_process(void *value)
{
    Process *process = value;
    json_decref(process->said);
    free(process);
}

const char *ops_state_name(OpsState state)
{
    switch (state) {
    case OPS_READY:
        return "ready";
    case OPS_NOT_READY:
        return "not-ready";
    case OPS_DOWN:
        return "down";
    case OPS_STATE_COUNT:
        break;
    }
    return "";
}

OpsProcesses *ops_processes_new(void)
{
    OpsProcesses *processes = xcalloc(1, sizeof *processes);
    processes->all = map_new(free_process);
    return processes;
}

void ops_processes_free(OpsProcesses *processes)
{
    if (processes != NULL) {
        map_free(processes->all);
        free(processes);
    }
}

// ---- heartbeats ----

static bool is_beat(const json_t *said)
{
    const json_t *instance = json_object_get(said, "instance");
    return json_is_string(instance) && json_string_length(instance) > 0 &&
           json_string_length(instance) < INSTANCE_MAX &&
           json_is_string(json_object_get(said, "service")) &&
           json_is_boolean(json_object_get(said, "ready"));
}

bool ops_processes_heard(OpsProcesses *processes, Str json, int64_t now_us)
{
    json_t *said = json.len <= BEAT_MAX ? json_loadb(json.ptr, json.len, 0, NULL) : NULL;
    if (!is_beat(said)) {
        json_decref(said);
        return false;
    }
    Str instance = str_from(json_string_value(json_object_get(said, "instance")));
    Process *process = map_get(processes->all, instance);
    if (process == NULL && map_count(processes->all) >= OPS_PROCESSES_MAX) {
        json_decref(said);
        return false;
    }
    if (process == NULL) {
        process = xcalloc(1, sizeof *process);
        map_put(processes->all, instance, process);
    }
    json_decref(process->said);
    process->said = said;
    process->seen_us = now_us;
    return true;
}

void ops_processes_forget(OpsProcesses *processes, int64_t now_us)
{
    bool again = true;
    while (again) {
        Str key;
        void *value = NULL;
        again = false;
        for (size_t i = 0; !again && map_next(processes->all, &i, &key, &value);) {
            again = now_us - ((Process *)value)->seen_us > (int64_t)OPS_FORGET_MS * 1000;
        }
        if (again) {
            (void)map_remove(processes->all, key);
        }
    }
}

// ---- what they say ----

static OpsState state_of(const Process *process, int64_t now_us)
{
    if (now_us - process->seen_us > (int64_t)OPS_DOWN_MS * 1000) {
        return OPS_DOWN;
    }
    return json_is_true(json_object_get(process->said, "ready")) ? OPS_READY : OPS_NOT_READY;
}

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void take_slowest(const json_t *p99, double *slowest)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)p99, name, value)
    {
        Str histogram = str_from(name);
        bool own = !str_ends(histogram, STR("_loop_lag_seconds")) &&
                   !str_ends(histogram, STR("_db_transaction_seconds"));
        double ms = json_number_value(value);
        *slowest = own && ms > *slowest ? ms : *slowest;
    }
}

static void take_lag(const json_t *values, double *lag)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)values, name, value)
    {
        bool is_lag = str_ends(str_from(name), STR("_lag"));
        *lag = is_lag && json_number_value(value) > *lag ? json_number_value(value) : *lag;
    }
}

OpsService ops_processes_sum(const OpsProcesses *processes, const char *service, int64_t now_us)
{
    OpsService sum = {.p99_ms = -1, .lag = -1};
    Str key;
    void *value = NULL;
    for (size_t i = 0; map_next(processes->all, &i, &key, &value);) {
        const Process *process = value;
        const char *name = json_string_value(json_object_get(process->said, "service"));
        if (strcmp(name, service) != 0) {
            continue;
        }
        OpsState state = state_of(process, now_us);
        sum.count[state]++;
        if (state != OPS_DOWN) {
            sum.handled_per_s += number(process->said, "handled_per_s");
            sum.published_per_s += number(process->said, "published_per_s");
            take_slowest(json_object_get(process->said, "p99_ms"), &sum.p99_ms);
            take_lag(json_object_get(process->said, "values"), &sum.lag);
        }
    }
    return sum;
}

static void set_time(json_t *object, const char *name, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text);
    (void)json_object_set_new(object, name, json_string(text));
}

static json_t *process_json(const Process *process, int64_t now_us)
{
    json_t *shown = json_deep_copy(process->said);
    int64_t started_us = json_integer_value(json_object_get(shown, "started_at_us"));
    (void)json_object_del(shown, "started_at_us");
    (void)json_object_del(shown, "ready");
    (void)json_object_set_new(
        shown, "state", json_string(ops_state_name(state_of(process, now_us))));
    set_time(shown, "started_at", started_us);
    set_time(shown, "heard_at", process->seen_us);
    return shown;
}

static int by_name(const void *a, const void *b)
{
    const json_t *const *x = a;
    const json_t *const *y = b;
    static const char *const keys[] = {"service", "instance"};
    int order = 0;
    for (size_t i = 0; order == 0 && i < 2; i++) {
        order = strcmp(
            json_string_value(json_object_get(*x, keys[i])),
            json_string_value(json_object_get(*y, keys[i])));
    }
    return order;
}

json_t *ops_processes_json(const OpsProcesses *processes, int64_t now_us)
{
    size_t count = 0;
    json_t **rows = xcalloc(map_count(processes->all) + 1, sizeof *rows);
    json_t *list = json_array();
    Str key;
    void *value = NULL;
    for (size_t i = 0; map_next(processes->all, &i, &key, &value);) {
        rows[count++] = process_json(value, now_us);
    }
    qsort(rows, count, sizeof *rows, by_name);
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, rows[i]);
    }
    free((void *)rows);
    return list;
}
