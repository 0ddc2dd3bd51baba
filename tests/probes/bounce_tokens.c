// SPDX-License-Identifier: Apache-2.0
// links: stentor_codec
// What a mail would carry that went to ADDRESS: its return path and its opt-out token, a line each.
//   bounce_tokens MASTER_KEY_FILE TENANT NOTIFICATION ATTEMPT ADDRESS BOUNCE_DOMAIN
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/codec/bounce_token.h"
#include "common/codec/opt_out.h"

static bool print_tokens(const MasterKey *master, char **words, Error *err)
{
    BounceKey bounce;
    OptOutKey opt_out;
    int64_t attempt = 0;
    char path[BOUNCE_ADDRESS_SIZE];
    char token[OPT_OUT_TOKEN_SIZE];
    OptOut what = {
        .tenant = str_from(words[2]),
        .notification_id = str_from(words[3]),
        .channel = CHANNEL_EMAIL,
        .category = CATEGORY_MARKETING,
        .issued_at_us = clock_now_us(),
    };
    bounce_key(master, &bounce);
    opt_out_key(master, &opt_out);
    address_hash(
        master_hash_key(master), what.tenant, CHANNEL_EMAIL, str_from(words[5]), what.address_hash);
    bool good = str_to_i64(str_from(words[4]), &attempt) &&
                bounce_address_make_for(
                    &bounce, what.tenant, what.notification_id, (int32_t)attempt, what.address_hash,
                    str_from(words[6]), path, err) &&
                opt_out_sign(&opt_out, &what, token, err);
    if (good) {
        printf("%s\n%s\n", path, token);
    }
    return good;
}

int main(int argc, char **argv)
{
    Arena *arena = arena_new(0);
    Error err = {0};
    Str text = STR_EMPTY;
    MasterKey *master = NULL;
    bool good = argc == 7 && file_read(argv[1], MASTER_KEY_FILE_MAX, arena, &text, &err) &&
                (master = master_key_parse(text, &err)) != NULL && print_tokens(master, argv, &err);
    if (!good) {
        fprintf(stderr, "bounce_tokens: %s\n", err.text);
    }
    master_key_free(master);
    arena_free(arena);
    return good ? 0 : 1;
}
