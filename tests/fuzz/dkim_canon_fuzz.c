// SPDX-License-Identifier: Apache-2.0
// links: stentor_mime
// Any bytes as a mail: what relaxing leaves is relaxed already, so blanks that a server adds at the
// ends of lines, and empty lines behind the body, change no hash.
#include <stdlib.h>
#include <string.h>

#include "common/mime/dkim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void put_with_blanks(Buf *out, Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool ends = text.ptr[i] == '\r' && i + 1 < text.len && text.ptr[i + 1] == '\n';
        buf_str(out, ends ? STR(" \t") : STR_EMPTY);
        buf_char(out, text.ptr[i]);
    }
    buf_str(out, STR("\r\n \r\n\r\n"));
}

// Every CR and LF belongs to a CRLF.
static bool has_whole_lines(Str text)
{
    bool after_cr = false;
    for (size_t i = 0; i < text.len; i++) {
        if ((text.ptr[i] == '\n') != after_cr) {
            return false;
        }
        after_cr = text.ptr[i] == '\r';
    }
    return !after_cr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t one[SHA256_LEN];
    uint8_t other[SHA256_LEN];
    Error err = {0};
    Buf out;
    Str text = str_of(data, size);
    buf_init(&out, 4 * size + 4096);
    dkim_header_hash(text, STR("from:to:from:subject::x"), STR("DKIM-Signature: b="), one);
    if (has_whole_lines(text)) {
        dkim_body_hash(text, one);
        put_with_blanks(&out, text);
        dkim_body_hash(buf_view(&out), other);
        require(memcmp(one, other, SHA256_LEN) == 0);
    }
    buf_clear(&out);
    require(dkim_sign(text, NULL, 0, 0, &out, &err) || err.kind == ERROR_PERMANENT);
    buf_done(&out);
    return 0;
}
