// SPDX-License-Identifier: Apache-2.0
// /v1/templates: publish a version, list and read what is published, preview, activate, archive.
// Names come from the catalog, content from CONFIG when it is asked for.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/domain/event_seal.h"
#include "common/model/channel_set.h"
#include "common/render/assets.h"
#include "common/routing/routes.h"

typedef struct TemplatesApi {
    Bus *bus;
    Catalog *catalog; // a published version is known here before the mirror brings it
    const Assets *assets;
    Str public_url;         // of assets; empty: none
    int64_t preview_cpu_us; // that one preview may take
    ChannelSet delivered;   // the channels that have a vendor; a version for another is warned of
    const Routes *routes;   // whose credentials give a tenant more of them
    MasterKey *master;
    EventKeys *keys; // of tests' events; made by templates_api_add
} TemplatesApi;

void templates_api_add(Api *api, TemplatesApi *templates);
void templates_api_done(TemplatesApi *templates);
