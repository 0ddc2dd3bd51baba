// SPDX-License-Identifier: Apache-2.0
// links: stentor_render
// Any bytes give some text, not much longer than they are; UTF-8 stays UTF-8.
#include <assert.h>

#include "common/render/html_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str html = str_of(data, size);
    Buf out;
    buf_init(&out, 64 * 1024 + 40 * size);
    html_to_text(html, &out);
    assert(!out.full);
    assert(!str_is_utf8(html) || str_is_utf8(buf_view(&out)));
    (void)html_after_tag(html, "body");
    buf_done(&out);
    return 0;
}
