// SPDX-License-Identifier: Apache-2.0
// A rendered event opened by whoever has its keys and the template version that it was compressed
// against: content_open.h for commands, gateway on its loop. Pure.
#pragma once

#include "common/codec/body.h"
#include "common/codec/seal.h"
#include "common/db/keyring.h"
#include "stentor/v1/config.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"

typedef struct ContentOpened {
    // EmailContent, SmsContent ... by the event's channel; in the arena.
    const ProtobufCMessage *content;
    const Stentor__V1__Address *address; // NULL: it cannot be opened any more
} ContentOpened;

// The keys that it needs: of content and address. ERROR_PERMANENT: the event is none of ours.
bool content_parts_wants(const Stentor__V1__Rendered *event, KeyWant ret[2], Error *err);
// What that version makes of it; NULL: it is not the one that it was compressed against.
BodyPrefix *content_parts_prefix(
    const Stentor__V1__Rendered *event, const Stentor__V1__TemplateVersion *version);

typedef struct ContentParts {
    const Stentor__V1__Rendered *event;
    DataKey *content_key;
    DataKey *address_key;     // NULL: the address stays sealed
    const BodyPrefix *prefix; // NULL: it needs none (content_prefix_id 0)
} ContentParts;

// PERMANENT: it was altered, or does not match its checksum.
bool content_parts_open(const ContentParts *parts, Arena *arena, ContentOpened *ret, Error *err);
