// SPDX-License-Identifier: Apache-2.0
#include "common/codec/event_key.h"

#include <string.h>

#include "common/codec/master_key_internal.h"

enum { LABEL_LEN = 5, KIND_AT = 5, ID_AT = 6, TENANT_AT = 10, TENANT_LEN = KEY_SUBJECT_LEN - 10 };

static EventKeyName make_name(WrapperKind kind, const uint8_t *id, Str tenant)
{
    EventKeyName name;
    uint8_t hash[SHA256_LEN];
    sha256(tenant, hash);
    memcpy(name.bytes, "event", LABEL_LEN);
    name.bytes[KIND_AT] = (uint8_t)kind;
    memcpy(name.bytes + ID_AT, id, KEY_ID_LEN);
    memcpy(name.bytes + TENANT_AT, hash, TENANT_LEN);
    return name;
}

EventKeyName event_key_current(const MasterKey *master, Str tenant)
{
    const EpochInfo *epoch = master_epoch_current(master);
    return epoch != NULL
               ? make_name(WRAPPED_BY_EPOCH, epoch->id, tenant)
               : make_name(
                     WRAPPED_BY_MASTER, master_key_info(master, KEY_MASTER, 0)->check, tenant);
}

bool event_key_named(Str key_subject, Str tenant, EventKeyName *ret)
{
    if (key_subject.len != KEY_SUBJECT_LEN) {
        return false;
    }
    const uint8_t *bytes = (const uint8_t *)key_subject.ptr;
    *ret = make_name((WrapperKind)bytes[KIND_AT], bytes + ID_AT, tenant);
    bool known = bytes[KIND_AT] == WRAPPED_BY_EPOCH || bytes[KIND_AT] == WRAPPED_BY_MASTER;
    return known && memcmp(ret->bytes, bytes, KEY_SUBJECT_LEN) == 0;
}

bool event_key_is_missing(const MasterKey *master, const EventKeyName *name)
{
    return name->bytes[KIND_AT] == WRAPPED_BY_EPOCH &&
           master_epoch_find(master, name->bytes + ID_AT) == NULL;
}

static bool fail_missing(const EventKeyName *name, Error *err)
{
    char id[KEY_ID_SIZE];
    key_id_print(name->bytes + ID_AT, id);
    return name->bytes[KIND_AT] == WRAPPED_BY_EPOCH
               ? error_set(
                     err, ERROR_PERMANENT,
                     "the event is sealed under the epoch key %s, which is not in "
                     "STENTOR_EPOCH_KEYS_DIR: destroyed two weeks after the event, or lost",
                     id)
               : error_set(
                     err, ERROR_PERMANENT,
                     "the event is sealed under the master key %s, which the master key file does "
                     "not hold",
                     id);
}

// info: a label and the SHA-256 of the tenant, so its length has no limit.
static bool expand(
    const MasterKey *master, Str tenant, const EventKeyName *name, uint8_t out[MASTER_KEY_LEN])
{
    static const char label[] = "stentor event key|";
    enum { INFO_LABEL_LEN = sizeof label - 1 };
    uint8_t info[INFO_LABEL_LEN + SHA256_LEN];
    memcpy(info, label, INFO_LABEL_LEN);
    sha256(tenant, info + INFO_LABEL_LEN);
    if (name->bytes[KIND_AT] == WRAPPED_BY_EPOCH) {
        return epoch_key_expand(master, name->bytes + ID_AT, str_of(info, sizeof info), out);
    }
    int index = master_key_index(master, name->bytes + ID_AT);
    if (index >= 0) {
        master_key_expand(master, (size_t)index, str_of(info, sizeof info), out);
    }
    return index >= 0;
}

DataKey *event_key_derive(const MasterKey *master, Str tenant, const EventKeyName *name, Error *err)
{
    uint8_t key[MASTER_KEY_LEN];
    if (!expand(master, tenant, name, key)) {
        (void)fail_missing(name, err);
        return NULL;
    }
    return seal_key_new(key, name->bytes, 0);
}
