// SPDX-License-Identifier: Apache-2.0
#include "common/config/webhook_subscription.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/model/enums.h"

#define SECRET_FIELD "secret"
#define SECRET_PREFIX "whsec_"
#define NOTIFICATION "notification."

static_assert(
    sizeof SECRET_PREFIX + (size_t)4 * ((WEBHOOK_SECRET_LEN + 2) / 3) <= WEBHOOK_SECRET_SIZE,
    "a secret's text does not fit");

WebhookSubscription *webhook_subscription_read(Str tenant, Str payload, Arena *arena, Error *err)
{
    WebhookSubscription *entry = (WebhookSubscription *)event_unpack(
        &stentor__v1__webhook_subscription__descriptor, payload, arena, err);
    if (entry == NULL) {
        return NULL;
    }
    if (!id_parse(str_from(entry->id), WEBHOOK_ID_PREFIX, NULL) || entry->target_url[0] == '\0') {
        (void)error_set(err, ERROR_PERMANENT, "'id' or 'target_url' is empty or no such");
        return NULL;
    }
    if (!str_eq(str_from(entry->tenant), tenant)) {
        (void)error_set(err, ERROR_PERMANENT, "the entry's tenant is not the subject's");
        return NULL;
    }
    return entry;
}

bool webhook_is_active(const WebhookSubscription *entry)
{
    return entry->state == STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_ACTIVE ||
           entry->state == STENTOR__V1__WEBHOOK_STATE__WEBHOOK_STATE_UNSPECIFIED;
}

bool webhook_is_filter(Str filter)
{
    Status ignored;
    Str name = STR(NOTIFICATION);
    return str_starts(filter, name) &&
           (str_eq(filter, STR(NOTIFICATION "*")) ||
            status_from_name(str_slice(filter, name.len, filter.len), &ignored));
}

// ---- secrets ----

static void make_text(char ret[WEBHOOK_SECRET_SIZE])
{
    uint8_t bytes[WEBHOOK_SECRET_LEN];
    random_bytes(bytes, sizeof bytes);
    memcpy(ret, SECRET_PREFIX, sizeof SECRET_PREFIX);
    (void)EVP_EncodeBlock((unsigned char *)ret + strlen(SECRET_PREFIX), bytes, sizeof bytes);
    OPENSSL_cleanse(bytes, sizeof bytes);
}

static Stentor__V1__WebhookSecret *make_secret(
    const WebhookSubscription *entry, MasterKey *master, int64_t now_us, Arena *arena,
    char ret[WEBHOOK_SECRET_SIZE])
{
    Str tenant = str_from(entry->tenant);
    Stentor__V1__WebhookSecret *secret = arena_alloc(arena, sizeof *secret);
    stentor__v1__webhook_secret__init(secret);
    make_text(ret);
    DataKey *key = data_key_for_tenant(master, tenant);
    secret->secret = seal(key, tenant, str_from(entry->id), SECRET_FIELD, str_from(ret), arena);
    secret->created_at_us = now_us;
    data_key_free(key);
    return secret;
}

void webhook_secret_add(
    WebhookSubscription *entry, MasterKey *master, int64_t now_us, int64_t overlap_us, Arena *arena,
    char ret[WEBHOOK_SECRET_SIZE])
{
    Stentor__V1__WebhookSecret *before =
        entry->n_secrets > 0 && webhook_secret_signs(entry->secrets[0], now_us) ? entry->secrets[0]
                                                                                : NULL;
    entry->secrets = arena_array(arena, WEBHOOK_SECRETS_MAX, sizeof *entry->secrets);
    entry->secrets[0] = make_secret(entry, master, now_us, arena, ret);
    entry->n_secrets = 1;
    if (before != NULL && overlap_us > 0) {
        before->not_after_us = now_us + overlap_us;
        entry->secrets[entry->n_secrets++] = before;
    }
}

void webhook_secrets_seal_again(WebhookSubscription *entry, MasterKey *master, Arena *arena)
{
    Str tenant = str_from(entry->tenant);
    DataKey *key = data_key_for_tenant(master, tenant);
    for (size_t i = 0; i < entry->n_secrets; i++) {
        Str text = STR_EMPTY;
        if (webhook_secret_open(key, entry, entry->secrets[i], arena, &text, NULL)) {
            entry->secrets[i]->secret =
                seal(key, tenant, str_from(entry->id), SECRET_FIELD, text, arena);
        }
    }
    data_key_free(key);
}

bool webhook_secret_signs(const Stentor__V1__WebhookSecret *secret, int64_t now_us)
{
    return secret->not_after_us == 0 || now_us < secret->not_after_us;
}

bool webhook_secret_open(
    DataKey *key, const WebhookSubscription *entry, const Stentor__V1__WebhookSecret *secret,
    Arena *arena, Str *ret_text, Error *err)
{
    if (secret->secret == NULL) {
        return error_set(err, ERROR_PERMANENT, "a secret is empty");
    }
    return unseal(
        key, str_from(entry->tenant), str_from(entry->id), SECRET_FIELD, secret->secret, arena,
        ret_text, err);
}
