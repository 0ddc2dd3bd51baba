// SPDX-License-Identifier: Apache-2.0
// links: stentor_codec
// Any bytes as the file of an epoch key: never taken, as only its master key can have made it.
#include <stdlib.h>

#include "common/codec/epoch_keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static MasterKey *master;
    if (master == NULL) {
        char text[132];
        master_key_generate(text);
        master = master_key_parse(str_from(text), NULL);
        require(master != NULL);
    }
    Str bytes = str_of(data, size);
    Error err = {0};
    EpochInfo info;
    uint8_t id[KEY_ID_LEN];
    char again[EPOCH_FILE_SIZE];
    if (!epoch_key_describe(bytes, &info, id, &err)) {
        require(err.kind == ERROR_CONFIG);
    } else {
        require(info.number > 0 && info.made_s >= 0);
    }
    require(!master_epochs_set(master, &bytes, 1, STR_EMPTY, &err));
    require(err.kind == ERROR_CONFIG && master_epoch_count(master) == 0);
    require(!epoch_key_rewrap(master, bytes, again, &err));
    return 0;
}
