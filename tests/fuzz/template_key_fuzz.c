// SPDX-License-Identifier: Apache-2.0
// links: stentor_model
#include <stdlib.h>

#include "common/model/template_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What was parsed is written as it came.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TemplateKey key;
    char out[TEMPLATE_KEY_SIZE];
    Str text = str_of(data, size);
    if (template_key_parse(text, &key)) {
        Str again = template_key_write(out, key.key, key.channel, key.version);
        if (again.len > 0 && !str_eq(again, text)) {
            abort();
        }
    }
    return 0;
}
