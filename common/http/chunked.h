// SPDX-License-Identifier: Apache-2.0
// A body in chunks (RFC 9112 7.1), decoded piece by piece. Pure. Law: only CRLF ends a line; sizes
// have at most eight digits; extensions and trailers are checked, thrown away, and few.
#pragma once

#include "common/base/str.h"

typedef enum ChunkedState {
    CHUNKED_SIZE, // at the first digit
    CHUNKED_SIZE_MORE,
    CHUNKED_EXTENSION,
    CHUNKED_SIZE_LF,
    CHUNKED_DATA,
    CHUNKED_DATA_CR,
    CHUNKED_DATA_LF,
    CHUNKED_LINE, // at the first byte of a trailer or of the empty line
    CHUNKED_TRAILER,
    CHUNKED_TRAILER_LF,
    CHUNKED_END_LF,
} ChunkedState;

typedef struct Chunked { // zero it to begin
    ChunkedState state;
    unsigned digits;
    uint64_t left;  // of the chunk
    unsigned extra; // bytes of extensions and trailers
} Chunked;

typedef enum ChunkedResult {
    CHUNKED_IS_DATA,
    CHUNKED_NEEDS_MORE,
    CHUNKED_IS_END,
    CHUNKED_IS_BAD
} ChunkedResult;

// Takes from the front of *rest. CHUNKED_IS_DATA: *ret_data is a piece of the body; ask again.
ChunkedResult chunked_take(Chunked *chunked, Str *rest, Str *ret_data);
