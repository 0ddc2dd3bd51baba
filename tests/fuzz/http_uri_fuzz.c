// SPDX-License-Identifier: Apache-2.0
// links: stentor_http
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/http/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xmalloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    size_t before = strlen(text);
    size_t after = uri_unescape(text);
    assert(after <= before);
    assert(strlen(text) == after); // no NUL was made
    free(text);
    return 0;
}
