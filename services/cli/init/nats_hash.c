// SPDX-License-Identifier: Apache-2.0
#include "services/cli/init/nats_hash.h"

#include <assert.h>
#include <crypt.h>
#include <stdlib.h>
#include <string.h>

#include "common/bus/topology/nats_rights.h"
#include "common/codec/hash.h"

// The lowest cost that there is: about 1 ms for each connection that nats-server checks. init makes
// passwords of 192 random bits, which no cost makes harder to guess (DECISIONS.md).
enum { COST = 4, SALT_BYTES = 16, PASSWORD_MAX = 72, SETTING_SIZE = 64 };

// Of the services' passwords, which no other user of the server knows: a salt that were made of the
// user's own password would be a cheap hash of it.
static void derive_key(const Accounts *accounts, Arena *arena, uint8_t ret[SHA256_LEN])
{
    size_t count;
    Buf all;
    (void)nats_rights(&count);
    buf_init(&all, (size_t)1024 * 1024);
    for (size_t i = 0; i < count; i++) {
        buf_str(&all, accounts->passwords[i]);
        buf_char(&all, '\n');
    }
    sha256(arena_str(arena, buf_view(&all)), ret);
    buf_done(&all);
}

static Str hash_one(
    const uint8_t key[SHA256_LEN], Str user, Str password, struct crypt_data *work, Arena *arena)
{
    uint8_t sum[SHA256_LEN];
    char salt[SALT_BYTES], setting[SETTING_SIZE];
    if (password.len > PASSWORD_MAX) {
        return password;
    }
    hmac_sha256(str_of(key, SHA256_LEN), user, sum);
    memcpy(salt, sum, sizeof salt);
    char *made = crypt_gensalt_rn("$2a$", COST, salt, sizeof salt, setting, sizeof setting);
    assert(made != NULL); // only for a prefix that the library lacks
    const char *hash = crypt_rn(arena_cstr(arena, password), setting, work, sizeof *work);
    assert(hash != NULL && hash[0] == '$');
    return str_from(arena_cstr(arena, str_from(hash)));
}

void nats_hash_passwords(Accounts *accounts, Arena *arena)
{
    uint8_t key[SHA256_LEN];
    size_t count;
    const NatsRights *rights = nats_rights(&count);
    struct crypt_data *work = xcalloc(1, sizeof *work);
    Str *hashes = arena_array(arena, count, sizeof *hashes);
    derive_key(accounts, arena, key);
    for (size_t i = 0; i < count; i++) {
        hashes[i] = hash_one(key, str_from(rights[i].service), accounts->passwords[i], work, arena);
    }
    for (size_t i = 0; i < accounts->count; i++) {
        Account *account = &accounts->at[i];
        account->password = hash_one(key, account->name, account->password, work, arena);
    }
    accounts->passwords = hashes;
    free(work);
}
