// SPDX-License-Identifier: Apache-2.0
#include "common/db/line/prepared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void prepared_init(PreparedSet *set)
{
    *set = (PreparedSet){.by_name = map_new(free)};
}

void prepared_done(PreparedSet *set)
{
    map_free(set->by_name);
    *set = (PreparedSet){0};
}

static void rename_entry(PreparedSet *set, Prepared *entry)
{
    entry->serial = ++set->last_serial;
    entry->confirmed = false;
    snprintf(entry->name, sizeof entry->name, "%.48s/%u", entry->statement->name, entry->serial);
}

static Prepared *add_entry(PreparedSet *set, const DbParams *p)
{
    Prepared *entry = xcalloc(1, sizeof *entry);
    entry->statement = p->statement;
    entry->count = p->count;
    for (int i = 0; i < p->count; i++) {
        entry->types[i] = p->items[i].type;
    }
    rename_entry(set, entry);
    map_put(set->by_name, str_from(p->statement->name), entry);
    return entry;
}

typedef enum Fit { FIT_YES, FIT_MORE_KNOWN, FIT_NO } Fit;

static Fit compare(const Prepared *entry, const DbParams *p)
{
    if (entry->count != p->count) {
        return FIT_NO;
    }
    Fit fit = FIT_YES;
    for (int i = 0; i < p->count; i++) {
        Oid type = p->items[i].type;
        if (type == entry->types[i] || type == 0) {
            continue;
        }
        if (entry->types[i] != 0) {
            return FIT_NO;
        }
        fit = FIT_MORE_KNOWN;
    }
    return fit;
}

Prepared *prepared_get(PreparedSet *set, const DbParams *p, bool *ret_fresh, Error *err)
{
    Prepared *entry = map_get(set->by_name, str_from(p->statement->name));
    if (entry == NULL) {
        *ret_fresh = true;
        return add_entry(set, p);
    }
    const DbStatement *known = entry->statement;
    if (known != p->statement && known->sql != p->statement->sql &&
        strcmp(known->sql, p->statement->sql) != 0) {
        error_set(err, ERROR_CONFIG, "two statements are named '%s'", p->statement->name);
        return NULL;
    }
    Fit fit = compare(entry, p);
    if (fit == FIT_NO) {
        error_set(
            err, ERROR_CONFIG, "'%s' is used with changing parameter types", p->statement->name);
        return NULL;
    }
    *ret_fresh = fit == FIT_MORE_KNOWN;
    if (*ret_fresh) {
        for (int i = 0; i < p->count; i++) {
            entry->types[i] = p->items[i].type != 0 ? p->items[i].type : entry->types[i];
        }
        rename_entry(set, entry);
    }
    return entry;
}

void prepared_forget(PreparedSet *set, const DbStatement *statement)
{
    map_remove(set->by_name, str_from(statement->name));
}
