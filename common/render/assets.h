// SPDX-License-Identifier: Apache-2.0
// Assets: every tenant's template assets by name (cfg.asset.<tenant>.<name>), and the public
// address that {{asset "logo.png"}} gives. Law: a tenant's own asset wins over the platform's; an
// address names the bytes, so a mail that was sent shows the same for ever. Pure.
#pragma once

#include "common/base/error.h"
#include "common/base/map.h"
#include "common/model/asset.h"
#include "common/render/version.h"
#include "stentor/v1/config.pb-c.h"

enum { ASSETS_OF_TENANT_MAX = 1000 }; // names; what the API lets one have

typedef struct Assets Assets;

typedef struct Asset {
    char name[ASSET_NAME_MAX + 1];
    char hex[ASSET_HEX_LEN + 1];
    AssetType type;
    uint32_t size_bytes;
    int64_t updated_at_us;
    char *updated_by;
    uint64_t sequence; // of its message in CONFIG
} Asset;

Assets *assets_new(void);
void assets_free(Assets *assets); // NULL-safe
// An entry that config_entry.h believes; an empty payload removes it. ERROR_PERMANENT: it is no
// asset, or another's; the one before it stays.
bool assets_put(Assets *assets, Str tenant, Str name, Str payload, uint64_t sequence, Error *err);

// NULL: there is none. Valid until the name's next change.
const Asset *assets_own(const Assets *assets, Str tenant, Str name);
const Asset *assets_get(const Assets *assets, Str tenant, Str name, Str *ret_tenant);
size_t assets_count(const Assets *assets, Str tenant); // of its own
// Does one of its own show these bytes now?
bool assets_name(const Assets *assets, Str tenant, Str hex);
// Those of its own behind `after`, by name, at most `limit`; *ret in `arena`.
size_t assets_list(
    const Assets *assets, Str tenant, Str after, size_t limit, Arena *arena, const Asset ***ret);

// What a rendering looks its assets up in: {.assets, .tenant, .public_url}.
typedef struct AssetLookup {
    const Assets *assets;
    Str tenant;
    Str public_url; // "https://notify.example.com"; empty: no address can be given
    bool missed;    // one was asked for that is not there
} AssetLookup;

// A TemplateAssets' find; ctx is an AssetLookup.
bool asset_find_address(void *ctx, Str name, Buf *out, Error *err);

// The names that a version's parts give as literals, each once, at most `max`; *ret in `arena`.
size_t version_assets(const CompiledVersion *version, size_t max, Arena *arena, Str *ret);
