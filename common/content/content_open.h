// SPDX-License-Identifier: Apache-2.0
// A rendered event opened: its content under the recipient's data key, unpacked against the
// template version that it was made of, and compared with its checksum. Blocking.
#pragma once

#include "common/content/content_find.h"
#include "common/content/content_parts.h"

// PERMANENT: the recipient was erased or is restricted; the template version is not in CONFIG; the
// event was altered.
bool content_open(
    ContentSession *session, const Stentor__V1__Rendered *event, ContentOpened *ret, Error *err);
