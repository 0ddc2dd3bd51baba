// SPDX-License-Identifier: Apache-2.0
// /v1/resolvers: what a tenant's triggers mean by a name: list, show, put, delete. The platform's
// are those of an API key of tenant `platform`; the built-in ones are shown and are never changed,
// a tenant can only put one of the same name in their place.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/trigger/named_resolvers.h"
#include "common/trigger/trigger_match.h"

typedef struct ResolversApi {
    Bus *bus;
    NamedResolvers *map;
    const TriggerMatch *triggers; // which of them use one that is to be deleted
} ResolversApi;

// Borrows `resolvers`, which must live as long as `api`.
void resolvers_api_add(Api *api, ResolversApi *resolvers);
