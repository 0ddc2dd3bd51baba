// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/push/bearers.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/codec/hash.h"

#define AGAIN_US ((int64_t)BEARER_AGAIN_S * 1000000)

typedef struct Kept {
    uint8_t secret[SHA256_LEN]; // what it was made of
    int64_t refresh_us, expires_us;
    int64_t asked_us; // when a caller was asked for another one; 0: none is on its way
    size_t len;       // 0: none
    char text[BEARER_TEXT_MAX];
} Kept;

struct Bearers {
    Map *kept;
};

static void free_kept(void *value)
{
    OPENSSL_clear_free(value, sizeof(Kept));
}

Bearers *bearers_new(void)
{
    Bearers *bearers = xcalloc(1, sizeof *bearers);
    bearers->kept = map_new(free_kept);
    return bearers;
}

void bearers_free(Bearers *bearers)
{
    if (bearers != NULL) {
        map_free(bearers->kept);
        free(bearers);
    }
}

// Room for another one: that which expires first goes.
static void make_room(Bearers *bearers)
{
    Str key, first = STR_EMPTY;
    void *value;
    int64_t expires_us = INT64_MAX;
    if (map_count(bearers->kept) < BEARERS_MAX) {
        return;
    }
    for (size_t i = 0; map_next(bearers->kept, &i, &key, &value);) {
        if (((Kept *)value)->expires_us < expires_us) {
            expires_us = ((Kept *)value)->expires_us;
            first = key;
        }
    }
    map_remove(bearers->kept, first);
}

// Of this secret: one of another is forgotten.
static Kept *kept_of(Bearers *bearers, Str key, Str secret)
{
    uint8_t hash[SHA256_LEN];
    Kept *kept = map_get(bearers->kept, key);
    sha256(secret, hash);
    if (kept == NULL) {
        make_room(bearers);
        kept = OPENSSL_zalloc(sizeof *kept);
        if (kept == NULL) {
            abort(); // memory is out
        }
        map_put(bearers->kept, key, kept);
    }
    if (memcmp(kept->secret, hash, sizeof hash) != 0) {
        OPENSSL_cleanse(kept, sizeof *kept);
        memcpy(kept->secret, hash, sizeof hash);
    }
    return kept;
}

Str bearers_get(Bearers *bearers, Str key, Str secret, int64_t now_us, bool *ret_due)
{
    Kept *kept = kept_of(bearers, key, secret);
    bool old = kept->len == 0 || now_us >= kept->refresh_us;
    bool asked = kept->asked_us != 0 && now_us - kept->asked_us < AGAIN_US;
    *ret_due = old && !asked;
    if (*ret_due) {
        kept->asked_us = now_us;
    }
    return kept->len > 0 && now_us < kept->expires_us ? str_of(kept->text, kept->len) : STR_EMPTY;
}

bool bearers_put(Bearers *bearers, Str key, Str secret, const VendorBearer *bearer, int64_t now_us)
{
    if (bearer->text.len > BEARER_TEXT_MAX) {
        bearers_failed(bearers, key, secret, now_us);
        return false;
    }
    Kept *kept = kept_of(bearers, key, secret);
    memcpy(kept->text, bearer->text.ptr, bearer->text.len);
    kept->len = bearer->text.len;
    kept->refresh_us = bearer->refresh_us;
    kept->expires_us = bearer->expires_us;
    kept->asked_us = 0;
    return true;
}

// Of another secret by now: that one is asked for at its next use.
void bearers_failed(Bearers *bearers, Str key, Str secret, int64_t now_us)
{
    kept_of(bearers, key, secret)->asked_us = now_us;
}

void bearers_drop(Bearers *bearers, Str key, Str text)
{
    Kept *kept = map_get(bearers->kept, key);
    if (kept != NULL && str_eq(str_of(kept->text, kept->len), text)) {
        kept->len = 0;
        kept->asked_us = 0;
    }
}
