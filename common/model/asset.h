// SPDX-License-Identifier: Apache-2.0
// Template assets: the images that mails show by their public address. What may be one, what it is
// called, and where it is. Pure.
//   template-assets/<tenant>/<hex of SHA-256>           the object; never other bytes, never
//   deleted /v1/assets/<tenant>/<hex of SHA-256>.<extension>    where it is shown, to anyone
#pragma once

#include "common/base/id.h"
#include "common/base/str.h"

typedef enum AssetType {
    ASSET_NONE, // not a type that mails may show
    ASSET_PNG,
    ASSET_JPEG,
    ASSET_GIF,
    ASSET_WEBP,
    ASSET_TYPE_COUNT
} AssetType;

enum {
    ASSET_NAME_MAX = 64,
    ASSET_BYTES_MAX = 1024 * 1024,
    ASSET_HASH_LEN = 32,
    ASSET_HEX_LEN = 2 * ASSET_HASH_LEN,
    ASSET_PLACE_SIZE = 160, // a tenant's id has 32 bytes
};

#define ASSET_OBJECTS "template-assets/"
#define ASSET_ROUTE "/v1/assets/"

// 1 to 64 of a-z 0-9 '_' '-' and single dots between them: "logo.png".
bool asset_is_name(Str text);
// By the first bytes alone; the rest is the mailbox's to decode.
AssetType asset_type_of(Str bytes);
bool asset_is_markup(Str bytes); // SVG, HTML, XML: what may hold a script

const char *asset_type_name(AssetType type);      // "image/png"; "": none
const char *asset_type_extension(AssetType type); // "png"
AssetType asset_type_from_name(Str name);
AssetType asset_type_from_extension(Str extension);

typedef struct AssetPlace {
    Str tenant;
    Str hex; // of the hash, in small letters
    AssetType type;
} AssetPlace;

void asset_object_key(Str tenant, Str hex, char out[ASSET_PLACE_SIZE]);
void asset_path(const AssetPlace *place, char out[ASSET_PLACE_SIZE]);
bool asset_is_path(Str path);                     // it begins as one
bool asset_path_parse(Str path, AssetPlace *ret); // slices of `path`; false: it is none
