// SPDX-License-Identifier: Apache-2.0
// Objects as files of a folder, blocking: storage_file.c calls it from threads. Several threads and
// processes may use one folder.
//
// Law: a file has an object's name only when it is whole and synced; a name is durable before its
// PUT is done, a removal before its DELETE is. What changes names holds the folder's lock.
//
//   <folder>/log/REQUEST/...   the objects; folders 0700, files 0600 (of a shared folder 0755,
//   0644) <folder>/.tmp/             what is being written, and the file `lock`
//   <folder>/.owner/<key>      the installation whose object it is, when the PUT said one
#pragma once

#include "common/storage/internal.h"

enum { STORAGE_FOLDER_MAX = 1000, STORAGE_PATH_SIZE = STORAGE_FOLDER_MAX + STORAGE_KEY_MAX + 32 };

typedef struct StorageFolder {
    char root[STORAGE_FOLDER_MAX + 1]; // does not end with '/'
    bool foreign;                      // others write there: links below it are not followed
} StorageFolder;

// From errno, with the key, what failed and why: a full disk is TRANSIENT, rights are CONFIG, a key
// that no file can have is PERMANENT. Returns false.
bool storage_folder_error(Str key, const char *what, Error *err);

// `put`'s bytes as a synced file without the object's name. Killed after it: a file of .tmp, which
// a PUT a day later removes.
bool storage_folder_write(
    const StorageFolder *folder, const StoragePut *put, char temporary[STORAGE_PATH_SIZE],
    Error *err);
// Gives it its name when the condition holds. The temporary is gone afterwards in every case.
StorageOutcome storage_folder_publish(
    const StorageFolder *folder, const StoragePut *put, const char *temporary, StorageInfo *ret,
    Error *err);
void storage_folder_discard(const char *temporary);

// *ret_fd is the caller's; *ret without the installation.
StorageOutcome storage_folder_open(
    const StorageFolder *folder, Str key, int *ret_fd, StorageInfo *ret, Error *err);
StorageOutcome storage_folder_head(
    const StorageFolder *folder, Str key, StorageInfo *ret, Error *err);
StorageOutcome storage_folder_remove(const StorageFolder *folder, Str key, Error *err);

// Its mode is 2750: an operator has made it for its group to read. That mode guards all below it.
bool storage_folder_shared(const StorageFolder *folder);
bool storage_folder_sync(const char *path); // the names in one folder; errno
struct stat;
void storage_folder_info(const struct stat *file, StorageInfo *ret); // without the installation
