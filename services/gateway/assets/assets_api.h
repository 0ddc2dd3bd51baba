// SPDX-License-Identifier: Apache-2.0
// /v1/template-assets: put, list, show, remove. A put is answered once the bytes were read back
// from object storage and the entry is stored in CONFIG. Nothing removes bytes: a mail that was
// sent shows them for ever.
#pragma once

#include "common/api/api.h"
#include "common/bus/jetstream/bus.h"
#include "common/render/assets.h"
#include "services/gateway/assets/asset_objects.h"

typedef struct AssetsApi {
    Bus *bus;
    Assets *assets; // a stored entry is known here before the mirror brings it
    AssetObjects *objects;
    Str public_url; // empty: addresses are shown without host
} AssetsApi;

void assets_api_add(Api *api, AssetsApi *assets);
