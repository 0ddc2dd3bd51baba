// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/reply_event.h"

#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "stentor/v1/reply.pb-c.h"

const char *reply_kind(ReplyWord word)
{
    switch (word) {
    case REPLY_WORD_STOP:
        return "stop";
    case REPLY_WORD_START:
        return "start";
    case REPLY_WORD_HELP:
        return "help";
    case REPLY_WORD_NONE:
        break;
    }
    return "message";
}

static void derive_id(
    const CallbackEvent *event, const CallbackOrigin *origin, Arena *arena, char ret[EVENT_ID_SIZE])
{
    const char *cause =
        event->message_id.len > 0
            ? arena_printf(
                  arena, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(origin->vendor),
                  STR_ARG(origin->tenant), STR_ARG(event->message_id))
            : arena_printf(arena, STR_FMT "/%zu", STR_ARG(origin->event_id), origin->index);
    event_id_derive("reply", str_from(cause), STR_EMPTY, ret);
}

static bool seal_content(
    const CallbackEvent *event, const CallbackOrigin *origin, const ReplyKeys *keys, Arena *arena,
    Stentor__V1__Sealed **ret, Error *err)
{
    Stentor__V1__ReplyContent content;
    stentor__v1__reply_content__init(&content);
    content.address = arena_cstr(arena, event->email);
    content.text = arena_cstr(arena, event->reply->text);
    Str packed;
    if (!event_pack(&content.base, arena, &packed, err)) {
        return false;
    }
    *ret = seal(keys->seal, origin->tenant, STR_EMPTY, "reply", packed, arena);
    return true;
}

bool reply_event(
    const CallbackEvent *event, const CallbackOrigin *origin, const ReplyKeys *keys, Arena *arena,
    BusOut *ret, Error *err)
{
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    uint8_t *hash = arena_alloc(arena, ADDRESS_HASH_LEN);
    const char *kind = reply_kind(event->reply->word);
    derive_id(event, origin, arena, event_id);
    MetaSpec head = {
        .event_id = event_id,
        .tenant = arena_cstr(arena, origin->tenant),
        .causation_id = arena_cstr(arena, origin->event_id),
        .at_us = event->at_us > 0 ? event->at_us : origin->received_at_us,
    };
    Stentor__V1__Meta meta = meta_make(&head);
    Stentor__V1__InboundReply reply;
    stentor__v1__inbound_reply__init(&reply);
    reply.meta = &meta;
    reply.channel = (Stentor__V1__Channel)origin->channel;
    reply.vendor = arena_cstr(arena, origin->vendor);
    reply.kind = arena_cstr(arena, str_from(kind));
    if (event->email.len > 0) {
        address_hash(keys->hash, origin->tenant, origin->channel, event->email, hash);
        reply.address_hash = pb_data(str_of(hash, ADDRESS_HASH_LEN));
    }
    reply.sender = arena_cstr(arena, event->reply->to);
    reply.content_type = arena_cstr(arena, event->reply->kind);
    reply.vendor_message_id = arena_cstr(arena, event->message_id);
    reply.answers_message_id = arena_cstr(arena, event->reply->answers);
    reply.received_at_us = origin->received_at_us;
    subject_reply(subject, origin->tenant, origin->channel, kind);
    *ret = (BusOut){.subject = subject, .event_id = str_from(event_id)};
    return seal_content(event, origin, keys, arena, &reply.content, err) &&
           event_pack(&reply.base, arena, &ret->payload, err);
}
