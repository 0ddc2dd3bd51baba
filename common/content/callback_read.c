// SPDX-License-Identifier: Apache-2.0
#include "common/content/callback_read.h"

#include <string.h>

#include "common/codec/event.h"
#include "common/content/text_search.h"
#include "stentor/v1/inbound.pb-c.h"

typedef struct Search {
    ContentSession *session;
    const CallbackQuery *query;
    DataKey *key;
    Arena *scratch;
    Callbacks *found;
} Search;

static bool open_body(Search *search, const Stentor__V1__InboundCallback *callback, Str *ret)
{
    Error ignored;
    return callback->body != NULL && unseal(
                                         search->key, str_from(search->query->tenant), STR_EMPTY,
                                         "body", callback->body, search->scratch, ret, &ignored);
}

static void keep(
    Search *search, const BusMessage *message, const Stentor__V1__InboundCallback *callback,
    Str body)
{
    Arena *arena = search->session->arena;
    search->found->items[search->found->count++] = (Callback){
        .event_id = arena_cstr(arena, str_from(callback->meta->event_id)),
        .vendor = arena_cstr(arena, str_from(callback->vendor)),
        .key = arena_cstr(arena, str_from(callback->key)),
        .sequence = message->sequence,
        .received_us = callback->received_at_us,
        .body = arena_str(arena, body)};
}

static bool on_callback(void *ctx, const BusMessage *message)
{
    Search *search = ctx;
    const CallbackQuery *query = search->query;
    Error ignored;
    Str body;
    arena_reset(search->scratch);
    const Stentor__V1__InboundCallback *callback = (const void *)event_unpack(
        &stentor__v1__inbound_callback__descriptor, message->payload, search->scratch, &ignored);
    if (callback == NULL || callback->meta == NULL) {
        search->found->unreadable++;
        return true;
    }
    bool refused = callback->rejected[0] != '\0'; // without a body: `stentor inbound rejected`
    if (refused || strcmp(callback->meta->tenant, query->tenant) != 0) {
        return true;
    }
    if (!open_body(search, callback, &body)) {
        search->found->unreadable++;
        return true;
    }
    if (query->notification_id != NULL && !text_search(body, str_from(query->notification_id))) {
        return true;
    }
    if (search->found->count == query->limit) {
        search->found->more = true;
        return false;
    }
    keep(search, message, callback, body);
    return true;
}

bool callback_read(ContentSession *s, const CallbackQuery *query, Callbacks *ret, Error *err)
{
    *ret = (Callbacks){.items = arena_array(s->arena, query->limit, sizeof(Callback))};
    Search search = {
        s, query, data_key_for_tenant(s->master, str_from(query->tenant)), arena_new(0), ret};
    ContentWalk walk = {"INBOUND",    NULL,        query->from_us > 0 ? query->from_us : 1,
                        query->to_us, on_callback, &search};
    bool ok = content_walk(s, &walk, err);
    data_key_free(search.key);
    arena_free(search.scratch);
    return ok;
}
