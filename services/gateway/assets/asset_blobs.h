// SPDX-License-Identifier: Apache-2.0
// Assets in memory: the newest used, and those that are being sent. Law: all of them together have
// at most `max_bytes`; what is being sent stays until its last reader has it. Pure.
#pragma once

#include "common/base/map.h"
#include "common/model/asset.h"

typedef struct AssetBlobs AssetBlobs;

typedef struct AssetBlob {
    Str bytes;
    AssetType type;
    // private
    AssetBlobs *blobs;
    size_t readers;
    bool kept; // it can be found by its key
    struct AssetBlob *older, *newer;
    char key[ASSET_PLACE_SIZE];
} AssetBlob;

AssetBlobs *asset_blobs_new(size_t max_bytes);
void asset_blobs_free(AssetBlobs *blobs); // no blob is being read; NULL-safe

// With one reader more; NULL: it is not here.
AssetBlob *asset_blobs_find(AssetBlobs *blobs, Str key);
// Makes room by forgetting the oldest without a reader. false: there is none.
bool asset_blobs_room(AssetBlobs *blobs, size_t bytes);
// A copy of the bytes, with one reader. The caller has asked for the room.
AssetBlob *asset_blobs_keep(AssetBlobs *blobs, Str key, AssetType type, Str bytes);
void asset_blob_hold(AssetBlob *blob); // one reader more
void asset_blob_release(void *blob);   // a reader has done with it; for arena_own
size_t asset_blobs_bytes(const AssetBlobs *blobs);
