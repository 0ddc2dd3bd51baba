// SPDX-License-Identifier: Apache-2.0
#include "common/trigger/named_resolvers.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"

#define PLATFORM STR("platform")

enum { TEXT_MAX = 1024 };

typedef Stentor__V1__NamedResolver Entry;

typedef struct Item {
    Arena *arena; // holds this
    char *name;
    const Entry *entry; // NULL: it cannot be read
    uint64_t sequence;
} Item;

// Of one tenant, in the order of their names.
typedef struct Items {
    Item **at;
    size_t count;
    size_t cap;
} Items;

struct NamedResolvers {
    Map *tenants; // tenant -> Items
};

static void free_items(void *value)
{
    Items *items = value;
    for (size_t i = 0; i < items->count; i++) {
        arena_free(items->at[i]->arena);
    }
    free((void *)items->at);
    free(items);
}

NamedResolvers *named_resolvers_new(void)
{
    NamedResolvers *map = xcalloc(1, sizeof *map);
    map->tenants = map_new(free_items);
    return map;
}

void named_resolvers_free(NamedResolvers *map)
{
    if (map != NULL) {
        map_free(map->tenants);
        free(map);
    }
}

// ---- an entry's rules ----

bool named_resolver_check(const Entry *entry, FieldError *err)
{
    if (!resolver_is_name(str_from(entry->name))) {
        return field_error(
            err, "name", "not a name such as 'night_desk': a-z, then a-z, 0-9, '_', at most 64");
    }
    if (entry->n_rules == 0 || entry->n_rules > RESOLVER_RULES_MAX) {
        return field_error(
            err, "rules", "required: 1 to %d rules such as 'label:admin'", RESOLVER_RULES_MAX);
    }
    for (size_t i = 0; i < entry->n_rules; i++) {
        Resolver resolver;
        FieldError wrong = {.field = ""};
        if (!resolver_parse(str_from(entry->rules[i]), &resolver, &wrong)) {
            return field_error(err, "rules", "rule %zu: %s", i + 1, wrong.text);
        }
        if (resolver.kind == RESOLVER_NAMED) {
            return field_error(
                err, "rules", "rule %zu: '%.64s' is a name; a rule is one such as 'label:admin'",
                i + 1, entry->rules[i]);
        }
    }
    return true;
}

// ---- changing ----

// Where the name is, or would be.
static size_t place_of(const Items *items, Str name)
{
    size_t low = 0;
    size_t high = items->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(str_from(items->at[middle]->name), name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static Item *find_item(const Items *items, Str name)
{
    size_t place = items == NULL ? 0 : place_of(items, name);
    bool there =
        items != NULL && place < items->count && str_eq(str_from(items->at[place]->name), name);
    return there ? items->at[place] : NULL;
}

static void put_item(NamedResolvers *map, Str tenant, Item *item)
{
    Items *items = map_get(map->tenants, tenant);
    if (items == NULL) {
        items = xcalloc(1, sizeof *items);
        map_put(map->tenants, tenant, items);
    }
    size_t place = place_of(items, str_from(item->name));
    if (place < items->count && strcmp(items->at[place]->name, item->name) == 0) {
        arena_free(items->at[place]->arena);
        items->at[place] = item;
        return;
    }
    if (items->count == items->cap) {
        items->cap = items->cap == 0 ? 4 : 2 * items->cap;
        items->at = xrealloc((void *)items->at, items->cap * sizeof *items->at);
    }
    memmove(
        (void *)&items->at[place + 1], (void *)&items->at[place],
        (items->count - place) * sizeof *items->at);
    items->at[place] = item;
    items->count++;
}

static void remove_item(NamedResolvers *map, Str tenant, Str name)
{
    Items *items = map_get(map->tenants, tenant);
    Item *item = find_item(items, name);
    if (item == NULL) {
        return;
    }
    size_t place = place_of(items, name);
    arena_free(item->arena);
    items->count--;
    memmove(
        (void *)&items->at[place], (void *)&items->at[place + 1],
        (items->count - place) * sizeof *items->at);
    if (items->count == 0) {
        (void)map_remove(map->tenants, tenant);
    }
}

static const Entry *read_entry(Str tenant, Str name, Str payload, Arena *arena, Error *err)
{
    const Entry *entry =
        (const Entry *)event_unpack(&stentor__v1__named_resolver__descriptor, payload, arena, err);
    FieldError wrong = {.field = ""};
    if (entry == NULL) {
        return NULL;
    }
    if (!id_is_tenant(tenant) || !str_eq(tenant, str_from(entry->tenant)) ||
        !str_eq(name, str_from(entry->name))) {
        (void)error_set(
            err, ERROR_PERMANENT, "the entry names resolver '%.64s' of tenant '%.32s'", entry->name,
            entry->tenant);
        return NULL;
    }
    if (!named_resolver_check(entry, &wrong)) {
        (void)error_set(err, ERROR_PERMANENT, "field '%s': %s", wrong.field, wrong.text);
        return NULL;
    }
    return entry;
}

static Item *make_item(Arena *arena, Str name, const Entry *entry, uint64_t sequence)
{
    Item *item = arena_alloc(arena, sizeof *item);
    *item = (Item){arena, arena_cstr(arena, name), entry, sequence};
    return item;
}

bool named_resolvers_changed(
    NamedResolvers *map, Str tenant, Str name, Str payload, uint64_t sequence, Error *err)
{
    if (payload.len == 0) {
        remove_item(map, tenant, name);
        return true;
    }
    Arena *arena = arena_new(512);
    const Entry *entry = read_entry(tenant, name, payload, arena, err);
    if (entry == NULL) {
        arena_free(arena);
        return false;
    }
    put_item(map, tenant, make_item(arena, name, entry, sequence));
    return true;
}

void named_resolvers_unreadable(NamedResolvers *map, Str tenant, Str name)
{
    if (resolver_is_name(name) && find_item(map_get(map->tenants, tenant), name) == NULL) {
        put_item(map, tenant, make_item(arena_new(512), name, NULL, 0));
    }
}

// ---- finding ----

static NamedRules rules_of(const Item *item, ResolverScope scope)
{
    return (NamedRules){
        .name = item->name,
        .scope = scope,
        .rules = item->entry == NULL ? NULL : (const char *const *)item->entry->rules,
        .count = item->entry == NULL ? 0 : item->entry->n_rules,
        .entry = item->entry,
        .sequence = item->sequence,
        .in_force = true,
    };
}

static NamedRules rules_built_in(const BuiltIn *row)
{
    return (NamedRules){
        .name = row->name,
        .scope = RESOLVER_BUILT_IN,
        .rules = row->rules,
        .count = row->count,
        .in_force = true,
    };
}

static const Items *items_of(const NamedResolvers *map, Str tenant)
{
    return map == NULL ? NULL : map_get(map->tenants, tenant);
}

bool named_resolvers_own(const NamedResolvers *map, Str tenant, Str name, NamedRules *ret)
{
    const Item *item = find_item(items_of(map, tenant), name);
    if (item != NULL) {
        *ret = rules_of(item, str_eq(tenant, PLATFORM) ? RESOLVER_OF_PLATFORM : RESOLVER_OF_TENANT);
    }
    return item != NULL;
}

bool named_resolvers_find(const NamedResolvers *map, Str tenant, Str name, NamedRules *ret)
{
    if (named_resolvers_own(map, tenant, name, ret) ||
        named_resolvers_own(map, PLATFORM, name, ret)) {
        return true;
    }
    const BuiltIn *row = resolver_built_in(name);
    if (row != NULL) {
        *ret = rules_built_in(row);
    }
    return row != NULL;
}

static bool is_in_force(const NamedResolvers *map, Str tenant, const NamedRules *one)
{
    NamedRules first;
    return named_resolvers_find(map, tenant, str_from(one->name), &first) &&
           first.scope == one->scope;
}

size_t named_resolvers_list(const NamedResolvers *map, Str tenant, Arena *arena, NamedRules **ret)
{
    const Items *own = str_eq(tenant, PLATFORM) ? NULL : items_of(map, tenant);
    const Items *shared = items_of(map, PLATFORM);
    size_t built_in_count = 0;
    const BuiltIn *built_in = resolver_all_built_in(&built_in_count);
    size_t most = (own == NULL ? 0 : own->count) + (shared == NULL ? 0 : shared->count);
    NamedRules *list = arena_array(arena, most + built_in_count, sizeof *list);
    size_t count = 0;
    for (size_t i = 0; own != NULL && i < own->count; i++) {
        list[count++] = rules_of(own->at[i], RESOLVER_OF_TENANT);
    }
    for (size_t i = 0; shared != NULL && i < shared->count; i++) {
        list[count++] = rules_of(shared->at[i], RESOLVER_OF_PLATFORM);
    }
    for (size_t i = 0; i < built_in_count; i++) {
        list[count++] = rules_built_in(&built_in[i]);
    }
    for (size_t i = 0; i < count; i++) {
        list[i].in_force = is_in_force(map, tenant, &list[i]);
    }
    *ret = list;
    return count;
}

const char *named_resolvers_text(const NamedResolvers *map, Str tenant, Arena *arena)
{
    NamedRules *list = NULL;
    size_t count = named_resolvers_list(map, tenant, arena, &list);
    Buf out;
    buf_init(&out, TEXT_MAX);
    for (size_t i = 0; i < count; i++) {
        if (list[i].in_force) {
            (void)buf_printf(&out, "%s%s", out.len > 0 ? ", " : "", list[i].name);
        }
    }
    const char *text = arena_cstr(arena, buf_view(&out));
    buf_done(&out);
    return text;
}
