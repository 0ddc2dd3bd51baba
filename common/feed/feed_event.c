// SPDX-License-Identifier: Apache-2.0
#include "common/feed/feed_event.h"

#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/events/meta.h"

static const char CONTENT_FIELD[] = "feed";

void feed_recipient(
    const MasterKey *master, Str tenant, Str address, uint8_t out[FEED_RECIPIENT_LEN])
{
    address_hash(master_oldest_hash_key(master), tenant, CHANNEL_INAPP, address, out);
}

void feed_item_id(Str notification_id, char out[EVENT_ID_SIZE])
{
    event_id_derive("feed", notification_id, STR("item"), out);
}

bool feed_item_pack(
    const Stentor__V1__Rendered *rendered, const Stentor__V1__InappContent *content,
    const uint8_t recipient[FEED_RECIPIENT_LEN], DataKey *key, Arena *arena, Str *ret, Error *err)
{
    Str plain;
    char id[EVENT_ID_SIZE];
    Str notification = str_from(rendered->meta->notification_id);
    if (!event_pack(&content->base, arena, &plain, err)) {
        return false;
    }
    feed_item_id(notification, id);
    Stentor__V1__Meta meta = meta_follow(rendered->meta, id, rendered->rendered_at_us);
    Stentor__V1__FeedItem item = STENTOR__V1__FEED_ITEM__INIT;
    item.category = rendered->category;
    item.template_ = rendered->template_;
    item.content =
        seal(key, str_from(rendered->meta->tenant), notification, CONTENT_FIELD, plain, arena);
    item.created_at_us = rendered->rendered_at_us;
    item.expires_at_us = rendered->expires_at_us;
    item.locale = rendered->locale;
    item.direction = rendered->direction;
    item.recipient_id = rendered->recipient_id;
    Stentor__V1__FeedEvent event = STENTOR__V1__FEED_EVENT__INIT;
    event.meta = &meta;
    event.recipient = pb_data(str_of(recipient, FEED_RECIPIENT_LEN));
    event.part_case = STENTOR__V1__FEED_EVENT__PART_ITEM;
    event.item = &item;
    return event_pack(&event.base, arena, ret, err) &&
           (ret->len <= FEED_EVENT_MAX ||
            error_set(
                err, ERROR_PERMANENT,
                "'content' makes an item of %zu bytes; an inbox takes %d (HINT: a shorter text)",
                ret->len, FEED_EVENT_MAX));
}

static bool pack_out(const Stentor__V1__FeedEvent *event, Arena *arena, BusOut *ret, Error *err)
{
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    subject_feed(subject, str_from(event->meta->tenant));
    *ret =
        (BusOut){.subject = subject, .event_id = arena_str(arena, str_from(event->meta->event_id))};
    return event_pack(&event->base, arena, &ret->payload, err);
}

static Stentor__V1__Meta make_meta(Str tenant, const char *event_id, int64_t at_us, Arena *arena)
{
    return meta_make(
        &(MetaSpec){.event_id = event_id, .tenant = arena_cstr(arena, tenant), .at_us = at_us});
}

bool feed_state_event(const FeedStateSpec *spec, Arena *arena, BusOut *ret, Error *err)
{
    Stentor__V1__Meta meta = make_meta(spec->tenant, spec->event_id, spec->at_us, arena);
    Stentor__V1__FeedState state = *spec->state;
    Stentor__V1__FeedEvent event = STENTOR__V1__FEED_EVENT__INIT;
    event.meta = &meta;
    event.recipient = pb_data(str_of(spec->recipient, FEED_RECIPIENT_LEN));
    event.part_case = STENTOR__V1__FEED_EVENT__PART_STATE;
    event.state = &state;
    return pack_out(&event, arena, ret, err);
}

bool feed_removal_event(
    Str tenant, const char *event_id, int64_t at_us, const Stentor__V1__FeedRemoval *removal,
    Arena *arena, BusOut *ret, Error *err)
{
    Stentor__V1__Meta meta = make_meta(tenant, event_id, at_us, arena);
    Stentor__V1__FeedRemoval copy = *removal;
    Stentor__V1__FeedEvent event = STENTOR__V1__FEED_EVENT__INIT;
    event.meta = &meta;
    event.part_case = STENTOR__V1__FEED_EVENT__PART_REMOVAL;
    event.removal = &copy;
    return pack_out(&event, arena, ret, err);
}

const Stentor__V1__InappContent *feed_content_open(
    DataKey *key, Str tenant, Str notification_id, const Stentor__V1__Sealed *sealed, Arena *arena,
    Error *err)
{
    Str plain;
    if (!unseal(key, tenant, notification_id, CONTENT_FIELD, sealed, arena, &plain, err)) {
        return NULL;
    }
    return (const void *)event_unpack(&stentor__v1__inapp_content__descriptor, plain, arena, err);
}
