// SPDX-License-Identifier: Apache-2.0
// The bytes of assets in object storage. Law: an asset is stored when it was read back, and shown
// when its SHA-256 is its name's; no other bytes ever leave. Reads are few: those of one object at
// the same time are one, READS_AT_ONCE at most, and so many in a second.
#pragma once

#include "common/storage/storage.h"
#include "services/gateway/assets/asset_blobs.h"

typedef struct AssetObjects AssetObjects;

// NULL: CONFIG. options->url empty: there is no object storage, which asset_objects_ready says.
AssetObjects *asset_objects_new(uv_loop_t *loop, const StorageOptions *options, Error *err);
bool asset_objects_ready(const AssetObjects *objects);
// For what else rests there; NULL: there is none, or it was closed.
Storage *asset_objects_storage(const AssetObjects *objects);
// What is under way ends first, CANCELLED; on_freed comes from the loop, or at once.
void asset_objects_close(AssetObjects *objects, void (*on_closed)(void *ctx), void *ctx);
void asset_objects_free(AssetObjects *objects); // after it was closed; NULL-safe

// ---- storing ----

// err NULL: the object is there with these bytes. PERMANENT: the storage gives other bytes back.
typedef void (*AssetStored)(void *ctx, const Error *err);

// Lives in the caller's arena until on_stored, with its bytes.
typedef struct AssetStoring {
    AssetObjects *objects;
    Str bytes;
    uint8_t sha256[SHA256_LEN];
    char key[ASSET_PLACE_SIZE];
    AssetStored on_stored;
    void *ctx;
    // private
    bool was_there; // the put met an object of this name
    Sha256 *digest; // of what is read back
    uint64_t read;
} AssetStoring;

void asset_objects_put(AssetStoring *storing);

// ---- reading ----

typedef enum AssetOutcome {
    ASSET_SHOWN,
    ASSET_ABSENT,
    ASSET_DAMAGED, // other bytes than its name says; err says so
    ASSET_BUSY,    // too many reads at once or in this second: again in a moment
    ASSET_FAILED,  // err: the storage does not answer
} AssetOutcome;

// blob only when SHOWN; the callee holds it if it keeps it. err only when DAMAGED or FAILED.
typedef void (*AssetRead)(void *ctx, AssetOutcome outcome, AssetBlob *blob, const Error *err);

// Lives in the caller's arena until on_read, which may come at once.
typedef struct AssetReading {
    AssetPlace place; // what it points to lives as long
    bool named;       // an entry of CONFIG names it: it does not wait behind made-up names
    AssetRead on_read;
    void *ctx;
    struct AssetReading *next; // private: of the same object
} AssetReading;

void asset_objects_read(AssetObjects *objects, AssetReading *reading);
