// SPDX-License-Identifier: Apache-2.0
// POST /v1/attachments: a file is checked, sealed and stored, and its id comes back, which requests
// name (common/codec/attachment.h). And the removal of those that are past their time.
#pragma once

#include "common/api/api.h"
#include "common/codec/attachment.h"
#include "common/codec/master_key.h"
#include "services/gateway/assets/asset_objects.h"

typedef struct AttachmentsApi {
    AssetObjects *objects;
    MasterKey *master;
    int64_t bytes_max;
    // private: of the removal
    uint64_t swept_at_ms;          // 0: not yet
    struct AttachmentSweep *sweep; // one that is under way
} AttachmentsApi;

void attachments_api_add(Api *api, AttachmentsApi *attachments); // borrowed
// Now and then, from the loop's timer: once an hour it removes objects past ATTACHMENT_KEPT_DAYS.
void attachments_tick(AttachmentsApi *attachments, uint64_t now_ms);

// What is refused, and why; NULL: it may be stored. Pure.
const char *attachment_refusal(Str name, Str type, Str bytes);
