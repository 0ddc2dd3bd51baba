// SPDX-License-Identifier: Apache-2.0
// The files of mails, from object storage: fetched when a mail needs one, opened and checked, and
// kept for a while, because a mail is looked at again until all its files are here. Law: no more
// than ATTACHMENTS_KEPT_BYTES are kept, those used longest ago go first; and the mails that are
// being sent hold no more than ATTACHMENTS_HELD_BYTES of files, the others wait.
#pragma once

#include "common/codec/attachment.h"
#include "common/storage/storage.h"

enum {
    ATTACHMENTS_KEPT_BYTES = 128 * 1024 * 1024,
    ATTACHMENTS_HELD_BYTES = 256 * 1024 * 1024,
    ATTACHMENTS_FETCHES = 8, // at once
};

typedef struct Attachments Attachments;

// NULL: CONFIG. options->url empty: there is no object storage, and no mail with files is sent.
Attachments *attachments_new(uv_loop_t *loop, const StorageOptions *options, Error *err);
void attachments_close(Attachments *attachments, void (*on_closed)(void *ctx), void *ctx);
void attachments_free(Attachments *attachments); // after it was closed; NULL-safe

typedef enum AttachmentState {
    ATTACHMENT_HERE,   // *ret_bytes, valid until the next call
    ATTACHMENT_COMING, // ask again in a moment
    ATTACHMENT_AWAY,   // err: object storage does not answer
    ATTACHMENT_LOST,   // err: it is not there, or has other bytes
} AttachmentState;

AttachmentState attachments_get(
    Attachments *attachments, const Stentor__V1__Attachment *file, uint64_t now_ms, Str *ret_bytes,
    Error *err);

// Of a mail that is about to be sent. false: too much is being sent already.
bool attachments_hold(Attachments *attachments, size_t bytes);
void attachments_let_go(Attachments *attachments, size_t bytes);
