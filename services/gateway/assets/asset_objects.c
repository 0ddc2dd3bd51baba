// SPDX-License-Identifier: Apache-2.0
// Storing is put, read back, compared. Killed after the put: the object is there and no entry names
// it; the same put meets it.
#include "services/gateway/assets/asset_objects.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/crash.h"

enum {
    MEMORY_BYTES = 32 * 1024 * 1024,
    READS_AT_ONCE = 8,
    NAMED_PER_S = 200, // reads of what CONFIG names
    OTHER_PER_S = 50,  // of what was replaced, and of names that were made up
};

// Reads that began in the second.
typedef struct Window {
    uint64_t second;
    unsigned count;
} Window;

// One object on its way into memory.
typedef struct Flight {
    AssetObjects *objects; // NULL: not used
    AssetReading *readings;
    AssetType type;
    Buf bytes;
    uint8_t sha256[SHA256_LEN];
    char key[ASSET_PLACE_SIZE];
} Flight;

struct AssetObjects {
    uv_loop_t *loop;
    Storage *storage; // NULL: none, or closed
    AssetBlobs *blobs;
    Flight flights[READS_AT_ONCE];
    Window named, other;
};

// ---- life ----

AssetObjects *asset_objects_new(uv_loop_t *loop, const StorageOptions *options, Error *err)
{
    Storage *storage = NULL;
    if (options->url[0] != '\0') {
        storage = storage_new(loop, options, err);
        if (storage == NULL) {
            return NULL;
        }
    }
    AssetObjects *objects = xcalloc(1, sizeof *objects);
    objects->loop = loop;
    objects->storage = storage;
    objects->blobs = asset_blobs_new(MEMORY_BYTES);
    return objects;
}

bool asset_objects_ready(const AssetObjects *objects)
{
    return objects->storage != NULL;
}

Storage *asset_objects_storage(const AssetObjects *objects)
{
    return objects->storage;
}

void asset_objects_close(AssetObjects *objects, void (*on_closed)(void *ctx), void *ctx)
{
    Storage *storage = objects->storage;
    objects->storage = NULL;
    if (storage == NULL) {
        on_closed(ctx);
    } else {
        storage_free(storage, on_closed, ctx);
    }
}

void asset_objects_free(AssetObjects *objects)
{
    if (objects != NULL) {
        asset_blobs_free(objects->blobs);
        free(objects);
    }
}

// ---- storing ----

static void put_object(AssetStoring *storing, StorageCondition condition);

static bool on_back_piece(void *ctx, const void *bytes, size_t len)
{
    AssetStoring *storing = ctx;
    sha256_add(storing->digest, str_of(bytes, len));
    storing->read += len;
    return true;
}

static void compare(AssetStoring *storing, StorageOutcome outcome, const Error *failure)
{
    uint8_t found[SHA256_LEN];
    Error err = {0};
    sha256_end(storing->digest, found);
    if (outcome == STORAGE_FAILED) {
        storing->on_stored(storing->ctx, failure);
        return;
    }
    bool same = outcome == STORAGE_DONE && storing->read == storing->bytes.len &&
                memcmp(found, storing->sha256, sizeof found) == 0;
    if (same) {
        CRASH_POINT("gateway.asset_stored");
        storing->on_stored(storing->ctx, NULL);
    } else if (storing->was_there) {
        put_object(storing, STORAGE_ALWAYS); // it was damaged; the name is of these bytes alone
    } else {
        error_set(
            &err, ERROR_PERMANENT, "object '%s' %s", storing->key,
            outcome == STORAGE_ABSENT ? "is not there after it was stored"
                                      : "was stored and reads back as other bytes");
        storing->on_stored(storing->ctx, &err);
    }
}

static void on_back(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    (void)info;
    compare(ctx, outcome, err);
}

// NULL: the program is stopping; on_stored has had it.
static Storage *storage_of(const AssetStoring *storing)
{
    Error err = {0};
    if (storing->objects->storage == NULL) {
        error_set(&err, ERROR_CANCELLED, "the program is stopping");
        storing->on_stored(storing->ctx, &err);
    }
    return storing->objects->storage;
}

static void read_back(AssetStoring *storing, StorageOutcome outcome, const Error *err)
{
    if (outcome == STORAGE_FAILED) {
        storing->on_stored(storing->ctx, err);
        return;
    }
    Storage *storage = storage_of(storing);
    if (storage == NULL) {
        return;
    }
    storing->was_there = outcome == STORAGE_PRECONDITION;
    storing->digest = sha256_begin();
    storing->read = 0;
    storage_get(storage, str_from(storing->key), 0, 0, on_back_piece, on_back, storing);
}

static void on_put(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    (void)info;
    read_back(ctx, outcome, err);
}

static void put_object(AssetStoring *storing, StorageCondition condition)
{
    StoragePut put = {
        .key = str_from(storing->key),
        .bytes = storing->bytes.ptr,
        .len = storing->bytes.len,
        .condition = condition,
    };
    memcpy(put.sha256, storing->sha256, sizeof put.sha256);
    Storage *storage = storage_of(storing);
    if (storage != NULL) {
        storage_put(storage, &put, on_put, storing);
    }
}

void asset_objects_put(AssetStoring *storing)
{
    assert(storing->objects->storage != NULL);
    put_object(storing, STORAGE_IF_ABSENT);
}

// ---- reading ----

static void end_flight(Flight *flight, AssetOutcome outcome, AssetBlob *blob, const Error *err)
{
    AssetReading *reading = flight->readings;
    buf_done(&flight->bytes);
    flight->readings = NULL;
    flight->objects = NULL;
    while (reading != NULL) {
        AssetReading *next = reading->next; // its arena may go with its answer
        reading->on_read(reading->ctx, outcome, blob, err);
        reading = next;
    }
}

static bool is_whole(Flight *flight, Error *err)
{
    uint8_t found[SHA256_LEN];
    Str bytes = buf_view(&flight->bytes);
    sha256(bytes, found);
    bool same = !flight->bytes.full && memcmp(found, flight->sha256, sizeof found) == 0;
    return same || error_set(
                       err, ERROR_PERMANENT,
                       "object '%s' has other bytes than its name says (HINT: put the file again)",
                       flight->key);
}

static void land(Flight *flight, StorageOutcome outcome, const Error *failure)
{
    AssetObjects *objects = flight->objects;
    Error err = {0};
    if (outcome != STORAGE_DONE) {
        end_flight(flight, outcome == STORAGE_ABSENT ? ASSET_ABSENT : ASSET_FAILED, NULL, failure);
        return;
    }
    if (!is_whole(flight, &err)) {
        end_flight(flight, ASSET_DAMAGED, NULL, &err);
        return;
    }
    Str bytes = buf_view(&flight->bytes);
    if (asset_type_of(bytes) != flight->type) { // the name's extension is another's
        end_flight(flight, ASSET_ABSENT, NULL, NULL);
    } else if (!asset_blobs_room(objects->blobs, bytes.len)) {
        end_flight(flight, ASSET_BUSY, NULL, NULL);
    } else {
        AssetBlob *blob =
            asset_blobs_keep(objects->blobs, str_from(flight->key), flight->type, bytes);
        end_flight(flight, ASSET_SHOWN, blob, NULL);
        asset_blob_release(blob);
    }
}

static void on_landed(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    (void)info;
    land(ctx, outcome, err);
}

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    Flight *flight = ctx;
    return buf_append(&flight->bytes, bytes, len); // too long: enough, and damaged
}

// The one of that object and type, or one that is not used; NULL: all are.
static Flight *find_flight(AssetObjects *objects, Str key, AssetType type)
{
    Flight *unused = NULL;
    for (size_t i = 0; i < READS_AT_ONCE; i++) {
        Flight *flight = &objects->flights[i];
        if (flight->objects == NULL) {
            unused = flight;
        } else if (flight->type == type && str_eq(str_from(flight->key), key)) {
            return flight;
        }
    }
    return unused;
}

static bool take_turn(AssetObjects *objects, bool named)
{
    Window *window = named ? &objects->named : &objects->other;
    uint64_t second = uv_now(objects->loop) / 1000;
    if (window->second != second) {
        *window = (Window){.second = second};
    }
    return window->count++ < (named ? NAMED_PER_S : OTHER_PER_S);
}

static void begin_flight(Flight *flight, AssetObjects *objects, Str key, AssetReading *reading)
{
    size_t len = 0;
    flight->objects = objects;
    flight->readings = reading;
    flight->type = reading->place.type;
    buf_init(&flight->bytes, ASSET_BYTES_MAX);
    (void)str_to_c(key, flight->key, sizeof flight->key);
    (void)hex_decode(reading->place.hex, flight->sha256, sizeof flight->sha256, &len);
    assert(len == sizeof flight->sha256);
    storage_get(objects->storage, key, 0, 0, on_piece, on_landed, flight);
}

static bool show_kept(AssetObjects *objects, Str key, const AssetReading *reading)
{
    AssetBlob *blob = asset_blobs_find(objects->blobs, key);
    if (blob == NULL) {
        return false;
    }
    bool same = blob->type == reading->place.type;
    reading->on_read(reading->ctx, same ? ASSET_SHOWN : ASSET_ABSENT, same ? blob : NULL, NULL);
    asset_blob_release(blob);
    return true;
}

void asset_objects_read(AssetObjects *objects, AssetReading *reading)
{
    char text[ASSET_PLACE_SIZE];
    asset_object_key(reading->place.tenant, reading->place.hex, text);
    Str key = str_from(text);
    if (show_kept(objects, key, reading)) {
        return;
    }
    Flight *flight = find_flight(objects, key, reading->place.type);
    if (flight != NULL && flight->objects != NULL) {
        reading->next = flight->readings;
        flight->readings = reading;
    } else if (
        flight == NULL || objects->storage == NULL || !take_turn(objects, reading->named) ||
        !asset_blobs_room(objects->blobs, ASSET_BYTES_MAX)) {
        reading->on_read(reading->ctx, ASSET_BUSY, NULL, NULL);
    } else {
        begin_flight(flight, objects, key, reading);
    }
}
