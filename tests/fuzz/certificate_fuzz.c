// SPDX-License-Identifier: Apache-2.0
// links: stentor_erasure
// Any object is a certificate or none. One that reads has keys that name keys, and without the
// private half its signature checks only when nothing was changed.
#include <assert.h>
#include <string.h>

#include "common/erasure/certificate_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_keys(Str keys)
{
    Str key = STR_EMPTY, subject = STR_EMPTY;
    while (keys.len > 0 && str_split(&keys, ',', &key)) {
        int64_t generation = 0;
        assert(str_split(&key, ':', &subject) && subject.len == 2 * KEY_SUBJECT_LEN);
        assert(str_to_i64(key, &generation) && generation > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    CertificateObject read;
    Error err = {0};
    if (certificate_object_read(str_of(data, size), arena, &read, &err)) {
        check_keys(str_from(read.keys));
        check_keys(str_from(read.kept));
        assert(read.kept[0] == '\0' || read.duty[0] != '\0');
        if (!certificate_check(&read.certificate, NULL, NULL, &err)) {
            assert(err.kind == ERROR_PERMANENT);
        }
    } else {
        assert(err.kind == ERROR_PERMANENT && err.text[0] != '\0');
    }
    arena_free(arena);
    return 0;
}
