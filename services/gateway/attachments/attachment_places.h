// SPDX-License-Identifier: Apache-2.0
// Places in object storage whose objects tenants may attach: those that an operator has written
// into a file, each a folder or a bucket's prefix with the tenants that it is for. Law: nothing
// else is ever read, whatever a caller writes: a key is relative to the place, and has no "..".
//
//   [{"name": "invoices", "tenants": ["acme"], "url": "s3://acme-invoices/pdf?region=eu-west-1",
//     "key_id": "AKIA...", "secret_file": "/run/secrets/invoices", "vendor": "aws"}]
#pragma once

#include "common/storage/storage.h"

enum { ATTACHMENT_PLACES_MAX = 64, ATTACHMENT_PLACE_NAME_MAX = 64 };

typedef struct AttachmentPlaces AttachmentPlaces;

// file "": none. NULL: CONFIG, with the place that is wrong.
AttachmentPlaces *attachment_places_new(uv_loop_t *loop, const char *file, Error *err);
// NULL: there is no such place, or it is not for the tenant; or they were closed.
Storage *attachment_places_find(const AttachmentPlaces *places, Str name, Str tenant);
void attachment_places_close(AttachmentPlaces *places, void (*on_closed)(void *ctx), void *ctx);
void attachment_places_free(AttachmentPlaces *places); // after they were closed; NULL-safe
