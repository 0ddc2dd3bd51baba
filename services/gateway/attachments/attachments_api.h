// SPDX-License-Identifier: Apache-2.0
// POST /v1/attachments: a file is checked, sealed and stored, and its id comes back, which requests
// name (common/codec/attachment.h). The file is the body, or (POST /v1/attachments/objects) an
// object of a place that the operator allows the tenant. And the removal of those that are past
// their time.
#pragma once

#include "common/api/api.h"
#include "common/codec/attachment.h"
#include "common/codec/master_key.h"
#include "services/gateway/assets/asset_objects.h"
#include "services/gateway/attachments/attachment_places.h"

typedef struct AttachmentsApi {
    AssetObjects *objects;
    MasterKey *master;
    AttachmentPlaces *places;
    int64_t bytes_max;
    size_t fetching; // objects of places that are being read now
    // private: of the removal
    uint64_t swept_at_ms;          // 0: not yet
    struct AttachmentSweep *sweep; // one that is under way
} AttachmentsApi;

void attachments_api_add(Api *api, AttachmentsApi *attachments); // borrowed
// Now and then, from the loop's timer: once an hour it removes objects past ATTACHMENT_KEPT_DAYS.
void attachments_tick(AttachmentsApi *attachments, uint64_t now_ms);

// A file with a name and a type, which is sealed and stored and then answered with its id; for the
// routes. `bytes` lives until the answer.
typedef struct AttachmentFile {
    Str name, type, bytes;
} AttachmentFile;

// false: answered, because name or type is none, or there is no object storage.
bool attachment_may_be_stored(
    ApiCall *call, const AttachmentsApi *api, const AttachmentFile *file, const char *type_field);
void attachment_store(ApiCall *call, AttachmentsApi *api, const AttachmentFile *file);
void attachment_objects_add(Api *api, AttachmentsApi *attachments);

// What is refused, and why; NULL: it may be stored. Pure.
const char *attachment_refusal(Str name, Str type, Str bytes);
