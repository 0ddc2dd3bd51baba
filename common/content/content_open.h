// SPDX-License-Identifier: Apache-2.0
// A rendered event opened: its content under the recipient's data key, unpacked against the
// template version that it was made of, and compared with its checksum. Blocking.
#pragma once

#include "common/content/content_find.h"
#include "stentor/v1/request.pb-c.h"

typedef struct ContentOpened {
    // EmailContent, SmsContent ... by the event's channel; in the session's arena.
    const ProtobufCMessage *content;
    const Stentor__V1__Address *address; // NULL: it cannot be opened any more
} ContentOpened;

// PERMANENT: the recipient was erased or is restricted; the template version is not in CONFIG; the
// event was altered.
bool content_open(
    ContentSession *session, const Stentor__V1__Rendered *event, ContentOpened *ret, Error *err);
