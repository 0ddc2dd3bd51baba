// SPDX-License-Identifier: Apache-2.0
// An uploaded file between its upload and its mails. Its bytes are sealed under a random key of its
// own; the key, with name, type, size, checksum and place, is in the id that the caller gets
// ("att_" and base64url), sealed under the tenant's key. So nothing has to be looked up when the id
// comes back in a request, and the request carries the key under its recipient's: where that is
// destroyed, the file cannot be read any more. Pure but for random bytes.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "stentor/v1/request.pb-c.h"

enum {
    ATTACHMENT_KEY_LEN = 32,
    ATTACHMENT_AROUND = 12 + 16, // nonce and tag around the bytes
    ATTACHMENT_BYTES_MAX = 25 * 1024 * 1024,
    ATTACHMENT_ID_MAX = 1200,
    ATTACHMENT_OBJECT_SIZE = 160,
    ATTACHMENT_USED_WITHIN_DAYS = 7,  // of its upload a request must name it ...
    ATTACHMENT_SENT_WITHIN_DAYS = 37, // ... and its mail must be due
    ATTACHMENT_KEPT_DAYS = 130,       // its object; a dead letter can be resent for 90 days
};

#define ATTACHMENT_PREFIX "attachments/"

// "attachments/2026-11-26/acme/01m2v3...": by age, so that old ones are found without reading any.
void attachment_object(Str tenant, Str ulid, int64_t at_us, char out[ATTACHMENT_OBJECT_SIZE]);
// The day in such a key, as the time at which it began; false: it is none.
bool attachment_object_day(Str object, int64_t *ret_us);

// A fresh key, and the bytes sealed under it, in `arena`.
Str attachment_seal(Str plain, uint8_t ret_key[ATTACHMENT_KEY_LEN], Arena *arena);
// ERROR_PERMANENT: altered, cut, or of another key; or not these bytes by size and checksum.
bool attachment_open(const Stentor__V1__Attachment *file, Str sealed, Buf *out, Error *err);

// The caller's id. The tenant's key is data_key_for_tenant().
const char *attachment_id_make(
    DataKey *tenant_key, Str tenant, const Stentor__V1__Attachment *file, Arena *arena);
// NULL: not an id of this tenant, or altered.
Stentor__V1__Attachment *attachment_id_read(DataKey *tenant_key, Str tenant, Str id, Arena *arena);
