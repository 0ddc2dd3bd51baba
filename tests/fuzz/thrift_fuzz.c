// SPDX-License-Identifier: Apache-2.0
// links: stentor_parquet
// Any bytes as a struct of the compact protocol: skipped field by field, or refused. The first byte
// says which fields are taken as what.
#include <stdlib.h>

#include "common/parquet/read/thrift_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

// Fields as a page's header has them, then whatever is there.
static void take_field(ThriftReader *in, const ThriftField *field, unsigned how)
{
    size_t before = in->rest.len;
    switch (how % 5) {
    case 0:
        thrift_get_int(in, field);
        break;
    case 1:
        require(thrift_get_bytes(in, field).len <= before);
        break;
    case 2:
        require(thrift_get_list(in, field, THRIFT_I32, 100) <= 100);
        break;
    case 3:
        thrift_get_bool(in, field);
        break;
    default:
        thrift_skip(in, field);
    }
    require(in->rest.len <= before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    ThriftReader in = {.rest = str_of(data + 1, size - 1)};
    ThriftField field = {0};
    int last = 0;
    while (thrift_next(&in, &field)) {
        require(field.id > last);
        last = field.id;
        if ((data[0] & 0x80) != 0) {
            take_field(&in, &field, data[0] + (unsigned)field.id);
        } else {
            thrift_skip(&in, &field);
        }
    }
    require(!in.bad || in.rest.len == 0);
    return 0;
}
