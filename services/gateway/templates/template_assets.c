// SPDX-License-Identifier: Apache-2.0
// The assets that a version names: a version may be there before its assets, so what is missing is
// a warning; a mail that would show it fails, and says so.
#include "services/gateway/templates/template_call.h"

enum { NAMES_MAX = 16, ADDRESS_MAX = 1024 };

AssetLookup template_asset_lookup(const TemplateCall *call)
{
    return (AssetLookup){
        .assets = call->api->assets,
        .tenant = str_from(call->base->tenant),
        .public_url = call->api->public_url,
    };
}

void template_asset_warnings(const TemplateCall *call, Str packed, json_t *warnings)
{
    AssetLookup lookup = template_asset_lookup(call);
    CompiledVersion *version = version_compile(packed);
    Str names[NAMES_MAX];
    size_t count = version_assets(version, NAMES_MAX, call->base->http->arena, names);
    for (size_t i = 0; i < count; i++) {
        Error err = {0};
        Buf address;
        buf_init(&address, ADDRESS_MAX);
        if (!asset_find_address(&lookup, names[i], &address, &err)) {
            (void)json_array_append_new(warnings, json_string(err.text));
        }
        buf_done(&address);
    }
    version_free(version);
}
