// SPDX-License-Identifier: Apache-2.0
// A file without a name that an object is made of, or fetched into: its bytes are hashed as they
// come. Blocking. It goes with the process, so it is never synced; what a disk changed or lost of
// it, the PUT refuses by its hash.
#pragma once

#include <stdint.h>

#include "common/base/error.h"
#include "common/codec/hash.h"

typedef struct SpoolPlace { // borrowed
    const char *folder;
    const char *option; // that names the folder: errors hint at it
} SpoolPlace;

typedef struct Spool {
    int fd;
    SpoolPlace place;
    Sha256 *digest; // NULL: finished
    uint64_t bytes;
    int error; // errno of the first write that failed; 0: none
} Spool;

// TRANSIENT: no file can be made in the folder.
bool spool_open(Spool *spool, const SpoolPlace *place, Error *err);
void spool_close(Spool *spool);                                // also of {.fd = -1}
bool spool_append(void *spool, const void *bytes, size_t len); // a ParquetSink, a StoragePiece
// After the last byte: its hash. TRANSIENT: a write failed, the disk is full.
bool spool_finish(Spool *spool, uint8_t ret_sha256[SHA256_LEN], Error *err);
// A ParquetSource.
bool spool_read(void *spool, uint64_t offset, void *into, size_t len, Error *err);
// Why the spool cannot be written; false.
bool spool_failure(const Spool *spool, Error *err);
