// SPDX-License-Identifier: Apache-2.0
// links: stentor_archive
// The bucket's owner.json: read, or refused with a text.
#include <stdlib.h>
#include <string.h>

#include "common/archive/owner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OwnerMark mark = {0};
    Error err = {0};
    bool ok = owner_parse(str_of(data, size), &mark, &err);
    if (ok ? mark.epoch <= 0 || mark.token[0] == '\0' : err.kind != ERROR_PERMANENT) {
        abort();
    }
    return 0;
}
