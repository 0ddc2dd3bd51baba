// SPDX-License-Identifier: Apache-2.0
#include "common/config/link_revocations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"

enum { NAME_SIZE = 160 };

// "<tenant>/all", "<tenant>/<notification or recipient id>", "<tenant>/<hex of LINK_WHO_LEN bytes>"
// -> the time before which links are revoked.
struct LinkRevocations {
    Map *before;
};

LinkRevocations *link_revocations_new(void)
{
    LinkRevocations *revocations = xcalloc(1, sizeof *revocations);
    revocations->before = map_new(free);
    return revocations;
}

void link_revocations_free(LinkRevocations *revocations)
{
    if (revocations != NULL) {
        map_free(revocations->before);
        free(revocations);
    }
}

static Str name_of(char out[NAME_SIZE], Str tenant, Str what)
{
    int len = snprintf(out, NAME_SIZE, STR_FMT "/" STR_FMT, STR_ARG(tenant), STR_ARG(what));
    return len > 0 && len < NAME_SIZE ? str_of(out, (size_t)len) : STR_EMPTY;
}

bool link_revocation_key(
    char out[LINK_REVOCATION_KEY_SIZE], const Stentor__V1__LinkRevocation *entry)
{
    bool notification = entry->notification_id[0] != '\0';
    bool recipient = entry->recipient_id[0] != '\0';
    bool address = entry->address_hash.len > 0;
    if (notification + recipient + address > 1) {
        return false;
    }
    if (notification || recipient) {
        const char *id = notification ? entry->notification_id : entry->recipient_id;
        const char *prefix = notification ? "ntf_" : "rcp_";
        snprintf(out, LINK_REVOCATION_KEY_SIZE, "%.3s.%.64s", prefix, id);
        return id_parse(str_from(id), prefix, NULL);
    }
    if (address) {
        memcpy(out, "adr.", 4);
        if (entry->address_hash.len == ADDRESS_HASH_LEN) {
            hex_encode(entry->address_hash.data, ADDRESS_HASH_LEN, out + 4);
        }
        return entry->address_hash.len == ADDRESS_HASH_LEN;
    }
    memcpy(out, "all", 4);
    return true;
}

bool link_revocations_put(
    LinkRevocations *revocations, Str tenant, Str key, Str payload, Error *err)
{
    char own[LINK_REVOCATION_KEY_SIZE];
    char text[NAME_SIZE];
    bool all = str_eq(key, STR("all"));
    Str what = all ? key : str_slice(key, 4, key.len);
    what = str_starts(key, STR("adr.")) ? str_slice(what, 0, 2 * (size_t)LINK_WHO_LEN) : what;
    Str name = name_of(text, tenant, what);
    if (payload.len == 0) {
        (void)map_remove(revocations->before, name);
        return true;
    }
    Arena *arena = arena_new(0);
    const Stentor__V1__LinkRevocation *entry = (const Stentor__V1__LinkRevocation *)event_unpack(
        &stentor__v1__link_revocation__descriptor, payload, arena, err);
    bool ok = entry != NULL;
    if (ok && (!link_revocation_key(own, entry) || !str_eq(str_from(own), key) ||
               !str_eq(str_from(entry->tenant), tenant) || name.len == 0)) {
        ok = error_set(err, ERROR_PERMANENT, "the entry is not the revocation of its subject");
    }
    if (ok) {
        int64_t *before = xmalloc(sizeof *before);
        *before = entry->before_us;
        map_put(revocations->before, name, before);
    }
    arena_free(arena);
    return ok;
}

static bool is_before(const LinkRevocations *revocations, const LinkOwner *owner, Str what)
{
    char text[NAME_SIZE];
    if (what.len == 0) {
        return false;
    }
    const int64_t *before = map_get(revocations->before, name_of(text, owner->tenant, what));
    return before != NULL && (*before == 0 || owner->issued_at_us < *before);
}

bool link_is_revoked(const LinkRevocations *revocations, const LinkOwner *owner)
{
    char hex[2 * LINK_WHO_LEN + 1] = "";
    if (map_count(revocations->before) == 0) {
        return false;
    }
    if (owner->who.len >= LINK_WHO_LEN) {
        hex_encode(owner->who.ptr, LINK_WHO_LEN, hex);
    }
    return is_before(revocations, owner, STR("all")) ||
           is_before(revocations, owner, owner->notification_id) ||
           is_before(revocations, owner, owner->recipient_id) ||
           is_before(revocations, owner, str_from(hex));
}

bool link_revocation_event(
    const Stentor__V1__LinkRevocation *entry, Arena *arena, BusOut *ret, Error *err)
{
    char key[LINK_REVOCATION_KEY_SIZE];
    if (!id_is_tenant(str_from(entry->tenant))) {
        return error_set(err, ERROR_PERMANENT, "revocation: 'tenant' is not a tenant id");
    }
    if (!link_revocation_key(key, entry)) {
        return error_set(
            err, ERROR_PERMANENT,
            "revocation: one of 'notification_id', 'recipient_id' and 'address_hash', or none");
    }
    if (entry->before_us < 0) {
        return error_set(err, ERROR_PERMANENT, "revocation: 'before' is negative");
    }
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    char *event_id = arena_alloc(arena, EVENT_ID_SIZE);
    subject_config(subject, LINK_REVOCATION_KIND, str_from(entry->tenant), str_from(key));
    const char *what =
        arena_printf(arena, "%lld/%.64s", (long long)entry->before_us, entry->revoked_by);
    event_id_derive("revocation", str_from(subject), str_from(what), event_id);
    *ret = (BusOut){.subject = subject, .event_id = str_from(event_id)};
    return event_pack(&entry->base, arena, &ret->payload, err);
}
