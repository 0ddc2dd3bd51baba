// SPDX-License-Identifier: Apache-2.0
// A notification's content as JSON: the fields of its channel's message that have a value. Pure.
// What lets others act is left out: an attachment's id holds its key, a copy's address is masked.
#pragma once

#include "common/base/buf.h"
#include "common/content/content_parts.h"

enum { CONTENT_JSON_MAX = 32 * 1024 * 1024 };

// {"id":...,"channel":...,"to":"ali***@example.com",...,"content":{...}}
void content_print(
    Buf *out, const Stentor__V1__Rendered *event, const ContentOpened *opened, Str status);
