// SPDX-License-Identifier: Apache-2.0
#include "common/events/reply_content.h"

#include <string.h>

#include "common/codec/event.h"

const Stentor__V1__ReplyContent *reply_content_open(
    MasterKey *master, Str tenant, const Stentor__V1__InboundReply *reply, Arena *arena)
{
    Str packed;
    DataKey *key = data_key_for_tenant(master, tenant);
    bool opened = reply->content != NULL &&
                  unseal(key, tenant, STR_EMPTY, "reply", reply->content, arena, &packed, NULL);
    data_key_free(key);
    return opened ? (const Stentor__V1__ReplyContent *)event_unpack(
                        &stentor__v1__reply_content__descriptor, packed, arena, NULL)
                  : NULL;
}

void reply_hashes(
    MasterKey *master, const Stentor__V1__InboundReply *reply, Arena *arena, ReplyHashes *ret)
{
    Str tenant = str_from(reply->meta->tenant);
    const Stentor__V1__ReplyContent *content = reply_content_open(master, tenant, reply, arena);
    HashKeys keys = master_hash_keys(master);
    *ret = (ReplyHashes){0};
    if (content == NULL || content->address[0] == '\0') { // by the one that the event has
        memcpy(ret->hashes[ret->count++], reply->address_hash.data, ADDRESS_HASH_LEN);
        return;
    }
    for (size_t i = 0; i < keys.count; i++) {
        address_hash(
            keys.keys[i], tenant, (Channel)reply->channel, str_from(content->address),
            ret->hashes[ret->count++]);
    }
}
