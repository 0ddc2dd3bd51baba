// SPDX-License-Identifier: Apache-2.0
// links: stentor_codec
// Any bytes as a master key file, as the register in CONFIG, and as a wrapped key. A file that is
// taken is printed and read again as the same.
#include <stdlib.h>

#include "common/codec/key_register.h"
#include "common/codec/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void try_file(Str text)
{
    Error err = {0};
    char printed[MASTER_KEY_FILE_SIZE];
    MasterKey *master = master_key_parse(text, &err);
    if (master == NULL) {
        require(err.kind == ERROR_CONFIG);
        return;
    }
    require(master_key_print(master, &(MasterKeyChange){0}, printed, &err));
    MasterKey *again = master_key_parse(str_from(printed), &err);
    require(again != NULL);
    for (KeyKind kind = KEY_MASTER; kind <= KEY_HASH; kind++) {
        require(master_key_count(master, kind) == master_key_count(again, kind));
        require(
            master_key_find(again, master_key_info(master, kind, 0)) ==
            master_key_info(again, kind, 0));
    }
    master_key_free(master);
    master_key_free(again);
}

static void try_register(Str payload, MasterKey *master)
{
    Arena *arena = arena_new(0);
    KeyRegister keys;
    Error err = {0};
    if (key_register_read(payload, arena, &keys, &err)) {
        require(!key_register_check(&keys, master, &err)); // none of the bytes knows the key
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t SUBJECT[16];
    static MasterKey *master;
    if (master == NULL) {
        char text[132];
        master_key_generate(text);
        master = master_key_parse(str_from(text), NULL);
        require(master != NULL);
    }
    Str bytes = str_of(data, size);
    Error err = {0};
    try_file(bytes);
    try_register(bytes, master);
    require(data_key_unwrap(master, SUBJECT, 1, bytes, &err) == NULL);
    return 0;
}
