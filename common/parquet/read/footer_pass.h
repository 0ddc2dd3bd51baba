// SPDX-License-Identifier: Apache-2.0
// For the files that read a footer: one pass over its bytes.
#pragma once

#include "common/parquet/read/footer_reader.h"
#include "common/parquet/read/thrift_reader.h"

typedef struct FooterPass {
    ThriftReader in;
    Footer *footer;
    uint64_t pages_end;
    bool checked;      // its own checksum was right
    const char *wrong; // the first thing that is, else NULL
} FooterPass;

// Ends the pass, with this as the reason, unless it holds.
void footer_require(FooterPass *p, bool holds, const char *what);
// A name and its value.
void footer_pair(FooterPass *p, Str *ret_name, Str *ret_value);
bool footer_hex(Str text, uint32_t *ret); // eight digits
// The next bytes are a chunk of this column.
void footer_read_chunk(FooterPass *p, ChunkInfo *chunk, const ParquetColumn *column);
