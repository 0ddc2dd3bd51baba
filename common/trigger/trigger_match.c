// SPDX-License-Identifier: Apache-2.0
#include "common/trigger/trigger_match.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/names/event_type.h"

enum { PLACE_SIZE = 192 };

typedef Stentor__V1__Trigger Trigger;

typedef struct Entry {
    Arena *arena; // holds the trigger and this
    const Trigger *trigger;
    uint64_t sequence;
} Entry;

// Entries of one tenant that have something in common.
typedef struct List {
    const Entry **at;
    size_t count;
    size_t cap;
} List;

struct TriggerMatch {
    Map *entries; // "<tenant>/<key>" -> Entry
    Map *unknown; // "<tenant>/<key>" whose entry cannot be read
    Map *lists;   // "<tenant>", "<tenant>/+<type>" makes, "<tenant>/-<type>" cancels -> List
};

static void free_entry(void *value)
{
    Entry *entry = value;
    arena_free(entry->arena);
}

static void free_list(void *value)
{
    List *list = value;
    free(list->at);
    free(list);
}

TriggerMatch *trigger_match_new(void)
{
    TriggerMatch *map = xcalloc(1, sizeof *map);
    map->entries = map_new(free_entry);
    map->unknown = map_new(NULL);
    map->lists = map_new(free_list);
    return map;
}

void trigger_match_free(TriggerMatch *map)
{
    if (map == NULL) {
        return;
    }
    map_free(map->entries);
    map_free(map->unknown);
    map_free(map->lists);
    free(map);
}

size_t trigger_match_count(const TriggerMatch *map)
{
    return map_count(map->entries);
}

// ---- places ----

// What is longer than any place was never stored.
static Str make_place(char out[PLACE_SIZE], Str tenant, const char *between, Str rest)
{
    size_t middle = strlen(between);
    if (tenant.len + middle + rest.len > PLACE_SIZE) {
        return STR_EMPTY;
    }
    memcpy(out, tenant.ptr, tenant.len);
    memcpy(out + tenant.len, between, middle);
    memcpy(out + tenant.len + middle, rest.ptr, rest.len);
    return str_of(out, tenant.len + middle + rest.len);
}

static const Entry *find_entry(const TriggerMatch *map, Str tenant, Str key)
{
    char place[PLACE_SIZE];
    return map_get(map->entries, make_place(place, tenant, "/", key));
}

static const List *find_list(const TriggerMatch *map, Str tenant, const char *between, Str rest)
{
    char place[PLACE_SIZE];
    return map_get(map->lists, make_place(place, tenant, between, rest));
}

// ---- changing ----

static void list_add(TriggerMatch *map, const Entry *entry, const char *between, Str rest)
{
    char space[PLACE_SIZE];
    Str place = make_place(space, str_from(entry->trigger->tenant), between, rest);
    List *list = map_get(map->lists, place);
    if (list == NULL) {
        list = xcalloc(1, sizeof *list);
        map_put(map->lists, place, list);
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->at[i] == entry) {
            return; // obsoleted_by names the type twice
        }
    }
    if (list->count == list->cap) {
        list->cap = list->cap == 0 ? 4 : list->cap * 2;
        list->at = xrealloc(list->at, list->cap * sizeof *list->at);
    }
    list->at[list->count++] = entry;
}

static void list_remove(TriggerMatch *map, const Entry *entry, const char *between, Str rest)
{
    char space[PLACE_SIZE];
    Str place = make_place(space, str_from(entry->trigger->tenant), between, rest);
    List *list = map_get(map->lists, place);
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        if (list->at[i] == entry) {
            list->at[i] = list->at[--list->count];
            break;
        }
    }
    if (list != NULL && list->count == 0) {
        (void)map_remove(map->lists, place);
    }
}

typedef void (*ListChange)(TriggerMatch *map, const Entry *entry, const char *between, Str rest);

static void change_lists(TriggerMatch *map, const Entry *entry, ListChange change)
{
    const Trigger *t = entry->trigger;
    change(map, entry, "", STR_EMPTY);
    change(map, entry, "/+", event_type_plain(str_from(t->event_type)));
    for (size_t i = 0; i < t->n_obsoleted_by; i++) {
        change(map, entry, "/-", event_type_plain(str_from(t->obsoleted_by[i])));
    }
}

static void remove_entry(TriggerMatch *map, Str tenant, Str key)
{
    char place[PLACE_SIZE];
    const Entry *entry = find_entry(map, tenant, key);
    if (entry != NULL) {
        change_lists(map, entry, list_remove);
        (void)map_remove(map->entries, make_place(place, tenant, "/", key));
    }
}

static const Trigger *read_trigger(Str tenant, Str key, Str payload, Arena *arena, Error *err)
{
    const Trigger *t =
        (const Trigger *)event_unpack(&stentor__v1__trigger__descriptor, payload, arena, err);
    FieldError wrong = {.field = ""};
    if (t == NULL) {
        return NULL;
    }
    if (!id_is_tenant(tenant) || !str_eq(tenant, str_from(t->tenant)) ||
        !str_eq(key, str_from(t->key))) {
        (void)error_set(
            err, ERROR_PERMANENT, "the entry names trigger '%.64s' of tenant '%.32s'", t->key,
            t->tenant);
        return NULL;
    }
    if (!trigger_check(t, &wrong)) {
        (void)error_set(err, ERROR_PERMANENT, "field '%s': %s", wrong.field, wrong.text);
        return NULL;
    }
    return t;
}

void trigger_match_unreadable(TriggerMatch *map, Str tenant, Str key)
{
    char place[PLACE_SIZE];
    Str name = make_place(place, tenant, "/", key);
    if (name.len > 0 && find_entry(map, tenant, key) == NULL) {
        map_put(map->unknown, name, map);
    }
}

static void forget_unknown(TriggerMatch *map, Str tenant, Str key)
{
    char place[PLACE_SIZE];
    if (map_count(map->unknown) > 0) {
        (void)map_remove(map->unknown, make_place(place, tenant, "/", key));
    }
}

static bool has_own(const TriggerMatch *map, Str tenant, Str key)
{
    char place[PLACE_SIZE];
    return find_entry(map, tenant, key) != NULL ||
           (map_count(map->unknown) > 0 &&
            map_get(map->unknown, make_place(place, tenant, "/", key)) != NULL);
}

bool trigger_match_changed(
    TriggerMatch *map, Str tenant, Str key, Str payload, uint64_t sequence, Error *err)
{
    if (payload.len == 0) {
        remove_entry(map, tenant, key);
        forget_unknown(map, tenant, key);
        return true;
    }
    Arena *arena = arena_new(512);
    const Trigger *trigger = read_trigger(tenant, key, payload, arena, err);
    if (trigger == NULL) {
        arena_free(arena);
        return false;
    }
    remove_entry(map, tenant, key);
    char place[PLACE_SIZE];
    Entry *entry = arena_alloc(arena, sizeof *entry);
    *entry = (Entry){arena, trigger, sequence};
    map_put(map->entries, make_place(place, tenant, "/", key), entry);
    change_lists(map, entry, list_add);
    forget_unknown(map, tenant, key);
    return true;
}

// ---- finding ----

static int by_key(const void *a, const void *b)
{
    const Trigger *const *left = a;
    const Trigger *const *right = b;
    return strcmp((*left)->key, (*right)->key);
}

static size_t count_of(const List *list)
{
    return list == NULL ? 0 : list->count;
}

const Trigger **trigger_match_find(
    const TriggerMatch *map, Str tenant, Str event_type, TriggerUse use, Arena *arena,
    size_t *ret_count)
{
    const char *between = use == TRIGGER_MAKES ? "/+" : "/-";
    Str type = event_type_plain(event_type);
    const List *own = find_list(map, tenant, between, type);
    const List *shared = str_eq(tenant, TRIGGER_PLATFORM)
                             ? NULL
                             : find_list(map, TRIGGER_PLATFORM, between, type);
    size_t most = count_of(own) + count_of(shared);
    const Trigger **found = most == 0 ? NULL : arena_alloc(arena, most * sizeof *found);
    size_t count = 0;
    for (size_t i = 0; i < count_of(own); i++) {
        if (!own->at[i]->trigger->disabled) {
            found[count++] = own->at[i]->trigger;
        }
    }
    for (size_t i = 0; i < count_of(shared); i++) {
        const Trigger *t = shared->at[i]->trigger;
        if (!t->disabled && !has_own(map, tenant, str_from(t->key))) {
            found[count++] = t;
        }
    }
    if (count > 1) {
        qsort(found, count, sizeof *found, by_key);
    }
    *ret_count = count;
    return found;
}

const Trigger *trigger_match_own(const TriggerMatch *map, Str tenant, Str key)
{
    const Entry *entry = find_entry(map, tenant, key);
    return entry == NULL ? NULL : entry->trigger;
}

uint64_t trigger_match_sequence(const TriggerMatch *map, Str tenant, Str key)
{
    const Entry *entry = find_entry(map, tenant, key);
    return entry == NULL ? 0 : entry->sequence;
}

const Trigger *trigger_match_get(const TriggerMatch *map, Str tenant, Str key)
{
    const Trigger *own = trigger_match_own(map, tenant, key);
    return own != NULL ? own : trigger_match_own(map, TRIGGER_PLATFORM, key);
}

const Trigger **trigger_match_list(
    const TriggerMatch *map, Str tenant, Arena *arena, size_t *ret_count)
{
    const List *list = find_list(map, tenant, "", STR_EMPTY);
    size_t count = count_of(list);
    const Trigger **found = arena_alloc(arena, (count + 1) * sizeof *found);
    for (size_t i = 0; i < count; i++) {
        found[i] = list->at[i]->trigger;
    }
    if (count > 1) {
        qsort(found, count, sizeof *found, by_key);
    }
    *ret_count = count;
    return found;
}

const Trigger *trigger_match_collision(
    const TriggerMatch *map, const Trigger *trigger, Arena *arena)
{
    size_t count = 0;
    const Trigger **found = trigger_match_find(
        map, str_from(trigger->tenant), str_from(trigger->event_type), TRIGGER_MAKES, arena,
        &count);
    for (size_t i = 0; i < count; i++) {
        if (trigger_collides(trigger, found[i])) {
            return found[i];
        }
    }
    return NULL;
}
