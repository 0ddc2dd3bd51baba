// SPDX-License-Identifier: Apache-2.0
// links: stentor_service
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service/options_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OptionsFile file;
    options_file_init(&file, str_of(data, size));
    Str name, value;
    Error err = {0};
    int line = 0;
    while (options_file_next(&file, &name, &value, &err)) {
        assert(name.len > 0 && value.len <= size);
        assert(file.line > line);
        line = file.line;
    }
    assert(err.kind == ERROR_NONE || err.kind == ERROR_CONFIG);
    options_file_done(&file);
    return 0;
}
