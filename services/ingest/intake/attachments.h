// SPDX-License-Identifier: Apache-2.0
// The attachments that a request names: their ids are opened and judged. No look-up: what an id
// says was sealed by the gateway when it had stored the file.
#pragma once

#include "common/codec/attachment.h"
#include "common/request/request_mail.h"

typedef struct AttachmentRules {
    MasterKey *master;
    Str tenant;
    int64_t bytes_max; // of all of one mail
    int64_t now_us;
} AttachmentRules;

// Fills `file` of each. false: *err names the one that is unknown, too old or too much.
bool attachments_read(
    const AttachmentRules *rules, Request *request, Arena *arena, FieldError *err);
