// SPDX-License-Identifier: Apache-2.0
// The rows of options that every program with object storage has: STORAGE_ROWS(ArchiverOptions,
// "...") where ArchiverOptions has `StorageOptions storage`; `empty` says what an empty URL means.
#pragma once

#include "common/service/options.h"
#include "common/storage/storage.h"

// clang-format off
#define STORAGE_ROWS(type, empty) \
    {"STENTOR_STORAGE_URL", OPTION_TEXT, offsetof(type, storage.url), "", 0, 0, false, \
     "object storage: file:///folder or s3://bucket/prefix?region=...; empty: " empty}, \
    {"STENTOR_STORAGE_KEY_ID", OPTION_TEXT, offsetof(type, storage.key_id), "", 0, 0, false, \
     "access key of a bucket"}, \
    {"STENTOR_STORAGE_SECRET", OPTION_TEXT, offsetof(type, storage.secret), "", 0, 0, true, \
     "its secret"}, \
    {"STENTOR_STORAGE_SESSION_TOKEN", OPTION_TEXT, offsetof(type, storage.session_token), "", 0, 0, true, \
     "its session token, where access is temporary"}, \
    {"STENTOR_STORAGE_VENDOR", OPTION_TEXT, offsetof(type, storage.vendor), "", 0, 0, false, \
     "whose bucket: aws, gcs or ceph; empty: aws"}
// clang-format on
