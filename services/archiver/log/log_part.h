// SPDX-License-Identifier: Apache-2.0
// A segment while it is written: its frames in a spool file without a name (a crash leaves
// nothing), its SHA-256 on the way.
#pragma once

#include "common/codec/hash.h"
#include "common/segment/segment_writer.h"
#include "common/storage/storage.h"
#include "services/archiver/log/log_tenants.h"

enum { LOG_KEY_SIZE = 256 };

typedef struct LogPart LogPart;

// Makes the file in `folder`. NULL: TRANSIENT, with the folder's name.
LogPart *log_part_open(
    SegmentPacker *packer, const SegmentOptions *options, const char *folder, Error *err);
void log_part_free(LogPart *part); // NULL-safe; the file is gone
// `tenant`: whose it is.
bool log_part_add(LogPart *part, const SegmentRecord *record, Str tenant, Error *err);
uint64_t log_part_bytes(const LogPart *part); // in the file so far
bool log_part_full(const LogPart *part);

typedef struct LogFile {
    int fd; // of the part
    uint64_t bytes;
    uint8_t sha256[SHA256_LEN];
    char key[LOG_KEY_SIZE]; // the object's, below the storage's prefix
    char version[STORAGE_VERSION_SIZE]; // of the object, once it is stored
    const LogTenants *tenants;          // the part's
    SegmentHeader header;
    bool stored; // the tape's own mark
} LogFile;

// Ends the segment, which covers first..last.
bool log_part_finish(LogPart *part, uint64_t first, uint64_t last, LogFile *ret, Error *err);
