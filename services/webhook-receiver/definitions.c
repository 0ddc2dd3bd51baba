// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/definitions.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/map.h"
#include "common/routing/routes.h"

enum { NAME_SIZE = 160 };

struct Definitions {
    Routes *routes; // the credentials of vendors by definition alone
    Map *compiled;  // "<owner>/<vendor>/<name>" -> VendorDefinition
};

static void drop(void *value)
{
    definition_drop(value);
}

Definitions *definitions_new(void)
{
    Definitions *definitions = xcalloc(1, sizeof *definitions);
    definitions->routes = routes_new();
    definitions->compiled = map_new(drop);
    return definitions;
}

void definitions_free(Definitions *definitions)
{
    if (definitions != NULL) {
        map_free(definitions->compiled);
        routes_free(definitions->routes);
        free(definitions);
    }
}

bool definitions_changed(Definitions *definitions, Str tenant, Str key, Str payload, Error *err)
{
    Str rest = key;
    Str vendor;
    bool ours = str_split(&rest, '.', &vendor) && definition_channel(vendor) != CHANNEL_NONE;
    return !ours || routes_credential_changed(definitions->routes, tenant, key, payload, err);
}

const VendorDefinition *definitions_find(Definitions *definitions, Str tenant, Str vendor)
{
    char name[NAME_SIZE];
    Error err = {0};
    const CredentialEntry *entry = routes_account(definitions->routes, tenant, vendor, STR_EMPTY);
    int used =
        entry == NULL
            ? 0
            : snprintf(name, sizeof name, "%s/%s/%s", entry->tenant, entry->vendor, entry->name);
    if (used <= 0 || (size_t)used >= sizeof name) {
        return NULL;
    }
    Str key = {name, (size_t)used};
    Str document = str_from(entry->definition);
    VendorDefinition *found = map_get(definitions->compiled, key);
    if (!definition_is(found, document)) {
        found = definition_compile(document, definition_channel(vendor), &err);
        if (found == NULL) { // its entry was checked, so it compiles
            return NULL;
        }
        map_put(definitions->compiled, key, found);
    }
    return found;
}
