// SPDX-License-Identifier: Apache-2.0
// links: stentor_codec
// Any bytes as any event: refused, or a message whose strings are UTF-8 and which packs and unpacks
// to itself. The first byte chooses the message, the rest are its bytes.
#include <stdlib.h>

#include "common/codec/event.h"
#include "stentor/v1/config.pb-c.h"
#include "stentor/v1/dead.pb-c.h"
#include "stentor/v1/deferred.pb-c.h"
#include "stentor/v1/inbound.pb-c.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"
#include "stentor/v1/status.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
    &stentor__v1__sealed__descriptor,
    &stentor__v1__meta__descriptor,
    &stentor__v1__notification_request__descriptor,
    &stentor__v1__address__descriptor,
    &stentor__v1__notify_command__descriptor,
    &stentor__v1__rendered__descriptor,
    &stentor__v1__email_content__descriptor,
    &stentor__v1__notification_status__descriptor,
    &stentor__v1__attempt__descriptor,
    &stentor__v1__deferred__descriptor,
    &stentor__v1__inbound_callback__descriptor,
    &stentor__v1__tenant__descriptor,
    &stentor__v1__api_key__descriptor,
    &stentor__v1__template_version__descriptor,
    &stentor__v1__locale_variant__descriptor,
    &stentor__v1__template_variable__descriptor,
    &stentor__v1__template_partial__descriptor,
    &stentor__v1__inbound_key__descriptor,
    &stentor__v1__dead_letter__descriptor,
};

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static Str pack(const ProtobufCMessage *message, Arena *arena)
{
    Error err;
    Str bytes = STR_EMPTY;
    // A negative enum of five bytes packs to ten; no corpus is so near to the maximum that it
    // matters.
    require(event_pack(message, arena, &bytes, &err));
    return bytes;
}

static void try_type(const ProtobufCMessageDescriptor *type, Str bytes, Arena *arena)
{
    Error err = {0};
    ProtobufCMessage *message = event_unpack(type, bytes, arena, &err);
    if (message == NULL) {
        require(err.kind == ERROR_PERMANENT && err.text[0] != '\0');
        return;
    }
    Str packed = pack(message, arena);
    ProtobufCMessage *again = event_unpack(type, packed, arena, &err);
    require(again != NULL);
    require(str_eq(pack(again, arena), packed));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    Arena *arena = arena_new(0);
    size_t choice = data[0] % (sizeof types / sizeof types[0]);
    try_type(types[choice], str_of(data + 1, size - 1), arena);
    arena_free(arena);
    return 0;
}
