// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/digest.h"

#include <string.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/events/meta.h"
#include "common/events/sealed.h"
#include "common/model/retention/retention.h"

typedef Stentor__V1__NotificationRequest Request;
typedef Stentor__V1__DigestItem Item;
typedef Stentor__V1__Sealed Sealed;

enum { ENTROPY_LEN = 10 };

bool digest_wanted(const DigestWindow *window)
{
    return window->verdict.len == 0 && window->live > 1 && window->newest != NULL;
}

// The id's time is the window's flush, so ids sort by the time of sending; or the freeze if the
// window ended early, because history rejects ids from the future.
static int64_t time_of(const DigestWindow *window)
{
    bool early = window->frozen_at_us < window->flush_at_us;
    return early ? window->frozen_at_us : window->flush_at_us;
}

static void derive_ids(const DigestWindow *window, Digest *digest, Arena *arena)
{
    uint8_t hash[SHA256_LEN];
    Str cause = str_from(arena_printf(
        arena, "digest|" STR_FMT "|" STR_FMT, STR_ARG(window->tenant), STR_ARG(window->window_id)));
    sha256(cause, hash);
    uint8_t entropy[ENTROPY_LEN];
    memcpy(entropy, hash, sizeof entropy);
    id_derived("ntf_", time_of(window), entropy, digest->id);
    Str newest = str_from(window->newest->meta->notification_id);
    retention_id_set_code(digest->id, retention_class_code(retention_class_of_id(newest)));
    event_id_derive("request", str_from(digest->id), STR_EMPTY, digest->event_id);
    event_id_derive("status", str_from(digest->id), STR("queued/0"), digest->status_id);
}

// ---- the items ----

// An item sealed under an older key of the recipient is unreadable: it is counted, not listed.
static bool is_readable(const Request *item, const Request *newest)
{
    return item->variables == NULL || sealed_same_key(item->variables, newest->address);
}

static void list_item(const Request *from, Request *digest, Arena *arena)
{
    Item *item = arena_alloc(arena, sizeof *item);
    stentor__v1__digest_item__init(item);
    item->notification_id = from->meta->notification_id;
    item->template_ = from->template_;
    item->template_version = from->template_version;
    item->variables = from->variables;
    item->accepted_at_us = from->accepted_at_us;
    digest->digest_items[digest->n_digest_items++] = item;
}

// The renderer needs at least one item: then it is the newest.
static void list_items(const DigestWindow *window, Request *digest, Arena *arena)
{
    digest->digest_items = arena_array(arena, window->item_count + 1, sizeof(Item *));
    for (size_t i = 0; i < window->item_count; i++) {
        if (is_readable(window->items[i], window->newest)) {
            list_item(window->items[i], digest, arena);
        }
    }
    if (digest->n_digest_items == 0) {
        list_item(window->newest, digest, arena);
    }
}

// ---- the digest ----

static bool seal_address(
    const DigestWindow *window, DataKey *key, const char *id, Arena *arena, Sealed **ret,
    Error *err)
{
    const Request *newest = window->newest;
    Str plain;
    if (!unseal(
            key, window->tenant, str_from(newest->meta->notification_id), "address",
            newest->address, arena, &plain, err)) {
        return error_wrap(err, "address of '%s'", newest->meta->notification_id);
    }
    *ret = seal(key, window->tenant, str_from(id), "address", plain, arena);
    return true;
}

static Stentor__V1__Meta make_meta(const DigestWindow *window, const Digest *digest, Arena *arena)
{
    MetaSpec head = {
        .event_id = digest->event_id,
        .tenant = arena_cstr(arena, window->tenant),
        .notification_id = digest->id,
        .causation_id = window->newest->meta->event_id,
        .at_us = time_of(window),
    };
    return meta_make(&head);
}

static void fill_request(const DigestWindow *window, Arena *arena, Request *request)
{
    const Request *newest = window->newest;
    stentor__v1__notification_request__init(request);
    request->channel = newest->channel;
    request->category = newest->category;
    request->priority = newest->priority;
    request->template_ = arena_cstr(arena, window->template_key);
    request->template_version = arena_cstr(arena, window->template_version);
    request->locale =
        newest->locale[0] != '\0' ? newest->locale : arena_cstr(arena, window->locale);
    request->time_zone = newest->time_zone;
    request->recipient_id = newest->recipient_id;
    request->address_hash = newest->address_hash;
    request->accepted_at_us = time_of(window);
    request->digest_window_id = arena_cstr(arena, window->window_id);
    request->digest_total = window->live > UINT32_MAX ? UINT32_MAX : (uint32_t)window->live;
}

static bool pack(const DigestWindow *window, DataKey *key, Arena *arena, Digest *digest, Error *err)
{
    Stentor__V1__Meta meta = make_meta(window, digest, arena);
    Request request;
    fill_request(window, arena, &request);
    request.meta = &meta;
    subject_request(digest->subject, (Priority)request.priority, window->tenant);
    if (!event_pack(&request.base, arena, &digest->head, err) ||
        !seal_address(window, key, digest->id, arena, &request.address, err)) {
        return false;
    }
    list_items(window, &request, arena);
    return event_pack(&request.base, arena, &digest->payload, err);
}

bool digest_build(
    const DigestWindow *window, DataKey *key, Arena *arena, Digest *ret_digest, Error *err)
{
    Digest digest = {.tenant = window->tenant, .window_id = window->window_id};
    if (digest_wanted(window) && key != NULL) {
        derive_ids(window, &digest, arena);
        if (!pack(window, key, arena, &digest, err)) {
            return false;
        }
    }
    *ret_digest = digest;
    return true;
}
