// SPDX-License-Identifier: Apache-2.0
// /v1/triggers: list, show, put, delete and try. A put is answered once the entry is stored in
// CONFIG; every replica, this one too, knows it within a second. The platform's triggers are those
// of an API key of tenant `platform`; everybody else sees them and can only put one of the same key
// in their place.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/model/channel_set.h"
#include "common/routing/routes.h"
#include "common/trigger/named_resolvers.h"
#include "common/trigger/trigger_match.h"

typedef struct TriggersApi {
    Bus *bus;
    TriggerMatch *map;
    const Catalog *catalog;
    const NamedResolvers *resolvers;
    ChannelSet delivered; // the channels that have a vendor; a trigger for another is warned of
    const Routes *routes; // whose credentials give a tenant more of them
} TriggersApi;

// Borrows `triggers`, which must live as long as `api`.
void triggers_api_add(Api *api, TriggersApi *triggers);
