// SPDX-License-Identifier: Apache-2.0
#include "common/bus/jetstream/hop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

typedef struct Items {
    HopItem *at;
    size_t count, cap;
} Items;

struct Hop {
    uv_mutex_t mutex;
    uv_async_t *async; // NULL once shut
    Items filling, draining;
    int refs;
    unsigned breaks;
    size_t served_bytes; // in `filling`
    size_t heard;        // the same
    char permission[200];
};

Hop *hop_new(uv_async_t *async)
{
    Hop *hop = xcalloc(1, sizeof *hop);
    if (uv_mutex_init(&hop->mutex) != 0) {
        abort();
    }
    hop->async = async;
    hop->refs = 1;
    return hop;
}

Hop *hop_ref(Hop *hop)
{
    uv_mutex_lock(&hop->mutex);
    hop->refs++;
    uv_mutex_unlock(&hop->mutex);
    return hop;
}

void hop_unref(Hop *hop)
{
    uv_mutex_lock(&hop->mutex);
    int refs = --hop->refs;
    uv_mutex_unlock(&hop->mutex);
    if (refs > 0) {
        return;
    }
    for (size_t i = 0; i < hop->filling.count; i++) {
        natsMsg_Destroy(hop->filling.at[i].message);
    }
    free(hop->filling.at);
    free(hop->draining.at); // its messages were handed on
    uv_mutex_destroy(&hop->mutex);
    free(hop);
}

static bool append(Items *items, HopItem item)
{
    if (items->count == items->cap) {
        if (items->cap >= HOP_ITEMS_MAX) {
            return false;
        }
        items->cap = items->cap == 0 ? 256 : 2 * items->cap;
        items->at = xrealloc(items->at, items->cap * sizeof *items->at);
    }
    items->at[items->count++] = item;
    return true;
}

// More than the loop can take is dropped unanswered: its publisher gets no answer and repeats it.
static bool has_room(Hop *hop, const HopItem *item)
{
    if (item->kind == HOP_HEARD) {
        return hop->heard++ < HOP_HEARD_MAX;
    }
    if (item->kind != HOP_SERVED) {
        return true;
    }
    hop->served_bytes += (size_t)natsMsg_GetDataLength(item->message) + 256;
    return hop->served_bytes <= HOP_SERVED_BYTES_MAX;
}

void hop_push(Hop *hop, HopItem item)
{
    uv_mutex_lock(&hop->mutex);
    hop->breaks +=
        item.kind == HOP_DISCONNECTED || item.kind == HOP_RECONNECTED || item.kind == HOP_CLOSED;
    item.breaks = hop->breaks;
    bool taken = hop->async != NULL && has_room(hop, &item) && append(&hop->filling, item);
    if (taken && hop->filling.count == 1) {
        uv_async_send(hop->async);
    }
    uv_mutex_unlock(&hop->mutex);
    if (!taken) {
        natsMsg_Destroy(item.message);
    }
}

HopItem *hop_take(Hop *hop, size_t *ret_count)
{
    uv_mutex_lock(&hop->mutex);
    Items taken = hop->filling;
    hop->filling = hop->draining;
    hop->filling.count = 0;
    hop->served_bytes = 0;
    hop->heard = 0;
    hop->draining = taken;
    uv_mutex_unlock(&hop->mutex);
    *ret_count = taken.count;
    return taken.at;
}

unsigned hop_breaks(Hop *hop)
{
    uv_mutex_lock(&hop->mutex);
    unsigned breaks = hop->breaks;
    uv_mutex_unlock(&hop->mutex);
    return breaks;
}

void hop_permission_error(Hop *hop, const char *text)
{
    uv_mutex_lock(&hop->mutex);
    if (hop->permission[0] == '\0') {
        snprintf(hop->permission, sizeof hop->permission, "%s", text);
    }
    uv_mutex_unlock(&hop->mutex);
}

bool hop_get_permission_error(Hop *hop, char *out, size_t size)
{
    uv_mutex_lock(&hop->mutex);
    snprintf(out, size, "%s", hop->permission);
    uv_mutex_unlock(&hop->mutex);
    return out[0] != '\0';
}

void hop_shut(Hop *hop)
{
    uv_mutex_lock(&hop->mutex);
    hop->async = NULL;
    uv_mutex_unlock(&hop->mutex);
}
