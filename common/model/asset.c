// SPDX-License-Identifier: Apache-2.0
#include "common/model/asset.h"

#include <assert.h>
#include <stdio.h>

// ---- names ----

bool asset_is_name(Str text)
{
    bool after_dot = true;
    if (text.len == 0 || text.len > ASSET_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '_' || c == '-';
        if (!letter && (c != '.' || after_dot)) {
            return false;
        }
        after_dot = c == '.';
    }
    return !after_dot;
}

// ---- types ----

// clang-format off
static const struct {
    const char *name, *extension;
} types[] = {
    [ASSET_NONE] = {"", ""},
    [ASSET_PNG]  = {"image/png",  "png"},
    [ASSET_JPEG] = {"image/jpeg", "jpg"},
    [ASSET_GIF]  = {"image/gif",  "gif"},
    [ASSET_WEBP] = {"image/webp", "webp"},
};
// clang-format on

AssetType asset_type_of(Str bytes)
{
    if (str_starts(bytes, STR("\x89PNG\r\n\x1a\n"))) {
        return ASSET_PNG;
    }
    if (str_starts(bytes, STR("\xff\xd8\xff"))) {
        return ASSET_JPEG;
    }
    if (str_starts(bytes, STR("GIF87a")) || str_starts(bytes, STR("GIF89a"))) {
        return ASSET_GIF;
    }
    bool riff = str_starts(bytes, STR("RIFF"));
    return riff && str_eq(str_slice(bytes, 8, 12), STR("WEBP")) ? ASSET_WEBP : ASSET_NONE;
}

bool asset_is_markup(Str bytes)
{
    static const Str mark = {"\xef\xbb\xbf", 3}; // of UTF-8's byte order
    Str text = str_starts(bytes, mark) ? str_slice(bytes, mark.len, bytes.len) : bytes;
    return str_starts(str_trim(text), STR("<"));
}

const char *asset_type_name(AssetType type)
{
    return types[type].name;
}

const char *asset_type_extension(AssetType type)
{
    return types[type].extension;
}

AssetType asset_type_from_name(Str name)
{
    for (AssetType type = ASSET_PNG; type < ASSET_TYPE_COUNT; type++) {
        if (str_eq(str_from(types[type].name), name)) {
            return type;
        }
    }
    return ASSET_NONE;
}

AssetType asset_type_from_extension(Str extension)
{
    for (AssetType type = ASSET_PNG; type < ASSET_TYPE_COUNT; type++) {
        if (str_eq(str_from(types[type].extension), extension)) {
            return type;
        }
    }
    return ASSET_NONE;
}

// ---- places ----

void asset_object_key(Str tenant, Str hex, char out[ASSET_PLACE_SIZE])
{
    int len = snprintf(
        out, ASSET_PLACE_SIZE, ASSET_OBJECTS STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(hex));
    assert(len > 0 && len < ASSET_PLACE_SIZE);
}

void asset_path(const AssetPlace *place, char out[ASSET_PLACE_SIZE])
{
    int len = snprintf(
        out, ASSET_PLACE_SIZE, ASSET_ROUTE STR_FMT "/" STR_FMT ".%s", STR_ARG(place->tenant),
        STR_ARG(place->hex), types[place->type].extension);
    assert(len > 0 && len < ASSET_PLACE_SIZE);
}

bool asset_is_path(Str path)
{
    return str_starts(path, STR(ASSET_ROUTE));
}

static bool is_hex(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!ascii_is_digit(c) && (c < 'a' || c > 'f')) {
            return false;
        }
    }
    return text.len == ASSET_HEX_LEN;
}

bool asset_path_parse(Str path, AssetPlace *ret)
{
    Str rest = str_slice(path, sizeof ASSET_ROUTE - 1, path.len);
    AssetPlace place = {.tenant = STR_EMPTY, .hex = STR_EMPTY};
    bool shaped = asset_is_path(path) && str_split(&rest, '/', &place.tenant) &&
                  id_is_tenant(place.tenant) && str_split(&rest, '.', &place.hex) &&
                  is_hex(place.hex);
    if (shaped) {
        place.type = asset_type_from_extension(rest);
    }
    if (place.type != ASSET_NONE) {
        *ret = place;
    }
    return place.type != ASSET_NONE;
}
