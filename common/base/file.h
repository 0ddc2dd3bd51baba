// SPDX-License-Identifier: Apache-2.0
// A small file as a whole: read once (settings, a key file, a template's source), or put into its
// place. It blocks, so it is not for a running loop.
#pragma once

#include <sys/types.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/error.h"

// "-": standard input. ERROR_CONFIG when it cannot be read, ERROR_PERMANENT beyond `max` bytes.
bool file_read(const char *path, size_t max, Arena *arena, Str *ret, Error *err)
    __attribute__((warn_unused_result));
// The same at the end of `out`, whose own maximum counts; too large a file is ERROR_CONFIG.
bool file_append(const char *path, Buf *out, Error *err) __attribute__((warn_unused_result));

typedef struct FileRights {
    mode_t mode;
    gid_t group; // (gid_t)-1: that of the process
} FileRights;

// Between the file's name and six random characters: what a killed file_put leaves behind.
#define FILE_TEMPORARY ".new."

typedef enum FilePut { FILE_PRESENT, FILE_WRITTEN } FilePut;

// Puts `text` at `path`, whole or not at all: a file next to it is written, synced and moved there.
// What is there already stays, unless `replaces` and its text differs. The rights hold afterwards
// in both cases. Two who put the same file at once: one of them wins, whole.
bool file_put(
    const char *path, Str text, const FileRights *rights, bool replaces, FilePut *ret, Error *err);
