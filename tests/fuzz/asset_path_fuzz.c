// SPDX-License-Identifier: Apache-2.0
// links: stentor_model
#include <assert.h>

#include "common/model/asset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What was parsed is written as it came, and its object stands below template-assets/.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AssetPlace place;
    char out[ASSET_PLACE_SIZE];
    Str text = str_of(data, size);
    if (asset_path_parse(text, &place)) {
        asset_path(&place, out);
        assert(str_eq(str_from(out), text));
        asset_object_key(place.tenant, place.hex, out);
        assert(str_starts(str_from(out), STR(ASSET_OBJECTS)));
        assert(str_ends(str_from(out), place.hex));
    }
    (void)asset_type_of(text);
    (void)asset_is_markup(text);
    (void)asset_is_name(text);
    return 0;
}
