// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/dress/copies.h"

#include "common/codec/hash.h"

// Under every hash key: an entry may be of an older one.
static bool is_suppressed(const CopiesWant *want, Str address)
{
    SuppressionReason found = SUPPRESSION_NONE;
    Str tenant = str_from(want->rendered->meta->tenant);
    if (suppressions_count(want->known) == 0) {
        return false;
    }
    for (size_t i = 0; i < want->hash_keys->count && found == SUPPRESSION_NONE; i++) {
        uint8_t own[ADDRESS_HASH_LEN];
        uint8_t platform[ADDRESS_HASH_LEN];
        address_hash(want->hash_keys->keys[i], tenant, CHANNEL_EMAIL, address, own);
        address_hash(want->hash_keys->keys[i], STR("platform"), CHANNEL_EMAIL, address, platform);
        found = suppressions_classify(
            want->known, tenant, CHANNEL_EMAIL, (Category)want->rendered->category, own, platform,
            want->now_us);
    }
    return found != SUPPRESSION_NONE;
}

static bool may_get(const CopiesWant *want, Str address, bool *ret_utf8)
{
    return mail_address_check("cc", address, ret_utf8, NULL) && !is_suppressed(want, address);
}

static void add(
    const CopiesWant *want, Stentor__V1__Address *const *list, size_t count, bool in_header,
    Copies *copies)
{
    for (size_t i = 0; i < count && copies->count < MAIL_COPIES_MAX; i++) {
        bool utf8 = false;
        if (!may_get(want, str_from(list[i]->address), &utf8)) {
            continue;
        }
        Str address = arena_str(want->arena, str_from(list[i]->address));
        copies->envelope[copies->count++] = address;
        copies->utf8 = copies->utf8 || utf8;
        if (in_header) {
            copies->cc[copies->cc_count++] =
                (MimeMailbox){arena_str(want->arena, str_from(list[i]->name)), address};
        }
    }
}

const Copies *copies_choose(const CopiesWant *want)
{
    static const Copies none;
    if (want->content->n_cc + want->content->n_bcc == 0) {
        return &none;
    }
    Copies *copies = arena_zalloc(want->arena, sizeof *copies);
    add(want, want->content->cc, want->content->n_cc, true, copies);
    add(want, want->content->bcc, want->content->n_bcc, false, copies);
    return copies;
}
