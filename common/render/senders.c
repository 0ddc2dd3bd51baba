// SPDX-License-Identifier: Apache-2.0
#include "common/render/senders.h"

#include <stdlib.h>

#include "common/base/id.h"
#include "common/base/map.h"
#include "common/codec/event.h"
#include "common/render/content.h"
#include "stentor/v1/config.pb-c.h"

struct Senders {
    Map *by_tenant;
    Sender none;
};

static void free_sender(void *value)
{
    Sender *sender = value;
    free(sender->address);
    free(sender->name);
    free(sender->reply_to);
    free(sender->locale);
    free(sender->zone);
    json_decref(sender->theme);
    json_decref(sender->names);
    free(sender->physical_address);
    free(sender);
}

Senders *senders_new(void)
{
    static char empty[] = "";
    Senders *senders = xcalloc(1, sizeof *senders);
    senders->by_tenant = map_new(free_sender);
    senders->none = (Sender){
        .address = empty,
        .name = empty,
        .reply_to = empty,
        .locale = empty,
        .zone = empty,
        .physical_address = empty,
    };
    senders->none.theme = json_object();
    senders->none.names = json_object();
    return senders;
}

void senders_free(Senders *senders)
{
    if (senders != NULL) {
        map_free(senders->by_tenant);
        json_decref(senders->none.theme);
        json_decref(senders->none.names);
        free(senders);
    }
}

static bool check_tenant(const Stentor__V1__Tenant *entry, Str tenant, Error *err)
{
    if (!id_is_tenant(tenant) || !str_eq(tenant, str_from(entry->tenant))) {
        return error_set(
            err, ERROR_PERMANENT, "the entry's tenant '%.40s' is not the subject's '%.*s'",
            entry->tenant, STR_ARG(str_slice(tenant, 0, 40)));
    }
    if (str_has_control(str_from(entry->sender_address)) ||
        str_has_control(str_from(entry->sender_name)) ||
        str_has_control(str_from(entry->reply_to))) {
        return error_set(
            err, ERROR_PERMANENT,
            "sender_address, sender_name or reply_to of tenant '%.40s' has a line break "
            "or another control character",
            entry->tenant);
    }
    return true;
}

bool senders_put(Senders *senders, Str tenant, Str payload, Error *err)
{
    if (payload.len == 0) {
        (void)map_remove(senders->by_tenant, tenant);
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__Tenant *entry = (const Stentor__V1__Tenant *)event_unpack(
        &stentor__v1__tenant__descriptor, payload, arena, err);
    bool ok = entry != NULL && check_tenant(entry, tenant, err);
    if (ok) {
        Sender *sender = xcalloc(1, sizeof *sender);
        sender->address = xstrdup(entry->sender_address);
        sender->name = xstrdup(entry->sender_name);
        sender->reply_to = xstrdup(entry->reply_to);
        sender->locale = xstrdup(entry->default_locale);
        sender->zone = xstrdup(entry->time_zone);
        sender->theme = tenant_theme(entry);
        sender->names = tenant_names(entry);
        sender->physical_address = xstrdup(entry->physical_address);
        sender->address_in_every =
            entry->address_footer == STENTOR__V1__ADDRESS_FOOTER__ADDRESS_FOOTER_EVERY;
        sender->suspended = entry->suspended;
        map_put(senders->by_tenant, tenant, sender);
    }
    arena_free(arena);
    return ok;
}

void senders_unreadable(Senders *senders, Str tenant)
{
    if (map_get(senders->by_tenant, tenant) == NULL) {
        Sender *sender = xcalloc(1, sizeof *sender);
        sender->address = xstrdup("");
        sender->name = xstrdup("");
        sender->reply_to = xstrdup("");
        sender->locale = xstrdup("");
        sender->zone = xstrdup("");
        sender->theme = json_object();
        sender->names = json_object();
        sender->physical_address = xstrdup("");
        sender->suspended = true;
        map_put(senders->by_tenant, tenant, sender);
    }
}

const Sender *senders_get(const Senders *senders, Str tenant)
{
    const Sender *sender = map_get(senders->by_tenant, tenant);
    return sender != NULL ? sender : &senders->none;
}
