// SPDX-License-Identifier: Apache-2.0
// links: svc_ingest
// Any bytes as a trigger (the API's JSON, CONFIG's protobuf), a resolver, a path and a time:
// refused with the field's name, or something that keeps the rules.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/trigger/trigger_match.h"
#include "common/trigger/trigger_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_json(Str text, Arena *arena)
{
    Stentor__V1__Trigger trigger;
    Problem problem = {0};
    FieldError wrong = {.field = ""};
    if (!trigger_from_json(text, STR("acme"), STR("remind"), arena, &trigger, &problem)) {
        assert(problem.status == 400 || problem.status == 422);
        return;
    }
    assert(trigger_check(&trigger, &wrong));
    json_t *made = trigger_to_json(&trigger);
    assert(json_is_object(made) && json_object_get(made, "resolver") != NULL);
    json_decref(made);
}

static void try_entry(Str payload, Arena *arena)
{
    TriggerMatch *map = trigger_match_new();
    Error err = {0};
    if (trigger_match_changed(map, STR("acme"), STR("remind"), payload, 7, &err)) {
        assert(trigger_match_count(map) == (payload.len > 0));
        size_t count = 0;
        (void)trigger_match_list(map, STR("acme"), arena, &count);
        assert(count == trigger_match_count(map));
        assert(trigger_match_changed(map, STR("acme"), STR("remind"), STR_EMPTY, 7, &err));
    } else {
        assert(err.kind == ERROR_PERMANENT);
    }
    assert(trigger_match_count(map) == 0);
    trigger_match_free(map);
}

static void try_path(Str text, Arena *arena)
{
    json_t *data = json_loads("{\"a\":[{\"b\":\"2026-12-24\"}],\"\":1}", 0, NULL);
    Str value = STR_EMPTY;
    Error err = {0};
    int64_t at_us = 0;
    bool found = path_find(data, text) != NULL;
    bool taken = path_text(data, text, arena, &value, &err);
    assert(!taken || (found && value.len > 0));
    (void)path_time(data, text, NULL, &at_us, &err);
    Zones *zones = zones_new();
    Zone *zone = zones_get(zones, STR("Europe/Berlin"), NULL);
    int64_t there_us = 0;
    bool utc = path_time_of(text, NULL, &at_us);
    assert(utc == path_time_of(text, zone, &there_us));
    assert(!utc || (at_us - there_us >= 0 && at_us - there_us <= INT64_C(3) * 3600 * 1000000));
    zones_free(zones);
    json_decref(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    Str text = str_of(data, size);
    Resolver resolver;
    FieldError why = {.field = ""};
    if (resolver_parse(text, &resolver, &why)) {
        bool path = resolver.kind != RESOLVER_LABEL && resolver.kind != RESOLVER_NAMED;
        assert(path_is(resolver.path) || !path);
        assert(resolver.kind == RESOLVER_NAMED || resolver.path.len < text.len);
    } else {
        assert(why.field[0] != '\0' && why.text[0] != '\0');
    }
    try_json(text, arena);
    try_entry(text, arena);
    try_path(text, arena);
    arena_free(arena);
    return 0;
}
