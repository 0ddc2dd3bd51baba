// SPDX-License-Identifier: Apache-2.0
// Body frames: a rendered body is mostly its template, so it travels as a zstd frame compressed
// against its template version as the prefix: about a tenth of the bytes.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "stentor/v1/config.pb-c.h"

enum { BODY_BYTES_MAX = 512 * 1024 };

// A template version's prefix, digested once for both directions. Immutable; id 0 is no prefix.
typedef struct BodyPrefix BodyPrefix;

// Made of the sources of all locales and partials in their order, so every holder of the version
// makes the same.
BodyPrefix *body_prefix_new(const Stentor__V1__TemplateVersion *version);
void body_prefix_free(BodyPrefix *prefix);
uint64_t body_prefix_id(const BodyPrefix *prefix);

// prefix NULL: compressed alone. ERROR_PERMANENT above BODY_BYTES_MAX.
bool body_pack(const BodyPrefix *prefix, Str plain, Arena *arena, Str *ret_frame, Error *err);
// Alone, and quickly: for what is short and lives for days. false above BODY_BYTES_MAX.
bool body_pack_quickly(Str plain, Arena *arena, Str *ret_frame);
// ERROR_PERMANENT when it is not a frame, is longer than BODY_BYTES_MAX, or needs another prefix.
bool body_unpack(const BodyPrefix *prefix, Str frame, Arena *arena, Str *ret_plain, Error *err);
