// SPDX-License-Identifier: Apache-2.0
#include "common/access/zip.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    VERSION = 10,
    UTF8_NAMES = 0x0800,
    DOS_DATE = (1 << 5) | 1, // 1980-01-01: the document itself says when
};

static uint32_t crc32_of(Str data)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < data.len; i++) {
        crc ^= (uint8_t)data.ptr[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
        }
    }
    return ~crc;
}

static void put(Buf *out, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        buf_char(out, (char)(value >> (8 * i)));
    }
}

// What both heads of a file have: from the version to the length of its name.
static void put_common(Buf *out, const Zip *zip, size_t index)
{
    put(out, VERSION, 2);
    put(out, UTF8_NAMES, 2);
    put(out, 0, 2); // stored
    put(out, 0, 2);
    put(out, DOS_DATE, 2);
    put(out, zip->files[index].crc, 4);
    put(out, zip->files[index].bytes, 4);
    put(out, zip->files[index].bytes, 4);
    put(out, (uint32_t)strlen(zip->files[index].name), 2);
    put(out, 0, 2); // no further fields
}

void zip_begin(Zip *zip, Buf *out)
{
    *zip = (Zip){.out = out};
}

void zip_add(Zip *zip, const char *name, Str content)
{
    assert(zip->count < ZIP_FILES_MAX && strlen(name) < ZIP_NAME_MAX);
    size_t index = zip->count++;
    snprintf(zip->files[index].name, ZIP_NAME_MAX, "%s", name);
    zip->files[index].crc = crc32_of(content);
    zip->files[index].bytes = (uint32_t)content.len;
    zip->files[index].offset = (uint32_t)zip->out->len;
    put(zip->out, 0x04034b50, 4);
    put_common(zip->out, zip, index);
    buf_cstr(zip->out, name);
    buf_str(zip->out, content);
}

void zip_end(Zip *zip)
{
    uint32_t start = (uint32_t)zip->out->len;
    for (size_t i = 0; i < zip->count; i++) {
        put(zip->out, 0x02014b50, 4);
        put(zip->out, VERSION, 2);
        put_common(zip->out, zip, i);
        put(zip->out, 0, 2); // no comment
        put(zip->out, 0, 2); // the first disk
        put(zip->out, 0, 2);
        put(zip->out, 0, 4);
        put(zip->out, zip->files[i].offset, 4);
        buf_cstr(zip->out, zip->files[i].name);
    }
    uint32_t bytes = (uint32_t)zip->out->len - start;
    put(zip->out, 0x06054b50, 4);
    put(zip->out, 0, 4); // one disk
    put(zip->out, (uint32_t)zip->count, 2);
    put(zip->out, (uint32_t)zip->count, 2);
    put(zip->out, bytes, 4);
    put(zip->out, start, 4);
    put(zip->out, 0, 2);
}
