// SPDX-License-Identifier: Apache-2.0
// links: stentor_codec
// Any bytes as an attachment's id; then the same bytes behind a good seal, so that what is behind
// it is met too; and any bytes as an object's name and as the object itself.
#include <stdlib.h>
#include <string.h>

#include "common/codec/attachment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static MasterKey *make_master(void)
{
    static const char text[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                               "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";
    return master_key_parse(str_from(text), NULL);
}

static void try_sealed(DataKey *key, Str plain, Arena *arena)
{
    Stentor__V1__Attachment file;
    stentor__v1__attachment__init(&file);
    file.name = arena_cstr(arena, plain);
    const char *id = attachment_id_make(key, STR("acme"), &file, arena);
    if (id != NULL && strlen(id) <= ATTACHMENT_ID_MAX && str_is_utf8(plain)) {
        const Stentor__V1__Attachment *got =
            attachment_id_read(key, STR("acme"), str_from(id), arena);
        require(got != NULL && strcmp(got->name, file.name) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static MasterKey *master;
    int64_t day = 0;
    Error err = {0};
    Buf out;
    Arena *arena = arena_new(0);
    Str text = str_of(data, size);
    master = master == NULL ? make_master() : master;
    DataKey *key = data_key_for_tenant(master, STR("acme"));
    require(attachment_id_read(key, STR("acme"), text, arena) == NULL);
    try_sealed(key, text, arena);
    require(!attachment_object_day(text, &day) || day >= 0);
    uint8_t secret[ATTACHMENT_KEY_LEN] = {1};
    uint8_t sum[SHA256_LEN] = {0};
    Stentor__V1__Attachment file;
    stentor__v1__attachment__init(&file);
    file.key = (ProtobufCBinaryData){sizeof secret, secret};
    file.sha256 = (ProtobufCBinaryData){sizeof sum, sum};
    file.size_bytes = size > ATTACHMENT_AROUND ? (uint32_t)(size - ATTACHMENT_AROUND) : 0;
    buf_init(&out, size + 1);
    require(!attachment_open(&file, text, &out, &err) && err.kind == ERROR_PERMANENT);
    buf_done(&out);
    data_key_free(key);
    arena_free(arena);
    return 0;
}
