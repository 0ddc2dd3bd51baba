// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/assets/asset_blobs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

struct AssetBlobs {
    Map *by_key;
    size_t bytes, max_bytes;
    AssetBlob *oldest, *newest; // of those that are kept
};

AssetBlobs *asset_blobs_new(size_t max_bytes)
{
    AssetBlobs *blobs = xcalloc(1, sizeof *blobs);
    blobs->by_key = map_new(NULL);
    blobs->max_bytes = max_bytes;
    return blobs;
}

// What a blob takes, so that many small ones have a maximum too.
static size_t cost(size_t bytes)
{
    return bytes + 2 * sizeof(AssetBlob);
}

static void free_blob(AssetBlob *blob)
{
    blob->blobs->bytes -= cost(blob->bytes.len);
    free((void *)(uintptr_t)blob->bytes.ptr);
    free(blob);
}

static void unlink_blob(AssetBlob *blob)
{
    AssetBlobs *blobs = blob->blobs;
    *(blob->older != NULL ? &blob->older->newer : &blobs->oldest) = blob->newer;
    *(blob->newer != NULL ? &blob->newer->older : &blobs->newest) = blob->older;
}

static void link_newest(AssetBlob *blob)
{
    AssetBlobs *blobs = blob->blobs;
    blob->older = blobs->newest;
    blob->newer = NULL;
    *(blobs->newest != NULL ? &blobs->newest->newer : &blobs->oldest) = blob;
    blobs->newest = blob;
}

static void forget(AssetBlob *blob)
{
    unlink_blob(blob);
    (void)map_remove(blob->blobs->by_key, str_from(blob->key));
    blob->kept = false;
    if (blob->readers == 0) {
        free_blob(blob);
    }
}

void asset_blobs_free(AssetBlobs *blobs)
{
    if (blobs == NULL) {
        return;
    }
    while (blobs->oldest != NULL) {
        forget(blobs->oldest);
    }
    assert(blobs->bytes == 0);
    map_free(blobs->by_key);
    free(blobs);
}

AssetBlob *asset_blobs_find(AssetBlobs *blobs, Str key)
{
    AssetBlob *blob = map_get(blobs->by_key, key);
    if (blob != NULL) {
        unlink_blob(blob);
        link_newest(blob);
        blob->readers++;
    }
    return blob;
}

bool asset_blobs_room(AssetBlobs *blobs, size_t bytes)
{
    AssetBlob *blob = blobs->oldest;
    while (blob != NULL && blobs->bytes + cost(bytes) > blobs->max_bytes) {
        AssetBlob *newer = blob->newer;
        if (blob->readers == 0) {
            forget(blob);
        }
        blob = newer;
    }
    return blobs->bytes + cost(bytes) <= blobs->max_bytes;
}

AssetBlob *asset_blobs_keep(AssetBlobs *blobs, Str key, AssetType type, Str bytes)
{
    AssetBlob *blob = xcalloc(1, sizeof *blob);
    char *copy = xmalloc(bytes.len + 1);
    memcpy(copy, bytes.ptr, bytes.len);
    blob->blobs = blobs;
    blob->bytes = str_of(copy, bytes.len);
    blob->type = type;
    blob->readers = 1;
    blob->kept = true;
    (void)str_to_c(key, blob->key, sizeof blob->key);
    assert(map_get(blobs->by_key, key) == NULL);
    map_put(blobs->by_key, key, blob);
    link_newest(blob);
    blobs->bytes += cost(bytes.len);
    return blob;
}

void asset_blob_hold(AssetBlob *blob)
{
    blob->readers++;
}

void asset_blob_release(void *thing)
{
    AssetBlob *blob = thing;
    blob->readers--;
    if (blob->readers == 0 && !blob->kept) {
        free_blob(blob);
    }
}

size_t asset_blobs_bytes(const AssetBlobs *blobs)
{
    return blobs->bytes;
}
